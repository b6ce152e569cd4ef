"""What the API server refuses of an object's own name, labels, annotations and finalizers, and of label selectors.

Source: k8s.io/apimachinery, api/validation/objectmeta.go, and the name functions of each kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from provisioner.builtin import forms
from provisioner.builtin.changes import Change, FieldRefusal, ObjectNode, numbered, quoted, texts
from provisioner.json_values import mapping, value_at

LARGEST_ANNOTATIONS_BYTES = 256 * 1024
# All other names are subdomains.
_NAME_FORMS = {"Namespace": "label", "Service": "label"} | dict.fromkeys(
    [
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "FlowSchema",
        "PriorityLevelConfiguration",
        "APIService",
    ],
    "path-segment",
)
_SHORT_NAMES = {"CronJob": 52, "Job": 63, "StatefulSet": 63}
_RESERVED_PRIORITIES = "system-"
_ON_LABELS = ("In", "NotIn", "Exists", "DoesNotExist")


def check_metadata(change: Change) -> Iterator[FieldRefusal]:
    kind, meta = str(change.new.get("kind") or ""), change.root.at("metadata")
    if change.old is None:
        yield from _check_name(meta, kind)
    yield from check_labels(meta, "labels")
    yield from check_annotations(meta)
    finalizers = meta.get("finalizers")
    for place, finalizer in enumerate(finalizers if isinstance(finalizers, list) else ()):
        if not forms.is_qualified_name(str(finalizer)):
            yield meta.refuse(f"must be a qualified name, and is {quoted(finalizer)}", "finalizers", place)
        elif "/" not in str(finalizer) and finalizer not in ("kubernetes", "orphan", "foregroundDeletion"):
            words = f"must be a domain, a slash and a name, and is {quoted(finalizer)}"
            yield meta.refuse(words, "finalizers", place)
    if {"orphan", "foregroundDeletion"} <= set(texts(finalizers)):
        yield meta.refuse("must not hold both orphan and foregroundDeletion", "finalizers")
    yield from _check_owners(meta)
    is_name, words = forms.FORMS[_NAME_FORMS.get(kind, "subdomain")]
    prefix = str(meta.get("generateName") or "")
    # The server puts letters at the end, so a hyphen may stand there.
    if prefix and not is_name(f"{prefix[:-1]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix):
        yield meta.refuse_value(f"must be {words}", "generateName")
    if meta.get("managedFields") is not None:
        yield meta.refuse("must not be written by server-side apply", "managedFields")


def _check_name(meta: ObjectNode, kind: str) -> Iterator[FieldRefusal]:
    is_name, words = forms.FORMS[_NAME_FORMS.get(kind, "subdomain")]
    name = str(meta.get("name") or "")
    if not name:
        yield meta.refuse("is missing", "name")
    elif kind == "CustomResourceDefinition":
        return  # its own check compares the name with what it defines
    elif not is_name(name):
        yield meta.refuse(f"must be {words}, and is {quoted(name)}", "name")
    elif len(name) > _SHORT_NAMES.get(kind, len(name)):
        yield meta.refuse(f"must have at most {_SHORT_NAMES[kind]} characters, and has {len(name)}", "name")
    elif kind == "PriorityClass" and name.startswith(_RESERVED_PRIORITIES):
        yield meta.refuse(f"must not begin with {_RESERVED_PRIORITIES}, which Kubernetes keeps for itself", "name")


def _check_owners(meta: ObjectNode) -> Iterator[FieldRefusal]:
    for owner in meta.items("ownerReferences"):
        group, _, version = str(owner.get("apiVersion") or "").rpartition("/")
        for key in ("kind", "name", "uid"):
            if not owner.get(key):
                yield owner.refuse("must not be empty", key)
        if not version or "/" in group:
            yield owner.refuse_value("must be a version", "apiVersion")
        elif (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Event"):
            yield owner.refuse("must not be an Event")
    if sum(owner.get("controller") is True for owner in meta.items("ownerReferences")) > 1:
        yield meta.refuse("must name at most one controller", "ownerReferences")


def check_labels(node: ObjectNode, *keys: str) -> Iterator[FieldRefusal]:
    labels = node.at(*keys)
    for key, value in labels.value.items():
        if not forms.is_qualified_name(str(key)):
            yield labels.refuse(f"has {quoted(key)} as a key, which is no name of a label", str(key))
        if isinstance(value, str) and not forms.is_label_value(value):
            yield labels.refuse(f"must be {forms.FORMS['label-value'][1]}, and is {quoted(value)}", str(key))


def check_annotations(meta: ObjectNode) -> Iterator[FieldRefusal]:
    annotations = meta.at("annotations")
    size = 0
    for key, value in annotations.value.items():
        if not forms.is_qualified_name(str(key).lower()):
            yield annotations.refuse(f"has {quoted(key)} as a key, which is no name of an annotation", str(key))
        size += len(str(key).encode("utf-8", "replace")) + len(str(value).encode("utf-8", "replace"))
    if size > LARGEST_ANNOTATIONS_BYTES:
        yield annotations.refuse(f"must not be larger than {LARGEST_ANNOTATIONS_BYTES} bytes together, and is {size}")


def check_selector(selector: ObjectNode) -> Iterator[FieldRefusal]:
    """Check a label selector with matchLabels and matchExpressions."""
    yield from check_labels(selector, "matchLabels")
    for requirement in selector.items("matchExpressions"):
        yield from check_requirement(requirement, _ON_LABELS)


def check_requirement(requirement: ObjectNode, operators: tuple[str, ...]) -> Iterator[FieldRefusal]:
    operator, values = requirement.get("operator"), requirement.get("values") or []
    key = requirement.get("key") or ""
    if not forms.is_qualified_name(str(key)):
        yield requirement.refuse(f"must be the name of a label, and is {quoted(key)}", "key")
    if operator not in operators:
        yield requirement.refuse_value(f"must be one of {', '.join(operators)}", "operator")
    elif operator in ("In", "NotIn") and not values:
        yield requirement.refuse(f"must not be empty where the operator is {operator}", "values")
    elif operator in ("Exists", "DoesNotExist") and values:
        yield requirement.refuse(f"must be empty where the operator is {operator}", "values")
    elif operator in ("Gt", "Lt") and len(values) != 1:
        yield requirement.refuse(f"must be one number where the operator is {operator}", "values")
    for place, value in enumerate(values if isinstance(values, list) else ()):
        if operator in ("In", "NotIn") and not forms.is_label_value(str(value)):
            words = f"must be {forms.FORMS['label-value'][1]}, and is {quoted(value)}"
            yield requirement.refuse(words, "values", place)


def is_selected(selector: Any, labels: Any) -> bool:
    """Whether a label selector of a sound form takes something with `labels`; an empty one takes everything."""
    known = mapping(labels)
    if any(known.get(key) != value for key, value in mapping(value_at(selector, "matchLabels")).items()):
        return False
    for _, requirement in numbered(value_at(selector, "matchExpressions")):
        key, operator = str(requirement.get("key")), str(requirement.get("operator"))
        is_listed = known.get(key) in (requirement.get("values") or [])
        met = {"In": is_listed, "NotIn": not is_listed, "Exists": key in known, "DoesNotExist": key not in known}
        if not met.get(operator, True):
            return False
    return True
