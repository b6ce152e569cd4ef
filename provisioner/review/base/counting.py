"""Numbers in sentences: one object is, two objects are."""

from __future__ import annotations

from collections.abc import Sequence


def number(count: int, noun: str, plural: str = "") -> str:
    """`1 object`, `2 objects`, `1,204 objects`; `plural` where an s does not make it."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def verb(count: int, several: str, one: str = "") -> str:
    """The verb after a number: `are`, `have`, `do` and others for several, its form for one."""
    if count != 1:
        return several
    return one or {"are": "is", "have": "has"}.get(several) or f"{several}{'es' if several.endswith('o') else 's'}"


def some(names: Sequence[str], at_most: int = 3) -> str:
    """The first of several names: `a, b, c and 2 more`."""
    left = len(names) - at_most
    return ", ".join(names[:at_most]) + (f" and {left:,} more" if left > 0 else "")
