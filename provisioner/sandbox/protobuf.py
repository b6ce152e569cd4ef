"""kubectl's typed commands send protobuf. This reads the few messages of theirs that the sandbox serves.

Field numbers are those of Kubernetes' generated.proto files. `kubectl create -f` and `apply` send JSON and need none.
"""

from __future__ import annotations

from typing import Any

from provisioner.sandbox.status import Refusal

MAGIC = b"k8s\x00"
# name: (number, form); a form is "string", "int", "[string]" or another table; "map" holds strings.
_META = {
    "name": (1, "string"),
    "generateName": (2, "string"),
    "namespace": (3, "string"),
    "labels": (11, "map"),
    "annotations": (12, "map"),
}
_RESOURCE = {
    "namespace": (1, "string"),
    "verb": (2, "string"),
    "group": (3, "string"),
    "version": (4, "string"),
    "resource": (5, "string"),
    "subresource": (6, "string"),
    "name": (7, "string"),
}
_PATH = {"path": (1, "string"), "verb": (2, "string")}
_TABLES: dict[str, dict[str, Any]] = {
    "SelfSubjectAccessReview": {
        "spec": (2, {"resourceAttributes": (1, _RESOURCE), "nonResourceAttributes": (2, _PATH)})
    },
    "SelfSubjectRulesReview": {"spec": (2, {"namespace": (1, "string")})},
    "SelfSubjectReview": {},
    "TokenRequest": {"spec": (2, {"audiences": (1, "[string]"), "expirationSeconds": (4, "int")})},
    "Namespace": {},
    "ServiceAccount": {},
    "ConfigMap": {"data": (2, "map")},
    "DeleteOptions": {},
}


def read(data: bytes) -> dict[str, Any]:
    """The object in a Kubernetes protobuf envelope; raises Refusal 415 for kinds that this does not know."""
    if not data.startswith(MAGIC):
        raise Refusal(400, "BadRequest", "the object provided is unrecognized")
    envelope = _fields(data[len(MAGIC) :])
    kinds = _fields(_last(envelope, 1))
    api_version, kind = _last(kinds, 1).decode(), _last(kinds, 2).decode()
    if kind not in _TABLES:
        words = f"the sandbox reads a {kind} as JSON or YAML only: use `kubectl apply` or `kubectl create -f`"
        raise Refusal(415, "UnsupportedMediaType", words)
    table = {"metadata": (1, _META), **_TABLES[kind]}
    return {"apiVersion": api_version, "kind": kind, **_object(_last(envelope, 2), table)}


def _object(data: bytes, table: dict[str, Any]) -> dict[str, Any]:
    fields = _fields(data)
    made: dict[str, Any] = {}
    for name, (number, form) in table.items():
        values = fields.get(number)
        if values:
            made[name] = _value(values, form)
    return {name: value for name, value in made.items() if value not in ("", {}, None)}


def _value(values: list[Any], form: Any) -> Any:
    if isinstance(form, dict):
        return _object(values[-1], form)
    if form == "string":
        return values[-1].decode()
    if form == "[string]":
        return [value.decode() for value in values]
    if form == "map":
        pairs = [_fields(value) for value in values]
        return {_last(pair, 1).decode(): _last(pair, 2).decode() for pair in pairs}
    return values[-1]


def _last(fields: dict[int, list[Any]], number: int) -> bytes:
    found = fields.get(number) or [b""]
    return found[-1] if isinstance(found[-1], bytes) else b""


def _fields(data: bytes) -> dict[int, list[Any]]:
    """Wire values by field number: bytes for length-delimited ones, ints for the rest; raises Refusal 400."""
    found: dict[int, list[Any]] = {}
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(data, at)
            found.setdefault(tag >> 3, []).append(value)
            continue
        if kind == 2:
            size, at = _varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise _broken()
        if at + size > len(data):
            raise _broken()
        found.setdefault(tag >> 3, []).append(data[at : at + size])
        at += size
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while at < len(data) and shift < 64:
        value |= (data[at] & 0x7F) << shift
        at += 1
        if not data[at - 1] & 0x80:
            return value, at
        shift += 7
    raise _broken()


def _broken() -> Refusal:
    return Refusal(400, "BadRequest", "the protobuf body is cut off or damaged")
