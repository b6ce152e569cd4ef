"""What runs as an account that is strong on the cluster is for people, however the account is taken and made strong."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.pipeline import look_offline
from provisioner.review.base.facts import ClusterSurroundings, Facts
from provisioner.values import Action, Finding
from tests.provisioner.review.checks.own.findings import find_changes
from tests.support.provisioner.contents import an_object, content_with, facts, judged_by, planned
from tests.support.provisioner.roles import API, account, bound, cluster_role, group, role, rule, user

OWN = "core.rukpak.io"
Objects = tuple[dict[str, Any], ...]
ROBOT = account("robot", "argocd")


def pod_spec(name: str = "robot") -> dict[str, Any]:
    return {"serviceAccountName": name, "containers": [{"name": "x", "image": "example.com/x"}]}


def pod(name: str = "robot", namespace: str = "argocd") -> dict[str, Any]:
    return an_object("v1", "Pod", "x", namespace, spec=pod_spec(name))


def made(*objects: dict[str, Any], live: Objects | None = (), **rest: Any) -> Facts:
    return facts(*(planned(one, Action.CREATE) for one in objects), live_rbac=live, **rest)


def found(given: Facts) -> list[Finding]:
    return [finding for finding in find_changes(given) if finding.rule == "OWN-PRATIQUE-05"]


def template(api: str, kind: str) -> dict[str, Any]:
    return an_object(api, kind, "x", "argocd", spec={"template": {"spec": pod_spec()}})


TAKEN = {
    "a pod": pod(),
    "a pod by the old name of the field": an_object(
        "v1", "Pod", "x", "argocd", spec={"serviceAccount": "robot", "containers": []}
    ),
    "a deployment": template("apps/v1", "Deployment"),
    "a daemon set": template("apps/v1", "DaemonSet"),
    "a stateful set": template("apps/v1", "StatefulSet"),
    "a replica set": template("apps/v1", "ReplicaSet"),
    "a replication controller": template("v1", "ReplicationController"),
    "a job": template("batch/v1", "Job"),
    "a cron job": an_object(
        "batch/v1", "CronJob", "x", "argocd", spec={"jobTemplate": {"spec": {"template": {"spec": pod_spec()}}}}
    ),
    "a pod template": an_object("v1", "PodTemplate", "x", "argocd", template={"spec": pod_spec()}),
    "a Secret that is filled with its token": {
        **an_object("v1", "Secret", "x", type="kubernetes.io/service-account-token"),
        "metadata": {
            "name": "x",
            "namespace": "argocd",
            "annotations": {"kubernetes.io/service-account.name": "robot"},
        },
    },
    "a custom resource": an_object(
        "monitoring.coreos.com/v1", "Prometheus", "x", "argocd", spec={"serviceAccountName": "robot"}
    ),
    "a custom resource deep inside": an_object(
        "tekton.dev/v1", "PipelineRun", "x", "argocd", spec={"runs": [{"template": {"serviceAccount": "robot"}}]}
    ),
    "a custom resource of another namespace": an_object(
        "example.com/v1", "Runner", "x", "shop", spec={"serviceAccount": {"name": "robot", "namespace": "argocd"}}
    ),
    "a custom resource by another name of the field": an_object(
        "external-secrets.io/v1", "SecretStore", "x", "argocd", spec={"auth": {"serviceAccountRef": {"name": "robot"}}}
    ),
    "a custom resource that names its operator's": an_object(
        "example.com/v1", "Runner", "x", "argocd", spec={"operatorServiceAccountName": "robot"}
    ),
    "a custom resource with a list": an_object(
        "example.com/v1", "Runner", "x", "argocd", spec={"serviceAccounts": ["other", {"name": "robot"}]}
    ),
    "a custom resource with a template of the account": an_object(
        "example.com/v1", "Runner", "x", "argocd", spec={"serviceAccount": {"metadata": {"name": "robot"}}}
    ),
    "a custom resource without a spec": an_object(
        "example.com/v1", "Runner", "x", "argocd", template={"serviceAccountName": "robot"}
    ),
    "the account itself": an_object("v1", "ServiceAccount", "robot", "argocd"),
}


@pytest.mark.parametrize("way", TAKEN)
def test_S22_it_counts_however_a_bundle_takes_a_strong_account(way: str) -> None:
    live = (cluster_role("all", rule("*", "*", group="*")), bound("all", ROBOT))
    (one,) = found(made(TAKEN[way], live=live))
    assert one.severity == "critical"
    assert "argocd/robot" in one.message
    assert "do everything in the cluster" in one.message
    weak = (cluster_role("few", rule("get", "configmaps")), bound("few", ROBOT))
    assert not found(made(TAKEN[way], live=weak))


def named(to: str, subject: dict[str, Any], *rules: dict[str, Any], namespace: str = "") -> Objects:
    return (cluster_role(to, *rules), bound(to, subject, namespace=namespace))


STRONG: dict[str, Objects] = {
    "everything": named("r", ROBOT, rule("*", "*", group="*")),
    "approves": named("r", ROBOT, rule("approve", "bundledeployments", group=OWN)),
    "writes our objects": named("r", ROBOT, rule("patch", "bundledeployments", group=OWN)),
    "impersonates": named("r", ROBOT, rule("impersonate", "users groups")),
    "reads our Secrets": (
        role("pratique", "r", rule("get", "secrets")),
        bound("r", ROBOT, namespace="pratique", kind="Role"),
    ),
    "escalates": named("r", ROBOT, rule("escalate", "clusterroles", group=API)),
    "binds": named("r", ROBOT, rule("bind", "clusterroles", group=API)),
    "signs": named("r", ROBOT, rule("approve", "signers", group="certificates.k8s.io")),
    "goes through nodes": named("r", ROBOT, rule("get", "nodes/proxy")),
    "changes objects on their way": named(
        "r", ROBOT, rule("create", "mutatingwebhookconfigurations", group="admissionregistration.k8s.io")
    ),
    "evicts our pods": named("r", ROBOT, rule("create", "pods/eviction")),
    "by the name of a user": named("r", user("system:serviceaccount:argocd:robot"), rule("impersonate", "users")),
    "by its namespace's group": named("r", group("system:serviceaccounts:argocd"), rule("impersonate", "users")),
    "by the group of all accounts": named("r", group("system:serviceaccounts"), rule("impersonate", "users")),
    "by everybody's group": named("r", group("system:authenticated"), rule("impersonate", "users")),
    "by an aggregated role": (
        cluster_role("all", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"to": "all"}}]}),
        cluster_role("part", rule("impersonate", "users"), labels={"to": "all"}),
        bound("all", ROBOT),
    ),
    "by a role whose name says nothing": named("view", ROBOT, rule("impersonate", "users")),
}


@pytest.mark.parametrize("way", STRONG)
def test_S22_an_account_is_judged_by_what_the_live_roles_hold(way: str) -> None:
    assert found(made(pod(), live=STRONG[way]))
    assert not found(made(pod("another", "elsewhere"), live=STRONG[way])) or "group of all" in way or "every" in way


def test_S22_a_role_bound_in_another_namespace_is_no_power() -> None:
    assert not found(made(pod(), live=named("r", ROBOT, rule("get create", "secrets pods"), namespace="argocd")))


def test_S22_what_the_bundle_gives_its_own_account_is_said_of_the_account_and_not_of_each_pod() -> None:
    objects = (cluster_role("r", rule("impersonate", "users")), bound("r", ROBOT))
    given = made(pod(), *objects, live=objects)
    assert not found(given)
    assert [finding.rule for finding in find_changes(given)] == ["OWN-PRATIQUE-03"]


def test_S22_a_binding_that_waits_for_an_account_that_the_bundle_makes_counts() -> None:
    live = named("r", ROBOT, rule("impersonate", "users"))
    (one,) = found(made(an_object("v1", "ServiceAccount", "robot", "argocd"), pod(), live=live))
    assert str(one.ref) == "Pod argocd/x"


def test_S22_roles_that_nobody_could_read_are_a_finding_that_no_policy_approves() -> None:
    (one,) = found(made(pod(), live=None))
    assert one.severity == "unknown"
    assert "could not be read" in one.message
    assert not found(made(pod(), live=None, is_offline=True))


def test_S22_a_role_that_cannot_be_read_is_unknown() -> None:
    live = ({**cluster_role("r"), "rules": [{"verbs": "get"}]}, bound("r", ROBOT))
    (one,) = found(made(pod(), live=live))
    assert one.severity == "unknown"


def test_S22_what_ran_as_a_strong_account_before_is_said_and_is_not_new() -> None:
    live = named("r", ROBOT, rule("impersonate", "users"))
    (one,) = found(made(pod(), live=live, previous=content_with(pod())))
    assert not one.is_new


def test_S22_it_stands_in_the_report_and_an_ordinary_bundle_has_none() -> None:
    live = named("r", ROBOT, rule("impersonate", "users"))
    assert any(finding.rule == "OWN-PRATIQUE-05" for finding in judged_by(made(pod(), live=live)))
    quiet = made(an_object("v1", "ServiceAccount", "mine", "shop"), pod("mine", "shop"), live=live)
    assert not any(finding.rule.startswith("OWN-PRATIQUE") for finding in judged_by(quiet))


INSTALLER = account("installer", "shop")
AS_INSTALLER = {
    "pods": (rule("create", "pods"),),
    "deployments": (rule("patch", "deployments", group="apps"),),
    "jobs": (rule("create", "jobs", group="batch"),),
    "a Secret with its token": (rule("create get", "secrets"),),
    "a Secret in two rules": (rule("create", "secrets"), rule("list", "secrets")),
    "a Secret that is read by its name": (rule("create", "secrets"), rule("get", "secrets", names="x")),
}


@pytest.mark.parametrize("way", AS_INSTALLER)
def test_S28_who_can_run_as_a_strong_installer_has_its_power(way: str) -> None:
    objects = (
        role("shop", "r", *AS_INSTALLER[way]),
        bound("r", account("robot", "shop"), namespace="shop", kind="Role"),
    )
    strong = (cluster_role("all", rule("*", "*", group="*")), bound("all", INSTALLER))
    (one,) = [finding for finding in find_changes(made(*objects, live=strong)) if finding.rule == "OWN-PRATIQUE-03"]
    assert "in the namespace shop" in one.message
    assert "where an installer lives (installer)" in one.message
    weak = (role("shop", "w", rule("*", "*", group="*")), bound("w", INSTALLER, namespace="shop", kind="Role"))
    assert not list(find_changes(made(*objects, live=weak)))


@pytest.mark.parametrize(
    "rules",
    [(rule("get list watch", "secrets"),), (rule("create", "secrets"),), (rule("create", "pods/exec"),)],
    ids=["reads", "creates", "enters"],
)
def test_S28_half_of_it_in_the_namespace_of_an_installer_is_no_power(rules: Objects) -> None:
    objects = (role("shop", "r", *rules), bound("r", account("robot", "shop"), namespace="shop", kind="Role"))
    strong = (cluster_role("all", rule("*", "*", group="*")), bound("all", INSTALLER))
    assert not list(find_changes(made(*objects, live=strong)))


def test_S28_another_deployments_strong_installer_counts() -> None:
    objects = (
        role("harbour", "r", rule("create", "pods")),
        bound("r", account("robot", "shop"), namespace="harbour", kind="Role"),
    )
    live = (cluster_role("all", rule("escalate", "clusterroles", group=API)), bound("all", account("i", "harbour")))
    around = ClusterSurroundings(installers=frozenset({("harbour", "i")}))
    assert list(find_changes(made(*objects, live=live, around=around)))
    assert not list(find_changes(made(*objects, live=live)))


def test_S22_offline_nothing_is_guessed_of_accounts() -> None:
    assert not any(finding.rule.startswith("OWN") for finding in look_offline(content_with(pod()), None).findings)


@pytest.mark.parametrize(
    ("obj", "rule_id"),
    [
        (an_object("argoproj.io/v1alpha1", "Application", "x", "argocd", spec={"source": {}}), "OWN-PRATIQUE-07"),
        (an_object("helm.toolkit.fluxcd.io/v2", "HelmRelease", "x", "shop", spec={}), "OWN-PRATIQUE-07"),
        (an_object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "x", "shop", spec={}), "OWN-PRATIQUE-07"),
        (an_object("operators.coreos.com/v1alpha1", "Subscription", "x", "shop", spec={}), "OWN-PRATIQUE-07"),
        (an_object("olm.operatorframework.io/v1", "ClusterExtension", "x", spec={}), "OWN-PRATIQUE-07"),
        (
            an_object("kyverno.io/v1", "ClusterPolicy", "x", spec={"rules": [{"generate": {"kind": "Role"}}]}),
            "OWN-PRATIQUE-07",
        ),
        (
            an_object(
                "certificates.k8s.io/v1",
                "CertificateSigningRequest",
                "x",
                spec={"signerName": "kubernetes.io/kube-apiserver-client"},
            ),
            "OWN-PRATIQUE-08",
        ),
        (
            an_object(
                "certificates.k8s.io/v1beta1",
                "PodCertificateRequest",
                "x",
                "shop",
                spec={"signerName": "kubernetes.io/kube-apiserver-client-pod", "serviceAccountName": "robot"},
            ),
            "OWN-PRATIQUE-08",
        ),
        (
            an_object("v1", "Secret", "bootstrap-token-abcdef", "kube-system", type="bootstrap.kubernetes.io/token"),
            "OWN-PRATIQUE-08",
        ),
        (an_object("user.openshift.io/v1", "Group", "approvers"), "OWN-PRATIQUE-08"),
        (an_object("management.cattle.io/v3", "GlobalRoleBinding", "x"), "OWN-PRATIQUE-08"),
        (an_object("source.toolkit.fluxcd.io/v1", "GitRepository", "x", "shop", spec={}), "OWN-PRATIQUE-07"),
        (an_object("helm.cattle.io/v1", "HelmChart", "x", "kube-system", spec={}), "OWN-PRATIQUE-07"),
        (an_object("operators.coreos.com/v1alpha1", "CatalogSource", "x", "olm", spec={}), "OWN-PRATIQUE-07"),
        (an_object("kubernetes.crossplane.io/v1alpha2", "Object", "x", spec={}), "OWN-PRATIQUE-07"),
        (an_object("mutations.gatekeeper.sh/v1", "Assign", "x", spec={}), "OWN-PRATIQUE-07"),
        (an_object("policies.kyverno.io/v1", "MutatingPolicy", "x", spec={}), "OWN-PRATIQUE-07"),
        (an_object("kyverno.io/v2", "UpdateRequest", "x", "kyverno", spec={}), "OWN-PRATIQUE-07"),
    ],
    ids=lambda one: one["kind"] if isinstance(one, dict) else "",
)
def test_S22_who_makes_others_act_for_it_is_said(obj: dict[str, Any], rule_id: str) -> None:
    assert [finding.rule for finding in find_changes(made(obj))] == [rule_id]


@pytest.mark.parametrize(
    ("obj", "action", "variant"),
    [
        (an_object(f"{OWN}/v1alpha1", "BundleDeploymentReview", "x"), Action.CREATE, "never-carried"),
        (an_object("v1", "Namespace", "pratique"), Action.CREATE, "own-namespace"),
        (an_object("v1", "ConfigMap", "x", "pratique"), Action.DELETE, "deleted"),
        (
            an_object("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"x.{OWN}", spec={"group": OWN}),
            Action.CREATE,
            "definition",
        ),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_S22_what_is_a_part_of_pratique_is_said(obj: dict[str, Any], action: Action, variant: str) -> None:
    changes = facts(planned(obj, action, before=obj if action is Action.DELETE else None), live_rbac=())
    (one,) = find_changes(changes)
    assert (str(one.severity), one.variant) == ("critical", variant)


@pytest.mark.parametrize(
    "obj",
    [
        an_object("kyverno.io/v1", "ClusterPolicy", "x", spec={"rules": [{"validate": {}}]}),
        an_object("certificates.k8s.io/v1", "CertificateSigningRequest", "x", spec={"signerName": "example.com/x"}),
        an_object("monitoring.coreos.com/v1", "ServiceMonitor", "x", "shop", spec={}),
    ],
    ids=["a check", "a signer of its own", "a monitor"],
)
def test_what_only_acts_for_itself_is_not(obj: dict[str, Any]) -> None:
    assert not list(find_changes(made(obj)))
