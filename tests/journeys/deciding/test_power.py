"""Content that hands out power over Pratique: a policy that says `true` leaves it to people, however it is granted."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from approvals.chat import deliveries
from approvals.models import BundleDeployment, ChatAccount, ChatDelivery, Policy, PolicyEvaluation, Request
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import SEEDER, DeployedSite, prepare_namespace
from tests.support.provisioner.roles import API, rule
from tests.support.servers.registry import Registry

OWN, IDENTITY = "core.rukpak.io", "authentication.k8s.io"
ATTACKS = {
    "impersonates a user by name": [rule("impersonate", "users", names="alice")],
    "impersonates a group by name": [rule("impersonate", "groups", names="platform")],
    "impersonates uids": [rule("impersonate", "uids", group=IDENTITY)],
    "impersonates userextras": [rule("impersonate", "userextras/scopes", group=IDENTITY)],
    "impersonates a user, constrained": [
        rule("impersonate:user-info", "users", group=IDENTITY, names="alice"),
        rule("impersonate-on:user-info:create", "bundledeployments", group=OWN),
    ],
    "impersonates accounts, constrained": [rule("impersonate:serviceaccount", "serviceaccounts", group=IDENTITY)],
    "the request half alone, on our objects": [rule("impersonate-on:user-info:patch", "bundledeployments", group=OWN)],
    "tokens of accounts": [rule("create", "serviceaccounts/token", names="pratique")],
    "tokens by a wildcard": [rule("create", "*/token")],
    "writes cluster role bindings": [rule("create", "clusterrolebindings", group=API)],
    "writes roles": [rule("patch", "roles", group=API)],
    "forges the status of requests": [rule("patch", "bundledeploymentrequests/status", group=OWN)],
    "forges every status": [rule("patch", "*/status", group="*")],
    "reads every Secret": [rule("get", "secrets")],
    "runs pods everywhere": [rule("create", "pods")],
}
FIRST = ("impersonates a user, constrained", "tokens by a wildcard", "forges every status")
Rules = list[dict[str, Any]]


def objects(site: DeployedSite, rules: Rules, *, namespace: str = "") -> list[dict[str, Any]]:
    """A role with these rules and its binding to an account of the bundle: for the cluster, or for one namespace."""
    name = f"{site.namespace}-robot"
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    kind = "Role" if namespace else "ClusterRole"
    return [
        {"apiVersion": f"{API}/v1", "kind": kind, "metadata": meta, "rules": rules},
        bound(site, kind, name, namespace=namespace),
    ]


def bound(site: DeployedSite, kind: str, role: str, *, namespace: str = "") -> dict[str, Any]:
    meta = {"name": f"{site.namespace}-robot", **({"namespace": namespace} if namespace else {})}
    return {
        "apiVersion": f"{API}/v1",
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": meta,
        "roleRef": {"apiGroup": API, "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": site.namespace}],
    }


def asked(site: DeployedSite, registry: Registry, *made: dict[str, Any]) -> BundleDeployment:
    """A deployment of these objects on the desk of a policy that approves everything it may."""
    policy = site.save_policy("grant", "true")
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    files = bundles.manifests(account, *made)
    name = f"{site.namespace}-robot"
    site.let_approve(f"pratique:policy:{policy.pk}", name)
    return site.prepare(name, bundles.image(registry, name, files))


def words(request: Request) -> str:
    found = PolicyEvaluation.objects.get(request=request, policy=Policy.objects.get(name="always"))
    return str(found.words)


def press(site: DeployedSite, request: Request) -> str:
    """Alice presses Approve in a chat; what she is told."""
    alice, now = site.people["alice"], timezone.now()
    alice.last_login = now  # a chat counts for as long as the sign-in behind it
    alice.save()
    account = ChatAccount.objects.create(tool="slack", tenant="T", account="UALICE", user=alice, linked_at=now)
    account.identities.set(alice.kubernetes_identities.all())
    wish = {
        "tool": "slack",
        "tenant": account.tenant,
        "account": account.account,
        "name": "alice",
        "request_uid": str(request.uid),
        "decision": "Approve",
        "subject_digest": request.subject_digest,
        "reason": "",
    }
    row = ChatDelivery.objects.create(tool="slack", key="k", wish=wish, received_at=timezone.now())
    deliveries.act(row.pk)
    row.refresh_from_db()
    return str(row.words)


# The policy that docs/operating/policies.md shows for upgrades.
ROUTINE = 'worst_new in ["safe", "notable"] && !("RB-DIFF" in new_rules) && actions["delete"] == 0'


@pytest.mark.proof
def test_S22_a_grant_goes_by_what_is_new_since_people_approved_where_it_says_so(
    site: DeployedSite, registry: Registry
) -> None:
    """The roles of an operator carry its version, as OLM names them, and let it read every Secret."""
    name = f"{site.namespace}-robot"
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}

    def ask(version: int, rules: Rules) -> Request:
        made = [account, *objects(site, rules)]
        for one in made[1:]:
            one["metadata"]["name"] = f"{name}.v{version}"
        made[2]["roleRef"]["name"] = f"{name}.v{version}"
        files = bundles.manifests(*made)
        deployment = site.prepare(name, bundles.image(registry, f"{name}-{version}", files))
        return site.latest(deployment)

    policy = site.save_policy("grant", ROUTINE, name="routine")
    site.let_approve(f"pratique:policy:{policy.pk}", name)
    secrets = [rule("get", "secrets")]
    first = ask(1, secrets)
    assert first.state == "in_review"
    assert site.approve(first.deployment).state == "applied"
    second = ask(2, secrets)
    assert (second.state, second.reports.get().actions["delete"]) == ("in_review", 0)
    held = second.evaluations.get().words
    assert f"OWN-PRATIQUE-03 (critical) of ServiceAccount {site.namespace}/robot" in held
    site.save_policy("grant", ROUTINE, name="routine", allows_known_powers=True)
    site.work()
    assert site.latest(first.deployment).state == "applied", list(second.evaluations.values_list("words", flat=True))
    assert [one.policy_id for one in second.reviews.all()] == [policy.pk]
    third = ask(3, secrets)
    assert third.state == "applied", "what a grant approved was approved by people before it"
    fourth = ask(4, [*secrets, rule("impersonate", "users")])
    assert fourth.state == "in_review"
    assert "OWN-PRATIQUE-03 (critical)" in fourth.evaluations.get().words or "delete" in fourth.evaluations.get().words
    fifth = ask(3, [*secrets, rule("get", "configmaps")])
    assert fifth.state == "in_review", "a right that is no power is a right"
    assert f"new is RB-DIFF (notable) of ServiceAccount {site.namespace}/robot" in fifth.evaluations.get().words


def stays_for_people(site: DeployedSite, deployment: BundleDeployment) -> Request:
    request = site.latest(deployment)
    assert request.state == "in_review", request.problem
    assert "affects Pratique" in words(request)
    assert "cannot be approved without seeing its report" in press(site, request)
    assert not request.reviews.exists()
    return request


# What is power stands in a table of tests/provisioner/rbac/test_power.py.
@pytest.mark.parametrize(
    "attack", [pytest.param(name, marks=() if name in FIRST else pytest.mark.thorough) for name in ATTACKS]
)
def test_S28_neither_a_policy_nor_a_chat_approves_power_over_pratique(
    site: DeployedSite, registry: Registry, attack: str
) -> None:
    stays_for_people(site, asked(site, registry, *objects(site, ATTACKS[attack])))


@pytest.mark.proof
def test_S28_neither_a_policy_nor_a_chat_approves_a_binding_of_edit_over_everything(
    site: DeployedSite, registry: Registry
) -> None:
    stays_for_people(site, asked(site, registry, bound(site, "ClusterRole", "edit")))


def test_S28_nor_a_label_that_puts_a_right_into_a_role_that_others_hold(site: DeployedSite, registry: Registry) -> None:
    role = objects(site, [rule("approve", "bundledeployments", group=OWN)])[0]
    role["metadata"]["labels"] = {f"{API}/aggregate-to-edit": "true"}
    stays_for_people(site, asked(site, registry, role))


def test_S28_nor_tokens_of_the_installer_where_it_lives(site: DeployedSite, registry: Registry) -> None:
    tokens = [rule("create", "serviceaccounts/token", names="installer")]
    stays_for_people(site, asked(site, registry, *objects(site, tokens, namespace=site.namespace)))


def test_S28_nor_tokens_of_the_installer_of_another_deployment(site: DeployedSite, registry: Registry) -> None:
    other = f"{site.namespace}-other"
    prepare_namespace(site.api, other)
    site.submit_spec(
        f"{site.namespace}-first", {"kind": "http", "http": {"url": "https://x.example"}}, installNamespace=other
    )
    tokens = [rule("create", "serviceaccounts/token", names="installer")]
    stays_for_people(site, asked(site, registry, *objects(site, tokens, namespace=other)))


def test_S22_the_operator_says_where_pratique_runs(site: DeployedSite, registry: Registry, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "NAMESPACE": site.namespace}
    stays_for_people(site, asked(site, registry))


def test_S22_a_person_approves_what_a_policy_may_not(site: DeployedSite, registry: Registry) -> None:
    deployment = asked(site, registry, *objects(site, ATTACKS["impersonates a user by name"]))
    stays_for_people(site, deployment)
    assert site.approve(deployment).state == "applied"


ORDINARY = [rule("create update", "roles rolebindings", group=API), rule("get create", "secrets pods")]


def test_S22_a_policy_approves_rights_that_reach_nothing_of_pratique(site: DeployedSite, registry: Registry) -> None:
    other = f"{site.namespace}-quiet"
    prepare_namespace(site.api, other)
    deployment = asked(site, registry, *objects(site, ORDINARY, namespace=other))
    request = site.latest(deployment)
    assert (request.state, words(request)) == ("applied", "`true` is true")


def test_S28_nor_pods_where_an_installer_lives_that_may_do_everything(site: DeployedSite, registry: Registry) -> None:
    stays_for_people(site, asked(site, registry, *objects(site, ORDINARY, namespace=site.namespace)))


def workload(kind: str, namespace: str) -> dict[str, Any]:
    labels = {"app": "robot"}
    container = {"name": "main", "image": "registry.example.com/robot:1"}
    pod: dict[str, Any] = {"serviceAccountName": "installer", "containers": [container]}
    meta = {"name": "robot", "namespace": namespace}
    template = {"metadata": {"labels": labels}, "spec": pod}
    made: dict[str, dict[str, Any]] = {
        "Pod": {"apiVersion": "v1", "spec": pod},
        "Deployment": {"apiVersion": "apps/v1", "spec": {"selector": {"matchLabels": labels}, "template": template}},
        "Job": {"apiVersion": "batch/v1", "spec": {"template": {"spec": {**pod, "restartPolicy": "Never"}}}},
    }
    return {"kind": kind, "metadata": meta, **made[kind]}


@pytest.mark.parametrize(
    "kind", ["Pod", *(pytest.param(kind, marks=pytest.mark.thorough) for kind in ("Deployment", "Job"))]
)
def test_S22_nor_what_runs_as_an_account_that_is_strong_in_the_cluster(
    site: DeployedSite, registry: Registry, kind: str
) -> None:
    """An account of somebody else that nothing but a binding of the cluster makes strong, as that of Argo CD."""
    other = f"{site.namespace}-argocd"
    prepare_namespace(site.api, other)
    request = stays_for_people(site, asked(site, registry, workload(kind, other)))
    found = request.reports.get().findings.get(rule="OWN-PRATIQUE-05")
    assert found.severity == "critical"


def test_S22_nor_a_webhook_that_changes_our_pods(site: DeployedSite, registry: Registry) -> None:
    hook = {
        "name": "pods.robot.example.com",
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {"name": "robot", "namespace": site.namespace}},
        "namespaceSelector": {"matchLabels": {"pod-security.kubernetes.io/enforce": "restricted"}},
    }
    about = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}
    made = {**about, "metadata": {"name": f"{site.namespace}-robot"}, "webhooks": [hook]}
    home = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "pratique", "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
    }
    site.api.apply(home, field_manager=SEEDER)
    stays_for_people(site, asked(site, registry, made))
