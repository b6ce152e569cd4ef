"""Two states of one object held against each other. Pure.

What the API server keeps for itself is left out, so that a difference means something to a person. Of a Secret's values
only leaves this module whether they are the same.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from provisioner.alignment import Aligner, order_of_kept
from provisioner.cluster.annotations import without_tracking
from provisioner.cluster.choices import as_sent, remove_choices
from provisioner.retention import SECRET
from provisioner.schema.fields import is_same
from provisioner.sentences import and_more
from provisioner.values import JsonObject, ObjectRef

_SERVER_METADATA = (
    "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields",
    "resourceVersion", "selfLink", "uid",
)  # fmt: skip
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_QUANTITY = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)(|n|u|m|k|[MGTPE]|[KMGTPE]i)")
_SUFFIXES = {"": Decimal(1), "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "k": Decimal(1000)}
_SUFFIXES |= {letter: Decimal(1000) ** power for power, letter in enumerate("MGTPE", 2)}
_SUFFIXES |= {f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", 1)}

MISSING = "(absent)"
SHOWN_CHARACTERS = 200
MAX_TOLD = 10
ALTERED = (
    "altered by admission: the API server stored something else than was approved. A mutating webhook, an admission "
    "policy or an admission plugin can have done it: have it leave the object alone, or request the values that it sets"
)
_LARGE = 1024


@dataclass(frozen=True, slots=True, order=True)
class Altered:
    """A field that is otherwise than was approved, with both values cut short, "" for none; of a Secret neither."""

    path: str
    approved: str = ""
    stored: str = ""

    @property
    def words(self) -> str:
        if not self.approved and not self.stored:
            return self.path
        return f"{self.path} was approved as {self.approved or 'absent'} and is {self.stored or 'absent'}"


def altered_words(found: Iterable[Altered]) -> str:
    """What was altered, for who may see the object (S27)."""
    told = sorted(set(found))
    return "; ".join(
        filter(None, [*(difference.words for difference in told[:MAX_TOLD]), and_more(len(told) - MAX_TOLD, "fields")])
    )


def cleaned(obj: JsonObject) -> dict[str, Any]:
    """A copy without status, server-kept metadata and our tracking. Holds a Secret's values still: see `masked`."""
    copied: dict[str, Any] = {}
    for key, value in obj.items():
        if key == "metadata":
            # Left out before it is copied: the managed fields alone are often more than the rest of an object.
            kept = {name: inner for name, inner in (value or {}).items() if name not in _SERVER_METADATA}
            copied[key] = without_tracking(_copied(kept))
        elif key != "status":
            copied[key] = _copied(value)
    copied.setdefault("metadata", {})
    return copied


def _copied(value: Any) -> Any:
    """As copy.deepcopy for what JSON has, and faster: most values are leaves."""
    if isinstance(value, dict):  # before Mapping, which costs ten times as much to ask for
        return {key: inner if type(inner) is str else _copied(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_copied(inner) for inner in value]
    return {key: _copied(inner) for key, inner in value.items()} if isinstance(value, Mapping) else value


def share_texts(copied: dict[str, Any], known: JsonObject, depth: int = 3) -> None:
    """Put the large texts of `known` in the place of equal ones in `copied`, near the root, where ConfigMaps have them.

    A plan then holds no copy of what the content holds already.
    """
    for key, value in known.items():
        own = copied.get(key)
        if isinstance(value, str):
            if len(value) >= _LARGE and own == value:
                copied[key] = value
        elif depth > 1 and isinstance(value, dict) and isinstance(own, dict):
            share_texts(own, value, depth - 1)


def masked(before: JsonObject | None, after: JsonObject | None) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Both states for people's eyes: cleaned, and of a Secret's values only whether each changes.

    Only for Secrets of our own: of someone else's not even equality may be told (S09); use `hidden`.
    """
    first, second = (cleaned(state) if state is not None else None for state in (before, after))
    if not _is_secret(before or after or {}):
        return first, second
    old, new = _secret_values(first or {}), _secret_values(second or {})
    same = {key for key in old.keys() & new.keys() if is_same(old[key], new[key])}
    words = {key: "unchanged" if key in same else "changed" if key in old else "added" for key in new}
    return (
        _with_words(first, {key: "unchanged" if key in same else "hidden" for key in old}),
        _with_words(second, words),
    )


def hidden(obj: JsonObject) -> dict[str, Any]:
    """One state for people's eyes, a Secret's values replaced by "hidden"."""
    shown = cleaned(obj)
    if not _is_secret(obj):
        return shown
    return _with_words(shown, dict.fromkeys(_secret_values(shown), "hidden")) or {}


def changes(before: JsonObject | None, after: JsonObject | None) -> dict[tuple[str, ...], Any]:
    """What differs: the new value by path, MISSING for what goes. Lists are compared whole."""
    old, new = _leaves(before or {}), _leaves(after or {})
    changed = {path: value for path, value in new.items() if path not in old or not is_same(old[path], value)}
    return changed | {path: MISSING for path in old if path not in new}


def altered(expected: JsonObject, found: JsonObject, wished: JsonObject) -> list[Altered]:
    """Where an answer is not what was expected, beside what the server chooses freely (S10)."""
    first, second = (_comparable(obj, wished) for obj in (expected, found))
    wrong = [] if is_same(first, second) else list(_differences(first, second, ""))
    if not _is_secret(wished):
        return sorted(wrong)
    live = found.get("data") or {}
    paths = {f"data.{key}" for key, value in _secret_values(wished).items() if live.get(key) != value}
    return [Altered(path) for path in sorted(paths | {difference.path for difference in wrong})]


def lost(wished: JsonObject, found: JsonObject) -> list[Altered]:
    """Where the content sets what the answer has not, or has with another value.

    Quantities are compared as numbers, because the server writes them its own way; so are 1 and "1".
    """
    shown = {key: value for key, value in as_sent(wished).items() if key not in {"stringData", "status"}}
    if not _is_secret(wished):
        return sorted(_lost(shown, found, ""))
    wrong = _lost({**shown, "data": _secret_values(wished)}, found, "")
    return [Altered(path) for path in sorted({difference.path for difference in wrong})]


def shown_value(value: object) -> str:
    """A value for people, cut short; "" for nothing."""
    if value is None:
        return ""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


def version_of(obj: JsonObject) -> str:
    return str((obj.get("metadata") or {}).get("resourceVersion") or "")


def owner_words(obj: JsonObject) -> str:
    """Who seems to own an object that is not ours; hints for people, never proof (S20)."""
    meta = obj.get("metadata") or {}
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    words = [f"owned by {owner.get('kind')} {owner.get('name')}" for owner in meta.get("ownerReferences") or []]
    if release := annotations.get("meta.helm.sh/release-name"):
        words.append(f"of the Helm release {release}")
    elif tool := labels.get("app.kubernetes.io/managed-by"):
        words.append(f"managed by {tool}")
    managers = sorted({str(entry.get("manager")) for entry in meta.get("managedFields") or [] if entry.get("manager")})
    if managers:
        words.append(f"written by {', '.join(managers[:5])}")
    return "; ".join(words)


def _is_secret(obj: JsonObject) -> bool:
    return ObjectRef.of(obj).group_kind == SECRET


def _secret_values(secret: JsonObject) -> dict[str, str]:
    """A Secret's values in the stored form, `stringData` laid over `data` as the server does.

    What is no map there holds no values that anybody could read; the API server refuses it.
    """
    data, plain = secret.get("data") or {}, secret.get("stringData") or {}
    written = {str(key): str(value) for key, value in data.items()} if isinstance(data, Mapping) else {}
    plain = plain if isinstance(plain, Mapping) else {}
    return written | {str(key): b64encode(str(value).encode()).decode() for key, value in plain.items()}


def _with_words(secret: dict[str, Any] | None, words: Mapping[str, str]) -> dict[str, Any] | None:
    if secret is None:
        return None
    shown = {key: value for key, value in secret.items() if key not in {"data", "stringData"}}
    annotations = shown["metadata"].get("annotations") or {}
    if _LAST_APPLIED in annotations:
        shown["metadata"]["annotations"] = {**annotations, _LAST_APPLIED: "hidden"}
    return shown | {"data": dict(sorted(words.items()))} if words else shown


def _leaves(value: JsonObject, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    found: dict[tuple[str, ...], Any] = {}
    for key, inner in value.items():
        if isinstance(inner, Mapping) and inner:
            found |= _leaves(inner, (*path, str(key)))
        else:
            found[(*path, str(key))] = inner
    return found


def _comparable(obj: JsonObject, wished: JsonObject) -> dict[str, Any]:
    shown = cleaned(obj)
    if _is_secret(obj):
        shown = _with_words(shown, dict.fromkeys(_secret_values(shown), "hidden")) or {}
    remove_choices(shown, wished)
    return shown


def _differences(expected: object, found: object, path: str) -> Iterator[Altered]:
    """Each difference as deep as it lies; lists of other lengths are told whole."""
    if is_same(expected, found):
        return
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        for key in sorted({*expected, *found}):
            yield from _differences(expected.get(key), found.get(key), f"{path}.{key}".lstrip("."))
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for index, (wish, other) in enumerate(zip(expected, found, strict=True)):
            yield from _differences(wish, other, f"{path}[{index}]")
    else:
        yield Altered(path, shown_value(expected), shown_value(found))


def _lost(wished: object, found: object, path: str) -> list[Altered]:
    if wished is None or wished in ({}, [], ""):
        return []
    if isinstance(wished, Mapping) and isinstance(found, Mapping):
        missing: list[Altered] = []
        for key, value in wished.items():
            missing += _lost(value, found.get(key), f"{path}.{key}".lstrip("."))
        return missing
    if isinstance(wished, list) and isinstance(found, list):
        return _lost_items(wished, found, path)
    is_met = not isinstance(wished, Mapping | list) and _is_same(wished, found)
    return [] if is_met else [Altered(path, shown_value(wished), shown_value(found))]


def _lost_items(wished: list[Any], found: list[Any], path: str) -> list[Altered]:
    """Each wished item is held against the one that stands for it. Others may stand between; of as many, the order
    counts, and of another number, an item that any of them meets is not lost."""
    pairs = Aligner().pairs(wished, found)
    missing = []
    if len(found) == len(wished) and (order := order_of_kept(wished, found, pairs)):
        missing.append(Altered(f"{path} (order)", *map(shown_value, order)))
    for at, there in pairs:
        if at < 0 or (len(found) != len(wished) and any(not _lost(wished[at], other, "") for other in found)):
            continue
        place = f"{path}[{at}]"
        missing += _lost(wished[at], found[there], place) if there >= 0 else [Altered(place, shown_value(wished[at]))]
    return missing


def _is_same(wished: object, found: object) -> bool:
    if wished == found and isinstance(wished, bool) == isinstance(found, bool):
        return True
    if isinstance(wished, bool) or isinstance(found, bool) or wished is None or found is None:
        # What Go leaves out when it is the zero value: false, 0.
        return found is None and wished in (False, 0)
    first, second = _number(wished), _number(found)
    return first is not None and first == second


def _number(value: object) -> Decimal | None:
    match = _QUANTITY.fullmatch(str(value))
    if not match:
        return None
    try:
        return Decimal(match.group(1)) * _SUFFIXES[match.group(2)]
    except ArithmeticError:  # also a number too large for Decimal
        return None
