"""Findings are told by cause: what a person would change, and nothing that its reader may not see."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from provisioner.review.base.facts import ReviewRule
from provisioner.review.output.entries import Cause, CauseKind, cause_of, entries, entries_record
from provisioner.values import Finding, ObjectRef, Section, Severity

CRD = ObjectRef("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", "boats.example.org")
SERVICE = ObjectRef("", "v1", "Service", "shop", "web")
POD = ObjectRef("apps", "v1", "Deployment", "shop", "web")
ROBOT = ObjectRef("", "v1", "ServiceAccount", "shop", "robot")
SCHEMA = {"SCH-01": Severity.BREAKING, "SCH-21": Severity.DANGEROUS}
KINDS = CauseKind


def made(
    rule: str, section: Section, ref: ObjectRef | None, severity: Severity = Severity.NOTABLE, **evidence: Any
) -> Finding:
    return ReviewRule(rule, section, severity).at(ref, f"words of {rule}", key=rule, evidence=evidence)


@pytest.mark.parametrize(
    ("finding", "cause"),
    [
        (made("SCH-01", Section.CRDS, CRD, version="v1"), Cause(KINDS.VERSION, "CRD boats.example.org v1")),
        (made("CRD-01", Section.CRDS, CRD), Cause(KINDS.OBJECT, "CRD boats.example.org")),
        (made("IMG-01", Section.IMAGES, POD, image="shop:1"), Cause(KINDS.IMAGE, "shop:1")),
        (made("SV-02", Section.OBJECTS, SERVICE), Cause(KINDS.OBJECT, "Service shop/web")),
        (made("UNJUDGED", Section.OBJECTS, SERVICE, fields=["spec.x"]), Cause(KINDS.RULE, "UNJUDGED")),
        (made("GAP", Section.PREFLIGHT, None), Cause(KINDS.RULE, "GAP")),
        (
            ReviewRule("RB-11", Section.PERMISSIONS, Severity.CRITICAL).finding("can-newly", ROBOT, power="read it"),
            Cause(KINDS.ACCOUNT, "ServiceAccount shop/robot"),
        ),
    ],
    ids=["version", "definition", "image", "Service", "unjudged", "nothing", "account"],
)
def test_the_cause_of_a_finding_is_what_a_person_would_change(finding: Finding, cause: Cause) -> None:
    assert cause_of(finding) == cause
    assert entries([finding])[0].cause == cause


def test_what_several_rules_say_of_one_cause_is_one_entry_and_what_one_rule_says_of_several_is_one() -> None:
    pods = [replace(POD, name=name) for name in "abc"]
    alike = [made("POD-15", Section.PODS, ref) for ref in pods]
    crd = [made(rule, Section.CRDS, CRD, severity, version="v1") for rule, severity in SCHEMA.items()]
    images = [made(rule, Section.IMAGES, POD, image="shop:1") for rule in ("IMG-01", "IMG-02")]
    service = [made("AVL-03", Section.AVAILABILITY, SERVICE), made("AVL-04", Section.AVAILABILITY, SERVICE)]
    found = entries([*alike, *crd, *images, *service])
    assert [(str(one.cause.kind), str(one.severity), one.words) for one in found] == [
        ("version", "breaking", "words of SCH-01; and 1 more"),
        ("rule", "notable", "Container may run as root"),
        ("image", "notable", "words of IMG-01; and 1 more"),
        ("object", "notable", "words of AVL-03; and 1 more"),
    ]
    assert sorted(one.rule for entry in found for one in entry.findings) == sorted(
        one.rule for one in (*alike, *crd, *images, *service)
    )


def test_an_entry_says_its_worst_finding_cut_unless_that_is_critical_and_how_many_more_there_are() -> None:
    long = made("SV-02", Section.OBJECTS, SERVICE, Severity.BREAKING)
    long = replace(long, message=f"{'word ' * 100}end")
    more = [made(rule, Section.OBJECTS, SERVICE) for rule in ("AVL-03", "AVL-04")]
    (entry,) = entries([*more, long])
    assert entry.words.endswith("word …; and 2 more")
    assert len(entry.words) < 260
    (entry,) = entries([*more, replace(long, severity=Severity.CRITICAL)])
    assert entry.words.endswith("word end; and 2 more")


def test_json_tells_what_is_new_by_cause_and_all_that_is_known_or_safe_in_one_entry_each() -> None:
    found = [
        made("SV-02", Section.OBJECTS, SERVICE),
        made("SV-04", Section.OBJECTS, SERVICE, Severity.SAFE),
        replace(made("RB-11", Section.PERMISSIONS, ROBOT, Severity.CRITICAL), is_new=False),
        replace(made("AVL-04", Section.AVAILABILITY, SERVICE, Severity.SAFE), is_new=False),
    ]
    told = [(one["cause"]["kind"], one["severity"], one["isNew"], one["message"]) for one in entries_record(found)]
    assert told == [
        ("object", "notable", True, "words of SV-02"),
        ("safe", "safe", True, "2 safe"),
        ("known", "critical", False, "1 critical as before"),
    ]
    names = [name for one in entries_record(found) for name in one["findings"]]
    assert sorted(names) == sorted(one.fingerprint for one in found)
