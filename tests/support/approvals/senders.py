"""What Slack and a robot send, signed by the letter of their documents and not with the code under test."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import Any, cast
from urllib.parse import urlencode

from django.http import HttpResponse
from django.test import Client

from approvals.chat.tools.slack import button_value
from approvals.models import Request

SIGNING_SECRET = "berths-and-tides-of-the-old-harbour"
TEAM = "T0HARBOUR"
WEBHOOK_KEY = b"k" * 32
WEBHOOK_SECRET = "whsec_" + base64.b64encode(WEBHOOK_KEY).decode()
SLACK_URL = "/chat/slack/decisions"
COMMAND_URL = "/chat/slack/commands"
WEBHOOK_URL = "/chat/webhook/decisions"


def slack_headers(body: bytes, *, at: float | None = None, secret: str = SIGNING_SECRET) -> dict[str, str]:
    stamp = str(int(time.time() if at is None else at))
    signed = b"v0:" + stamp.encode() + b":" + body
    signature = "v0=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return {"X-Slack-Signature": signature, "X-Slack-Request-Timestamp": stamp}


def click(value: str, *, account: str = "UADA", reply_to: str = "", **more: Any) -> dict[str, Any]:
    """The payload of a click on a button."""
    return {
        "type": "block_actions",
        "user": {"id": account, "username": account.lower(), "team_id": TEAM},
        "team": {"id": TEAM, "domain": "harbour"},
        "actions": [{"type": "button", "action_id": "approve", "value": value}],
        "response_url": reply_to,
        **more,
    }


def form(payload: object) -> bytes:
    return urlencode({"payload": json.dumps(payload)}).encode()


def post_slack(body: bytes, headers: dict[str, str], url: str = SLACK_URL) -> HttpResponse:
    return cast(
        HttpResponse, Client().post(url, body, content_type="application/x-www-form-urlencoded", headers=headers)
    )


def press(request: Request, decision: str = "Approve", **more: Any) -> HttpResponse:
    """Click a button of our own message, as Slack tells us."""
    body = form(click(button_value(request, decision), **more))
    return post_slack(body, slack_headers(body))


def decision_body(about: Request, /, **changes: Any) -> bytes:
    wish = {"request": str(about.uid), "subjectDigest": about.subject_digest, "decision": "Approve"}
    return json.dumps({**wish, **changes}).encode()


def webhook_headers(
    body: bytes, *, key: str = "msg_1", at: float | None = None, secret: bytes = WEBHOOK_KEY
) -> dict[str, str]:
    stamp = str(int(time.time() if at is None else at))
    signed = key.encode() + b"." + stamp.encode() + b"." + body
    signature = "v1," + base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()
    return {"webhook-id": key, "webhook-timestamp": stamp, "webhook-signature": signature}


def post_webhook(body: bytes, headers: dict[str, str]) -> HttpResponse:
    return cast(HttpResponse, Client().post(WEBHOOK_URL, body, content_type="application/json", headers=headers))
