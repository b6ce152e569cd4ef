"""Which rights are power over Pratique: by name, by wildcard, by subresource; and which reach nothing of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from provisioner.rbac import BypassPower, Means, Ours, PolicyRule, PowerJudge, RbacObjects, power
from tests.support.provisioner.roles import API, cluster_role, rule

OURS = Ours("pratique", frozenset({("shop", "installer")}))
OWN, IDENTITY, ADMISSION = "core.rukpak.io", "authentication.k8s.io", "admissionregistration.k8s.io"
CERTIFICATES, CRDS, SERVICES = "certificates.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io"


def powers(entry: dict[str, Any], scope: str = "", *known: dict[str, Any]) -> list[BypassPower]:
    return PowerJudge(OURS, RbacObjects.of(known)).powers([(PolicyRule.from_object(entry), scope)])


def means(entry: dict[str, Any], scope: str = "", *known: dict[str, Any]) -> set[Means]:
    return {one.means for one in powers(entry, scope, *known)}


CLUSTER_WIDE = {
    "everything": (rule("*", "*", group="*"), Means.EVERYTHING),
    "approve by name": (rule("approve", "bundledeployments", group=OWN, names="shop"), Means.DECIDE),
    "decide for others": (rule("submit-review-for", "bundledeploymentrequests", group=OWN), Means.DECIDE),
    "a verb of ours that is still to come": (rule("bless", "bundledeployments", group=OWN), Means.FORGE),
    "reviews": (rule("create", "bundledeploymentreviews", group=OWN), Means.DECIDE),
    "our status": (rule("patch", "bundledeploymentrequests/status", group=OWN), Means.FORGE),
    "every status": (rule("update", "*/status", group="*"), Means.FORGE),
    "every finalizer": (rule("update", "*/finalizers", group="*"), Means.FORGE),
    "our objects by every group": (rule("delete", "bundledeployments", group="*"), Means.FORGE),
    "one user by name": (rule("impersonate", "users", names="zoe"), Means.BE_ANOTHER),
    "one group by name": (rule("impersonate", "groups", names="platform"), Means.BE_ANOTHER),
    "every verb on users": (rule("*", "users"), Means.BE_ANOTHER),
    "uids": (rule("impersonate", "uids", group=IDENTITY), Means.BE_ANOTHER),
    "userextras": (rule("impersonate", "userextras", group=IDENTITY), Means.BE_ANOTHER),
    "one extra": (rule("impersonate", "userextras/scopes", group=IDENTITY, names="x"), Means.BE_ANOTHER),
    "constrained: a user": (rule("impersonate:user-info", "users", group=IDENTITY, names="zoe"), Means.BE_ANOTHER),
    "constrained: a group": (rule("impersonate:user-info", "groups", group=IDENTITY), Means.BE_ANOTHER),
    "constrained: a uid": (rule("impersonate:user-info", "uids", group=IDENTITY), Means.BE_ANOTHER),
    "constrained: an extra": (rule("impersonate:user-info", "userextras/a", group=IDENTITY), Means.BE_ANOTHER),
    "constrained: an account": (
        rule("impersonate:serviceaccount", "serviceaccounts", group=IDENTITY),
        Means.BE_ANOTHER,
    ),
    "constrained: a node": (rule("impersonate:arbitrary-node", "nodes", group=IDENTITY), Means.BE_ANOTHER),
    "constrained: its own node": (rule("impersonate:associated-node", "nodes", group=IDENTITY), Means.BE_ANOTHER),
    "constrained: a mode to come": (rule("impersonate:robot", "users", group=IDENTITY), Means.BE_ANOTHER),
    "constrained: every verb": (rule("*", "groups", group=IDENTITY), Means.BE_ANOTHER),
    "constrained: a request about ours": (
        rule("impersonate-on:user-info:approve", "bundledeployments", group=OWN),
        Means.BE_ANOTHER,
    ),
    "constrained: a request about identities": (rule("impersonate-on:user-info:get", "users"), Means.BE_ANOTHER),
    "any account": (rule("impersonate", "serviceaccounts"), Means.BE_ANOTHER),
    "tokens": (rule("create", "serviceaccounts/token"), Means.BE_ANOTHER),
    "tokens by the subresource": (rule("create", "*/token"), Means.BE_ANOTHER),
    "tokens by name": (rule("create", "serviceaccounts/token", names="worker"), Means.BE_ANOTHER),
    "every subresource of everything": (rule("create", "*", group=""), Means.BE_ANOTHER),
    "Secrets": (rule("list", "secrets"), Means.BE_ANOTHER),
    "Secrets by name": (rule("get", "secrets", names="database"), Means.BE_ANOTHER),
    "Secrets are made": (rule("create", "secrets"), Means.FORGE),
    "pods": (rule("create", "pods"), Means.BE_ANOTHER),
    "workloads": (rule("patch", "deployments", group="apps"), Means.BE_ANOTHER),
    "jobs": (rule("create", "cronjobs", group="batch"), Means.BE_ANOTHER),
    "exec": (rule("get", "pods/exec"), Means.BE_ANOTHER),
    "exec by the subresource": (rule("create", "*/exec"), Means.BE_ANOTHER),
    "debug containers": (rule("patch", "pods/ephemeralcontainers"), Means.BE_ANOTHER),
    "the kubelet": (rule("get", "nodes/proxy"), Means.BE_ANOTHER),
    "certificates of clients": (
        rule("sign", "signers", group=CERTIFICATES, names="kubernetes.io/kube-apiserver-client"),
        Means.BE_ANOTHER,
    ),
    "certificates of nodes": (
        rule("create", "certificatesigningrequests/nodeclient", group=CERTIFICATES),
        Means.BE_ANOTHER,
    ),
    "certificates of pods": (rule("create", "podcertificaterequests", group=CERTIFICATES), Means.BE_ANOTHER),
    "where another deployer gets it from": (
        rule("patch", "gitrepositories", group="source.toolkit.fluxcd.io"),
        Means.BE_ANOTHER,
    ),
    "mutations by Gatekeeper": (rule("create", "assign", group="mutations.gatekeeper.sh"), Means.BE_ANOTHER),
    "groups of OpenShift": (rule("update", "groups", group="user.openshift.io"), Means.CHANGE_RIGHTS),
    "role bindings of Rancher": (
        rule("create", "globalrolebindings", group="management.cattle.io"),
        Means.CHANGE_RIGHTS,
    ),
    "cluster role bindings": (rule("create", "clusterrolebindings", group=API), Means.CHANGE_RIGHTS),
    "cluster roles": (rule("patch", "clusterroles", group=API), Means.CHANGE_RIGHTS),
    "roles everywhere": (rule("update", "roles", group=API), Means.CHANGE_RIGHTS),
    "cluster-admin by name": (rule("patch", "clusterroles", group=API, names="cluster-admin"), Means.CHANGE_RIGHTS),
    "a binding of ours by name": (
        rule("delete", "clusterrolebindings", group=API, names="pratique"),
        Means.CHANGE_RIGHTS,
    ),
    "bind": (rule("bind", "clusterroles", group=API), Means.CHANGE_RIGHTS),
    "escalate by name": (rule("escalate", "clusterroles", group=API, names="mine"), Means.CHANGE_RIGHTS),
    "mutating webhooks": (rule("patch", "mutatingwebhookconfigurations", group=ADMISSION, names="mine"), Means.FORGE),
    "admission policies": (rule("create", "validatingadmissionpolicies", group=ADMISSION), Means.FORGE),
    "definitions": (rule("update", "customresourcedefinitions", group=CRDS), Means.FORGE),
    "a definition of ours": (
        rule("delete", "customresourcedefinitions", group=CRDS, names="bundledeployments.core.rukpak.io"),
        Means.FORGE,
    ),
    "API services": (rule("create", "apiservices", group=SERVICES), Means.FORGE),
    "the API service of RBAC": (rule("patch", "apiservices", group=SERVICES, names=f"v1.{API}"), Means.FORGE),
    "namespaces": (rule("delete", "namespaces"), Means.FORGE),
    "our services": (rule("patch", "services"), Means.FORGE),
    "our pods are deleted": (rule("delete", "pods"), Means.DESTROY),
    "our pods are evicted": (rule("create", "pods/eviction"), Means.DESTROY),
}


@pytest.mark.parametrize("case", CLUSTER_WIDE)
def test_S28_power_is_counted_however_it_is_granted(case: str) -> None:
    entry, wanted = CLUSTER_WIDE[case]
    assert wanted in means(entry)


@pytest.mark.parametrize("place", ["pratique", "kube-system"])
@pytest.mark.parametrize(
    "entry",
    [
        rule("get", "secrets", names="x"),
        rule("create", "pods"),
        rule("create", "serviceaccounts/token", names="worker"),
        rule("create", "rolebindings", group=API),
        rule("impersonate", "serviceaccounts", names="worker"),
        rule("bind", "clusterroles", group=API),
        rule("patch", "services"),
        rule("create", "podcertificaterequests", group=CERTIFICATES),
        rule("create", "httproutes", group="gateway.networking.k8s.io"),
    ],
    ids=str,
)
def test_S28_a_role_in_a_namespace_of_ours_is_power(entry: dict[str, Any], place: str) -> None:
    assert means(entry, place)


@pytest.mark.parametrize(
    "entry",
    [
        rule("impersonate", "serviceaccounts", names="installer"),
        rule("impersonate:serviceaccount", "serviceaccounts", group=IDENTITY, names="installer"),
        rule("create", "serviceaccounts/token", names="installer other"),
        rule("*", "serviceaccounts"),
        rule("escalate", "roles", group=API),
        rule("bind", "clusterroles", group=API, names="cluster-admin"),
    ],
    ids=str,
)
def test_S28_who_can_be_an_installer_where_it_lives_has_power(entry: dict[str, Any]) -> None:
    assert means(entry, "shop")
    assert powers(entry, "shop")[0].installers is not None
    assert not means(entry, "elsewhere")


@pytest.mark.parametrize(
    ("entry", "scope"),
    [
        (rule("get list watch", "bundledeployments bundledeploymentrequests", group=OWN), ""),
        (rule("*", "kafkas kafkas/status kafkas/finalizers", group="kafka.strimzi.io"), ""),
        (rule("update", "deployments/status deployments/finalizers", group="apps"), ""),
        (rule("create patch", "events"), ""),
        (rule("get list watch", "pods nodes namespaces configmaps services"), ""),
        (rule("create", "tokenreviews", group=IDENTITY), ""),
        (rule("create", "namespaces"), ""),
        (rule("patch", "customresourcedefinitions", group=CRDS, names="kafkas.kafka.strimzi.io"), ""),
        (rule("patch", "apiservices", group=SERVICES, names="v1.metrics.example.com"), ""),
        (rule("patch", "clusterroles", group=API, names="strimzi"), ""),
        (rule("approve", "signers", group=CERTIFICATES, names="example.com/own"), ""),
        (rule("create", "certificatesigningrequests", group=CERTIFICATES), ""),
        (rule("create", "podcertificaterequests", group=CERTIFICATES), "elsewhere"),
        (rule("create", "pods", names="x"), ""),
        (rule("*", "roles rolebindings", group=API), "elsewhere"),
        (rule("*", "secrets pods pods/exec serviceaccounts"), "elsewhere"),
        (rule("create update", "roles rolebindings", group=API), "shop"),
        (rule("*", "secrets pods configmaps"), "shop"),
        (rule("impersonate", "serviceaccounts", names="other"), "shop"),
        (rule("impersonate", "users"), "shop"),
        (rule("approve", "bundledeployments", group=OWN), "shop"),
    ],
    ids=str,
)
def test_what_reaches_nothing_of_pratique_is_no_power(entry: dict[str, Any], scope: str) -> None:
    assert not means(entry, scope)


def test_S28_a_role_that_may_be_bound_by_name_is_judged_by_what_it_grants() -> None:
    binds = rule("bind", "clusterroles", group=API, names="target")
    assert not means(binds, "", cluster_role("target", rule("get", "pods")))
    assert means(binds, "", cluster_role("target", rule("get", "secrets")))
    assert means(rule("bind", "clusterroles", group=API, names="edit"), "")
    assert means(binds, "", cluster_role("target", rules=[{"verbs": "get"}]))


def test_a_role_that_may_bind_itself_is_judged_once() -> None:
    binds = rule("bind", "clusterroles", group=API, names="target")
    assert not means(binds, "", cluster_role("target", binds))


def test_what_is_limited_to_names_says_so() -> None:
    (found,) = powers(rule("get", "secrets", names="a b c d"))
    assert (found.what, found.place, found.names) == ("read-secrets", "pratique", ("a", "b", "c", "d"))


def test_a_rule_that_many_accounts_hold_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[PolicyRule] = []
    of_rule = power._find_powers_of_rule

    def counted(rule: PolicyRule, at: Any) -> Iterator[BypassPower]:
        judged.append(rule)
        return of_rule(rule, at)

    monkeypatch.setattr(power, "_find_powers_of_rule", counted)
    rules = [PolicyRule.from_object(rule("get", f"secrets{number}")) for number in range(50)]
    judge = PowerJudge(OURS, RbacObjects())
    for _ in range(20):
        judge.powers((one, "") for one in rules)
    assert judged == rules
