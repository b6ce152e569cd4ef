"""The generic decision endpoint, after Standard Webhooks: one key is one robot identity (security-rules.md S21)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest
from standardwebhooks import Webhook, WebhookVerificationError
from standardwebhooks.webhooks import EmptyWebhookSecretError

from approvals import access
from approvals.access import Caller, Credential
from approvals.chat.tool import ChatDecision, ChatTool, Delivery, UnreadableCallback, Unverified, raw_body, storable
from approvals.errors import NotAllowed
from approvals.models import Review
from approvals.services.waivers import NOT_IN_CHAT

NAME = "webhook"
HEADERS = ("webhook-id", "webhook-timestamp", "webhook-signature")
MAX_BODY_BYTES = 64 * 1024
MAX_ID = 128
EXPECTED = (
    "expected a JSON object with request, subjectDigest, decision (Approve or Deny), and optionally reason, actor and"
    " acknowledges (a list of strings)"
)
# What the library raises besides its own error, for headers, secrets and bodies that are malformed.
UNVERIFIABLE = (WebhookVerificationError, EmptyWebhookSecretError, ValueError, RuntimeError)


class DecisionWebhook(ChatTool):
    name = NAME
    channel = Review.Channel.WEBHOOK

    def receive(self, http: HttpRequest, *, now: float) -> Delivery | None:
        secret = settings.PRATIQUE["DECISION_WEBHOOK_SECRET"]
        headers = {name: http.headers.get(name, "") for name in HEADERS}
        body = raw_body(http, at_most=MAX_BODY_BYTES)
        if not secret or not all(headers.values()) or len(headers["webhook-id"]) > MAX_ID:
            raise Unverified
        try:
            Webhook(secret).verify(body, headers, json_parse=False)
        except UNVERIFIABLE as exc:
            raise Unverified from exc
        if not settings.PRATIQUE["DECISION_WEBHOOK_USER"]:
            raise UnreadableCallback("PRATIQUE_DECISION_WEBHOOK_USER is not set, so this endpoint accepts no decisions")
        return Delivery(headers["webhook-id"], _wish(_json_object(body)))

    def person(self, wish: ChatDecision) -> Caller | None:
        """The key stands for a robot, whom the operator has mapped: it proves nothing to any cluster."""
        robot = User.objects.filter(username=wish.account, is_active=True).first() if wish.account else None
        if robot is None:
            raise NotAllowed("PRATIQUE_DECISION_WEBHOOK_USER does not name an active user")
        return access.of_operator(robot, Credential.WEBHOOK)


def _json_object(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as exc:
        raise UnreadableCallback(EXPECTED) from exc
    if not isinstance(found, dict):
        raise UnreadableCallback(EXPECTED)
    return found


def _wish(body: Mapping[str, Any]) -> ChatDecision:
    words = {key: body.get(key) for key in ("request", "subjectDigest", "decision")}
    acknowledges = body.get("acknowledges", [])
    if body.get("waives"):
        raise UnreadableCallback(f"waives: {NOT_IN_CHAT}")
    if not isinstance(acknowledges, list) or not all(
        isinstance(it, str) and it for it in (*words.values(), *acknowledges)
    ):
        raise UnreadableCallback(EXPECTED)
    # A human named in the body is text: the robot decides, with its own access check.
    said_by = str(body.get("actor") or "")
    reason = str(body.get("reason") or "") + (f" (said to be from {said_by})" if said_by else "")
    return ChatDecision(
        NAME,
        "",
        settings.PRATIQUE["DECISION_WEBHOOK_USER"],
        "",
        storable(str(words["request"])),
        storable(str(words["decision"])),
        storable(str(words["subjectDigest"])),
        storable(reason),
        acknowledges=[storable(each) for each in acknowledges],
    )
