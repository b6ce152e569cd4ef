"""Which finding comes first, and which severity still depends on stored objects."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from provisioner.values import (
    SHAPES,
    Certainty,
    Finding,
    ObjectRef,
    Plan,
    Report,
    Section,
    Severity,
    certainty_of,
    worst_first,
)

ORDER = ["critical", "breaking", "unknown", "dangerous", "notable", "safe"]


def found(rule: str, severity: Severity, section: Section = Section.OBJECTS, **rest: Any) -> Finding:
    return Finding(rule, section, severity, "words", **rest)


def test_unknown_is_worse_than_dangerous_and_better_than_breaking() -> None:
    """What could not be found out is never fine (promise 4)."""
    assert [str(one) for one in sorted(Severity, key=lambda it: it.rank)] == ORDER
    assert Severity.UNKNOWN.is_at_least(Severity.DANGEROUS)
    assert not Severity.UNKNOWN.is_at_least(Severity.BREAKING)
    assert Severity.SAFE.is_at_least(Severity.SAFE)


def test_each_severity_has_a_shape_of_its_own() -> None:
    assert set(SHAPES) == set(Severity)
    assert len(set(SHAPES.values())) == len(Severity)


def test_findings_stand_in_one_order_however_they_came() -> None:
    a, b = ObjectRef("", "v1", "A", "", "a"), ObjectRef("", "v1", "B", "", "b")
    wanted = (
        found("Z", Severity.CRITICAL, is_new=False),
        found("A", Severity.SAFE, ref=a, path=(1,)),
        found("A", Severity.SAFE, ref=a, path=("x", 2)),
        found("B", Severity.SAFE, ref=a),
        found("A", Severity.SAFE, ref=b),
        found("A", Severity.SAFE, Section.CRDS),
        found("A", Severity.SAFE, is_new=False),
    )
    for given in itertools.islice(itertools.permutations(wanted), 0, None, 97):
        assert worst_first(given) == wanted


@pytest.mark.parametrize(
    ("evidence", "certainty"),
    [
        ({}, Certainty.PROVED),
        ({"live": True}, Certainty.DEPENDS_ON_OBJECTS),
        ({"live": True, "basis": "schema"}, Certainty.DEPENDS_ON_OBJECTS),
        ({"live": True, "basis": "objects"}, Certainty.PROVED),
        ({"live": False, "basis": "schema"}, Certainty.PROVED),
    ],
)
def test_a_severity_depends_on_objects_until_they_were_tried(evidence: dict[str, Any], certainty: Certainty) -> None:
    assert certainty_of(evidence) is found("A", Severity.BREAKING, evidence=evidence).certainty is certainty


def test_a_private_finding_makes_no_report_worse_for_everybody() -> None:
    private, public = found("A", Severity.CRITICAL, is_private=True), found("B", Severity.NOTABLE)
    report = Report((), (private, public), Plan((), ""))
    assert (report.public, report.worst) == ((public,), Severity.NOTABLE)
    assert report.in_section(Section.OBJECTS) == [private, public]
    assert Report((), (), Plan((), "")).worst is Severity.SAFE
