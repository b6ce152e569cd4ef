"""What the API server refuses of claims, volumes, settings and secrets.

Source: pkg/apis/core/validation and pkg/apis/storage/validation.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterator

from provisioner.builtin import forms, metadata
from provisioner.builtin.changes import Change, FieldRefusal, ObjectNode, quoted, texts
from provisioner.json_values import mapping, value_at

LARGEST_DATA_BYTES = 1024 * 1024
_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_SIZE = ("resources", "requests", "storage")
_ACCOUNT = "kubernetes.io/service-account.name"
# What a claim may still change: its size, and the class of its attributes.
_FREE = frozenset({"resources", "volumeAttributesClassName"})
_SOURCES = frozenset({"dataSource", "dataSourceRef"})
_ALSO_SET = _SOURCES | {"storageClassName", "volumeName"}
_NOT_SOURCES = {"accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "storageClassName"}
_NOT_SOURCES |= {"persistentVolumeReclaimPolicy", "volumeAttributesClassName", "volumeMode"}
_KEYS_BY_TYPE = {
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}


def _check_claim(change: Change) -> Iterator[FieldRefusal]:
    spec, old = change.spec, change.old_spec
    size, before = forms.quantity(spec.get(*_SIZE)), forms.quantity(value_at(old, *_SIZE))
    yield from _check_modes(spec)
    if spec.get(*_SIZE) is None:
        yield spec.refuse("is missing", *_SIZE)
    elif size is not None and size <= 0:
        yield spec.refuse("must be above 0", *_SIZE)
    yield from metadata.check_selector(spec.at("selector"))
    source, other = mapping(spec.get("dataSource")), mapping(spec.get("dataSourceRef"))
    if source and other and dict(source) != dict(other):
        yield spec.refuse("must be the same as dataSourceRef", "dataSource")
    if change.old is None:
        return
    for key in sorted({*old, *spec.value} - _FREE):
        is_filled_in = key in _ALSO_SET and key not in old  # the server may have set it since
        is_left_out = key in _SOURCES and key not in change.sent_spec
        if old.get(key) != spec.get(key) and not is_filled_in and not is_left_out:
            yield spec.refuse_change(key)
    if not forms.alike(value_at(old, "resources", "limits"), spec.get("resources", "limits")):
        yield spec.refuse_change("resources", "limits")
    if before is not None and size is not None and size < before:
        yield spec.refuse_change(*_SIZE, words="must not become smaller")


def grows(change: Change) -> bool:
    """Whether a claim becomes larger, which its storage class may not allow."""
    before, after = forms.quantity(value_at(change.old_spec, *_SIZE)), forms.quantity(change.spec.get(*_SIZE))
    return before is not None and after is not None and after > before


def _check_volume(change: Change) -> Iterator[FieldRefusal]:
    spec, path = change.spec, change.spec.get("hostPath", "path")
    sources = sorted(key for key, value in spec.value.items() if key not in _NOT_SOURCES and value is not None)
    if len(sources) != 1:
        yield spec.refuse(f"must be of one type, and is of {', '.join(sources) or 'none'}")
    yield from _check_modes(spec)
    if list(mapping(spec.get("capacity"))) != ["storage"]:
        yield spec.refuse("must name storage and nothing else", "capacity")
    if ".." in str(path or "").split("/"):
        yield spec.refuse("must not hold `..`", "hostPath", "path")
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle" and path == "/":
        yield spec.refuse("must not be Recycle for the root of a machine", "persistentVolumeReclaimPolicy")
    if spec.get("local") and not spec.get("nodeAffinity"):
        yield spec.refuse("is missing, and the volume is local", "nodeAffinity")
    for key in sorted({*change.old_spec, *spec.value} - _NOT_SOURCES) if change.old is not None else ():
        if change.old_spec.get(key) != spec.get(key):
            yield spec.refuse_change(key)


def _check_modes(spec: ObjectNode) -> Iterator[FieldRefusal]:
    modes = texts(spec.get("accessModes"))
    if not modes:
        yield spec.refuse("must name at least one mode", "accessModes")
    for mode in modes:
        if mode not in _MODES:
            yield spec.refuse(f"must be of {', '.join(_MODES)}, and is {quoted(mode)}", "accessModes")
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        yield spec.refuse("must name no other mode beside ReadWriteOncePod", "accessModes")


def _check_settings(change: Change) -> Iterator[FieldRefusal]:
    yield from _check_keys(change.root, ("data", "binaryData"))
    data, binary = change.root.at("data"), change.root.at("binaryData")
    for key in sorted(data.value.keys() & binary.value.keys()):
        yield binary.refuse("stands in data, too", key)


def _check_secret(change: Change) -> Iterator[FieldRefusal]:
    """Words name keys, and never values."""
    secret, kind = change.root, str(change.new.get("type") or "Opaque")
    yield from _check_keys(secret, ("data", "stringData"))
    known = {*secret.at("data").value, *secret.at("stringData").value}
    for key in _KEYS_BY_TYPE.get(kind, ()):
        if key not in known:
            yield secret.refuse(f"is missing in a secret of type {kind}", "data", key)
    if kind == "kubernetes.io/basic-auth" and not known & {"username", "password"}:
        yield secret.refuse(f"must hold username or password in a secret of type {kind}", "data")
    if kind == "kubernetes.io/service-account-token" and not secret.get("metadata", "annotations", _ACCOUNT):
        yield secret.refuse("is missing", "metadata", "annotations", _ACCOUNT)
    if kind in ("kubernetes.io/dockerconfigjson", "kubernetes.io/dockercfg"):
        (key,) = _KEYS_BY_TYPE[kind]
        text = secret.get("stringData", key)
        try:
            if text is None:
                text = base64.b64decode(str(secret.get("data", key) or ""), validate=True).decode()
        except (binascii.Error, ValueError):
            return  # what is no base64, the schema refuses
        try:
            is_object = not isinstance(text, str) or not text or isinstance(json.loads(text), dict)
        except (ValueError, RecursionError):
            is_object = False
        if not is_object:
            yield secret.refuse("must be a JSON object", "data", key)


def _check_keys(obj: ObjectNode, parts: tuple[str, ...]) -> Iterator[FieldRefusal]:
    size = 0
    for part in parts:
        for key, value in obj.at(part).value.items():
            if not forms.is_config_key(str(key)):
                yield obj.refuse(f"must be {forms.FORMS['config-key'][1]}, and is {quoted(key)}", part, str(key))
            text = str(value)
            is_coded = part == "binaryData" or (part == "data" and obj.get("kind") == "Secret")
            size += len(text) * 3 // 4 - text.count("=") if is_coded else len(text.encode("utf-8", "replace"))
    if size > LARGEST_DATA_BYTES:
        yield obj.refuse(f"must not be larger than {LARGEST_DATA_BYTES} bytes together, and is {size}", "data")


def _check_storage_class(change: Change) -> Iterator[FieldRefusal]:
    for key, value in change.root.at("parameters").value.items():
        if not key:
            yield change.root.refuse("must have a name", "parameters", key)
        elif value is None:
            yield change.root.refuse("must be a text", "parameters", str(key))
    for term in change.root.items("allowedTopologies"):
        yield from term.check_unique("matchLabelExpressions", "key")


RULES: dict[str, Callable[[Change], Iterator[FieldRefusal]]] = {
    "storage.k8s.io/v1 StorageClass": _check_storage_class,
    "v1 ConfigMap": _check_settings,
    "v1 PersistentVolume": _check_volume,
    "v1 PersistentVolumeClaim": _check_claim,
    "v1 Secret": _check_secret,
}
