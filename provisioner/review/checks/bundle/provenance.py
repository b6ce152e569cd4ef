"""Where a bundle comes from and what it asks: its catalog, the moves of its sources, the dependencies of its chart, and
its demands on the cluster.

OLM v1 refuses bundles with demands or leaves the question out. Here what can be looked up is, and the rest is said.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from provisioner.errors import InvalidRange
from provisioner.escaping import visible
from provisioner.json_values import value_at
from provisioner.masking import masked
from provisioner.missing_kinds import Lack, removal_of
from provisioner.review.base.facts import Check, Facts, Listed, Listing, ReviewRule
from provisioner.review.checks.objects.kubernetes_apis import find_brought_kinds
from provisioner.values import (
    DEPENDENCY,
    ChosenBundle,
    Course,
    EarlierVersion,
    Finding,
    Requirement,
    RequirementKind,
    Section,
    Severity,
    UpgradeStep,
)
from provisioner.versions import precedence, release_order, version_of

_LEAVES = ReviewRule("CAT-01", Section.CONTENT, Severity.DANGEROUS)
_STEP_UNKNOWN = ReviewRule("CAT-01", Section.CONTENT, Severity.UNKNOWN)
_DEPRECATED = ReviewRule("CAT-02", Section.CONTENT, Severity.NOTABLE)
_SKIPPED = ReviewRule("CAT-03", Section.CONTENT, Severity.DANGEROUS)
_CHANGED = ReviewRule("CAT-04", Section.CONTENT, Severity.DANGEROUS)
_WITHDRAWN = ReviewRule("CAT-05", Section.CONTENT, Severity.DANGEROUS)
_OTHER_CATALOG = ReviewRule("CAT-06", Section.CONTENT, Severity.DANGEROUS)
_BACK = ReviewRule("SRC-02", Section.CONTENT, Severity.DANGEROUS)
_COURSE_UNKNOWN = ReviewRule("SRC-02", Section.CONTENT, Severity.UNKNOWN)
_LOWER = ReviewRule("SRC-03", Section.CONTENT, Severity.DANGEROUS)
_FETCHED = ReviewRule("SRC-05", Section.CONTENT, Severity.SAFE)
_OTHER_BYTES = ReviewRule("SRC-05", Section.CONTENT, Severity.DANGEROUS)

# What the bundle itself says of these constraints is found one by one (compare_requirements).
_SAID_BY_BUNDLE = {
    "olm.package.required": RequirementKind.PACKAGE,
    "olm.gvk.required": RequirementKind.API,
    "olm.constraint": RequirementKind.CONSTRAINT,
}
# The messages of CAT-01 for steps that nothing allows.
_STEPS = {UpgradeStep.LEAVES: "no-edge", UpgradeStep.ELSEWHERE: "other-package", UpgradeStep.UNKNOWN: "not-of-package"}
_CHART_STEPS = {
    UpgradeStep.LEAVES: "not-higher",
    UpgradeStep.ELSEWHERE: "other-chart",
    UpgradeStep.UNKNOWN: "not-of-chart",
}
# The messages of SRC-02 are named after these.
_COURSES = frozenset({Course.BACKWARD, Course.ASIDE, Course.UNKNOWN})
_RULES = {
    RequirementKind.KUBERNETES: "REQ-01",
    RequirementKind.OPENSHIFT: "REQ-01",
    RequirementKind.API: "REQ-02",
    RequirementKind.PACKAGE: "REQ-03",
    RequirementKind.CONSTRAINT: "REQ-04",
    RequirementKind.FIELD: "REQ-05",
}
_OPENSHIFT = Listing("config.openshift.io", "v1", "ClusterVersion")
_Kinds = set[tuple[str, str, str]]


def judge_catalogs(facts: Facts) -> Iterator[Finding]:
    stated = {requirement.kind for requirement in facts.content.requirements}
    for bundle in facts.history.bundles:
        yield from judge_chosen_bundle(bundle, stated)


def judge_chosen_bundle(bundle: ChosenBundle, stated: Collection[RequirementKind]) -> Iterator[Finding]:
    """Find what speaks against a bundle by its catalog, but constraints of the kinds `stated`, which it states itself.

    It may not follow what runs, be deprecated, changed, of another catalog or withdrawn, or need what nobody checks.
    """
    known = {
        "catalog": bundle.catalog,
        "catalogDigest": bundle.digest,
        "package": bundle.package,
        "channel": bundle.channel,
        "bundle": bundle.bundle,
        "version": bundle.version,
        "before": bundle.before,
    }
    params: dict[str, Any] = {name: visible(value) for name, value in known.items() if value}
    if variant := (_CHART_STEPS if bundle.is_chart else _STEPS).get(bundle.step):
        rule = _STEP_UNKNOWN if bundle.step is UpgradeStep.UNKNOWN else _LEAVES
        key = [bundle.package, bundle.before, bundle.bundle, str(bundle.step)]
        yield rule.finding(variant, None, key=key, **params)
    for words in bundle.deprecations:
        key = [bundle.package, words]
        yield _DEPRECATED.finding("deprecated", None, key=key, deprecation=visible(words), **params)
    for need in bundle.needs:
        if _SAID_BY_BUNDLE.get(need) not in stated:
            key = [bundle.bundle, need]
            yield _SKIPPED.finding("unchecked-need", None, key=key, constraint=visible(need), **params)
    if bundle.changed:
        key = [bundle.bundle, bundle.content]
        yield _CHANGED.finding("changed", None, key=key, change=visible(bundle.changed), **params)
    if bundle.is_withdrawn:
        yield _WITHDRAWN.finding("withdrawn", None, key=[bundle.bundle], **params)
    if bundle.before_catalog not in ("", bundle.catalog):
        params |= {"beforeCatalog": visible(bundle.before_catalog), "priority": str(bundle.priority)}
        variant = "selected" if bundle.is_selected else "named"
        key = [bundle.package, bundle.before_catalog, bundle.catalog]
        yield _OTHER_CATALOG.finding(variant, None, key=key, **params)


def judge_source_moves(facts: Facts) -> Iterator[Finding]:
    """Find sources that went backwards: to an older commit, a history that was rewritten, or a lower version."""
    for move in facts.history.moves:
        if move.course in _COURSES:
            rule, course = _COURSE_UNKNOWN if move.course is Course.UNKNOWN else _BACK, str(move.course)
            yield rule.finding(
                course,
                None,
                key=[move.reference, course, move.before, move.after],
                reference=visible(move.reference),
                course=course,
                why=visible(move.why) or None,
                before=move.before,
                after=move.after,
                since=move.since,
            )
    version = facts.content.version
    for earlier in facts.history.versions:
        if _is_lower(version, earlier):
            params: dict[str, Any] = {
                "claimed": visible(version),
                "before": visible(earlier.version),
                "since": earlier.since,
            }
            yield _LOWER.finding("lower", None, key=[version, earlier.version], **params)


def judge_dependencies(facts: Facts) -> Iterator[Finding]:
    """Find what a chart needs and was fetched, and versions of it that have other bytes than earlier."""
    known = {pin.digest for pin in facts.previous.pins} if facts.previous else set()
    for pin in facts.content.pins:
        if pin.kind != DEPENDENCY:
            continue
        params: dict[str, Any] = {"reference": visible(masked(pin.reference)), "digest": pin.digest}
        found = _FETCHED.finding("fetched", None, key=[pin.reference, pin.digest], **params)
        yield replace(found, is_new=pin.digest not in known)
        for earlier in facts.history.dependencies:
            if earlier.reference == pin.reference and earlier.digest != pin.digest:
                key = [pin.reference, earlier.digest, pin.digest]
                yield _OTHER_BYTES.finding(
                    "changed", None, key=key, before=earlier.digest, since=earlier.since, **params
                )


def _is_lower(version: str, earlier: EarlierVersion) -> bool:
    """Whether a version is lower than an earlier one. What is no version has no order."""
    try:
        found, before = version_of(version), version_of(earlier.version)
    except InvalidRange:
        return False
    if precedence(found) != precedence(before):
        return precedence(found) < precedence(before)
    return earlier.has_releases and release_order(found.build or "") < release_order(before.build or "")


def compare_requirements(facts: Facts) -> Iterator[Finding]:
    """Judge what the bundle asks of its cluster beyond its objects: versions, APIs, packages, constraints of OLM."""
    before = facts.previous.requirements if facts.previous else ()
    brought = find_brought_kinds(facts.state())
    for asked in facts.content.requirements:
        match asked.kind:
            case RequirementKind.KUBERNETES:
                found = _judge_version(asked, facts)
            case RequirementKind.API:
                found = _judge_api(asked, facts, brought)
            case RequirementKind.PACKAGE:
                found = _require(asked, "needed", Severity.NOTABLE)
            case RequirementKind.OPENSHIFT:
                found = _judge_openshift(asked, facts)
            case RequirementKind.CONSTRAINT:
                constraint = visible(asked.version or asked.name)
                found = _require(asked, "not-evaluated", Severity.UNKNOWN, constraint=constraint)
            case RequirementKind.FIELD:
                found = _require(asked, "left-out", Severity.NOTABLE)
        yield replace(found, is_new=facts.previous is None or asked not in before)


def _judge_version(asked: Requirement, facts: Facts) -> Finding:
    try:
        least = version_of(asked.version)
    except InvalidRange:
        return _require(asked, "no-version", Severity.UNKNOWN)
    if facts.is_offline:
        return _require(asked, "not-asked", Severity.NOTABLE)
    try:
        # A vendor's suffix, such as v1.30.4-gke.100, makes no pre-release of it.
        running = version_of(facts.around.version).finalize_version()
    except InvalidRange:
        return _require(asked, "unknown", Severity.UNKNOWN)
    severity = Severity.BREAKING if running.compare(least) < 0 else Severity.SAFE
    return _require(asked, "compared", severity, running=facts.around.version)


def list_openshift_versions(facts: Facts) -> Iterator[Listing]:
    if any(asked.kind is RequirementKind.OPENSHIFT for asked in facts.content.requirements):
        yield _OPENSHIFT


def _judge_openshift(asked: Requirement, facts: Facts) -> Finding:
    """Only the minor version counts, as in OLM: a bundle for 4.12 at most is for 4.12.30, too."""
    if facts.is_offline:
        return _require(asked, "openshift-not-asked", Severity.NOTABLE)
    if facts.around.serves(_OPENSHIFT.group, _OPENSHIFT.version, _OPENSHIFT.kind) is False:
        return _require(asked, "no-openshift", Severity.SAFE)
    listed = facts.around.lists.get(_OPENSHIFT, Listed())
    versions = [value_at(one, "status", "desired", "version") for one in listed.objects]
    running = visible(str(versions[0])) if len(versions) == 1 else ""
    try:
        most, known = version_of(asked.version), version_of(running)
    except InvalidRange:
        return _require(asked, "openshift-unknown", Severity.UNKNOWN)
    is_past = (known.major, known.minor) > (most.major, most.minor)
    return _require(asked, "openshift", Severity.BREAKING if is_past else Severity.SAFE, running=running)


def _judge_api(asked: Requirement, facts: Facts, brought: _Kinds) -> Finding:
    group, version, kind = asked.group, asked.version, asked.name
    api = visible(f"{group}/{version}" if group else version)
    if (group, version, kind) in brought:
        return _require(asked, "brought", Severity.SAFE, api=api)
    if facts.is_offline:
        return _require(asked, "not-asked", Severity.NOTABLE, api=api)
    served = facts.around.serves(group, version, kind)
    if served is None:
        return _require(asked, "unknown", Severity.UNKNOWN, api=api)
    if served:
        return _require(asked, "served", Severity.SAFE, api=api)
    absence, removal = facts.around.absence_of(group, version, kind), removal_of(group, version, kind)
    more: dict[str, Any] = {"servedIn": [visible(other) for other in absence.served] or None}
    if absence.lack is Lack.REMOVED and removal is not None:
        more |= {"removedIn": absence.removed_in, "instead": None if absence.served else removal.instead}
    return _require(asked, str(absence.lack), Severity.BREAKING, api=api, **more)


def _require(asked: Requirement, variant: str, severity: Severity, **more: Any) -> Finding:
    key = [asked.kind, asked.name, asked.group, asked.version]
    more |= dict(zip(("kind", "name", "group", "version"), map(visible, key), strict=True))
    return ReviewRule(_RULES[asked.kind], Section.CONTENT, severity).finding(variant, None, key=key, **more)


CATALOGS_CHECK = Check("catalogs", changes=judge_catalogs)
REQUIREMENTS_CHECK = Check("requirements", changes=compare_requirements, lists=list_openshift_versions)
DEPENDENCIES_CHECK = Check("dependencies", changes=judge_dependencies)
SOURCES_CHECK = Check("source moves", changes=judge_source_moves)
