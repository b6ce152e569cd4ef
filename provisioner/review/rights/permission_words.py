"""What is said of rights, in words and as evidence; the same in reports, on pages and in the shell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from provisioner.api_groups import RBAC_GROUP
from provisioner.rbac import (
    EffectiveRules,
    Grant,
    HeldRules,
    PermissionDiff,
    PolicyRule,
    RbacSubject,
    ScopedRule,
    bits_of,
)
from provisioner.review.rules import Phrase
from provisioner.sentences import number
from provisioner.values import Content, Finding, ObjectIdentity, ObjectRef

MAX_RULES = 60
MAX_WORDS = 1_000
MAX_FIRST = 3
UNDECIDED = "what changes could not be found out, because there are too many rights to compare"
NOWHERE: Mapping[ObjectIdentity, str] = {}
WHOLE_CLUSTER = "whole cluster"
_READ, _WRITE, _DELETE = {"get", "list", "watch"}, {"create", "update", "patch"}, {"delete", "deletecollection"}


def who(subject: RbacSubject) -> str:
    """Somebody as a sentence names them."""
    return (
        f"`{subject.namespace}/{subject.name}`"
        if subject.kind == "ServiceAccount"
        else f"{subject.kind} `{subject.name}`"
    )


def ref_of(subject: RbacSubject) -> ObjectRef:
    """Somebody as a finding names them; users and groups are no objects, but have a place in the same order."""
    group = "" if subject.kind == "ServiceAccount" else RBAC_GROUP
    return ObjectRef(group, "v1", subject.kind, subject.namespace, subject.name)


def about(found: Finding, subject: object) -> Finding:
    """`found` with the name of whom it is about in its evidence, by which it is put beside others."""
    return replace(found, evidence={"subject": str(subject), **found.evidence})


def counted(rules: Sequence[ScopedRule]) -> str:
    return number(rights_in(rules), "right")


def rights_in(rules: Sequence[ScopedRule]) -> int:
    """How many verbs on how many things: a number for the eye."""
    return sum(len(rule.rule.verbs) for rule in rules)


def words_of(rules: Sequence[ScopedRule]) -> Phrase:
    """The first rules in words: get, list pods in the namespace a."""
    first = []
    for rule in rules[:MAX_FIRST]:
        verbs, objects = parts_of(rule.rule)
        scope = None if rule.rule.non_resource_urls else rule.scope
        first.append(_phrase("right", verbs=verbs, objects=objects, scope=scope))
    return _phrase("first", first=first, more=len(rules) - len(first) or None)


def parts_of(rule: PolicyRule) -> tuple[str, Phrase]:
    """A rule in words: what it lets do, and with what."""
    verbs = _phrase("any-verb") if "*" in rule.verbs else ", ".join(rule.verbs)
    objects: list[str]
    if rule.non_resource_urls:
        objects = [_phrase("every-url") if url == "*" else url for url in rule.non_resource_urls]
        return verbs, _phrase("objects", objects=objects)
    if len(rule.api_groups) * len(rule.resources) > MAX_WORDS:
        resources, groups = len(rule.resources), len(rule.api_groups)
        objects = [_phrase("many", resources=resources, groups=groups)]
    else:
        objects = [_resource(group, resource) for group in rule.api_groups for resource in rule.resources]
    return verbs, _phrase("objects", objects=objects, names=rule.resource_names)


def _resource(group: str, resource: str) -> str:
    if "*" not in (group, resource):
        return f"{resource}.{group}" if group else resource
    variant = "of-all-groups" if group == "*" else "everything"
    if (group, resource) == ("*", "*"):
        variant = "everything-of-all-groups"
    return _phrase(variant, group=group, resource=resource)


def _phrase(name: str, **params: Any) -> Phrase:
    return Phrase.of("RB-DIFF", f"rules.{name}", **params)


def rules_record(rules: Sequence[ScopedRule]) -> list[dict[str, Any]]:
    """Rules as evidence, JSON-ready, at most MAX_RULES."""
    return [{"scope": rule.scope, **rule.rule.to_object()} for rule in rules[:MAX_RULES]]


def ways(
    new: EffectiveRules, added: Iterable[ScopedRule], files: Mapping[ObjectIdentity, str] = NOWHERE
) -> list[dict[str, Any]]:
    """By which grants of `new` the rights of `added` come."""
    known = Ways(new)
    found = dict.fromkeys(id(grant) for right in added for grant in known.to(right))
    return ways_of((grant for grant in new.grants if id(grant) in found), files)


def ways_of(grants: Iterable[Grant], files: Mapping[ObjectIdentity, str] = NOWHERE) -> list[dict[str, Any]]:
    """By which binding, role and rule rights come, each once."""
    found: dict[tuple[str, str, int], dict[str, Any]] = {}
    for grant in grants:
        key = (str(grant.binding), str(grant.origin), grant.rule_index)
        file = files.get(grant.origin.identity, "")
        way = {"binding": key[0], "role": str(grant.role), "origin": key[1], "rule": key[2]}
        found[key] = {**way, "file": file} if file else way
    return [found[key] for key in sorted(found)][:MAX_RULES]


class Ways:
    """The grants of one side, asked which of them are a way to a part of a right."""

    def __init__(self, side: EffectiveRules):
        self._grants: dict[str, list[Grant]] = {}
        for grant in side.grants:
            self._grants.setdefault(grant.scope, []).append(grant)
        self._held = {scope: HeldRules(grant.rule for grant in grants) for scope, grants in self._grants.items()}
        self._named: dict[str, tuple[list[Grant], HeldRules]] = {}
        for scope, grants in self._grants.items():
            named = [grant for grant in grants if grant.rule.resource_names]
            unlimited = HeldRules(
                PolicyRule(grant.rule.verbs, grant.rule.api_groups, grant.rule.resources) for grant in named
            )
            self._named[scope] = (named, unlimited)

    def to(self, one: ScopedRule) -> list[Grant]:
        """The grants at the place of `one` that cover at least one of its atoms."""
        return self.at(one.scope, one.rule)

    def names(self, one: ScopedRule) -> list[str]:
        """The names to which grants that count at the place of `one` limit a part of it."""
        found: set[str] = set()
        for scope in {"", one.scope} & self._named.keys():
            grants, unlimited = self._named[scope]
            for place in bits_of(unlimited.sharing(one.rule)):
                found.update(grants[place].rule.resource_names)
        return sorted(found)

    def at(self, scope: str, rule: PolicyRule) -> list[Grant]:
        if scope not in self._held:
            return []
        return [self._grants[scope][place] for place in bits_of(self._held[scope].sharing(rule))]


def table(delta: PermissionDiff) -> dict[str, dict[str, dict[str, int]]]:
    """Capability by reach: how many rights come and go at each place, verbs folded as people think of them."""
    table: dict[str, dict[str, dict[str, int]]] = {}
    for sign, rules in (("added", delta.added), ("removed", delta.removed)):
        for rule in rules:
            for verb in rule.rule.verbs:
                row = table.setdefault(capability(verb), {})
                cell = row.setdefault(rule.scope or WHOLE_CLUSTER, {"added": 0, "removed": 0})
                cell[sign] += 1
    return table


def capability(verb: str) -> str:
    """The verb as people think of it: Read, Write, Delete, Special, Everything."""
    named = (("Read", _READ), ("Write", _WRITE), ("Delete", _DELETE))
    return next((word for word, verbs in named if verb in verbs), "Everything" if verb == "*" else "Special")


def files_of(content: Content) -> dict[ObjectIdentity, str]:
    """Where in the bundle each object stands."""
    return {manifest.ref.identity: manifest.file for manifest in content.manifests if manifest.file}
