"""Every point is met by everything that is promised, whatever the seed; chance has its say about the rest."""

from __future__ import annotations

import pytest

from tests.chaos.draw import (
    CLUSTER_HARMS,
    KILLS,
    NAMED,
    Harm,
    Kind,
    Scenario,
    begins_of,
    can_be,
    drawn,
    drawn_by_class,
    unvisited,
)

POINTS = {Scenario.FIRST: 5, Scenario.DELETION: 3}


@pytest.mark.parametrize("seed", range(5))
def test_everything_that_is_promised_meets_every_point(seed: int) -> None:
    harms = drawn(POINTS, seed)
    assert unvisited(POINTS, harms) == []
    for event in range(1, 6):
        met = {harm.kind for harm in harms if (harm.scenario, harm.event) == (Scenario.FIRST, event)}
        assert all(len(met & set(turns)) == 1 for turns in NAMED.values())


@pytest.mark.parametrize("what", [what for what, turns in NAMED.items() if len(turns) > 1])
def test_two_that_are_one_thing_take_turns_from_point_to_point(what: str) -> None:
    harms = {
        harm.event: harm.kind
        for harm in drawn(POINTS, 1)
        if harm.scenario is Scenario.FIRST and harm.kind in NAMED[what]
    }
    assert all(harms[event] != harms[event + 1] for event in range(1, 5))


def test_who_begins_is_left_to_chance() -> None:
    begins = {
        harm.kind
        for seed in range(10)
        for harm in drawn(POINTS, seed)
        if (harm.scenario, harm.event) == (Scenario.FIRST, 1)
    }
    assert begins >= {kind for turns in NAMED.values() for kind in turns}


def test_parts_that_counted_one_more_or_less_miss_no_point_together() -> None:
    longer = {scenario: last + 1 for scenario, last in POINTS.items()}
    for counts in ((POINTS, longer), (longer, POINTS)):
        met = [harm for part in (0, 1) for harm in drawn(counts[part], seed=1, part=part, parts=2)]
        assert unvisited(POINTS, met) == []


def test_parts_share_what_there_is_and_nothing_is_drawn_twice() -> None:
    every = drawn(POINTS, seed=1)
    shares = [drawn(POINTS, seed=1, part=part, parts=2) for part in (0, 1)]
    assert len(every) == len(set(every))
    assert sorted(map(str, every)) == sorted(str(harm) for share in shares for harm in share)


def test_every_scenario_has_a_rival_and_doubled_messages() -> None:
    met = {(harm.scenario, harm.kind) for harm in drawn(POINTS, seed=1)}
    assert met >= {(scenario, kind) for scenario in POINTS for kind in (Kind.RIVAL, Kind.DOUBLED)}


def test_the_same_seed_draws_the_same_and_another_one_does_not() -> None:
    assert drawn(POINTS, seed=7) == drawn(POINTS, seed=7)
    assert drawn(POINTS, seed=7) != drawn(POINTS, seed=8)


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


KILLED = "the worker is killed"
CUT = "the database is cut off"


@pytest.mark.parametrize(
    ("what", "happened", "missed"),
    [
        pytest.param(KILLED, [(Kind.KILLED_BEFORE, 1), (Kind.KILLED_BEFORE, 2), (Kind.KILLED_AFTER, 2)], [], id="all three"),
        pytest.param(KILLED, [(Kind.KILLED_BEFORE, 1), (Kind.KILLED_AFTER, 1), (Kind.KILLED_AFTER, 2)], [], id="after is before"),
        pytest.param(KILLED, [(Kind.KILLED_BEFORE, 1), (Kind.KILLED_BEFORE, 2)], [3], id="not after the last"),
        pytest.param(KILLED, [(Kind.DATABASE_CUT, 1), (Kind.KILLED_AFTER, 1), (Kind.KILLED_AFTER, 2)], [1], id="another harm"),
        pytest.param(CUT, [(Kind.DATABASE_CUT, 1), (Kind.DATABASE_CUT, 2)], [], id="nothing lies after the last"),
        pytest.param(CUT, [(Kind.KILLED_BEFORE, 1), (Kind.DATABASE_CUT, 2)], [1], id="a kill is no cut"),
        pytest.param("the clock jumps", [(Kind.CLOCK_BACK, 1), (Kind.CLOCK_FORWARD, 2)], [], id="either way"),
    ],
)  # fmt: skip
def test_a_point_is_visited_where_it_happened(what: str, happened: list[tuple[Kind, int]], missed: list[int]) -> None:
    harms = [Harm(Scenario.UPDATE, kind, event) for kind, event in happened]
    found = [words for words in unvisited({Scenario.UPDATE: 2}, harms) if what in words]
    assert found == [f"update: {what} at point {point}" for point in missed]


def test_what_is_promised_is_every_kind_but_those_of_several_workers_and_of_a_store() -> None:
    named = {kind for turns in NAMED.values() for kind in turns} | set(KILLS)
    assert set(Kind) - named == {Kind.NOTHING, Kind.STORE_CRASHED, Kind.RIVAL, Kind.DOUBLED}


def test_nobody_dies_where_what_follows_would_be_another_scenario() -> None:
    events = {Scenario.RESTORE: ["commit", "apply in the cluster", "apply in the bundle", "apply in the bundle"]}
    begins = begins_of(events)
    assert begins == {Scenario.RESTORE: 3}
    early = [Harm(Scenario.RESTORE, kind, 2) for kind in (Kind.KILLED_AFTER, Kind.STOPPED, Kind.DATABASE_CUT)]
    assert [can_be(harm, begins) for harm in early] == [False, False, True]
    assert can_be(Harm(Scenario.RESTORE, Kind.KILLED_BEFORE, 3), begins)
    assert can_be(Harm(Scenario.UPDATE, Kind.KILLED_BEFORE, 1), begins)
    points = {Scenario.RESTORE: 4}
    missed = unvisited(points, [], begins)
    assert f"restore: {KILLED} at point 2" not in missed
    assert {f"restore: {KILLED} at point 3", f"restore: {CUT} at point 1"} <= set(missed)
    assert {harm.event for harm in drawn_by_class(events, CLUSTER_HARMS, 6, 1, begins)} <= {3, 4}
