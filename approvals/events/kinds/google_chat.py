"""Google Chat: an incoming webhook of a space, with one card."""

from __future__ import annotations

from html import escape
from typing import Any

from approvals.events.kinds.kind import MessageHook
from approvals.events.message import EventMessage

TITLE_ROOM = 200


class GoogleChatTarget(MessageHook):
    name = "google-chat"
    words = "Google Chat: incoming webhook"
    address_help = "The URL of a webhook of a space: https://chat.googleapis.com/v1/spaces/…"
    hosts = ("chat.googleapis.com",)

    def write_body(self, message: EventMessage) -> dict[str, Any]:
        title, lines = message.fit(escape, title_room=TITLE_ROOM)
        # A paragraph reads a little HTML; the header of a card would not show entities as what they stand for.
        text = "<br>".join([f"<b>{title}</b>", *lines])
        button = {"text": "Open in Pratique", "onClick": {"openLink": {"url": message.link}}}
        widgets = [{"textParagraph": {"text": text}}, {"buttonList": {"buttons": [button]}}]
        return {"cardsV2": [{"cardId": message.event_id, "card": {"sections": [{"widgets": widgets}]}}]}
