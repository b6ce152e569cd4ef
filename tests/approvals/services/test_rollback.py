"""Back to an earlier revision: who asked, for what, and when that cannot be."""

from __future__ import annotations

import pytest

from approvals import services
from approvals.errors import Changed, InvalidInput
from approvals.models import BundleDeployment, Request, Revision
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.revisions import back
from tests.support.approvals.world import acting


def test_going_back_is_a_request_for_what_was_applied_then(env: World, twice: BundleDeployment) -> None:
    services.rollback_deployment(by=acting(env.ada), deployment=twice, revision=1, via="browser")
    made = Request.objects.get(number=3)
    assert (made.purpose, made.state, made.to_revision) == ("rollback", "preparing", Revision.objects.get(number=1))
    assert made.spec == world.spec("1")
    assert made.options_digest == twice.options_digest
    assert [person["username"] for person in made.requesters] == ["ada"]
    assert made.is_requester_known


def test_going_back_with_kubectl_is_asked_by_nobody_knows_whom(env: World, twice: BundleDeployment) -> None:
    for value in ("1", "1"):
        world.submit_spec(env.cluster, back(twice, value))
    made = Request.objects.get(purpose="rollback")
    assert (made.requesters, made.is_requester_known) == ([], False)
    world.submit_spec(env.cluster, back(twice, "1/again"))
    assert [it.state for it in Request.objects.filter(purpose="rollback").order_by("number")] == [
        "superseded",
        "preparing",
    ]


@pytest.mark.parametrize("value", ["7", "x", "-1", "9" * 50, "", "1.0", "٣"])
def test_a_revision_that_was_never_in_force_is_said_and_supersedes_nothing(
    env: World, twice: BundleDeployment, value: str
) -> None:
    world.submit_spec(env.cluster, back(twice, f"{value}/a"))
    twice.refresh_from_db()
    assert not Request.objects.filter(purpose="rollback").exists()
    assert twice.problem.endswith("available: 1, 2") or value == ""


def test_what_failed_cannot_be_gone_back_to(env: World, twice: BundleDeployment) -> None:
    Revision.objects.filter(number=1).update(state="failed")
    with pytest.raises(InvalidInput, match="available: 2"):
        services.rollback_deployment(by=acting(env.ada), deployment=twice, revision=1, via="browser")
    assert Request.objects.count() == 2


def test_nobody_goes_back_while_something_is_being_applied(env: World, twice: BundleDeployment) -> None:
    Request.objects.filter(number=2).update(state="applying", settled_at=None)
    with pytest.raises(Changed):
        services.rollback_deployment(by=acting(env.ada), deployment=twice, revision=1, via="browser")
    world.submit_spec(env.cluster, back(twice, "1"))
    twice.refresh_from_db()
    assert "when it is finished" in twice.problem


def test_a_new_wish_takes_the_place_of_going_back_and_of_its_problem(env: World, twice: BundleDeployment) -> None:
    world.submit_spec(env.cluster, back(twice, "1"))
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec("3"), uid=twice.uid, generation=3), env.rita)
    assert [(it.purpose, it.state) for it in Request.objects.order_by("number")][2:] == [
        ("rollback", "superseded"),
        ("deploy", "preparing"),
    ]


def test_what_was_gone_back_from_is_not_asked_for_by_itself(env: World, twice: BundleDeployment) -> None:
    services.rollback_deployment(by=acting(env.ada), deployment=twice, revision=1, via="browser")
    Request.objects.filter(number=3).update(state="denied", subject_digest="sha256:x")
    world.submit_spec(env.cluster, env.kubernetes.objects["strimzi"])
    assert Request.objects.filter(purpose="deploy").count() == 2
