"""Whom a bundle gives power over Pratique, and what the finding says of it."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.pipeline import look_offline
from provisioner.review.base.facts import ClusterSurroundings, Facts
from provisioner.review.checks.own.power import ADVICE
from provisioner.values import Action, Finding
from tests.provisioner.review.checks.own.findings import find_changes, find_standing
from tests.support.provisioner.contents import an_object, content_with, facts, planned
from tests.support.provisioner.roles import API, account, bound, cluster_role, role, rule, user

SECRETS = rule("get", "secrets")


def found(given: Facts) -> list[Finding]:
    return [finding for finding in find_changes(given) if finding.rule == "OWN-PRATIQUE-03"]


def made(*objects: dict[str, Any], live: tuple[dict[str, Any], ...] = (), **rest: Any) -> Facts:
    actions = [planned(one, Action.CREATE) for one in objects]
    return facts(*actions, live_rbac=live, **rest)


def test_S22_it_is_one_sentence_for_each_who_gets_it() -> None:
    rules = [SECRETS, rule("create", "pods"), rule("impersonate", "users"), rule("patch", "services")]
    (one,) = found(made(cluster_role("r", *rules), bound("r", account("robot", "shop"))))
    assert str(one.ref) == "ServiceAccount shop/robot"
    assert one.message == (
        "`shop/robot` can now bypass the approvals of Pratique: act as other users or groups (impersonate); "
        "read the Secrets in the namespace pratique; run programs in the namespace pratique as its accounts; "
        "change Secrets, services and settings in the namespace pratique"
    )
    assert "Limit these rights" in one.evidence[ADVICE]


def test_what_only_destroys_weighs_less() -> None:
    (one,) = found(made(cluster_role("r", rule("delete", "pods")), bound("r", account("robot", "shop"))))
    assert one.severity == "dangerous"


def test_S22_a_role_that_nothing_binds_yet_is_judged_as_if_it_were_bound() -> None:
    (one,) = found(made(cluster_role("r", SECRETS)))
    assert one.message.startswith(
        "ClusterRole r lets whoever is bound to it bypass the approvals of Pratique: read the Secrets"
    )
    assert not found(made(role("shop", "r", SECRETS)))
    assert found(made(role("pratique", "r", SECRETS)))


def test_S22_a_role_bound_in_a_namespace_of_others_is_judged_there() -> None:
    assert not found(made(cluster_role("r", SECRETS), bound("r", account("robot", "shop"), namespace="shop")))


def test_S28_a_role_that_others_collect_is_judged_as_if_it_were_bound_everywhere() -> None:
    labelled = cluster_role("r", SECRETS, labels={f"{API}/aggregate-to-edit": "true"})
    assert found(made(labelled, bound("r", account("robot", "shop"), namespace="shop")))
    collecting = cluster_role("all", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"mine": "yes"}}]})
    mine = cluster_role("r", SECRETS, labels={"mine": "yes"})
    bindings = (bound("r", account("robot", "shop"), namespace="shop"), bound("all", user("zoe")))
    assert {str(finding.ref) for finding in found(made(mine, bindings[0], live=(collecting, bindings[1])))} == {
        f"User.{API} zoe",
        f"ClusterRole.{API} r",
    }


def collecting(name: str, label: str, **labels: str) -> dict[str, Any]:
    selectors = {"clusterRoleSelectors": [{"matchLabels": {label: "yes"}}]}
    return cluster_role(name, aggregationRule=selectors, labels=labels)


@pytest.mark.parametrize(
    ("objects", "told"),
    [
        pytest.param((collecting("all", "mine"), bound("all", account("robot", "shop"))), set(), id="bound"),
        pytest.param((collecting("all", "mine"),), {"all", "part"}, id="collected by a role that nothing binds"),
        pytest.param(
            (collecting("all", "mine", mine="yes"), bound("all", account("robot", "shop"))), set(), id="collects itself"
        ),
        pytest.param(
            (
                collecting("all", "mine", other="yes"),
                collecting("wide", "other"),
                bound("wide", account("robot", "shop")),
            ),
            set(),
            id="collected twice over",
        ),
        pytest.param(
            (
                collecting("all", "mine", other="yes"),
                collecting("wide", "other"),
                bound("all", account("robot", "shop")),
            ),
            {"all", "part", "wide"},
            id="collected by two, one of which nothing binds",
        ),
        pytest.param(
            (collecting("all", "mine", other="yes"), collecting("wide", "other", mine="yes")), None, id="round"
        ),
    ],
)
def test_S28_a_role_of_the_bundle_that_bound_ones_collect_is_told_with_their_accounts(
    objects: tuple[dict[str, Any], ...], told: set[str] | None
) -> None:
    part = cluster_role("part", SECRETS, labels={"mine": "yes"})
    refs = [finding.ref for finding in found(made(part, *objects)) if finding.ref]
    roles = {one.name for one in refs if one.kind == "ClusterRole"}
    assert roles == told if told is not None else "part" in roles
    assert any(one.kind == "ServiceAccount" for one in refs) == any(one["kind"].endswith("Binding") for one in objects)


def test_S22_a_role_that_collects_every_role_is_power() -> None:
    (one,) = found(made(cluster_role("r", aggregationRule={"clusterRoleSelectors": [{}]})))
    assert "every ClusterRole" in one.message


def test_S28_a_role_that_cannot_be_read_is_unknown() -> None:
    broken = {**cluster_role("r"), "rules": [{"verbs": "get"}]}
    (one,) = find_changes(made(broken))
    assert (one.rule, one.severity) == ("RB-00", "unknown")


@pytest.mark.parametrize("name", ["edit", "admin", "cluster-admin", "pratique-approver"])
def test_S28_a_role_of_the_cluster_is_judged_by_its_name_where_nobody_could_read_it(name: str) -> None:
    bindings = (bound(name, account("robot", "shop")), bound(name, account("robot"), namespace="pratique"))
    for each in bindings:
        report = look_offline(content_with(each), None)
        assert any(finding.rule == "OWN-PRATIQUE-03" for finding in report.findings)
    elsewhere = look_offline(content_with(bound(name, account("robot"), namespace="shop")), None)
    assert not any(finding.rule == "OWN-PRATIQUE-03" and finding.path == ("roleRef",) for finding in elsewhere.findings)


def test_S28_a_role_of_the_cluster_is_judged_by_what_it_grants() -> None:
    live = (cluster_role("strong", rule("create", "clusterrolebindings", group=API)),)
    assert found(made(bound("strong", account("robot", "shop")), live=live))
    assert not found(made(bound("strong", account("robot", "shop"), namespace="shop"), live=live))


def test_what_somebody_holds_by_the_roles_of_others_is_not_the_bundles() -> None:
    live = (cluster_role("strong", SECRETS), bound("strong", user("zoe")))
    assert not found(made(cluster_role("weak", rule("get", "pods")), bound("weak", user("zoe")), live=live))


def test_what_was_held_before_is_said_and_is_not_new() -> None:
    objects = (cluster_role("r", SECRETS), bound("r", account("robot", "shop")))
    (one,) = found(made(*objects, live=objects))
    assert (
        one.message == "`shop/robot` can bypass the approvals of Pratique: read the Secrets in the namespace pratique"
    )
    assert "Limit these rights" in one.evidence[ADVICE]
    assert not one.is_new


def test_S28_accounts_of_other_installers_count() -> None:
    objects = (
        role("harbour", "r", rule("create", "serviceaccounts/token", names="installer")),
        bound("r", account("robot", "shop"), namespace="harbour", kind="Role"),
    )
    assert not found(made(*objects))
    assert found(made(*objects, around=ClusterSurroundings(installers=frozenset({("harbour", "installer")}))))


def test_S28_another_namespace_of_ours_is_believed() -> None:
    objects = (role("fleet", "r", SECRETS), bound("r", account("robot"), namespace="fleet", kind="Role"))
    assert not found(made(*objects))
    assert found(made(*objects, around=ClusterSurroundings(own_namespace="fleet")))


@pytest.mark.parametrize(
    "subject",
    [
        account("worker", "pratique"),
        {"kind": "Group", "apiGroup": API, "name": "system:serviceaccounts:pratique"},
        {"kind": "User", "apiGroup": API, "name": "system:serviceaccount:pratique:worker"},
    ],
    ids=["account", "group", "user"],
)
def test_S22_rights_for_our_own_accounts_are_said_however_they_are_named(subject: dict[str, Any]) -> None:
    report = look_offline(content_with(cluster_role("r", rule("get", "pods")), bound("r", subject)), None)
    assert any(finding.rule == "OWN-PRATIQUE-04" for finding in report.findings)


@pytest.mark.parametrize(
    "made_as",
    [
        an_object("v1", "Pod", "x", "shop", spec={"serviceAccountName": "installer", "containers": []}),
        an_object(
            "apps/v1",
            "Deployment",
            "x",
            "shop",
            spec={"template": {"spec": {"serviceAccountName": "installer", "containers": []}}},
        ),
        {
            **an_object("v1", "Secret", "x", type="kubernetes.io/service-account-token"),
            "metadata": {
                "name": "x",
                "namespace": "shop",
                "annotations": {"kubernetes.io/service-account.name": "installer"},
            },
        },
    ],
    ids=["pod", "workload", "token"],
)
def test_S28_what_runs_as_the_installer_or_holds_its_token_is_for_people(made_as: dict[str, Any]) -> None:
    report = look_offline(content_with(made_as), None)
    assert any(finding.rule == "OWN-PRATIQUE-05" for finding in report.findings)


def test_an_account_of_the_bundles_own_runs_what_it_likes() -> None:
    pod = an_object("v1", "Pod", "x", "shop", spec={"serviceAccountName": "robot", "containers": []})
    assert not any(finding.rule.startswith("OWN") for finding in look_offline(content_with(pod), None).findings)


def standing(*objects: dict[str, Any]) -> list[Finding]:
    """What the objects themselves are, whatever rights they hand out."""
    facts = made(*objects)
    found = [*find_standing(facts.state()), *find_changes(facts)]
    return [
        finding for finding in found if finding.rule.startswith("OWN-PRATIQUE") and finding.rule != "OWN-PRATIQUE-03"
    ]


def webhook(kind: str, *rules: dict[str, Any], spares: list[str] | None = None) -> dict[str, Any]:
    hook: dict[str, Any] = {"name": "x.example.com", "rules": list(rules)}
    if spares:
        term = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": spares}
        hook["namespaceSelector"] = {"matchExpressions": [term]}
    about = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": f"{kind}WebhookConfiguration"}
    return {**about, "metadata": {"name": "x"}, "webhooks": [hook]}


def on(group: str, resource: str) -> dict[str, Any]:
    return {"apiGroups": [group], "apiVersions": ["*"], "operations": ["*"], "resources": [resource]}


def api_service(group: Any) -> dict[str, Any]:
    about = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": f"v1.{group}"}}
    return {**about, "spec": {"group": group, "version": "v1", "service": {"name": "x", "namespace": "shop"}}}


def pod(namespace: str, name: str) -> dict[str, Any]:
    spec = {"serviceAccountName": name, "containers": [{"name": "x", "image": "example.com/x"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": namespace}, "spec": spec}


def token(namespace: str, name: str) -> dict[str, Any]:
    meta = {"name": "x", "namespace": namespace, "annotations": {"kubernetes.io/service-account.name": name}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "kubernetes.io/service-account-token"}


def service_account(namespace: str, name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}


def config_map(name: str) -> dict[str, Any]:
    return an_object("v1", "ConfigMap", name, "kube-system")


def slice_of(service: str, namespace: str) -> dict[str, Any]:
    made = an_object("discovery.k8s.io/v1", "EndpointSlice", "x", namespace)
    made["metadata"]["labels"] = {"kubernetes.io/service-name": service}
    return made


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(webhook("Mutating", on("authorization.k8s.io", "subjectaccessreviews")), id="answers what we ask"),
        pytest.param(webhook("Validating", on("authentication.k8s.io", "tokenreviews")), id="reads tokens of sign-in"),
        pytest.param(webhook("Mutating", on("*", "tokenreviews")), id="reads them by a wildcard"),
        pytest.param(webhook("Mutating", on("rbac.authorization.k8s.io", "roles")), id="changes who may do what"),
        pytest.param(api_service("authorization.k8s.io"), id="is the API that we ask"),
        pytest.param(api_service("rbac.authorization.k8s.io"), id="is the API of rights"),
        pytest.param(pod("kube-system", "clusterrole-aggregation-controller"), id="runs as the control plane"),
        pytest.param(token("kube-system", "clusterrole-aggregation-controller"), id="holds a token of it"),
        pytest.param(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}, id="its namespace"
        ),
        pytest.param(
            webhook("Mutating", on("certificates.k8s.io", "certificatesigningrequests")), id="changes who is certified"
        ),
        pytest.param(config_map("aws-auth"), id="says who is an administrator"),
        pytest.param(config_map("extension-apiserver-authentication"), id="says which proxies are believed"),
        pytest.param(config_map("coredns"), id="says where names lead"),
        pytest.param(an_object("v1", "Service", "kube-dns", "kube-system"), id="is the service of names"),
        pytest.param(an_object("v1", "Endpoints", "kubernetes", "default"), id="is where the API server is"),
        pytest.param(slice_of("kubernetes", "default"), id="adds a server to the API server"),
    ],
)
def test_S22_what_stands_between_us_and_the_api_server_is_said(obj: dict[str, Any]) -> None:
    (one,) = standing(obj)
    assert one.severity == "critical"


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([webhook("Validating", on("rbac.authorization.k8s.io", "roles"))], id="a check of roles"),
        pytest.param([webhook("Mutating", on("", "pods"), spares=["kube-system", "pratique"])], id="an injector"),
        pytest.param([webhook("Validating", on("", "pods"))], id="a check of pods"),
        pytest.param([api_service("metrics.k8s.io")], id="an API of its own"),
        pytest.param([api_service({})], id="an API whose group is no text"),
        pytest.param(
            [service_account("kube-system", "agent"), pod("kube-system", "agent")], id="its own account there"
        ),
        pytest.param([pod("kube-system", "default")], id="the account without rights"),
        pytest.param([config_map("agent")], id="a setting of its own there"),
        pytest.param(
            [an_object("v1", "Service", "agent", "kube-system"), slice_of("agent", "kube-system")], id="met there"
        ),
        pytest.param([slice_of("kubernetes", "shop")], id="a service of that name elsewhere"),
        pytest.param([pod("shop", "robot"), token("shop", "robot")], id="another namespace"),
    ],
)
def test_what_operators_usually_bring_is_none(objects: list[dict[str, Any]]) -> None:
    assert standing(*objects) == []
