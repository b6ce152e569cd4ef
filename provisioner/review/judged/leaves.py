"""The smallest fields in which two states of an object differ, each with what was and what will be. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from provisioner.alignment import Aligner, is_same, order_of_kept
from provisioner.masking import is_credential
from provisioner.review.base.claims import Place
from provisioner.review.base.difference import HIDDEN, LAST_APPLIED, MASKS, MAX_DEPTH
from provisioner.review.judged.harmless import RULE as HARMLESS
from provisioner.values import JsonObject

Path = tuple[str | int, ...]


class NotSet(Enum):
    """Stands for a field that is not there: nothing that an object holds is the same."""

    ABSENT = "(absent)"


ABSENT = NotSet.ABSENT
# Last parts of a path: a map or a list that is there and holds nothing, and the order of the items of a list.
EMPTY, ORDER = "{}", "{order}"
_VALUES = ("data", "stringData")
_LAST_APPLIED = ("metadata", "annotations", LAST_APPLIED)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A field that changes. Items of its path are numbers, of what is removed in the state before.

    `name` is what its value goes by: the name of the variable, else its key; of two names the one of a credential.
    `is_harmless` is so by nature.
    """

    path: Path
    before: Any
    after: Any
    name: str = ""
    is_harmless: bool = False


def changed_leaves(
    before: JsonObject | None, after: JsonObject | None, root: Place | None = None, *, has_nulls: bool = False
) -> list[Leaf]:
    """Every leaf that was set, changed or removed; of a missing state all of the other. A Secret's values are masked.

    With the `root` of what is claimed, those that no rule judges, and those that are harmless by nature.

    Items of lists are held against each other by what names them. Where those that both hold stand in another order,
    that is a leaf too. A field that is set to null is one that is not there, unless the kind `has_nulls`: custom
    resources may.
    """
    old, new = (side if side is not None else {} for side in (before, after))
    found = list(_Walk(has_nulls).between(old, new, (), "", root or Place()))
    is_secret = any((side.get("apiVersion"), side.get("kind")) == ("v1", "Secret") for side in (old, new))
    for place, leaf in enumerate(found if is_secret else ()):
        if leaf.path[0] in _VALUES or leaf.path == _LAST_APPLIED:
            # Of a value only whether it is there and changes, in words that are no credential.
            was, is_now = (
                side if side is ABSENT or (isinstance(side, str) and side in MASKS) else HIDDEN
                for side in (leaf.before, leaf.after)
            )
            found[place] = replace(leaf, before=was, after="changed" if was == is_now else is_now, name="")
    return found


class _Walk:
    def __init__(self, has_nulls: bool) -> None:
        self._aligner, self._has_nulls = Aligner(), has_nulls

    def _at(self, side: Mapping[Any, Any], key: object) -> Any:
        value = side.get(key, ABSENT)
        return ABSENT if value is None and not self._has_nulls else value

    def between(self, old: Any, new: Any, path: Path, name: str, place: Place) -> Iterator[Leaf]:
        if _is_judged(place) or is_same(old, new):
            return
        is_deep = len(path) >= MAX_DEPTH
        if isinstance(old, Mapping) and isinstance(new, Mapping) and old and new and not is_deep:
            for key in sorted({**old, **new}, key=str):
                there, own = (*path, str(key)), _name(key, old, new)
                yield from self.between(self._at(old, key), self._at(new, key), there, own, place.at(str(key)))
        elif isinstance(old, list) and isinstance(new, list) and old and new and not is_deep:
            yield from self._items(old, new, path, name, place)
        elif not is_deep and (_holds(old) or _holds(new)):
            is_alike = isinstance(old, Mapping | list) and type(old) is type(new)
            if not is_alike or old:
                yield from self._side(old, path, name, place, is_old=True)
            if not is_alike or new:
                yield from self._side(new, path, name, place, is_old=False)
        else:
            yield Leaf(path, old, new, name, place.rule == HARMLESS)

    def _items(self, old: list[Any], new: list[Any], path: Path, name: str, place: Place) -> Iterator[Leaf]:
        pairs = self._aligner.pairs(old, new)
        for one, other in pairs:
            before, after = (old[one] if one >= 0 else ABSENT), (new[other] if other >= 0 else ABSENT)
            names = [_item_name(side, at, name) for side, at in ((new, other), (old, one)) if at >= 0]
            at = other if other >= 0 else one
            yield from self.between(before, after, (*path, at), _most_telling(names), place.at(at))
        there, order = place.at(ORDER), order_of_kept(old, new, pairs)
        if order is not None and not _is_judged(there):
            yield Leaf((*path, ORDER), *order, name, there.rule == HARMLESS)

    def _side(self, value: Any, path: Path, name: str, place: Place, *, is_old: bool) -> Iterator[Leaf]:
        """What one state alone holds there, all the way down."""
        if value is ABSENT or _is_judged(place):
            return
        if _holds(value) and len(path) < MAX_DEPTH:
            for key in range(len(value)) if isinstance(value, list) else sorted(value, key=str):
                own = _item_name(value, key, name) if isinstance(value, list) else _name(key, value)
                held = value[key] if isinstance(value, list) else self._at(value, key)
                step = key if isinstance(value, list) else str(key)
                yield from self._side(held, (*path, step), own, place.at(step), is_old=is_old)
            return
        is_empty = isinstance(value, Mapping | list)
        there = place.at(EMPTY) if is_empty else place
        if not _is_judged(there):
            before, after = (value, ABSENT) if is_old else (ABSENT, value)
            yield Leaf((*path, EMPTY) if is_empty else path, before, after, name, there.rule == HARMLESS)


def _is_judged(place: Place) -> bool:
    """What is harmless by nature is told as such, so it is none of these."""
    return place.rule not in ("", HARMLESS)


def _holds(value: Any) -> bool:
    return isinstance(value, Mapping | list) and bool(value)


def _name(key: object, *sides: Mapping[Any, Any]) -> str:
    names = [name for side in sides if key == "value" and isinstance(name := side.get("name"), str) and name]
    return _most_telling(names) if names else str(key)


def _most_telling(names: list[str]) -> str:
    return next(filter(is_credential, names), names[0])


def _item_name(listed: list[Any], at: int, name: str) -> str:
    """An argument that follows a flag is its value."""
    one, flag = listed[at], listed[at - 1] if at else None
    is_value = isinstance(one, str) and isinstance(flag, str) and flag.startswith("-") and not one.startswith("-")
    return str(flag).lstrip("-") if is_value and "=" not in str(flag) else name
