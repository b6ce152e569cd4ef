"""What is put back for a set, and what is not."""

from __future__ import annotations

import pytest

from approvals.ledger import rollouts
from approvals.models import AuditEntry, Request, Revision, Rollout
from approvals.steps import restore
from approvals.steps import rollouts as step
from approvals.steps.rollouts import CODE, LookAtRollout, look_at_rollout
from approvals.working import do
from tests.support.approvals.fixtures import World
from tests.support.approvals.rollouts import asked, order, set_state

ALL = [{"name": "all"}]


@pytest.fixture
def pair(env: World) -> tuple[Request, Request]:
    """Two of one cluster: one has failed, the other one is healthy and came after a revision."""
    env.kubernetes.allow("rita", "update")
    failed, healthy = (asked(env.cluster, name, env.rita, onFailure="RestorePrevious") for name in ("quay", "dock"))
    order(env.rita, failed, healthy, rings=ALL, on_failure="PutBack")
    set_state(healthy, "applied", health="Current")
    before = Revision.objects.create(
        deployment=healthy.deployment,
        number=0,
        request=asked(env.cluster, "other", env.rita),
        content=Revision.objects.get().content,
        state="replaced",
        started_at=Revision.objects.get().started_at,
    )
    Request.objects.filter(pk=healthy.pk).update(from_revision=before)
    set_state(failed, "failed")
    return failed, healthy


def look(times: int = 1) -> None:
    for _ in range(times):
        look_at_rollout(Rollout.objects.get().pk)


def test_what_was_applied_beside_a_failure_is_put_back_once(env: World, pair: tuple[Request, Request]) -> None:
    look(2)
    row = Request.objects.get(pk=pair[1].pk)
    assert (row.state, row.problem_code) == ("restoring", CODE)
    assert "another deployment of set spring failed" in row.problem
    assert rollouts.is_put_back(row)
    assert AuditEntry.objects.filter(verb="request.restore").count() == 1


def test_a_worker_that_is_killed_in_the_middle_leaves_nothing_half_done(
    env: World, pair: tuple[Request, Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next look finds in the rows what is left: nobody is put back twice, and nobody is forgotten."""
    move = restore.move

    def die(*_: object, **__: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(restore, "move", lambda *args, **more: (move(*args, **more), die()))
        with pytest.raises(MemoryError):
            look()
    assert Request.objects.get(pk=pair[1].pk).state == "applied"
    assert not rollouts.is_put_back(pair[1])
    look(2)
    assert Request.objects.get(pk=pair[1].pk).state == "restoring"
    assert AuditEntry.objects.filter(verb="request.restore").count() == 1


def test_promise_2_only_where_reviewers_saw_that_it_may_be(env: World, pair: tuple[Request, Request]) -> None:
    Request.objects.filter(pk=pair[1].pk).update(spec={**pair[1].spec, "onFailure": "Stop"})
    look(2)
    row = Request.objects.get(pk=pair[1].pk)
    assert row.state == "applied" and not rollouts.is_put_back(row)
    (shown,) = [one for one in rollouts.read_order(Rollout.objects.get(), row.changed_at).members if one.name == "dock"]
    assert "spec.onFailure is Stop" in shown.why


def test_without_put_back_the_others_stay(env: World, pair: tuple[Request, Request]) -> None:
    Rollout.objects.update(on_failure="Stop")
    look()
    assert Request.objects.get(pk=pair[1].pk).state == "applied"


def test_S40_one_look_at_a_time_answers_all_messages(
    env: World, pair: tuple[Request, Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    key, looks = Rollout.objects.get().pk, []

    def look_while_more_come(rollout_id: int) -> None:
        looks.append(rollout_id)
        if len(looks) == 1:
            for _ in range(3):
                do(LookAtRollout(key))

    monkeypatch.setattr(step, "look_at_rollout", look_while_more_come)
    do(LookAtRollout(key))
    assert looks == [key, key]


def test_an_order_that_has_ended_puts_nothing_back(env: World, pair: tuple[Request, Request]) -> None:
    row = Rollout.objects.get()
    Rollout.objects.update(ended_at=row.made_at)
    look_at_rollout(row.pk)
    assert Request.objects.get(pk=pair[1].pk).state == "applied"


@pytest.mark.parametrize("change", ["ended", "taken out", "restored"])
def test_nothing_is_put_back_that_is_not_to_be_any_more(env: World, pair: tuple[Request, Request], change: str) -> None:
    """The order was read before, without a lock."""
    row = Rollout.objects.get()
    if change == "ended":
        Rollout.objects.update(ended_at=row.made_at)
    elif change == "taken out":
        row.members.filter(deployment=pair[0].deployment_id).delete()
    else:
        set_state(pair[0], "applied", health="Current")
    step.put_back(row, pair[1].deployment.cluster.name, pair[1].deployment.name)
    assert Request.objects.get(pk=pair[1].pk).state == "applied"
