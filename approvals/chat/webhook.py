"""The generic decision endpoint, after Standard Webhooks: one key is one robot identity (security.md S21)."""

from __future__ import annotations

import binascii
import json
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from standardwebhooks import Webhook, WebhookVerificationError

from approvals.chat.tools import Delivery, Unreadable, Unverified, Wish
from approvals.models import Request

NAME = "webhook"
HEADERS = ("webhook-id", "webhook-timestamp", "webhook-signature")
MAX_BODY_BYTES = 64 * 1024


class DecisionWebhook:
    name = NAME

    def receive(self, http: HttpRequest, *, now: float) -> Delivery:
        secret = settings.PRATIQUE["DECISION_WEBHOOK_SECRET"]
        headers = {name: http.headers.get(name, "") for name in HEADERS}
        if not secret or not all(headers.values()) or len(http.body) > MAX_BODY_BYTES:
            raise Unverified
        try:
            Webhook(secret).verify(http.body, headers)
            body = json.loads(http.body)
        except (WebhookVerificationError, binascii.Error, UnicodeError, ValueError, RuntimeError) as exc:
            raise Unverified from exc
        return Delivery(headers["webhook-id"][:128], _wish(body))

    def message(self, request: Request, occasion: str) -> dict[str, Any] | None:
        return None


def _wish(body: Any) -> Wish:
    expected = "expected a JSON object with request, subjectDigest, decision (Approve or Deny) and reason"
    if not isinstance(body, dict):
        raise Unreadable(expected)
    words = {key: body.get(key) for key in ("request", "subjectDigest", "decision")}
    if not all(isinstance(word, str) and word for word in words.values()):
        raise Unreadable(expected)
    # A human named in the body is text: the robot decides, with its own access check.
    said_by = str(body.get("actor") or "")
    reason = str(body.get("reason") or "") + (f" (said to be from {said_by})" if said_by else "")
    return Wish(
        NAME,
        "",
        settings.PRATIQUE["DECISION_WEBHOOK_USER"],
        "",
        str(words["request"]),
        str(words["decision"]),
        str(words["subjectDigest"]),
        reason,
    )
