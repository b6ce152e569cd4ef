"""Every rule of the catalog is implemented, or docs/rules/not-reported.md says why it is not."""

from __future__ import annotations

import re

import pytest

from provisioner.schema import compare
from tests.support.folders import ROOT
from tests.support.provisioner.rules_in_code import rules_in_code
from tests.support.provisioner.shapes import TEXT, JsonDict, crd_of, listed, mapped, obj

PAGE = ROOT / "docs" / "rules" / "not-reported.md"
# The ids of the catalog: the last number of each family, the numbers that it leaves out, and those with letters.
FAMILIES: dict[str, tuple[int, set[int], set[str]]] = {
    "CRD": (35, set(), {"CRD-13b"}),
    "SCH": (60, set(), {"SCH-25n", "SCH-25r", "SCH-36a", "SCH-38t"}),
    "SRV": (6, set(), set()),
    "LIV": (7, set(), set()),
    "RB": (51, {39}, {"RB-18b"}),
    "PRE": (12, set(), set()),
    "POD": (27, {19}, set()),
    "WH": (11, set(), set()),
    "AS": (4, set(), set()),
    "NP": (4, set(), set()),
    "SV": (3, set(), set()),
    "SEC": (6, set(), set()),
    "IMG": (12, set(), set()),
    "API": (5, set(), set()),
    "IMM": (1, set(), set()),
    "DEL": (1, set(), set()),
    "OWN": (1, set(), set()),
}
CATALOG = {
    rule
    for family, (last, gaps, lettered) in FAMILIES.items()
    for rule in lettered | {f"{family}-{number:02d}" for number in range(1, last + 1) if number not in gaps}
}
MAP_OF_TEXT = mapped({**TEXT, "maxLength": 9})


def excused() -> dict[str, str]:
    """The rules of that page, with their reasons."""
    return dict(re.findall(r"^- \*\*([A-Z]+-\w+)\*\* ((?:.|\n  )+)", PAGE.read_text("utf-8"), re.MULTILINE))


def test_every_rule_of_the_catalog_is_implemented_or_excused() -> None:
    assert len(CATALOG) == 250
    assert sorted(CATALOG - set(rules_in_code()) - set(excused())) == []


def test_what_is_excused_is_of_the_catalog_and_has_a_reason() -> None:
    assert set(excused()) <= CATALOG
    assert {"IMG-11", "SCH-59"} <= set(excused())
    assert [rule for rule, reason in excused().items() if ": " not in reason or len(reason) < 60] == []


@pytest.mark.parametrize(
    ("old", "new", "at"),
    [
        pytest.param(MAP_OF_TEXT, mapped({**TEXT, "maxLength": 5}), ("{}",), id="map values"),
        pytest.param(
            mapped(obj(x=MAP_OF_TEXT)),
            mapped(obj(x=mapped({**TEXT, "maxLength": 5}))),
            ("{}", "x", "{}"),
            id="map values inside map values",
        ),
        pytest.param(
            mapped(listed({**TEXT, "maxLength": 9})),
            mapped(listed({**TEXT, "maxLength": 5})),
            ("{}", "[]"),
            id="items inside map values",
        ),
        pytest.param(mapped(obj(a=TEXT)), mapped(obj(a=TEXT, b=TEXT)), ("{}", "b"), id="a field of map values added"),
        pytest.param(mapped(obj(a=TEXT, b=TEXT)), mapped(obj(a=TEXT)), ("{}", "b"), id="a field of map values removed"),
        pytest.param(
            mapped(obj(a=TEXT)), mapped(obj(a={**TEXT, "description": "x"})), ("{}", "a"), id="words of map values"
        ),
        *(
            pytest.param(
                mapped({**obj(a=TEXT), junctor: [{"properties": {"a": {"maxLength": 9}}}]}),
                mapped({**obj(a=TEXT), junctor: [{"properties": {"a": {"maxLength": 5}}}]}),
                ("{}", "a") if junctor == "allOf" else ("{}",),
                id=f"a branch of {junctor}",
            )
            for junctor in ("allOf", "anyOf", "oneOf")
        ),
    ],
)
def test_SCH_59_a_change_below_map_values_or_a_branch_is_reported_at_the_child_only(
    old: JsonDict, new: JsonDict, at: tuple[str, ...]
) -> None:
    (found,) = compare(crd_of(obj(m=old)), crd_of(obj(m=new)))
    assert found.path == ("spec", "m", *at)
