"""Words that would do harm if an output let them, and what of a page is markup."""

from __future__ import annotations

from html.parser import HTMLParser

HOSTILE = "</pre><script>alert(1)</script>\x1b[2J\u202e\u200b<img src=x onerror=y>"


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
