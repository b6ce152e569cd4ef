"""Kubernetes' schemas of the supported minors, from the package kubernetes-validate, and what does not fit them.

Of the package only its files are used; its code is not imported. One minor takes about 6 MB of memory.
"""

from __future__ import annotations

import base64
import binascii
import functools
import pathlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import orjson

from provisioner.builtin.changes import FieldRefusal, Path, quoted
from provisioner.builtin.forms import is_quantity

MINORS = ("1.32", "1.33", "1.34", "1.35", "1.36")
_PACKAGE = "kubernetes_validate"
_GVK = "x-kubernetes-group-version-kind"
_REFERENCE = "#/$defs/"
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


def _folder() -> pathlib.Path | None:
    found = find_spec(_PACKAGE)
    for place in (found.submodule_search_locations or ()) if found else ():
        return pathlib.Path(place) / "kubernetes-json-schema"
    return None


def _thinned(value: Any, is_of_names: bool = False) -> Any:
    """Without what only people read; below `properties` keys are names of fields."""
    if isinstance(value, dict):
        found = {
            key: _thinned(one, key == "properties" and not is_of_names)
            for key, one in value.items()
            if is_of_names or key != "description"
        }
        if not is_of_names and isinstance(found.get("type"), list):  # anything may be null
            found["type"] = next((one for one in found["type"] if one != "null"), "")
        return found
    return [_thinned(one) for one in value] if isinstance(value, list) else value


# Schemas of other things, which their own checks judge; and what may hold anything.
_FREE = ("JSONSchemaProps", "RawExtension", "FieldsV1", "ManagedFieldsEntry", ".JSON", "JSONSchemaPropsOrBool")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
_NAMES = {
    "object": "an object",
    "array": "a list",
    "string": "a text",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
}
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict, Mapping),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}


def misfits(schemas: Schemas, schema: Mapping[str, Any], value: Any, path: Path = ()) -> Iterator[FieldRefusal]:
    """What of `value` the server cannot read as `schema`; nulls stand for nothing."""
    name, node = schemas.resolved(schema)
    if value is None or name.endswith(_FREE):
        return
    words = _check_named_form(name, value)
    if words is not None:
        if words:
            yield _refused(path, words)
        return
    kind = node.get("type") or ""
    if kind and not _is_of(value, kind):
        yield _refused(path, f"must be {_NAMES[kind]}, and is {_describe_type(value)}")
    elif isinstance(value, (dict, Mapping)):  # the first is far quicker to tell
        yield from _check_object(schemas, node, value, path)
    elif isinstance(value, list):
        yield from _check_list(schemas, node, value, path)
    else:
        form = node.get("format")
        if form in _RANGES and isinstance(value, int):
            least, most = _RANGES[form]
            if not least <= value <= most:
                yield _refused(path, f"must be from {least} to {most}")
        elif form == "byte" and not _is_base64(value):
            yield _refused(path, "must be base64")
        elif node.get("enum") and value not in node["enum"]:
            yield _refused(path, f"must be one of {', '.join(map(str, node['enum']))}")


def _check_named_form(name: str, value: Any) -> str | None:
    """Why a value of one of Kubernetes' own forms is none, "" for a sound one; None for any other definition."""
    form = name.rpartition(".")[2]
    if form == "Quantity":
        is_sound = is_quantity(value)
        return "" if is_sound else f"must be a quantity such as 500m or 1Gi, and is {quoted(value)}"
    if form == "IntOrString":
        least, most = _RANGES["int32"]
        is_sound = isinstance(value, str) or (_is_of(value, "integer") and least <= value <= most)
        return "" if is_sound else f"must be a whole number of 32 bits or a text, and is {quoted(value)}"
    if form in ("Time", "MicroTime"):
        is_sound = isinstance(value, str) and _TIME.fullmatch(value) is not None
        return "" if is_sound else f"must be a time such as 2026-01-31T12:00:00Z, and is {quoted(value)}"
    return None


def _is_of(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind])


def _describe_type(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    return next((_NAMES[kind] for kind, types in _TYPES.items() if isinstance(value, types)), "something else")


def _check_object(
    schemas: Schemas, node: Mapping[str, Any], value: Mapping[str, Any], path: Path
) -> Iterator[FieldRefusal]:
    fields, others = node.get("properties"), node.get("additionalProperties")
    if fields is None:
        if isinstance(others, Mapping):
            for key, one in value.items():
                yield from misfits(schemas, others, one, (*path, str(key)))
        return
    for key, one in value.items():
        if key in fields:
            yield from misfits(schemas, fields[key], one, (*path, key))
        else:
            yield _refused((*path, str(key)), f"is no field of this kind{_suggest_field(str(key), fields)}")
    for key in node.get("required") or ():
        if value.get(key) is None:
            yield FieldRefusal((*path, key), "is missing", is_of_schema=True, is_missing=True)


def _suggest_field(key: str, fields: Mapping[str, Any]) -> str:
    """The field that a misspelt one may stand for: the same but for case, or for one letter more, less or other."""
    near = [field for field in fields if field.lower() == key.lower() or _is_near(field, key)]
    return f"; did you mean {near[0]}?" if near else ""


def _is_near(one: str, other: str) -> bool:
    if abs(len(one) - len(other)) > 1 or min(len(one), len(other)) < 4:
        return False
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    end = 0
    while end < min(len(one), len(other)) - start and one[-1 - end] == other[-1 - end]:
        end += 1
    return max(len(one), len(other)) - start - end <= 1


def _check_list(schemas: Schemas, node: Mapping[str, Any], value: list[Any], path: Path) -> Iterator[FieldRefusal]:
    items, keys = node.get("items") or {}, node.get("x-kubernetes-list-map-keys")
    for place, one in enumerate(value):
        is_object = one is None and schemas.resolved(items)[1].get("type") == "object"
        if is_object and keys:
            yield _refused((*path, place), "must not be null")
        yield from misfits(schemas, items, {} if is_object else one, (*path, place))
    if node.get("x-kubernetes-list-type") == "set":
        yield from _check_twins([(one,) for one in value], ("value",), path)
    elif keys and node.get("x-kubernetes-list-type") == "map":
        found = [key_of(one, keys) for one in value]
        yield from _check_twins(found, keys, path)


def key_of(item: Any, keys: list[str]) -> tuple[Any, ...] | None:
    """What names an item of a list that is a map; the protocol of a port is TCP where it is not said."""
    if not isinstance(item, Mapping):
        return None
    return tuple(item.get(key) if item.get(key) is not None else "TCP" if key == "protocol" else None for key in keys)


def _check_twins(found: list[tuple[Any, ...] | None], keys: Any, path: Path) -> Iterator[FieldRefusal]:
    seen: set[str] = set()
    for place, key in enumerate(found):
        named = repr(key)
        if key is not None and named in seen:
            shown = ", ".join(f"{name} {one}" for name, one in zip(keys, key, strict=False) if one is not None)
            yield _refused((*path, place), f"stands there twice ({shown})")
        seen.add(named)


def _is_base64(value: Any) -> bool:
    try:
        base64.b64decode(str(value).replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _refused(path: Path, words: str) -> FieldRefusal:
    return FieldRefusal(path, words, is_of_schema=True)


def with_empty_texts(schemas: Schemas, schema: Mapping[str, Any], value: Any) -> Any:
    """`value` with an empty text for each null in a map of texts such as labels, which is how the server reads it."""
    node = schemas.resolved(schema)[1]
    if isinstance(value, list):
        items = node.get("items") or {}
        return [with_empty_texts(schemas, items, one) for one in value]
    if not isinstance(value, Mapping):
        return value
    others = node.get("additionalProperties")
    if isinstance(others, Mapping) and others.get("type") in ("string", ["string", "null"]):
        return {key: "" if one is None else one for key, one in value.items()}
    fields = node.get("properties") or {}
    return {key: with_empty_texts(schemas, fields[key], one) if key in fields else one for key, one in value.items()}
