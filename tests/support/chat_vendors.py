"""What vendors take, as strictly as they do, and what people read there: the words of a message, without its mark-up."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from typing import Any

import jsonschema

_URL = {"type": "string", "pattern": "^https?://", "maxLength": 3000}


def _text(longest: int) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": longest}


def _const(value: object) -> dict[str, Any]:
    return {"const": value}


def _exactly(needed: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """An object that has what is needed and no other property."""
    known = {**needed, **more}
    return {"type": "object", "properties": known, "required": [*needed], "additionalProperties": False}


def _list(item: Mapping[str, Any], most: int) -> dict[str, Any]:
    return {"type": "array", "items": item, "minItems": 1, "maxItems": most}


def _plain(longest: int) -> dict[str, Any]:
    return _exactly({"type": _const("plain_text"), "text": _text(longest)}, emoji={"type": "boolean"})


_MRKDWN = _exactly({"type": _const("mrkdwn"), "text": _text(3000)}, verbatim={"type": "boolean"})
_SLACK = _exactly(
    {"text": _text(40_000), "blocks": _list({"anyOf": [
        _exactly({"type": _const("header"), "text": _plain(150)}),
        _exactly({"type": _const("section"), "text": {"anyOf": [_plain(3000), _MRKDWN]}}),
    ]}, 50)},
    mrkdwn={"type": "boolean"}, unfurl_links={"type": "boolean"}, unfurl_media={"type": "boolean"},
)  # fmt: skip
_DISCORD = _exactly(
    {"embeds": _list(_exactly({"title": _text(256), "url": _URL}, description={"type": "string", "maxLength": 4096}), 10)},
    allowed_mentions=_exactly({"parse": {"type": "array", "maxItems": 0}}),
)  # fmt: skip
_LOOK = {"weight": {"enum": ["Bolder"]}, "size": {"enum": ["Medium"]}}
_RUN = _exactly({"type": _const("TextRun"), "text": _text(28_000)}, **_LOOK)
_CARD = _exactly({
    "type": _const("AdaptiveCard"),
    "$schema": _const("http://adaptivecards.io/schemas/adaptive-card.json"),
    "version": {"enum": ["1.4", "1.5"]},
    "body": _list(_exactly({"type": _const("RichTextBlock"), "inlines": _list(_RUN, 100)}), 200),
    "fallbackText": _text(1000),
    "actions": _list(_exactly({"type": _const("Action.OpenUrl"), "title": _text(100), "url": _URL}), 6),
})  # fmt: skip
_TEAMS = _exactly({"type": _const("message"), "attachments": _list(_exactly({
    "contentType": _const("application/vnd.microsoft.card.adaptive"), "contentUrl": _const(None), "content": _CARD,
}), 1)})  # fmt: skip
_BUTTON = _exactly({"text": _text(100), "onClick": _exactly({"openLink": _exactly({"url": _URL})})})
_GOOGLE = _exactly({"cardsV2": _list(_exactly({"cardId": _text(64), "card": _exactly({"sections": _list(_exactly({
    "widgets": _list({"anyOf": [
        _exactly({"textParagraph": _exactly({"text": _text(30_000)})}),
        _exactly({"buttonList": _exactly({"buttons": _list(_BUTTON, 6)})}),
    ]}, 100),
}), 100)})}), 1)})  # fmt: skip
_PAGERDUTY = _exactly(
    {"routing_key": {"type": "string", "pattern": "^[A-Za-z0-9]{32}$"},
     "event_action": {"enum": ["trigger", "acknowledge", "resolve"]},
     "payload": _exactly({"summary": _text(1024), "source": _text(255),
                          "severity": {"enum": ["critical", "error", "warning", "info"]}},
                         timestamp=_text(40), custom_details={"type": "object"})},
    dedup_key=_text(255), client=_text(255), client_url=_URL,
    links={"type": "array", "items": _exactly({"href": _URL, "text": _text(255)})},
)  # fmt: skip
_MATTERMOST = _exactly({"text": _text(4000)}, username=_text(64))


def _read_slack(body: Any) -> str:
    texts = [block["text"] for block in body["blocks"]]
    marked = [text["text"] for text in texts if text["type"] == "mrkdwn"]
    assert [re.fullmatch(r"<https?://[^<>|\s]+\|[\w ]+>", one) is None for one in marked] == [False], marked
    plain = [body["text"], *(text["text"] for text in texts if text["type"] == "plain_text")]
    assert not re.search(r"[<>]|&(?!amp;|lt;|gt;)", "".join(plain))
    return html.unescape("\n".join(plain))


def _read_markdown(text: str) -> str:
    """Without escapes; what is left of marks would be mark-up."""
    assert not re.search(r"[*_`~\[\]<>#|]|://|www\.", re.sub(r"\\[!-/:-@\[-`{-~]", "", text)), text
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", text)


def _read_mattermost(body: Any) -> str:
    title, *lines, link = body["text"].split("\n")
    assert re.fullmatch(r"\[Open in Pratique\]\(https?://[^()\s]+\)", link)
    assert re.fullmatch(r"\*\*.+\*\*", title)
    text = "\n".join([title[2:-2], *lines])
    assert not re.search(r"@\w|&(?!amp;|lt;|gt;)", text)
    return html.unescape(_read_markdown(text).replace("@\u200b", "@"))


def _read_discord(body: Any) -> str:
    (embed,) = body["embeds"]
    assert sum(len(text) for name, text in embed.items() if name != "url") <= 6000
    return _read_markdown(f"{embed['title']}\n{embed['description']}")


def _read_teams(body: Any) -> str:
    assert len(json.dumps(body, ensure_ascii=False).encode()) <= 28 * 1024
    return "\n".join(run["text"] for part in body["attachments"][0]["content"]["body"] for run in part["inlines"])


def _read_google(body: Any) -> str:
    assert len(json.dumps(body, ensure_ascii=False).encode()) <= 32_000
    widgets = body["cardsV2"][0]["card"]["sections"][0]["widgets"]
    return read_html(next(one["textParagraph"]["text"] for one in widgets if "textParagraph" in one), {"b", "br"})


def _read_pagerduty(body: Any) -> str:
    return f"{body['payload']['summary']}\n{body['payload']['custom_details']['text']}"


def read_html(text: str, allowed: set[str]) -> str:
    """Its words; other tags than the allowed ones would be of somebody else."""
    told: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            assert tag in allowed, tag
            told.append("\n" if tag in ("br", "p") else "")

        def handle_data(self, data: str) -> None:
            told.append(data)

    Reader(convert_charrefs=True).feed(text)
    return "".join(told)


_VENDORS: Mapping[str, tuple[Mapping[str, Any], Callable[[Any], str]]] = {
    "slack": (_SLACK, _read_slack),
    "mattermost": (_MATTERMOST, _read_mattermost),
    "teams": (_TEAMS, _read_teams),
    "discord": (_DISCORD, _read_discord),
    "google-chat": (_GOOGLE, _read_google),
    "pagerduty": (_PAGERDUTY, _read_pagerduty),
}
VENDORS = tuple(_VENDORS)


def read_message_of(kind: str, body: Any) -> str:
    """The words that people read; raises what a vendor would answer 400 for, and where words of others are mark-up."""
    schema, read = _VENDORS[kind]
    jsonschema.validate(body, schema)
    return read(body)
