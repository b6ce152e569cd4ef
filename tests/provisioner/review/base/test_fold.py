"""Equal findings said once, and numbers in sentences."""

from __future__ import annotations

from dataclasses import replace

import pytest

from provisioner.rbac import Subject
from provisioner.review.base.counting import number, some, verb
from provisioner.review.base.facts import Check, Installer, Rule, said
from provisioner.review.base.fold import MAX_ALIKE, folded
from provisioner.review.frame import report
from provisioner.values import Action, Finding, ObjectRef, Section, Severity
from tests.support.provisioner.contents import an_object, config_map, facts, planned

MANY = 500


def rule(severity: Severity = Severity.BREAKING) -> Rule:
    return Rule("PRE-01", Section.PREFLIGHT, severity)


def many(count: int = MANY, *, severity: Severity = Severity.BREAKING, kind: str = "ConfigMap") -> list[Finding]:
    objects = [ObjectRef.of(an_object("v1", kind, f"one-{index:03}", "shop")) for index in range(count)]
    return [
        rule(severity).at(ref, f"`shop/installer` may not create {kind} {ref.namespace}/{ref.name}") for ref in objects
    ]


def test_500_equal_findings_are_one_that_names_the_rule_the_count_and_the_first_objects() -> None:
    (one,) = folded(many())
    assert (one.rule, one.severity, one.evidence["count"]) == ("PRE-01", Severity.BREAKING, MANY)
    assert "may not create ConfigMap shop/one-000. The same holds for 499 more: ConfigMap shop/one-001" in one.message
    assert len(one.evidence["objects"]) + one.evidence["left_out"] == MANY


def test_a_few_equal_findings_stay_as_they_are() -> None:
    assert folded(many(MAX_ALIKE)) == many(MAX_ALIKE)


@pytest.mark.parametrize("severity", [Severity.CRITICAL, Severity.UNKNOWN])
def test_nothing_critical_or_unknown_is_folded(severity: Severity) -> None:
    assert folded(many(severity=severity)) == many(severity=severity)


@pytest.mark.parametrize("kind", ["CustomResourceDefinition", "Namespace", "PersistentVolume", "PersistentVolumeClaim"])
def test_deletions_that_take_something_along_are_not_folded(kind: str) -> None:
    objects = [ObjectRef.of(an_object("v1", kind, f"one-{index:02}")) for index in range(20)]
    deleted = Rule("DEL-01", Section.OBJECTS, Severity.BREAKING)
    assert len(folded(deleted.at(ref, f"Deletes {said(ref)}: nothing at present") for ref in objects)) == 20


def test_findings_about_secrets_are_not_folded() -> None:
    """Each reader may see other Secrets, and a name in another finding would tell of one."""
    assert len(folded(many(kind="Secret"))) == MANY


@pytest.mark.parametrize(
    "other",
    [
        Rule("PRE-02", Section.PREFLIGHT, Severity.BREAKING).at(many(1)[0].ref, many(1)[0].message),
        rule(Severity.NOTABLE).at(many(1)[0].ref, many(1)[0].message),
        rule().at(many(1)[0].ref, "may not patch ConfigMap shop/one-000"),
        rule().at(None, "may not create anything"),
        rule().at(
            ObjectRef.of(an_object("v1", "ConfigMap", "one-000", "other")), "may not create ConfigMap other/one-000"
        ),
    ],
    ids=["another rule", "another severity", "other words", "no object", "another namespace"],
)
def test_what_differs_in_more_than_a_name_is_said_by_itself(other: Finding) -> None:
    found = folded([*many(), other])
    assert len(found) == 2
    assert found[1] == other


def test_one_object_more_makes_it_another_finding() -> None:
    """What was accepted of 500 objects is not accepted of 501."""
    (before,), (after,) = folded(many(MANY)), folded(many(MANY + 1))
    assert before.fingerprint != after.fingerprint


def test_the_order_of_the_findings_makes_no_difference() -> None:
    assert folded(reversed(many())) == folded(many())


def test_a_report_on_500_objects_that_may_not_be_made_has_one_finding_of_it_and_states_every_severity() -> None:
    maps = [config_map(f"settings-{index}") for index in range(MANY)]
    given = facts(
        *(planned(one, Action.CREATE) for one in maps),
        installer=Installer(Subject("ServiceAccount", "installer", "shop")),
    )
    found = report(given)
    lacking = [one for one in found.findings if one.rule == "PRE-01"]
    assert [one.severity for one in lacking] == [Severity.UNKNOWN] * MANY  # nobody knows its roles: never folded
    known = report(replace(given, live_rbac=()))
    (one,) = [one for one in known.findings if one.rule == "PRE-01"]
    assert one.evidence["count"] == MANY
    assert "1 breaking" in known.headline[-1]


def test_a_check_of_another_package_is_folded_as_well() -> None:
    found = report(facts(), [Check("theirs", changes=lambda _: many())])
    assert [one.evidence.get("count") for one in found.findings] == [MANY]


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 objects are concerned"),
        (1, "1 object is concerned"),
        (2, "2 objects are concerned"),
        (1204, "1,204 objects are concerned"),
    ],
)
def test_a_number_agrees_with_its_noun_and_verb(count: int, words: str) -> None:
    assert f"{number(count, 'object')} {verb(count, 'are')} concerned" == words


@pytest.mark.parametrize(
    ("several", "one"), [("have", "has"), ("do", "does"), ("go", "goes"), ("lose", "loses"), ("are", "is")]
)
def test_a_verb_has_its_form_for_one(several: str, one: str) -> None:
    assert (verb(1, several), verb(2, several)) == (one, several)


def test_the_first_of_many_names_are_said_and_the_rest_counted() -> None:
    assert some([f"n{index}" for index in range(1300)]) == "n0, n1, n2 and 1,297 more"
    assert some(["a", "b", "c"]) == "a, b, c"
