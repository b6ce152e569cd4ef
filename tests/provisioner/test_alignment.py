from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.alignment import NAMING_KEYS, Aligner, Run
from provisioner.builtin.schemas import MINORS, schemas_of

LINES = st.lists(st.sampled_from("abcdef"), max_size=30)


def put_together(runs: list[Run], old: list[str], new: list[str]) -> tuple[list[str], list[str]]:
    """What the runs cover of both, in their order."""
    return [one for run in runs for one in old[run.first : run.last]], [
        one for run in runs for one in new[run.start : run.end]
    ]


@given(LINES, LINES)
def test_every_item_is_in_one_run_and_equal_runs_are_equal(old: list[str], new: list[str]) -> None:
    runs = list(Aligner().runs(old, new))
    assert put_together(runs, old, new) == (old, new)
    assert all(old[run.first : run.last] == new[run.start : run.end] for run in runs if run.is_equal)


@pytest.mark.parametrize("steps", [0, 1, 50])
@given(old=LINES, new=LINES)
def test_every_item_is_in_one_run_when_the_steps_are_used_up(steps: int, old: list[str], new: list[str]) -> None:
    runs = list(Aligner(steps).runs(old, new))
    assert put_together(runs, old, new) == (old, new)


def test_two_changes_far_apart_in_a_long_text_are_two_changes() -> None:
    old = [f"line {number}" for number in range(20_000)]
    new = [*old[:10], "one", *old[11:15_000], "other", *old[15_001:]]
    changed = [run for run in Aligner().runs(old, new) if not run.is_equal]
    assert [(run.first, run.last) for run in changed] == [(10, 11), (15_000, 15_001)]


def test_a_hundred_lists_that_nothing_aligns_take_no_more_than_a_moment() -> None:
    aligner, began = Aligner(), time.process_time()
    for _ in range(100):
        old, new = [f"x{n % 7}" for n in range(1_000)], [f"x{n % 5}" for n in range(1_000)]
        assert put_together(list(aligner.runs(old, new)), old, new) == (old, new)
    assert time.process_time() - began < 3.0


ITEMS = st.lists(
    st.fixed_dictionaries({}, optional={key: st.sampled_from("abc") for key in ("name", "kind", "image", "port")})
    | st.sampled_from(["x", 1, None]),
    max_size=8,
)


@pytest.mark.parametrize("steps", [0, 20, 4_000_000])
@given(old=ITEMS, new=ITEMS)
def test_every_item_stands_once_among_the_pairs_in_the_order_of_its_list(
    steps: int, old: list[Any], new: list[Any]
) -> None:
    pairs = Aligner(steps).pairs(old, new)
    assert [one.new for one in pairs if one.new >= 0] == list(range(len(new)))
    assert sorted(one.old for one in pairs if one.old >= 0) == list(range(len(old)))
    gone = [one.old for one in pairs if one.new < 0]
    assert gone == sorted(gone)


def a_rule(group: str, resources: str, verbs: str) -> dict[str, list[str]]:
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}


PODS, APPS = a_rule("", "pods services", "get list watch"), a_rule("apps", "deployments", "get list watch")
MORE_APPS = a_rule("apps", "deployments secrets", "get list watch delete")
SAME, OTHER = {"name": "same", "kind": "User"}, {"name": "other", "kind": "User"}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(
            [PODS, APPS], [PODS, a_rule("", "nodes", "delete"), MORE_APPS], [(0, 0), (-1, 1), (1, 2)], id="a like rule"
        ),
        pytest.param([PODS, APPS], [MORE_APPS, PODS], [(-1, 0), (0, 1), (1, -1)], id="a like rule elsewhere"),
        pytest.param([PODS, APPS], [APPS, PODS], [(1, 0), (0, 1)], id="equal rules in another order"),
        pytest.param([{"a": 1}], [{"a": 2}], [(0, 0)], id="as many that are unlike"),
        pytest.param([{"a": 1}], [{"b": 1}, {"b": 2}], [(0, -1), (-1, 0), (-1, 1)], id="others that are unlike"),
        pytest.param(
            [{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}],
            [{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53, "protocol": "TCP"}],
            [(1, 0), (0, 1)],
            id="ports of two protocols",
        ),
        pytest.param(
            [{"name": "web", "port": 80}], [{"name": "web", "port": 81}], [(0, 0)], id="a port with another number"
        ),
        pytest.param(
            [{"name": "web", "port": 80}], [{"name": "http", "port": 80}], [(0, 0)], id="a port with another name"
        ),
        pytest.param(
            [SAME, {**SAME, "kind": "Group"}],
            [OTHER, {**SAME, "kind": "Group"}, SAME],
            [(-1, 0), (1, 1), (0, 2)],
            id="subjects of two kinds",
        ),
        pytest.param(["a", "b", "c"], ["c", "a", "b"], [(-1, 0), (0, 1), (1, 2), (2, -1)], id="words that move"),
    ],
)
def test_items_are_matched_by_what_names_them_or_by_likeness(
    old: list[Any], new: list[Any], expected: list[tuple[int, int]]
) -> None:
    assert [(*pair,) for pair in Aligner().pairs(old, new)] == expected


def test_the_keys_by_which_the_server_merges_lists_name_their_items() -> None:
    schemas = schemas_of(MINORS[-1])
    assert schemas is not None
    fields = (field for one in schemas.definitions.values() for field in (one.get("properties") or {}).values())
    keys = {tuple(field.get("x-kubernetes-list-map-keys") or ()) for field in fields if isinstance(field, dict)}
    assert keys - {()} <= {*NAMING_KEYS}


def like(number: int) -> dict[str, int]:
    return {"a": number, "b": 1, "c": 2, "d": 3}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param([{"a": 1}] * 10_000, [{"a": 1}] * 9_999, id="equal"),
        pytest.param([like(n) for n in range(10_000)], [like(-n) for n in range(1, 9_000)], id="alike"),
        pytest.param([{"a": n} for n in range(1_400)], [{"a": -n} for n in range(1, 1_400)], id="as many as fit"),
        pytest.param([{"a": n} for n in range(10_000)], [{"a": -n} for n in range(10_000)], id="in reverse"),
        pytest.param([{"name": n} for n in range(10_000)], [{"name": -n} for n in range(10_000)], id="named"),
        pytest.param([dict.fromkeys(map(str, range(50_000)))] * 2, [{"a": 1}, {}, {}], id="wide"),
    ],
)
def test_lists_of_thousands_of_items_take_no_more_than_a_moment(old: list[Any], new: list[Any]) -> None:
    began = time.process_time()
    assert len(Aligner().pairs(old, new)) >= len(new)
    assert time.process_time() - began < 3.0
