"""Mattermost: an incoming webhook, with Markdown."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from approvals.events.kinds.kind import MessageHook
from approvals.events.message import EventMessage

TITLE_ROOM = 300
_MARK = re.compile(r"([\\`*_{}\[\]()#+\-.!|~])")


class MattermostTarget(MessageHook):
    name = "mattermost"
    words = "Mattermost: incoming webhook"
    address_help = "The URL of an incoming webhook of your server: https://mattermost.example.com/hooks/…"

    def write_body(self, message: EventMessage) -> dict[str, Any]:
        title, lines = message.fit(_escaped, title_room=TITLE_ROOM)
        text = "\n".join([f"**{title}**", *lines, f"[Open in Pratique]({message.link})"])
        return {"username": "Pratique", "text": text}


def _escaped(text: str) -> str:
    """Markdown as text. Entities, because `<…|…>` and `<!channel>` are rewritten as in Slack before Markdown is read.

    Mentions know no escape: a name behind a space without width mentions nobody.
    """
    marked = _MARK.sub(r"\\\1", escape(text, quote=False))
    return marked.replace("://", "\\://").replace("@", "@\u200b")
