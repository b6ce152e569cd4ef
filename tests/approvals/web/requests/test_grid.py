"""Capability by reach, as the request page draws it."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.web.requests.overview import MAX_GRIDS, Cell, grids
from approvals.web.requests.report_view import explanation
from tests.support.approvals.scene import report_of


def finding(subject: str, table: dict[str, Any]) -> dict[str, Any]:
    return {"evidence": {"subject": subject, "table": table}}


def test_an_account_that_reads_every_secret_gains_read_in_the_whole_cluster() -> None:
    (grid,) = grids(report_of("account-reads-every-secret")["findings"])
    assert (grid.account, grid.places) == ("ServiceAccount shop/robot", ("whole cluster",))
    assert [(row.capability, [cell.words for cell in row.cells]) for row in grid.rows] == [("Read", ["gains 3"])]


def test_the_whole_cluster_stands_first_and_an_empty_place_says_so() -> None:
    table = {"Delete": {"whole cluster": {"added": 0, "removed": 1}}, "Read": {"a": {"added": 2, "removed": 1}}}
    (grid,) = grids([finding("ServiceAccount a/b", table)])
    assert grid.places == ("whole cluster", "a")
    assert [(row.capability, [(cell.sign, cell.words) for cell in row.cells]) for row in grid.rows] == [
        ("Read", [("", "no change"), ("±", "gains 2, loses 1")]),
        ("Delete", [("–", "loses 1"), ("", "no change")]),
    ]


def test_what_is_gained_and_lost_is_one_grid_per_account_and_their_number_is_bounded() -> None:
    table = {"Read": {"a": {"added": 1, "removed": 0}}}
    assert len(grids([finding("ServiceAccount a/b", table)] * 2)) == 1
    assert len(grids(finding(f"ServiceAccount a/{number}", table) for number in range(90))) == MAX_GRIDS


def test_findings_without_a_table_make_no_grid() -> None:
    assert grids([{"evidence": {}}, finding("", {}), {"evidence": {"subject": "x", "table": "y"}}]) == []


@pytest.mark.parametrize(
    ("cell", "sign"), [(Cell(1, 0), "+"), (Cell(0, 2), "–"), (Cell(1, 1), "±"), (Cell(0, 0), "")], ids=str
)
def test_a_cell_is_a_sign_and_words(cell: Cell, sign: str) -> None:
    assert cell.sign == sign
    assert cell.words


@pytest.mark.parametrize("rule", ["RB-11", "RB-49", "SCH-21", "IMG-08", "GAP"])
def test_a_rule_is_explained(rule: str) -> None:
    assert explanation(rule, {}).endswith(".")


def test_a_rule_of_somebody_elses_check_is_not_explained() -> None:
    assert explanation("<b>-1", {}) == explanation("", {}) == ""
