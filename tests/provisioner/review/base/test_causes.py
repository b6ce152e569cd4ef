"""What several rules say of one cause, said once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from provisioner.review.base.causes import SAID_WITH, said_by_cause
from provisioner.review.base.facts import ReviewRule
from provisioner.review.base.record import finding_from, to_record
from provisioner.values import Finding, ObjectRef, Plan, Report, Section, Severity

CRD = ObjectRef("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", "boats.example.org")
ROBOT = ObjectRef("", "v1", "ServiceAccount", "shop", "robot")
COUNTS = {"counts": {"Boat": 3}, "newest": {"Boat": "2026-01-01"}, "notCounted": []}
DELETED = ReviewRule("DEL-01", Section.OBJECTS, Severity.BREAKING).at(
    CRD, "Deletes CRD boats.example.org: every object of its kind goes with it: 3 Boat objects", evidence=COUNTS
)
GONE = ReviewRule("CRD-08", Section.CRDS, Severity.BREAKING, {"stored": Severity.BREAKING}).at(
    CRD, "Deletes CRD boats.example.org, and with it every Boat: 3 Boat objects", evidence={**COUNTS, "kind": "Boat"}
)
EVERYTHING = ReviewRule("RB-01", Section.PERMISSIONS, Severity.CRITICAL).at(ROBOT, "`shop/robot` can do everything")
ADMIN = ReviewRule("RB-03", Section.PERMISSIONS, Severity.CRITICAL).at(
    ROBOT, "`shop/robot` holds cluster-admin in the whole cluster"
)


@pytest.mark.parametrize("found", [[DELETED, GONE], [GONE, DELETED]], ids=["in order", "in another order"])
def test_a_deleted_crd_is_one_finding_that_keeps_both_rules_and_what_the_gate_counts(found: list[Finding]) -> None:
    (one,) = said_by_cause(found)
    assert (one.rule, one.also, one.message, one.verdicts) == ("CRD-08", ("DEL-01",), GONE.message, GONE.verdicts)
    assert {name: one.evidence[name] for name in COUNTS} == COUNTS
    assert one.evidence[SAID_WITH]["DEL-01"]["message"] == DELETED.message
    assert one.evidence[SAID_WITH]["DEL-01"]["evidence"] == COUNTS


def test_S24_cluster_admin_is_one_finding_that_loses_no_words() -> None:
    (one,) = said_by_cause([EVERYTHING, ADMIN])
    assert (one.rule, one.also, one.severity) == ("RB-01", ("RB-03",), Severity.CRITICAL)
    assert one.message == "`shop/robot` can do everything; holds cluster-admin in the whole cluster"


@pytest.mark.parametrize(
    "other",
    [
        replace(ADMIN, ref=replace(ROBOT, name="other")),
        replace(ADMIN, is_new=False),
        replace(ADMIN, message="`shop/robot` holds admin in the whole cluster"),
        replace(EVERYTHING, rule="OWN-PRATIQUE-03"),
        replace(EVERYTHING, message="`shop/robot` can do everything twice"),
    ],
    ids=["another account", "as before", "another role", "nobody may accept it", "the same rule again"],
)
def test_other_causes_are_said_by_themselves(other: Finding) -> None:
    assert said_by_cause([EVERYTHING, other]) == [EVERYTHING, other]


SERVICE = ObjectRef("", "v1", "Service", "shop", "web")
FIELD = ("spec", "clusterIP")
FIXED = ReviewRule("IMM-01", Section.OBJECTS, Severity.BREAKING).at(
    SERVICE, "Service shop/web changes spec.clusterIP, which the API server refuses", path=FIELD
)
NOT_JUDGED = ReviewRule("UNJUDGED", Section.OBJECTS, Severity.NOTABLE).at(
    SERVICE,
    "Service shop/web: no rule judges spec.clusterIP: not set → None",
    evidence={"changes": [{"path": [*FIELD], "before": "not set", "after": "None"}]},
)


def test_a_field_that_another_rule_tells_of_is_not_said_again_and_its_values_are_kept() -> None:
    (one,) = said_by_cause([NOT_JUDGED, FIXED])
    assert (one.rule, one.severity, one.also) == ("IMM-01", Severity.BREAKING, ("UNJUDGED",))
    assert one.message == "Service shop/web changes spec.clusterIP (not set → None), which the API server refuses"
    assert one.evidence[SAID_WITH]["UNJUDGED"]["evidence"] == NOT_JUDGED.evidence


@pytest.mark.parametrize(
    "other",
    [
        replace(NOT_JUDGED, evidence={"changes": [{"path": ["spec", "type"]}]}),
        replace(NOT_JUDGED, evidence={**NOT_JUDGED.evidence, "left_out": 1}),
        replace(NOT_JUDGED, ref=replace(SERVICE, name="other")),
        replace(NOT_JUDGED, rule="UNCLAIMED"),
    ],
    ids=["another field", "more fields than are listed", "another object", "a kind that nobody knows"],
)
def test_a_field_of_which_no_other_rule_tells_stands_by_itself(other: Finding) -> None:
    assert said_by_cause([other, FIXED]) == [other, FIXED]


@pytest.mark.parametrize(
    ("name", "field"),
    [("spec.type", ("spec", "type")), ("web", ("spec", "cluster")), ("web", ("clusterIP",)), ("web", ())],
    ids=["its name", "the beginning of a word", "the end of a word", "no field"],
)
def test_S24_a_field_that_only_the_name_of_the_object_or_a_longer_word_names_is_said(
    name: str, field: tuple[str, ...]
) -> None:
    """Whoever chooses names would choose what is not said."""
    ref = replace(SERVICE, name=name)
    changed = {"changes": [{"path": [*FIELD]}, {"path": [*field]}]}
    words = f"Deletes Service shop/{name} and creates it again, because spec.clusterIP cannot be changed: it is gone"
    fixed = replace(FIXED, ref=ref, message=words, evidence=changed)
    other = replace(NOT_JUDGED, ref=ref, evidence={"changes": [{"path": [*field]}]})
    assert said_by_cause([other, fixed]) == [other, fixed]


def test_S24_nothing_unknown_is_said_with_another() -> None:
    found = [replace(DELETED, severity=Severity.UNKNOWN), GONE]
    assert said_by_cause(found) == found


def test_S09_it_is_made_of_all_that_its_parts_are_made_of() -> None:
    """Who may see one of the parts may not see the other."""
    roles, boats = replace(ROBOT, kind="Role", name=""), replace(ROBOT, kind="Boat", name="")
    (one,) = said_by_cause([replace(DELETED, sources=(roles,)), replace(GONE, sources=(boats,), server_words="no")])
    assert set(one.sources) == {roles, boats}
    assert one.server_words == "no"


def test_it_is_as_grave_and_as_new_as_the_worst_of_its_parts() -> None:
    (one,) = said_by_cause([DELETED, replace(GONE, severity=Severity.DANGEROUS, is_new=False)])
    assert (one.severity, one.is_new) == (Severity.BREAKING, True)


def test_what_was_accepted_of_one_is_not_accepted_of_more() -> None:
    """As of a deletion that takes other objects by now."""
    (one,), (other,) = said_by_cause([DELETED, GONE]), said_by_cause([replace(DELETED, fingerprint="f"), GONE])
    assert len({one.fingerprint, other.fingerprint, DELETED.fingerprint, GONE.fingerprint}) == 4


def test_a_record_keeps_the_further_rules() -> None:
    (one,) = said_by_cause([DELETED, GONE])
    (kept,) = to_record(Report((), (one,), Plan((), "")))["findings"]
    assert kept["also"] == ["DEL-01"]
    assert finding_from(kept).also == one.also
    assert finding_from({name: value for name, value in kept.items() if name != "also"}).also == ()
