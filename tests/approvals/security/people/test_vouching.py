"""Requests of people whose groups are too old to count: a reviewer, or a policy, vouches for them (S07)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from approvals import gate, policy
from approvals.access import no_longer_current
from approvals.controllers import GitopsControllers, read_controllers
from approvals.gate.remedies import HELD_BACK
from approvals.models import Request, Review
from approvals.policy import Ballot, Lapse, Lapsed
from tests.approvals.security.people.asking import applied, approve, ask, by_token, unattended
from tests.support.approvals import world
from tests.support.approvals.asked_gate import check_vouched
from tests.support.approvals.fixtures import World
from tests.support.approvals.policies import allow, look, save

ARGOCD = "system:serviceaccount:argocd:app"


@pytest.fixture
def aged(env: World) -> Request:
    """In review, and nobody asked; what is known of rita, who wrote it, is too old."""
    by_token(env.rita)
    request = world.in_review(unattended(applied(ask(env, env.rita))))
    by_token(env.rita, hours=13)
    return request


def test_S07_a_reviewer_who_may_not_use_the_account_is_not_enough(env: World, aged: Request) -> None:
    approve(aged, env.ada)
    found = look(aged)
    assert (found.state, found.problem_code) == ("in_review", HELD_BACK)
    assert (
        "the identity of rita, who requested the change, has expired: rita must sign in again, or one approver must be"
        in found.problem
    )
    by_token(env.rita)
    found = look(aged)
    assert (found.state, found.problem) == ("approved", "")


def test_S07_a_reviewer_who_may_use_the_account_vouches(env: World, aged: Request) -> None:
    env.kubernetes.allow("ada", "impersonate")
    approve(aged, env.ada)
    found = look(aged)
    assert found.state == "approved"
    check_vouched(found)


@pytest.mark.parametrize("may_use_account", [True, False])
def test_S07_a_policy_vouches_by_its_own_identity_only(env: World, aged: Request, may_use_account: bool) -> None:
    """Its author, who may use the account, does not count for it."""
    env.kubernetes.allow("ada", "impersonate")
    each = save(env, expression="true")
    allow(env, each)
    if may_use_account:
        env.kubernetes.allow(f"pratique:policy:{each.pk}", "impersonate")
    found = look(aged)
    assert (found.state, Review.objects.get().may_use_account) == (
        ("approved", True) if may_use_account else ("in_review", False)
    )


def test_S07_it_is_asked_again_at_the_gate(env: World, aged: Request) -> None:
    each = save(env, expression="true")
    allow(env, each)
    env.kubernetes.allow(f"pratique:policy:{each.pk}", "impersonate")
    found = look(aged)
    check_vouched(found)
    env.kubernetes.allowed.discard((f"pratique:policy:{each.pk}", "impersonate", "*"))
    with pytest.raises(
        gate.Waiting,
        match="checked again before applying, .*: the identity of rita, who requested the change, has expired",
    ):
        check_vouched(found)
    by_token(env.rita)
    check_vouched(found)


def test_S07_groups_that_grow_old_after_the_approval_make_it_wait_at_the_gate(env: World) -> None:
    by_token(env.rita)
    request = world.in_review(ask(env, env.rita))
    approve(request, env.ada)
    found = look(request)
    assert found.state == "approved"
    by_token(env.rita, hours=13)
    with pytest.raises(gate.Waiting, match="rita must sign in again"):
        check_vouched(found)


@pytest.mark.parametrize(
    ("ballots", "decision"),
    [
        pytest.param([Ballot("Approve", False, True, True)], "approved", id="who may use it"),
        pytest.param([Ballot("Approve", True, True, True)], "approved", id="a policy that may use it"),
        pytest.param([Ballot("Approve", False, True, False)], "undecided", id="who may not"),
        pytest.param(
            [Ballot("Approve", False, True, False), Ballot("Approve", True, False, True)],
            "undecided",
            id="who may, and does not count",
        ),
        pytest.param(
            [Ballot("Approve", False, True, False), Ballot("Approve", False, True, True)], "approved", id="one of two"
        ),
    ],
)
def test_S07_one_counted_approval_must_vouch_for_whom_nobody_can_ask_about(
    ballots: list[Ballot], decision: str
) -> None:
    found = policy.decide(ballots, needed=1, held_by=(), is_requester_known=True, too_old=[Lapsed("rita")])
    assert found.decision == decision


def test_S34_a_controller_counts_while_the_operator_lists_it(env: World, settings: Any) -> None:
    """Neither age nor a sign-in changes what it is: only the list does, for requests that are open as well."""
    request = world.in_review(ask(env, env.rita))
    longest = timezone.now() - timedelta(days=300)
    controller = {"username": ARGOCD, "groups": [], "uid": "u-1", "via": "gitops", "groups_at": longest.isoformat()}
    request.requesters = [{**controller, "user_id": None, "issuer": "", "subject": ""}]
    request.save()
    env.kubernetes.allow(ARGOCD, "impersonate")
    assert no_longer_current(request) == [Lapsed(ARGOCD, Lapse.UNLISTED)]
    spec = request.spec
    listed = {
        "account": "argocd/app",
        "cluster": env.cluster.name,
        "deployments": {"matchNames": [request.deployment.name]},
        "installers": [f"{spec['installNamespace']}/{spec['serviceAccountName']}"],
    }
    settings.PRATIQUE = {**settings.PRATIQUE, "GITOPS_FILE": read_controllers({"controllers": [listed]})}
    assert no_longer_current(request) == []
    approve(request, env.ada)
    settings.PRATIQUE = {**settings.PRATIQUE, "GITOPS_FILE": GitopsControllers()}
    found = look(request)
    assert (found.state, found.problem_code) == ("in_review", HELD_BACK)
    assert (
        f"PRATIQUE_GITOPS_FILE does not list the GitOps controller {ARGOCD} for what it requested: the operator must list it"
        in found.problem
    )
    settings.PRATIQUE = {**settings.PRATIQUE, "GITOPS_FILE": read_controllers({"controllers": [listed]})}
    assert look(request).state == "approved"


def test_S07_a_service_account_that_asked_by_rest_is_not_told_of_the_list_of_controllers(env: World) -> None:
    request = world.in_review(ask(env, env.rita))
    longest = timezone.now() - timedelta(days=300)
    asked = {"username": "system:serviceaccount:ci:bot", "groups": [], "uid": "u", "via": "rest", "user_id": None}
    request.requesters = [{**asked, "groups_at": longest.isoformat(), "issuer": "", "subject": ""}]
    request.save()
    approve(request, env.ada)
    problem = look(request).problem
    assert "the identity of system:serviceaccount:ci:bot, who requested the change, has expired" in problem
    assert "PRATIQUE_GITOPS_FILE" not in problem
