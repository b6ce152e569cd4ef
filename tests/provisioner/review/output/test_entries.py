"""Findings are told by cause: what a person would change, in few words, and nothing that its reader may not see."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from provisioner.pipeline import look_offline
from provisioner.review.base.facts import ReviewRule
from provisioner.review.base.grouping import folded, statements
from provisioner.review.output.entries import Cause, CauseKind, cause_of, entries, entries_record, few_words
from provisioner.review.output.headline import MAX_LINES
from provisioner.review.output.terminal import as_text
from provisioner.schema.verdicts import shown
from provisioner.values import Finding, ObjectRef, Plan, Report, Section, Severity, worst_first
from tests.support.provisioner.contents import an_object, config_map, content_with

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
    assert sorted(finding.rule for entry in found for finding in entry.findings) == sorted(
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


LINES = [f"key{number}: value" for number in range(40)]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("a", "b", "data.file: a → b"),
        ("\n".join(LINES), "\n".join([*LINES[:-1], "key39: other"]), "data.file: - key39: value + key39: other"),
        ("\n".join(LINES), "\n".join([*LINES[:-2], "x: 1"]), "data.file: - key38: value + x: 1 (1 more line)"),
        ("\n".join(LINES), "\n".join(LINES[::-1]), "data.file: its lines stand in another order"),
        ("a: 1\n", f"a: {'2' * 100}\n", f"data.file: - a: 1 + a: {'2' * 55}…"),
    ],
    ids=["one line", "one line of many", "fewer lines", "another order", "a long line"],
)
def test_a_text_of_many_lines_is_told_by_those_that_differ(old: str, new: str, words: str) -> None:
    report = look_offline(content_with(config_map(file=new)), content_with(config_map(file=old)))
    told = statements([finding for finding in report.findings if finding.rule == "UNJUDGED"])
    assert few_words(list(told)) == ([("ConfigMap shop/settings", [words])], 0)


def test_new_objects_are_one_entry_by_kind_and_field() -> None:
    maps = [config_map(name, a="b") for name in ("one", "two")]
    made = [an_object("v1", "Service", "web", "shop", spec={"sessionAffinity": "ClientIP"})]
    made += [{**one, "metadata": {**one["metadata"], "labels": {"team": "x"}}} for one in maps]
    report = look_offline(content_with(*made), None)
    found = [finding for finding in report.findings if finding.rule == "UNJUDGED"]
    words = ["ConfigMap: metadata.labels.team", "Service: spec.sessionAffinity"]
    assert few_words(statements(found)) == ([("3 fields of 3 objects that are new", words)], 3)


NAMES = ("boats", "harbours")
# Of the catalog, each of a severity that its file lists, and one of its messages.
BREAKING = ("SCH-01", "SCH-08", "SCH-11", "SCH-13", "SCH-20", "SCH-21", "SCH-26", "SCH-30", "SCH-32", "SCH-51")
DANGEROUS = ("SCH-33", "SCH-34", "SCH-36", "SCH-48", "SCH-49", "SCH-50")

VARIANTS = {
    "SCH-01": "map-pruned",
    "SCH-03": "field-removed",
    "SCH-08": "required",
    "SCH-11": "required",
    "SCH-13": "type",
    "SCH-20": "added",
    "SCH-21": "removed",
    "SCH-26": "same-bounds",
    "SCH-30": "pattern",
    "SCH-32": "format",
    "SCH-33": "added",
    "SCH-34": "changed",
    "SCH-36": "kept",
    "SCH-48": "type",
    "SCH-49": "type",
    "SCH-50": "type",
    "SCH-51": "schema-added",
    "SCH-60": "no-keyword",
}


def of_schema(rule: str, severity: Severity, name: str, field: str, **facts: Any) -> Finding:
    ref = ObjectRef("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", f"{name}.example.org")
    values = {
        "version": "v1",
        "keyword": field,
        "removed": [field],
        "allowed": [field],
        "old": "a",
        "new": "b",
        **facts,
    }
    path, variant = ("spec", "deck", field), VARIANTS[rule]
    return ReviewRule(rule, Section.CRDS, severity).finding(
        variant, ref, where=path, key=field, proof=None, below=0, **values
    )


def many(fields: int, **facts: Any) -> list[Finding]:
    kinds = [*((rule, Severity.BREAKING) for rule in BREAKING), *((rule, Severity.DANGEROUS) for rule in DANGEROUS)]
    return [
        of_schema(rule, severity, name, f"{rule[-2:]}x{at}", **facts)
        for rule, severity in kinds
        for name in NAMES
        for at in range(fields)
    ]


def text_of(findings: list[Finding], **switches: bool) -> str:
    return as_text(Report(("Much changes.",), worst_first(folded(findings)), Plan((), "")), **switches)


def test_a_long_report_fits_into_what_a_person_reads_and_names_every_rule_and_crd() -> None:
    text = text_of(many(20))
    assert len(text.splitlines()) <= MAX_LINES
    assert all(rule in text for rule in (*BREAKING, *DANGEROUS))
    assert all(f"CRD {name}.example.org" in text for name in NAMES)
    assert "more places of these findings" in text


def test_a_report_that_is_short_enough_has_the_words_of_each() -> None:
    text = text_of(many(1)[:4])
    assert "the map's values are pruned (at spec.deck.01x0)" in " ".join(text.split())


def test_S24_what_is_unknown_has_its_own_lines_in_the_longest_report() -> None:
    unknown = [of_schema("SCH-60", Severity.UNKNOWN, "boats", f"odd{at}") for at in range(30)]
    text = text_of([*many(4), *unknown])
    assert all(shown(one.path) in text for one in unknown)
    assert all(f"odd{at} is no keyword" in " ".join(text.split()) for at in range(30))


def test_what_depends_on_stored_objects_is_told_from_what_holds_always() -> None:
    unknown = [of_schema("SCH-60", Severity.UNKNOWN, "boats", f"odd{at}") for at in range(30)]
    always = [of_schema("SCH-03", Severity.DANGEROUS, "boats", "state"), *unknown]
    text = text_of([*many(4, live=True), *always])
    assert "What follows depends on stored objects, except where it says always:" in text
    assert "(always): spec.deck.state" in " ".join(text.split())
    assert text.count("(always)") == 1
    assert "except where it says always" not in text_of([*many(4), *always])


def test_where_all_is_told_each_field_has_its_line() -> None:
    found = many(4)
    whole = text_of(found, with_all=True)
    assert all(shown(one.path) in whole for one in found)
