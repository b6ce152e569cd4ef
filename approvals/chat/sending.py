"""Messages out to an incoming webhook: what needs somebody, and what became of a request."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import urllib3

from approvals.chat.tools import TOOLS
from approvals.gate import reader
from approvals.lifecycle import State
from approvals.models import Request
from provisioner.errors import Unreachable

logger = logging.getLogger(__name__)

SEND_SECONDS = 5.0
OCCASIONS = (
    "needs_you",
    "decided",
    "changes_requested",
    "voided",
    "break_glass",
    "reviewed",
    "reminder",
    "check_holds",
    "carried",
)


def tell(request_id: int, occasion: str) -> None:
    """Post the message of a request to each chat; nothing is sent where no webhook is configured."""
    speaking = [(tool, url) for tool in TOOLS.values() if (url := tool.message_url())]
    if not speaking:
        return
    request = Request.objects.select_related("deployment__cluster").get(pk=request_id)
    if occasion in ("needs_you", "reminder", "changes_requested") and request.state != State.IN_REVIEW:
        return
    if occasion == "needs_you" and not request.approval_rules:
        # Said before anybody has looked what approves it.
        request.approval_rules = [standing.record for standing in reader.rules_now(request)]
    for tool, url in speaking:
        if message := tool.message(request, occasion):
            _post(url, message, occasion)


def _post(url: str, message: Mapping[str, Any], occasion: str) -> None:
    try:
        answer = urllib3.request("POST", url, json=message, timeout=SEND_SECONDS, redirect=False, retries=False)
    except urllib3.exceptions.HTTPError as exc:
        raise Unreachable(f"the chat's incoming webhook did not respond: {type(exc).__name__}") from exc
    if answer.status == 429 or answer.status >= 500:
        raise Unreachable(f"the chat's incoming webhook returned status {answer.status}")
    if answer.status >= 300:
        logger.warning("chat message refused", extra={"status": answer.status, "occasion": occasion})
