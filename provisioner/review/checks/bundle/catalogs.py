"""A bundle that a catalog offers and that does not follow what runs, is deprecated, changed, or in need."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from provisioner.review.base.facts import Check, Facts, ReviewRule
from provisioner.review.base.text import visible
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


def _changes(facts: Facts) -> Iterator[Finding]:
    said = {one.kind for one in facts.content.requirements}
    for bundle in facts.history.bundles:
        yield from findings_of(bundle, said)


def findings_of(bundle: ChosenBundle, said: Collection[RequirementKind]) -> Iterator[Finding]:
    """What speaks against a bundle by its catalog, but constraints of the kinds `said`, which it states itself."""
    yield from _of_step(bundle)
    for words in bundle.deprecations:
        key = [bundle.package, words]
        message = f"catalog {_of(bundle)}: the publisher deprecates {visible(words)}"
        yield _DEPRECATED.at(None, message, evidence={**_evidence(bundle), "deprecation": words}, key=key)
    for need in bundle.needs:
        if _SAID_BY_BUNDLE.get(need) not in said:
            message = (
                f"catalog {_of(bundle)}: {_name(bundle)} depends on other bundles ({visible(need)}), and "
                "nobody checked whether they are there"
            )
            evidence = {**_evidence(bundle), "constraint": need}
            yield _SKIPPED.at(None, message, evidence=evidence, key=[bundle.bundle, need])
    if bundle.changed:
        message = f"catalog {_of(bundle)}: the content of {_name(bundle)} changed: {visible(bundle.changed)}"
        evidence = {**_evidence(bundle), "change": bundle.changed}
        yield _CHANGED.at(None, message, evidence=evidence, key=[bundle.bundle, bundle.content])
    if bundle.is_withdrawn:
        message = f"catalog {_of(bundle)}: {_name(bundle)} was offered when it was chosen, and is no longer"
        yield _WITHDRAWN.at(None, message, evidence=_evidence(bundle), key=[bundle.bundle])


def _of_step(bundle: ChosenBundle) -> Iterator[Finding]:
    key = [bundle.package, bundle.before, bundle.bundle, str(bundle.step)]
    words = _words_of_chart(bundle) if bundle.is_chart else _words_of_edges(bundle)
    if words:
        rule = _UNTOLD if bundle.step is UpgradeStep.UNKNOWN else _LEAVES
        yield rule.at(None, f"catalog {_of(bundle)}: {words}", evidence=_evidence(bundle), key=key)


def _words_of_edges(bundle: ChosenBundle) -> str:
    what = _name(bundle)
    return {
        UpgradeStep.LEAVES: f"no edge leads from {visible(bundle.before)}, which runs, to {what}",
        UpgradeStep.ELSEWHERE: f"{what} takes the place of another package, from which no edge can lead",
        UpgradeStep.UNKNOWN: f"what runs is no bundle of this package, so nobody can tell whether {what} may follow it",
    }.get(bundle.step, "")


def _words_of_chart(bundle: ChosenBundle) -> str:
    what = _name(bundle)
    return {
        UpgradeStep.LEAVES: f"{what} is not higher than {visible(bundle.before)}, which runs",
        UpgradeStep.ELSEWHERE: f"{what} takes the place of another package, with whose versions it has no order",
        UpgradeStep.UNKNOWN: f"what runs is no version of this chart, so nobody can tell whether {what} is higher",
    }.get(bundle.step, "")


def _of(bundle: ChosenBundle) -> str:
    return f"{visible(bundle.catalog)}, package {visible(bundle.package)}"


def _name(bundle: ChosenBundle) -> str:
    return f"{visible(bundle.bundle)} ({visible(bundle.version)})"


def _evidence(bundle: ChosenBundle) -> dict[str, str]:
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
