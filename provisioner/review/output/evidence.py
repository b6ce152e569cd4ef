"""A finding's evidence as facts that people read: words, lines and tables."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.api_groups import RBAC_GROUP
from provisioner.escaping import without_nil
from provisioner.review.base.causes import SAID_WITH
from provisioner.review.base.messages import DIFFERING, PLACES, path_text, phrase_names
from provisioner.review.base.record import plain

# Drawn as capability by reach, or said in the sentence or with the rule: not told as evidence.
_ELSEWHERE = frozenset({"table", "advice", "power", "variant", "more", "first", "dnsName", "stated"})
_FIRST_COLUMNS = (
    "path",
    "scope",
    "verbs",
    "apiGroups",
    "resources",
    "resourceNames",
    "before",
    "after",
    "binding",
    "role",
    "rule",
)
# What a check calls a fact, in words. What is not here is told by its own name.
_NAMES = {
    "added": "rights gained",
    "apiGroups": "API groups",
    "below": "fields below it",
    "by": "granted by",
    "check": "Pod Security check",
    "checked": "objects checked",
    "count": "how many",
    "counts": "objects in the cluster",
    "counterexample": "example",
    "enforced": "level that the namespace enforces",
    "examples": "objects concerned",
    "followedBy": "objects that use the new name",
    "items": "found",
    "keys": "keys",
    "left_out": "not listed",
    "level": "Pod Security level",
    "listedIn": "looked at in version",
    "needs": "level that the pods need",
    "new": "after",
    "newest": "newest object",
    "notCounted": "not counted",
    "old": "before",
    "own": "own workloads",
    "places": "fields",
    "pruned": "fields dropped",
    "readAs": "read as version",
    "rejectsNextWrite": "refused with the next write",
    "rejectsWhenEdited": "refused once that part is edited",
    "removed": "rights lost",
    "resourceNames": "names",
    "said_with": "also found",
    "scope": "where",
    "seen": "objects in the cluster",
    "seesSystem": "covers kube-system",
    "stillNamedBy": "objects that still use the old name",
    "subject": "account",
    "valid": "stay valid",
    "yamlOrJson": "of these YAML or JSON",
}
# A zero of these says nothing.
_COUNTS = frozenset({"below", "left_out", "rejectsNextWrite", "rejectsWhenEdited", "yamlOrJson"})
_MAX_SHORT = 80
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class EvidenceFact:
    """One piece of evidence for people: a table where `columns` are named, else `text` of one line or of several."""

    name: str
    text: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


def facts_of(evidence: Mapping[str, Any], rule: str = "") -> list[EvidenceFact]:
    """A finding's evidence as facts, by name, without those that say nothing: empty ones, and names of phrases that the
    sentences of its `rule` have."""
    told = {name: value for name, value in evidence.items() if name not in _ELSEWHERE | phrase_names(rule)}
    return [_fact(name, plain(value)) for name, value in sorted(told.items()) if not _is_empty(name, value)]


def without_listed_places(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Evidence without the places that a page lists by itself, unless one of them has evidence of its own."""
    places = evidence.get(PLACES) or ()
    if not places or any(DIFFERING in place for place in places):
        return dict(evidence)
    return {name: value for name, value in evidence.items() if name not in (PLACES, "objects")}


def _is_empty(name: str, value: object) -> bool:
    """A scope of "" is the whole cluster, and null can be a counterexample: both say something."""
    if name in _COUNTS and value == 0:
        return True
    return name not in ("counterexample", "scope") and (value is None or value in ("", [], {}, ()))


def _fact(name: str, value: Any) -> EvidenceFact:
    words = _label_of(name)
    if name == "counterexample":
        return EvidenceFact(words, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False))
    if name == SAID_WITH:
        lines = []
        for rule, kept in sorted(value.items()):
            lines += [f"{rule}: {finding['message']}" for finding in (kept if isinstance(kept, list) else [kept])]
        return EvidenceFact(words, "\n".join(lines))
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        rows = [_way(row) if name == "by" and "binding" in row else row for row in value]
        used = {column for row in rows for column, cell in row.items() if not _is_empty(column, cell)} - {"variant"}
        columns = [column for column in _FIRST_COLUMNS if column in used] + sorted(used - set(_FIRST_COLUMNS))
        cells = tuple(tuple(_cell(column, row.get(column, "")) for column in columns) for row in rows)
        return EvidenceFact(words, columns=tuple(map(_label_of, columns)), rows=cells)
    if isinstance(value, dict):
        # A key of ours stands in words; one that names a kind, a label or a field stays as it is written.
        keys = {key: _label_of(key) if name == "seen" else key for key in sorted(value)}
        return EvidenceFact(words, "\n".join(f"{told}: {_cell(key, value[key])}" for key, told in keys.items()))
    return EvidenceFact(words, _cell(name, value))


def _way(way: dict[str, Any]) -> dict[str, Any]:
    """By which binding, role and rule a right comes, as people call them."""
    binding, role, origin = (str(way[part]).replace(f".{RBAC_GROUP}", "") for part in ("binding", "role", "origin"))
    told = {"binding": binding, "role": role, "rule": f"rules[{way['rule']}]"}
    if origin != role:
        told["rule"] += f" of {origin}"
    return told | ({"file": way["file"]} if "file" in way else {})


def _cell(name: str, value: Any) -> str:
    if name in ("path", "paths", "places"):
        return _places(value)
    if name == "scope":
        return str(value) or "whole cluster"
    if name == "apiGroups" and isinstance(value, list):
        return ", ".join(str(inner) or "core" for inner in value)
    if isinstance(value, list) and not any(isinstance(inner, dict | list) for inner in value):
        shown = [_scalar(inner) for inner in value]
        return ("\n" if sum(map(len, shown)) > _MAX_SHORT else ", ").join(shown)
    if isinstance(value, dict | list):
        parts = value if isinstance(value, list) else [value] if value else []
        return "\n".join(map(_in_one_line, parts))
    return _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return without_nil(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _in_one_line(value: Any) -> str:
    """`verbs: get, list; resources: pods` of what is flat; what is nested deeper as JSON."""
    flat = isinstance(value, dict) and not any(
        isinstance(inner, dict) or (isinstance(inner, list) and any(isinstance(it, dict | list) for it in inner))
        for inner in value.values()
    )
    if not flat:
        return json.dumps(value, sort_keys=True, ensure_ascii=False)
    return "; ".join(f"{_label_of(key)}: {_cell(key, one)}" for key, one in sorted(value.items()))


def _places(value: Any) -> str:
    """One path, or several in lines; a path is text already, or a list of its keys and indexes."""
    if not isinstance(value, list):
        return str(value)
    if any(isinstance(inner, list) for inner in value):
        return "\n".join(_places(inner) for inner in value)
    return path_text(tuple(inner if isinstance(inner, int) else str(inner) for inner in value))


def _label_of(name: str) -> str:
    return _NAMES.get(name) or _CAMEL.sub(" ", name).replace("_", " ").lower()
