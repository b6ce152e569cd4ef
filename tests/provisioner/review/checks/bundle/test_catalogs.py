"""Bundles of catalogs that their publisher would not have followed, deprecates, changed, or has depend on others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from provisioner.review.checks.bundle import provenance
from provisioner.values import (
    Action,
    ChosenBundle,
    Finding,
    Requirement,
    RequirementKind,
    Severity,
    SourceHistory,
    UpgradeStep,
)
from tests.support.provisioner.contents import config_map, facts, judged_by, planned

BUNDLE = ChosenBundle(
    "", "hub", "sha256:aa", "harbour", "stable", "harbour.v1.2.0", "1.2.0", "example.com/harbour@sha256:bb"
)
WHERE = "catalog hub, package harbour"
NAME = "harbour.v1.2.0 (1.2.0)"


def found(bundle: ChosenBundle, *requirements: Requirement) -> list[Finding]:
    given = facts(planned(config_map("a"), Action.CREATE), history=SourceHistory(bundles=(bundle,)))
    content = replace(given.content, requirements=requirements)
    return judged_by(replace(given, content=content), [provenance.CATALOGS_CHECK])


@pytest.mark.parametrize("step", [UpgradeStep.FIRST, UpgradeStep.SAME, UpgradeStep.FOLLOWS])
def test_what_follows_an_edge_or_is_a_higher_chart_is_as_expected(step: UpgradeStep) -> None:
    assert not found(replace(BUNDLE, step=step))
    assert not found(replace(BUNDLE, step=step, is_chart=True))


@pytest.mark.parametrize(
    ("changes", "rule", "severity", "words"),
    [
        (
            {"step": UpgradeStep.LEAVES, "before": "harbour.v1.0.0"},
            "CAT-01",
            Severity.DANGEROUS,
            f"no edge leads from harbour.v1.0.0, which runs, to {NAME}",
        ),
        (
            {"step": UpgradeStep.ELSEWHERE},
            "CAT-01",
            Severity.DANGEROUS,
            f"{NAME} takes the place of another package, from which no edge can lead",
        ),
        (
            {"step": UpgradeStep.UNKNOWN},
            "CAT-01",
            Severity.UNKNOWN,
            f"what runs is no bundle of this package, so nobody can tell whether {NAME} may follow it",
        ),
        (
            {"step": UpgradeStep.LEAVES, "before": "harbour-1.3.0", "is_chart": True},
            "CAT-01",
            Severity.DANGEROUS,
            f"{NAME} is not higher than harbour-1.3.0, which runs",
        ),
        (
            {"step": UpgradeStep.ELSEWHERE, "is_chart": True},
            "CAT-01",
            Severity.DANGEROUS,
            f"{NAME} takes the place of another package, with whose versions it has no order",
        ),
        (
            {"step": UpgradeStep.UNKNOWN, "is_chart": True},
            "CAT-01",
            Severity.UNKNOWN,
            f"what runs is no version of this chart, so nobody can tell whether {NAME} is higher",
        ),
        (
            {"deprecations": ("channel stable: use fast",)},
            "CAT-02",
            Severity.NOTABLE,
            "the publisher deprecates channel stable: use fast",
        ),
        (
            {"needs": ("olm.constraint",)},
            "CAT-03",
            Severity.DANGEROUS,
            f"{NAME} depends on other bundles (olm.constraint), and nobody checked whether they are there",
        ),
        (
            {"changed": "a until 2026-11-01, b since"},
            "CAT-04",
            Severity.DANGEROUS,
            f"the content of {NAME} changed: a until 2026-11-01, b since",
        ),
        (
            {"is_withdrawn": True},
            "CAT-05",
            Severity.DANGEROUS,
            f"{NAME} was offered when it was chosen, and is no longer",
        ),
    ],
    ids=[
        "no edge",
        "another package",
        "no catalog",
        "a chart that is not higher",
        "a chart for another package",
        "a chart for what is of no catalog",
        "deprecated",
        "constraint",
        "changed",
        "withdrawn",
    ],
)
def test_what_speaks_against_a_bundle_is_told(
    changes: dict[str, Any], rule: str, severity: Severity, words: str
) -> None:
    (one,) = found(replace(BUNDLE, **changes))
    assert (one.rule, one.severity, one.message) == (rule, severity, f"{WHERE}: {words}")
    assert one.evidence["catalogDigest"] == "sha256:aa"


def test_a_constraint_that_the_bundle_states_itself_is_told_once() -> None:
    needs = replace(BUNDLE, needs=("olm.package.required",))
    assert not found(needs, Requirement(RequirementKind.PACKAGE, "store"))
    assert len(found(needs)) == 1
