"""What one list of RBAC rules permits, decided as the Kubernetes API server decides it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from provisioner.errors import InvalidManifest
from provisioner.values import AccessRequest

ANY = "*"
FIELDS = {
    "api_groups": "apiGroups",
    "resources": "resources",
    "non_resource_urls": "nonResourceURLs",
    "resource_names": "resourceNames",
    "verbs": "verbs",
}


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """One rule of a Role or ClusterRole; an empty tuple means what an absent list means to Kubernetes."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = ()

    @classmethod
    def from_object(cls, obj: Mapping[str, Any]) -> PolicyRule:
        """The rule as a manifest writes it.

        Raises InvalidManifest where a list of strings is something else: what such a rule grants cannot be told.
        """
        if not isinstance(obj, Mapping):
            raise InvalidManifest(f"a rule must be an object, found {type(obj).__name__}")
        return cls(**{name: _strings(obj, key) for name, key in FIELDS.items()})

    def to_object(self) -> dict[str, list[str]]:
        """The rule as a manifest writes it, empty lists left out but for `verbs`."""
        lists = {key: list(getattr(self, name)) for name, key in FIELDS.items()}
        return {key: values for key, values in lists.items() if values or key == "verbs"}

    def __str__(self) -> str:
        """The form of the API server's escalation messages."""
        parts = [
            f"{name}:[{' '.join(json.dumps(value, ensure_ascii=False) for value in values)}]"
            for name, values in (
                ("APIGroups", self.api_groups),
                ("Resources", self.resources),
                ("NonResourceURLs", self.non_resource_urls),
                ("ResourceNames", self.resource_names),
                ("Verbs", self.verbs),
            )
            if values
        ]
        return "{" + ", ".join(parts) + "}"


@dataclass(frozen=True, slots=True)
class Coverage:
    """Whether one list of rules holds all that another grants; `missing` has one rule for each resource not covered."""

    covered: bool
    missing: tuple[PolicyRule, ...] = ()

    def __bool__(self) -> bool:
        return self.covered


FULL_AUTHORITY = (
    PolicyRule(verbs=(ANY,), api_groups=(ANY,), resources=(ANY,)),
    PolicyRule(verbs=(ANY,), non_resource_urls=(ANY,)),
)


def breakdown(rule: PolicyRule) -> list[PolicyRule]:
    """The atoms of `rule`: one group, resource, verb and at most one name each, or one URL and verb.

    A rule without verbs, groups or resources grants nothing and has no atoms.
    """
    named: tuple[tuple[str, ...], ...] = tuple((name,) for name in rule.resource_names) or ((),)
    atoms = [
        PolicyRule(verbs=(verb,), api_groups=(group,), resources=(resource,), resource_names=names)
        for group in rule.api_groups
        for resource in rule.resources
        for verb in rule.verbs
        for names in named
    ]
    atoms += [
        PolicyRule(verbs=(verb,), non_resource_urls=(url,)) for url in rule.non_resource_urls for verb in rule.verbs
    ]
    return atoms


def covers(owner: Iterable[PolicyRule], servant: Iterable[PolicyRule]) -> Coverage:
    """Whether `owner` holds every right that `servant` grants, by the API server's escalation check.

    An atom must be covered by one owner rule alone, and a wildcard only by a wildcard: all verbs listed are not `*`.
    """
    by_verb: dict[str, list[PolicyRule]] = {}
    for rule in owner:
        for verb in set(rule.verbs):
            by_verb.setdefault(verb, []).append(rule)
    everything = by_verb.get(ANY, [])
    missing = [
        atom
        for rule in servant
        for atom in breakdown(rule)
        if not any(_covers_atom(held, atom) for held in (*everything, *by_verb.get(atom.verbs[0], ())))
    ]
    return Coverage(not missing, tuple(_joined_verbs(missing)))


def allows(rules: Iterable[PolicyRule], request: AccessRequest) -> bool:
    """Whether one of `rules` permits `request`; where the rules apply is the caller's to know."""
    return any(allows_by(rule, request) for rule in rules)


def allows_by(rule: PolicyRule, request: AccessRequest) -> bool:
    """Whether this one rule permits `request`."""
    if not _has(rule.verbs, request.verb):
        return False
    if request.path:
        return any(_url_covers(url, request.path) for url in rule.non_resource_urls)
    if not _has(rule.api_groups, request.group) or not _resource_matches(rule, request):
        return False
    return not rule.resource_names or request.name in rule.resource_names


def compact(rules: Iterable[PolicyRule]) -> list[PolicyRule]:
    """The same rights in few rules: atoms covered by another atom dropped, verbs of one resource joined, sorted."""
    atoms = sorted({atom for rule in rules for atom in breakdown(rule)}, key=_specificity)
    kept: list[PolicyRule] = []
    by_verb: dict[str, list[PolicyRule]] = {}
    for atom in atoms:
        verb = atom.verbs[0]
        if any(_covers_atom(held, atom) for held in (*by_verb.get(ANY, ()), *by_verb.get(verb, ()))):
            continue
        kept.append(atom)
        by_verb.setdefault(verb, []).append(atom)
    joined: dict[tuple[Any, ...], list[str]] = {}
    for atom in kept:
        key = (atom.api_groups, atom.resources, atom.resource_names, atom.non_resource_urls)
        joined.setdefault(key, []).append(atom.verbs[0])
    return [
        PolicyRule(tuple(sorted(verbs)), groups, resources, names, urls)
        for (groups, resources, names, urls), verbs in sorted(joined.items())
    ]


def minimal(rules: Iterable[PolicyRule]) -> list[PolicyRule]:
    """Exactly the same rights in as few rules as people would write: names, resources, groups and URLs joined, too."""
    found = compact(rules)
    for field in ("resource_names", "resources", "api_groups", "non_resource_urls"):
        found = _joined_by(found, field)
    return sorted(found, key=lambda it: (it.non_resource_urls, it.api_groups, it.resources, it.resource_names))


def _joined_by(rules: list[PolicyRule], field: str) -> list[PolicyRule]:
    """Rules that differ in `field` only, as one. An empty list is another thing than a listed one, and stays apart."""
    joined: dict[PolicyRule, set[str]] = {}
    alone: list[PolicyRule] = []
    for rule in rules:
        values = getattr(rule, field)
        if values:
            joined.setdefault(_without(rule, field), set()).update(values)
        else:
            alone.append(rule)
    return [*alone, *(_with(rule, field, tuple(sorted(values))) for rule, values in joined.items())]


def _without(rule: PolicyRule, field: str) -> PolicyRule:
    return _with(rule, field, ())


def _with(rule: PolicyRule, field: str, values: tuple[str, ...]) -> PolicyRule:
    lists = {name: getattr(rule, name) for name in FIELDS}
    return PolicyRule(**{**lists, field: values})


def _specificity(atom: PolicyRule) -> tuple[int, int, PolicyRule | str]:
    """Wide atoms first, so that each narrower one is held against all that may cover it."""
    texts = (*atom.verbs, *atom.api_groups, *atom.resources, *atom.non_resource_urls)
    wildcards = sum(text == ANY for text in texts) * 2 + sum(ANY in text and text != ANY for text in texts)
    return (-wildcards, len(atom.resource_names), str(atom))


def _joined_verbs(atoms: list[PolicyRule]) -> list[PolicyRule]:
    """Atoms that differ only by verb joined in order of appearance; URL atoms stay alone and stand first."""
    joined: dict[tuple[Any, ...], PolicyRule] = {}
    for atom in atoms:
        if atom.non_resource_urls:
            continue
        key = (atom.api_groups, atom.resources, atom.resource_names)
        known = joined.get(key)
        joined[key] = replace(known, verbs=known.verbs + atom.verbs) if known else atom
    return [*(atom for atom in atoms if atom.non_resource_urls), *joined.values()]


def _covers_atom(held: PolicyRule, atom: PolicyRule) -> bool:
    """Whether `held`, whose verb already fits, covers the one-verb rule `atom`."""
    if atom.non_resource_urls:
        path = atom.non_resource_urls[0]
        return not held.resource_names and any(_url_covers(url, path) for url in held.non_resource_urls)
    if not _has(held.api_groups, atom.api_groups[0]) or not _resource_covers(held, atom.resources[0]):
        return False
    if not held.resource_names:
        return True
    return bool(atom.resource_names) and atom.resource_names[0] in held.resource_names


def _resource_covers(held: PolicyRule, resource: str) -> bool:
    if _has(held.resources, resource):
        return True
    _, slash, subresource = resource.partition("/")
    return bool(slash) and f"{ANY}/{subresource}" in held.resources


def _resource_matches(rule: PolicyRule, request: AccessRequest) -> bool:
    wanted = f"{request.resource}/{request.subresource}" if request.subresource else request.resource
    if _has(rule.resources, wanted):
        return True
    return bool(request.subresource) and f"{ANY}/{request.subresource}" in rule.resources


def _url_covers(held: str, path: str) -> bool:
    return held in (ANY, path) or (held.endswith(ANY) and path.startswith(held.rstrip(ANY)))


def _has(values: tuple[str, ...], wanted: str) -> bool:
    return ANY in values or wanted in values


def _strings(obj: Mapping[str, Any], key: str) -> tuple[str, ...]:
    values = obj.get(key)
    if values is None:
        return ()
    if not isinstance(values, list | tuple) or not all(isinstance(value, str) for value in values):
        raise InvalidManifest(f"{key} of a rule must be a list of strings, found {values!r}")
    return tuple(values)
