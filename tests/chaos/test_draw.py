"""Every point is met by kill -9, whatever the seed, before chance has its say."""

from __future__ import annotations

import pytest

from tests.chaos.draw import CLUSTER_HARMS, KILLS, Harm, Kind, Scenario, drawn, drawn_by_class, unvisited

POINTS = {Scenario.FIRST: 5, Scenario.DELETION: 3}
KINDS = [kind for kind in Kind if kind is not Kind.NOTHING]


@pytest.mark.parametrize("seed", range(5))
def test_kill_9_meets_every_point_before_anything_else_happens(seed: int) -> None:
    first = drawn(POINTS, KINDS, 10, seed)
    assert {harm.kind for harm in first} <= set(KILLS)
    assert unvisited(POINTS, first) == []


def test_parts_that_counted_one_more_or_less_miss_no_point_together() -> None:
    longer = {scenario: last + 1 for scenario, last in POINTS.items()}
    for counts in ((POINTS, longer), (longer, POINTS)):
        died = [harm for part in (0, 1) for harm in drawn(counts[part], KINDS, 14, seed=1, part=part, parts=2)]
        assert len(died) == 14
        assert unvisited(POINTS, died) == []


def test_then_every_kind_meets_every_scenario() -> None:
    met = {(harm.scenario, harm.kind) for harm in drawn(POINTS, KINDS, 10 + len(KINDS) * len(POINTS), seed=1)}
    assert met == {(scenario, kind) for scenario in POINTS for kind in KINDS}


def test_nothing_is_drawn_twice_and_everything_in_the_end() -> None:
    every = drawn(POINTS, KINDS, 10_000, seed=1)
    assert len(every) == len(set(every))
    # Doubled messages come once a scenario, whatever the event.
    assert len(every) == (len(KINDS) - 1) * sum(POINTS.values()) + len(POINTS)


def test_the_same_seed_draws_the_same_and_another_one_does_not() -> None:
    assert drawn(POINTS, KINDS, 20, seed=7) == drawn(POINTS, KINDS, 20, seed=7)
    assert drawn(POINTS, KINDS, 20, seed=7) != drawn(POINTS, KINDS, 20, seed=8)


def test_where_runs_are_dear_every_class_of_event_is_met_before_one_is_met_again() -> None:
    events = {Scenario.FIRST: ["commit", "apply", "commit"], Scenario.DELETION: ["commit", "delete"]}
    classes = {(scenario, name) for scenario, names in events.items() for name in names}
    harms = drawn_by_class(events, CLUSTER_HARMS, 8, seed=1)
    met = [(harm.scenario, events[harm.scenario][harm.event - 1]) for harm in harms]
    assert set(met[:4]) == set(met[4:]) == classes
    first, second = (
        {one: harm.kind for one, harm in zip(met[at : at + 4], harms[at : at + 4], strict=True)} for at in (0, 4)
    )
    assert all(first[one] != second[one] for one in classes)


@pytest.mark.parametrize(
    ("died", "missed"),
    [
        pytest.param([(Kind.KILLED_BEFORE, 1), (Kind.KILLED_BEFORE, 2), (Kind.KILLED_AFTER, 2)], [], id="all three"),
        pytest.param([(Kind.KILLED_BEFORE, 1), (Kind.KILLED_AFTER, 1), (Kind.KILLED_AFTER, 2)], [], id="after is before"),
        pytest.param([(Kind.KILLED_BEFORE, 1), (Kind.KILLED_BEFORE, 2)], ["update: point 3"], id="not after the last"),
        pytest.param([(Kind.DATABASE_CUT, 1), (Kind.KILLED_AFTER, 1), (Kind.KILLED_AFTER, 2)], ["update: point 1"], id="another harm"),
    ],
)  # fmt: skip
def test_a_point_is_visited_where_a_worker_died(died: list[tuple[Kind, int]], missed: list[str]) -> None:
    harms = [Harm(Scenario.UPDATE, kind, event) for kind, event in died]
    assert unvisited({Scenario.UPDATE: 2}, harms) == missed
