"""kubectl's typed commands send protobuf. This reads the few messages of theirs that the sandbox serves.

Field numbers are those of Kubernetes' generated.proto files. `kubectl create -f` and `apply` send JSON and need none.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from provisioner.sandbox.status import StatusRefusal

MAGIC = b"k8s\x00"
# name: (number, form); a form is "string", "int", "[string]", a table, or [a table] for a list of them; "map" holds
# strings, "bytes map" what a Secret holds; "int or string" is Kubernetes' message of that name.
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
_RULES = {
    "verbs": (1, "[string]"),
    "apiGroups": (2, "[string]"),
    "resources": (3, "[string]"),
    "resourceNames": (4, "[string]"),
    "nonResourceURLs": (5, "[string]"),
}
_SUBJECT = {"kind": (1, "string"), "apiGroup": (2, "string"), "name": (3, "string"), "namespace": (4, "string")}
_ROLE_REF = {"apiGroup": (1, "string"), "kind": (2, "string"), "name": (3, "string")}
_SELECTOR = {"matchLabels": (1, "map")}
_CONTAINER = {
    "name": (1, "string"),
    "image": (2, "string"),
    "command": (3, "[string]"),
    "args": (4, "[string]"),
    "ports": (6, [{"name": (1, "string"), "containerPort": (3, "int"), "protocol": (4, "string")}]),
}
_TEMPLATE = {"metadata": (1, _META), "spec": (2, {"containers": (2, [_CONTAINER]), "restartPolicy": (3, "string")})}
_SERVICE_PORT = {
    "name": (1, "string"),
    "protocol": (2, "string"),
    "port": (3, "int"),
    "targetPort": (4, "int or string"),
    "nodePort": (5, "int"),
}
_SERVICE = {
    "ports": (1, [_SERVICE_PORT]),
    "selector": (2, "map"),
    "clusterIP": (3, "string"),
    "type": (4, "string"),
    "externalName": (10, "string"),
}
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
    "Secret": {"data": (2, "bytes map"), "type": (3, "string"), "stringData": (4, "map")},
    "Role": {"rules": (2, [_RULES])},
    "ClusterRole": {"rules": (2, [_RULES])},
    "RoleBinding": {"subjects": (2, [_SUBJECT]), "roleRef": (3, _ROLE_REF)},
    "ClusterRoleBinding": {"subjects": (2, [_SUBJECT]), "roleRef": (3, _ROLE_REF)},
    "Deployment": {"spec": (2, {"replicas": (1, "int"), "selector": (2, _SELECTOR), "template": (3, _TEMPLATE)})},
    "Job": {"spec": (2, {"template": (6, _TEMPLATE)})},
    "Service": {"spec": (2, _SERVICE)},
    "DeleteOptions": {},
}


def read(data: bytes) -> dict[str, Any]:
    """The object in a Kubernetes protobuf envelope; raises StatusRefusal 415 for kinds that this does not know."""
    if not data.startswith(MAGIC):
        raise StatusRefusal(400, "BadRequest", "the object provided is unrecognized")
    envelope = _fields(data[len(MAGIC) :])
    kinds = _fields(_last(envelope, 1))
    api_version, kind = _last(kinds, 1).decode(), _last(kinds, 2).decode()
    if kind not in _TABLES:
        words = f"the sandbox reads a {kind} as JSON or YAML only: use `kubectl apply` or `kubectl create -f`"
        raise StatusRefusal(415, "UnsupportedMediaType", words)
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
    if isinstance(form, list):
        return [_object(value, form[0]) for value in values]
    return _FORMS[form](values)


def _int_or_string(values: list[Any]) -> Any:
    fields = _fields(values[-1])
    is_text = (fields.get(1) or [0])[-1] == 1
    return _last(fields, 3).decode() if is_text else (fields.get(2) or [0])[-1]


def _pairs(values: list[Any]) -> list[tuple[str, bytes]]:
    pairs = [_fields(value) for value in values]
    return [(_last(pair, 1).decode(), _last(pair, 2)) for pair in pairs]


_FORMS: dict[str, Callable[[list[Any]], Any]] = {
    "string": lambda values: values[-1].decode(),
    "[string]": lambda values: [value.decode() for value in values],
    "int": lambda values: values[-1],
    "int or string": _int_or_string,
    "map": lambda values: {key: value.decode() for key, value in _pairs(values)},
    "bytes map": lambda values: {key: base64.b64encode(value).decode() for key, value in _pairs(values)},
}


def _last(fields: dict[int, list[Any]], number: int) -> bytes:
    found = fields.get(number) or [b""]
    return found[-1] if isinstance(found[-1], bytes) else b""


def _fields(data: bytes) -> dict[int, list[Any]]:
    """Wire values by field number: bytes for length-delimited ones, ints for the rest; raises StatusRefusal 400."""
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


def _broken() -> StatusRefusal:
    return StatusRefusal(400, "BadRequest", "the protobuf body is cut off or damaged")
