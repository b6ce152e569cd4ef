"""Whose the objects are that are planned as if they were adopted: one line for each owner."""

from __future__ import annotations

from collections.abc import Iterator

from provisioner.review.base.facts import Check, Facts, ReviewRule, said
from provisioner.sentences import number, some, verb
from provisioner.values import Finding, ObjectRef, Section, Severity

_OWNED = ReviewRule("OWN-03", Section.OBJECTS, Severity.NOTABLE)
_HELM, _NOBODY = "the Helm release ", "nobody by their marks"
MAX_NAMES = 500


def _changes(facts: Facts) -> Iterator[Finding]:
    found: dict[str, list[ObjectRef]] = {}
    for planned in facts.plan.actions:
        if planned.owner:
            found.setdefault(planned.owner, []).append(planned.ref)
    for owner, refs in sorted(found.items(), key=lambda it: (-len(it[1]), it[0])):
        names = sorted(map(said, refs))
        belong = verb(len(refs), "belong")
        message = (
            f"{number(len(refs), 'object')} {belong} to {owner}: {some(names, 2)}. The report is as if this deployment "
            f"adopted {'them' if len(refs) > 1 else 'it'}; {_what_to_do(owner)}"
        )
        yield _OWNED.at(None, message, evidence={"owner": owner, "objects": names[:MAX_NAMES]}, key=[owner, names])


def _what_to_do(owner: str) -> str:
    """What a request needs that is to do what this report shows."""
    if owner.startswith(_HELM):
        return "a request does so with spec.adoptHelmRelease"
    if owner.startswith(_NOBODY):
        return "a request does so with spec.collisionProtection: IfNoController, but for Secrets"
    return "a request is stopped until that owner has let go"


CHECK = Check("owners", changes=_changes)
