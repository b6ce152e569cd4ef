from __future__ import annotations

from dataclasses import replace

import pytest

from provisioner.review.base.causes import known_by
from provisioner.review.base.facts import Check, ReviewRule
from provisioner.review.base.record import from_record, to_record
from provisioner.review.frame import report
from provisioner.values import Finding, ObjectRef, Section, Severity
from tests.support.provisioner.contents import facts

WEB = ObjectRef("apps", "v1", "Deployment", "a", "web")


def found(severity: Severity = Severity.BREAKING, rule: str = "SEC-04", **evidence: object) -> Finding:
    return ReviewRule(rule, Section.AVAILABILITY, severity).at(
        WEB, "it reads Secret a/gone", evidence=evidence, key="k"
    )


WITHHELD = replace(found(reads="x"), is_withheld=True)
POWER = ReviewRule("OWN-PRATIQUE-03", Section.PERMISSIONS, Severity.CRITICAL).at(WEB, "it decides", key="k")


@pytest.mark.parametrize(
    ("before", "now", "is_new"),
    [
        pytest.param(found(reads=("x",)), found(reads=("x",)), False, id="the same"),
        pytest.param(found(), replace(found(), is_new=False), False, id="known by the checks already"),
        pytest.param(found(), replace(found(), fingerprint="other"), True, id="another"),
        pytest.param(found(Severity.NOTABLE), found(), True, id="worse"),
        pytest.param(found(), found(Severity.NOTABLE), False, id="less bad"),
        pytest.param(found(reads="x"), found(reads="y"), True, id="other facts"),
        pytest.param(found(), replace(found(), message="it reads Secret a/other"), True, id="other words"),
        pytest.param(found(Severity.NOTABLE, count=3), found(Severity.NOTABLE, count=4), False, id="another count"),
        pytest.param(WITHHELD, replace(WITHHELD, evidence={"reads": "y"}), False, id="facts that few may read"),
        pytest.param(POWER, POWER, True, id="power over Pratique"),
    ],
)
def test_what_the_running_report_has_as_well_is_not_new(before: Finding, now: Finding, *, is_new: bool) -> None:
    first = report(facts(), [Check("same", changes=lambda _: [before])])
    again = report(facts(), [Check("same", changes=lambda _: [now])], running=from_record(to_record(first)))
    assert [one.is_new for one in again.findings] == [is_new]
    assert ("(0 new)" in again.headline[-1]) is not is_new


def test_S38_what_the_running_report_holds_privately_makes_no_public_finding_known() -> None:
    public, private = found(), replace(found(), is_private=True)
    running = replace(report(facts(), []), findings=(private,))
    again = report(facts(), [Check("same", changes=lambda _: [public])], running=running)
    assert [one.is_new for one in again.findings] == [True]
    assert [one.is_new for one in known_by([private], running.private)] == [False]
