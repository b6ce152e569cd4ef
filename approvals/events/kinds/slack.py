"""Slack: an incoming webhook, with Block Kit. Decisions come back through approvals/chat."""

from __future__ import annotations

from html import escape
from typing import Any

from approvals.events.kinds.kind import MessageHook
from approvals.events.message import EventMessage

HEADER_ROOM = 150


class SlackTarget(MessageHook):
    name = "slack"
    words = "Slack: incoming webhook"
    address_help = "The URL of an incoming webhook of your Slack app: https://hooks.slack.com/services/…"
    hosts = ("hooks.slack.com",)

    def write_body(self, message: EventMessage) -> dict[str, Any]:
        title, lines = message.fit(_escaped, title_room=HEADER_ROOM)
        # Words of others stand in plain text, which has no mentions, links and formats.
        plain = {"type": "plain_text", "emoji": False}
        link = {"type": "mrkdwn", "verbatim": True, "text": f"<{_escaped(message.link)}|Open in Pratique>"}
        blocks = [{"type": "header", "text": {**plain, "text": title}}]
        blocks += [{"type": "section", "text": {**plain, "text": "\n".join(lines)}}] if lines else []
        blocks += [{"type": "section", "text": link}]
        return {"text": title, "mrkdwn": False, "unfurl_links": False, "unfurl_media": False, "blocks": blocks}


def _escaped(text: str) -> str:
    """The three characters that Slack has written as entities, everywhere."""
    return escape(text, quote=False)
