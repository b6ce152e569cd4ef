"""What one list of RBAC rules permits, decided as the Kubernetes API server decides it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from provisioner.errors import TooManyRights
from provisioner.rbac.held import HeldRules, atoms_of, parts, remainder
from provisioner.rbac.policy import ANY, FIELDS, PolicyRule
from provisioner.values import AccessRequest

# One atom takes about 40 microseconds to compare, to join and to show; the largest role that Kubernetes itself has is
# some hundred atoms. What is covered as a whole, or in pieces, does not count.
MAX_ATOMS = 10_000


@dataclass(frozen=True, slots=True)
class Coverage:
    """Whether one list of rules holds all that another grants; `missing` has one rule for each resource not covered."""

    covered: bool
    missing: tuple[PolicyRule, ...] = ()

    def __bool__(self) -> bool:
        return self.covered


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
    What a rule covers as a whole is never broken down. Raises TooManyRights where more than MAX_ATOMS are left.
    """
    held, wanted = HeldRules(owner), list(servant)
    missing = [atom for part in left_over(held, wanted) for atom in breakdown(part) if not held.covering(atom)]
    return Coverage(not missing, tuple(_joined_verbs(missing)))


def holds(owner: Iterable[PolicyRule], servant: Iterable[PolicyRule]) -> bool:
    """What `covers` says, without what is missing, so that the number of rights does not count."""
    return not remainder(HeldRules(owner), servant, is_cut=True)


def left_over(held: HeldRules, servant: Iterable[PolicyRule]) -> list[PolicyRule]:
    """The parts of `servant` that `covers` has to break down; raises TooManyRights past MAX_ATOMS."""
    wanted = list(servant)
    left = remainder(held, wanted, is_cut=False)
    if atoms_of(left) > MAX_ATOMS:
        left = remainder(held, wanted, is_cut=True)
    _refuse_too_many(left)
    return left


def allows(rules: Iterable[PolicyRule], request: AccessRequest) -> bool:
    """Whether one of `rules` permits `request`; where the rules apply is the caller's to know."""
    return any(allows_by(rule, request) for rule in rules)


def allows_by(rule: PolicyRule, request: AccessRequest) -> bool:
    """Whether this one rule permits `request`."""
    if not _has(rule.verbs, request.verb):
        return False
    if request.path:
        return any(
            url in (ANY, request.path) or (url.endswith(ANY) and request.path.startswith(url.rstrip(ANY)))
            for url in rule.non_resource_urls
        )
    if not _has(rule.api_groups, request.group) or not _resource_matches(rule, request):
        return False
    return not rule.resource_names or request.name in rule.resource_names


def compact(rules: Iterable[PolicyRule]) -> list[PolicyRule]:
    """The same rights in few rules: atoms covered by another atom dropped, verbs of one resource joined, sorted.

    Raises TooManyRights past MAX_ATOMS.
    """
    widest = _widest(rules)
    _refuse_too_many(widest)
    atoms = sorted({atom for part in widest for atom in breakdown(part)}, key=_specificity)
    kept = _widest(atoms)
    joined: dict[tuple[Any, ...], list[str]] = {}
    for atom in kept:
        key = (atom.api_groups, atom.resources, atom.resource_names, atom.non_resource_urls)
        joined.setdefault(key, []).append(atom.verbs[0])
    return [
        PolicyRule(tuple(sorted(verbs)), groups, resources, names, urls)
        for (groups, resources, names, urls), verbs in sorted(joined.items())
    ]


def minimal(rules: Iterable[PolicyRule]) -> list[PolicyRule]:
    """Exactly the same rights in as few rules as people would write: names, resources, groups and URLs joined, too.

    Raises TooManyRights past MAX_ATOMS, but for one rule alone, which needs no breaking down.
    """
    widest = _widest(rules)
    if len(widest) == 1:
        # `part` with each list sorted, and without the entries that another entry of the list covers.
        part = widest[0]
        lists = {}
        for name in FIELDS:
            one = {value: _with(part, name, (value,)) for value in getattr(part, name)}
            lists[name] = tuple(sorted(getattr(rule, name)[0] for rule in _widest(one.values()))) if one else ()
        return [PolicyRule(**lists)]
    found = compact(widest)
    for field in ("resource_names", "resources", "api_groups", "non_resource_urls"):
        # Rules that differ in `field` only, as one. An empty list is another thing than a listed one, and stays apart.
        joined: dict[PolicyRule, set[str]] = {}
        alone: list[PolicyRule] = []
        for rule in found:
            values = getattr(rule, field)
            if values:
                joined.setdefault(_with(rule, field, ()), set()).update(values)
            else:
                alone.append(rule)
        found = [*alone, *(_with(rule, field, tuple(sorted(values))) for rule, values in joined.items())]
    return sorted(found, key=lambda it: (it.non_resource_urls, it.api_groups, it.resources, it.resource_names))


def _widest(rules: Iterable[PolicyRule]) -> list[PolicyRule]:
    """The parts of `rules` that no other part covers as a whole; of two that cover each other the first."""
    known = list(dict.fromkeys(part for rule in rules for part in parts(rule)))
    held = HeldRules(known)
    left = (1 << len(known)) - 1
    for place, part in enumerate(known):
        if held.covering(part) & left & ~(1 << place):
            left &= ~(1 << place)
    return list(held.at(left))


def _refuse_too_many(left: list[PolicyRule]) -> None:
    found = atoms_of(left)
    if found > MAX_ATOMS:
        raise TooManyRights(
            f"found {found} single rights (verb, group, resource and name) to compare one by one, "
            f"allowed are {MAX_ATOMS}: grant fewer in one rule, or split the role",
            found=found,
        )


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


def _resource_matches(rule: PolicyRule, request: AccessRequest) -> bool:
    wanted = f"{request.resource}/{request.subresource}" if request.subresource else request.resource
    if _has(rule.resources, wanted):
        return True
    return bool(request.subresource) and f"{ANY}/{request.subresource}" in rule.resources


def _has(values: tuple[str, ...], wanted: str) -> bool:
    return ANY in values or wanted in values
