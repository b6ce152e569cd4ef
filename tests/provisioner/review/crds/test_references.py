"""What else in the cluster counts on a custom resource definition that is deleted, or loses a version (LIV-05)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from provisioner.review.base.facts import ClusterSurroundings, Facts, Listed, Listing
from provisioner.review.checks.objects import crds
from provisioner.review.crds.live_scene import BUDGETS, OWNED, PODS
from provisioner.review.crds.references import DEPENDENTS
from provisioner.review.frame import listings
from provisioner.values import Action, Finding, ObjectRef, Severity
from tests.provisioner.review.crds.orders import (
    GROUP,
    HPA,
    SIZES,
    TEXT,
    crd,
    found_by,
    one_of,
    order,
    props,
    scene,
    version,
)
from tests.support.provisioner.contents import an_object, facts, planned


def autoscaler(kind: str = "Order", group: str = GROUP) -> dict[str, Any]:
    target = {"apiVersion": f"{group}/v1", "kind": kind, "name": "one"}
    return an_object("autoscaling/v2", "HorizontalPodAutoscaler", "grow", "shop", spec={"scaleTargetRef": target})


def webhook(*resources: str) -> dict[str, Any]:
    rules = [{"apiGroups": [GROUP], "apiVersions": ["*"], "resources": list(resources), "operations": ["*"]}]
    hook = {"name": "a", "rules": rules}
    return an_object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "guard", webhooks=[hook])


def reader(group: str = GROUP) -> dict[str, Any]:
    rules = [{"apiGroups": [group], "resources": ["orders/status"], "verbs": ["get"]}]
    return an_object("rbac.authorization.k8s.io/v1", "ClusterRole", "orders-reader", rules=rules)


def removal(*there: dict[str, Any], also: tuple[dict[str, Any], ...] = ()) -> list[Finding]:
    """The findings LIV-05 where the CRD goes, and `also` with it, from a cluster that holds `there`."""
    old = crd(props(a=TEXT))
    lists = {
        one: Listed(found, len(found))
        for one in DEPENDENTS
        for found in [tuple(obj for obj in there if obj["kind"] == one.kind)]
    }
    actions = [planned(obj, Action.DELETE, before=obj) for obj in (old, *also)]
    roles = tuple(obj for obj in there if obj["kind"] == "ClusterRole")
    around = ClusterSurroundings(lists=lists)
    given = facts(*actions, live={ObjectRef.of(old).identity: old}, live_rbac=roles, around=around)
    return [finding for finding in found_by(given) if finding.rule == "LIV-05"]


@pytest.mark.parametrize(
    ("there", "words"),
    [
        ([autoscaler()], "HorizontalPodAutoscaler shop/grow names Order, whose definition goes"),
        ([webhook("orders")], "ValidatingWebhookConfiguration guard names Order"),
        ([reader()], "ClusterRole orders-reader names Order"),
        ([autoscaler(), reader()], "HorizontalPodAutoscaler shop/grow, ClusterRole orders-reader name Order"),
    ],
    ids=["an autoscaler", "a webhook", "a role", "two"],
)
def test_what_names_a_kind_that_goes_is_said(there: list[dict[str, Any]], words: str) -> None:
    (found,) = removal(*there)
    assert found.severity is Severity.DANGEROUS
    assert words in found.message


@pytest.mark.parametrize(
    "there",
    [[autoscaler("Deployment", "apps")], [webhook("*")], [reader("other.example.com")], []],
    ids=["another kind", "a webhook for everything", "another group", "nothing"],
)
def test_what_names_something_else_is_not_said(there: list[dict[str, Any]]) -> None:
    assert removal(*there) == []


def test_what_goes_together_with_the_kind_is_not_said() -> None:
    assert removal(webhook("orders"), reader(), also=(webhook("orders"), reader())) == []


def test_an_autoscaler_that_nobody_could_look_for_is_unknown() -> None:
    old = crd(props(a=TEXT))
    around = ClusterSurroundings(lists={HPA: Listed(total=None, problem="forbidden")})
    given = facts(planned(old, Action.DELETE, before=old), live={ObjectRef.of(old).identity: old}, around=around)
    (found,) = [finding for finding in found_by(given) if finding.rule == "LIV-05"]
    assert found.severity is Severity.UNKNOWN


def belonging(kind: str, by: str, *, to: str = "Order", controller: bool = False, **labels: str) -> dict[str, Any]:
    owner = {"apiVersion": by, "kind": to, "name": "one", "uid": "u", "controller": controller}
    group = "apps/v1" if kind == "Deployment" else "v1"
    found = an_object(group, kind, f"{kind.lower()}-of-one", "shop")
    found["metadata"] |= {"ownerReferences": [owner], "labels": labels}
    return found


def budget(selector: dict[str, Any] | None, **limits: Any) -> dict[str, Any]:
    return an_object("policy/v1", "PodDisruptionBudget", "keep", "shop", spec={"selector": selector, **limits})


def listed(*there: dict[str, Any]) -> dict[Listing, Listed]:
    found = {one: tuple(obj for obj in there if obj["kind"] == one.kind) for one in DEPENDENTS}
    return {one: Listed(objects, len(objects)) for one, objects in found.items()}


def without_v1beta1(*there: dict[str, Any]) -> Facts:
    kept = version(properties={"a": TEXT})
    old = crd(kept, version("v1beta1", storage=False, properties={"a": TEXT}))
    return scene(old, crd(kept), order(a="x"), lists=listed(*there))


def of_live_05(given: Facts) -> list[Finding]:
    return [finding for finding in found_by(given) if finding.rule == "LIV-05"]


OLD, KEPT = f"{GROUP}/v1beta1", f"{GROUP}/v1"


def test_what_names_an_owner_in_a_version_that_goes_is_counted_by_kind() -> None:
    there = [belonging("Deployment", OLD), belonging("Service", OLD), belonging("Pod", KEPT)]
    (found,) = of_live_05(without_v1beta1(*there))
    assert found.message.startswith("1 Deployment, 1 Service belong to objects of Order as v1beta1, which goes")
    assert "stay behind" in found.message
    assert found.evidence["count"] == 2


@pytest.mark.parametrize(
    "there",
    [
        pytest.param(belonging("Deployment", KEPT), id="a version that stays"),
        pytest.param(belonging("Deployment", "other.example.com/v1beta1"), id="another group"),
        pytest.param(belonging("Deployment", OLD, to="Invoice"), id="another kind"),
        pytest.param(belonging("Deployment", "v1beta1"), id="no group"),
        pytest.param(an_object("v1", "Service", "free", "shop"), id="no owner"),
        pytest.param(
            {**an_object("v1", "Service", "odd", "shop"), "metadata": {"name": "odd", "ownerReferences": ["x", 7]}},
            id="references that are none",
        ),
    ],
)
def test_what_names_another_owner_is_not_counted(there: dict[str, Any]) -> None:
    assert of_live_05(without_v1beta1(there)) == []


@pytest.mark.parametrize(
    ("limits", "selector", "is_said"),
    [
        pytest.param({"maxUnavailable": 1}, {"matchLabels": {"app": "one"}}, True, id="how many may be missing"),
        pytest.param({"minAvailable": "50%"}, {"matchLabels": {"app": "one"}}, True, id="a share"),
        pytest.param({"minAvailable": "50%"}, {}, True, id="every pod"),
        pytest.param({"minAvailable": 2}, {"matchLabels": {"app": "one"}}, False, id="a number needs no scale"),
        pytest.param({"maxUnavailable": 1}, {"matchLabels": {"app": "two"}}, False, id="other pods"),
        pytest.param({"maxUnavailable": 1}, None, False, id="no selector selects no pod"),
        pytest.param(
            {"maxUnavailable": 1},
            {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["one"]}]},
            False,
            id="an expression that leaves it out",
        ),
    ],
)
def test_a_budget_over_pods_of_a_version_that_goes_is_said_where_it_needs_the_scale(
    limits: dict[str, Any], selector: dict[str, Any] | None, is_said: bool
) -> None:
    pod = belonging("Pod", OLD, controller=True, app="one")
    found = [one for one in of_live_05(without_v1beta1(pod, budget(selector, **limits))) if "Budget" in one.message]
    assert bool(found) is is_said


def test_a_budget_over_pods_that_something_else_runs_is_not_said() -> None:
    pod = belonging("Pod", OLD, controller=False, app="one")
    found = of_live_05(without_v1beta1(pod, budget({}, maxUnavailable=1)))
    assert not any("Budget" in finding.message for finding in found)


def test_a_scale_that_goes_is_breaking_where_a_budget_counts_on_it() -> None:
    scale = {"scale": {"specReplicasPath": ".spec.a", "statusReplicasPath": ".status.a"}}
    old, new = version(properties={"a": SIZES}, subresources=scale), version(properties={"a": SIZES})
    there = listed(belonging("Pod", KEPT, controller=True, app="one"), budget({}, maxUnavailable=1))
    given = scene(crd(old), crd(new), order(a=1), lists=there)
    assert {BUDGETS, PODS} <= set(listings(given, [crds.OBJECTS_CHECK]))
    found = one_of(given, "CRD-31")
    assert found.severity is Severity.BREAKING
    assert "PodDisruptionBudget shop/keep" in found.message
    unread = scene(crd(old), crd(new), order(a=1), lists={BUDGETS: Listed(total=None, problem="forbidden")})
    assert "whether an autoscaler or disruption budget uses it is not known" in one_of(unread, "CRD-31").message


def test_what_the_objects_of_a_kind_that_goes_own_is_counted() -> None:
    found = removal(belonging("Deployment", KEPT), belonging("Service", OLD))
    assert [finding.message.split(":")[0] for finding in found] == [
        "1 Deployment, 1 Service belong to objects of Order, whose definition goes"
    ]


@pytest.mark.parametrize(
    ("kinds", "problem", "variant", "words"),
    [
        (
            slice(3),
            "forbidden",
            "budgets-not-checked",
            "3 kinds (PersistentVolumeClaim, Pod, Service), and so the pods",
        ),
        (slice(1, 2), "", "owned-not-checked", "was not fully checked: there are more than are read"),
    ],
    ids=["pods", "no pods"],
)
def test_kinds_that_nobody_may_list_are_unknown_together(kinds: slice, problem: str, variant: str, words: str) -> None:
    forbidden = {one: Listed(total=None, problem=problem) for one in OWNED[kinds]}
    given = without_v1beta1(budget({}, maxUnavailable=1))
    given = replace(given, around=replace(given.around, lists={**given.around.lists, **forbidden}))
    (found,) = of_live_05(given)
    assert (found.severity, found.variant) == (Severity.UNKNOWN, variant)
    assert words in found.message


def test_nothing_is_read_where_no_version_and_no_scale_goes() -> None:
    given = scene(crd(props(a=TEXT, b=TEXT)), crd(props(a=TEXT)), order(a="x"))
    assert set(listings(given, [crds.OBJECTS_CHECK])).isdisjoint(DEPENDENTS)
