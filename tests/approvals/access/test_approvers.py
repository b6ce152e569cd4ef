"""Who may approve is named out of the roles and bindings that the viewer may list, asked as this person."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.cache import cache

from approvals.access import authors
from approvals.access.authors import UNKNOWN, Approvers, approvers_of
from approvals.access.port import RealKubernetes
from approvals.models import Cluster, Request
from provisioner.errors import Forbidden
from provisioner.rbac import subjects
from provisioner.values import Identity
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import acting
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.provisioner.roles import account, bound, cluster_role, group, rule, user

OURS = "core.rukpak.io"
APPROVER = cluster_role("approver", rule("approve", "bundledeployments", group=OURS, names="strimzi"))


def test_roles_are_listed_as_the_person_who_asks(sandbox: Endpoint) -> None:
    row = Cluster(pk=4713, name="pier", kubeconfig=sandbox.kubeconfig("admin"))
    admin = Identity("admin", ("system:masters",))
    found = RealKubernetes().cluster_roles(row, most=500, as_person=admin)
    assert {one["kind"] for one in found} == {"ClusterRole", "ClusterRoleBinding"}
    assert "Group system:masters" in [str(one) for one in subjects(found)]
    with pytest.raises(Forbidden):
        RealKubernetes().cluster_roles(row, most=500, as_person=Identity("mallory"))


def test_people_and_groups_are_named_and_machines_are_not(env: World, request_: Request) -> None:
    everybody = cluster_role("everybody", rule("*", "*", group="*"))
    machines = (account("robot", "app"), group("system:serviceaccounts:app"), user("pratique:policy:7"))
    env.kubernetes.roles = [
        APPROVER,
        everybody,
        cluster_role("others", rule("approve", "bundledeployments", group=OURS, names="kafka")),
        bound("approver", user("zoe"), group("platform"), *machines),
        bound("everybody", group("system:masters")),
        bound("others", user("eve")),
    ]
    ada = acting(env.ada)
    assert approvers_of(ada, request_.deployment) == UNKNOWN
    env.kubernetes.allow("ada", "list")
    cache.clear()
    named = Approvers(users=("zoe",), groups=("platform",))
    assert approvers_of(ada, request_.deployment) == named
    env.kubernetes.is_down = True
    assert approvers_of(ada, request_.deployment) == named
    assert approvers_of(acting(env.bert), request_.deployment) == UNKNOWN


def test_where_there_are_more_bindings_than_are_read_it_says_so(
    env: World, request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    env.kubernetes.roles = [APPROVER, bound("approver", user("zoe")), bound("view", user("eve"))]
    env.kubernetes.allow("ada", "list")
    monkeypatch.setattr(authors, "MOST", 2)
    assert approvers_of(acting(env.ada), request_.deployment) == Approvers(users=("zoe",), has_more=True)


def test_whoever_is_nobody_on_the_cluster_is_told_of_nobody(env: World) -> None:
    env.kubernetes.roles = [APPROVER, bound("approver", user("zoe"))]
    env.kubernetes.allow("ada", "list")
    elsewhere = world.submit_spec(world.cluster("east"), world.seen("strimzi", world.spec()))
    assert approvers_of(acting(env.ada), elsewhere) == UNKNOWN


def test_who_may_not_list_roles_is_refused_once_for_all_deployments_of_the_cluster(
    env: World, request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    listing = env.kubernetes.cluster_roles

    def counted(cluster: Cluster, *, most: int, as_person: Identity) -> list[dict[str, Any]]:
        asked.append(as_person.username)
        return listing(cluster, most=most, as_person=as_person)

    monkeypatch.setattr(env.kubernetes, "cluster_roles", counted)
    other = world.submit_spec(env.cluster, world.seen("kafka", world.spec()))
    for deployment in (request_.deployment, other, request_.deployment):
        assert approvers_of(acting(env.ada), deployment) == UNKNOWN
    assert asked == ["ada"]
    env.kubernetes.allow("bert", "list")
    assert approvers_of(acting(env.bert), other).could_list
    assert asked == ["ada", "bert"]


def test_a_cluster_that_does_not_answer_hides_nothing_that_is_known(env: World, request_: Request) -> None:
    env.kubernetes.roles = [APPROVER, bound("approver", user("zoe"))]
    env.kubernetes.allow("ada", "list")
    ada, other = acting(env.ada), world.submit_spec(env.cluster, world.seen("kafka", world.spec()))
    named = approvers_of(ada, request_.deployment)
    env.kubernetes.is_down = True
    assert approvers_of(ada, other) == UNKNOWN
    assert approvers_of(ada, request_.deployment) == named == Approvers(users=("zoe",))
