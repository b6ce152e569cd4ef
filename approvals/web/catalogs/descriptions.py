"""What a publisher writes of a package, which is Markdown, as structure that is safe to show. PURE.

Its HTML is text, a picture is the words in place of it, and only addresses of http and https are links. Behind the
words of a link stands where it leads.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.token import Token

from provisioner.escaping import visible

# The parser takes the square of some lengths: what is beyond is shown as plain paragraphs.
MOST_MARKDOWN = 16 * 1024
FIRST_LETTERS, MOST_FIRST_LETTERS = 600, 2_000
SCHEMES = ("https://", "http://")
REL = "noopener nofollow"
# Any sign between two letters, as the dots of a host, of whatever script they are.
ADDRESS_LIKE = re.compile(r"\w[^\w\s]+\w")
MOST_ADDRESS = 200


@dataclass(frozen=True, slots=True)
class ShownDescription:
    """The first blocks of a description, and the rest, "" where there is none."""

    first: SafeString
    rest: SafeString


def render_description(text: str) -> ShownDescription:
    tokens = _markdown.parse(text[:MOST_MARKDOWN])
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = "h3" if token.tag == "h1" else "h4"
        if token.children:
            token.children = list(_add_addresses(token.children))
    blocks = [*_list_blocks(tokens), *_plain_blocks(text[MOST_MARKDOWN:])]
    count, letters = 0, 0
    while count < len(blocks) and letters < FIRST_LETTERS and letters + blocks[count].letters <= MOST_FIRST_LETTERS:
        letters += blocks[count].letters
        count += 1
    return ShownDescription(_join_blocks(blocks[:count]), _join_blocks(blocks[count:]))


@dataclass(frozen=True, slots=True)
class _Block:
    html: SafeString
    letters: int


def _join_blocks(blocks: Sequence[_Block]) -> SafeString:
    return SafeString("".join(block.html for block in blocks))


def _add_addresses(tokens: list[Token]) -> Iterator[Token]:
    """The same, with the address of each link behind its words, which may look like another one."""
    address, words = "", ""
    for token in tokens:
        yield token
        if token.type == "link_open":
            address, words = str(token.attrGet("href")), ""
            token.attrs = {"href": address, "rel": REL}
        elif token.type == "link_close" and words.strip() != address:
            yield Token("text", "", 0, content=f" ({_link_words(words, address)})")
        words += token.content


def _link_words(words: str, address: str) -> str:
    """Where a link leads: its host, and all of its address where its words look like one themselves."""
    looks_like_one = ADDRESS_LIKE.search(unicodedata.normalize("NFKC", words)) or not words.isprintable()
    shown = visible(address if looks_like_one else urlsplit(address).netloc)
    return shown if len(shown) <= MOST_ADDRESS else f"{shown[: MOST_ADDRESS - 1]}…"


def _list_blocks(tokens: list[Token]) -> Iterator[_Block]:
    """Each paragraph, heading, list and so on that stands in no other."""
    start = 0
    for at, token in enumerate(tokens):
        if token.level == 0 and token.nesting <= 0:
            block = tokens[start : at + 1]
            html = _markdown.renderer.render(block, _markdown.options, {})
            yield _Block(SafeString(html), sum(len(one.content) for one in block))
            start = at + 1


def _plain_blocks(text: str) -> list[_Block]:
    if not text.strip():
        return []
    paragraphs = [paragraph.strip() for paragraph in text.split("\n\n") if paragraph.strip()]
    html = format_html_join("", '<p class="preserve">{}</p>', ((paragraph,) for paragraph in paragraphs))
    return [_Block(html, len(text))]


class _Parser(MarkdownIt):
    def validateLink(self, url: str) -> bool:  # noqa: N802 - the name that the library has for it
        """An address of the web that names no user: `good.example@` would pass for the host."""
        try:
            parts = urlsplit(url)
            return url.lower().startswith(SCHEMES) and bool(parts.hostname) and "@" not in parts.netloc
        except ValueError:
            return False


def _render_image(_renderer: Any, tokens: Sequence[Token], at: int, _options: Any, _env: Any) -> str:
    return escape(tokens[at].content)


def _render_code(_renderer: Any, tokens: Sequence[Token], at: int, _options: Any, _env: Any) -> str:
    return format_html('<pre class="code" tabindex="0">{}</pre>', tokens[at].content)


def _make_parser() -> MarkdownIt:
    made = _Parser("commonmark", {"html": False, "maxNesting": 20})
    made.add_render_rule("image", _render_image)
    made.add_render_rule("fence", _render_code)
    made.add_render_rule("code_block", _render_code)
    return made


_markdown = _make_parser()
