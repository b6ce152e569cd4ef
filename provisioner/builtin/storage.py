"""What the API server refuses of claims, volumes, settings and secrets.

Source: pkg/apis/core/validation and pkg/apis/storage/validation.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from provisioner.builtin import forms, metadata
from provisioner.builtin.changes import NEVER, Change, FieldRefusal, Path, numbered, quoted, texts
from provisioner.json_values import mapping, value_at

LARGEST_DATA_BYTES = 1024 * 1024
_MODES = frozenset({"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"})
# What a claim may still change: its size, and the class of its attributes.
_FREE = frozenset({"resources", "volumeAttributesClassName"})
_SOURCES = frozenset({"dataSource", "dataSourceRef"})
_ALSO_SET = _SOURCES | {"storageClassName", "volumeName"}
_NOT_SOURCES = frozenset(
    [
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    ]
)
_KEYS_BY_TYPE = {
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}


def refusals_of_claim_spec(spec: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    yield from _check_modes(texts(spec.get("accessModes")), (*path, "accessModes"))
    size = forms.quantity(value_at(spec, "resources", "requests", "storage"))
    if value_at(spec, "resources", "requests", "storage") is None:
        yield FieldRefusal((*path, "resources", "requests", "storage"), "is missing")
    elif size is not None and size <= 0:
        yield FieldRefusal((*path, "resources", "requests", "storage"), "must be above 0")
    yield from metadata.check_selector(spec.get("selector"), (*path, "selector"))
    source, other = mapping(spec.get("dataSource")), mapping(spec.get("dataSourceRef"))
    if source and other and dict(source) != dict(other):
        yield FieldRefusal((*path, "dataSource"), "must be the same as dataSourceRef")


def _check_claim(change: Change) -> Iterator[FieldRefusal]:
    yield from refusals_of_claim_spec(change.spec, ("spec",))
    if change.old is None:
        return
    old, new, sent = change.old_spec, change.spec, mapping(change.sent.get("spec"))
    for key in sorted({*old, *new} - _FREE):
        is_filled_in = key in _ALSO_SET and key not in old  # the server may have set it since
        if old.get(key) != new.get(key) and not is_filled_in and (key in sent or key not in _SOURCES):
            yield FieldRefusal(("spec", key), NEVER, is_of_update=True)
    if not forms.alike(value_at(old, "resources", "limits"), value_at(new, "resources", "limits")):
        yield FieldRefusal(("spec", "resources", "limits"), NEVER, is_of_update=True)
    before, after = (forms.quantity(value_at(one, "resources", "requests", "storage")) for one in (old, new))
    if before is not None and after is not None and after < before:
        yield FieldRefusal(("spec", "resources", "requests", "storage"), "must not become smaller", is_of_update=True)


def grows(change: Change) -> bool:
    """Whether a claim becomes larger, which its storage class may not allow."""
    before, after = (
        forms.quantity(value_at(one, "resources", "requests", "storage")) for one in (change.old_spec, change.spec)
    )
    return change.old is not None and before is not None and after is not None and after > before


def _check_volume(change: Change) -> Iterator[FieldRefusal]:
    spec = change.spec
    sources = sorted(key for key, value in spec.items() if key not in _NOT_SOURCES and value is not None)
    if len(sources) != 1:
        yield FieldRefusal(("spec",), f"must be of one type, and is of {', '.join(sources) or 'none'}")
    yield from _check_modes(texts(spec.get("accessModes")), ("spec", "accessModes"))
    if list(mapping(spec.get("capacity"))) != ["storage"]:
        yield FieldRefusal(("spec", "capacity"), "must name storage and nothing else")
    if ".." in str(value_at(spec, "hostPath", "path") or "").split("/"):
        yield FieldRefusal(("spec", "hostPath", "path"), "must not hold `..`")
    is_recycled = spec.get("persistentVolumeReclaimPolicy") == "Recycle"
    if is_recycled and value_at(spec, "hostPath", "path") == "/":
        yield FieldRefusal(("spec", "persistentVolumeReclaimPolicy"), "must not be Recycle for the root of a machine")
    if spec.get("local") and not spec.get("nodeAffinity"):
        yield FieldRefusal(("spec", "nodeAffinity"), "is missing, and the volume is local")
    for key in sorted({*change.old_spec, *spec} - _NOT_SOURCES) if change.old is not None else ():
        if change.old_spec.get(key) != spec.get(key):
            yield FieldRefusal(("spec", key), NEVER, is_of_update=True)


def _check_modes(modes: list[str], path: Path) -> Iterator[FieldRefusal]:
    if not modes:
        yield FieldRefusal(path, "must name at least one mode")
    for mode in modes:
        if mode not in _MODES:
            yield FieldRefusal(path, f"must be of {', '.join(sorted(_MODES))}, and is {quoted(mode)}")
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        yield FieldRefusal(path, "must name no other mode beside ReadWriteOncePod")


def _check_settings(change: Change) -> Iterator[FieldRefusal]:
    yield from _check_keys(change.new, ("data", "binaryData"))
    both = sorted(mapping(change.new.get("data")).keys() & mapping(change.new.get("binaryData")).keys())
    for key in both:
        yield FieldRefusal(("binaryData", key), "stands in data, too")


def _check_secret(change: Change) -> Iterator[FieldRefusal]:
    """Words name keys, and never values."""
    yield from _check_keys(change.new, ("data", "stringData"))
    kind = str(change.new.get("type") or "Opaque")
    known = {key for part in ("data", "stringData") for key in mapping(change.new.get(part))}
    for key in _KEYS_BY_TYPE.get(kind, ()):
        if key not in known:
            yield FieldRefusal(("data", key), f"is missing in a secret of type {kind}")
    if kind == "kubernetes.io/basic-auth" and not known & {"username", "password"}:
        yield FieldRefusal(("data",), f"must hold username or password in a secret of type {kind}")
    account = value_at(change.new, "metadata", "annotations", "kubernetes.io/service-account.name")
    if kind == "kubernetes.io/service-account-token" and not account:
        yield FieldRefusal(("metadata", "annotations", "kubernetes.io/service-account.name"), "is missing")
    if kind in ("kubernetes.io/dockerconfigjson", "kubernetes.io/dockercfg"):
        yield from _check_json(change.new, _KEYS_BY_TYPE[kind][0])


def _check_json(obj: Mapping[str, Any], key: str) -> Iterator[FieldRefusal]:
    given = value_at(obj, "stringData", key)
    if given is None:
        try:
            given = base64.b64decode(str(value_at(obj, "data", key) or ""), validate=True).decode()
        except (binascii.Error, ValueError):
            return
    if isinstance(given, str) and given and not _is_json_object(given):
        yield FieldRefusal(("data", key), "must be a JSON object")


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _check_keys(obj: Mapping[str, Any], parts: tuple[str, ...]) -> Iterator[FieldRefusal]:
    size = 0
    for part in parts:
        for key, value in mapping(obj.get(part)).items():
            if not forms.is_config_key(str(key)):
                yield FieldRefusal((part, str(key)), f"must be {forms.FORMS['config-key'][1]}, and is {quoted(key)}")
            text = str(value)
            is_coded = part == "binaryData" or (part == "data" and obj.get("kind") == "Secret")
            size += len(text) * 3 // 4 - text.count("=") if is_coded else len(text.encode("utf-8", "replace"))
    if size > LARGEST_DATA_BYTES:
        yield FieldRefusal(("data",), f"must not be larger than {LARGEST_DATA_BYTES} bytes together, and is {size}")


def _check_storage_class(change: Change) -> Iterator[FieldRefusal]:
    for key, value in mapping(change.new.get("parameters")).items():
        if not key:
            yield FieldRefusal(("parameters", key), "must have a name")
        elif value is None:
            yield FieldRefusal(("parameters", str(key)), "must be a text")
    for place, term in numbered(change.new.get("allowedTopologies")):
        seen: set[str] = set()
        for number, expression in numbered(term.get("matchLabelExpressions")):
            if str(expression.get("key")) in seen:
                where = ("allowedTopologies", place, "matchLabelExpressions", number, "key")
                yield FieldRefusal(where, f"stands there twice: {quoted(expression.get('key'))}")
            seen.add(str(expression.get("key")))


RULES: dict[str, Callable[[Change], Iterator[FieldRefusal]]] = {
    "storage.k8s.io/v1 StorageClass": _check_storage_class,
    "v1 ConfigMap": _check_settings,
    "v1 PersistentVolume": _check_volume,
    "v1 PersistentVolumeClaim": _check_claim,
    "v1 Secret": _check_secret,
}
