"""A revision that nobody goes back to: who marks it, what is refused then, and how it is taken back (S16)."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from approvals import services
from approvals.errors import Changed, CouldNotAsk, InvalidInput, NotAllowed, Revoked
from approvals.models import AuditEntry, BundleDeployment, Request, Revision
from approvals.services.revisions import MAX_REASON
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.revisions import back
from tests.support.approvals.world import acting

WHY = "it leaks the keys of the harbour"


def revoke(env: World, deployment: BundleDeployment, number: int = 1, **changes: Any) -> Revision:
    facts = {
        "by": acting(env.ada),
        "deployment": deployment,
        "revision": number,
        "reason": WHY,
        "via": "browser",
        **changes,
    }
    return services.revoke_revision(**facts)


def reinstate(env: World, deployment: BundleDeployment, number: int = 1, **changes: Any) -> Revision:
    facts = {
        "by": acting(env.ada),
        "deployment": deployment,
        "revision": number,
        "reason": "",
        "via": "rest",
        **changes,
    }
    return services.reinstate_revision(**facts)


def test_S16_going_back_to_a_revoked_revision_is_refused_in_words(env: World, twice: BundleDeployment) -> None:
    revoke(env, twice)
    with pytest.raises(Revoked, match=f"revision 1 was revoked by ada: {WHY}"):
        services.rollback_deployment(by=acting(env.ada), deployment=twice, revision=1, via="rest")
    assert Request.objects.count() == 2
    assert "annotations" not in env.kubernetes.objects["strimzi"]["metadata"]


def test_S16_going_back_to_a_revoked_revision_with_kubectl_is_told_on_the_deployment(
    env: World, twice: BundleDeployment
) -> None:
    revoke(env, twice)
    world.submit_spec(env.cluster, back(twice, "1/a"))
    twice.refresh_from_db()
    assert twice.problem == f"revision 1 was revoked by ada: {WHY}"
    assert Request.objects.count() == 2


def test_what_else_there_is_to_go_back_to_leaves_out_what_is_revoked(env: World, twice: BundleDeployment) -> None:
    revoke(env, twice)
    with pytest.raises(InvalidInput, match="revision 7 cannot be rolled back to; available: 2"):
        services.rollback_deployment(by=acting(env.ada), deployment=twice, revision=7, via="rest")


def test_the_mark_and_its_end_are_in_the_audit_with_their_reasons(env: World, twice: BundleDeployment) -> None:
    marked = revoke(env, twice)
    assert (marked.revoked_by, marked.revoked_reason) == ("ada", WHY)
    assert marked.revoked_at is not None
    freed = reinstate(env, twice, reason="it was another key")
    assert (freed.revoked_at, freed.revoked_by, freed.revoked_reason) == (None, "", "")
    rows = AuditEntry.objects.filter(verb__startswith="revision.").order_by("number")
    assert [(row.verb, row.actor, row.via, row.facts["revision"], row.facts["reason"]) for row in rows] == [
        ("revision.revoked", "ada", "browser", 1, WHY),
        ("revision.reinstated", "ada", "rest", 1, "it was another key"),
    ]
    services.rollback_deployment(by=acting(env.ada), deployment=twice, revision=1, via="browser")
    assert Request.objects.get(number=3).purpose == "rollback"


@pytest.mark.parametrize("state", ["preparing", "in_review", "approved", "stale"])
def test_S16_an_open_request_to_go_back_to_it_is_withdrawn(env: World, twice: BundleDeployment, state: str) -> None:
    services.rollback_deployment(by=acting(env.ada), deployment=twice, revision=1, via="browser")
    Request.objects.filter(number=3).update(state=state, subject_digest="sha256:x")
    revoke(env, twice)
    made = Request.objects.get(number=3)
    assert (made.state, made.problem_code) == ("withdrawn", "revoked")
    assert made.problem == f"revision 1 was revoked by ada: {WHY}"
    assert AuditEntry.objects.get(verb="request.withdraw").actor == "ada"


def test_other_open_requests_stay_open(env: World, twice: BundleDeployment) -> None:
    services.rollback_deployment(by=acting(env.ada), deployment=twice, revision=2, via="browser")
    revoke(env, twice)
    assert Request.objects.get(number=3).state == "preparing"


@pytest.mark.parametrize("number", [0, 3, 10**8])
def test_what_was_never_in_force_cannot_be_revoked(env: World, twice: BundleDeployment, number: int) -> None:
    with pytest.raises(InvalidInput, match=f"revision {number}"):
        revoke(env, twice, number)


def test_what_failed_cannot_be_revoked(env: World, twice: BundleDeployment) -> None:
    Revision.objects.filter(number=1).update(state="failed")
    with pytest.raises(InvalidInput):
        revoke(env, twice)


def test_a_revision_of_another_deployment_is_not_meant(env: World, twice: BundleDeployment) -> None:
    other = world.submit_spec(env.cluster, world.seen("kafka", world.spec()), env.rita)
    with pytest.raises(InvalidInput):
        revoke(env, other)
    assert not Revision.objects.exclude(revoked_at=None).exists()


@pytest.mark.parametrize("reason", ["", " \n\t", "x" * (MAX_REASON + 1)], ids=["none", "blank", "too long"])
def test_a_revocation_has_a_reason_of_some_length(env: World, twice: BundleDeployment, reason: str) -> None:
    with pytest.raises(InvalidInput):
        revoke(env, twice, reason=reason)
    assert not AuditEntry.objects.filter(verb="revision.revoked").exists()


def test_the_first_reason_stays_and_there_is_nothing_to_take_back_twice(env: World, twice: BundleDeployment) -> None:
    with pytest.raises(Changed, match="is not revoked"):
        reinstate(env, twice)
    revoke(env, twice)
    with pytest.raises(Changed, match=WHY):
        revoke(env, twice, reason="another")
    assert Revision.objects.get(number=1).revoked_reason == WHY


@pytest.mark.parametrize("what", [revoke, reinstate])
def test_S02_only_who_may_approve_marks_and_unmarks(env: World, twice: BundleDeployment, what: Any) -> None:
    if what is reinstate:
        revoke(env, twice)
    before = list(Revision.objects.order_by("pk").values())
    with pytest.raises(NotAllowed, match="bert to approve"):
        what(env, twice, by=acting(env.bert))
    env.kubernetes.is_down = True
    with pytest.raises(CouldNotAsk):
        what(env, twice)
    assert list(Revision.objects.order_by("pk").values()) == before


def test_S12_a_machine_neither_marks_nor_unmarks(env: World, twice: BundleDeployment) -> None:
    robot = world.user("system:serviceaccount:ci:robot", env.cluster)
    robot.kubernetes_identities.update(authenticator="token-review")
    env.kubernetes.allow("system:serviceaccount:ci:robot", "approve")
    with pytest.raises(NotAllowed, match="machine"):
        revoke(env, twice, by=acting(robot))


@pytest.mark.parametrize(
    "half",
    [
        {"revoked_at": timezone.now()},
        {"revoked_reason": "x"},
        {"revoked_by": "ada"},
        {"revoked_at": timezone.now(), "revoked_by": "ada"},
        {"revoked_at": timezone.now(), "revoked_reason": "x"},
    ],
)
def test_the_database_keeps_no_half_mark(env: World, twice: BundleDeployment, half: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Revision.objects.filter(number=1).update(**half)
