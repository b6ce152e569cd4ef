"""What accounts hold, what everybody holds, and which of it is risky."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.api_groups import RBAC_GROUP
from provisioner.pipeline import look_offline
from provisioner.rbac.catalogue import PATTERNS, RiskPattern
from provisioner.review.base.facts import Facts
from provisioner.review.checks.rights import permissions
from provisioner.values import Action, Finding, JsonObject, ObjectRef, Severity
from tests.support.provisioner.contents import an_object, content_with, facts, judged_by, planned
from tests.support.provisioner.roles import account, bound, cluster_role, group, role, rule

EVERYTHING = cluster_role("all", rule("*", "*", group="*"))
ROBOT = an_object("v1", "ServiceAccount", "robot", "shop")


def findings(given: Facts, rule_id: str) -> list[Finding]:
    return [finding for finding in judged_by(given, [permissions.PERMISSIONS_CHECK]) if finding.rule == rule_id]


def created(*objects: dict[str, Any], **rest: Any) -> Facts:
    return facts(*(planned(obj, Action.CREATE) for obj in objects), **{"is_offline": True, **rest})


def pods(kind: str = "Deployment", **spec: Any) -> dict[str, Any]:
    labels = {"app": "web"}
    pod = {"serviceAccountName": "robot", "containers": [{"name": "main", "image": "x"}], **spec}
    template = {"metadata": {"labels": labels}, "spec": pod}
    return an_object("apps/v1", kind, "web", "shop", spec={"template": template})


def service(kind: str, **selector: str) -> dict[str, Any]:
    return an_object("v1", "Service", "web", "shop", spec={"type": kind, "selector": selector})


@pytest.mark.parametrize(
    ("workload", "reason"),
    [
        pytest.param(pods(hostNetwork=True), "shares the node's network", id="host network"),
        pytest.param(pods("DaemonSet"), "runs on every node", id="daemon set"),
        pytest.param(
            pods("DaemonSet", serviceAccountName=None, serviceAccount="robot"), "every node", id="the older field"
        ),
        pytest.param(
            pods(containers=[{"name": "a", "securityContext": {"privileged": True}}]), "is privileged", id="privileged"
        ),
    ],
)
def test_a_powerful_account_in_an_exposed_pod_is_said(workload: dict[str, Any], reason: str) -> None:
    (found,) = findings(created(EVERYTHING, bound("all", account("robot", "shop")), ROBOT, workload), "RB-50")
    assert reason in found.message
    assert "can do everything (cluster-wide)" in found.message


def test_a_powerful_account_behind_a_service_for_everybody_is_said() -> None:
    objects = (EVERYTHING, bound("all", account("robot", "shop")), ROBOT, pods())
    assert findings(created(*objects, service("LoadBalancer", app="web")), "RB-50")
    assert not findings(created(*objects, service("ClusterIP", app="web")), "RB-50")
    assert not findings(created(*objects, service("LoadBalancer", app="other")), "RB-50")
    assert not findings(created(*objects, service("LoadBalancer")), "RB-50")


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param((pods("DaemonSet"),), id="an account without rights"),
        pytest.param(
            (EVERYTHING, bound("all", account("robot", "shop")), pods("DaemonSet", automountServiceAccountToken=False)),
            id="no token in the pod",
        ),
        pytest.param(
            (EVERYTHING, bound("all", account("robot", "shop")), pods("DaemonSet", serviceAccountName="other")),
            id="another account",
        ),
    ],
)
def test_an_exposed_pod_without_power_is_not_said(objects: tuple[dict[str, Any], ...]) -> None:
    assert not findings(created(ROBOT, *objects), "RB-50")


def test_an_exposed_account_that_was_so_before_is_not_new() -> None:
    objects = (EVERYTHING, bound("all", account("robot", "shop")), ROBOT, pods("DaemonSet"))
    same = facts(*(planned(obj, Action.NONE) for obj in objects), is_offline=True, previous=content_with(*objects))
    assert [finding.is_new for finding in findings(same, "RB-50")] == [False]
    before = content_with(*objects[:-1], pods())
    changed = facts(*(planned(obj, Action.UPDATE) for obj in objects), is_offline=True, previous=before)
    assert [finding.is_new for finding in findings(changed, "RB-50")] == [True]


def test_a_subject_outside_of_the_bundle_is_said() -> None:
    given = created(ROBOT, EVERYTHING, bound("all", account("robot", "shop"), account("other", "far")))
    (found,) = findings(given, "RB-44")
    assert "far/other" in found.message
    assert found.severity is Severity.NOTABLE


def test_a_subject_that_does_not_exist_can_be_claimed_by_anybody() -> None:
    other = ObjectRef("", "v1", "ServiceAccount", "far", "other")
    binding = bound("all", account("other", "far"))
    assert list(permissions.PERMISSIONS_CHECK.wants(content_with(binding), created(binding).plan)) == [other]
    (found,) = findings(created(EVERYTHING, binding, live={other.identity: None}, live_rbac=()), "RB-44")
    assert "whoever creates it" in found.message


def test_a_binding_that_shall_name_another_role_is_refused() -> None:
    old, new = bound("one", account("robot", "shop")), bound("two", account("robot", "shop"))
    new["metadata"] = old["metadata"]
    (found,) = findings(facts(planned(new, Action.UPDATE, before=old), is_offline=True), "RB-46")
    assert (found.severity, found.path) == (Severity.BREAKING, ("roleRef",))
    assert not findings(facts(planned(old, Action.UPDATE, before=old), is_offline=True), "RB-46")


def test_a_wildcard_says_what_it_is_today_and_what_it_gained_since() -> None:
    def definition(plural: str) -> dict[str, Any]:
        spec = {"group": "shop.example.com", "names": {"plural": plural}}
        return an_object("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{plural}.x", spec=spec)

    wide = role("shop", "wide", rule("get", "*", group="shop.example.com"))
    old, new = (wide, definition("orders")), (wide, definition("orders"), definition("bills"))
    given = facts(*(planned(obj, Action.UPDATE) for obj in new), is_offline=True, previous=content_with(*old))
    (found,) = findings(given, "RB-48")
    assert found.is_new
    assert found.evidence["means"] == {"shop.example.com": ["bills", "orders"]}
    unchanged = facts(*(planned(obj, Action.NONE) for obj in old), is_offline=True, previous=content_with(*old))
    assert [finding.is_new for finding in findings(unchanged, "RB-48")] == [False]


@pytest.mark.parametrize(
    "key", ["eks.amazonaws.com/role-arn", "iam.gke.io/gcp-service-account", "azure.workload.identity/client-id"]
)
def test_an_identity_outside_of_the_cluster_is_said_and_new_when_it_changes(key: str) -> None:
    def robot(value: str) -> dict[str, Any]:
        return {**ROBOT, "metadata": {**ROBOT["metadata"], "annotations": {key: value}}}

    (found,) = findings(
        facts(planned(robot("two"), Action.UPDATE), is_offline=True, previous=content_with(robot("one"))), "RB-51"
    )
    assert found.is_new
    assert "two" in found.message
    (known,) = findings(
        facts(planned(robot("one"), Action.NONE), is_offline=True, previous=content_with(robot("one"))), "RB-51"
    )
    assert not known.is_new


SHOPS = an_object(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "shops.example.com",
    spec={"group": "example.com", "names": {"plural": "shops"}},
)
LEASES = rule("get create update", "leases", group="coordination.k8s.io")
ELECTING = {"containers": [{"name": "main", "args": ["--leader-elect"]}]}
ALONE = {"containers": [{"name": "main", "env": [{"name": "LEADER_ELECTION", "value": "false"}]}]}
OWN = rule("get list watch update patch", "shops", group="example.com")


@pytest.mark.parametrize(
    ("before", "after", "workload", "severity"),
    [
        pytest.param([rule("get", "pods"), OWN], [OWN], None, Severity.SAFE, id="nobody runs as it"),
        pytest.param([rule("get", "pods"), OWN], [OWN], pods(), Severity.NOTABLE, id="pods run as it"),
        pytest.param(
            [OWN], [rule("get list", "shops", group="example.com")], pods(), Severity.DANGEROUS, id="own kind"
        ),
        pytest.param(
            [OWN],
            [rule("get list watch patch", "shops", group="example.com")],
            pods(),
            Severity.NOTABLE,
            id="one of two ways to write",
        ),
        pytest.param([rule("*", "*", group="*")], [LEASES], pods(), Severity.NOTABLE, id="everything"),
        pytest.param([OWN, LEASES], [OWN], pods(**ELECTING), Severity.DANGEROUS, id="Leases to elect a leader"),
        pytest.param([OWN, LEASES], [OWN], pods(**ALONE), Severity.NOTABLE, id="Leases that nobody needs"),
    ],
)
def test_rights_that_pods_lose_are_more_than_safe(
    before: list[Any], after: list[Any], workload: dict[str, Any] | None, severity: Severity
) -> None:
    roles = [cluster_role("r", *rules) for rules in (before, after)]
    rest = [bound("r", account("robot", "shop")), ROBOT, SHOPS, *([workload] if workload else [])]
    actions = [planned(roles[1], Action.UPDATE, before=roles[0]), *(planned(it, Action.NONE, before=it) for it in rest)]
    given = facts(*actions, previous=content_with(roles[0], *rest), is_offline=True)
    assert [finding.severity for finding in findings(given, "RB-LESS")] == [severity]


RULES = frozenset({"RB-40", "RB-41", "RB-42", "RB-43"})


def wide_role(name: str, *rules: dict[str, Any]) -> dict[str, Any]:
    return an_object(f"{RBAC_GROUP}/v1", "ClusterRole", name, rules=list(rules))


def bound_wide(name: str, kind: str, subject: str) -> dict[str, Any]:
    wanted = {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": name}
    subjects = [{"apiGroup": RBAC_GROUP, "kind": kind, "name": subject}]
    return an_object(f"{RBAC_GROUP}/v1", "ClusterRoleBinding", "all", roleRef=wanted, subjects=subjects)


def found_by(*objects: dict[str, Any], old: list[dict[str, Any]] | None = None) -> list[Finding]:
    found = look_offline(content_with(*objects), content_with(*old) if old else None).findings
    return [finding for finding in found if finding.rule in RULES]


def said_of(*objects: dict[str, Any]) -> list[tuple[str, str]]:
    return [(finding.rule, str(finding.severity)) for finding in found_by(*objects)]


@pytest.mark.parametrize(
    ("kind", "subject", "expected"),
    [
        ("Group", "system:unauthenticated", ("RB-40", "critical")),
        ("User", "system:anonymous", ("RB-40", "critical")),
        ("Group", "system:authenticated", ("RB-41", "dangerous")),
        ("Group", "system:serviceaccounts", ("RB-41", "dangerous")),
        ("Group", "system:masters", ("RB-42", "critical")),
        ("Group", "system:serviceaccounts:shop", ("RB-43", "dangerous")),
        ("Group", "developers", None),
    ],
)
def test_a_role_that_nobody_can_look_up_counts_by_whom_it_is_given_to(
    kind: str, subject: str, expected: tuple[str, str] | None
) -> None:
    assert said_of(bound_wide("view", kind, subject)) == ([expected] if expected else [])


def test_a_role_that_holds_nothing_yet_counts_too() -> None:
    assert said_of(wide_role("empty"), bound_wide("empty", "Group", "system:unauthenticated")) == [
        ("RB-40", "critical")
    ]


READS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}


def test_a_known_role_is_said_once() -> None:
    assert said_of(wide_role("reader", READS), bound_wide("reader", "Group", "system:unauthenticated")) == [
        ("RB-40", "critical")
    ]


def test_the_discovery_that_every_cluster_has_is_nobodys_risk() -> None:
    assert said_of(bound_wide("system:discovery", "Group", "system:authenticated")) == []
    own = {"nonResourceURLs": ["/healthz", "/version"], "verbs": ["get"]}
    assert (
        said_of(wide_role("system:discovery", own), bound_wide("system:discovery", "Group", "system:authenticated"))
        == []
    )


@pytest.mark.parametrize(
    "more",
    [
        READS,
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]},
        {"nonResourceURLs": ["*"], "verbs": ["get"]},
        {"nonResourceURLs": ["/healthz"], "verbs": ["post"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
        {"apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectaccessreviews"], "verbs": ["*"]},
    ],
    ids=lambda more: str([*more.values()]),
)
def test_a_role_of_that_name_with_more_in_it_is_one(more: dict[str, Any]) -> None:
    found = said_of(
        wide_role("system:discovery", more), bound_wide("system:discovery", "Group", "system:unauthenticated")
    )
    assert found == [("RB-40", "critical")]


@pytest.mark.parametrize("name", ["unauthenticated", "authenticated", "masters", "serviceaccounts:shop"])
def test_a_binding_that_was_there_is_no_longer_new(name: str) -> None:
    binding = bound_wide("view", "Group", f"system:{name}")
    assert [(finding.is_new, finding.variant) for finding in found_by(binding, old=[binding])] == [(False, "bound")]
    other = bound_wide("edit", "Group", f"system:{name}")
    assert [(finding.is_new, finding.variant) for finding in found_by(other, old=[binding])] == [(True, "bound-newly")]


def test_a_known_role_that_was_bound_is_held_as_before() -> None:
    both = [wide_role("reader", READS), bound_wide("reader", "Group", "system:authenticated")]
    assert [(finding.is_new, finding.variant) for finding in found_by(*both, old=both)] == [(False, "holds")]


STEPS = (Severity.CRITICAL, Severity.DANGEROUS, Severity.NOTABLE, Severity.SAFE)
# Requests of these verbs carry no name, but for those about a subresource, so a rule that has names grants nothing.
NAMELESS = {"create", "deletecollection"}
# Whoever rules there rules the cluster, so nothing weighs less.
SENSITIVE = {"kube-system"}


def named(pattern: RiskPattern) -> bool:
    """Whether the pattern can be held for named objects only."""
    return all(set(one.verbs) - NAMELESS or "/" in one.resources[0] for one in pattern.powers)


def words(pattern: RiskPattern) -> str:
    return f"{pattern.id} {pattern.what}"


EVERY = pytest.mark.parametrize("pattern", PATTERNS, ids=words)
NAMED = pytest.mark.parametrize("pattern", [one for one in PATTERNS if named(one)], ids=words)


def lower(severity: Severity) -> Severity:
    return STEPS[min(STEPS.index(severity) + 1, len(STEPS) - 1)]


def severities(pattern: RiskPattern, *, names: str = "", namespace: str = "") -> set[Severity]:
    """Of the findings of the pattern's rule about an account that may do exactly what the pattern says."""
    rules = [_rule(one.verbs, one.group, one.resources, names) for one in pattern.powers]
    return {finding.severity for finding in found(rules, namespace) if finding.rule == pattern.id}


def found(rules: list[dict[str, Any]], namespace: str = "") -> tuple[Finding, ...]:
    objects = (cluster_role("r", *rules), bound("r", account("robot", "shop"), namespace=namespace))
    return tuple(look_offline(content_with(*objects), None).findings)


def _rule(verbs: tuple[str, ...], in_group: str, resources: tuple[str, ...], names: str) -> dict[str, Any]:
    return rule(" ".join(verbs), " ".join(resources), group=in_group, names=names)


@EVERY
def test_a_permission_on_the_whole_cluster_weighs_what_the_catalogue_says(pattern: RiskPattern) -> None:
    assert pattern.severity in severities(pattern)


@NAMED
def test_a_permission_on_named_objects_weighs_less(pattern: RiskPattern) -> None:
    assert (pattern.named or lower(pattern.severity)) in severities(pattern, names="one")


@EVERY
def test_a_permission_in_a_namespace_that_is_not_the_bundle_s_weighs_less(pattern: RiskPattern) -> None:
    namespace = pattern.namespaces[0] if pattern.namespaces else "elsewhere"
    weight = pattern.severity if namespace in SENSITIVE else lower(pattern.severity)
    assert severities(pattern, namespace=namespace) == (set() if pattern.is_cluster_only else {weight})


@NAMED
def test_a_permission_on_named_objects_in_such_a_namespace_weighs_least(pattern: RiskPattern) -> None:
    namespace = pattern.namespaces[0] if pattern.namespaces else "elsewhere"
    weight = pattern.named or lower(pattern.severity)
    expected = weight if namespace in SENSITIVE else lower(weight)
    assert severities(pattern, names="one", namespace=namespace) == (set() if pattern.is_cluster_only else {expected})


def test_everything_in_one_namespace_has_a_rule_of_its_own() -> None:
    (everything,) = (one for one in PATTERNS if one.id == "RB-01" and not one.is_part)
    rules = [_rule(one.verbs, one.group, one.resources, "") for one in everything.powers]
    assert [finding.severity for finding in found(rules, "elsewhere") if finding.rule == "RB-02"] == [
        Severity.DANGEROUS
    ]
    assert [finding.severity for finding in found(rules, "shop") if finding.rule == "RB-02"] == [Severity.CRITICAL]


@pytest.mark.parametrize(
    ("name", "severity"),
    [("cluster-admin", Severity.CRITICAL), ("admin", Severity.DANGEROUS), ("edit", Severity.DANGEROUS)],
)
def test_a_broad_role_of_kubernetes_weighs_as_much_as_it_grants(name: str, severity: Severity) -> None:
    objects = (cluster_role(name, rule("get")), bound(name, account("robot", "shop")))
    report = look_offline(content_with(*objects), None)
    assert [finding.severity for finding in report.findings if finding.rule == "RB-03"] == [severity]


@pytest.mark.parametrize(
    ("subject", "resources", "rule_id", "severity"),
    [
        (group("system:unauthenticated"), "pods", "RB-40", Severity.CRITICAL),
        (group("system:authenticated"), "pods", "RB-41", Severity.DANGEROUS),
        (group("system:authenticated"), "secrets", "RB-41", Severity.CRITICAL),
        (group("system:serviceaccounts"), "pods", "RB-41", Severity.DANGEROUS),
        (group("system:masters"), "pods", "RB-42", Severity.CRITICAL),
    ],
    ids=str,
)
def test_rights_of_many_weigh_more_where_they_read_secrets(
    subject: JsonObject, resources: str, rule_id: str, severity: Severity
) -> None:
    objects = (cluster_role("r", rule("get", resources)), bound("r", subject))
    report = look_offline(content_with(*objects), None)
    assert {finding.severity for finding in report.findings if finding.rule == rule_id} == {severity}


@pytest.mark.parametrize(
    ("live", "severity"), [((), Severity.NOTABLE), (None, Severity.UNKNOWN)], ids=["roles were read", "nobody knows"]
)
def test_a_binding_to_a_role_that_does_not_exist_grants_nothing_yet(
    live: tuple[JsonObject, ...] | None, severity: Severity
) -> None:
    given = facts(planned(bound("later", account("robot", "shop")), Action.CREATE), live_rbac=live)
    assert [
        finding.severity for finding in permissions.PERMISSIONS_CHECK.changes(given) if finding.rule == "RB-45"
    ] == [severity]


def test_a_role_that_cannot_be_read_is_unknown() -> None:
    broken = {**cluster_role("r"), "rules": [{"verbs": "get"}]}
    changes = facts(*(planned(one, Action.CREATE) for one in (broken, bound("r", account("robot", "shop")))))
    unknown = [finding for finding in permissions.PERMISSIONS_CHECK.changes(changes) if finding.rule == "RB-00"]
    assert [(one.severity, one.variant) for one in unknown] == [(Severity.UNKNOWN, "partly-known")]
