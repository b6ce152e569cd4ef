"""What somebody may as a deputy they may not once that has ended, whatever Kubernetes still says (S52)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from django.core.cache import cache

from approvals import access
from approvals.access import Question
from approvals.clock import database_now
from approvals.deciding.deputies import BINDING_PREFIX, LONGEST
from approvals.ledger.deciding import deciding_objects
from approvals.models import Cluster, DecidingObject, Request
from provisioner.values import AccessAnswer, AccessRequest, Identity
from tests.support.approvals import world
from tests.support.approvals.fixtures import World

QUESTION = AccessRequest("approve", "core.rukpak.io", "bundledeployments", name="shop")
DORA = Identity("dora")


class ByBinding(world.FakeKubernetes):
    """It allows everything, and says by which binding, as the authorizer RBAC does."""

    binding = f"{BINDING_PREFIX}u-1"

    def ask(self, cluster: Cluster, identity: Identity, request: AccessRequest) -> AccessAnswer:
        words = f'RBAC: allowed by ClusterRoleBinding "{self.binding}" of ClusterRole "r" to User "{identity.username}"'
        return AccessAnswer(True, words)


@pytest.fixture
def kubernetes(env: World) -> Iterator[ByBinding]:
    fake = ByBinding()
    with access.using(fake):
        yield fake


def make(env: World, *, uid: str = "u-1", user: str = "dora", days: float = 1) -> DecidingObject:
    until = (database_now() + timedelta(days=days)).isoformat()
    spec = {"user": user, "deputyFor": "ada", "clusterRole": "pratique-approver", "until": until}
    obj = {"metadata": {"name": f"d-{uid}", "uid": uid, "generation": 1, "resourceVersion": "1"}, "spec": spec}
    made = deciding_objects.observe(cluster=env.cluster, kind="Deputy", obj=obj, is_listed=True)
    assert made is not None
    return made


def answer(env: World) -> access.Permission:
    return access.ask_for(DORA, env.cluster, QUESTION, fresh=True)


def test_a_deputy_may_and_the_answer_says_whose_they_are(env: World, kubernetes: ByBinding) -> None:
    make(env)
    found = answer(env)
    assert found.allowed
    assert found.deputy_words.startswith("deputy of ada until ")
    assert found.words.endswith(f" as {found.deputy_words}")
    assert "ClusterRoleBinding" in found.server_words


def test_S52_nobody_may_as_a_deputy_that_is_unknown_gone_or_over(env: World, kubernetes: ByBinding) -> None:
    assert not answer(env).allowed, "no Deputy of this uid was seen"
    make(env, uid="u-2")
    assert not answer(env).allowed, "another Deputy is not this one"
    row = make(env, user="eve")
    assert not answer(env).allowed, "the binding gives it to somebody else than the Deputy names"
    spec = {**row.spec, "user": "dora"}
    rows = DecidingObject.objects.filter(pk=row.pk)
    rows.update(spec=spec)
    assert answer(env).allowed
    rows.update(spec={**spec, "until": database_now().isoformat()})
    refused = answer(env)
    assert not refused.allowed
    assert "as a deputy only, and that has ended" in refused.words
    assert (refused.server_words, refused.could_ask) == ("", True)
    far = (database_now() + timedelta(days=999)).isoformat()
    rows.update(spec={**spec, "until": far}, changed_at=database_now() - LONGEST)
    assert not answer(env).allowed, "no deputy is one for longer"
    rows.update(spec={**spec, "more": 1}, changed_at=database_now())
    assert not answer(env).allowed, "nobody can read it"
    rows.update(spec=spec)
    assert answer(env).allowed
    deciding_objects.forget(cluster=env.cluster, uid=row.uid)
    assert not answer(env).allowed, "it was deleted, and its binding is not gone yet"


def test_S52_an_answer_that_is_kept_ends_as_well(env: World, kubernetes: ByBinding) -> None:
    row = make(env)
    asked = [Question(DORA, env.cluster, replace(QUESTION, name=name)) for name in ("shop", "port")]
    cache.clear()
    assert [one.allowed for one in access.ask_all(asked)] == [True, True]
    DecidingObject.objects.filter(pk=row.pk).update(changed_at=database_now() - LONGEST)
    assert [one.allowed for one in access.ask_all(asked)] == [False, False]
    assert not access.ask_for(DORA, env.cluster, asked[0].request, fresh=False).allowed


def test_other_bindings_are_nobodys_concern(env: World, kubernetes: ByBinding) -> None:
    kubernetes.binding = "approvers"
    assert answer(env).allowed
    mine, other, plain = f"{BINDING_PREFIX}u-1", f"{BINDING_PREFIX}u-2", "approvers"
    make(env)
    assert access.ended_bindings(env.cluster, [mine, other, plain]) == {other}


def test_S43_what_kubernetes_lets_somebody_write_counts_against_them_after_the_end_too(
    env: World, request_: Request, kubernetes: ByBinding
) -> None:
    """By a binding of that name which nobody knows, of a deputy whose time is over, or of one who may still."""
    request_.requesters, request_.is_requester_known = [], False
    for days in (None, -1, 1):
        if days:
            make(env, uid=f"u-{days}", days=days)
            kubernetes.binding = f"{BINDING_PREFIX}u-{days}"
        assert access.why_author(DORA, request_, []).startswith("dora may "), days
