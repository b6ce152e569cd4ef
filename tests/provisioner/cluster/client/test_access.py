"""Only the cluster itself says who may do what, and whose token it is."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from provisioner.cluster.client.access import ask, ask_many, review_self, review_token
from provisioner.cluster.client.api import ClusterClient
from provisioner.errors import Forbidden
from provisioner.values import AccessRequest, Identity
from tests.support.kubernetes.live import until_may
from tests.support.patience import scaled

ALICE = Identity("alice", ("platform",))


@pytest.fixture
def approver(scene):
    """A right on one BundleDeployment, for one user."""
    rbac = {"apiVersion": "rbac.authorization.k8s.io/v1"}
    name = scene.namespace
    rule = {
        "apiGroups": ["core.rukpak.io"],
        "resources": ["bundledeployments"],
        "verbs": ["approve"],
        "resourceNames": ["shop"],
    }
    role = {**rbac, "kind": "ClusterRole", "metadata": {"name": name}, "rules": [rule]}
    person = Identity(f"person-{name}")
    binding = {
        **rbac,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": person.username}],
    }
    assert not [one for one in scene.deploy(role, binding) if one.state != "done"]
    until_may(scene.cluster, person, approving("shop"))
    return person


def approving(name: str) -> AccessRequest:
    return AccessRequest("approve", "core.rukpak.io", "bundledeployments", name=name)


def test_a_right_counts_for_the_named_object_only(scene, approver):
    answers = ask_many(scene.cluster, approver, [approving("shop"), approving("bank"), approving("shop")])
    assert {request.name: answer.allowed for request, answer in answers.items()} == {"shop": True, "bank": False}


def test_a_right_of_one_person_is_not_anothers(scene, approver):
    assert not ask(scene.cluster, Identity("somebody-else"), approving("shop")).allowed


def test_a_path_that_is_no_resource_can_be_asked_for(kubernetes_api):
    request = AccessRequest("get", path="/metrics")
    assert ask(kubernetes_api, Identity("x", ("system:masters",)), request).allowed
    assert not ask(kubernetes_api, ALICE, request).allowed


def test_nothing_asked_is_nothing_answered(kubernetes_api):
    assert ask_many(kubernetes_api, ALICE, []) == {}


@pytest.mark.parametrize("token", ["", "no-such-token", "a\r\nb", "ü"])
def test_a_token_that_the_cluster_does_not_know_is_nobodys(kubernetes_api, token):
    assert review_token(kubernetes_api, token, "") is None


def test_a_token_of_a_service_account_is_bound_to_its_audience(scene):
    scene.deploy(scene.namespaced("v1", "ServiceAccount", "robot"))
    path = f"/api/v1/namespaces/{scene.namespace}/serviceaccounts/robot/token"
    wish = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": ["pratique"]}}
    token = scene.cluster.post(path, wish, subject="a token")["status"]["token"]
    found = review_token(scene.cluster, token, "pratique")
    assert found is not None
    assert found.username == f"system:serviceaccount:{scene.namespace}:robot"
    assert f"system:serviceaccounts:{scene.namespace}" in found.groups
    assert review_token(scene.cluster, token, "another-service") is None


@pytest.mark.controlplane
def test_who_we_are_is_what_the_cluster_says(controlplane):
    found = review_self(ClusterClient.connect(controlplane.kubeconfig("alice")))
    assert found.username == "alice"
    assert "platform" in found.groups
    impersonated = ClusterClient.connect(controlplane.kubeconfig("admin")).acting_as(Identity("bob", ("platform",)))
    assert review_self(impersonated).username == "bob"


@pytest.mark.controlplane
def test_the_token_of_a_person_names_them(controlplane):
    cluster = ClusterClient.connect(controlplane.kubeconfig("admin"))
    token = yaml.safe_load(controlplane.kubeconfig("alice"))["users"][0]["user"]["token"]
    found = review_token(cluster, token, "")
    assert found is not None
    assert (found.username, "platform" in found.groups) == ("alice", True)


def test_S07_acting_as_an_account_needs_that_right_and_no_other(scene, api_server):
    rbac = "rbac.authorization.k8s.io/v1"
    rule = {
        "apiGroups": [""],
        "resources": ["serviceaccounts"],
        "verbs": ["impersonate"],
        "resourceNames": ["installer"],
    }
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "acts-as-installer"}
    subject = {"kind": "ServiceAccount", "name": "robot", "namespace": scene.namespace}
    scene.deploy(
        scene.namespaced("v1", "ServiceAccount", "robot"),
        scene.namespaced("v1", "ServiceAccount", "installer"),
        scene.namespaced(rbac, "Role", "acts-as-installer", rules=[rule]),
        scene.namespaced(rbac, "RoleBinding", "acts-as-installer", roleRef=role, subjects=[subject]),
    )
    path = f"/api/v1/namespaces/{scene.namespace}/serviceaccounts/robot/token"
    wish = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = scene.cluster.post(path, wish, subject="a token")["status"]["token"]
    robot = ClusterClient.connect(
        replace(api_server, tokens={"robot": token}).kubeconfig("robot"), timeout_seconds=scaled(60)
    )
    installer = Identity.of_service_account(scene.namespace, "installer")
    account = Identity.of_service_account(scene.namespace, "robot")
    scene.until_may(account, "impersonate", "serviceaccounts", name="installer")
    found = review_self(robot.acting_as(installer))
    assert (found.username, set(found.groups)) == (installer.username, set(installer.groups))
    for other in (account, Identity("alice"), replace(installer, groups=("x",))):
        with pytest.raises(Forbidden, match="cannot impersonate"):
            review_self(robot.acting_as(other))
