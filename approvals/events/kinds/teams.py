"""Microsoft Teams: a workflow of Power Automate that posts an Adaptive Card."""

from __future__ import annotations

from typing import Any

from approvals.events.kinds.kind import MessageHook
from approvals.events.message import EventMessage

TITLE_ROOM = 300


class TeamsTarget(MessageHook):
    name = "teams"
    words = "Microsoft Teams: workflow"
    address_help = "The URL of a workflow “Post to a channel when a webhook request is received”."
    hosts = ("*.logic.azure.com", "*.environment.api.powerplatform.com")

    def write_body(self, message: EventMessage) -> dict[str, Any]:
        title, lines = message.fit(str, title_room=TITLE_ROOM)
        card = {
            "type": "AdaptiveCard",
            "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
            "version": "1.4",
            "fallbackText": title,
            "body": [_paragraph(title, weight="Bolder", size="Medium"), *map(_paragraph, lines)],
            "actions": [{"type": "Action.OpenUrl", "title": "Open in Pratique", "url": message.link}],
        }
        attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
        return {"type": "message", "attachments": [attachment]}


def _paragraph(text: str, **look: str) -> dict[str, Any]:
    """A run of text, in which nothing is Markdown; a TextBlock and a FactSet would read it as such."""
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text, **look}]}
