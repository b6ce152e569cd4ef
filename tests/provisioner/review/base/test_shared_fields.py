"""A field of a type that several CRDs share is told once, with how many places it has."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.base.facts import ReviewRule, said
from provisioner.review.base.fold import folded
from provisioner.review.base.shared_fields import fields_in_words, objects_in_words, shared_words, spelled_out
from provisioner.review.base.statements import statements
from provisioner.schema.verdicts import shown
from provisioner.values import Finding, ObjectRef, Section, Severity

CRDS = [
    ObjectRef("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", f"{one}s.example.org") for one in "abcd"
]
HASH = ("headerHashOptions", "headerName")


def needed(crd: int, *path: str, severity: Severity = Severity.BREAKING, rule: str = "SCH-08", **facts: Any) -> Finding:
    words = f"{path[-1]} must be there now; breaks only if an object has that part without {path[-1]}"
    ref = CRDS[crd]
    made = ReviewRule(rule, Section.CRDS, severity)
    evidence = {"version": "v1", "live": True, **facts}
    return made.at(ref, f"{said(ref)} v1, {shown(path)}: {words}", path=path, evidence=evidence)


def default(name: str, old: object, new: object) -> Finding:
    path, ref = ("spec", name), CRDS[0]
    message = f"{said(ref)} v1, {shown(path)}: objects that leave it out read {new} instead of {old}; matters only if x"
    made = ReviewRule("SCH-34", Section.CRDS, Severity.DANGEROUS)
    return made.at(ref, message, path=path, evidence={"version": "v1", "old": old, "new": new})


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
    (one,) = folded([needed(0, "spec", f"route{at:02}", "value", rule="SCH-01") for at in range(12)])
    assert objects_in_words([one]) == "12 places in CRD as.example.org"


def test_defaults_of_other_values_are_one_statement_and_each_value_stands_with_its_field() -> None:
    found = [default("image", "a:1", "a:2"), default("mode", False, True)]
    (one,) = statements(found, shortly=True)
    assert one.words == "objects that leave it out read another default; matters only if x"
    assert fields_in_words(one.findings, 6) == 'spec.image ("a:1" → "a:2"), spec.mode (false → true)'


@pytest.mark.parametrize("severity", [Severity.CRITICAL, Severity.UNKNOWN])
def test_S24_what_is_critical_or_unknown_is_never_told_in_words_of_another_field(severity: Severity) -> None:
    found = [needed(at, "spec", f"f{at}", severity=severity) for at in range(3)]
    told = statements(found, shortly=True)
    assert [one.words for one in told] == [one.message for one in found]


@pytest.mark.parametrize(
    ("words", "shared"),
    [
        ("field … added (22 below it); x", "field … added; x"),
        ("no stored object is concerned; 3 of 3 objects checked", "no stored object is concerned"),
        ("one is concerned; 2 of 3 objects checked", "one is concerned; 2 of 3 objects checked"),
        ("breaks only if an object has an item without name", "breaks only if an object has an item without it"),
        ("breaks only if an object has an item without names", "breaks only if an object has an item without names"),
    ],
)
def test_what_is_left_out_of_shared_words_is_said_elsewhere(words: str, shared: str) -> None:
    assert shared_words(words, needed(0, "spec", "name")) == shared
