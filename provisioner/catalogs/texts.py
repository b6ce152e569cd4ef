"""Texts of publishers, cut to what is kept of them. PURE."""

from __future__ import annotations

MAX_LINE = 253


def cut(value: object, most: int) -> str:
    """A text of at most this many characters, without the NUL that no database keeps; "" where it is no text."""
    text = value.replace("\0", "\ufffd") if isinstance(value, str) else ""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def line_of(value: object, most: int = MAX_LINE) -> str:
    """The same on one line."""
    return cut(" ".join(value[: most * 4].split()) if isinstance(value, str) else "", most)
