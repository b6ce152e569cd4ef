"""Numbers and lists in sentences: one object is, two objects are; a, b and 3 more."""

from __future__ import annotations

import re
from collections.abc import Sequence

# A backslash before it would make it the text `\u003c` itself.
_GO_ESCAPED = re.compile(r"(?<!\\)((?:\\\\)*)\\u00(3c|3e|26)")


def unescaped(words: str) -> str:
    """Words with `<`, `>` and `&` as they are, which Go's JSON writes as escapes in what an API server says."""
    return _GO_ESCAPED.sub(lambda found: found[1] + chr(int(found[2], 16)), words)


def first_line(text: str) -> str:
    """Without what introduces the next line: `no right` of `no right; this would allow it:` with the rule below."""
    line = text.partition("\n")[0].rstrip()
    return (line.rpartition("; ")[0] or line.removesuffix(":")) if line.endswith(":") else line


def introduced(heading: str, words: str) -> str:
    """`heading: words`, whatever punctuation the heading, which people write, ends with; `words` without a heading."""
    return f"{heading.rstrip(' .:;')}: {words}" if heading else words


def number(count: int, noun: str, plural: str = "") -> str:
    """`1 object`, `2 objects`, `1,204 objects`; `plural` where an s does not make it."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def verb(count: int, several: str, one: str = "") -> str:
    """The verb after a number: `are`, `have`, `do` and others for several, its form for one."""
    if count != 1:
        return several
    return one or {"are": "is", "have": "has"}.get(several) or f"{several}{'es' if several.endswith('o') else 's'}"


def some(names: Sequence[object], at_most: int = 3, *, total: int | None = None, noun: str = "") -> str:
    """The first of several names: `a, b, c and 2 more`, or `and 2 more fields` where `noun` is `fields`.

    `total` is how many there are where `names` does not hold them all.
    """
    more = and_more(_left(names, at_most, total), noun)
    return ", ".join(map(str, names[:at_most])) + (f" {more}" if more else "")


def some_phrases(phrases: Sequence[object], at_most: int = 3, *, total: int | None = None) -> str:
    """The same for phrases, which may have commas of their own: `get pods, nodes; list secrets; and 2 more`."""
    more = and_more(_left(phrases, at_most, total))
    return "; ".join([*map(str, phrases[:at_most]), *([more] if more else [])])


def and_more(left: int, noun: str = "") -> str:
    """How many are not named: `and 2 more`, `and 1 more field` where `noun` is `fields`; "" where none is left."""
    if left == 1 and " " not in noun:
        noun = noun.removesuffix("s")
    return f"and {left:,} more{f' {noun}' if noun else ''}" if left > 0 else ""


def _left(names: Sequence[object], at_most: int, total: int | None) -> int:
    return (len(names) if total is None else total) - at_most
