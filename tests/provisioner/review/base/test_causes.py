"""What several rules say of one cause is said once, and what the running report has as well is not new."""

from __future__ import annotations

from dataclasses import replace

import pytest

from provisioner.review.base.causes import SAID_WITH, known_by, said_by_cause
from provisioner.review.base.facts import Check, ReviewRule
from provisioner.review.base.record import finding_from, from_record, to_record
from provisioner.review.frame import report
from provisioner.review.rules import Phrase
from provisioner.values import Finding, ObjectRef, Plan, Report, Section, Severity
from tests.support.provisioner.contents import facts

CRD = ObjectRef("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", "boats.example.org")
ROBOT = ObjectRef("", "v1", "ServiceAccount", "shop", "robot")
COUNTS = {"counts": {"Boat": 3}, "newest": {"Boat": "2026-01-01"}, "notCounted": []}
DELETED = ReviewRule("DEL-01", Section.OBJECTS, Severity.BREAKING).finding(
    "deletes-customresourcedefinition", CRD, **COUNTS
)
GONE = ReviewRule("CRD-08", Section.CRDS, Severity.BREAKING, {"stored": Severity.BREAKING}).finding(
    "deleted", CRD, kind="Boat", **COUNTS
)
EVERYTHING = ReviewRule("RB-01", Section.PERMISSIONS, Severity.CRITICAL).finding("can", ROBOT, power="do everything")


def holding(role: str) -> Finding:
    held = Phrase.of("RB-03", "held.role", role=role)
    return ReviewRule("RB-03", Section.PERMISSIONS, Severity.CRITICAL).finding("holds", ROBOT, held=held)


ADMIN = holding("cluster-admin")


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
    assert one.message == "`shop/robot` can do everything; holds cluster-admin (cluster-wide)"


@pytest.mark.parametrize(
    "other",
    [
        replace(ADMIN, ref=replace(ROBOT, name="other")),
        replace(ADMIN, is_new=False),
        holding("admin"),
        replace(EVERYTHING, rule="OWN-PRATIQUE-03"),
        replace(EVERYTHING, evidence={"power": "do everything twice"}),
    ],
    ids=["another account", "as before", "another role", "nobody may accept it", "the same rule again"],
)
def test_other_causes_are_said_by_themselves(other: Finding) -> None:
    assert said_by_cause([EVERYTHING, other]) == [EVERYTHING, other]


SERVICE = ObjectRef("", "v1", "Service", "shop", "web")
FIELD = ("spec", "clusterIP")
FIXED = ReviewRule("IMM-01", Section.OBJECTS, Severity.BREAKING).finding(
    "refused", SERVICE, where=FIELD, fields=["spec.clusterIP"], loss="itself"
)
CHANGED = [{"path": [*FIELD], "before": "not set", "after": "None"}]
NOT_JUDGED = ReviewRule("UNJUDGED", Section.OBJECTS, Severity.NOTABLE).finding(
    "changed", SERVICE, field="spec.clusterIP", values=CHANGED, more=None, changes=CHANGED
)


def test_a_field_that_another_rule_tells_of_is_not_said_again_and_its_values_are_kept() -> None:
    (one,) = said_by_cause([NOT_JUDGED, FIXED])
    assert (one.rule, one.severity, one.also) == ("IMM-01", Severity.BREAKING, ("UNJUDGED",))
    assert one.message == FIXED.message.replace("spec.clusterIP,", "spec.clusterIP (not set → None),")
    assert one.evidence[SAID_WITH]["UNJUDGED"]["evidence"] == NOT_JUDGED.evidence


@pytest.mark.parametrize(
    "other",
    [
        replace(NOT_JUDGED, evidence={**NOT_JUDGED.evidence, "changes": [{"path": ["spec", "type"]}]}),
        replace(NOT_JUDGED, evidence={**NOT_JUDGED.evidence, "left_out": 1}),
        replace(NOT_JUDGED, ref=replace(SERVICE, name="other")),
        replace(NOT_JUDGED, rule="UNCLAIMED"),
    ],
    ids=["another field", "more fields than are listed", "another object", "a kind that nobody knows"],
)
def test_a_field_of_which_no_other_rule_tells_stands_by_itself(other: Finding) -> None:
    assert said_by_cause([other, FIXED]) == [other, FIXED]


CHECKER = ObjectRef("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "", "boats")
LETS_IN = "what it refused or changed is now accepted as it is"
CHECKER_GOES = ReviewRule("DEL-01", Section.OBJECTS, Severity.DANGEROUS).finding("deletes", CHECKER)
NOT_CHECKED = ReviewRule("WH-10", Section.WEBHOOKS, Severity.DANGEROUS).finding("deleted", CHECKER, groups=None)
RENAMED = ReviewRule("DEL-01", Section.OBJECTS, Severity.DANGEROUS).finding(
    "renamed", CHECKER, renamedTo="boats2", losses=["other-webhooks"], names="nobody"
)
NO_VERSION = ReviewRule("CRD-14", Section.CRDS, Severity.BREAKING).finding("none-served", CRD)
NOT_SERVED = ReviewRule("CRD-12", Section.CRDS, Severity.BREAKING).finding("not-served", CRD, version="v1")
INGRESS = ObjectRef("networking.k8s.io", "v1", "Ingress", "shop", "web")
NO_TLS = ReviewRule("ING-04", Section.OBJECTS, Severity.DANGEROUS).finding("plain-text", INGRESS, hosts=["a.example"])


def serving(host: str, lacks: str | None = "tls") -> Finding:
    return ReviewRule("SV-02", Section.OBJECTS, Severity.NOTABLE).finding("host", INGRESS, host=host, lacks=lacks)


PLAIN_HOST = serving("a.example")
WEB = ObjectRef("apps", "v1", "Deployment", "shop", "web")
OF_NODE = ReviewRule("POD-05", Section.PODS, Severity.CRITICAL).finding("fails-check", WEB, items=["/srv"])
OTHER_MOUNTS = ReviewRule("POD-28", Section.PODS, Severity.NOTABLE).finding(
    "changed", WEB, differs=["mounts"], folders=["/srv"]
)


@pytest.mark.parametrize(
    ("graver", "implied", "words"),
    [
        (CHECKER_GOES, NOT_CHECKED, NOT_CHECKED.message),
        (RENAMED, NOT_CHECKED, f"{RENAMED.message}; {LETS_IN}"),
        (NO_VERSION, NOT_SERVED, NO_VERSION.message),
        (NO_TLS, PLAIN_HOST, NO_TLS.message),
        (OF_NODE, OTHER_MOUNTS, OF_NODE.message),
    ],
    ids=["deleted webhooks", "renamed webhooks", "no version served", "host without TLS", "folder of the node"],
)
def test_what_a_graver_finding_implies_is_said_with_it(graver: Finding, implied: Finding, words: str) -> None:
    (one,) = said_by_cause([implied, graver])
    assert (one.rule, one.severity, one.also, one.message) == (graver.rule, graver.severity, (implied.rule,), words)
    assert one.evidence[SAID_WITH][implied.rule]["message"] == implied.message


def test_every_version_that_is_not_served_stands_with_none_is_served() -> None:
    other = replace(NOT_SERVED, message="version v2 is not served any more", fingerprint="other")
    (one,) = said_by_cause([NOT_SERVED, other, NO_VERSION])
    assert [kept["message"] for kept in one.evidence[SAID_WITH]["CRD-12"]] == [NOT_SERVED.message, other.message]


@pytest.mark.parametrize(
    ("graver", "other"),
    [
        (NO_TLS, serving("b.example")),
        (NO_TLS, serving("a.example", None)),
        (NO_TLS, replace(PLAIN_HOST, is_new=False)),
        (OF_NODE, replace(OTHER_MOUNTS, evidence={"settings": [], "left_out": 0})),
        (OF_NODE, replace(OTHER_MOUNTS, evidence={"folders": ["/srv", "/var/log"]})),
        (replace(OF_NODE, evidence={}), OTHER_MOUNTS),
        (replace(OF_NODE, is_new=False), OTHER_MOUNTS),
        (CHECKER_GOES, replace(NOT_CHECKED, ref=replace(CHECKER, name="other"))),
        (CHECKER_GOES, replace(NOT_CHECKED, severity=Severity.UNKNOWN)),
    ],
    ids=[
        "another host",
        "a host with TLS",
        "a host as before",
        "other mounts than folders",
        "a folder that the other rule does not name",
        "no folder is named",
        "a folder as before",
        "another object",
        "unknown",
    ],
)
def test_what_is_not_implied_stands_by_itself(graver: Finding, other: Finding) -> None:
    assert said_by_cause([other, graver]) == [other, graver]


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
    fixed = replace(FIXED, ref=ref, evidence={**FIXED.evidence, **changed})
    other = replace(NOT_JUDGED, ref=ref, evidence={**NOT_JUDGED.evidence, "changes": [{"path": [*field]}]})
    assert said_by_cause([other, fixed]) == [other, fixed]


def withheld(finding: Finding) -> Finding:
    return replace(finding, message="withheld", server_words=finding.message, is_withheld=True)


@pytest.mark.parametrize(
    "found",
    [
        [withheld(NOT_JUDGED), FIXED],
        [NOT_JUDGED, withheld(FIXED)],
        [withheld(OTHER_MOUNTS), OF_NODE],
        [replace(PLAIN_HOST, sources=(ROBOT,)), NO_TLS],
        [withheld(EVERYTHING), withheld(ADMIN)],
    ],
    ids=["values", "fields", "folders", "a host made of another object", "a role"],
)
def test_S09_what_is_withheld_is_said_by_itself_whatever_it_holds(found: list[Finding]) -> None:
    """That it stands under another one, or not, would tell its values, and so would the words that it adds."""
    assert said_by_cause(found) == found


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


WORKLOAD = ObjectRef("apps", "v1", "Deployment", "a", "web")


def found(severity: Severity = Severity.BREAKING, rule: str = "SEC-04", **evidence: object) -> Finding:
    return ReviewRule(rule, Section.AVAILABILITY, severity).at(
        WORKLOAD, "it reads Secret a/gone", evidence=evidence, key="k"
    )


WITHHELD = replace(found(reads="x"), is_withheld=True)
POWER = ReviewRule("OWN-PRATIQUE-03", Section.PERMISSIONS, Severity.CRITICAL).at(WORKLOAD, "it decides", key="k")


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
    assert [finding.is_new for finding in again.findings] == [is_new]
    assert ("(0 new)" in again.headline[-1]) is not is_new


def test_S38_what_the_running_report_holds_privately_makes_no_public_finding_known() -> None:
    public, private = found(), replace(found(), is_private=True)
    running = replace(report(facts(), []), findings=(private,))
    again = report(facts(), [Check("same", changes=lambda _: [public])], running=running)
    assert [finding.is_new for finding in again.findings] == [True]
    assert [one.is_new for one in known_by([private], running.private)] == [False]
