"""One request and its answer, between socket and API: its body, its options, and Kubernetes' way of saying no.

kubectl's typed commands send protobuf; of that only the few messages that the sandbox serves are read. Field numbers
are those of Kubernetes' generated.proto files. `kubectl create -f` and `apply` send JSON and need none.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from provisioner.sandbox.kinds import SandboxKind
from provisioner.values import Identity


class StatusRefusal(Exception):
    """An answer of kind Status; `details` as metav1.StatusDetails has them."""

    def __init__(self, code: int, reason: str, message: str, details: Mapping[str, Any] | None = None):
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = None if details is None else dict(details)

    def body(self) -> dict[str, Any]:
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        }
        reason = {"reason": self.reason} if self.reason else {}
        return {**status, **reason, **({} if self.details is None else {"details": self.details})}


def not_found(resource: str, name: str) -> StatusRefusal:
    return StatusRefusal(404, "NotFound", f'{resource} "{name}" not found', _about(resource, name))


def already_exists(resource: str, name: str) -> StatusRefusal:
    return StatusRefusal(409, "AlreadyExists", f'{resource} "{name}" already exists', _about(resource, name))


def conflict(resource: str, name: str, words: str) -> StatusRefusal:
    message = f'Operation cannot be fulfilled on {resource} "{name}": {words}'
    return StatusRefusal(409, "Conflict", message, _about(resource, name))


def invalid(kind: str, name: str, causes: list[tuple[str, str]]) -> StatusRefusal:
    """`causes` are (field, words) pairs; the words begin as the API server's do: Invalid value: …"""
    said = [f"{field}: {words}" for field, words in causes]
    joined = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    plain, _, group = kind.partition(".")
    details = {
        **({"name": name} if name else {}),
        **({"group": group} if group else {}),
        **({"kind": plain} if plain else {}),
        "causes": [{"reason": _cause(words), "message": words, "field": field} for field, words in causes],
    }
    return StatusRefusal(422, "Invalid", f'{kind} "{name}" is invalid: {joined}', details)


def lost() -> StatusRefusal:
    """The path is no resource of this server."""
    return StatusRefusal(404, "NotFound", "the server could not find the requested resource", {})


def not_allowed() -> StatusRefusal:
    words = "the server does not allow this method on the requested resource"
    return StatusRefusal(405, "MethodNotAllowed", words, {})


def bad_request(words: str) -> StatusRefusal:
    return StatusRefusal(400, "BadRequest", words)


def _about(resource: str, name: str) -> dict[str, Any]:
    plural, _, group = resource.partition(".")
    return {"name": name, "kind": plural, **({"group": group} if group else {})}


def _cause(words: str) -> str:
    known = {
        "Required value": "FieldValueRequired",
        "Duplicate value": "FieldValueDuplicate",
        "Forbidden": "FieldValueForbidden",
        "Unsupported value": "FieldValueNotSupported",
        "Too long": "FieldValueTooLong",
        "Too many": "FieldValueTooMany",
        "Invalid value": "FieldValueInvalid",
    }
    if "in body must be of type" in words:
        return "FieldValueTypeInvalid"
    return next((reason for start, reason in known.items() if words.startswith(start)), "FieldValueInvalid")


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


def read_protobuf(data: bytes) -> dict[str, Any]:
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
    return {"apiVersion": api_version, "kind": kind, **_without_empty(_last(envelope, 2), table)}


def _without_empty(data: bytes, table: dict[str, Any]) -> dict[str, Any]:
    fields = _fields(data)
    made: dict[str, Any] = {}
    for name, (number, form) in table.items():
        values = fields.get(number)
        if values:
            made[name] = _value(values, form)
    return {name: value for name, value in made.items() if value not in ("", {}, None)}


def _value(values: list[Any], form: Any) -> Any:
    if isinstance(form, dict):
        return _without_empty(values[-1], form)
    if isinstance(form, list):
        return [_without_empty(value, form[0]) for value in values]
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


@dataclass(frozen=True, slots=True)
class SandboxCall:
    """`headers` are lower-case, each with all its values; `query` holds the last value of each name."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, list[str]]
    body: bytes = b""

    def header(self, name: str) -> str:
        return (self.headers.get(name) or [""])[0]

    def json(self) -> Any:
        """The body as JSON, YAML or a protobuf of kubectl's; raises Refusal 400 and 415."""
        kind = self.header("content-type").partition(";")[0].strip()
        if "protobuf" in kind:
            return read_protobuf(self.body)
        try:
            return (
                yaml.load(self.body, yaml.CSafeLoader)
                if "yaml" in kind and self.body[:1] != b"{"
                else json.loads(self.body)
            )
        except (ValueError, yaml.YAMLError) as exc:
            raise bad_request(f"the object provided is unrecognized: {exc}") from exc

    def object(self) -> dict[str, Any]:
        found = self.json()
        if not isinstance(found, dict):
            raise bad_request("the object provided is unrecognized: expected an object")
        return found

    @property
    def is_dry_run(self) -> bool:
        return self.query.get("dryRun") == "All"


@dataclass(frozen=True, slots=True)
class PathTarget:
    """What a path names. `name` is "" for a collection."""

    kind: SandboxKind
    namespace: str
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        return (self.kind.group, self.kind.plural, self.namespace if self.kind.is_namespaced else "", self.name)


@dataclass(frozen=True, slots=True)
class SandboxAnswer:
    """`stream` gives watch events instead of a body."""

    code: int
    body: Any = None
    warnings: tuple[str, ...] = ()
    stream: Iterator[dict[str, Any]] | None = None
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Writing:
    """Who writes, as managedFields name them, and whether for good."""

    identity: Identity
    manager: str
    is_dry_run: bool
    validation: str
    warnings: list[str] = field(default_factory=list)


_KINDS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions", "DELETE": "DeleteOptions"}
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")


def check_write_options(call: SandboxCall, *, is_apply: bool) -> None:
    """Raise StatusRefusal 422 for a dryRun, fieldValidation, force or fieldManager that does not exist or fit."""
    causes: list[tuple[str, str]] = []
    dry_run, validation = call.query.get("dryRun", ""), call.query.get("fieldValidation", "")
    if dry_run not in ("", "All"):
        causes.append(("dryRun", f'Unsupported value: ["{dry_run}"]: supported values: "All"'))
    if validation not in _VALIDATIONS and call.method != "DELETE":
        listed = ", ".join(f'"{validation}"' for validation in _VALIDATIONS)
        causes.append(("fieldValidation", f'Unsupported value: "{validation}": supported values: {listed}'))
    if is_apply and not call.query.get("fieldManager"):
        causes.append(("fieldManager", "Required value: is required for apply patch"))
    if call.query.get("force") and not is_apply:
        causes.append(("force", "Forbidden: may not be specified for non-apply patch"))
    if len(call.query.get("fieldManager", "")) > 128:
        causes.append(("fieldManager", "Too long: may not be more than 128 bytes"))
    if causes:
        raise invalid(f"{_KINDS.get(call.method, 'PatchOptions')}.meta.k8s.io", "", causes)


def query_number(call: SandboxCall, name: str) -> int:
    """A number of the query, 0 where it is not given; raises StatusRefusal 400."""
    text = call.query.get(name, "")
    if not text:
        return 0
    try:
        return int(text)
    except ValueError as exc:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from exc


def check_list_version(call: SandboxCall) -> None:
    """Raise StatusRefusal 400 for the resourceVersion of a list that is no number."""
    given = call.query.get("resourceVersion", "")
    if given and not given.isdigit():
        words = f'Invalid value: "{given}": strconv.ParseUint: parsing "{given}": invalid syntax'
        raise bad_request(f"invalid resource version: resourceVersion: {words}")


def watch_version(call: SandboxCall) -> int:
    """Where a watch begins, 0 for "now"; raises StatusRefusal 500, and 422 for a wrong sendInitialEvents."""
    wants_initial = call.query.get("sendInitialEvents", "")
    match = call.query.get("resourceVersionMatch", "")
    if wants_initial and match != "NotOlderThan":
        words = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        raise invalid("ListOptions.meta.k8s.io", "", [("resourceVersionMatch", words)])
    if match and not wants_initial:
        words = "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        raise invalid("ListOptions.meta.k8s.io", "", [("resourceVersionMatch", words)])
    given = call.query.get("resourceVersion", "") or "0"
    if not given.isdigit():
        words = f'resourceVersion: Invalid value: "{given}": strconv.ParseUint: parsing "{given}": invalid syntax'
        raise StatusRefusal(500, "", words)
    return int(given)
