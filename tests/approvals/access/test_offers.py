"""Names to pick from are those that the person may list, asked as this person of a cluster that answers."""

from __future__ import annotations

import pytest

from approvals.access import questions
from approvals.access.port import RealKubernetes
from approvals.access.questions import Kind, Offer, names
from approvals.models import Cluster
from provisioner.cluster.client.api import ClusterClient
from provisioner.errors import Forbidden
from provisioner.values import Identity
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import acting
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.patience import scaled


@pytest.fixture
def row(sandbox: Endpoint) -> Cluster:
    """The sandbox, on which the namespace `pier` has two ServiceAccounts."""
    api = ClusterClient.connect(sandbox.kubeconfig("admin"), timeout_seconds=scaled(60))
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "pier"}}, field_manager="test")
    for name in ("crane", "porter"):
        meta = {"name": name, "namespace": "pier"}
        api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}, field_manager="test")
    return Cluster(pk=4712, name="pier", kubeconfig=sandbox.kubeconfig("admin"))


def test_names_are_listed_as_the_person_who_asks(row: Cluster) -> None:
    real = RealKubernetes()
    admin, mallory = Identity("admin", ("system:masters",)), Identity("mallory")
    assert "pier" in real.names_of(row, "Namespace", namespace="", most=500, as_person=admin)
    found = real.names_of(row, "ServiceAccount", namespace="pier", most=500, as_person=admin)
    assert {"crane", "porter"} <= set(found)
    assert len(real.names_of(row, "ServiceAccount", namespace="pier", most=1, as_person=admin)) == 1
    with pytest.raises(Forbidden):
        real.names_of(row, "Namespace", namespace="", most=500, as_person=mallory)


def test_an_answer_is_kept_for_this_person_alone_and_a_refusal_for_nobody(env: World) -> None:
    env.kubernetes.names["Namespace", ""] = ["shop", "harbour"]
    ada, bert = acting(env.ada), acting(env.bert)
    assert names(ada, env.cluster, Kind.NAMESPACE) == Offer(could_list=False)
    env.kubernetes.allow("ada", "list")
    assert names(ada, env.cluster, Kind.NAMESPACE) == Offer(("harbour", "shop"))
    env.kubernetes.is_down = True
    assert names(ada, env.cluster, Kind.NAMESPACE).names == ("harbour", "shop")
    assert names(bert, env.cluster, Kind.NAMESPACE) == Offer(could_list=False)
    assert names(ada, env.cluster, Kind.ACCOUNT, "shop") == Offer(could_list=False)


def test_whoever_is_nobody_on_the_cluster_is_offered_nothing(env: World) -> None:
    env.kubernetes.names["Namespace", ""] = ["shop"]
    env.kubernetes.allow("ada", "list")
    assert names(acting(env.ada), world.cluster("east"), Kind.NAMESPACE) == Offer(could_list=False)


def test_no_more_names_than_a_list_shows_are_offered(env: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "MOST", 2)
    env.kubernetes.allow("ada", "list")
    env.kubernetes.names["Namespace", ""] = ["c", "b", "a"]
    assert names(acting(env.ada), env.cluster, Kind.NAMESPACE) == Offer(("b", "c"), has_more=True)
