"""What the tool crdify says of a CRD update, its false alarms and blind spots included, for those who compare with it.

It flattens each version into paths, holds the nodes at equal paths against each other keyword by keyword, and calls
"unhandled" whatever difference is left. Children stay part of their parents, those in `properties` and `items` apart.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from provisioner.errors import InvalidManifest
from provisioner.schema.definition.crd import Crd, CrdVersion
from provisioner.schema.forms import is_crd
from provisioner.schema.names import kube_order
from provisioner.values import JsonObject

UPPER = ("maximum", "maxItems", "maxLength", "maxProperties")
LOWER = ("minimum", "minItems", "minLength", "minProperties")
UNHANDLED = "unhandled"
ERROR, NONE, ALLOW = "Error", "None", "Allow"
FLAGS = ("exclusiveMinimum", "exclusiveMaximum", "uniqueItems", "nullable")
TRUE_ONLY = frozenset((*FLAGS, "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"))
POINTERS = frozenset((*UPPER, *LOWER, "multipleOf", "default", "example", "not", "items", "additionalProperties"))
EXTENSIONS = ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-list-type", "x-kubernetes-map-type")
KEPT = POINTERS | frozenset((*EXTENSIONS, "additionalItems"))
TEXTS = ("id", "$schema", "$ref", "description", "type", "format", "title", "pattern", "externalDocs", "required")
NESTED = ("properties", "patternProperties", "definitions", "dependencies")
LISTED = ("enum", "allOf", "anyOf", "oneOf", "x-kubernetes-list-map-keys", "x-kubernetes-validations")
KNOWN = KEPT | TRUE_ONLY | frozenset((*TEXTS, *NESTED, *LISTED))
SPOKEN = ("description", "title", "example", "externalDocs")

Node = dict[str, Any]
Triple = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class CrdifyConfig:
    """crdify's own configuration; as it stands, its defaults."""

    enforcement: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    unhandled: str = ERROR
    ignores_webhooks: bool = False

    @classmethod
    def of(cls, given: object) -> CrdifyConfig:
        """Read crdify's file format (validations, unhandledEnforcement, conversion); raises InvalidManifest."""
        if not isinstance(given, Mapping):
            raise InvalidManifest("a configuration of crdify is a mapping")
        listed = given.get("validations") or []
        if not isinstance(listed, list) or not all(isinstance(it, Mapping) and it.get("name") for it in listed):
            raise InvalidManifest("validations is no list of entries with a name")
        return cls(
            enforcement={str(it["name"]): str(it.get("enforcement") or ERROR) for it in listed},
            options={str(it["name"]): it.get("configuration") or {} for it in listed},
            unhandled=str(given.get("unhandledEnforcement") or ERROR),
            ignores_webhooks=given.get("conversion") == "Ignore",
        )

    def reports(self, check: str) -> bool:
        policy = self.unhandled if check == UNHANDLED else self.enforcement.get(check, ERROR)
        return policy != NONE

    def allows(self, check: str, policy: str) -> bool:
        options = self.options.get(check)
        return isinstance(options, Mapping) and options.get(policy) == ALLOW


@dataclass(frozen=True, slots=True)
class _Difference:
    """One result; `said` is what its text depends on, by which those that are no news are told."""

    check: str
    said: str


def crdify_triples(old_crd: JsonObject, new_crd: JsonObject, config: CrdifyConfig | None = None) -> list[Triple]:
    """The sorted triples (version, property, check) that crdify reports; the first two are "" for the whole CRD.

    Of served pairs the version is "v1 -> v2". A version without a schema, on which crdify crashes, is not compared.
    Raises InvalidManifest for a CRD that has not the form of one: crdify reads none of these either.
    """
    if not is_crd(old_crd) or not is_crd(new_crd):
        raise InvalidManifest("one of the two has not the form of a CRD")
    settings = config or CrdifyConfig()
    old, new = Crd(old_crd), Crd(new_crd)
    found = {("", "", check) for check in _of_crd(old, new)}
    for version in old.versions:
        found |= {(version.name, path, it.check) for path, it in _pair(version, new.version(version.name), settings)}
    found |= {(pair, path, it.check) for pair, path, it in _served_news(old, new, settings)}
    return sorted(triple for triple in found if settings.reports(triple[2]))


def _of_crd(old: Crd, new: Crd) -> Iterator[str]:
    if old.scope != new.scope:
        yield "scope"
    names = {version.name for version in new.versions}
    status = old.body.get("status")
    stored = status.get("storedVersions") if isinstance(status, Mapping) else None
    if isinstance(stored, list) and not set(map(str, stored)) <= names:
        yield "storedVersionRemoval"
    for version in old.versions:
        now = new.version(version.name)
        if now is not None and version.schema and now.schema and not _flat(version).keys() <= _flat(now).keys():
            yield "existingFieldRemoval"


def _served_news(old: Crd, new: Crd, config: CrdifyConfig) -> Iterator[tuple[str, str, _Difference]]:
    if config.ignores_webhooks and new.uses_webhook:
        return
    known = set(_served(old, config))
    yield from (it for it in _served(new, config) if it not in known)


def _served(crd: Crd, config: CrdifyConfig) -> Iterator[tuple[str, str, _Difference]]:
    """The differences from each served version to each more preferred one."""
    served = sorted(crd.served_versions, key=lambda it: kube_order(it.name))
    for old, new in combinations(served, 2):
        yield from ((f"{old.name} -> {new.name}", path, it) for path, it in _pair(old, new, config))


def _pair(old: CrdVersion, new: CrdVersion | None, config: CrdifyConfig) -> Iterator[tuple[str, _Difference]]:
    if new is None or old.schema is None or new.schema is None or old.schema == new.schema == {}:
        return
    after = _flat(new)
    for path, node in _flat(old).items():
        yield from ((path, found) for found in _compare(_own(node), _own(after.get(path, {})), config))


def _compare(old: Node, new: Node, config: CrdifyConfig) -> Iterator[_Difference]:
    for check, compare in COMPARATORS.items():
        if compare(old, new, config):
            yield _Difference(check, _text([old.get(check), new.get(check)]))
    rest = {name for name in old.keys() | new.keys() if _text(old.get(name)) != _text(new.get(name))}
    left = sorted(rest - COMPARATORS.keys())
    if left:
        yield _Difference(UNHANDLED, _text([[old.get(name), new.get(name)] for name in left]))


def _changed(name: str) -> Callable[[Node, Node, CrdifyConfig], bool]:
    return lambda old, new, _: _text(old.get(name)) != _text(new.get(name))


def _default(old: Node, new: Node, _: CrdifyConfig) -> bool:
    """Byte by byte: the order of fields counts."""
    return json.dumps(old.get("default")) != json.dumps(new.get("default"))


def _lower_limit(name: str, sign: int) -> Callable[[Node, Node, CrdifyConfig], bool]:
    """Whether the limit is new or, taken with `sign`, became smaller."""

    def is_tighter(old: Node, new: Node, _: CrdifyConfig) -> bool:
        if name not in new:
            return False
        return name not in old or sign * new[name] < sign * old[name]

    return is_tighter


def _enum(old: Node, new: Node, config: CrdifyConfig) -> bool:
    before, after = ({json.dumps(it) for it in node.get("enum", ())} for node in (old, new))
    if not before or before - after:
        return bool(before or after)
    return bool(after - before) and not config.allows("enum", "additionPolicy")


def _required(old: Node, new: Node, _: CrdifyConfig) -> bool:
    return not set(new.get("required", ())) <= set(old.get("required", ()))


def _pattern(old: Node, new: Node, config: CrdifyConfig) -> bool:
    before, after = old.get("pattern"), new.get("pattern")
    if before and not after:
        return not config.allows("pattern", "removalPolicy")
    return bool(before != after)


def _nullable(old: Node, new: Node, config: CrdifyConfig) -> bool:
    before, after = bool(old.get("nullable")), bool(new.get("nullable"))
    return before != after and not config.allows("nullable", "additionPolicy" if after else "removalPolicy")


def _one_of(old: Node, new: Node, config: CrdifyConfig) -> bool:
    before, after = ({_text(_wordless(it)) for it in node.get("oneOf", ())} for node in (old, new))
    may_add, may_remove = config.allows("oneOf", "additionPolicy"), config.allows("oneOf", "removalPolicy")
    if not before and after:
        return not may_add or _text(_wordless({**old, "oneOf": None})) not in after
    return bool(before - after and not may_remove) or bool(after - before and not may_add)


COMPARATORS: dict[str, Callable[[Node, Node, CrdifyConfig], bool]] = {
    "default": _default,
    "description": _changed("description"),
    "enum": _enum,
    **{name: _lower_limit(name, 1) for name in UPPER},
    **{name: _lower_limit(name, -1) for name in LOWER},
    "required": _required,
    "type": _changed("type"),
    "pattern": _pattern,
    "nullable": _nullable,
    "oneOf": _one_of,
}


def _own(node: Node) -> Node:
    return {name: value for name, value in node.items() if name not in ("properties", "items")}


def _wordless(node: Node) -> Node:
    return {name: value for name, value in node.items() if name not in SPOKEN and value is not None}


def _flat(version: CrdVersion) -> dict[str, Node]:
    """All nodes by their dotted paths, in which nothing is escaped: of two at one path the last one counts."""
    found: dict[str, Node] = {}
    waiting = [("^", _node(version.schema))]
    while waiting:
        path, node = waiting.pop()
        found[path] = node
        waiting += _children(path, node)
    return found


def _children(path: str, node: Node) -> Iterator[tuple[str, Node]]:
    for name in ("not", "items", "additionalProperties", "additionalItems"):
        if isinstance(node.get(name), dict):
            yield f"{path}.{name}", node[name]
    for name in ("items", "allOf", "anyOf", "oneOf"):
        if isinstance(node.get(name), list):
            yield from ((f"{path}.{name}[{place}]", it) for place, it in enumerate(node[name]))
    for name, it in node.get("properties", {}).items():
        yield f"{path}.{name}", it
    for group in NESTED[1:]:
        yield from ((f"{path}.{group}[{name}]", it) for name, it in node.get(group, {}).items() if isinstance(it, dict))


def _node(given: object) -> Node:
    """A schema as Go's type holds it: only known keywords, and no empty values but those that are pointers there."""
    found: Node = {}
    for name, value in given.items() if isinstance(given, Mapping) else ():
        if name not in KNOWN or value is None or (name not in KEPT and not value):
            continue
        if name in NESTED and isinstance(value, Mapping):
            found[name] = {key: _node(it) if it is None or isinstance(it, Mapping) else it for key, it in value.items()}
        elif name in ("allOf", "anyOf", "oneOf") or (name == "items" and isinstance(value, list)):
            found[name] = [_node(it) for it in value]
        elif name in ("not", "items", "additionalProperties", "additionalItems") and isinstance(value, Mapping):
            found[name] = _node(value)
        else:
            found[name] = value
    return found


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=dict)
