"""What the API server refuses of an object's own name, labels, annotations and finalizers.

Source: k8s.io/apimachinery, api/validation/objectmeta.go, and the name functions of each kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from provisioner.builtin import forms
from provisioner.builtin.changes import Change, FieldRefusal, Path, numbered, quoted, texts
from provisioner.json_values import mapping, value_at

LARGEST_ANNOTATIONS_BYTES = 256 * 1024
_SUBDOMAIN = (forms.is_subdomain, "lower case letters, digits, hyphens and dots, at most 253")
_LABEL = (forms.is_label, "lower case letters, digits and hyphens, at most 63")
_SEGMENT = (forms.is_path_segment, "a name without / and %")
_IS_NAME: dict[str, tuple[Callable[[str], bool], str]] = {
    "Namespace": _LABEL,
    "Service": _LABEL,
    "ClusterRole": _SEGMENT,
    "ClusterRoleBinding": _SEGMENT,
    "Role": _SEGMENT,
    "RoleBinding": _SEGMENT,
    "FlowSchema": _SEGMENT,
    "PriorityLevelConfiguration": _SEGMENT,
    "APIService": _SEGMENT,
}
_SHORT_NAMES = {"CronJob": 52, "Job": 63, "StatefulSet": 63}
_RESERVED_PRIORITIES = "system-"


def refusals(change: Change) -> Iterator[FieldRefusal]:
    meta = mapping(change.new.get("metadata"))
    if change.old is None:
        yield from _check_name(str(change.new.get("kind") or ""), str(meta.get("name") or ""))
    yield from check_labels(meta.get("labels"), ("metadata", "labels"))
    yield from check_annotations(meta.get("annotations"), ("metadata", "annotations"))
    finalizers = meta.get("finalizers")
    for place, finalizer in enumerate(finalizers if isinstance(finalizers, list) else ()):
        if not forms.is_qualified_name(str(finalizer)):
            yield FieldRefusal(
                ("metadata", "finalizers", place), f"must be a qualified name, and is {quoted(finalizer)}"
            )
        elif "/" not in str(finalizer) and finalizer not in ("kubernetes", "orphan", "foregroundDeletion"):
            yield FieldRefusal(
                ("metadata", "finalizers", place), f"must be a domain, a slash and a name, and is {quoted(finalizer)}"
            )
    if {"orphan", "foregroundDeletion"} <= set(texts(finalizers)):
        yield FieldRefusal(("metadata", "finalizers"), "must not hold both orphan and foregroundDeletion")
    yield from _check_owners(meta.get("ownerReferences"))
    prefix = str(meta.get("generateName") or "")
    is_name, words = _IS_NAME.get(str(change.new.get("kind") or ""), _SUBDOMAIN)
    if prefix and not is_name(f"{prefix[:-1]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix):
        yield FieldRefusal(("metadata", "generateName"), f"must be {words}, and is {quoted(prefix)}")
    if meta.get("managedFields") is not None:
        yield FieldRefusal(("metadata", "managedFields"), "must not be written by server-side apply")


def _check_owners(owners: Any) -> Iterator[FieldRefusal]:
    path: Path = ("metadata", "ownerReferences")
    for place, owner in numbered(owners):
        group, _, version = str(owner.get("apiVersion") or "").rpartition("/")
        for key in ("kind", "name", "uid"):
            if not owner.get(key):
                yield FieldRefusal((*path, place, key), "must not be empty")
        if not version or "/" in group:
            yield FieldRefusal(
                (*path, place, "apiVersion"), f"must be a version, and is {quoted(owner.get('apiVersion'))}"
            )
        elif (owner["apiVersion"], owner.get("kind")) == ("v1", "Event"):
            yield FieldRefusal((*path, place), "must not be an Event")
    if sum(one.get("controller") is True for _, one in numbered(owners)) > 1:
        yield FieldRefusal(path, "must name at most one controller")


def _check_name(kind: str, name: str) -> Iterator[FieldRefusal]:
    path: Path = ("metadata", "name")
    if not name:
        yield FieldRefusal(path, "is missing")
        return
    is_name, words = _IS_NAME.get(kind, _SUBDOMAIN)
    if kind == "CustomResourceDefinition":
        return
    if not is_name(name):
        yield FieldRefusal(path, f"must be {words}, and is {quoted(name)}")
    elif len(name) > _SHORT_NAMES.get(kind, len(name)):
        yield FieldRefusal(path, f"must have at most {_SHORT_NAMES[kind]} characters, and has {len(name)}")
    elif kind == "PriorityClass" and name.startswith(_RESERVED_PRIORITIES):
        yield FieldRefusal(path, f"must not begin with {_RESERVED_PRIORITIES}, which Kubernetes keeps for itself")


def check_labels(labels: Any, path: Path) -> Iterator[FieldRefusal]:
    for key, value in mapping(labels).items():
        if not forms.is_qualified_name(str(key)):
            yield FieldRefusal((*path, str(key)), f"has {quoted(key)} as a key, which is no name of a label")
        if isinstance(value, str) and not forms.is_label_value(value):
            yield FieldRefusal((*path, str(key)), f"must be {forms.FORMS['label-value'][1]}, and is {quoted(value)}")


def check_annotations(annotations: Any, path: Path) -> Iterator[FieldRefusal]:
    known = mapping(annotations)
    for key in known:
        if not forms.is_qualified_name(str(key).lower()):
            yield FieldRefusal((*path, str(key)), f"has {quoted(key)} as a key, which is no name of an annotation")
    size = sum(
        len(str(key).encode("utf-8", "replace")) + len(str(one).encode("utf-8", "replace"))
        for key, one in known.items()
    )
    if size > LARGEST_ANNOTATIONS_BYTES:
        yield FieldRefusal(path, f"must not be larger than {LARGEST_ANNOTATIONS_BYTES} bytes together, and is {size}")


def check_selector(selector: Any, path: Path) -> Iterator[FieldRefusal]:
    """A label selector with matchLabels and matchExpressions."""
    yield from check_labels(value_at(selector, "matchLabels"), (*path, "matchLabels"))
    for place, requirement in numbered(value_at(selector, "matchExpressions")):
        yield from check_requirement(
            requirement, (*path, "matchExpressions", place), ("In", "NotIn", "Exists", "DoesNotExist")
        )


def check_requirement(one: Any, path: Path, operators: tuple[str, ...]) -> Iterator[FieldRefusal]:
    key, operator, values = one.get("key"), one.get("operator"), one.get("values") or []
    if not forms.is_qualified_name(str(key or "")):
        yield FieldRefusal((*path, "key"), f"must be the name of a label, and is {quoted(key or '')}")
    if operator not in operators:
        yield FieldRefusal((*path, "operator"), f"must be one of {', '.join(operators)}, and is {quoted(operator)}")
    elif operator in ("In", "NotIn") and not values:
        yield FieldRefusal((*path, "values"), f"must not be empty where the operator is {operator}")
    elif operator in ("Exists", "DoesNotExist") and values:
        yield FieldRefusal((*path, "values"), f"must be empty where the operator is {operator}")
    elif operator in ("Gt", "Lt") and len(values) != 1:
        yield FieldRefusal((*path, "values"), f"must be one number where the operator is {operator}")
    for place, value in enumerate(values if isinstance(values, list) else ()):
        if operator in ("In", "NotIn") and not forms.is_label_value(str(value)):
            yield FieldRefusal(
                (*path, "values", place), f"must be {forms.FORMS['label-value'][1]}, and is {quoted(value)}"
            )


def is_selected(selector: Any, labels: Any) -> bool:
    """Whether a label selector of a sound form takes something with `labels`; an empty one takes everything."""
    known = mapping(labels)
    if any(known.get(key) != value for key, value in mapping(value_at(selector, "matchLabels")).items()):
        return False
    return all(_is_met(requirement, known) for _, requirement in numbered(value_at(selector, "matchExpressions")))


def _is_met(one: Any, labels: Any) -> bool:
    key, operator, values = one.get("key"), one.get("operator"), one.get("values") or []
    if operator == "In":
        return labels.get(key) in values
    if operator == "NotIn":
        return labels.get(key) not in values
    return (key in labels) is (operator == "Exists") if operator in ("Exists", "DoesNotExist") else True
