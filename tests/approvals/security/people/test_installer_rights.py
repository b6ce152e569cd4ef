"""Who may use an installer: legacy impersonation, or all of constrained impersonation (security-rules.md S07, S28)."""

from __future__ import annotations

import pytest

from approvals import access
from approvals.access.questions import REQUEST_VERBS
from approvals.models import Request
from provisioner.values import Identity
from tests.support.approvals.fixtures import World

CARL = Identity("carl", ("developers",))
BEING = "impersonate:serviceaccount"
ON = tuple(f"impersonate-on:serviceaccount:{verb}" for verb in REQUEST_VERBS)


def allow(env: World, *verbs: str) -> None:
    for verb in verbs:
        env.kubernetes.allow("carl", verb)


def test_S07_who_may_impersonate_the_account_may_use_it(env: World, request_: Request) -> None:
    assert not access.may_use_account(CARL, request_).allowed
    allow(env, "impersonate")
    assert access.may_use_account(CARL, request_).allowed


def test_S28_who_may_make_every_request_as_the_account_may_use_it(env: World, request_: Request) -> None:
    allow(env, BEING, *ON)
    answer = access.may_use_account(CARL, request_)
    assert answer.allowed
    assert "constrained" in answer.words


@pytest.mark.parametrize("missing", [BEING, *ON])
def test_S28_who_may_make_only_some_requests_as_the_account_may_not_use_it(
    env: World, request_: Request, missing: str
) -> None:
    allow(env, *({BEING, *ON} - {missing}))
    answer = access.may_use_account(CARL, request_)
    assert not answer.allowed
    assert 'verbs: ["impersonate"]' in answer.rule


def test_S28_the_rights_over_requests_are_asked_over_everything(env: World, request_: Request) -> None:
    allow(env, BEING, *ON)
    access.may_use_account(CARL, request_)
    asked = [question for username, question in env.kubernetes.asked if username == "carl"]
    about = {(one.group, one.resource, one.namespace, one.name) for one in asked if one.verb in ON}
    assert about == {("*", "*", "", "")}
    (being,) = [one for one in asked if one.verb == BEING]
    assert (being.group, being.resource, being.namespace, being.name) == (
        "authentication.k8s.io",
        "serviceaccounts",
        "harbour",
        "installer",
    )


def test_S07_what_could_not_be_asked_is_no(env: World, request_: Request) -> None:
    env.kubernetes.is_down = True
    answer = access.may_use_account(CARL, request_)
    assert (answer.allowed, answer.could_ask) == (False, False)
