"""How a generated page is put together from lines of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

NOTE = "<!-- Written by `make docs` from {source}. Do not edit. -->"


def heading_of_page(title: str, source: str, *introduction: str) -> list[str]:
    """The first lines of a page; each of `introduction` is a paragraph."""
    lines = [NOTE.format(source=source), f"# {title}", ""]
    for paragraph in introduction:
        lines += [paragraph, ""]
    return lines


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table with an empty line after it. Cells may hold Markdown, but no line breaks."""
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    lines += [f"| {' | '.join(cell(each) for each in row)} |".replace("|  |", "| |") for row in rows]
    return [*lines, ""]


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def code(text: str) -> str:
    return f"`{text}`" if text else ""


def page(lines: Iterable[str]) -> str:
    """The text of a page: no trailing spaces, one line feed at the end."""
    return "\n".join(line.rstrip() for line in lines).rstrip("\n") + "\n"
