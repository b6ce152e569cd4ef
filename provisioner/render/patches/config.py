"""The part of `spec.config` that changes rendered objects, in the words of a kustomization."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.errors import BadConfig, InvalidManifest
from provisioner.json_values import mapping
from provisioner.regexes import BadRegularExpression, BoundedPattern, compiled
from provisioner.render.canonical import canonical
from provisioner.render.known_keys import PATCH_KEYS, check_keys
from provisioner.render.limits import YamlMeter
from provisioner.render.yaml import load_documents
from provisioner.selectors import parse_terms, selects
from provisioner.values import JsonObject, ObjectRef

MAX_PATCHES, MAX_IMAGES, MAX_LABELS = 100, 100, 50
MAX_PATTERN = 1_000
_PATTERNS = ("group", "version", "kind", "name", "namespace")
_SELECTORS = {"labelSelector": "labels", "annotationSelector": "annotations"}
# What matches nothing but itself.
_LITERAL = re.compile(r"[A-Za-z0-9-]*")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9][-a-z0-9.]{0,200}")


@dataclass(frozen=True, slots=True)
class PatchTarget:
    """Which objects a patch is for: patterns of whole texts by field, LabelSelectors by `labels` and `annotations`."""

    patterns: Mapping[str, str | BoundedPattern]
    selectors: Mapping[str, Mapping[str, Any]]
    called: str  # kind and name as they are written

    def matches(self, ref: ObjectRef, body: JsonObject) -> bool:
        """Whether it is for this object. Raises TooMuchWork."""
        for field, pattern in self.patterns.items():
            text = getattr(ref, field)
            if not (text == pattern if isinstance(pattern, str) else pattern.search(text)):
                return False
        metadata = mapping(body.get("metadata"))
        return all(selects(selector, mapping(metadata.get(field))) for field, selector in self.selectors.items())


@dataclass(frozen=True, slots=True)
class PatchEntry:
    """One of `patches`: objects to merge in, or the operations of a JSON patch. `where` names it.

    Without a target each object to merge in names the one that it is for.
    """

    where: str
    merges: tuple[JsonObject, ...]
    operations: tuple[JsonObject, ...]
    target: PatchTarget | None


@dataclass(frozen=True, slots=True)
class ImageEntry:
    """One of `images`: what images of this name become; "" leaves a part as it is."""

    where: str
    name: str
    new_name: str
    new_tag: str
    digest: str


@dataclass(frozen=True, slots=True)
class PatchConfig:
    patches: tuple[PatchEntry, ...]
    namespace: str
    name_prefix: str
    labels: Mapping[str, str]
    images: tuple[ImageEntry, ...]


def parse_config(config: Mapping[str, Any], meter: YamlMeter) -> PatchConfig | None:
    """What `config` changes in rendered objects, None where nothing. Raises BadConfig and BundleTooLarge."""
    if not any(config.get(key) for key in PATCH_KEYS):
        return None
    namespace, prefix = _text(config, "namespace", "config"), _text(config, "namePrefix", "config")
    if namespace and not _NAMESPACE.fullmatch(namespace):
        raise BadConfig("config.namespace: expected the name of a namespace: at most 63 lower-case letters, digits, -")
    if prefix and not _PREFIX.fullmatch(prefix):
        raise BadConfig("config.namePrefix: expected lower-case letters, digits, - and ., such as `prod-`")
    labels = config.get("commonLabels") or {}
    if not isinstance(labels, Mapping) or len(labels) > MAX_LABELS or not all(map(_is_text, labels.items())):
        raise BadConfig(f"config.commonLabels: expected a mapping of at most {MAX_LABELS} texts (quote them)")
    return PatchConfig(
        tuple(_parse_patch(entry, where, meter) for where, entry in _entries(config, "patches", MAX_PATCHES)),
        namespace,
        prefix,
        dict(labels),
        tuple(_parse_image(entry, where) for where, entry in _entries(config, "images", MAX_IMAGES)),
    )


def _entries(config: Mapping[str, Any], key: str, most: int) -> list[tuple[str, Mapping[str, Any]]]:
    listed = config.get(key) or []
    if not isinstance(listed, list) or len(listed) > most or not all(isinstance(entry, Mapping) for entry in listed):
        raise BadConfig(f"config.{key}: expected a list of at most {most} mappings")
    return [(f"{key}[{place}]", entry) for place, entry in enumerate(listed)]


def _parse_patch(entry: Mapping[str, Any], where: str, meter: YamlMeter) -> PatchEntry:
    check_keys(entry, ("patch", "target"), f"config.{where}", "it")
    written = entry.get("patch")
    try:
        if isinstance(written, str):
            documents = load_documents(written, name=f"config.{where}.patch", meter=meter)
            values = [canonical(document.value) for document in documents if document.value is not None]
        else:
            values = [canonical(written)] if written else []
    except InvalidManifest as exc:
        raise BadConfig(f"config.{where}.patch: cannot be read as YAML or JSON", server_words=str(exc)) from exc
    target = _parse_target(entry["target"], where) if entry.get("target") is not None else None
    if values and all(isinstance(value, dict) for value in values):
        if target is not None and len(values) > 1:
            raise BadConfig(f"config.{where}: has a target and several objects in its patch; write an entry for each")
        return PatchEntry(where, tuple(values), (), target)
    if len(values) == 1 and isinstance(values[0], list) and all(isinstance(step, dict) for step in values[0]):
        if target is None:
            raise BadConfig(f"config.{where}: a JSON patch needs a target, such as kind and name")
        return PatchEntry(where, (), tuple(values[0]), target)
    raise BadConfig(
        f"config.{where}.patch: expected an object to merge in, or the list of operations of a JSON patch (RFC 6902)"
    )


def _parse_target(written: object, where: str) -> PatchTarget:
    where = f"{where}.target"
    if not isinstance(written, Mapping):
        raise BadConfig(f"config.{where}: expected a mapping")
    check_keys(written, (*_PATTERNS, *_SELECTORS), f"config.{where}", "it")
    texts = {field: _text(written, field, f"config.{where}") for field in (*_PATTERNS, *_SELECTORS)}
    for field, text in texts.items():
        if len(text) > MAX_PATTERN:
            raise BadConfig(f"config.{where}.{field}: has {len(text)} characters; the most are {MAX_PATTERN}")
    patterns: dict[str, str | BoundedPattern] = {}
    for field in _PATTERNS:
        if text := texts[field]:
            try:
                patterns[field] = text if _LITERAL.fullmatch(text) else compiled(f"^(?:{text})$")
            except BadRegularExpression as exc:
                raise BadConfig(f"config.{where}.{field}: is no regular expression", server_words=str(exc)) from exc
    selectors = {}
    for field, inside in _SELECTORS.items():
        if texts[field]:
            try:
                selectors[inside] = parse_terms(texts[field])
            except ValueError as exc:
                raise BadConfig(f"config.{where}.{field}: {exc}") from exc
    return PatchTarget(patterns, selectors, f"{texts['kind']} {texts['name']}".strip())


def _parse_image(entry: Mapping[str, Any], where: str) -> ImageEntry:
    fields = ("name", "newName", "newTag", "digest")
    check_keys(entry, fields, f"config.{where}", "it")
    name, *changes = (_text(entry, field, f"config.{where}") for field in fields)
    if not name or not any(changes):
        raise BadConfig(f"config.{where}: expected name, and newName, newTag or digest")
    return ImageEntry(where, name, *changes)


def _text(holder: Mapping[str, Any], key: str, where: str) -> str:
    value = holder.get(key)
    if value is not None and not isinstance(value, str):
        raise BadConfig(f"{where}.{key} is {type(value).__name__}; expected a text (quote it)")
    return value or ""


def _is_text(item: tuple[Any, Any]) -> bool:
    return all(isinstance(part, str) for part in item)
