"""Policies against people who would have them approve, or stop holding back, what they may not (security-rules.md S05, S12 to S14)."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.errors import NotAllowed
from approvals.models import BundleDeployment, KubernetesIdentity, Policy, Request
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.policies import allow, look, save, words_of
from tests.support.approvals.world import acting

ALWAYS = "true"


def asked(env: World, by: User, **meta: Any) -> Request:
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec(), **meta), by)
    return world.in_review(Request.objects.get())


def test_S13_a_policy_is_not_taken_over_by_narrowing_it_to_what_one_may_approve(env: World) -> None:
    save(env, name="freeze", kind="guard", expression="false")
    env.kubernetes.allow("bert", "approve", "his")
    with pytest.raises(NotAllowed):
        save(env, by=acting(env.bert), name="freeze", kind="guard", expression="false", names=["his"])
    assert Policy.objects.get().names == []


def test_S13_a_policy_is_not_taken_over_from_another_cluster(env: World) -> None:
    save(env, name="freeze", kind="guard", expression="false")
    other = world.cluster("playground")
    carl = world.user("carl", other)
    env.kubernetes.allow("carl", "approve")
    with pytest.raises(NotAllowed):
        save(env, by=acting(carl), name="freeze", cluster=other, is_active=False)
    assert (Policy.objects.get().cluster, Policy.objects.get().is_active) == (env.cluster, True)


def test_S13_a_policy_for_all_clusters_is_not_taken_over_from_one(env: World) -> None:
    save(env, name="freeze", kind="guard", expression="false")
    Policy.objects.update(cluster=None)
    world.cluster("playground")
    with pytest.raises(NotAllowed):
        save(env, name="freeze", kind="guard", expression="true")
    assert Policy.objects.get().expression == "false"


def test_S13_an_empty_list_of_names_is_not_hidden_behind_an_empty_name(env: World) -> None:
    env.kubernetes.allow("bert", "approve", "his")
    with pytest.raises(NotAllowed):
        save(env, by=acting(env.bert), names=["his", ""])


@pytest.mark.parametrize("role", ["author", "editor"])
def test_S05_a_policy_does_not_approve_what_its_own_writer_asked_for(env: World, role: str) -> None:
    request = asked(env, env.ada)
    env.kubernetes.allow("bert", "approve")
    policy = save(env, by=acting(env.bert), expression=ALWAYS)
    Policy.objects.update(**{role: env.ada})
    allow(env, policy)
    assert look(request).state == "in_review"
    assert "ada requested this change" in words_of(policy)[1]


def test_S05_a_policy_approves_its_own_writers_request_where_the_operator_allows_it(env: World, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "SELF_APPROVAL": True}
    request = asked(env, env.ada)
    policy = save(env, expression=ALWAYS)
    allow(env, policy)
    assert look(request).state == "approved"


@pytest.mark.parametrize(
    ("username", "groups"),
    [("system:serviceaccount:harbour:installer", []), ("root", ["system:masters"])],
    ids=["ServiceAccount", "master"],
)
def test_S12_a_machine_does_not_vote_by_writing_a_policy(env: World, username: str, groups: list[str]) -> None:
    robot = User.objects.create_user("robot")
    proved = KubernetesIdentity.Authenticator.TOKEN_REVIEW
    identity = env.ada.kubernetes_identities.get()
    identity.pk, identity.user, identity.authenticator = None, robot, proved
    identity.username, identity.groups = username, groups
    identity.save(force_insert=True)
    env.kubernetes.allow(username, "approve")
    with pytest.raises(NotAllowed, match="machine"):
        save(env, by=acting(robot))
    assert not Policy.objects.exists()


def test_S14_a_label_set_after_the_request_does_not_let_a_grant_approve_it(env: World) -> None:
    request = asked(env, env.rita)
    policy = save(env, expression=ALWAYS, labels={"tier": "test"})
    allow(env, policy)
    BundleDeployment.objects.update(labels={"tier": "test"})
    assert look(request).state == "in_review"


def test_S14_a_label_taken_off_since_does_not_let_a_grant_approve_it(env: World) -> None:
    request = asked(env, env.rita, labels={"tier": "test"})
    policy = save(env, expression=ALWAYS, labels={"tier": "test"})
    allow(env, policy)
    BundleDeployment.objects.update(labels={})
    assert look(request).state == "in_review"


@pytest.mark.parametrize("then", [{}, {"tier": "prod"}], ids=["taken off", "put on"])
def test_S14_a_guard_holds_by_the_labels_of_either_day(env: World, then: dict[str, str]) -> None:
    before = {} if then else {"tier": "prod"}
    request = asked(env, env.rita, labels=before)
    save(env, name="freeze", kind="guard", expression="false", labels={"tier": "prod"})
    policy = save(env, expression=ALWAYS)
    allow(env, policy)
    BundleDeployment.objects.update(labels=then)
    assert look(request).state == "in_review"


@pytest.mark.parametrize("change", [{"expression": "false"}, {"is_active": False}, {"mode": "dry-run"}])
def test_S13_what_an_older_version_of_a_policy_approved_does_not_count(env: World, change: dict[str, Any]) -> None:
    request = asked(env, env.rita)
    save(env, name="freeze", kind="guard", expression="false")
    allow(env, save(env, expression=ALWAYS))
    assert look(request).state == "in_review"
    assert request.reviews.count() == 1
    save(env, **{"expression": ALWAYS, **change})
    save(env, name="freeze", kind="guard", expression="true")
    assert look(request).state == "in_review"
