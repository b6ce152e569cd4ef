"""Two clusters, each with its own word about who somebody is: a real API server, and a sandbox that an attacker controls.

Both know an `alice` of the same name, groups and uid, so nothing but the cluster tells them apart (security-rules.md S01).
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from approvals import services
from approvals.audit import Actor
from approvals.models import Cluster, KubernetesIdentity, Proof, Request, Review, SignIn
from provisioner.cluster.client.api import ClusterClient as Api
from tests.support.journeys import deployed_site
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.patience import scaled
from tests.support.servers.registry import Registry

OPERATOR = Actor("test", "shell")


@pytest.fixture
def second(real_site: DeployedSite, sandbox: Endpoint) -> Cluster:
    """The attacker's cluster, registered beside the real one, with the rights that any cluster gives to the service."""
    deployed_site.prepare(Api.connect(sandbox.kubeconfig("admin"), timeout_seconds=scaled(60)), real_site.namespace)
    cluster = services.register_cluster(name="second", kubeconfig=sandbox.kubeconfig("pratique"), by=OPERATOR)
    alice = real_site.people["alice"]
    services.map_identity(user=alice, cluster=cluster, username="alice", groups=["platform"], by=OPERATOR)
    return cluster


@pytest.fixture
def asked(real_site: DeployedSite, registry: Registry) -> Request:
    name = f"lamp-{real_site.namespace}"
    deployment = real_site.prepare(name, bundles.image(registry, name, bundles.app(name, "1")))
    request = real_site.latest(deployment)
    assert request.state == "in_review", request.problem
    return request


def signed_in(cluster: str, token: str) -> Client:
    client = Client()
    answer = client.post("/sign-in", {"with": "token", "cluster": cluster, "token": token})
    assert answer.status_code == 302, answer.content.decode()
    return client


def decide(client: Client, request: Request) -> int:
    """Approve in the browser, with all that the form could ask for."""
    named = services.to_acknowledge(request)
    form = {"decision": "Approve", "subject_digest": request.subject_digest, "reason": "mine", "acknowledges": named}
    return client.post(f"/requests/{request.uid}/review", {**form, "typed": request.deployment.name}).status_code


def review_over_rest(client: Client, request: Request, **headers: Any) -> int:
    body = {"decision": "Approve", "subject_digest": request.subject_digest, "reason": "mine"}
    path = f"/api/v1/requests/{request.uid}/reviews"
    return client.post(path, json.dumps(body), content_type="application/json", headers=headers).status_code


def test_S01_who_controls_the_second_cluster_decides_nothing_on_the_first(
    real_site: DeployedSite, second: Cluster, sandbox: Endpoint, controlplane: Endpoint, asked: Request
) -> None:
    alice = real_site.people["alice"]
    mapped = list(KubernetesIdentity.objects.filter(user=alice).order_by("pk").values())
    thief = signed_in("second", sandbox.tokens["alice"])
    entered = SignIn.objects.latest("pk").user
    assert entered != alice
    assert not entered.has_usable_password()
    assert (thief.get("/").status_code, thief.get(f"/requests/{asked.uid}").status_code) == (200, 404)
    assert decide(thief, asked) == 404
    assert review_over_rest(thief, asked) == 404
    made = thief.post("/me/tokens", {"name": "x", "days": "1", "scopes": ["decide"], "clusters": [second.pk]})
    text = "prq_" + made.content.decode().partition("prq_")[2].partition("<")[0].strip()
    assert review_over_rest(Client(), asked, authorization=f"Bearer {text}") == 404
    elsewhere = {"name": "x", "days": "1", "scopes": ["decide"], "clusters": [real_site.cluster.pk]}
    assert thief.post("/me/tokens", elsewhere).status_code == 422
    real_site.work(asked)
    assert (asked.state, Review.objects.count()) == ("in_review", 0)
    assert list(KubernetesIdentity.objects.filter(user=alice).order_by("pk").values()) == mapped
    # The real alice, whose own cluster vouches for her, does.
    assert decide(signed_in("journey", controlplane.tokens["alice"]), asked) == 302
    real_site.work(asked)
    assert asked.state == "applied", asked.problem


def test_S01_a_link_lets_neither_cluster_act_on_the_other(
    real_site: DeployedSite, second: Cluster, sandbox: Endpoint, controlplane: Endpoint, asked: Request
) -> None:
    bob = signed_in("journey", controlplane.tokens["bob"])
    linked = bob.post("/me/identities", {"cluster": "second", "token": sandbox.tokens["bob"]})
    assert linked.status_code == 302
    assert "bob" in bob.get("/clusters").content.decode()
    thief = signed_in("second", sandbox.tokens["bob"])
    assert User.objects.filter(kubernetes_identities__username="bob").distinct().count() == 1
    assert thief.get(f"/requests/{asked.uid}").status_code == 404
    assert decide(thief, asked) == 404
    assert decide(bob, asked) == 302


def test_S25_the_browser_proves_again_and_comes_back_and_groups_are_those_of_now(
    real_site: DeployedSite, controlplane: Endpoint, asked: Request
) -> None:
    page, token = f"/requests/{asked.uid}", controlplane.tokens["alice"]
    client = signed_in("journey", token)
    Proof.objects.update(proved_at=timezone.now() - timedelta(hours=13))
    assert client.get(page)["Location"] == f"/sign-in?next={page}"
    assert decide(client, asked) == 302
    assert not Review.objects.exists()
    again = client.post("/sign-in", {"with": "token", "cluster": "journey", "token": token, "next": page})
    assert again["Location"] == page
    assert "platform" in client.get(page).content.decode()
    assert decide(client, asked) == 302
    assert Review.objects.get().groups == ["platform", "system:authenticated"]


def test_S33_a_service_account_reads_with_an_api_token_that_it_proves_anew(
    real_site: DeployedSite, asked: Request
) -> None:
    """Who may not review is told so before they are in; the token's rights follow the cluster's."""
    name = f"system:serviceaccount:{real_site.namespace}:installer"
    bearer = real_site.ctl("create", "token", "installer", "-n", real_site.namespace, "--audience", "pratique").strip()
    client = Client()
    told = client.post("/sign-in", {"with": "token", "cluster": "journey", "token": bearer})
    assert "is a machine account" in told.content.decode()
    assert not SignIn.objects.filter(user__kubernetes_identities__username=name).exists()
    assert client.post("/sign-in", {"with": "confirmation"}).status_code == 302
    form = {"name": "ci", "days": "7", "scopes": ["read", "decide"], "clusters": [real_site.cluster.pk]}
    text = "prq_" + client.post("/me/tokens", form).content.decode().partition("prq_")[2].partition("<")[0].strip()
    known = {"authorization": f"Bearer {text}"}
    path = f"/api/v1/requests/{asked.uid}"
    assert Client().get(path, headers=known).status_code == 200
    assert review_over_rest(Client(), asked, **known) == 403
    Proof.objects.update(proved_at=timezone.now() - timedelta(hours=13))
    assert Client().get(path, headers=known).status_code == 401
    body = json.dumps({"cluster": "journey", "token": bearer})
    prove = "/api/v1/tokens/current/prove"
    assert Client().post(prove, body, content_type="application/json", headers=known).status_code == 200
    assert Client().get(path, headers=known).status_code == 200
    real_site.ctl("delete", "serviceaccount", "installer", "-n", real_site.namespace)
    real_site.ctl("create", "serviceaccount", "installer", "-n", real_site.namespace)
    again = real_site.ctl("create", "token", "installer", "-n", real_site.namespace, "--audience", "pratique").strip()
    body = json.dumps({"cluster": "journey", "token": again})
    assert Client().post(prove, body, content_type="application/json", headers=known).status_code == 403
