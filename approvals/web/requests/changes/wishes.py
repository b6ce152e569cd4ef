"""What the address of the page of changes asks for. A word that means nothing asks for nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import urlencode

from django.http import QueryDict

from approvals.web.requests.changes.folding import Span

MAX_SEARCHED = 200
MAX_OPENED = 40
VIEWS = ("unified", "split")
_SPAN = re.compile(r"([0-9]{1,7})-([0-9]{1,7})")
_LINE = re.compile(r"([LR])([1-9][0-9]{0,6})")
# An anchor of a line: the side it is on and its number there.
Line = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Filter:
    """Which objects of a plan to list; what is "" or False leaves none out."""

    search: str = ""
    kind: str = ""
    action: str = ""
    is_unviewed: bool = False

    def __bool__(self) -> bool:
        return bool(self.search or self.kind or self.action or self.is_unviewed)


@dataclass(frozen=True, slots=True)
class Wish:
    """`around` is the line of an anchor, which is shown with what surrounds it, `full` one whose end is shown too."""

    filter: Filter = field(default_factory=Filter)
    view: str = VIEWS[0]
    is_whole: bool = False
    opened: tuple[Span, ...] = ()
    around: Line | None = None
    full: Line | None = None
    page: str = ""

    @property
    def is_split(self) -> bool:
        return self.view == "split"

    @property
    def query(self) -> str:
        """What links from one object to another keep: the filter and the view."""
        wish = self.filter
        said = {
            "search": wish.search,
            "kind": wish.kind,
            "action": wish.action,
            "unviewed": "yes" if wish.is_unviewed else "",
            "view": self.view if self.is_split else "",
        }
        return urlencode({name: value for name, value in said.items() if value})

    @property
    def opens(self) -> str:
        """What a link that opens more adds to the address, so that what is open stays open."""
        return "".join(f"&open={first}-{last}" for first, last in self.opened)


def wish_of(asked: QueryDict) -> Wish:
    view = asked.get("view", "")
    return Wish(
        filter=Filter(
            search=asked.get("search", "").strip()[:MAX_SEARCHED],
            kind=asked.get("kind", "")[:MAX_SEARCHED],
            action=asked.get("action", "")[:MAX_SEARCHED],
            is_unviewed=asked.get("unviewed") == "yes",
        ),
        view=view if view in VIEWS else VIEWS[0],
        is_whole=asked.get("lines") == "all",
        opened=tuple(found for one in asked.getlist("open")[:MAX_OPENED] if (found := span_of(one))),
        around=_line(asked.get("at", "")),
        full=_line(asked.get("full", "")),
        page=asked.get("page", ""),
    )


def span_of(text: str) -> Span | None:
    found = _SPAN.fullmatch(text)
    return (int(found[1]), int(found[2])) if found else None


def _line(text: str) -> Line | None:
    found = _LINE.fullmatch(text)
    return (found[1], int(found[2])) if found else None
