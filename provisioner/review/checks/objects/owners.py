"""Whose the objects are that are planned as if they were adopted: one line for each owner."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from provisioner.review.base.facts import Check, Facts, ReviewRule, said
from provisioner.sentences import number, some, verb
from provisioner.values import Finding, ObjectRef, Section, Severity

_OWNED = ReviewRule("OWN-03", Section.OBJECTS, Severity.NOTABLE)
_RELEASE = re.compile(r"the Helm release (?P<name>\S+)(?: in (?P<namespace>\S+))?")
_NOBODY, _KUBERNETES = "nobody by their marks", "Kubernetes itself"
MAX_NAMES = 500


def _changes(facts: Facts) -> Iterator[Finding]:
    found: dict[str, list[ObjectRef]] = {}
    for planned in facts.plan.actions:
        if planned.owner:
            found.setdefault(planned.owner, []).append(planned.ref)
    for owner, refs in sorted(found.items(), key=lambda it: (-len(it[1]), it[0])):
        evidence = owned_evidence(owner, refs)
        told = _OWNED.at(None, owned_words(owner, refs), evidence=evidence, key=[owner, evidence["objects"]])
        yield replace(told, sources=tuple(sorted(refs)))


def owned_words(owner: str, refs: Sequence[ObjectRef]) -> str:
    """What is said of the objects of one owner, and what a request needs that is to adopt them."""
    belong, them = verb(len(refs), "belong"), "them" if len(refs) > 1 else "it"
    names = some(sorted(map(said, refs)), 2)
    return (
        f"{number(len(refs), 'object')} {belong} to {owner}: {names}. The report is as if this deployment "
        f"adopted {them}; {_what_to_do(owner)}"
    )


def owned_evidence(owner: str, refs: Sequence[ObjectRef]) -> dict[str, object]:
    return {"owner": owner, "objects": sorted(map(said, refs))[:MAX_NAMES]}


def _what_to_do(owner: str) -> str:
    """What a request needs that is to do what this report shows."""
    if release := _RELEASE.fullmatch(owner):
        where = f" and spec.installNamespace: {release['namespace']}" if release["namespace"] else ""
        return f"a request does so with spec.adoptHelmRelease: {release['name']}{where}"
    if owner.startswith(_NOBODY):
        return "a request does so with spec.collisionProtection: IfNoController, but for Secrets"
    if owner == _KUBERNETES:
        return "no request does so: leave Kubernetes' own namespaces out of the bundle"
    return "a request is stopped until that owner has let go"


CHECK = Check("owners", changes=_changes)
