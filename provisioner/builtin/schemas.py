"""Kubernetes' schemas of the supported minors, read from the package kubernetes-validate when a kind is first judged.

Of the package only its files are used; its code is not imported. One minor takes about 6 MB of memory.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson

MINORS = ("1.32", "1.33", "1.34", "1.35", "1.36")
_PACKAGE = "kubernetes_validate"
_GVK = "x-kubernetes-group-version-kind"
_REFERENCE = "#/$defs/"
_WORDS = frozenset({"description", "x-kubernetes-patch-strategy", "x-kubernetes-patch-merge-key"})
_MINOR = re.compile(r"v?1\.(\d+)")


@dataclass(frozen=True, slots=True)
class Schemas:
    """The definitions of one minor by name, and the name of each kind's by (apiVersion, kind)."""

    definitions: Mapping[str, Mapping[str, Any]]
    kinds: Mapping[tuple[str, str], str]

    def of(self, api_version: str, kind: str) -> Mapping[str, Any] | None:
        name = self.kinds.get((api_version, kind))
        return self.definitions[name] if name else None

    def resolved(self, schema: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """The name of the definition that a schema refers to, "" for none, and what it says."""
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return "", schema
        name = reference.removeprefix(_REFERENCE)
        return name, self.definitions.get(name, {})


def minor_of(version: str) -> str:
    """The supported minor that is nearest to a server's version (`v1.36.3`); the newest where that is not known."""
    match = _MINOR.match(version)
    if match is None:
        return MINORS[-1]
    numbers = [int(one.partition(".")[2]) for one in MINORS]
    nearest = min(numbers, key=lambda one: abs(one - int(match[1])))
    return f"1.{nearest}"


@functools.lru_cache(maxsize=len(MINORS))
def schemas_of(minor: str) -> Schemas | None:
    """The schemas of a minor such as "1.36"; None where the package is not installed or lacks them."""
    folder = _folder()
    file = folder / f"v{minor}.0-local-strict" / "_definitions.json" if folder else None
    if file is None or not file.is_file():
        return None
    definitions = {name: _thinned(one) for name, one in orjson.loads(file.read_bytes())["$defs"].items()}
    kinds = {
        (f"{one['group']}/{one['version']}".removeprefix("/"), one["kind"]): name
        for name, definition in definitions.items()
        if len(definition.get(_GVK, ())) == 1
        for one in definition[_GVK]
    }
    return Schemas(definitions, kinds)


def _folder() -> Path | None:
    found = find_spec(_PACKAGE)
    for place in (found.submodule_search_locations or ()) if found else ():
        return Path(place) / "kubernetes-json-schema"
    return None


def _thinned(value: Any, is_of_names: bool = False) -> Any:
    """Without what only people read; below `properties` keys are names of fields."""
    if isinstance(value, dict):
        found = {
            key: _thinned(one, key == "properties" and not is_of_names)
            for key, one in value.items()
            if is_of_names or key not in _WORDS
        }
        if not is_of_names and isinstance(found.get("type"), list):  # anything may be null
            found["type"] = next((one for one in found["type"] if one != "null"), "")
        return found
    return [_thinned(one) for one in value] if isinstance(value, list) else value
