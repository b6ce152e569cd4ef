"""What the bundle asks of its cluster beyond its own objects: a version, an API, another package, a constraint of OLM.

OLM v1 refuses such bundles or leaves the question out. Here what can be looked up is, and the rest is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from provisioner.errors import InvalidRange
from provisioner.escaping import visible
from provisioner.review.base.facts import Check, Facts, ReviewRule
from provisioner.review.checks.objects.apis import brought_kinds
from provisioner.unserved import Lack, removal_of
from provisioner.values import Finding, Requirement, RequirementKind, Section, Severity
from provisioner.versions import version_of

_RULES = {
    RequirementKind.KUBERNETES: "REQ-01",
    RequirementKind.OPENSHIFT: "REQ-01",
    RequirementKind.API: "REQ-02",
    RequirementKind.PACKAGE: "REQ-03",
    RequirementKind.CONSTRAINT: "REQ-04",
    RequirementKind.FIELD: "REQ-05",
}
_OPENSHIFT_GROUP = "config.openshift.io"


def _changes(facts: Facts) -> Iterator[Finding]:
    before = facts.previous.requirements if facts.previous else ()
    brought = brought_kinds(facts.state())
    for one in facts.content.requirements:
        found = _of(one, facts, brought)
        yield replace(found, is_new=facts.previous is None or one not in before)


def _of(asked: Requirement, facts: Facts, brought: set[tuple[str, str, str]]) -> Finding:
    match asked.kind:
        case RequirementKind.KUBERNETES:
            return _of_version(asked, facts)
        case RequirementKind.API:
            return _of_api(asked, facts, brought)
        case RequirementKind.PACKAGE:
            return _finding(asked, "needed", Severity.NOTABLE)
        case RequirementKind.OPENSHIFT:
            return _of_openshift(asked, facts)
        case RequirementKind.CONSTRAINT:
            return _finding(asked, "not-evaluated", Severity.UNKNOWN, constraint=visible(asked.version or asked.name))
        case RequirementKind.FIELD:
            return _finding(asked, "left-out", Severity.NOTABLE)


def _of_version(asked: Requirement, facts: Facts) -> Finding:
    try:
        least = version_of(asked.version)
    except InvalidRange:
        return _finding(asked, "no-version", Severity.UNKNOWN)
    if facts.is_offline:
        return _finding(asked, "not-asked", Severity.NOTABLE)
    try:
        # A vendor's suffix, such as v1.30.4-gke.100, makes no pre-release of it.
        running = version_of(facts.around.version).finalize_version()
    except InvalidRange:
        return _finding(asked, "unknown", Severity.UNKNOWN)
    severity = Severity.BREAKING if running.compare(least) < 0 else Severity.SAFE
    return _finding(asked, "compared", severity, running=facts.around.version)


def _of_api(asked: Requirement, facts: Facts, brought: set[tuple[str, str, str]]) -> Finding:
    api = visible(f"{asked.group}/{asked.version}" if asked.group else asked.version)
    if (asked.group, asked.version, asked.name) in brought:
        return _finding(asked, "brought", Severity.SAFE, api=api)
    if facts.is_offline:
        return _finding(asked, "not-asked", Severity.NOTABLE, api=api)
    served = facts.around.serves(asked.group, asked.version, asked.name)
    if served is None:
        return _finding(asked, "unknown", Severity.UNKNOWN, api=api)
    if served:
        return _finding(asked, "served", Severity.SAFE, api=api)
    absence = facts.around.absence_of(asked.group, asked.version, asked.name)
    removal = removal_of(asked.group, asked.version, asked.name)
    more: dict[str, Any] = {"servedIn": [visible(one) for one in absence.served] or None}
    if absence.lack is Lack.REMOVED and removal is not None:
        more |= {"removedIn": absence.removed_in, "instead": None if absence.served else removal.instead}
    return _finding(asked, str(absence.lack), Severity.BREAKING, api=api, **more)


def _of_openshift(asked: Requirement, facts: Facts) -> Finding:
    kinds = facts.around.kinds
    is_answered = kinds is not None and _OPENSHIFT_GROUP not in facts.around.unanswered
    if is_answered and not any(one.group == _OPENSHIFT_GROUP for one in kinds or ()):
        return _finding(asked, "no-openshift", Severity.SAFE)
    return _finding(asked, "openshift", Severity.NOTABLE)


def _finding(asked: Requirement, variant: str, severity: Severity, **more: Any) -> Finding:
    key = [asked.kind, asked.name, asked.group, asked.version]
    more |= dict(zip(("kind", "name", "group", "version"), map(visible, key), strict=True))
    return ReviewRule(_RULES[asked.kind], Section.CONTENT, severity).finding(variant, None, key=key, **more)


CHECK = Check("requirements", changes=_changes)
