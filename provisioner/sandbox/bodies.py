"""What somebody sent, held against what the kind declares: unknown and repeated fields, wrong types."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.sandbox import builtin
from provisioner.sandbox.builtin import Reading
from provisioner.sandbox.calls import StatusRefusal, Writing, invalid
from provisioner.sandbox.kinds import SandboxKind

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int, float),
    "number": (int, float),
    "array": (list,),
    "object": (dict,),
}
_EXPECTED = {"integer": "numeric (int or float)", "number": "numeric (int or float)", "array": "list", "object": "map"}
_GOT = {str: "string", bool: "boolean", int: "int", float: "float", list: "list", dict: "map"}


def declared(kind: SandboxKind, obj: dict[str, Any], writing: Writing) -> dict[str, Any]:
    """A created or replaced object with its declared fields only; raises StatusRefusal 400."""
    reading = _read_object(kind, obj)
    if reading.wrong:
        raise StatusRefusal(400, "BadRequest", f"{_handled(kind)}: {_decoding(kind, reading)}")
    note_unknown(kind, reading.undeclared, writing)
    return _without_empty_metadata(reading.after)


def patched(kind: SandboxKind, obj: dict[str, Any], patch: Any, writing: Writing) -> dict[str, Any]:
    """The same of an object after a patch; raises StatusRefusal 422."""
    reading = _read_object(kind, obj)
    if reading.wrong:
        raise _unpatchable(patch, _decoding(kind, reading))
    said = [f'unknown field "{path}"' for path in reading.undeclared]
    if said and writing.validation == "Strict":
        raise _unpatchable(patch, f"strict decoding error: {', '.join(said)}")
    _say(kind, said, writing)
    return _without_empty_metadata(reading.after)


def applied(kind: SandboxKind, obj: dict[str, Any], schema: dict[str, Any] | None) -> dict[str, Any]:
    """The same of an apply, where both are a 500, whatever fieldValidation says."""
    reading = _read_object(kind, obj)
    body = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")}
    found = next(_untyped(schema, body, ""), "") if schema else ""
    if reading.undeclared:
        found = f".{reading.undeclared[0]}: field not declared in schema"
    elif reading.wrong:
        path, _, _, expected, value = reading.wrong
        found = f".{path}: expected {expected}, got &value.valueUnstructured{{Value:{json.dumps(value)}}}"
    if found:
        given = obj.get("metadata")
        meta = given if isinstance(given, dict) else {}
        group_version = kind.api_version if kind.group else f"/{kind.version}"
        place = f"({meta.get('namespace') or ''}/{meta.get('name') or ''}; {group_version}, Kind={kind.kind})"
        raise StatusRefusal(500, "", f"failed to create typed patch object {place}: {found}")
    return dict(reading.after)


def _untyped(schema: Mapping[str, Any], value: Any, at: str) -> Iterator[str]:
    """What a typed patch could not hold: fields that the schema does not declare, values of another type."""
    form = str(schema.get("type", ""))
    if value is None or schema.get("x-kubernetes-int-or-string") or not form:
        return
    if not isinstance(value, _TYPES.get(form, (object,))) or (isinstance(value, bool) and form != "boolean"):
        yield f"{at}: expected {_EXPECTED.get(form, form)}, got {_GOT.get(type(value), 'unknown')}"
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _untyped(schema.get("items") or {}, item, f"{at}[{number}]")
    elif isinstance(value, dict):
        known, more = schema.get("properties") or {}, schema.get("additionalProperties")
        is_open = schema.get("x-kubernetes-preserve-unknown-fields") or more is True
        for key, item in value.items():
            inner = known.get(key, more)
            if isinstance(inner, Mapping):
                yield from _untyped(inner, item, f"{at}.{key}")
            elif not is_open and not schema.get("x-kubernetes-embedded-resource"):
                yield f"{at}.{key}: field not declared in schema"


def note_unknown(kind: SandboxKind, paths: list[str], writing: Writing) -> None:
    """Refuse (400) or warn of fields that the kind does not have, as the writing asks."""
    _say(kind, [f'unknown field "{path}"' for path in paths], writing)


def note_repeated(kind: SandboxKind, body: bytes, writing: Writing) -> None:
    """Keys that stand twice in one object of a JSON body; the last one counts. Raises StatusRefusal 400 when Strict."""
    if writing.validation != "Ignore" and body[:1] == b"{":
        paths = _repeated(json.loads(body, object_pairs_hook=_Pairs), "")
        _say(kind, [f'duplicate field "{path}"' for path in paths], writing)


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as it was written."""


def _repeated(value: Any, at: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen = set()
        for key, item in value:
            place = f"{at}.{key}" if at else key
            if key in seen:
                yield place
            seen.add(key)
            yield from _repeated(item, place)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _repeated(item, f"{at}[{number}]")


def _read_object(kind: SandboxKind, obj: dict[str, Any]) -> Reading:
    if not kind.is_custom:
        return builtin.read(kind, obj)
    reading = builtin.read_metadata(obj.get("metadata") or {})
    reading.after = {**obj, "metadata": reading.after}
    return reading


def _without_empty_metadata(obj: dict[str, Any]) -> dict[str, Any]:
    """Labels, annotations and the like that hold nothing are not there."""
    meta = {key: value for key, value in (obj.get("metadata") or {}).items() if value not in ({}, [])}
    return {**obj, "metadata": meta}


def _handled(kind: SandboxKind) -> str:
    return f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'


def _decoding(kind: SandboxKind, reading: Reading) -> str:
    path, has, wanted, _, _ = reading.wrong or ("", "", "", "", None)
    return f"json: cannot unmarshal {has} into Go struct field {kind.kind}.{path} of type {wanted}"


def _unpatchable(patch: Any, words: str) -> StatusRefusal:
    causes = [("patch", f"Invalid value: {json.dumps(json.dumps(patch))}: {words}")]
    return invalid("", "", causes)


def _say(kind: SandboxKind, said: list[str], writing: Writing) -> None:
    if not said or writing.validation == "Ignore":
        return
    if writing.validation == "Strict":
        raise StatusRefusal(400, "BadRequest", f"{_handled(kind)}: strict decoding error: {', '.join(said)}")
    writing.warnings.extend(said)
