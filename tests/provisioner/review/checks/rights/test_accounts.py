"""What is said of accounts and bindings themselves: whose they are, where they are used, what they are outside."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.base.facts import Facts
from provisioner.review.checks.rights import permissions
from provisioner.values import Action, Finding, ObjectRef, Severity
from tests.support.provisioner.contents import an_object, content_with, facts, judged_by, planned
from tests.support.provisioner.roles import account, bound, cluster_role, role, rule

EVERYTHING = cluster_role("all", rule("*", "*", group="*"))
ROBOT = an_object("v1", "ServiceAccount", "robot", "shop")


def findings(given: Facts, rule_id: str) -> list[Finding]:
    return [one for one in judged_by(given, [permissions.PERMISSIONS_CHECK]) if one.rule == rule_id]


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
    assert "can do everything in the whole cluster" in found.message


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
    assert [one.is_new for one in findings(same, "RB-50")] == [False]
    before = content_with(*objects[:-1], pods())
    changed = facts(*(planned(obj, Action.UPDATE) for obj in objects), is_offline=True, previous=before)
    assert [one.is_new for one in findings(changed, "RB-50")] == [True]


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
    assert [one.is_new for one in findings(unchanged, "RB-48")] == [False]


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
    assert [one.severity for one in findings(given, "RB-LESS")] == [severity]
