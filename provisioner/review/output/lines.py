"""The lines of an object that a finding is about: the field that its path names, as it was and as it will be. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from provisioner.review.base.difference import DiffLine, diff_lines, mask_secret
from provisioner.review.base.facts import items, mapping, maps
from provisioner.review.output.terminal import path_text
from provisioner.schema.verdicts import ITEMS, VALUES
from provisioner.values import JsonObject

MAX_LINES = 16
_CRD = "CustomResourceDefinition"
_KEYWORDS = {ITEMS: "items", VALUES: "additionalProperties"}
Path = tuple[str | int, ...]


def concerned_lines(
    before: JsonObject | None, after: JsonObject | None, path: Path, version: str = ""
) -> list[DiffLine]:
    """At most MAX_LINES lines of the field at `path`, below a line that says where it is; none where it is nowhere.

    Of a CRD a path is one of its objects where `version` names one of its versions. Secrets are masked.
    """
    sides = [mask_secret(one) if one is not None else None for one in (before, after)]
    found = [_reached(side, _in_schema(side, path, version)) if side is not None else None for side in sides]
    place = max((one[0] for one in found if one), key=len, default=())
    if not place:
        return []
    key = place[-1] if isinstance(place[-1], str) else "-"
    entries = [({key: one[1]} if len(one[0]) == len(place) else {}) if one else None for one in found]
    lines = diff_lines(*entries) or [DiffLine(" ", line.text) for line in diff_lines(None, entries[1])]
    more = [DiffLine("@", f"{len(lines) - MAX_LINES} more lines")] if len(lines) > MAX_LINES else []
    return [DiffLine("@", path_text(place)), *lines[:MAX_LINES], *more]


def _in_schema(side: JsonObject | None, path: Path, version: str) -> Path:
    """A path of an object as the path of its schema in the CRD."""
    body = side or {}
    versions = items(mapping(body.get("spec")).get("versions"))
    at = next((at for at, one in enumerate(versions) if mapping(one).get("name") == version), None)
    if body.get("kind") != _CRD or at is None or path[:2] == ("spec", "versions"):
        return path
    found: list[str | int] = ["spec", "versions", at, "schema", "openAPIV3Schema"]
    for part in path:
        found += [_KEYWORDS[part]] if part in _KEYWORDS else ["properties", part]
    return tuple(found)


def _reached(side: JsonObject, path: Path) -> tuple[Path, Any]:
    """How far a path leads, and what is there. An item of a list is named by its place or by its name."""
    value: Any = side
    for length, part in enumerate(path):
        found = _below(value, part)
        if not found:
            return path[:length], value
        value = found[0]
    return path, value


def _below(value: object, part: str | int) -> list[Any]:
    if isinstance(value, Mapping):
        return [value[part]] if part in value else []
    if isinstance(part, int):
        return items(value)[part : part + 1]
    return [one for one in maps(value) if one.get("name") == part][:1]
