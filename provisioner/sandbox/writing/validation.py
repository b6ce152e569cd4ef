"""What the API server refuses in any object's metadata and in the simple kinds, in its own words."""

from __future__ import annotations

import json
import re
from typing import Any

Causes = list[tuple[str, str]]
_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_STANDARD_FINALIZERS = {"kubernetes", "orphan", "foregroundDeletion"}
_NAME_WORDS = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_WORDS = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_PREFIX_WORDS = (
    "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
    "must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_KEY_WORDS = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
MAX_ANNOTATIONS_BYTES = 256 * 1024
MAX_DATA_BYTES = 1024 * 1024


def metadata_errors(meta: dict[str, Any], old: dict[str, Any] | None) -> Causes:
    """Labels, annotations, finalizers and owners; `old` is the metadata as it is stored."""
    found: Causes = []
    for key, value in (meta.get("labels") or {}).items():
        found += _qualified("metadata.labels", key)
        if len(value) > 63:
            found.append(("metadata.labels", f'Invalid value: "{value}": must be no more than 63 bytes'))
        elif not _VALUE.fullmatch(value):
            found.append(("metadata.labels", f'Invalid value: "{value}": {_VALUE_WORDS}'))
    annotations = meta.get("annotations") or {}
    for key in annotations:
        found += _qualified("metadata.annotations", key, is_lowered=True)
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > MAX_ANNOTATIONS_BYTES:
        words = f"Too long: may not be more than {MAX_ANNOTATIONS_BYTES} bytes"
        found.append(("metadata.annotations", words))
    return found + _finalizer_errors(meta, old) + _owner_errors(meta)


def _qualified(field: str, key: str, *, is_lowered: bool = False) -> Causes:
    prefix, slash, name = key.rpartition("/")
    found: Causes = []
    if slash and not _SUBDOMAIN.fullmatch(prefix.lower() if is_lowered else prefix):
        found.append((field, f'Invalid value: "{key}": {_PREFIX_WORDS}'))
    if len(name) > 63:
        found.append((field, f'Invalid value: "{key}": name part must be no more than 63 bytes'))
    elif not _NAME.fullmatch(name):
        found.append((field, f'Invalid value: "{key}": {_NAME_WORDS}'))
    return found


def _finalizer_errors(meta: dict[str, Any], old: dict[str, Any] | None) -> Causes:
    found: Causes = []
    for number, name in enumerate(meta.get("finalizers") or []):
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            words = "name is neither a standard finalizer name nor is it fully qualified"
            found.append((f"metadata.finalizers[{number}]", f'Invalid value: "{name}": {words}'))
    if old and old.get("deletionTimestamp"):
        added = [name for name in meta.get("finalizers") or [] if name not in (old.get("finalizers") or [])]
        if added:
            listed = "[]string{" + ", ".join(json.dumps(name) for name in added) + "}"
            words = "no new finalizers can be added if the object is being deleted, found new finalizers"
            found.append(("metadata.finalizers", f"Forbidden: {words} {listed}"))
    return found


def _owner_errors(meta: dict[str, Any]) -> Causes:
    found: Causes = []
    for owner in meta.get("ownerReferences") or []:
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                what = "version " if name == "apiVersion" else ""
                words = f'Invalid value: "": {what}must not be empty'
                found.append((f"metadata.ownerReferences.{name}", words))
    controllers = [it for it in meta.get("ownerReferences") or [] if it.get("controller")]
    if len(controllers) > 1:
        words = "Only one reference can have Controller set to true"
        shown = f'Invalid value: "{controllers[1].get("name")}"'
        found.append(("metadata.ownerReferences", f"{shown}: {words}"))
    return found


def data_errors(obj: dict[str, Any]) -> Causes:
    """The keys and the size of a ConfigMap or a Secret."""
    found: Causes = []
    size = 0
    for field in ("data", "binaryData"):
        for key, value in (obj.get(field) or {}).items():
            size += len(str(value))
            if not _CONFIG_KEY.fullmatch(key):
                found.append((f"{field}[{key}]", f'Invalid value: "{key}": {_KEY_WORDS}'))
    if size > MAX_DATA_BYTES:
        field = "[]" if obj.get("kind") == "ConfigMap" else "data"
        found.append((field, f"Too long: may not be more than {MAX_DATA_BYTES} bytes"))
    return found


def role_errors(obj: dict[str, Any]) -> Causes:
    """The rules of a role."""
    found: Causes = []
    is_namespaced = obj.get("kind") == "Role"
    for number, rule in enumerate(obj.get("rules") or []):
        at = f"rules[{number}]"
        if not rule.get("verbs"):
            found.append((f"{at}.verbs", "Required value: verbs must contain at least one value"))
        if rule.get("nonResourceURLs"):
            if is_namespaced:
                words = "namespaced rules cannot apply to non-resource URLs"
                shown = json.dumps(rule["nonResourceURLs"])
                found.append((f"{at}.nonResourceURLs", f"Invalid value: {shown}: {words}"))
            continue
        if not rule.get("apiGroups"):
            words = "resource rules must supply at least one api group"
            found.append((f"{at}.apiGroups", f"Required value: {words}"))
        if not rule.get("resources"):
            words = "resource rules must supply at least one resource"
            found.append((f"{at}.resources", f"Required value: {words}"))
    return found


def binding_errors(obj: dict[str, Any], old: dict[str, Any] | None) -> Causes:
    """The role and the subjects of a binding."""
    role = obj.get("roleRef") or {}
    found: Causes = []
    if old and old.get("roleRef") != role:
        named = {"APIGroup": "apiGroup", "Kind": "kind", "Name": "name"}
        shown = json.dumps({go: role.get(name, "") for go, name in named.items()}, separators=(",", ":"))
        found.append(("roleRef", f"Invalid value: {shown}: cannot change roleRef"))
    allowed = ("ClusterRole",) if obj.get("kind") == "ClusterRoleBinding" else ("ClusterRole", "Role")
    if role.get("kind") not in allowed:
        listed = ", ".join(f'"{it}"' for it in allowed)
        found.append(("roleRef.kind", f'Unsupported value: "{role.get("kind", "")}": supported values: {listed}'))
    if not role.get("name"):
        found.append(("roleRef.name", "Required value"))
    for number, subject in enumerate(obj.get("subjects") or []):
        found += _subject_errors(f"subjects[{number}]", subject, is_cluster=len(allowed) == 1)
    return found


def _subject_errors(at: str, subject: dict[str, Any], *, is_cluster: bool) -> Causes:
    found: Causes = [] if subject.get("name") else [(f"{at}.name", "Required value")]
    kind = subject.get("kind")
    if kind not in ("ServiceAccount", "User", "Group"):
        words = 'supported values: "Group", "ServiceAccount", "User"'
        return [*found, (f"{at}.kind", f'Unsupported value: "{kind or ""}": {words}')]
    if kind == "ServiceAccount" and is_cluster and not subject.get("namespace"):
        found.append((f"{at}.namespace", "Required value"))
    return found
