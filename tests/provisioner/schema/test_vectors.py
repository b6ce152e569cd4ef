from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.crd_diff import differences
from provisioner.schema import accepts_update, admit, compare
from provisioner.values import Finding, Severity
from tests.support.provisioner.vectors import RESOURCES, UPGRADES

# Upgrade cases that are not judged right yet, with the reason. This table may only shrink.
NOT_YET: dict[str, str] = {}


@pytest.mark.corpus
@pytest.mark.parametrize(
    "case", [it for it in RESOURCES if "schema" in it["input"]], ids=lambda it: it["input"]["name"]
)
def test_a_resource_is_admitted_as_kubernetes_admits_it(case: dict[str, Any]) -> None:
    given, truth = case["input"], case["truth"]
    found = admit(given["schema"], given["obj"])
    assert found.after == truth["after"]
    assert found.pruned == (truth["pruned"] or [])
    assert sorted(map(str, found.errors)) == sorted(it.removeprefix("CEL ") for it in truth["createErrors"])
    if given.get("upd"):
        remaining = admit(given["schema"], given["upd"], old=given["obj"]).errors
        assert sorted(map(str, remaining)) == sorted(it.removeprefix("CEL ") for it in truth["updateErrors"])


@pytest.mark.corpus
@pytest.mark.parametrize(
    "case", [it for it in RESOURCES if "oldCRD" in it["input"]], ids=lambda it: it["input"]["name"]
)
def test_a_crd_update_is_accepted_as_kubernetes_accepts_it(case: dict[str, Any]) -> None:
    found = sorted(map(str, accepts_update(case["input"]["oldCRD"], case["input"]["newCRD"])))
    expected = sorted(case["truth"]["crdUpdateErrors"] or [])  # the answers were cut off at their end
    assert len(found) == len(expected)
    for error in expected:
        assert any(it.startswith(error) for it in found), error


def verdict(findings: list[Finding]) -> Severity:
    return min((it.severity for it in findings), key=lambda it: it.rank, default=Severity.SAFE)


def is_right(case: dict[str, Any]) -> bool:
    findings = compare(case["old"], case["new"])
    expected = case["expect"]
    concerned = [it for it in findings if it.rule == case["rule"]]
    if "readers" in expected:
        is_noticed = any(it.verdicts["readers"] is Severity.DANGEROUS for it in concerned)
        return verdict(findings) is Severity.SAFE and is_noticed
    words = expected.partition("(")[0].partition("?")[0]
    is_live = any(it.evidence.get("live") for it in concerned) or "?live" not in expected
    return verdict(findings) is Severity(words) and bool(concerned) and is_live


@pytest.mark.corpus
@pytest.mark.parametrize("case", UPGRADES, ids=lambda it: it["name"])
def test_an_upgrade_is_judged_right(case: dict[str, Any]) -> None:
    assert is_right(case) is (case["name"] not in NOT_YET)


@pytest.mark.corpus
@pytest.mark.parametrize("case", [it for it in UPGRADES if "?live" in it["expect"]], ids=lambda it: it["name"])
def test_an_upgrade_that_objects_decide_is_dangerous_where_none_is_stored(case: dict[str, Any]) -> None:
    name = case["new"]["metadata"]["name"]
    (found,) = differences({name: case["old"]}, {name: case["new"]}, [])
    assert found.verdict is Severity.DANGEROUS
