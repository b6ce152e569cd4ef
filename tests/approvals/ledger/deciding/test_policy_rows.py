"""The rows that stand for ApprovalPolicies where reviews and evaluations name them."""

from __future__ import annotations

from typing import Any

import pytest

from approvals import services
from approvals.audit import Actor
from approvals.errors import InvalidInput
from approvals.gate.deciding_objects import load_policies
from approvals.ledger.deciding import deciding_objects
from approvals.ledger.deciding.deciding_objects import forget, observe
from approvals.models import AuditEntry, DecidingObject, Policy, Request
from tests.support.approvals.fixtures import World
from tests.support.approvals.policies import save
from tests.support.approvals.world import acting

GUARD = {"effect": "Guard", "validations": [{"expression": "unjudged == 0"}], "validationActions": ["Deny"]}
RITA, ADA = {"username": "rita"}, {"username": "ada"}


def see(env: World, spec: dict[str, Any], generation: int, writer: dict[str, Any] | None = None, **more: Any) -> None:
    meta = {"name": "routine", "uid": "u-1", "generation": generation, "resourceVersion": str(generation)}
    obj = {"metadata": meta, "spec": spec}
    observe(cluster=env.cluster, kind="ApprovalPolicy", obj=obj, writer=writer, is_listed=False, **more)


def test_a_row_counts_the_specs_that_were_seen_and_stays_when_the_object_is_gone(env: World) -> None:
    save(env)  # a policy of the service has the same name
    see(env, GUARD, 1)
    see(env, GUARD, 1)
    row = Policy.objects.get(uid="u-1")
    assert (row.name, row.kind, row.mode, row.version, row.expression) == (
        "routine",
        "guard",
        "enforce",
        1,
        "unjudged == 0",
    )
    see(env, {**GUARD, "effect": "Sentry"}, 2)
    row.refresh_from_db()
    assert (row.kind, row.version, row.expression) == ("guard", 2, "")
    forget(cluster=env.cluster, uid="u-1")
    row.refresh_from_db()
    assert not row.is_active


def test_S46_who_ever_wrote_it_is_kept_and_whoever_is_unknown_stays_unknown(env: World) -> None:
    def authors() -> list[Any]:
        return list(DecidingObject.objects.get(uid="u-1").authors)

    see(env, GUARD, 1, RITA)
    see(env, {**GUARD, "description": "2"}, 2, ADA)
    see(env, {**GUARD, "description": "3"}, 3, RITA)
    assert authors() == [ADA, RITA]
    see(env, {**GUARD, "description": "4"}, 4)
    assert authors() == [ADA, RITA, {}]
    DecidingObject.objects.update(show_at=None)
    see(env, {**GUARD, "description": "4"}, 4, ADA)  # a door tells whose write it was that the watch has just seen
    assert authors() == [RITA, ADA]
    assert DecidingObject.objects.get(uid="u-1").show_at, "its status said that somebody unknown wrote it"
    see(env, {**GUARD, "description": "6"}, 6, ADA)  # nobody saw the one between
    see(env, {**GUARD, "description": "7"}, 7, ADA)
    assert authors() == [{}, RITA, ADA]


def test_S46_the_writer_of_a_later_generation_is_not_the_author_of_the_first_ones(env: World) -> None:
    see(env, GUARD, 3, ADA)
    assert DecidingObject.objects.get(uid="u-1").authors == [{}, ADA]


def test_S13_whoever_wrote_a_policy_stays_its_author_when_somebody_moves_it_to_the_cluster(env: World) -> None:
    save(env)
    env.kubernetes.allow("bert", "approve")
    moved = services.move_policy(by=acting(env.bert), policy=Policy.objects.get(), via="browser")
    moved.refresh_from_db()
    assert {author["username"] for author in moved.authors} == {"ada", "bert"}


def test_a_grant_of_the_service_counts_no_more_beside_an_object_of_its_name(env: World, request_: Request) -> None:
    """A rule that lists the name means the object, which only others may write."""
    save(env)
    save(env, name="guarding", kind="guard")
    assert sorted(one.document.name for one in load_policies(request_)) == ["guarding", "routine"]
    see(env, {**GUARD, "effect": "Grant", "validationActions": ["Approve"]}, 1, ADA)
    assert [(one.document.name, one.identity) for one in load_policies(request_)] == [
        ("guarding", f"pratique:policy:{Policy.objects.get(name='guarding').pk}"),
        ("routine", "pratique:policy:routine"),
    ]
    forget(cluster=env.cluster, uid="u-1")
    assert [one.document.name for one in load_policies(request_)] == ["guarding"], "a rule may list the name for ever"


def test_S13_a_policy_of_the_service_takes_no_name_that_an_object_of_the_cluster_has_or_had(env: World) -> None:
    see(env, GUARD, 1, RITA)
    for _ in range(2):
        with pytest.raises(InvalidInput, match="an ApprovalPolicy of cluster prod is called routine, or was"):
            save(env)
        forget(cluster=env.cluster, uid="u-1")
    save(env, is_active=False)


def test_the_watch_and_a_door_of_ours_may_see_a_new_object_at_one_moment(
    env: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one inserts its row between our look and our insert."""
    kept = deciding_objects._add_author

    def add_author_after_the_watch(*about: Any, **more: Any) -> list[Any]:
        monkeypatch.setattr(deciding_objects, "_add_author", kept)
        see(env, GUARD, 1)
        return kept(*about, **more)

    monkeypatch.setattr(deciding_objects, "_add_author", add_author_after_the_watch)
    see(env, GUARD, 1, ADA, actor=Actor("ada", "rest"), is_made=True)
    row = DecidingObject.objects.get(uid="u-1")
    assert (row.writers, row.authors) == ([ADA], [ADA])
    assert AuditEntry.objects.filter(verb="deciding-object.created", actor="ada").exists()


def test_what_a_door_wrote_ends_no_object_that_has_taken_its_place_since(env: World) -> None:
    see(env, GUARD, 1, ADA)
    newer = {"name": "routine", "uid": "u-2", "generation": 1, "resourceVersion": "9"}
    observe(cluster=env.cluster, kind="ApprovalPolicy", obj={"metadata": newer, "spec": GUARD}, is_listed=True)
    see(env, {**GUARD, "description": "2"}, 2, ADA, actor=Actor("ada", "rest"))
    assert [row.uid for row in DecidingObject.objects.filter(gone_at=None)] == ["u-2"]


def test_what_was_overwritten_before_we_kept_it_is_in_the_audit(env: World) -> None:
    see(env, GUARD, 1, ADA)
    see(env, {**GUARD, "description": "6"}, 6)
    see(env, {**GUARD, "description": "5"}, 5, RITA, actor=Actor("rita", "rest"))
    assert DecidingObject.objects.get(uid="u-1").spec["description"] == "6"
    assert AuditEntry.objects.filter(verb="deciding-object.changed", actor="rita").exists()
