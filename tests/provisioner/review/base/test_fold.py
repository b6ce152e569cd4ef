"""Equal findings said once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from provisioner.rbac import RbacSubject
from provisioner.review.base.facts import Installer, ReviewRule
from provisioner.review.base.grouping import MAX_UNFOLDED, folded
from provisioner.review.base.messages import places_of
from provisioner.review.frame import report
from provisioner.schema.verdicts import shown
from provisioner.values import Action, Finding, ObjectRef, Section, Severity
from tests.support.provisioner.contents import an_object, config_map, facts, planned

MANY = 500


def rule(severity: Severity = Severity.BREAKING) -> ReviewRule:
    return ReviewRule("PRE-01", Section.PREFLIGHT, severity)


def may_not(ref: ObjectRef, severity: Severity = Severity.BREAKING, *verbs: str) -> Finding:
    installer = RbacSubject("ServiceAccount", "installer", "shop")
    return rule(severity).finding("may-not", ref, account=installer, verbs=verbs or ("create",))


def many(count: int = MANY, *, severity: Severity = Severity.BREAKING, kind: str = "ConfigMap") -> list[Finding]:
    objects = [ObjectRef.of(an_object("v1", kind, f"one-{index:03}", "shop")) for index in range(count)]
    return [may_not(ref, severity) for ref in objects]


def test_500_equal_findings_are_one_that_names_the_rule_the_count_and_the_first_objects() -> None:
    (one,) = folded(many())
    assert (one.rule, one.severity, one.evidence["count"]) == ("PRE-01", Severity.BREAKING, MANY)
    assert "may not create ConfigMap shop/one-000. The same holds for 499 more: ConfigMap shop/one-001" in one.message
    assert one.evidence["objects"] == [f"ConfigMap shop/one-{index:03}" for index in range(MANY)]
    assert [place["object"] for place in one.evidence["all_places"]] == one.evidence["objects"]


def test_a_few_equal_findings_stay_as_they_are() -> None:
    assert folded(many(MAX_UNFOLDED)) == many(MAX_UNFOLDED)


@pytest.mark.parametrize("severity", [Severity.CRITICAL, Severity.UNKNOWN])
def test_nothing_critical_or_unknown_is_folded(severity: Severity) -> None:
    assert folded(many(severity=severity)) == many(severity=severity)


@pytest.mark.parametrize("kind", ["CustomResourceDefinition", "Namespace", "PersistentVolume", "PersistentVolumeClaim"])
def test_deletions_that_take_something_along_are_not_folded(kind: str) -> None:
    objects = [ObjectRef.of(an_object("v1", kind, f"one-{index:02}")) for index in range(20)]
    deleted = ReviewRule("DEL-01", Section.OBJECTS, Severity.BREAKING)
    assert len(folded(deleted.finding("deletes", ref) for ref in objects)) == 20


def test_what_takes_objects_along_that_were_counted_is_not_folded() -> None:
    """As of replaced CRDs: the gate looks at each again."""
    found = [replace(one, evidence={**one.evidence, "counts": {"Boat": 0}}) for one in many(20)]
    assert folded(found) == found


def test_findings_about_secrets_are_not_folded() -> None:
    """Each reader may see other Secrets, and a name in another finding would tell of one."""
    assert len(folded(many(kind="Secret"))) == MANY


@pytest.mark.parametrize(
    "other",
    [
        replace(many(1)[0], rule="PRE-02", variant="", message="may not create ConfigMap shop/one-000"),
        *many(1, severity=Severity.NOTABLE),
        may_not(ObjectRef.of(an_object("v1", "ConfigMap", "one-000", "shop")), Severity.BREAKING, "patch"),
        replace(many(1)[0], ref=None),
        may_not(ObjectRef.of(an_object("v1", "ConfigMap", "one-000", "other"))),
    ],
    ids=["another rule", "another severity", "another verb", "no object", "another namespace"],
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
        installer=Installer(RbacSubject("ServiceAccount", "installer", "shop")),
    )
    found = report(given)
    lacking = [one for one in found.findings if one.rule == "PRE-01"]
    assert [one.severity for one in lacking] == [Severity.UNKNOWN] * MANY  # nobody knows its roles: never folded
    known = report(replace(given, live_rbac=()))
    (one,) = [one for one in known.findings if one.rule == "PRE-01"]
    assert one.evidence["count"] == MANY
    assert "1 breaking" in known.headline[-1]


def test_what_a_check_of_another_package_says_in_words_of_its_own_is_told_each_by_itself() -> None:
    theirs = [replace(one, variant="") for one in many(20)]
    assert folded(theirs) == theirs


THINGS = ObjectRef("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", "things.example.org")


def narrowed(
    field: str, version: str = "v1", *, ref: ObjectRef = THINGS, severity: Severity = Severity.BREAKING
) -> Finding:
    path = ("spec", field)
    made = ReviewRule("SCH-25", Section.CRDS, severity)
    return made.finding("limit", ref, where=path, key=[version, field], version=version, limit="maxLength", new=10)


def fields_of(one: Finding) -> list[tuple[str, str, str]]:
    return [(place.of, shown(place.path), place.version) for place in places_of(one)]


def test_twelve_fields_that_break_alike_are_one_finding_that_has_every_path() -> None:
    fields = [f"f{number:02}" for number in range(12)]
    (one,) = folded(narrowed(field) for field in fields)
    assert one.message.startswith("CRD things.example.org v1, spec.f00: maxLength none before, 10 now. The same ")
    assert one.message.endswith("holds for 11 more fields: spec.f01, spec.f02, spec.f03, spec.f04 and 7 more")
    assert fields_of(one) == [("CRD things.example.org", f"spec.{field}", "v1") for field in fields]
    assert one.evidence["count"] == 12


def test_fields_of_several_crds_are_one_finding_that_names_the_crds() -> None:
    others = replace(THINGS, name="others.example.org")
    found = [narrowed(f"f{number:02}", ref=ref) for ref in (THINGS, others) for number in range(6)]
    (one,) = folded(found)
    assert one.message.endswith("11 more fields of 2 objects: CRD others.example.org, CRD things.example.org")
    assert len(fields_of(one)) == 12


def test_a_field_of_several_versions_is_said_once() -> None:
    (one,) = folded(narrowed("a", version) for version in ("v1", "v2"))
    assert one.message == "CRD things.example.org v1, v2, spec.a: maxLength none before, 10 now"
    assert [version for *_, version in fields_of(one)] == ["v1", "v2"]
    assert one.fingerprint not in {narrowed("a", version).fingerprint for version in ("v1", "v2")}


def test_what_was_said_of_one_place_alone_is_kept_at_the_place() -> None:
    found = [replace(one, evidence={**one.evidence, "old": at, "same": 1}) for at, one in enumerate(many(20))]
    (one,) = folded(found)
    assert one.evidence["same"] == 1
    assert [place["evidence"] for place in one.evidence["all_places"]] == [{"old": at} for at in range(20)]


def test_S09_findings_made_of_other_objects_are_said_by_themselves() -> None:
    """Who may see what one is made of may not see what the other is."""
    roles = (ObjectRef("rbac.authorization.k8s.io", "v1", "Role", "shop", "a"),)
    found = [replace(one, sources=roles if at % 2 else ()) for at, one in enumerate(many(40))]
    assert sorted(len(places_of(one)) for one in folded(found)) == [20, 20]


def refused(
    source: str, target: str, severity: Severity = Severity.BREAKING, removed: tuple[str, ...] = ("A",)
) -> Finding:
    because = {"because": "SCH-21", "because_variant": "removed", "removed": removed}
    pair = {"version": target, "from": source, "to": target, "live": True}
    made = ReviewRule("SRV-03", Section.CRDS, severity)
    return made.finding("refused", THINGS, where=("spec", "kind"), key=[source, target], **pair, **because)


def test_the_same_difference_between_six_pairs_of_versions_is_said_once() -> None:
    pairs = [(a, b) for a in ("v1", "v1beta1", "v2") for b in ("v1", "v1beta1", "v2") if a != b]
    (one,) = folded(refused(*pair) for pair in pairs)
    assert 'v1beta1 refuses what v1 accepts ("A" is no longer allowed). The same holds from v1 to v2' in one.message
    assert [(it["evidence"]["from"], it["version"]) for it in one.evidence["all_places"]] == pairs


@pytest.mark.parametrize(
    "other",
    [refused("v1beta1", "v2", Severity.UNKNOWN), refused("v1beta1", "v2", removed=("B",))],
    ids=["nobody knows", "another reason"],
)
def test_pairs_of_versions_that_differ_otherwise_are_said_by_themselves(other: Finding) -> None:
    found = [refused("v1beta1", "v1"), other]
    assert folded(found) == found


@pytest.mark.parametrize("severity", [Severity.CRITICAL, Severity.UNKNOWN])
def test_S24_each_version_of_what_is_critical_or_unknown_is_said_by_itself(severity: Severity) -> None:
    found = [narrowed("a", version, severity=severity) for version in ("v1", "v2")]
    assert folded(found) == found


def test_versions_that_have_another_reason_are_said_by_themselves() -> None:
    first, second = narrowed("a", "v1"), narrowed("a", "v2")
    found = [first, replace(second, evidence={**second.evidence, "counterexample": "abc"})]
    assert folded(found) == found


def test_a_field_whose_name_is_a_word_of_the_message_is_told_from_it() -> None:
    found = [narrowed(field) for field in ("none", "before", "now")]
    assert folded(found) == found
