"""A bundle that a catalog offers and that does not follow what runs, is deprecated, changed, or in need."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from provisioner.escaping import visible
from provisioner.review.base.facts import Check, Facts, ReviewRule
from provisioner.values import ChosenBundle, Finding, RequirementKind, Section, Severity, UpgradeStep

_LEAVES = ReviewRule("CAT-01", Section.CONTENT, Severity.DANGEROUS)
_UNTOLD = ReviewRule("CAT-01", Section.CONTENT, Severity.UNKNOWN)
_DEPRECATED = ReviewRule("CAT-02", Section.CONTENT, Severity.NOTABLE)
_SKIPPED = ReviewRule("CAT-03", Section.CONTENT, Severity.DANGEROUS)
_CHANGED = ReviewRule("CAT-04", Section.CONTENT, Severity.DANGEROUS)
_WITHDRAWN = ReviewRule("CAT-05", Section.CONTENT, Severity.DANGEROUS)

# What the bundle itself says of these constraints is found one by one (requirements).
_SAID_BY_BUNDLE = {
    "olm.package.required": RequirementKind.PACKAGE,
    "olm.gvk.required": RequirementKind.API,
    "olm.constraint": RequirementKind.CONSTRAINT,
}
# The messages of CAT-01 for steps that nothing allows.
_STEPS = {
    UpgradeStep.LEAVES: "no-edge",
    UpgradeStep.ELSEWHERE: "other-package",
    UpgradeStep.UNKNOWN: "not-of-package",
}
_CHART_STEPS = {
    UpgradeStep.LEAVES: "not-higher",
    UpgradeStep.ELSEWHERE: "other-chart",
    UpgradeStep.UNKNOWN: "not-of-chart",
}


def _changes(facts: Facts) -> Iterator[Finding]:
    said = {one.kind for one in facts.content.requirements}
    for bundle in facts.history.bundles:
        yield from findings_of(bundle, said)


def findings_of(bundle: ChosenBundle, said: Collection[RequirementKind]) -> Iterator[Finding]:
    """What speaks against a bundle by its catalog, but constraints of the kinds `said`, which it states itself."""
    params = _params(bundle)
    if variant := (_CHART_STEPS if bundle.is_chart else _STEPS).get(bundle.step):
        rule = _UNTOLD if bundle.step is UpgradeStep.UNKNOWN else _LEAVES
        key = [bundle.package, bundle.before, bundle.bundle, str(bundle.step)]
        yield rule.finding(variant, None, key=key, **params)
    for words in bundle.deprecations:
        key = [bundle.package, words]
        yield _DEPRECATED.finding("deprecated", None, key=key, deprecation=visible(words), **params)
    for need in bundle.needs:
        if _SAID_BY_BUNDLE.get(need) not in said:
            key = [bundle.bundle, need]
            yield _SKIPPED.finding("unchecked-need", None, key=key, constraint=visible(need), **params)
    if bundle.changed:
        key = [bundle.bundle, bundle.content]
        yield _CHANGED.finding("changed", None, key=key, change=visible(bundle.changed), **params)
    if bundle.is_withdrawn:
        yield _WITHDRAWN.finding("withdrawn", None, key=[bundle.bundle], **params)


def _params(bundle: ChosenBundle) -> dict[str, Any]:
    facts = {
        "catalog": bundle.catalog,
        "catalogDigest": bundle.digest,
        "package": bundle.package,
        "channel": bundle.channel,
        "bundle": bundle.bundle,
        "version": bundle.version,
        "before": bundle.before,
    }
    return {name: visible(value) for name, value in facts.items() if value}


CHECK = Check("catalogs", changes=_changes)
