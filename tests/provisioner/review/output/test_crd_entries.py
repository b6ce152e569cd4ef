"""A report that would be too long for a person tells each rule about CRDs in one entry, and loses nothing loud."""

from __future__ import annotations

from typing import Any

from provisioner.review.base.facts import ReviewRule
from provisioner.review.base.grouping import folded
from provisioner.review.output.headline import MAX_LINES
from provisioner.review.output.terminal import as_text
from provisioner.schema.verdicts import shown
from provisioner.values import Finding, ObjectRef, Plan, Report, Section, Severity, worst_first

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


def made(rule: str, severity: Severity, name: str, field: str, **facts: Any) -> Finding:
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
        made(rule, severity, name, f"{rule[-2:]}x{at}", **facts)
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
    unknown = [made("SCH-60", Severity.UNKNOWN, "boats", f"odd{at}") for at in range(30)]
    text = text_of([*many(4), *unknown])
    assert all(shown(one.path) in text for one in unknown)
    assert all(f"odd{at} is no keyword" in " ".join(text.split()) for at in range(30))


def test_what_depends_on_stored_objects_is_told_from_what_holds_always() -> None:
    unknown = [made("SCH-60", Severity.UNKNOWN, "boats", f"odd{at}") for at in range(30)]
    always = [made("SCH-03", Severity.DANGEROUS, "boats", "state"), *unknown]
    text = text_of([*many(4, live=True), *always])
    assert "What follows depends on stored objects, except where it says always:" in text
    assert "(always): spec.deck.state" in " ".join(text.split())
    assert text.count("(always)") == 1
    assert "except where it says always" not in text_of([*many(4), *always])


def test_where_all_is_told_each_field_has_its_line() -> None:
    found = many(4)
    whole = text_of(found, with_all=True)
    assert all(shown(one.path) in whole for one in found)
