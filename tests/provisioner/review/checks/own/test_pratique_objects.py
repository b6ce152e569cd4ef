"""Admission that changes what runs in our namespaces, or sees the Secrets there, is for people."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.base.facts import ClusterSurroundings, Facts, Listed
from provisioner.review.checks.own import pratique_objects
from provisioner.review.checks.own.power import ADVICE
from provisioner.review.checks.own.pratique_objects import NAMESPACES
from provisioner.values import Action, Finding
from tests.provisioner.review.checks.own.findings import find_standing
from tests.support.provisioner.contents import an_object, facts, planned

NAME = "kubernetes.io/metadata.name"
ADMISSION = "admissionregistration.k8s.io"
ENFORCED = {"pod-security.kubernetes.io/enforce": "restricted"}


def rules(resource: str, group: str = "", operations: str = "*") -> dict[str, Any]:
    return {"apiGroups": [group], "apiVersions": ["*"], "operations": [operations], "resources": [resource]}


def webhook(kind: str, *entries: dict[str, Any], selector: dict[str, Any] | None = None) -> dict[str, Any]:
    hook = {"name": "x.example.com", "rules": list(entries), "namespaceSelector": selector}
    return {**an_object(f"{ADMISSION}/v1", f"{kind}WebhookConfiguration", "x"), "webhooks": [hook]}


def policy(*entries: dict[str, Any], selector: dict[str, Any] | None = None) -> dict[str, Any]:
    limits = {"resourceRules": list(entries), "namespaceSelector": selector}
    return an_object(f"{ADMISSION}/v1", "MutatingAdmissionPolicy", "x", spec={"matchConstraints": limits})


def namespace(name: str, labels: dict[str, str]) -> dict[str, Any]:
    return {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name, "labels": labels}}


def made(obj: dict[str, Any], *live: dict[str, Any], is_read: bool = True) -> Facts:
    listed = Listed(live, len(live)) if is_read else Listed(problem="forbidden", total=None)
    return facts(planned(obj, Action.CREATE), live_rbac=(), around=ClusterSurroundings(lists={NAMESPACES: listed}))


def found(given: Facts) -> list[Finding]:
    return [finding for finding in find_standing(given.state()) if finding.rule == "OWN-PRATIQUE-06"]


REACHING = {
    "pods": webhook("Mutating", rules("pods")),
    "by a wildcard": webhook("Mutating", rules("*", "*")),
    "with subresources": webhook("Mutating", rules("*/*", "*")),
    "ephemeral containers": webhook("Mutating", rules("pods/*")),
    "deployments": webhook("Mutating", rules("deployments", "apps")),
    "jobs": webhook("Mutating", rules("jobs", "batch")),
    "Secrets": webhook("Mutating", rules("secrets", operations="CREATE")),
    "accounts": webhook("Mutating", rules("serviceaccounts")),
    "sees Secrets": webhook("Validating", rules("secrets")),
    "a policy": policy(rules("pods")),
    "spares kube-system only": webhook(
        "Mutating",
        rules("pods"),
        selector={"matchExpressions": [{"key": NAME, "operator": "NotIn", "values": ["kube-system"]}]},
    ),
    "where traffic goes": webhook("Mutating", rules("services")),
    "who may be met": webhook("Mutating", rules("networkpolicies", "networking.k8s.io")),
    "by a label that our namespace has": webhook("Mutating", rules("pods"), selector={"matchLabels": ENFORCED}),
    "by an objectSelector, which a label fits": {
        **webhook("Mutating", rules("pods")),
        "webhooks": [{"name": "x", "rules": [rules("pods")], "objectSelector": {"matchLabels": {"a": "b"}}}],
    },
}


@pytest.mark.parametrize("way", REACHING)
def test_S22_admission_that_reaches_into_our_namespaces_is_said(way: str) -> None:
    (one,) = found(made(REACHING[way], namespace("pratique", ENFORCED), namespace("kube-system", {})))
    assert one.severity == "critical"
    assert "pratique" in one.message
    assert "NotIn" in one.evidence[ADVICE]


SPARING = {
    "leaves both out": webhook(
        "Mutating",
        rules("pods"),
        selector={"matchExpressions": [{"key": NAME, "operator": "NotIn", "values": ["pratique", "kube-system"]}]},
    ),
    "asks for a label that ours have not": webhook(
        "Mutating", rules("pods"), selector={"matchLabels": {"istio-injection": "enabled"}}
    ),
    "only refuses": webhook("Validating", rules("pods")),
    "its own kinds": webhook("Mutating", rules("widgets", "example.com")),
    "only deletions": webhook("Mutating", rules("pods", operations="DELETE")),
    "one namespace": policy(rules("pods"), selector={"matchLabels": {NAME: "shop"}}),
}


@pytest.mark.parametrize("way", SPARING)
def test_what_leaves_our_namespaces_alone_is_not(way: str) -> None:
    assert not found(made(SPARING[way], namespace("pratique", ENFORCED), namespace("kube-system", {})))


def test_S22_labels_that_nobody_could_read_may_be_those_that_are_asked_for() -> None:
    injector = SPARING["asks for a label that ours have not"]
    assert found(made(injector, is_read=False))
    assert not found(made(SPARING["one namespace"], is_read=False))


def test_S22_labels_that_the_bundle_puts_on_our_namespace_count() -> None:
    injector = SPARING["asks for a label that ours have not"]
    given = made(injector, namespace("kube-system", {}))
    labelled = namespace("pratique", {"istio-injection": "enabled"})
    both = facts(planned(injector, Action.CREATE), planned(labelled, Action.CREATE), around=given.around)
    assert found(both)


def test_the_labels_are_read_only_where_they_matter() -> None:
    assert list(pratique_objects.CHECK.lists(made(REACHING["pods"]))) == [NAMESPACES]
    assert not list(pratique_objects.CHECK.lists(made(an_object("v1", "ConfigMap", "x", "shop"))))
