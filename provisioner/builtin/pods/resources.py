"""Requests and limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from provisioner.builtin import forms
from provisioner.builtin.changes import FieldRefusal, Path, quoted
from provisioner.json_values import as_mapping, value_at

_HUGE = "hugepages-"
_NEEDED = frozenset({"cpu", "memory"})
_STANDARD_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})


def of_resources(resources: Any, path: Path) -> Iterator[FieldRefusal]:
    limits, requests = as_mapping(value_at(resources, "limits")), as_mapping(value_at(resources, "requests"))
    for part, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            yield from _of_amount(str(name), amount, (*path, part, str(name)))
    if any(name.startswith(_HUGE) for name in {*limits, *requests}) and not _NEEDED & {*limits, *requests}:
        yield FieldRefusal(path, "must ask for cpu or memory beside huge pages")
    for name, amount in requests.items():
        asked, most = forms.quantity(amount), forms.quantity(limits.get(name))
        where = (*path, "requests", str(name))
        if asked is not None and most is not None and asked > most:
            yield FieldRefusal(where, f"must not be above the limit {quoted(limits[name])}, and is {quoted(amount)}")
        elif _is_whole(str(name)) and asked != most:
            yield FieldRefusal(where, "must be the same as the limit")


def _of_amount(name: str, amount: Any, path: Path) -> Iterator[FieldRefusal]:
    found = forms.quantity(amount)
    if found is not None and found < 0:
        yield FieldRefusal(path, f"must not be below 0, and is {quoted(amount)}")
    if not _is_resource(name):
        yield FieldRefusal(path, f"names no resource of a container: {quoted(name)}")
    elif found is not None and _is_extended(name) and found != found.to_integral_value():
        yield FieldRefusal(path, f"must be a whole number, and is {quoted(amount)}")


def _is_resource(name: str) -> bool:
    if "/" in name:
        return forms.is_qualified_name(name)
    return name in _STANDARD_RESOURCES or name.startswith(_HUGE)


def _is_extended(name: str) -> bool:
    domain, slash, _ = name.partition("/")
    return bool(slash) and domain != "kubernetes.io" and not domain.endswith(".kubernetes.io")


def _is_whole(name: str) -> bool:
    """Resources that cannot be promised twice."""
    return name.startswith(_HUGE) or _is_extended(name)
