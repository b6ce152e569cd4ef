"""How the members of an ordered set stand by our records, and who is looked at when that changes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from approvals import wake
from approvals.deciding.rings import MemberState
from approvals.ledger import rollouts
from approvals.models import AuditEntry, BundleDeployment, Cluster, Request, Revision, Rollout
from tests.support.approvals.fixtures import World
from tests.support.approvals.rollouts import asked, order, ordered, set_state, silence

ALL = [{"name": "all"}]


@pytest.fixture
def made(env: World) -> Request:
    env.kubernetes.allow("rita", "update")
    request = asked(env.cluster, "quay", env.rita)
    order(env.rita, request, rings=ALL)
    return request


def state() -> tuple[MemberState, str]:
    (member,) = rollouts.read_order(Rollout.objects.get(), timezone.now()).members
    return member.state, member.why


STATES: dict[str, MemberState] = {
    "preparing": MemberState.UNDECIDED,
    "in_review": MemberState.UNDECIDED,
    "stale": MemberState.UNDECIDED,
    "approved": MemberState.APPROVED,
    "applying": MemberState.AT_WORK,
    "applied": MemberState.SETTLING,
    "restoring": MemberState.RESTORING,
    "failed": MemberState.FAILED,
    "denied": MemberState.ENDED,
    "expired": MemberState.ENDED,
    "withdrawn": MemberState.ENDED,
    "superseded": MemberState.ENDED,
}


@pytest.mark.parametrize("name", STATES)
def test_each_state_of_a_request_is_one_of_the_member(made: Request, name: str) -> None:
    set_state(made, name)
    assert state() == (STATES[name], "")


def test_it_is_healthy_when_what_runs_is_and_has_not_missed_its_time(made: Request) -> None:
    set_state(made, "applied", health="Current")
    assert state()[0] is MemberState.HEALTHY
    Revision.objects.update(overdue_at=timezone.now())
    assert state()[0] is MemberState.FAILED


def test_what_was_never_written_has_not_failed(made: Request) -> None:
    Request.objects.filter(pk=made.pk).update(state="failed")
    assert state()[0] is MemberState.ENDED


def test_what_somebody_rolled_back_has_failed(made: Request) -> None:
    set_state(made, "applied", health="Current")
    Request.objects.filter(pk=made.pk).update(purpose="rollback", to_revision=Revision.objects.get())
    assert state()[0] is MemberState.FAILED


def test_a_request_from_before_the_order_is_not_what_is_waited_for(env: World, made: Request) -> None:
    Rollout.objects.get().members.update(from_number=2)
    set_state(made, "applied", health="Current")
    assert state() == (MemberState.UNDECIDED, "it has no request yet")
    assert rollouts.orders_of(Request.objects.get()) == ()


SKIPPED: dict[str, tuple[type[Any], dict[str, Any], str]] = {
    "paused": (BundleDeployment, {"is_paused": True}, "it is paused"),
    "being deleted": (BundleDeployment, {"deletion_requested_at": timezone.now()}, "it is deleted"),
    "gone": (BundleDeployment, {"gone_at": timezone.now()}, "it is deleted"),
    "removed": (Cluster, {"removed_at": timezone.now()}, "it is deleted"),
}


@pytest.mark.parametrize("name", SKIPPED)
def test_nobody_waits_for_what_cannot_go_on(made: Request, name: str) -> None:
    model, facts, why = SKIPPED[name]
    model.objects.update(**facts)
    assert state() == (MemberState.SKIPPED, why)


def test_S50_who_asks_to_delete_what_failed_does_not_undo_that_it_did(env: World, made: Request) -> None:
    set_state(made, "failed")
    BundleDeployment.objects.update(deletion_requested_at=timezone.now())
    deletion = Request.objects.get(pk=made.pk)
    deletion.pk, deletion.number, deletion.uid, deletion.purpose = None, 2, uuid4(), "delete"
    deletion.state = "in_review"
    deletion.save(force_insert=True)
    assert state() == (MemberState.FAILED, "")
    BundleDeployment.objects.update(gone_at=timezone.now())
    assert state() == (MemberState.SKIPPED, "it is deleted")


def test_a_cluster_is_silent_when_nobody_has_reached_it_for_a_while(env: World, made: Request) -> None:
    Cluster.objects.update(problem="no answer", reached_at=timezone.now() - timedelta(minutes=9))
    assert state()[0] is MemberState.UNDECIDED
    silence(env.cluster)
    assert state() == (MemberState.SKIPPED, "its cluster does not answer")
    # One that failed there has failed.
    set_state(made, "failed")
    assert state()[0] is MemberState.FAILED


@pytest.mark.parametrize(("name", "expected"), [("applying", MemberState.AT_WORK), ("applied", MemberState.SETTLING)])
@pytest.mark.parametrize("how", ["silent", "paused"])
def test_what_was_begun_is_waited_for_however_silent_or_paused_it_is(
    env: World, made: Request, name: str, expected: MemberState, how: str
) -> None:
    """The change may be what broke the cluster; and whoever may pause it may not let the next ring begin."""
    set_state(made, name, health="Unknown")
    if how == "silent":
        silence(env.cluster)
    else:
        BundleDeployment.objects.update(is_paused=True)
    found, why = state()
    assert found is expected and why == {"silent": "its cluster does not answer", "paused": "it is paused"}[how]


@pytest.mark.parametrize("purpose", ["delete", "rollback"])
def test_what_takes_away_or_goes_back_is_held_by_no_ring(env: World, made: Request, purpose: str) -> None:
    assert len(rollouts.orders_of(made)) == 1
    made.purpose = purpose
    assert rollouts.orders_of(made) == ()


def test_who_waits_is_looked_at_when_the_ring_before_is_through(env: World) -> None:
    env.kubernetes.allow("rita", "update")
    first, second = asked(env.cluster, "quay", env.rita), asked(env.cluster, "dock", env.rita)
    later = timezone.now() + timedelta(hours=1)
    order(env.rita, first, second, rings=ALL)
    set_state(second, "approved")
    Request.objects.filter(pk=second.pk).update(awaits="ring", look_again_at=later)

    def is_due() -> bool:
        row, now = Rollout.objects.get(), timezone.now()
        rollouts.wake_free(row, rollouts.read_order(row, now), now)
        return Request.objects.get(pk=second.pk).look_again_at != later

    assert not is_due()
    set_state(first, "approved")
    assert is_due()


def test_S40_a_sweep_looks_at_a_few_orders_and_first_at_those_of_which_something_changed(
    env: World, made: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    others, woken = {ordered(f"set-{number}", ALL).pk for number in range(4)}, list[int]()
    monkeypatch.setattr(rollouts, "A_SWEEP", 2)
    monkeypatch.setattr(wake, "rollout", woken.append)
    key = Rollout.objects.get(name="spring").pk
    rollouts.wake_for(made.deployment_id)
    for _ in range(20):
        rollouts.wake_for(made.deployment_id)
        assert rollouts.rollouts_to_sweep()[0] == key
    assert woken == [key]
    swept = [rollouts.rollouts_to_sweep() for _ in range(100)]
    assert {len(found) for found in swept} == {2} and {pk for found in swept for pk in found} == {key, *others}


def test_an_order_ends_when_all_are_healthy(env: World, made: Request) -> None:
    rollouts.end_done(Rollout.objects.get().pk)
    assert Rollout.objects.get().ended_at is None
    set_state(made, "applied", health="Current")
    rollouts.end_done(Rollout.objects.get().pk)
    assert Rollout.objects.get().ended_at is not None
    assert AuditEntry.objects.filter(verb="set.done").exists()


def test_an_order_ends_although_one_member_is_deleted(env: World) -> None:
    env.kubernetes.allow("rita", "update")
    first, second = asked(env.cluster, "quay", env.rita), asked(env.cluster, "dock", env.rita)
    row = order(env.rita, first, second, rings=ALL)
    set_state(first, "applied", health="Current")
    BundleDeployment.objects.filter(pk=second.deployment_id).update(gone_at=timezone.now())
    rollouts.end_done(row.pk)
    row.refresh_from_db()
    assert row.ended_at is not None
