"""Resources inside resources (x-kubernetes-embedded-resource): each needs an apiVersion, a kind and sound metadata."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from provisioner.schema.fields import (
    FieldError,
    Schema,
    child,
    index,
    invalid,
    key,
    properties_of,
    required,
    schema_of,
    too_long,
)
from provisioner.schema.names import (
    DNS_LABEL,
    DNS_LABEL_WORDS,
    LABEL_VALUE,
    LABEL_VALUE_WORDS,
    MAX_LABEL,
    label_problems,
    subdomain_problems,
)

_MAX_ANNOTATION_BYTES = 256 * 1024
_NAME_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_NAME_WORDS = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_PREFIX_WORDS = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
_TEXTS = ("name", "generateName", "namespace", "uid", "resourceVersion", "selfLink")
_MAPS = ("labels", "annotations")


def metadata_errors(metadata: dict[str, Any], path: str) -> list[FieldError]:
    """What is wrong with names, labels, annotations and finalizers; of wrong types nothing else is said."""
    return list(_type_errors(metadata, path)) or [
        *_name_errors(metadata, path),
        *_map_errors(metadata, path),
        *(
            invalid(child(path, "finalizers"), text, problem)
            for text in metadata.get("finalizers") or ()
            for problem in _qualified_problems(text)
        ),
    ]


def _type_errors(metadata: dict[str, Any], path: str) -> Iterator[FieldError]:
    for name in _TEXTS:
        if not isinstance(metadata.get(name), str | None):
            yield invalid(child(path, name), metadata[name], "must be a string")
    for name in _MAPS:
        entries = metadata.get(name)
        if entries is None:
            continue
        if not isinstance(entries, dict) or not all(isinstance(entry, str | None) for entry in entries.values()):
            yield invalid(child(path, name), entries, "must be a map of strings")
    finalizers = metadata.get("finalizers")
    if finalizers is not None and not (
        isinstance(finalizers, list) and all(isinstance(finalizer, str) for finalizer in finalizers)
    ):
        yield invalid(child(path, "finalizers"), finalizers, "must be a list of strings")


def _name_errors(metadata: dict[str, Any], path: str) -> Iterator[FieldError]:
    for name in ("generateName", "name"):
        text = metadata.get(name) or ""
        if name == "name" and text in {".", ".."}:
            yield invalid(child(path, name), text, f"may not be '{text}'")
        for sign in "/%":
            if sign in text:
                yield invalid(child(path, name), text, f"may not contain '{sign}'")
    namespace = metadata.get("namespace") or ""
    if len(namespace) > MAX_LABEL:
        yield invalid(child(path, "namespace"), namespace, f"must be no more than {MAX_LABEL} characters")
    elif namespace and not DNS_LABEL.fullmatch(namespace):
        yield invalid(child(path, "namespace"), namespace, DNS_LABEL_WORDS)


def _map_errors(metadata: dict[str, Any], path: str) -> Iterator[FieldError]:
    for label, value in (metadata.get("labels") or {}).items():
        yield from (invalid(child(path, "labels"), label, problem) for problem in _qualified_problems(label))
        if value and len(value) > MAX_LABEL:
            yield invalid(child(path, "labels"), value, f"must be no more than {MAX_LABEL} bytes")
        if value and not LABEL_VALUE.fullmatch(value):
            yield invalid(child(path, "labels"), value, LABEL_VALUE_WORDS)
    annotations = metadata.get("annotations") or {}
    for name in annotations:
        yield from (invalid(child(path, "annotations"), name, problem) for problem in _qualified_problems(name.lower()))
    size = sum(len(name.encode()) + len((value or "").encode()) for name, value in annotations.items())
    if size > _MAX_ANNOTATION_BYTES:
        yield too_long(child(path, "annotations"), _MAX_ANNOTATION_BYTES)


def _qualified_problems(text: str) -> Iterator[str]:
    """What is wrong with `prefix/name` or `name`."""
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        yield f"a valid label key {_NAME_WORDS} {_PREFIX_WORDS}"
        return
    if slash and not prefix:
        yield "prefix part must be non-empty"
    elif slash and (problems := subdomain_problems(prefix)):
        yield f"prefix part {problems}"
    if not name:
        yield "name part must be non-empty"
    elif len(name) > MAX_LABEL:
        yield f"name part must be no more than {MAX_LABEL} bytes"
    if not _NAME_PART.fullmatch(name):
        yield f"name part {_NAME_WORDS}"


def embedded_errors(schema: Schema, obj: Any) -> list[FieldError]:
    """The errors of all embedded resources in `obj`; the resource itself is not looked at."""
    return _errors(schema, obj, "")


def _errors(schema: Schema | None, value: Any, path: str) -> list[FieldError]:
    if schema is None:
        return []
    found: list[FieldError] = []
    if isinstance(value, dict):
        if schema.get("x-kubernetes-embedded-resource") is True:
            found += _resource_errors(value, path)
        known, additional = properties_of(schema), schema_of(schema.get("additionalProperties"))
        for name, entry in value.items():
            if name in known:
                found += _errors(schema_of(known[name]), entry, child(path, name))
            else:
                found += _errors(additional, entry, key(path, name))
    elif isinstance(value, list):
        items = schema_of(schema.get("items"))
        for place, item in enumerate(value):
            found += _errors(items, item, index(path, place))
    return found


def _resource_errors(value: dict[str, Any], path: str) -> list[FieldError]:
    found = [required(child(path, name)) for name in ("apiVersion", "kind") if name not in value]
    for name in ("apiVersion", "kind"):
        text = value.get(name)
        if name not in value:
            continue
        if not isinstance(text, str):
            found.append(invalid(child(path, name), text, "must be a string"))
        elif not text:
            found.append(invalid(child(path, name), text, "must not be empty"))
    found += _resource_name_errors(value, path)
    metadata = value.get("metadata")
    if metadata is None:
        return found
    if not isinstance(metadata, dict):
        return [*found, invalid(child(path, "metadata"), metadata, "must be an object")]
    return found + metadata_errors(metadata, child(path, "metadata"))


def _resource_name_errors(value: dict[str, Any], path: str) -> list[FieldError]:
    found = []
    version, kind = value.get("apiVersion"), value.get("kind")
    if isinstance(version, str) and version.count("/") > 1:
        found.append(invalid(child(path, "apiVersion"), version, f"unexpected GroupVersion string: {version}"))
    problems = label_problems(kind.lower()) if isinstance(kind, str) and kind else ""
    if problems:
        detail = f"may have mixed case, but should otherwise match: {problems}"
        found.append(invalid(child(path, "kind"), kind, detail))
    return found
