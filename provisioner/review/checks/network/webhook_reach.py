"""What a webhook or a policy sees: which namespaces and objects its selectors let in, and whether that is more or less
than before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from provisioner.review.base.facts import StateFacts, items, mapping, maps
from provisioner.selectors import selects

SYSTEM = "kube-system"
NAME_LABEL = "kubernetes.io/metadata.name"
_ALL_OPERATIONS = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})
# Kinds that an older group has as well, with the one they are in today.
_MOVED_FROM = {
    ("extensions", "ingresses"): "networking.k8s.io",
    ("extensions", "networkpolicies"): "networking.k8s.io",
    ("extensions", "daemonsets"): "apps",
    ("extensions", "deployments"): "apps",
    ("extensions", "replicasets"): "apps",
    ("events.k8s.io", "events"): "",
}
Body = Mapping[str, Any]


def namespace_labels(state: StateFacts, name: str) -> dict[str, Any]:
    """The labels of a namespace as far as they are known: the one that the API server sets, and those of its objects.

    What is not known to be there counts as absent, so that a selector that asks for a label lets nothing in.
    """
    return {**state.once("labels of namespaces", _labels_by_namespace).get(name, {}), NAME_LABEL: name}


def _labels_by_namespace(state: StateFacts) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for ref, obj in state.named:
        if (ref.group, ref.kind) == ("", "Namespace"):
            found.setdefault(ref.name, {}).update(mapping(mapping(obj.get("metadata")).get("labels")))
    return found


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
    return bool(no_longer_seen(maps(after.get("rules")), maps(before.get("rules"))))


def no_longer_seen(
    before: Iterable[Body], after: Iterable[Body], *, is_equivalent: bool = False
) -> list[dict[str, str | list[str]]]:
    """What rules of `before` reach and no rule of `after` does, sorted: operation, resource and names of objects.

    `is_equivalent` rules (matchPolicy) are asked about the same objects in whatever version and group.
    """
    now = _reach(after)
    if is_equivalent:
        now = {one.in_any_version for one in now}
    old = ((one, one.in_its_own_group if is_equivalent else one) for one in _reach(before))
    lost = sorted({one.shown for one, meant in old if not any(rule.holds(meant) for rule in now)})
    return [{"operation": operation, "resource": what, "names": [*names]} for operation, what, names in lost]


@dataclass(frozen=True, slots=True)
class _Reached:
    """One group, version, resource and operation in the words of a rule, where `*` is all of them.

    `names` are those of the objects that it is limited to, empty for all.
    """

    group: str
    version: str
    resource: str
    operation: str
    scope: str
    names: frozenset[str] = frozenset()

    @property
    def shown(self) -> tuple[str, str, tuple[str, ...]]:
        what = self.resource if self.group in {"", "*"} else f"{self.resource}.{self.group}"
        return self.operation, what, tuple(sorted(self.names))

    @property
    def in_its_own_group(self) -> _Reached:
        """The same in the group that has the kind today."""
        plural = self.resource.partition("/")[0]
        return replace(self, group=_MOVED_FROM.get((self.group, plural), self.group))

    @property
    def in_any_version(self) -> _Reached:
        return replace(self.in_its_own_group, version="*")

    def holds(self, other: _Reached) -> bool:
        pairs = ((self.group, other.group), (self.version, other.version))
        has_names = not self.names or (bool(other.names) and other.names <= self.names)
        is_wide = self.operation == other.operation and self.scope in {"*", other.scope} and has_names
        return is_wide and all(own in {"*", its} for own, its in pairs) and has_resource(self.resource, other.resource)


def has_resource(wide: str, resource: str) -> bool:
    """`*` is every resource and no subresource, `*/*` is everything, `pods/*` the subresources of pods."""
    if wide in {"*/*", resource}:
        return True
    plural, _, below = resource.partition("/")
    wide_plural, _, wide_below = wide.partition("/")
    return wide_plural in {"*", plural} and (wide_below == below or (wide_below == "*" and bool(below)))


def _reach(rules: Iterable[Body]) -> set[_Reached]:
    return {
        _Reached(str(group), str(version), str(resource), operation, str(rule.get("scope") or "*"), _names(rule))
        for rule in rules
        for group, version in product(items(rule.get("apiGroups")), items(rule.get("apiVersions")))
        for resource, operation in product(items(rule.get("resources")), _operations(rule))
    }


def _names(rule: Body) -> frozenset[str]:
    return frozenset(map(str, items(rule.get("resourceNames"))))


def _operations(rule: Body) -> set[str]:
    named = set(map(str, items(rule.get("operations"))))
    return set(_ALL_OPERATIONS) if "*" in named else named


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
