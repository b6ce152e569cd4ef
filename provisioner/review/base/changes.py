"""Which fields of an object change, as paths with short values. Items of lists are compared with what they were."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.alignment import Aligner, is_same, order_of_kept
from provisioner.review.base.difference import mask_secret
from provisioner.values import JsonObject

MAX_VALUE_CHARACTERS = 200
ABSENT = "(absent)"

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field: `before` and `after` are JSON-ready and short; ABSENT where there is none."""

    path: Path
    before: Any
    after: Any


def changed_paths(before: JsonObject | None, after: JsonObject | None) -> list[FieldChange]:
    """The smallest fields that differ, in the order of their paths. A Secret's values are never among them.

    The number of an item is that of the state after, of one that has gone that of the state before. A list whose items
    only stand in another order is a field itself, with the names of its items.
    """
    found = _between(mask_secret(before or {}), mask_secret(after or {}), (), Aligner())
    return [FieldChange(path, _short(old), _short(new)) for path, old, new in found]


def _between(old: object, new: object, path: Path, aligner: Aligner) -> Iterator[tuple[Path, object, object]]:
    if is_same(old, new):
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({**old, **new}, key=str):
            yield from _between(old.get(key, ABSENT), new.get(key, ABSENT), (*path, str(key)), aligner)
    elif isinstance(old, list) and isinstance(new, list) and old and new:
        pairs = aligner.pairs(old, new)
        if order := order_of_kept(old, new, pairs):
            yield path, *order
        for at, there in pairs:
            one, other = old[at] if at >= 0 else ABSENT, new[there] if there >= 0 else ABSENT
            yield from _between(one, other, (*path, there if there >= 0 else at), aligner)
    else:
        yield path, old, new


def _short(value: object) -> Any:
    """`value` itself if it is short, else the beginning of its JSON."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    if len(text) <= MAX_VALUE_CHARACTERS:
        return value
    return f"{text[:MAX_VALUE_CHARACTERS]}… ({len(text)} characters)"
