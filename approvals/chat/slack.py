"""Slack: interactive messages in (v0 signature over the raw body), incoming webhooks out."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.conf import settings
from django.core import signing
from django.http import HttpRequest
from slack_sdk.signature import Clock, SignatureVerifier

from approvals.chat.tools import Delivery, Unreadable, Unverified, Wish
from approvals.models import Request
from provisioner.review.text import visible
from provisioner.values import Severity

NAME = "slack"
PATIENCE_SECONDS = 300
SALT = "approvals.chat.slack"
MAX_TEXT = 2900
REPLY_HOST = "hooks.slack.com"
# Above this a chat message is too small a place to decide: it opens the browser (security.md S22, approvals.md 0.8).
DECIDED_IN_BROWSER = Severity.DANGEROUS


class Slack:
    name = NAME

    def receive(self, http: HttpRequest, *, now: float) -> Delivery:
        key, form = verified_form(http, now=now)
        try:
            payload = json.loads(form["payload"][0])
            action = payload["actions"][0]
            user = payload["user"]
            button = signing.loads(action["value"], salt=SALT, max_age=settings.PRATIQUE["REQUEST_HOURS"] * 3600)
            wish = Wish(
                NAME,
                str(payload["team"]["id"]),
                str(user["id"]),
                str(user.get("username", "")),
                str(button["request"]),
                str(button["decision"]),
                str(button["digest"]),
                "decided in Slack",
                _reply_to(str(payload.get("response_url", ""))),
            )
        except (KeyError, IndexError, TypeError, ValueError, signing.BadSignature) as exc:
            raise Unreadable("expected block_actions of one of our own messages") from exc
        _check_team(wish.tenant, str(user.get("team_id") or wish.tenant))
        return Delivery(key, wish)

    def message(self, request: Request, occasion: str) -> dict[str, Any] | None:
        report = request.reports.filter(round=request.round).first()
        url = f"{settings.PRATIQUE['PUBLIC_URL'].rstrip('/')}/requests/{request.uid}"
        title = f"*{escaped(request.deployment.name)}* on {escaped(request.deployment.cluster.name)}"
        if occasion == "decided":
            return {"text": f"{title}: {request.state.replace('_', ' ')} <{url}|open>"}
        lines = "\n".join(f"• {escaped(line)}" for line in (report.headline if report else []))[:MAX_TEXT]
        is_risky = report is None or Severity(report.worst).is_at_least(DECIDED_IN_BROWSER)
        buttons: list[dict[str, Any]] = [_button("Open", "open", url=url)]
        if not is_risky:
            buttons.append(_button("Approve", "approve", value=button_value(request, "Approve"), style="primary"))
        buttons.append(_button("Deny", "deny", value=button_value(request, "Deny"), style="danger"))
        return {
            "text": f"{request.deployment.name} needs a review: {url}",
            "blocks": [
                {"type": "section", "text": {"type": "mrkdwn", "text": f"{title} needs a review\n{lines}"}},
                {"type": "actions", "elements": buttons},
            ],
        }


def verified_form(http: HttpRequest, *, now: float) -> tuple[str, dict[str, list[str]]]:
    """(replay key, form fields) of a callback whose signature and age are right; raises Unverified.

    Slack signs `v0:<timestamp>:<raw body>`; slack_sdk raises several errors on malformed headers, all mean the same.
    """
    secret = settings.PRATIQUE["SLACK_SIGNING_SECRET"]
    body = http.body
    signature = http.headers.get("X-Slack-Signature", "")
    timestamp = http.headers.get("X-Slack-Request-Timestamp", "")
    if not secret or not signature or not timestamp.isascii() or not timestamp.isdigit():
        raise Unverified
    try:
        verifier = SignatureVerifier(secret, clock=_FixedClock(now))
        is_valid = abs(now - int(timestamp)) <= PATIENCE_SECONDS and verifier.is_valid(body, timestamp, signature)
        text = body.decode()
    except (ValueError, TypeError, UnicodeError) as exc:
        raise Unverified from exc
    if not is_valid:
        raise Unverified
    return hashlib.sha256(f"{timestamp}:{signature}".encode()).hexdigest(), parse_qs(text, max_num_fields=50)


def button_value(request: Request, decision: str) -> str:
    """What a button carries: the request, the digest that the message showed, the decision; signed, never a right."""
    wish = {"request": str(request.uid), "digest": request.subject_digest, "decision": decision}
    return signing.dumps(wish, salt=SALT)


def escaped(text: str) -> str:
    """Untrusted words for mrkdwn: Slack's three characters, and ours made visible (S24)."""
    return visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _button(text: str, action: str, **rest: str) -> dict[str, Any]:
    return {"type": "button", "action_id": action, "text": {"type": "plain_text", "text": text}, **rest}


def _reply_to(url: str) -> str:
    """Answers go to Slack, or to where our own messages go; anywhere else would be a request forged by the caller."""
    allowed = {REPLY_HOST, urlsplit(settings.PRATIQUE["SLACK_WEBHOOK_URL"]).netloc} - {""}
    return url if urlsplit(url).netloc in allowed else ""


def _check_team(team: str, user_team: str) -> None:
    expected = settings.PRATIQUE["SLACK_TEAM"]
    if not expected or team != expected or user_team != expected:
        raise Unverified


class _FixedClock(Clock):
    def __init__(self, now: float) -> None:
        self._now = now

    def now(self) -> float:
        return self._now
