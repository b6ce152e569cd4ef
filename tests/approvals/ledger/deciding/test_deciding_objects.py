"""The copy of objects that say how requests are decided, with what they said while open requests were made."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pytest_django import Settings

from approvals.audit import Actor
from approvals.clock import database_now
from approvals.deciding.approval_rules import ApprovalRule
from approvals.gate.deciding_objects import seen_objects
from approvals.ledger.deciding import deciding_objects
from approvals.ledger.deciding.deciding_objects import (
    FORGOTTEN,
    MOST_EARLIER,
    clear_gone,
    count_due,
    forget,
    observe,
)
from approvals.models import AuditEntry, DecidingObject, Request
from tests.support.approvals import world
from tests.support.approvals.fixtures import World

NEEDS_ONE = {"require": [{"name": "a"}]}


def see(env: World, spec: dict[str, Any], generation: int = 1, uid: str = "u-1", **more: Any) -> DecidingObject | None:
    meta = {"name": "four-eyes", "uid": uid, "generation": generation, "resourceVersion": str(generation)}
    return observe(
        cluster=env.cluster, kind="ApprovalRule", obj={"metadata": meta, "spec": spec}, is_listed=False, **more
    )


def open_request(env: World) -> Request:
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    return world.in_review(Request.objects.get())


def needs(count: int) -> dict[str, Any]:
    return {"require": [{"name": "a", "count": count}]}


def test_what_it_said_while_an_open_request_was_made_is_kept(env: World, settings: Settings) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "REQUEST_HOURS": 0}
    see(env, needs(3))
    see(env, needs(2), 2)
    open_request(env)  # which the first one cannot have held
    see(env, needs(1), 3)
    see(env, {**needs(1), "description": "as it was"}, 4)
    forget(cluster=env.cluster, uid="u-1")
    (seen,) = seen_objects(env.cluster, ApprovalRule)
    assert seen.spec is None
    assert [one.spec for one in seen.earlier] == [needs(2), needs(1), {**needs(1), "description": "as it was"}]
    clear_gone(database_now())
    assert seen_objects(env.cluster, ApprovalRule) != ()
    Request.objects.update(created_at=database_now() + timedelta(minutes=1))
    clear_gone(database_now())
    assert seen_objects(env.cluster, ApprovalRule) == ()


def test_S51_what_it_said_is_known_while_an_approval_of_then_may_be_carried_over(env: World) -> None:
    see(env, needs(3))
    see(env, needs(2), 2)
    forget(cluster=env.cluster, uid="u-1")
    clear_gone(database_now())
    (seen,) = seen_objects(env.cluster, ApprovalRule)
    assert [one.spec for one in seen.earlier] == [needs(3), needs(2)]
    clear_gone(database_now() + timedelta(hours=73))
    assert seen_objects(env.cluster, ApprovalRule) == ()


def test_whoever_writes_it_for_ever_makes_nobody_forget_that_it_held(env: World) -> None:
    open_request(env)
    for generation in range(1, MOST_EARLIER + 10):
        see(env, {**NEEDS_ONE, "description": str(generation)}, generation)
    (seen,) = seen_objects(env.cluster, ApprovalRule)
    assert len(seen.earlier) == MOST_EARLIER
    assert seen.earlier[0].spec == FORGOTTEN
    for generation in range(101, 106):
        see(env, {**NEEDS_ONE, "description": "x" * 300_000 + str(generation)}, generation)
    (seen,) = seen_objects(env.cluster, ApprovalRule)
    assert [one.spec.get("description", "")[-3:] for one in seen.earlier] == ["", "102", "103", "104"]
    assert seen.earlier[0].spec == FORGOTTEN


def test_what_is_deleted_and_made_for_ever_leaves_no_more_copies(env: World) -> None:
    open_request(env)
    for number in range(MOST_EARLIER + 5):
        see(env, needs(1), uid=f"u-{number}")
        forget(cluster=env.cluster, uid=f"u-{number}")
    seen = sorted(seen_objects(env.cluster, ApprovalRule), key=lambda one: one.changed_at)
    assert len(seen) == MOST_EARLIER
    assert [one.spec for one in seen[0].earlier] == [FORGOTTEN]
    assert [one.spec for one in seen[1].earlier] == [needs(1)]


def test_the_audit_says_who_wrote_it_here_and_what_was_seen_of_others(env: World) -> None:
    see(env, needs(1), writer={"username": "ada"}, actor=Actor("ada", "rest"), is_made=True)
    see(env, needs(2), 2)
    forget(cluster=env.cluster, uid="u-1")
    entries = AuditEntry.objects.filter(verb__startswith="deciding-object.").order_by("number")
    assert [(one.verb, one.actor, one.facts.get("change", "")) for one in entries] == [
        ("deciding-object.created", "ada", ""),
        ("deciding-object.seen", "pratique", "changed"),
        ("deciding-object.seen", "pratique", "deleted"),
    ]
    assert "spec" not in entries[0].facts


def test_one_of_the_same_name_is_another_object_and_an_old_event_says_nothing(env: World) -> None:
    open_request(env)
    see(env, needs(3), 5)
    assert see(env, needs(1), 4) is None
    see(env, needs(1), uid="u-2")
    assert [(one.uid, one.spec) for one in seen_objects(env.cluster, ApprovalRule)] == [
        ("u-1", None),
        ("u-2", needs(1)),
    ]


def test_what_is_listed_again_was_never_gone(env: World) -> None:
    see(env, needs(3))
    forget(cluster=env.cluster, uid="u-1")
    assert see(env, needs(3)) is None
    meta = {"name": "four-eyes", "uid": "u-1", "generation": 1, "resourceVersion": "1"}
    observe(cluster=env.cluster, kind="ApprovalRule", obj={"metadata": meta, "spec": needs(3)}, is_listed=True)
    assert DecidingObject.objects.get().gone_at is None


def test_a_spec_that_cannot_be_read_says_why(env: World) -> None:
    row = see(env, {"require": []})
    assert row is not None
    assert row.problem == "spec.require is empty; expected at least one part"


def test_a_change_has_the_open_requests_of_its_cluster_looked_at_again(
    env: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, woken = open_request(env), list[int]()
    monkeypatch.setattr(deciding_objects.wake, "request", woken.append)
    see(env, needs(1))
    see(env, needs(1), 2)  # its status was written
    assert woken == [request.pk]


def test_a_change_makes_all_due_that_are_decided_on_or_wait_for_a_window(
    env: World, django_capture_on_commit_callbacks: Any
) -> None:
    later = database_now() + timedelta(hours=1)
    for name, columns in {
        "reviewed": {"state": "in_review"},
        "frozen": {"state": "approved", "awaits": "window"},
        "unready": {"state": "approved", "awaits": "rights"},
    }.items():
        world.submit_spec(env.cluster, world.seen(name, world.spec()), env.rita)
        request = world.in_review(Request.objects.get(deployment__name=name))
        Request.objects.filter(pk=request.pk).update(look_again_at=later, **columns)
    assert count_due(env.cluster) == {"all": 1, "due": 0}
    with django_capture_on_commit_callbacks(execute=True):
        see(env, needs(1))
    soon = Request.objects.filter(look_again_at__lte=database_now()).order_by("pk")
    assert list(soon.values_list("deployment__name", flat=True)) == ["reviewed", "frozen"]
    assert count_due(env.cluster) == {"all": 1, "due": 1}
