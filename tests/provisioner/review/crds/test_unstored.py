"""Where no object of a CRD exists, what its new schema would do to one is one line, and breaks nothing."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.base.facts import Listed, Listing
from provisioner.review.base.grouping import statements
from provisioner.review.base.messages import places_of
from provisioner.review.crds.live_findings import told_by_crd
from provisioner.review.frame import report
from provisioner.review.output.terminal import as_text
from provisioner.values import Finding, Severity
from tests.provisioner.review.crds.orders import GROUP, SIZES, TEXT, crd, found_by, one_of, order, props, scene, version

OLD = crd(version(properties={"a": TEXT, "b": TEXT, "c": {**TEXT, "default": "x"}, "d": SIZES}, required=["c"]))
NEW = crd(version(properties={"a": {**TEXT, "maxLength": 3}, "c": TEXT, "d": {**SIZES, "maximum": 9}}, required=["c"]))
WORDS = (
    "CRD orders.shop.example.com: 2 fields are stricter, 1 is removed and 1 has another default; no Order exists; "
    "clients that write what is no longer accepted will be refused"
)


def test_a_stricter_schema_without_objects_is_one_notable_line_that_holds_every_field() -> None:
    found = [finding for finding in found_by(scene(OLD, NEW)) if finding.severity is not Severity.SAFE]
    assert [(finding.rule, finding.severity, finding.message) for finding in found if finding.rule != "LIV-06"] == [
        ("LIV-08", Severity.NOTABLE, WORDS)
    ]
    told = one_of(scene(OLD, NEW), "LIV-08")
    assert sorted(place.path[-1] for place in places_of(told)) == ["a", "b", "c", "d"]
    rules = {place["path"][-1]: place["evidence"]["rule"] for place in told.evidence["all_places"]}
    assert rules == {"a": "SCH-25", "b": "SCH-01", "c": "SCH-35", "d": "SCH-25"}


def test_with_one_object_each_field_is_told_by_itself_and_the_default_that_goes_breaks() -> None:
    found = found_by(scene(OLD, NEW, order(a="x")))
    assert "LIV-08" not in {finding.rule for finding in found}
    assert {finding.rule: finding.severity for finding in found}["SCH-35"] is Severity.BREAKING


@pytest.mark.parametrize(
    "unread",
    [
        pytest.param(Listed(total=None, problem="forbidden"), id="refused"),
        pytest.param(Listed(total=None), id="not counted"),
        pytest.param(Listed(total=4), id="cut"),
    ],
)
def test_a_list_that_is_not_whole_says_of_no_field_that_nothing_breaks(unread: Listed) -> None:
    found = found_by(scene(OLD, NEW, lists={Listing(GROUP, "v1", "Order"): unread}))
    assert "LIV-08" not in {finding.rule for finding in found}
    assert Severity.BREAKING in {finding.severity for finding in found}


def test_what_no_comparison_decides_and_a_version_that_goes_keep_their_own_lines() -> None:
    rule = {"rule": "self.a == self.b", "message": "alike"}
    old = crd(version("v1", properties={"a": TEXT}), version("v0", storage=False, properties={"a": TEXT}))
    undecided = {"properties": {"a": {**TEXT, "pattern": "^(a|b)+$"}}, "x-kubernetes-validations": [rule]}
    found = {finding.rule: finding.severity for finding in found_by(scene(old, crd(version("v1", **undecided))))}
    assert found["CRD-11"] is Severity.BREAKING
    assert all(found[one].is_at_least(Severity.DANGEROUS) for one in found if one.startswith("CRD-"))


def test_another_field_makes_it_another_finding_and_the_order_does_not() -> None:
    def name(new: dict[str, Any]) -> str:
        return one_of(scene(OLD, new), "LIV-08").fingerprint

    assert name(NEW) == name(NEW)
    more = crd(props(a={**TEXT, "maxLength": 3}, c=TEXT, d={**SIZES, "maximum": 9, "minimum": 1}))
    assert name(more) != name(NEW)


def test_findings_that_nobody_marked_stay_as_they_are() -> None:
    plain = found_by(scene(OLD, NEW, order(a="x")))
    assert told_by_crd(plain) == plain


def test_the_terminal_says_the_number_once_and_lists_the_fields_where_all_is_told() -> None:
    given = report(scene(OLD, NEW))
    brief, whole = as_text(given), as_text(given, with_all=True)
    assert "2 fields are stricter, 1 is removed" in " ".join(brief.split())
    assert "such as" not in brief.partition("LIV-08")[2].partition("\n\n")[0]
    assert "spec.a, spec.b, spec.c, spec.d" in whole


def test_a_statement_that_counts_its_places_itself_is_told_by_its_own_words() -> None:
    found: Finding = one_of(scene(OLD, NEW), "LIV-08")
    (told,) = statements([found])
    assert (told.words, told.is_of_several) == (WORDS, False)
