"""docs/decisions/README.md: every decision by number, from the headings of the pages that hold them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from docs.generators import markdown

FOLDER = Path(__file__).resolve().parents[1] / "decisions"
HEADING = re.compile(r"^#{1,2} (\d{4}) (.+)$", re.MULTILINE)
PARTS = ("Context.", "Decision.", "Consequence.")


@dataclass(frozen=True, slots=True)
class Record:
    """`file` is relative to FOLDER; `text` is what stands below the heading."""

    number: str
    title: str
    file: str
    subject: str
    text: str

    @property
    def anchor(self) -> str:
        kept = re.sub(r"[^\w\- ]", "", f"{self.number} {self.title}".lower())
        return kept.replace(" ", "-")


def page() -> str:
    lines = markdown.heading_of_page(
        "Decisions",
        "the pages in docs/decisions",
        "Each record says what was asked, what was decided, and what follows from it. Records are short, and "
        "grouped by "
        "subject. A decision that no longer holds keeps its number and names the one that replaces it.",
        "To add a record, take the next number, write it into the page of its subject with the same three "
        "parts, and run "
        "`make docs`.",
    )
    found = sorted(records(), key=lambda it: it.number)
    rows = ((it.number, f"[{it.title}]({it.file}#{it.anchor})", it.subject) for it in found)
    return markdown.page([*lines, *markdown.table(("number", "decision", "subject"), rows)])


def records() -> Iterator[Record]:
    for file in sorted(FOLDER.glob("*.md")):
        if file.name == "README.md":
            continue
        text = file.read_text("utf-8")
        subject = text.split("\n", 1)[0].lstrip("# ")
        found = list(HEADING.finditer(text))
        for one, following in zip(found, [*found[1:], None][: len(found)], strict=True):
            body = text[one.end() : following.start() if following else None]
            yield Record(one[1], one[2], file.name, "Running it" if one.start() == 0 else subject, body.strip())
