"""Two states of an object as lines, side by side with what surrounds a change. Pure; stable for the same objects.

The trees are compared, not their texts: a moved key is no change, list items are matched by name, and a CRD of ten
thousand lines costs no more than walking it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from provisioner.review.base.facts import mapping
from provisioner.review.base.text import visible
from provisioner.values import JsonObject

CONTEXT = 3
# Past this many lines or items two lists are held against each other from both ends only.
MAX_ALIGNED = 2000
HIDDEN = "hidden"

_FIRST_KEYS = ("apiVersion", "kind", "metadata", "name")
_NAMING_KEYS = ("name", "containerPort", "port", "mountPath", "key", "type")
_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./@%+-]*(?::[A-Za-z0-9_./@%+-]+)*")
_WORDS_OF_YAML = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True, slots=True)
class DiffLine:
    """`kind` is "+", "-", " " or, for a place where lines are left out, "@" with the path in `text`."""

    kind: str
    text: str


def diff_lines(before: JsonObject | None, after: JsonObject | None, *, context: int = CONTEXT) -> list[DiffLine]:
    """The lines that differ between two states, with `context` lines around them; all lines where one is missing.

    The text is safe to show (`visible`). Secrets are masked here once more, whatever the caller did before.
    """
    old, new = (mask_secret(one) if one is not None else None for one in (before, after))
    lines = list(_diff(old, new))
    shown = _folded(lines, context) if old is not None and new is not None else lines
    return [DiffLine(one.kind, visible(one.text)) for one in shown]


def mask_secret(obj: JsonObject) -> JsonObject:
    """`obj`, its values replaced by words if it is a Secret: those that a plan has written there stay."""
    if obj.get("kind") != "Secret" or obj.get("apiVersion") != "v1":
        return obj
    shown = {key: _masked(value) if key in {"data", "stringData"} else value for key, value in obj.items()}
    meta = mapping(obj.get("metadata"))
    annotations = mapping(meta.get("annotations"))
    if _LAST_APPLIED in annotations:
        shown["metadata"] = {**meta, "annotations": {**annotations, _LAST_APPLIED: HIDDEN}}
    return shown


def _masked(values: object) -> object:
    words = {"hidden", "changed", "unchanged", "added"}
    if not isinstance(values, Mapping):
        return HIDDEN
    return {key: value if isinstance(value, str) and value in words else HIDDEN for key, value in values.items()}


def _diff(old: object, new: object, indent: str = "") -> Iterator[DiffLine]:
    """Lines for two values that stand at the same place, without the key before them."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        yield from _maps(old, new, indent)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _lists(old, new, indent)
    else:
        yield from (DiffLine("-", line) for line in _lines(old, indent))
        yield from (DiffLine("+", line) for line in _lines(new, indent))


def _maps(old: Mapping[str, Any], new: Mapping[str, Any], indent: str) -> Iterator[DiffLine]:
    for key in sorted({**old, **new}, key=_place):
        if key not in new:
            yield from _marked("-", _entry(key, old[key], indent))
        elif key not in old:
            yield from _marked("+", _entry(key, new[key], indent))
        elif _is_same(old[key], new[key]):
            yield from _marked(" ", _entry(key, old[key], indent))
        else:
            yield from _changed(key, old[key], new[key], indent)


def _changed(key: str, old: object, new: object, indent: str) -> Iterator[DiffLine]:
    head = f"{indent}{_key(key)}:"
    if (isinstance(old, Mapping) and isinstance(new, Mapping)) or (isinstance(old, list) and isinstance(new, list)):
        yield DiffLine(" ", head)
        yield from _diff(old, new, indent + "  ")
    elif _is_text(old) and _is_text(new):
        yield DiffLine(" ", f"{head} |")
        yield from _texts(str(old).split("\n"), str(new).split("\n"), indent + "  ")
    else:
        yield from _marked("-", _entry(key, old, indent))
        yield from _marked("+", _entry(key, new, indent))


def _lists(old: list[Any], new: list[Any], indent: str) -> Iterator[DiffLine]:
    for pair in _aligned(old, new):
        if pair.kind == " " and _is_same(*pair.items):
            yield from _marked(" ", _item(pair.items[0], indent))
        elif pair.kind == " ":
            inner = list(_diff(pair.items[0], pair.items[1], indent + "  "))
            first = inner[0] if inner else DiffLine(" ", indent)
            yield DiffLine(first.kind, f"{indent}- {first.text[len(indent) + 2 :]}")
            yield from inner[1:]
        else:
            yield from _marked(pair.kind, _item(pair.items[0], indent))


@dataclass(frozen=True, slots=True)
class _Pair:
    """Items that stand for each other; a lone one has gone ("-") or come ("+")."""

    kind: str
    items: tuple[Any, ...]


def _aligned(old: list[Any], new: list[Any]) -> Iterator[_Pair]:
    """Both lists in one order: matched by what names their items, else by equal runs."""
    name = next((key for key in _NAMING_KEYS if _names(old, key) and _names(new, key)), None)
    if name is not None:
        by_name = {str(item[name]): item for item in old}
        names = {str(item[name]) for item in new}
        yield from (_Pair("-", (item,)) for item in old if str(item[name]) not in names)
        for item in new:
            known = by_name.get(str(item[name]))
            yield _Pair(" ", (known, item)) if known is not None else _Pair("+", (item,))
        return
    for tag, first, last, start, end in _opcodes([_canonical(one) for one in old], [_canonical(one) for one in new]):
        if tag == "replace" and last - first == end - start:
            yield from (_Pair(" ", pair) for pair in zip(old[first:last], new[start:end], strict=True))
        elif tag == "equal":
            yield from (_Pair(" ", (item, item)) for item in old[first:last])
        else:
            yield from (_Pair("-", (item,)) for item in old[first:last])
            yield from (_Pair("+", (item,)) for item in new[start:end])


def _names(items: list[Any], key: str) -> bool:
    values = [str(one[key]) for one in items if isinstance(one, Mapping) and isinstance(one.get(key), str | int)]
    return len(values) == len(items) and len(set(values)) == len(values)


def _texts(old: list[str], new: list[str], indent: str) -> Iterator[DiffLine]:
    for tag, first, last, start, end in _opcodes(old, new):
        if tag == "equal":
            yield from (DiffLine(" ", indent + line) for line in old[first:last])
            continue
        yield from (DiffLine("-", indent + line) for line in old[first:last])
        yield from (DiffLine("+", indent + line) for line in new[start:end])


def _opcodes(old: list[str], new: list[str]) -> list[tuple[str, int, int, int, int]]:
    if len(old) + len(new) <= MAX_ALIGNED:
        return list(SequenceMatcher(None, old, new, autojunk=False).get_opcodes())
    shorter = min(len(old), len(new))
    head = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    tail = next((at for at in range(shorter - head) if old[-1 - at] != new[-1 - at]), shorter - head)
    middle = ("replace", head, len(old) - tail, head, len(new) - tail)
    return [
        ("equal", 0, head, 0, head),
        middle,
        ("equal", len(old) - tail, len(old), len(new) - tail, len(new)),
    ]


def _lines(value: object, indent: str) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for key in sorted(value, key=_place):
            yield from _entry(key, value[key], indent)
    elif isinstance(value, list) and value:
        for one in value:
            yield from _item(one, indent)
    elif value is not None:
        yield f"{indent}{_scalar(value)}"


def _entry(key: str, value: object, indent: str) -> Iterator[str]:
    if isinstance(value, Mapping | list) and value:
        yield f"{indent}{_key(key)}:"
        yield from _lines(value, indent + "  ")
    elif _is_text(value):
        yield f"{indent}{_key(key)}: |"
        yield from (f"{indent}  {line}" for line in str(value).split("\n"))
    else:
        yield f"{indent}{_key(key)}: {_scalar(value)}"


def _item(value: object, indent: str) -> Iterator[str]:
    lines = list(_lines(value, indent + "  ")) or [f"{indent}  {_scalar(value)}"]
    yield f"{indent}- {lines[0][len(indent) + 2 :]}"
    yield from lines[1:]


def _scalar(value: object) -> str:
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, default=str)
    is_plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS_OF_YAML
    return value if is_plain else json.dumps(value, ensure_ascii=False)


def _key(key: object) -> str:
    return _scalar(key)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and "\n" in value


def _is_same(old: object, new: object) -> bool:
    return old is new or _canonical(old) == _canonical(new)


def _canonical(value: object) -> str:
    """1, 1.0 and true are three values here; to Python they are one."""
    return json.dumps(value, sort_keys=True, default=str)


def _place(key: object) -> tuple[int, str]:
    word = str(key)
    return (_FIRST_KEYS.index(word) if word in _FIRST_KEYS else len(_FIRST_KEYS), word)


def _marked(kind: str, lines: Iterable[str]) -> Iterator[DiffLine]:
    return (DiffLine(kind, line) for line in lines)


def _folded(lines: list[DiffLine], context: int) -> list[DiffLine]:
    """Only what is near a change; each gap is one "@" line that names where the next lines stand."""
    near: set[int] = set()
    for at, line in enumerate(lines):
        if line.kind != " ":
            near.update(range(max(0, at - context), min(len(lines), at + context + 1)))
    shown: list[DiffLine] = []
    above: list[tuple[int, str]] = []
    last = -1
    for at, line in enumerate(lines):
        depth = len(line.text) - len(line.text.lstrip(" "))
        while above and above[-1][0] >= depth:
            above.pop()
        if at in near:
            if at > last + 1:
                shown.append(DiffLine("@", ".".join(key for _, key in above)))
            shown.append(line)
            last = at
        above.append((depth, line.text.strip().removeprefix("- ").split(":", 1)[0]))
    if shown and last < len(lines) - 1:
        shown.append(DiffLine("@", ""))
    return shown
