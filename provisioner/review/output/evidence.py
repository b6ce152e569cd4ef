"""A finding's evidence as facts that people read: words, lines and tables."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.review.base.record import plain
from provisioner.review.output.terminal import path_text

# Drawn as capability by reach, not told as evidence.
_DRAWN = "table"
_FIRST_COLUMNS = ("path", "scope", "verbs", "apiGroups", "resources", "resourceNames", "before", "after")
_MAX_SHORT = 80
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Fact:
    """One piece of evidence for people: a table where `columns` are named, else `text` of one line or of several."""

    name: str
    text: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


def facts_of(evidence: Mapping[str, Any]) -> list[Fact]:
    """A finding's evidence as facts, by name, without those that say nothing."""
    told = {name: value for name, value in evidence.items() if name != _DRAWN}
    return [_fact(name, plain(value)) for name, value in sorted(told.items()) if not _is_empty(name, value)]


def _is_empty(name: str, value: object) -> bool:
    """A scope of "" is the whole cluster, and null can be a counterexample: both say something."""
    if name == "left_out" and value == 0:
        return True
    return name not in ("counterexample", "scope") and (value is None or value in ("", [], {}, ()))


def _fact(name: str, value: Any) -> Fact:
    words = _words(name)
    if name == "counterexample":
        return Fact(words, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False))
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        columns = _columns(value)
        rows = (tuple(_cell(column, one.get(column, "")) for column in columns) for one in value)
        return Fact(words, columns=tuple(map(_words, columns)), rows=tuple(rows))
    if isinstance(value, dict):
        return Fact(words, "\n".join(f"{key}: {_cell(key, one)}" for key, one in sorted(value.items())))
    return Fact(words, _cell(name, value))


def _columns(rows: list[dict[str, Any]]) -> list[str]:
    used = {name for row in rows for name, value in row.items() if not _is_empty(name, value)}
    return [name for name in _FIRST_COLUMNS if name in used] + sorted(used - set(_FIRST_COLUMNS))


def _cell(name: str, value: Any) -> str:
    if name in ("path", "paths", "places"):
        return _places(value)
    if name == "scope":
        return str(value) or "whole cluster"
    if name == "apiGroups" and isinstance(value, list):
        return ", ".join(str(one) or "core" for one in value)
    if isinstance(value, list) and not any(isinstance(one, dict | list) for one in value):
        shown = [one if isinstance(one, str) else json.dumps(one) for one in value]
        return ("\n" if sum(map(len, shown)) > _MAX_SHORT else ", ").join(shown)
    if isinstance(value, dict | list):
        parts = value if isinstance(value, list) else [value] if value else []
        return "\n".join(json.dumps(one, sort_keys=True, ensure_ascii=False) for one in parts)
    return value if isinstance(value, str) else json.dumps(value)


def _places(value: Any) -> str:
    """One path, or several in lines; a path is text already, or a list of its keys and indexes."""
    if not isinstance(value, list):
        return str(value)
    if any(isinstance(one, list) for one in value):
        return "\n".join(_places(one) for one in value)
    return path_text(tuple(one if isinstance(one, int) else str(one) for one in value))


def _words(name: str) -> str:
    return _CAMEL.sub(" ", name).replace("_", " ").lower()
