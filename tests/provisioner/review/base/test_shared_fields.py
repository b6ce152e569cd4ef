"""A field of a type that several CRDs share is told once, with how many places it has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from provisioner.review.base.facts import ReviewRule
from provisioner.review.base.grouping import fields_in_words, folded, objects_in_words, spelled_out, statements
from provisioner.review.base.messages import words_anywhere
from provisioner.review.crds.live_findings import OBJECTS, with_condition
from provisioner.values import Finding, Note, ObjectRef, Section, Severity

CRDS = [
    ObjectRef("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", f"{one}s.example.org") for one in "abcd"
]
HASH = ("headerHashOptions", "headerName")


def needed(
    crd: int, *path: str, severity: Severity = Severity.BREAKING, rule: str = "SCH-08", variant: str = "required"
) -> Finding:
    made = ReviewRule(rule, Section.CRDS, Severity.BREAKING)
    found = made.finding(variant, CRDS[crd], where=path, key=path, version="v1", live=True)
    return with_condition(replace(found, severity=severity))


def default(name: str, old: object, new: object) -> Finding:
    made = ReviewRule("SCH-34", Section.CRDS, Severity.DANGEROUS)
    values = {"version": "v1", "live": True, "old": old, "new": new}
    return with_condition(made.finding("changed", CRDS[0], where=("spec", name), key=name, **values))


def test_one_type_that_four_crds_share_is_one_statement_and_one_field_with_its_places() -> None:
    found = [needed(at, "spec", f"route{at}", *HASH) for at in range(4)]
    other = needed(1, "spec", "requestHeader", "name")
    (one,) = statements([*found, other], shortly=True)
    assert one.words == "it must be there now; breaks only if an object has that part without it"
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
    found = [made.finding("field-removed", one, where=("spec", "a"), version="v1", below=22) for one in CRDS]
    assert {words_anywhere(one, is_short=True) for one in found} == {"field … removed: what it holds is pruned"}


def test_that_every_object_was_looked_at_is_left_out_in_short() -> None:
    notes = (
        Note(OBJECTS, "none-concerned"),
        Note(OBJECTS, "checked", {"quality": "whole", "checked": 3, "total": 3}, is_minor=True),
    )
    found = replace(default("a", 1, 2), notes=notes)
    assert words_anywhere(found).endswith("; no stored object is concerned; 3 of 3 objects checked")
    assert words_anywhere(found, is_short=True).endswith("; no stored object is concerned")
