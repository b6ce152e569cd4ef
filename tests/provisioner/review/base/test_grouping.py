"""Equal findings, and fields of a type that several CRDs share, are said once."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from html import unescape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provisioner.pipeline import look_offline
from provisioner.rbac import RbacSubject
from provisioner.review.base.causes import said_by_cause
from provisioner.review.base.facts import Installer, ReviewRule
from provisioner.review.base.grouping import (
    MAX_UNFOLDED,
    fields_in_words,
    folded,
    objects_in_words,
    reaches,
    spelled_out,
    statements,
)
from provisioner.review.base.messages import EACH, FieldPlace, path_text, places_of, words_anywhere
from provisioner.review.base.record import from_record, to_record
from provisioner.review.crds.live_findings import OBJECTS, with_condition
from provisioner.review.frame import report
from provisioner.review.output.html import as_html
from provisioner.review.output.terminal import as_text
from provisioner.schema.verdicts import shown
from provisioner.values import (
    Action,
    Finding,
    Note,
    ObjectRef,
    Plan,
    Report,
    Section,
    Severity,
    display_name,
    worst_first,
)
from tests.support.provisioner.contents import an_object, config_map, content_with, facts, planned

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


@pytest.mark.thorough
def test_a_report_on_500_objects_that_may_not_be_made_has_one_finding_of_it_and_states_every_severity() -> None:
    maps = [config_map(f"settings-{index}") for index in range(MANY)]
    given = facts(
        *(planned(one, Action.CREATE) for one in maps),
        installer=Installer(RbacSubject("ServiceAccount", "installer", "shop")),
    )
    found = report(given)
    lacking = [finding for finding in found.findings if finding.rule == "PRE-01"]
    assert [one.severity for one in lacking] == [Severity.UNKNOWN] * MANY  # nobody knows its roles: never folded
    known = report(replace(given, live_rbac=()))
    (one,) = [finding for finding in known.findings if finding.rule == "PRE-01"]
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
    assert one.message.startswith("CRD things.example.org v1, spec.f00: maxLength changes from none to 10. The same ")
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
    assert one.message == "CRD things.example.org v1, v2, spec.a: maxLength changes from none to 10"
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
    assert [(place["evidence"]["from"], place["version"]) for place in one.evidence["all_places"]] == pairs


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


LOUD = (Severity.CRITICAL, Severity.UNKNOWN)
CRDS = [ObjectRef("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", f"{one}.example.org") for one in "abc"]
NAMES = st.sampled_from(["spec", "size", "name", "at", "most", "[]", "{}", "kind", "v1"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(lambda parts: ("spec", *parts))


@st.composite
def found(draw: st.DrawFn) -> Finding:
    """A finding as checks make them: of a field of a CRD, or of an object."""
    severity, is_new = draw(st.sampled_from(list(Severity))), draw(st.booleans())
    if draw(st.booleans()):
        ref, path, version = draw(st.sampled_from(CRDS)), draw(PATHS), draw(st.sampled_from(["v1", "v1beta1"]))
        old, new = draw(st.integers(0, 2)), draw(st.integers(3, 5))
        limits = {"version": version, "limit": "maxLength", "old": old, "new": new}
        made = ReviewRule("SCH-25", Section.CRDS, Severity.SAFE).finding("limit", ref, where=path, key=limits, **limits)
    else:
        ref = ObjectRef("apps", "v1", "Deployment", "shop", f"one-{draw(st.integers(0, 30))}")
        path = ("spec", "containers", draw(st.integers(0, 2)), "image")
        made = ReviewRule("IMG-01", Section.IMAGES, Severity.NOTABLE).finding(
            "by-tag-only", ref, where=path, image="a:1"
        )
    return replace(made, severity=severity, is_new=is_new, fingerprint=f"{made.fingerprint}{severity}{is_new}")


def report_of(findings: list[Finding]) -> Report:
    once = {finding.fingerprint: finding for finding in findings}.values()
    return Report((), worst_first(folded(said_by_cause(once))), Plan((), ""))


def all_places(findings: list[Finding]) -> Counter[FieldPlace]:
    return Counter(place for finding in findings for place in places_of(finding))


@given(st.lists(found(), max_size=60))
@settings(max_examples=150, deadline=None)
def test_every_place_of_every_finding_is_in_the_json(findings: list[Finding]) -> None:
    report = report_of(findings)
    kept = from_record(json.loads(json.dumps(to_record(report)))).findings
    for severity in Severity:
        before, after = (
            {place for one in every if one.severity is severity for place in places_of(one)}
            for every in (findings, kept)
        )
        assert after == before


@given(st.lists(found(), max_size=60))
@settings(max_examples=100, deadline=None)
def test_every_finding_is_in_one_statement_and_every_place_in_one_reach(findings: list[Finding]) -> None:
    report = report_of(findings)
    told = statements(report.findings)
    assert Counter(one.fingerprint for group in told for one in group.everything) == Counter(
        finding.fingerprint for finding in report.findings
    )
    for one in told:
        reached = {
            (name, field, version)
            for reach in one.reaches
            for name in reach.objects
            for field in reach.fields
            for version in reach.versions or ("",)
        }
        assert reached == {(place.of, path_text(place.path), place.version) for place in one.places}


@given(st.lists(found(), max_size=60))
@settings(max_examples=60, deadline=None)
def test_every_place_of_every_finding_is_on_the_page_and_in_the_whole_text(findings: list[Finding]) -> None:
    report = report_of(findings)
    page = unescape(re.sub(r"<[^>]*>", "", as_html(report, title="a")))
    text = " ".join(as_text(report, with_all=True).split())
    for place in all_places(findings):
        assert place.of in page
        assert path_text(place.path) in page
        assert place.of in text
        assert path_text(place.path) in text


@given(st.lists(found(), max_size=60))
@settings(max_examples=60, deadline=None)
def test_S24_the_short_text_says_every_place_of_what_is_critical_or_unknown(findings: list[Finding]) -> None:
    loud = [finding for finding in findings if finding.severity in LOUD and finding.is_new]
    text = " ".join(as_text(report_of(findings)).split())
    for one in loud:
        assert display_name(one.ref) in text if one.ref else True
        assert path_text(one.path) in text


def image(name: str, severity: Severity = Severity.NOTABLE) -> Finding:
    ref = ObjectRef("apps", "v1", "Deployment", "shop", name)
    made = ReviewRule("IMG-01", Section.IMAGES, Severity.NOTABLE).finding("by-tag-only", ref, image="shop:1")
    return replace(made, severity=severity)


def test_findings_that_say_the_same_are_one_statement() -> None:
    (one,) = statements([image("a"), image("b")])
    assert one.words == "Each of these names shop:1 by tag only: what runs may change without a request"
    assert [place.of for place in one.places] == ["Deployment shop/a", "Deployment shop/b"]
    assert one.size == "2 objects"


def test_one_finding_keeps_its_own_words() -> None:
    (one,) = statements([image("a")])
    assert one.words == image("a").message
    assert not one.is_of_several


@pytest.mark.parametrize(
    "other",
    [
        replace(image("b"), is_new=False),
        replace(image("b"), evidence={"image": "shop:2"}),
        image("b", Severity.BREAKING),
        replace(image("b"), server_words="no"),
        replace(image("b"), evidence={"image": "shop:1", "steps": ["kubectl delete"]}),
        replace(image("b"), also=("IMG-02",)),
    ],
    ids=["as before", "another image", "another severity", "words of the server", "steps", "a further rule"],
)
def test_what_differs_in_more_than_its_place_is_another_statement(other: Finding) -> None:
    assert len(statements([image("a"), other])) == 2


def test_objects_that_have_the_same_fields_stand_together_unless_they_are_critical() -> None:
    places = [FieldPlace(f"CRD {one}", ("spec", field), "v1") for one in "ab" for field in ("x", "y")]
    (one,) = reaches(places)
    assert (one.objects, one.versions, one.fields) == (("CRD a", "CRD b"), ("v1",), ("spec.x", "spec.y"))
    assert [reach.objects for reach in reaches(places, is_apart=True)] == [("CRD a",), ("CRD b",)]


def of_crd(rule: str, variant: str, *path: str, **values: object) -> Finding:
    made = ReviewRule(rule, Section.CRDS, Severity.DANGEROUS if rule == "SCH-03" else Severity.BREAKING)
    return made.finding(variant, CRDS[0], where=path, key=path, version="v1", **values)


@pytest.mark.parametrize(
    ("finding", "words"),
    [
        (of_crd("SCH-25", "limit", "spec", "size", limit="maxLength", new=3), "maxLength changes from none to 3"),
        (of_crd("SCH-03", "field-removed", "spec", "size"), "field … removed: what it holds is pruned"),
        (of_crd("SCH-08", "required", "spec", "size"), "it becomes required"),
        (image("a"), f"{EACH.capitalize()} names shop:1 by tag only: what runs may change without a request"),
    ],
)
def test_what_a_statement_leaves_out_is_its_place(finding: Finding, words: str) -> None:
    assert words_anywhere(finding) == words


def test_what_names_no_object_is_told_by_itself() -> None:
    request = ReviewRule("AS-01", Section.WEBHOOKS, Severity.NOTABLE)
    found = [request.finding("answered-by-service", crd, api="v1.a", service="shop/a", key=crd.name) for crd in CRDS]
    assert [len(statement.findings) for statement in statements(found)] == [1, 1, 1]


def test_S24_a_field_whose_name_reads_like_our_words_hides_none_of_a_statement() -> None:
    names = [f"a{at}. The same holds for nothing" for at in range(12)]
    found = [of_crd("SCH-25", "limit", "spec", name, limit="maxLength", new=10) for name in names]
    text = " ".join(as_text(Report((), tuple(folded(found)), Plan((), "")), with_all=True).split())
    assert "maxLength changes from none to 10" in text
    assert all(f"spec.{name}" in text for name in names)


def test_S24_full_power_is_told_beside_the_power_over_approvals_in_lines_of_their_own() -> None:
    robot = ObjectRef("", "v1", "ServiceAccount", "shop", "robot")
    power = ReviewRule("OWN-PRATIQUE-03", Section.PERMISSIONS, Severity.CRITICAL).finding(
        "account", robot, told="everything", powers=[]
    )
    everything = ReviewRule("RB-01", Section.PERMISSIONS, Severity.CRITICAL).finding(
        "can", robot, power="do everything"
    )
    (one,) = statements([power, everything])
    assert (one.findings, one.attached) == ((power,), (everything,))
    text = as_text(Report((), (power, everything), Plan((), "")))
    assert "◆ critical  RB-01: `shop/robot` can do everything" in text
    assert "PERMISSIONS  2 critical" in text
    known = replace(everything, is_new=False)
    assert [len(statement.everything) for statement in statements([power, known])] == [1, 1]


def test_a_label_that_changes_on_fifty_objects_of_several_kinds_is_one_statement() -> None:
    kinds = ("ConfigMap", "Service", "Role", "ServiceAccount", "Deployment")
    objects = [ObjectRef("", "v1", kind, f"space-{at % 2}", f"one-{at}") for kind in kinds for at in range(10)]
    changed = ReviewRule("OBJ-02", Section.OBJECTS, Severity.SAFE)
    fields = ["metadata.labels.version"]
    found = [changed.finding("changes", ref, fields=fields, changes=at) for at, ref in enumerate(objects)]
    (one,) = statements(folded(found))
    assert one.words == f"Changes metadata.labels.version of {EACH}"
    assert one.size == "50 objects"
    assert {place.of for place in one.places} == set(map(display_name, objects))


@pytest.mark.parametrize("severity", LOUD)
def test_S24_each_object_of_what_is_critical_or_unknown_has_a_line_of_its_own(severity: Severity) -> None:
    lines = as_text(Report((), (image("a", severity), image("b", severity)), Plan((), ""))).splitlines()
    assert [line.strip() for line in lines[-2:]] == ["Deployment shop/a", "Deployment shop/b"]


def test_words_that_hold_in_several_fields_name_no_field() -> None:
    found = look_offline(content_with(config_map("web", a="c\u0430t", b="c\u0430t")), None).findings
    (told,) = [statement.words for statement in statements(found) if statement.first.rule == "TXT-03"]
    assert told.startswith("Each of these has words in … made of letters that look like others")


DEFINITIONS = [
    ObjectRef("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", f"{one}s.example.org") for one in "abcd"
]
HASH = ("headerHashOptions", "headerName")


def needed(
    crd: int, *path: str, severity: Severity = Severity.BREAKING, rule: str = "SCH-08", variant: str = "required"
) -> Finding:
    made = ReviewRule(rule, Section.CRDS, Severity.BREAKING)
    found = made.finding(variant, DEFINITIONS[crd], where=path, key=path, version="v1", live=True)
    return with_condition(replace(found, severity=severity))


def default(name: str, old: object, new: object) -> Finding:
    made = ReviewRule("SCH-34", Section.CRDS, Severity.DANGEROUS)
    values = {"version": "v1", "live": True, "old": old, "new": new}
    return with_condition(made.finding("changed", DEFINITIONS[0], where=("spec", name), key=name, **values))


def test_one_type_that_four_crds_share_is_one_statement_and_one_field_with_its_places() -> None:
    found = [needed(at, "spec", f"route{at}", *HASH) for at in range(4)]
    other = needed(1, "spec", "requestHeader", "name")
    (one,) = statements([*found, other], shortly=True)
    assert one.words == "it becomes required; breaks only if an object has that part without it"
    assert fields_in_words(one.findings, 6) == "…headerHashOptions.headerName (4 places), spec.requestHeader.name"
    assert objects_in_words(one.findings) == "5 places in CRD as.example.org and 3 more"
    assert len(statements([*found, other])) == 2  # where all is told, each in its own words


def test_a_number_stands_for_the_fields_that_are_not_named() -> None:
    found = [needed(0, "spec", f"f{at}") for at in range(5)]
    assert fields_in_words(found, 2) == "spec.f0, spec.f1 and 3 more fields"
    assert fields_in_words(found[:3], 2) == "spec.f0, spec.f1 and 1 more field"
    assert spelled_out(found, 2) == 2


def test_the_places_of_findings_that_were_folded_count_as_well() -> None:
    removed = {"rule": "SCH-01", "variant": "map-pruned"}
    (one,) = folded([needed(0, "spec", f"route{at:02}", "value", **removed) for at in range(12)])
    assert objects_in_words([one]) == "12 places in CRD as.example.org"


def test_defaults_of_other_values_are_one_statement_and_each_value_stands_with_its_field() -> None:
    found = [default("image", "a:1", "a:2"), default("mode", False, True)]
    (one,) = statements(found, shortly=True)
    assert one.words == "objects that leave it out read another default; matters only if an object leaves it out"
    assert fields_in_words(one.findings, 6) == 'spec.image ("a:1" → "a:2"), spec.mode (false → true)'


@pytest.mark.parametrize("severity", [Severity.CRITICAL, Severity.UNKNOWN])
def test_S24_what_is_critical_or_unknown_is_never_told_in_words_of_another_field(severity: Severity) -> None:
    found = [needed(at, "spec", f"f{at}", severity=severity) for at in range(3)]
    assert statements(found, shortly=True) == statements(found)


def test_how_many_fields_are_below_one_is_left_out_in_short() -> None:
    made = ReviewRule("SCH-03", Section.CRDS, Severity.DANGEROUS)
    found = [
        made.finding("field-removed", definition, where=("spec", "a"), version="v1", below=22)
        for definition in DEFINITIONS
    ]
    assert {words_anywhere(one, is_short=True) for one in found} == {"field … removed: what it holds is pruned"}


def test_that_every_object_was_looked_at_is_left_out_in_short() -> None:
    notes = (
        Note(OBJECTS, "none-concerned"),
        Note(OBJECTS, "checked", {"quality": "whole", "checked": 3, "total": 3}, is_minor=True),
    )
    found = replace(default("a", 1, 2), notes=notes)
    assert words_anywhere(found).endswith("; no stored object is concerned; 3 of 3 objects checked")
    assert words_anywhere(found, is_short=True).endswith("; no stored object is concerned")
