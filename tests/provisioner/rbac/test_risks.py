from __future__ import annotations

from typing import Any

import pytest

from provisioner.rbac import effective_rules, risks
from provisioner.rbac.catalogue import PATTERNS
from provisioner.review.rules.files import sentence_of
from provisioner.values import Identity, Severity
from tests.support.provisioner.roles import API, account, bound, cluster_role, group, rule, user

ROBOT = Identity.of_service_account("app", "robot")
CRITICAL, HIGH, MEDIUM, LOW = Severity.CRITICAL, Severity.DANGEROUS, Severity.NOTABLE, Severity.SAFE


def found(*entries: dict[str, Any], namespace: str = "", sensitive: tuple[str, ...] = ()) -> dict[str, Severity]:
    """The worst severity of each risk of an account that holds these rules."""
    objects = (cluster_role("r", *entries), bound("r", account("robot", "app"), namespace=namespace))
    worst: dict[str, Severity] = {}
    for risk in risks(effective_rules(ROBOT, objects), sensitive=sensitive):
        known = worst.get(risk.id, risk.severity)
        worst[risk.id] = min(known, risk.severity, key=lambda it: it.rank)
    return worst


@pytest.mark.parametrize(
    ("entries", "rule_id", "severity"),
    [
        ([rule("*", "*", group="*")], "RB-01", CRITICAL),
        ([rule("escalate", "clusterroles", group=API)], "RB-05", CRITICAL),
        (
            [rule("bind", "clusterroles", group=API), rule("create", "clusterrolebindings", group=API)],
            "RB-06",
            CRITICAL,
        ),
        ([rule("create", "rolebindings", group=API)], "RB-07", MEDIUM),
        ([rule("patch", "clusterroles", group=API)], "RB-08", MEDIUM),
        ([rule("impersonate", "users")], "RB-10", CRITICAL),
        ([rule("impersonate", "userextras/scopes", group="authentication.k8s.io")], "RB-10", CRITICAL),
        ([rule("impersonate-on:user-info:get", "users")], "RB-10", CRITICAL),
        ([rule("impersonate-on:user-info:get", "pods")], "RB-10", HIGH),
        ([rule("impersonate:user-info", "users", group="authentication.k8s.io")], "RB-10", CRITICAL),
        ([rule("impersonate:user-info", "groups uids", group="authentication.k8s.io")], "RB-10", CRITICAL),
        ([rule("impersonate:serviceaccount", "serviceaccounts", group="authentication.k8s.io")], "RB-10", CRITICAL),
        ([rule("impersonate:arbitrary-node", "nodes", group="authentication.k8s.io")], "RB-10", CRITICAL),
        ([rule("*", "users", group="authentication.k8s.io")], "RB-10", CRITICAL),
        ([rule("list", "secrets")], "RB-11", CRITICAL),
        ([rule("get", "secrets", names="one")], "RB-11", LOW),
        ([rule("create get", "secrets")], "RB-12", CRITICAL),
        ([rule("patch", "secrets")], "RB-12", CRITICAL),
        ([rule("create", "serviceaccounts/token")], "RB-13", CRITICAL),
        ([rule("create", "*/token")], "RB-13", CRITICAL),
        ([rule("create", "pods")], "RB-14", CRITICAL),
        ([rule("patch", "statefulsets", group="apps")], "RB-14", CRITICAL),
        ([rule("create", "pods/exec")], "RB-15", HIGH),
        ([rule("get", "pods/exec")], "RB-15", HIGH),
        ([rule("create", "pods/portforward")], "RB-16", MEDIUM),
        ([rule("update", "pods/ephemeralcontainers")], "RB-17", HIGH),
        ([rule("get", "nodes/proxy")], "RB-18", CRITICAL),
        ([rule("get", "nodes/metrics")], "RB-18b", LOW),
        ([rule("get", "services/proxy")], "RB-19", MEDIUM),
        ([rule("patch", "nodes"), rule("delete", "pods")], "RB-20", HIGH),
        ([rule("patch", "nodes")], "RB-20", MEDIUM),
        ([rule("update", "services/status")], "RB-21", MEDIUM),
        ([rule("create", "persistentvolumes")], "RB-22", HIGH),
        (
            [
                rule("update", "certificatesigningrequests/approval", group="certificates.k8s.io"),
                rule("approve", "signers", group="certificates.k8s.io"),
            ],
            "RB-23",
            HIGH,
        ),
        ([rule("patch", "mutatingwebhookconfigurations", group="admissionregistration.k8s.io")], "RB-24", CRITICAL),
        ([rule("patch", "validatingwebhookconfigurations", group="admissionregistration.k8s.io")], "RB-24", HIGH),
        ([rule("delete", "customresourcedefinitions", group="apiextensions.k8s.io")], "RB-25", HIGH),
        ([rule("create", "apiservices", group="apiregistration.k8s.io")], "RB-26", CRITICAL),
        ([rule("patch", "namespaces")], "RB-27", HIGH),
        ([rule("patch", "configmaps")], "RB-28", HIGH),
        ([rule("delete", "networkpolicies", group="networking.k8s.io")], "RB-29", MEDIUM),
        ([rule("patch", "ingresses", group="networking.k8s.io")], "RB-30", MEDIUM),
        ([rule("delete", "events")], "RB-31", LOW),
        ([rule("delete", "*", group="*")], "RB-32", HIGH),
        ([rule("patch", "resourcequotas")], "RB-33", MEDIUM),
        ([rule("create", "storageclasses", group="storage.k8s.io")], "RB-34", MEDIUM),
        ([rule("update", "leases", group="coordination.k8s.io")], "RB-35", MEDIUM),
        ([rule("use", "securitycontextconstraints", group="security.openshift.io")], "RB-36", CRITICAL),
        ([rule("create", "applications", group="argoproj.io")], "RB-37", CRITICAL),
        (
            [
                rule("create", "tokenreviews", group="authentication.k8s.io"),
                rule("create", "subjectaccessreviews", group="authorization.k8s.io"),
            ],
            "RB-38",
            LOW,
        ),
        ([rule("get list watch", "*", group="*")], "RB-49", CRITICAL),
        ([rule("*", urls="*")], "RB-04", MEDIUM),
        ([rule("get", urls="/logs/*")], "RB-04", MEDIUM),
        ([rule("get", "pods/*")], "RB-47", LOW),
        ([rule("create", "pods", names="x")], "RB-47", LOW),
        ([rule("get", "cronjobs")], "RB-47", LOW),
        ([rule("get", "deployments/scale ingresses", group="extensions")], "RB-47", LOW),
    ],
    ids=lambda it: it if isinstance(it, str) else None,
)
def test_a_risky_permission_is_found(entries: list[dict[str, Any]], rule_id: str, severity: Severity) -> None:
    assert found(*entries).get(rule_id) is severity


@pytest.mark.parametrize(
    ("entries", "rule_id"),
    [
        pytest.param([rule("bind", "clusterroles", group=API)], "RB-06", id="bind alone"),
        pytest.param([rule("create", "secrets")], "RB-11", id="creating Secrets is not reading them"),
        pytest.param([rule("create", "secrets")], "RB-12", id="creating without reading"),
        pytest.param([rule("create", "pods", names="x")], "RB-14", id="create never carries a name"),
        pytest.param([rule("get", "secrets", group="apps")], "RB-11", id="Secrets of another group"),
        pytest.param([rule("create", "pods/*")], "RB-15", id="pods/* matches nothing"),
        pytest.param([rule("list", "pods")], "RB-14", id="reading pods"),
        pytest.param([rule("get", "cronjobs pods")], "RB-47", id="one of two resources exists"),
        pytest.param([rule("get", "orders", group="shop.example.com")], "RB-47", id="a group that nobody here knows"),
        pytest.param([rule("approve", "signers", group="certificates.k8s.io")], "RB-47", id="what only RBAC knows"),
        pytest.param([rule("get", urls="/healthz")], "RB-04", id="a harmless URL"),
    ],
)
def test_a_harmless_permission_is_not_called_risky(entries: list[dict[str, Any]], rule_id: str) -> None:
    assert rule_id not in found(*entries)


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda it: f"{it.id} {it.what}")
def test_every_pattern_counts_wildcards(pattern: Any) -> None:
    held = found(rule("*", "*", group="*"))
    assert pattern.id in held


def test_powers_may_come_from_different_rules_and_bindings() -> None:
    objects = (
        cluster_role("one", rule("bind", "clusterroles", group=API)),
        cluster_role("two", rule("create", "rolebindings", group=API)),
        bound("one", account("robot", "app")),
        bound("two", account("robot"), namespace="app"),
    )
    (risk,) = [it for it in risks(effective_rules(ROBOT, objects)) if it.id == "RB-06"]
    assert risk.scope == "app"
    assert {grant.binding.name for grant in risk.evidence} == {"one-binding", "two-binding"}


def test_a_namespace_weighs_less_unless_it_is_a_sensitive_one() -> None:
    assert found(rule("list", "secrets"), namespace="app")["RB-11"] is HIGH
    assert found(rule("list", "secrets"), namespace="kube-system")["RB-11"] is CRITICAL
    assert found(rule("list", "secrets"), namespace="app", sensitive=("app",))["RB-11"] is CRITICAL
    assert found(rule("*", "*", group="*"), namespace="app")["RB-02"] is HIGH


def test_everything_in_the_core_group_of_one_namespace_has_words() -> None:
    objects = cluster_role("core", rule("*", "*")), bound("core", account("robot", "app"), namespace="app")
    (risk,) = [it for it in risks(effective_rules(ROBOT, objects)) if it.id == "RB-02"]
    assert "do everything in the core group" in sentence_of(risk)


def test_what_means_nothing_in_a_namespace_is_not_reported_there() -> None:
    held = found(rule("create", "apiservices", group="apiregistration.k8s.io"), namespace="app")
    assert held == {"RB-47": LOW}  # said as what it is: a rule that grants nothing there
    assert "RB-28" not in found(rule("patch", "configmaps"), namespace="app")
    assert found(rule("patch", "configmaps"), namespace="kube-system")["RB-28"] is HIGH


def test_a_permission_held_everywhere_is_said_once() -> None:
    objects = (
        cluster_role("r", rule("list", "secrets")),
        bound("r", account("robot", "app")),
        bound("r", account("robot"), namespace="app"),
    )
    assert [it.scope for it in risks(effective_rules(ROBOT, objects)) if it.id == "RB-11"] == [""]


def test_a_namespace_is_said_where_the_cluster_wide_hold_is_of_named_objects_only() -> None:
    objects = (
        cluster_role("named", rule("get", "secrets", names="one")),
        cluster_role("all", rule("get", "secrets")),
        bound("named", account("robot", "app")),
        bound("all", account("robot"), namespace="app"),
    )
    held = {(it.scope, it.severity) for it in risks(effective_rules(ROBOT, objects)) if it.id == "RB-11"}
    assert held == {("", LOW), ("app", HIGH)}


@pytest.mark.parametrize(
    ("subject", "identity", "rule_id"),
    [
        (user("system:anonymous"), Identity("system:anonymous", ("system:unauthenticated",)), "RB-40"),
        (group("system:unauthenticated"), Identity("system:anonymous", ("system:unauthenticated",)), "RB-40"),
        (group("system:authenticated"), ROBOT, "RB-41"),
        (group("system:serviceaccounts"), ROBOT, "RB-41"),
        (group("system:masters"), Identity("root", ("system:masters",)), "RB-42"),
        (group("system:serviceaccounts:app"), ROBOT, "RB-43"),
        (account("default", "app"), Identity.of_service_account("app", "default"), "RB-43"),
    ],
    ids=lambda it: it if isinstance(it, str) else "",
)
def test_a_grant_to_everybody_is_found_for_each_of_them(
    subject: dict[str, Any], identity: Identity, rule_id: str
) -> None:
    objects = (cluster_role("r", rule("get", "configmaps")), bound("r", subject))
    assert rule_id in {it.id for it in risks(effective_rules(identity, objects))}


def test_what_every_cluster_grants_to_everybody_is_no_finding() -> None:
    objects = (
        cluster_role("system:discovery", rule("get", urls="/api")),
        bound("system:discovery", group("system:authenticated")),
    )
    assert risks(effective_rules(ROBOT, objects)) == []


def test_cluster_admin_is_named_and_what_it_implies_is_marked() -> None:
    objects = (
        cluster_role("cluster-admin", rule("*", "*", group="*")),
        bound("cluster-admin", account("robot", "app")),
    )
    held = risks(effective_rules(ROBOT, objects))
    assert {it.id for it in held if not it.implied_by} >= {"RB-01", "RB-03"}
    assert all(it.implied_by == "RB-01" for it in held if it.id == "RB-11")
    assert [it.severity.rank for it in held] == sorted(it.severity.rank for it in held)


@pytest.mark.parametrize(
    ("entries", "namespace", "sentences"),
    [
        pytest.param(
            [rule("*", "*", group="*"), rule("*", urls="*")], "", ["can do everything (cluster-wide)"], id="all"
        ),
        pytest.param([rule("*", "*")], "", ["can do everything in the core group (cluster-wide)"], id="the core group"),
        pytest.param([rule("*", "*", group="*")], "app", ["can do everything in namespace app"], id="in a namespace"),
    ],
)
def test_the_power_over_everything_is_said_once(
    entries: list[dict[str, Any]], namespace: str, sentences: list[str]
) -> None:
    objects = (cluster_role("r", *entries), bound("r", account("robot", "app"), namespace=namespace))
    held = [it for it in risks(effective_rules(ROBOT, objects)) if it.id in ("RB-01", "RB-02")]
    assert [sentence_of(it) for it in held] == sentences
    assert all(not it.implied_by for it in held)


@pytest.mark.parametrize(
    ("entry", "namespace", "rule_id", "severity", "sentence"),
    [
        pytest.param(
            rule("create", "serviceaccounts/token", names="agent"),
            "",
            "RB-13",
            HIGH,
            "can get tokens of the ServiceAccounts named agent (cluster-wide)",
            id="creating a subresource carries the name of its object",
        ),
        pytest.param(
            rule("create", "pods/exec", names="db-0"),
            "app",
            "RB-15",
            MEDIUM,
            "can run commands in the pods named db-0 in namespace app",
            id="so does an exec",
        ),
        pytest.param(
            rule("impersonate", "groups", names="system:masters"),
            "",
            "RB-10",
            CRITICAL,
            "can act as system:masters (impersonate) (cluster-wide)",
            id="one name that is everything",
        ),
        pytest.param(
            rule("impersonate", "users", names="monitor"),
            "",
            "RB-10",
            HIGH,
            "can act as monitor (impersonate) (cluster-wide)",
            id="one name that is not",
        ),
        pytest.param(
            rule("get", "secrets", names="a b c d"),
            "",
            "RB-11",
            LOW,
            "can read the Secrets named a, b, c and 1 more (cluster-wide)",
            id="several names",
        ),
        pytest.param(
            rule("update", "configmaps", names="my-election"),
            "kube-system",
            "RB-28",
            LOW,
            "can change the ConfigMaps named my-election in namespace kube-system",
            id="an own ConfigMap among those of the cluster",
        ),
        pytest.param(
            rule("update", "configmaps", names="coredns"),
            "kube-system",
            "RB-28",
            HIGH,
            "can change the ConfigMaps named coredns in namespace kube-system",
            id="one of the cluster's own",
        ),
        pytest.param(
            rule("get update", "nodes nodes/proxy"),
            "app",
            "RB-47",
            LOW,
            "holds rule 0 of ClusterRole r, which grants nothing: nodes belong to no namespace, and a RoleBinding "
            "grants nothing outside of its own",
            id="nodes by a RoleBinding",
        ),
    ],
)
def test_a_risk_limited_to_names_says_them_and_weighs_what_they_weigh(
    entry: dict[str, Any], namespace: str, rule_id: str, severity: Severity, sentence: str
) -> None:
    objects = (cluster_role("r", entry), bound("r", account("robot", "app"), namespace=namespace))
    (risk,) = [it for it in risks(effective_rules(ROBOT, objects)) if it.id == rule_id]
    assert (risk.severity, sentence_of(risk)) == (severity, sentence)


@pytest.mark.parametrize(
    ("signer", "severity"),
    [("kubernetes.io/kube-apiserver-client", CRITICAL), ("kubernetes.io/*", CRITICAL), ("example.com/own", MEDIUM)],
)
def test_certificates_weigh_what_their_signer_is_trusted_for(signer: str, severity: Severity) -> None:
    group = "certificates.k8s.io"
    csr = "certificatesigningrequests"
    entries = [
        rule("create", csr, group=group),
        rule("update", f"{csr}/approval", group=group),
        rule("approve", "signers", group=group, names=signer),
    ]
    assert found(*entries)["RB-23"] is severity


def test_to_bind_cluster_admin_by_name_is_to_bind_everything() -> None:
    binding = rule("create", "clusterrolebindings", group=API)
    assert found(rule("bind", "clusterroles", group=API, names="cluster-admin"), binding)["RB-06"] is CRITICAL
    assert found(rule("bind", "clusterroles", group=API, names="view"), binding)["RB-06"] is HIGH


def test_a_namespace_itself_can_be_changed_by_a_role_binding_in_it() -> None:
    """A request for the namespace app counts as made in app."""
    assert "RB-47" not in found(rule("patch", "namespaces"), namespace="app")
