"""What else in the cluster counts on a custom resource definition that is deleted (LIV-05)."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.checks import live
from provisioner.review.facts import Listed, Surroundings
from provisioner.values import Action, Finding, ObjectRef, Severity
from tests.provisioner.review.bundles import an_object, facts, planned
from tests.provisioner.review.test_live import GROUP, HPA, TEXT, crd, found_by, props


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
        for one in (*live.AUTOSCALERS, *live.SEEKERS)
        for found in [tuple(obj for obj in there if obj["kind"] == one.kind)]
    }
    actions = [planned(obj, Action.DELETE, before=obj) for obj in (old, *also)]
    roles = tuple(obj for obj in there if obj["kind"] == "ClusterRole")
    around = Surroundings(lists=lists)
    given = facts(*actions, live={ObjectRef.of(old).identity: old}, live_rbac=roles, around=around)
    return [one for one in found_by(given) if one.rule == "LIV-05"]


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
    around = Surroundings(lists={HPA: Listed(total=None, problem="forbidden")})
    given = facts(planned(old, Action.DELETE, before=old), live={ObjectRef.of(old).identity: old}, around=around)
    (found,) = [one for one in found_by(given) if one.rule == "LIV-05"]
    assert found.severity is Severity.UNKNOWN
