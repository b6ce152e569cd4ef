"""What the bundle asks of its cluster beyond its own objects: a version, an API, another package, a constraint of OLM.

OLM v1 refuses such bundles or leaves the question out. Here what can be looked up is, and the rest is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from provisioner.errors import InvalidRange
from provisioner.review.base.facts import Check, Facts, ReviewRule
from provisioner.review.base.text import visible
from provisioner.review.checks.objects.apis import brought_kinds
from provisioner.unserved import Lack
from provisioner.values import Finding, Requirement, RequirementKind, Section, Severity
from provisioner.versions import version_of

_VERSION, _API, _PACKAGE, _CONSTRAINT, _FIELD = "REQ-01", "REQ-02", "REQ-03", "REQ-04", "REQ-05"
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
            versions = f" in version {visible(asked.version)}" if asked.version else ""
            words = f"The bundle needs the package {visible(asked.name)}{versions}. Pratique cannot see which packages"
            return _finding(_PACKAGE, Severity.NOTABLE, asked, f"{words} are installed")
        case RequirementKind.OPENSHIFT:
            return _of_openshift(asked, facts)
        case RequirementKind.CONSTRAINT:
            words = "The bundle has a constraint for OLM that Pratique does not evaluate"
            return _finding(_CONSTRAINT, Severity.UNKNOWN, asked, f"{words}: {visible(asked.version or asked.name)}")
        case RequirementKind.FIELD:
            words = f"The bundle's {visible(asked.name)} has fields that Kubernetes does not have"
            ends = f"{visible(asked.version)}. They are left out, as OLM leaves them out"
            return _finding(_FIELD, Severity.NOTABLE, asked, f"{words}: {ends}")


def _of_version(asked: Requirement, facts: Facts) -> Finding:
    words = f"The bundle needs Kubernetes {visible(asked.version)} or later"
    try:
        least = version_of(asked.version)
    except InvalidRange:
        return _finding(_VERSION, Severity.UNKNOWN, asked, f"{words}, which is not a version")
    if facts.is_offline:
        return _finding(_VERSION, Severity.NOTABLE, asked, f"{words}. No cluster was asked for its version")
    try:
        # A vendor's suffix, such as v1.30.4-gke.100, makes no pre-release of it.
        running = version_of(facts.around.version).finalize_version()
    except InvalidRange:
        return _finding(_VERSION, Severity.UNKNOWN, asked, f"{words}. The cluster's version is not known")
    if running.compare(least) < 0:
        return _finding(_VERSION, Severity.BREAKING, asked, f"{words}; the cluster has {facts.around.version}")
    return _finding(_VERSION, Severity.SAFE, asked, f"{words}; the cluster has {facts.around.version}")


def _of_api(asked: Requirement, facts: Facts, brought: set[tuple[str, str, str]]) -> Finding:
    api = f"{asked.group}/{asked.version}" if asked.group else asked.version
    words = f"The bundle needs {visible(asked.name)} in {visible(api)}"
    if (asked.group, asked.version, asked.name) in brought:
        return _finding(_API, Severity.SAFE, asked, f"{words}, which it brings")
    if facts.is_offline:
        return _finding(_API, Severity.NOTABLE, asked, f"{words}. No cluster was asked whether it serves that")
    served = facts.around.serves(asked.group, asked.version, asked.name)
    if served is None:
        return _finding(_API, Severity.UNKNOWN, asked, f"{words}. Whether the cluster serves that is not known")
    if served:
        return _finding(_API, Severity.SAFE, asked, f"{words}, which the cluster serves")
    absence = facts.around.absence_of(asked.group, asked.version, asked.name)
    why = "the cluster does not serve it" if absence.lack is Lack.UNDEFINED else visible(absence.words)
    return _finding(_API, Severity.BREAKING, asked, f"{words}. T{why[1:]}")


def _of_openshift(asked: Requirement, facts: Facts) -> Finding:
    words = f"The bundle is for OpenShift {visible(asked.version)} at most"
    kinds = facts.around.kinds
    is_answered = kinds is not None and _OPENSHIFT_GROUP not in facts.around.unanswered
    if is_answered and not any(one.group == _OPENSHIFT_GROUP for one in kinds or ()):
        return _finding(_VERSION, Severity.SAFE, asked, f"{words}; the cluster is no OpenShift")
    return _finding(_VERSION, Severity.NOTABLE, asked, f"{words}. Compare it with the cluster's version")


def _finding(rule: str, severity: Severity, asked: Requirement, message: str) -> Finding:
    evidence = {
        key: visible(value)
        for key, value in (
            ("kind", asked.kind), ("name", asked.name), ("group", asked.group), ("version", asked.version)
        )
        if value
    }  # fmt: skip
    key = [asked.kind, asked.name, asked.group, asked.version]
    return ReviewRule(rule, Section.CONTENT, severity).at(None, message, evidence=evidence, key=key)


CHECK = Check("requirements", changes=_changes)
