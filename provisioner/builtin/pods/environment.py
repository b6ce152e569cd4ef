"""Variables of a container, and the fields of its pod that they may read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.builtin import forms
from provisioner.builtin.changes import FieldRefusal, Path, numbered, quoted
from provisioner.json_values import as_mapping, value_at

_SOURCES = ("configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef")
_FIELD_PATHS = frozenset(
    [
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    ]
)
_BY_KEY = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")


def of_environment(container: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    for place, one in numbered(container.get("env")):
        where = (*path, "env", place)
        name, source = one.get("name"), one.get("valueFrom")
        if isinstance(name, str) and name and not forms.is_environment_name(name):
            yield FieldRefusal((*where, "name"), f"must be {forms.FORMS['environment'][1]}, and is {quoted(name)}")
        if source is not None:
            if one.get("value"):
                yield FieldRefusal((*where, "valueFrom"), "must not be set beside a value")
            yield from _of_source(source, (*where, "valueFrom"))
    for place, one in numbered(container.get("envFrom")):
        prefix = one.get("prefix")
        if isinstance(prefix, str) and prefix and not forms.is_environment_name(prefix):
            words = f"must be {forms.FORMS['environment'][1]}, and is {quoted(prefix)}"
            yield FieldRefusal((*path, "envFrom", place, "prefix"), words)
        if (one.get("configMapRef") is None) == (one.get("secretRef") is None):
            yield FieldRefusal((*path, "envFrom", place), "must name one source")


def _of_source(source: Any, path: Path) -> Iterator[FieldRefusal]:
    found = [key for key in _SOURCES if as_mapping(source).get(key) is not None]
    if len(found) != 1:
        yield FieldRefusal(path, "must name one source" if found else "must name a source")
    field = value_at(source, "fieldRef", "fieldPath")
    if isinstance(field, str) and field and field not in _FIELD_PATHS and not is_by_key(field):
        yield FieldRefusal((*path, "fieldRef", "fieldPath"), f"names no field that can be read: {quoted(field)}")
    for key in ("configMapKeyRef", "secretKeyRef"):
        if as_mapping(source).get(key) is not None:
            name = str(value_at(as_mapping(source)[key], "name") or "")
            if not forms.is_subdomain(name):
                yield FieldRefusal(
                    (*path, key, "name"), f"must be {forms.FORMS['subdomain'][1]}, and is {quoted(name)}"
                )
    measured = as_mapping(value_at(source, "resourceFieldRef"))
    if not _is_divisor(str(measured.get("resource")), measured.get("divisor")):
        words = f"does not divide {measured.get('resource')}: {quoted(measured['divisor'])}"
        yield FieldRefusal((*path, "resourceFieldRef", "divisor"), words)


_DIVISORS = {forms.quantity(f"1{unit}") for unit in ("", *"kMGTPE", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")}


def _is_divisor(resource: str, divisor: Any) -> bool:
    found = forms.quantity(divisor)
    if not found:
        return True
    if resource.endswith(".cpu"):
        return found in (forms.quantity("1m"), 1)
    return found in _DIVISORS


def is_by_key(field: str) -> bool:
    match = _BY_KEY.fullmatch(field)
    return match is not None and forms.is_qualified_name(match[2].lower())
