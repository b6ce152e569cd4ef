"""`config.valuesFrom`: values of a chart that Secrets and ConfigMaps of the cluster hold, in the words of Flux.

Of a Secret the chart gets marks in place of texts: they may go into Secrets of the content, where the texts take their
places again, and nowhere else (`lookups.filled`).
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.errors import BadConfig, InvalidManifest
from provisioner.masking import HIDDEN
from provisioner.render.helm.lookups import mark_of
from provisioner.render.helm.values import merged
from provisioner.render.known_keys import check_keys
from provisioner.render.limits import YamlMeter
from provisioner.render.targets import LookedUp, ValuesObject
from provisioner.render.yaml import load_documents
from provisioner.values import JsonObject, ObjectRef

VALUES_FROM = "valuesFrom"
MAX_REFERENCES = 20
# Of one key, as of an object in etcd.
MAX_BYTES = 1024 * 1024
_FIELDS = ("kind", "name", "namespace", "valuesKey", "targetPath", "optional")
_KEY = "values.yaml"
_STEP = re.compile(r"(?:[^.\\\[\]=,]|\\.)+")
_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")
# What `helm --set` reads as something else than a text.
_WORDS: Mapping[str, Any] = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True)
class ValuesReference:
    """One of `valuesFrom`: the key of an object that holds values, or the one value at `target_path`."""

    where: str
    ref: ObjectRef
    key: str
    target_path: tuple[str, ...]
    is_optional: bool

    @property
    def words(self) -> str:
        return f"{self.ref}, key {self.key}"


@dataclass(frozen=True, slots=True)
class GivenValues:
    """`values` as the chart gets them, and the objects that they are of, with the texts of marks."""

    values: Mapping[str, Any]
    objects: tuple[LookedUp, ...]

    def shown(self, values: Any) -> Any:
        """Values without the marks in them."""
        marks = {mark for found in self.objects for mark in found.marks}
        return _without(values, marks) if marks else values


def wanted_values(config: Mapping[str, Any], install_namespace: str) -> tuple[ValuesReference, ...]:
    """What `config.valuesFrom` names. Raises BadConfig."""
    listed = config.get(VALUES_FROM) or []
    if (
        not isinstance(listed, list)
        or len(listed) > MAX_REFERENCES
        or not all(isinstance(entry, Mapping) for entry in listed)
    ):
        raise BadConfig(f"config.valuesFrom: expected a list of at most {MAX_REFERENCES} mappings")
    return tuple(_reference(entry, f"config.valuesFrom[{n}]", install_namespace) for n, entry in enumerate(listed))


def _reference(entry: Mapping[str, Any], where: str, install_namespace: str) -> ValuesReference:
    check_keys(entry, _FIELDS, where, "it")
    texts = {field: entry.get(field) or "" for field in _FIELDS[:-1]}
    optional = entry.get("optional") or False
    if not all(isinstance(text, str) for text in texts.values()) or not isinstance(optional, bool):
        raise BadConfig(f"{where}: expected texts, and optional as true or false")
    if texts["kind"] not in ("Secret", "ConfigMap") or not texts["name"]:
        raise BadConfig(f"{where}: expected the kind Secret or ConfigMap, and a name")
    path = texts["targetPath"]
    steps = tuple(step.replace("\\", "") for step in _STEP.findall(path))
    if path and (len(steps) > 20 or ".".join(_STEP.findall(path)) != path):
        raise BadConfig(f"{where}.targetPath: expected names with dots between them, such as auth.password")
    ref = ObjectRef("", "v1", texts["kind"], texts["namespace"] or install_namespace, texts["name"])
    return ValuesReference(where, ref, texts["valuesKey"] or _KEY, steps, optional)


def values_object(wanted: ValuesReference, body: JsonObject | None, version: str = "") -> ValuesObject:
    """What the key of this object holds, None where it is not there. Raises BadConfig.

    `version` is another one where the value is another one, and tells nothing of it.
    """
    found: bytes | None = None
    if body is not None:
        data, binary = body.get("data") or {}, body.get("binaryData") or {}
        try:
            if wanted.key in data and wanted.ref.kind == "ConfigMap":
                found = str(data[wanted.key]).encode()
            elif wanted.key in data or wanted.key in binary:
                found = base64.b64decode(str({**binary, **data}[wanted.key]), validate=True)
        except ValueError as exc:
            raise BadConfig(f"{wanted.where}: {wanted.words}: cannot be read") from exc
    if found is not None and len(found) > MAX_BYTES:
        raise BadConfig(f"{wanted.where}: {wanted.words}: has more than {MAX_BYTES // 1024} KiB")
    return ValuesObject(wanted.ref, wanted.key, found, version)


def given_values(
    config: Mapping[str, Any], objects: tuple[ValuesObject, ...] | None, install_namespace: str, meter: YamlMeter
) -> GivenValues:
    """The values of `config.valuesFrom`, later ones over earlier ones. Raises BadConfig and BundleTooLarge."""
    references = wanted_values(config, install_namespace)
    if references and (objects is None or len(objects) != len(references)):
        raise BadConfig("config.valuesFrom names objects of the cluster, and no cluster was asked; say which one it is")
    given: dict[str, Any] = {}
    known = []
    for reference, held in zip(references, objects or (), strict=True):
        marks: dict[str, bytes] = {}
        values: Any = {}
        if held.value is None and not reference.is_optional:
            raise BadConfig(f"{reference.where}: {reference.ref} does not exist, or has no key {reference.key}")
        if held.value is not None:
            values = _read(reference, held, marks, meter)
        for step in reversed(reference.target_path if held.value is not None else ()):
            values = {step: values}
        given = merged(given, values)
        known.append(LookedUp(reference.ref, _told(reference, held, marks), marks))
    return GivenValues(given, tuple(known))


def _read(reference: ValuesReference, held: ValuesObject, marks: dict[str, bytes], meter: YamlMeter) -> Any:
    """The value or values that an object holds, of a Secret with marks, which are added to `marks`."""
    assert held.value is not None
    is_secret = reference.ref.kind == "Secret"
    try:
        text = held.value.decode()
        if reference.target_path:
            meter.add(reference.where, 1, len(text))
            if is_secret:
                return _marked(text, (), reference, held, marks)
            return int(text) if _NUMBER.fullmatch(text) else _WORDS.get(text, text)
        documents = [document.value for document in load_documents(text, name=reference.where, meter=meter)]
    except (UnicodeDecodeError, InvalidManifest):
        # Without the cause, which may quote it.
        raise BadConfig(f"{reference.where}: {reference.words}: cannot be read as YAML") from None
    values = {} if not documents or documents == [None] else documents[0]
    if len(documents) > 1 or not isinstance(values, Mapping):
        raise BadConfig(
            f"{reference.where}: {reference.words}: is no mapping of values; to set one value with it, add targetPath"
        )
    return _marked(values, (), reference, held, marks) if is_secret else values


def _marked(
    value: Any, path: tuple[str, ...], reference: ValuesReference, held: ValuesObject, marks: dict[str, bytes]
) -> Any:
    """`value` with a mark in place of each text."""
    if isinstance(value, Mapping):
        return {key: _marked(inner, (*path, str(key)), reference, held, marks) for key, inner in value.items()}
    if isinstance(value, list):
        return [_marked(inner, (*path, str(at)), reference, held, marks) for at, inner in enumerate(value)]
    if value is None or value == "":
        return value
    if not isinstance(value, str):
        raise BadConfig(
            f"{reference.where}: {reference.words}: has a value that is no text, which the report would show: quote it,"
            " or move what is no secret into a ConfigMap"
        )
    ref = reference.ref
    # Another one for another value: what a chart computes of it, such as a checksum, changes too.
    mark = mark_of([ref.namespace, ref.name, reference.key, *path, held.seed or held.version])
    marks[mark] = value.encode()
    return mark


def _told(reference: ValuesReference, held: ValuesObject, marks: Mapping[str, bytes]) -> JsonObject | None:
    """What the chart was told of the object, as it is recorded: of a Secret no value, and nothing computed of one."""
    if held.value is None:
        return None
    ref, told = reference.ref, ""
    if ref.kind == "ConfigMap":
        told = f"sha256:{hashlib.sha256(held.value).hexdigest()}"
    return {
        "apiVersion": "v1",
        "kind": ref.kind,
        "metadata": {"name": ref.name, "namespace": ref.namespace},
        "data": {reference.key: told},
    }


def _without(value: Any, marks: set[str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _without(inner, marks) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without(inner, marks) for inner in value]
    return HIDDEN if isinstance(value, str) and value in marks else value
