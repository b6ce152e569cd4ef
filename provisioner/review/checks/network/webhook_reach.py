"""What a webhook sees: which namespaces and objects its selectors let in, and whether that is more than before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from provisioner.review.base.facts import items, mapping, maps
from provisioner.selectors import selects
from provisioner.values import JsonObject, ObjectRef

SYSTEM = "kube-system"
NAME_LABEL = "kubernetes.io/metadata.name"
_ALL_OPERATIONS = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})
Body = Mapping[str, Any]


def namespace_labels(objects: Iterable[JsonObject], name: str) -> dict[str, Any]:
    """The labels of a namespace as far as they are known: the one that the API server sets, and those of `objects`.

    What is not known to be there counts as absent, so that a selector that asks for a label lets nothing in.
    """
    found: dict[str, Any] = {}
    for obj in objects:
        ref = ObjectRef.of(obj)
        if (ref.group, ref.kind, ref.name) == ("", "Namespace", name):
            found |= mapping(mapping(obj.get("metadata")).get("labels"))
    return {**found, NAME_LABEL: name}


def sees_namespace(webhook: Body, labels: Body) -> bool:
    """Whether objects of a namespace with these labels are in its reach."""
    return selects(webhook.get("namespaceSelector"), labels)


def sees_object(webhook: Body, labels: Body) -> bool:
    """Whether an object with these labels is."""
    return selects(webhook.get("objectSelector"), labels)


def sees_writes(rule: Body) -> bool:
    """Whether a rule is about creating or changing objects."""
    return bool(set(items(rule.get("operations"))) & {"*", "CREATE", "UPDATE"})


def sees_more(before: Body, after: Body) -> bool:
    """Whether rules reach something that they did not reach."""
    old = _reach(before)
    return not all(any(one.holds(new) for one in old) for new in _reach(after))


@dataclass(frozen=True, slots=True)
class _Reached:
    """One group, version, resource and operation in the words of a rule, where `*` is all of them."""

    group: str
    version: str
    resource: str
    operation: str
    scope: str

    def holds(self, other: _Reached) -> bool:
        pairs = ((self.group, other.group), (self.version, other.version), (self.operation, other.operation))
        is_wide = self.scope in {"*", other.scope}
        return is_wide and all(own in {"*", its} for own, its in pairs) and has_resource(self.resource, other.resource)


def has_resource(wide: str, resource: str) -> bool:
    """`*` is every resource and no subresource, `*/*` is everything, `pods/*` the subresources of pods."""
    if wide in {"*/*", resource}:
        return True
    plural, _, below = resource.partition("/")
    wide_plural, _, wide_below = wide.partition("/")
    return wide_plural in {"*", plural} and (wide_below == below or (wide_below == "*" and bool(below)))


def _reach(webhook: Body) -> set[_Reached]:
    return {
        _Reached(str(group), str(version), str(resource), operation, str(rule.get("scope") or "*"))
        for rule in maps(webhook.get("rules"))
        for group, version in product(items(rule.get("apiGroups")), items(rule.get("apiVersions")))
        for resource, operation in product(items(rule.get("resources")), _operations(rule))
    }


def _operations(rule: Body) -> set[str]:
    named = set(map(str, items(rule.get("operations"))))
    return {"*"} if named >= _ALL_OPERATIONS or "*" in named else named


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a selector asks of one label: `allowed` are its values, None for any; "" stands for nothing asked."""

    allowed: frozenset[str] | None
    refused: frozenset[str]
    presence: str

    def keeps(self, other: _Wanted) -> bool:
        """Whether all that `other` asks is asked here, too."""
        if self.presence == "absent":
            return other.presence != "present"
        if other.presence == "absent":
            return False
        if other.presence and not self.presence:
            return False
        if other.allowed is not None and (self.allowed is None or not self.allowed - self.refused <= other.allowed):
            return False
        values = self.allowed if self.allowed is not None else other.refused
        return not (values & other.refused) - self.refused


_ANYTHING = _Wanted(None, frozenset(), "")


def is_looser(before: object, after: object) -> bool:
    """Whether a label selector no longer asks for something that it asked for."""
    old, new = _asked(mapping(before)), _asked(mapping(after))
    return not all(new.get(key, _ANYTHING).keeps(wanted) for key, wanted in old.items())


def _asked(selector: Body) -> dict[str, _Wanted]:
    terms = [(str(key), "In", [value]) for key, value in mapping(selector.get("matchLabels")).items()]
    terms += [
        (str(term.get("key")), str(term.get("operator")), items(term.get("values")))
        for term in maps(selector.get("matchExpressions"))
    ]
    found: dict[str, _Wanted] = {}
    for key, operator, listed in terms:
        values, known = frozenset(map(str, listed)), found.get(key, _ANYTHING)
        match operator:
            case "In":
                allowed = values if known.allowed is None else known.allowed & values
                found[key] = _Wanted(allowed, known.refused, known.presence or "present")
            case "NotIn":
                found[key] = _Wanted(known.allowed, known.refused | values, known.presence)
            case "Exists":
                found[key] = _Wanted(known.allowed, known.refused, known.presence or "present")
            case "DoesNotExist":
                found[key] = _Wanted(known.allowed, known.refused, "absent")
    return found
