"""Discord: a webhook of a channel, with one embed."""

from __future__ import annotations

import re
from typing import Any

from approvals.events.kinds.kind import MessageHook
from approvals.events.message import EventMessage

TITLE_ROOM = 256
_MARK = re.compile(r"([\\`*_~|>\[\]()#:<@.!+-])")


class DiscordTarget(MessageHook):
    name = "discord"
    words = "Discord: webhook of a channel"
    address_help = "The URL of a webhook of a channel: https://discord.com/api/webhooks/…"
    hosts = ("discord.com",)

    def write_body(self, message: EventMessage) -> dict[str, Any]:
        title, lines = message.fit(_escaped, title_room=TITLE_ROOM)
        embed = {"title": title, "url": message.link, "description": "\n".join(lines)}
        return {"embeds": [embed], "allowed_mentions": {"parse": []}}


def _escaped(text: str) -> str:
    """Markdown as text: every ASCII mark that begins something, also the `:` of an address and of an emoji."""
    return _MARK.sub(r"\\\1", text)
