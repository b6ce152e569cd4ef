"""What the API server chooses: fields that content leaves to it, by leaving them out or by setting them to nothing.

"", 0, null, [] and {} of such a field are no wish. Sent, they do harm once the object is made: the server's choice
stands there and never changes, and of a field that tells the items of a list apart it takes nothing for another item.
So they are left out of what is sent, and of what an answer is held against. Which fields these are was found by setting
each field of the built-in kinds to nothing (tests/provisioner/cluster/apply/test_zero_values.py). Pure.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from provisioner.builtin import POD_PATHS
from provisioner.values import GroupKind, JsonObject, ObjectRef

_ANY = "*"
_Path = tuple[str, ...]
_POD = GroupKind("", "Pod")

# What the server chooses anew on each call, a dry-run included: compared only where the content itself sets it.
_CHOSEN: dict[GroupKind, tuple[_Path, ...]] = {
    GroupKind("", "Service"): (
        ("spec", "clusterIP"),
        ("spec", "clusterIPs"),
        ("spec", "healthCheckNodePort"),
        ("spec", "ports", _ANY, "nodePort"),
    ),
    GroupKind("batch", "Job"): (
        ("spec", "selector"),
        ("metadata", "labels", "controller-uid"),
        ("metadata", "labels", "batch.kubernetes.io/controller-uid"),
        ("spec", "template", "metadata", "labels", "controller-uid"),
        ("spec", "template", "metadata", "labels", "batch.kubernetes.io/controller-uid"),
    ),
    _POD: (
        ("spec", "volumes"),
        ("spec", "containers", _ANY, "volumeMounts"),
        ("spec", "initContainers", _ANY, "volumeMounts"),
    ),
}
# What the server fills in, the same on each call: a key of a list's items, or what never changes from then on. 0 is a
# wish here: a Job with a parallelism of 0 stands still.
_FILLED_IN: dict[GroupKind, tuple[_Path, ...]] = {
    GroupKind("", "ConfigMap"): (("data",), ("binaryData",)),
    _POD: (("spec", "nodeName"),),
    GroupKind("", "Secret"): (("data",), ("stringData",)),
    GroupKind("", "Service"): (("spec", "ports", _ANY, "protocol"),),
    GroupKind("", "ServiceAccount"): (("secrets", _ANY, "name"),),
    GroupKind("batch", "Job"): (("spec", "completions"), ("spec", "parallelism")),
}
_OF_PODS: tuple[_Path, ...] = (
    ("containers", _ANY, "ports", _ANY, "protocol"),
    ("initContainers", _ANY, "ports", _ANY, "protocol"),
    ("imagePullSecrets", _ANY, "name"),
)
# The volume of the account's token, which each pod is given, has a name with random letters.
_TOKEN_VOLUME = re.compile(r"kube-api-access-[a-z0-9]{5}")
_TOKEN_PLACES: tuple[_Path, ...] = (
    ("spec", "volumes", _ANY),
    ("spec", "containers", _ANY, "volumeMounts", _ANY),
    ("spec", "initContainers", _ANY, "volumeMounts", _ANY),
)
_POD_GROUPS = frozenset({"", "apps", "batch"})
# By these the items of a list are told apart, the first that an item has.
_KEYS = ("name", "port")


def as_sent(body: JsonObject) -> JsonObject:
    """What is sent of an object of the content: without the fields that it sets to nothing and leaves to the server."""
    kind, found = ObjectRef.of(body).group_kind, body
    for path in _CHOSEN.get(kind, ()):
        found = _without(found, path, _is_nothing)
    for path in _filled_in(kind):
        found = _without(found, path, _is_empty)
    return found


def remove_choices(shown: dict[str, Any], wished: JsonObject) -> None:
    """Take from `shown` what the server chose, which `wished`, the object of the content, does not set itself."""
    for path in _CHOSEN.get(ObjectRef.of(wished).group_kind, ()):
        _remove(shown, wished, path)
    for path in _TOKEN_PLACES if ObjectRef.of(wished).group_kind == _POD else ():
        for item in _items(shown, path):
            if _TOKEN_VOLUME.fullmatch(str(item.get("name"))):
                item["name"] = "kube-api-access"


@functools.cache
def _filled_in(kind: GroupKind) -> tuple[_Path, ...]:
    place = POD_PATHS.get(kind.kind) if kind.group in _POD_GROUPS else None
    of_pods = [(*place, *path) for path in _OF_PODS] if place is not None else []
    return (*_FILLED_IN.get(kind, ()), *of_pods)


def _is_nothing(value: object) -> bool:
    return _is_empty(value) or (value == 0 and value is not False) or value == []


def _is_empty(value: object) -> bool:
    return value is None or value in ("", {})


def _without(value: Any, path: _Path, is_left: Callable[[object], bool]) -> Any:
    """`value`, or a copy of it without what is left to the server at `path`; what does not change is shared."""
    first, rest = path[0], path[1:]
    if first == _ANY:
        if not isinstance(value, list):
            return value
        kept = [_without(item, rest, is_left) for item in value]
        return value if all(item is other for item, other in zip(kept, value, strict=True)) else kept
    if not isinstance(value, Mapping) or first not in value:
        return value
    if not rest:
        return {key: inner for key, inner in value.items() if key != first} if is_left(value[first]) else value
    inner = _without(value[first], rest, is_left)
    return value if inner is value[first] else {**value, first: inner}


def _remove(shown: object, wished: object, path: _Path) -> None:
    first, rest = path[0], path[1:]
    if isinstance(shown, list) and first == _ANY:
        for item in shown:
            # The item of the content that became this one; None where the server, or somebody else, put it there.
            wishes = [wish for wish in wished if isinstance(wish, Mapping)] if isinstance(wished, list) else []
            keys = [next((name for name in _KEYS if wish.get(name)), "") for wish in wishes]
            same = (
                wish
                for key, wish in zip(keys, wishes, strict=True)
                if key and isinstance(item, Mapping) and wish[key] == item.get(key)
            )
            _remove(item, next(same, None), rest)
    elif isinstance(shown, dict):
        wish = wished.get(first) if isinstance(wished, Mapping) else None
        if rest:
            _remove(shown.get(first), wish, rest)
        elif _is_nothing(wish):
            shown.pop(first, None)


def _items(value: object, path: _Path) -> Iterator[dict[str, Any]]:
    if not path:
        yield from [value] if isinstance(value, dict) else []
    elif path[0] == _ANY:
        for item in value if isinstance(value, list) else ():
            yield from _items(item, path[1:])
    elif isinstance(value, dict):
        yield from _items(value.get(path[0]), path[1:])
