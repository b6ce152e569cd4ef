"""The order of a set: what each ring waits for, and which member may begin."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.deciding.rings import MemberState, OnFailure, Ring, Rollout, RolloutMember, SkipReason, parse_rings
from approvals.deciding.spec_fields import UnreadableObject

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
AGO = NOW - timedelta(minutes=30)
S = MemberState
CANARY = {"name": "canary", "clusters": ["east-*"], "soakMinutes": 60, "requiresApproval": True}


def member(cluster: str, ring: int, state: MemberState, name: str = "harbour", since: datetime | None = AGO) -> Any:
    return RolloutMember(cluster, name, ring, state, 1, since)


def skipped(cluster: str, ring: int, why: SkipReason) -> RolloutMember:
    return RolloutMember(cluster, "harbour", ring, S.SKIPPED, 1, AGO, why, why)


def rollout(*members: RolloutMember, first: dict[str, Any] | None = None, **more: Any) -> Rollout:
    rings = parse_rings([{"name": "canary", **(first or {})}, {"name": "rest"}])
    return Rollout("spring", rings, members, **more)


def hold(found: Rollout, cluster: str = "west", name: str = "harbour") -> str:
    held = found.hold_of(cluster, name, NOW)
    return held.words if held else ""


LAST = member("west", 1, S.APPROVED)
STANDS: dict[str, tuple[list[RolloutMember], dict[str, Any], bool, str]] = {
    "healthy": ([member("east", 0, S.HEALTHY)], {}, False, ""),
    "being applied": ([member("east", 0, S.AT_WORK)], {}, False, "0 of 1 member healthy, 1 being applied"),
    "not healthy": ([member("east", 0, S.SETTLING)], {}, False, "1 not healthy"),
    "failed": ([member("east", 0, S.FAILED)], {}, False, "1 failed"),
    "denied": ([member("east", 0, S.ENDED)], {}, False, "1 ended without being applied"),
    "one of two": (
        [member("east", 0, S.HEALTHY), member("south", 0, S.UNDECIDED)],
        {},
        False,
        "1 of 2 members healthy, 1 not approved",
    ),
    "one is silent": ([member("east", 0, S.HEALTHY), member("south", 0, S.SKIPPED)], {}, False, ""),
    "one was paused": (
        [member("east", 0, S.HEALTHY), skipped("south", 0, SkipReason.PAUSED)],
        {},
        False,
        "1 member paused or deleted, so someone must approve the next ring",
    ),
    "one was deleted": (
        [member("east", 0, S.HEALTHY), skipped("south", 0, SkipReason.DELETED)],
        {},
        False,
        "1 member paused or deleted, so someone must approve the next ring",
    ),
    "one was paused, and somebody approved": (
        [member("east", 0, S.HEALTHY), skipped("south", 0, SkipReason.PAUSED)],
        {},
        True,
        "",
    ),
    "all are silent": ([member("east", 0, S.SKIPPED)], {}, False, "none of its members has become healthy"),
    "all are silent, and somebody approved": ([member("east", 0, S.SKIPPED)], {}, True, ""),
    "nobody is in it": ([], {}, False, "none of its members has become healthy"),
    "it soaks": ([member("east", 0, S.HEALTHY)], {"soakMinutes": 60}, False, "its soak time ends at 2026-12-01 12:30"),
    "it soaks from the last": (
        [member("east", 0, S.HEALTHY), member("south", 0, S.HEALTHY, since=NOW)],
        {"soakMinutes": 60},
        False,
        "its soak time ends at 2026-12-01 13:00 UTC",
    ),
    "nobody knows since when": (
        [member("east", 0, S.HEALTHY, since=None)],
        {"soakMinutes": 60},
        False,
        "its soak time ends at 2026-12-01 13:00 UTC",
    ),
    "it has soaked": ([member("east", 0, S.HEALTHY)], {"soakMinutes": 30}, False, ""),
    "nobody approved": ([member("east", 0, S.HEALTHY)], {"requiresApproval": True}, False, "someone must approve"),
    "somebody approved": ([member("east", 0, S.HEALTHY)], {"requiresApproval": True}, True, ""),
    "approved, and it soaks": ([member("east", 0, S.HEALTHY)], CANARY, True, "its soak time ends at"),
    "soaked, and nobody approved": (
        [member("east", 0, S.HEALTHY)],
        {**CANARY, "soakMinutes": 30},
        False,
        "someone must approve",
    ),
    "approved, and it failed since": ([member("east", 0, S.FAILED)], CANARY, True, "1 failed"),
}


@pytest.mark.parametrize(("before", "first", "is_approved", "words"), STANDS.values(), ids=STANDS)
def test_a_ring_begins_when_the_one_before_it_is_through(
    before: list[RolloutMember], first: dict[str, Any], is_approved: bool, words: str
) -> None:
    found = rollout(*before, LAST, first=first, approved=frozenset({0} if is_approved else ()))
    assert words in hold(found) if words else hold(found) == ""
    assert hold(found).startswith("ring rest of set spring waits for ring canary" if words else "")


def test_a_wait_has_an_end_by_the_clock_where_nothing_else_is_waited_for() -> None:
    healthy = member("east", 0, S.HEALTHY)
    for approved, due in ((frozenset({0}), AGO + timedelta(hours=1)), (frozenset[int](), None)):
        held = rollout(healthy, LAST, first=CANARY, approved=approved).hold_of("west", "harbour", NOW)
        assert held is not None and held.due_at == due


def test_an_approval_is_asked_for_when_the_ring_is_healthy_also_while_it_soaks() -> None:
    def is_approvable(*members: RolloutMember, **more: Any) -> bool:
        return next(rollout(*members, LAST, first=CANARY, **more).progress(NOW)).is_approvable

    healthy = member("east", 0, S.HEALTHY)
    assert is_approvable(healthy)
    assert not is_approvable(healthy, approved=frozenset({0}))
    assert not is_approvable(healthy, member("south", 0, S.AT_WORK))


def test_nobody_approves_what_follows_a_ring_that_has_not_begun() -> None:
    silent = member("west", 1, S.SKIPPED)
    for before, is_approvable in ((S.SETTLING, False), (S.HEALTHY, True)):
        _, last = rollout(member("east", 0, before), silent).progress(NOW)
        assert last.is_approvable is is_approvable


BESIDE = {
    S.APPROVED: "",
    S.AT_WORK: "",
    S.SETTLING: "",
    S.HEALTHY: "",
    S.SKIPPED: "",
    S.UNDECIDED: "waiting for quay (not approved)",
    S.ENDED: "waiting for quay (ended without being applied)",
    S.FAILED: "quay of set spring failed on this cluster, so the others stop here",
    S.RESTORING: "quay of set spring failed on this cluster, so the others stop here",
}


@pytest.mark.parametrize("state", MemberState)
def test_on_one_cluster_it_is_all_or_nothing(state: MemberState) -> None:
    found = rollout(member("east", 0, S.HEALTHY), LAST, member("west", 1, state, "quay"))
    assert BESIDE[state] in hold(found) and bool(BESIDE[state]) == bool(hold(found))


@pytest.mark.parametrize("why", SkipReason)
def test_S50_whoever_pauses_or_deletes_a_member_lets_nobody_of_its_cluster_go(why: SkipReason) -> None:
    found = rollout(member("east", 0, S.HEALTHY), member("west", 1, S.APPROVED, "quay"), skipped("west", 1, why))
    held = hold(found, name="quay")
    if why is SkipReason.SILENT:
        assert held == ""
    else:
        assert f"waiting for harbour ({why}). What is paused or deleted can be removed from the order" in held


AS_SEEN = {
    "the same": (member("east", 0, S.HEALTHY), 1, True),
    "another request": (member("east", 0, S.HEALTHY), 2, False),
    "healthy since": (member("east", 0, S.HEALTHY), None, False),
    "not healthy, and it was": (member("east", 0, S.SETTLING), 1, True),
    "another request is not healthy": (member("east", 0, S.SETTLING), 2, False),
    "it never was": (member("east", 0, S.SETTLING), None, True),
    "paused, as it was": (skipped("east", 0, SkipReason.PAUSED), "1: it is paused", True),
    "paused since": (skipped("east", 0, SkipReason.PAUSED), None, False),
    "deleted, and it was healthy": (skipped("east", 0, SkipReason.DELETED), 1, False),
    "deleted, and it was paused": (skipped("east", 0, SkipReason.DELETED), "1: it is paused", False),
    "paused with another request": (skipped("east", 0, SkipReason.PAUSED), "2: it is paused", False),
    "resumed": (member("east", 0, S.AT_WORK), "1: it is paused", False),
    "silent since": (skipped("east", 0, SkipReason.SILENT), 1, True),
}


@pytest.mark.parametrize(("found", "seen", "is_same"), AS_SEEN.values(), ids=AS_SEEN)
def test_S50_an_approval_of_a_ring_counts_for_what_was_seen_of_each_member(
    found: RolloutMember, seen: int | str | None, is_same: bool
) -> None:
    assert found.is_as_seen(seen) is is_same


def test_what_fails_elsewhere_in_the_ring_stops_nothing_here() -> None:
    assert hold(rollout(member("east", 0, S.HEALTHY), LAST, member("north", 1, S.FAILED))) == ""


def test_S02_members_on_other_clusters_are_counted_and_not_named() -> None:
    found = rollout(member("secret-east", 0, S.SETTLING, "hidden-name"), LAST)
    assert "secret-east" not in hold(found) and "hidden-name" not in hold(found)


def test_who_belongs_to_no_set_is_held_by_none() -> None:
    assert rollout(member("east", 0, S.FAILED)).hold_of("west", "harbour", NOW) is None


@pytest.mark.parametrize("on_failure", OnFailure)
def test_what_was_applied_beside_a_failure_is_put_back_where_the_set_asks_for_it(on_failure: OnFailure) -> None:
    states = (S.HEALTHY, S.SETTLING, S.APPROVED, S.AT_WORK, S.SKIPPED)
    beside = [member("west", 0, state, str(state)) for state in states]
    found = rollout(member("west", 0, S.FAILED), *beside, member("east", 0, S.HEALTHY), on_failure=on_failure)
    expected = [] if on_failure is OnFailure.STOP else [str(S.HEALTHY), str(S.SETTLING)]
    assert [one.name for one in found.to_put_back()] == expected


MEMBERS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(["x", "y"]), st.sampled_from(MemberState)),
    max_size=6,
    unique_by=lambda one: one[:2],
)


@given(MEMBERS, st.sets(st.integers(0, 2)), st.booleans())
def test_no_member_begins_before_every_earlier_ring_is_through(
    states: list[tuple[str, str, MemberState]], approved: set[int], needs_approval: bool
) -> None:
    rings = tuple(Ring(name, needs_approval=needs_approval) for name in "abc")
    members = tuple(RolloutMember(place, name, "abc".index(place), state, 1, AGO) for place, name, state in states)
    found = Rollout("spring", rings, members, frozenset(approved))
    for one in members:
        if found.hold_of(one.cluster, one.name, NOW) is not None:
            continue
        for ring in range(one.ring):
            there = [each.state for each in members if each.ring == ring]
            assert set(there) <= {S.HEALTHY, S.SKIPPED}
            assert ring in approved or (S.HEALTHY in there and not needs_approval)
        beside = [each.state for each in members if each.cluster == one.cluster and each is not one]
        assert not set(beside) & {S.FAILED, S.RESTORING, S.UNDECIDED, S.ENDED}


TAKES = [
    ({"name": "a"}, True),
    ({"name": "a", "clusters": ["east-*"]}, True),
    ({"name": "a", "clusters": ["west-*", "east-1"]}, True),
    ({"name": "a", "clusters": ["west-*"]}, False),
    ({"name": "a", "matchLabels": {"env": "test"}}, True),
    ({"name": "a", "matchLabels": {"env": "prod"}}, False),
    ({"name": "a", "matchLabels": {"env": "test", "region": "eu"}}, False),
    ({"name": "a", "clusters": ["west-*"], "matchLabels": {"env": "test"}}, False),
]


@pytest.mark.parametrize(("ring", "is_taken"), TAKES)
def test_all_that_a_ring_names_has_to_fit(ring: dict[str, Any], is_taken: bool) -> None:
    (parsed,) = parse_rings([ring])
    assert parsed.takes("east-1", {"env": "test"}) is is_taken
    assert parse_rings([parsed.record()]) == (parsed,)


@pytest.mark.parametrize(
    ("rings", "words"),
    [
        ([], "order.rings is empty"),
        ("canary", "expected a list"),
        ([{"name": "a"}, {"name": "a"}], "two rings of the name a"),
        ([{"name": "A b"}], "expected lowercase letters"),
        ([{}], "rings[0].name is missing"),
        ([{"name": "a", "soakMinutes": -1}], "whole number"),
        ([{"name": "a", "soakMinutes": 10**9}], "whole number"),
        ([{"name": "a", "requiresApproval": "yes"}], "true or false"),
        ([{"name": "a", "clusters": ["x\0"]}], "NUL"),
        ([{"name": "a", "matchLabels": {"x": "\0"}}], "NUL"),
        ([{"name": "a", "soak": 3}], "does not know"),
        ([{"name": f"r{position}"} for position in range(21)], "at most 20"),
    ],
)
def test_what_is_no_order_is_refused_with_its_place(rings: object, words: str) -> None:
    with pytest.raises(UnreadableObject) as refused:
        parse_rings(rings)
    assert words in str(refused.value)


def test_a_set_is_done_when_all_are_healthy_that_are_not_deleted() -> None:
    healthy, ends = member("east", 0, S.HEALTHY), [member("east", 0, S.HEALTHY), skipped("east", 0, SkipReason.DELETED)]
    others = [*ends, skipped("east", 0, SkipReason.PAUSED), skipped("east", 0, SkipReason.SILENT)]
    for one, other in product([*others, member("east", 0, S.SETTLING)], repeat=2):
        assert rollout(one, replace(other, cluster="west", ring=1)).is_done is (one in ends and other in ends)
    assert rollout(healthy).is_done
