"""A field that a check of traffic or governance claims is told when it changes, by the rule that claims it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from provisioner.review.base.claims import Claims
from provisioner.review.base.facts import Check
from provisioner.review.checks.governance import limit_ranges, quotas, weaker_policies, weaker_webhooks
from provisioner.review.checks.traffic import controllers, elsewhere, selectors
from provisioner.review.checks.traffic.annotation_table import ANNOTATIONS
from provisioner.values import Action, GroupKind, ObjectRef
from tests.support.provisioner.contents import an_object, content_with, findings_of, planned

CHECKS = (selectors, elsewhere, controllers, weaker_webhooks, weaker_policies, quotas, limit_ranges)
GROUP = "admissionregistration.k8s.io"
WORKLOAD = an_object(
    "apps/v1",
    "Deployment",
    "web",
    "shop",
    spec={
        "template": {
            "metadata": {"labels": {"app": "web", "tier": "front"}},
            "spec": {"containers": [{"name": "main"}]},
        }
    },
)
SELECTOR = {"matchLabels": {"a": "b"}}
RULES = [{"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"], "operations": ["CREATE"]}]
CONDITION = [{"name": "x", "expression": "true"}]
SERVICE = an_object("v1", "Service", "web", "shop", spec={"selector": {"app": "web"}})
OUTSIDE = an_object("v1", "Service", "web", "shop", spec={"type": "ExternalName", "externalName": "a.org"})
HELD = an_object(
    "networking.k8s.io/v1", "NetworkPolicy", "web", "shop", spec={"podSelector": {"matchLabels": {"app": "web"}}}
)
ADDRESS = {"addresses": [{"ip": "10.0.0.1"}], "notReadyAddresses": [{"ip": "10.0.0.2"}]}
ENDPOINTS = an_object(
    "v1", "Endpoints", "web", "shop", subsets=[{**ADDRESS, "ports": [{"port": 1, "protocol": "TCP"}]}]
)
SLICE = {
    **an_object("discovery.k8s.io/v1", "EndpointSlice", "web", "shop"),
    "endpoints": [{"addresses": ["10.0.0.1"]}],
    "ports": [{"port": 1, "protocol": "TCP"}],
}
SLICE["metadata"]["labels"] = {"kubernetes.io/service-name": "web"}
WEBHOOK = {
    "name": "a.example.com",
    "clientConfig": {"service": {"namespace": "shop", "name": "web"}, "url": "https://a.org"},
    "rules": RULES,
    "sideEffects": "None",
}
POLICY = {"matchConstraints": {"resourceRules": RULES}, "validations": [{"expression": "true"}]}
POLICY |= {"variables": [{"name": "x", "expression": "1"}], "mutations": [{"patchType": "JSONPatch"}]}
BINDING = {"policyName": "limits", "validationActions": ["Deny"], "paramRef": {"name": "x"}}
LIMITS = [{"type": "Container", "default": {"cpu": "1"}}]
SAMPLES: dict[str, dict[str, Any]] = {
    "Service": SERVICE,
    "ExternalName": OUTSIDE,
    "NetworkPolicy": HELD,
    "Endpoints": ENDPOINTS,
    "EndpointSlice": SLICE,
    "ValidatingWebhookConfiguration": an_object(
        f"{GROUP}/v1", "ValidatingWebhookConfiguration", "web", webhooks=[WEBHOOK]
    ),
    "ValidatingAdmissionPolicy": an_object(f"{GROUP}/v1", "ValidatingAdmissionPolicy", "web", spec=POLICY),
    "ValidatingAdmissionPolicyBinding": an_object(
        f"{GROUP}/v1", "ValidatingAdmissionPolicyBinding", "web", spec=BINDING
    ),
    "ResourceQuota": an_object("v1", "ResourceQuota", "web", "shop", spec={"hard": {"pods": "9"}}),
    "LimitRange": an_object("v1", "LimitRange", "web", "shop", spec={"limits": LIMITS}),
}


def with_field(obj: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy in which the field is `value`, or gone where that is None."""
    made = copy.deepcopy(obj)
    held: Any = made
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(" ")]
    for part in parents:
        held = held[part] if isinstance(held, list) else held.setdefault(part, {})
    if value is None:
        held.pop(last, None)
    else:
        held[last] = value
    return made


CHANGES = [
    ("Service", "spec selector", {"tier": "front"}),
    ("Service", "spec selector", None),
    ("ExternalName", "spec externalName", "b.org"),
    ("NetworkPolicy", "spec podSelector", {"matchLabels": {"app": "x"}}),
    ("Endpoints", "subsets 0 addresses 0 ip", "10.0.0.9"),
    ("Endpoints", "subsets 0 notReadyAddresses 0 ip", "10.0.0.9"),
    ("Endpoints", "subsets 0 ports 0 port", 2),
    ("Endpoints", "subsets 0 ports 0 protocol", "UDP"),
    ("EndpointSlice", "endpoints 0 addresses", ["10.0.0.9"]),
    ("EndpointSlice", "ports 0 port", 2),
    ("EndpointSlice", "ports 0 protocol", "UDP"),
    ("EndpointSlice", "metadata labels kubernetes.io/service-name", "other"),
    ("EndpointSlice", "metadata labels kubernetes.io/service-name", None),
    ("ValidatingWebhookConfiguration", "webhooks 0 clientConfig service", {"namespace": "shop", "name": "x"}),
    ("ValidatingWebhookConfiguration", "webhooks 0 clientConfig url", "https://b.org"),
    ("ValidatingWebhookConfiguration", "webhooks 0 failurePolicy", "Ignore"),
    ("ValidatingWebhookConfiguration", "webhooks 0 matchConditions", CONDITION),
    ("ValidatingWebhookConfiguration", "webhooks 0 matchPolicy", "Exact"),
    ("ValidatingWebhookConfiguration", "webhooks 0 namespaceSelector", SELECTOR),
    ("ValidatingWebhookConfiguration", "webhooks 0 objectSelector", SELECTOR),
    ("ValidatingWebhookConfiguration", "webhooks 0 rules", []),
    ("ValidatingWebhookConfiguration", "webhooks 0 sideEffects", "NoneOnDryRun"),
    ("ValidatingWebhookConfiguration", "webhooks 0 timeoutSeconds", 1),
    ("ValidatingAdmissionPolicy", "spec auditAnnotations", [{"key": "x"}]),
    ("ValidatingAdmissionPolicy", "spec failurePolicy", "Ignore"),
    ("ValidatingAdmissionPolicy", "spec matchConditions", CONDITION),
    ("ValidatingAdmissionPolicy", "spec matchConstraints", {"resourceRules": []}),
    ("ValidatingAdmissionPolicy", "spec matchConstraints", None),
    ("ValidatingAdmissionPolicy", "spec mutations", []),
    ("ValidatingAdmissionPolicy", "spec paramKind", {"kind": "X"}),
    ("ValidatingAdmissionPolicy", "spec reinvocationPolicy", "Never"),
    ("ValidatingAdmissionPolicy", "spec validations 0 expression", "false"),
    ("ValidatingAdmissionPolicy", "spec validations", None),
    ("ValidatingAdmissionPolicy", "spec variables", None),
    ("ValidatingAdmissionPolicyBinding", "spec matchResources", {"objectSelector": SELECTOR}),
    ("ValidatingAdmissionPolicyBinding", "spec paramRef", None),
    ("ValidatingAdmissionPolicyBinding", "spec paramRef name", "y"),
    ("ValidatingAdmissionPolicyBinding", "spec policyName", "x"),
    ("ValidatingAdmissionPolicyBinding", "spec validationActions", ["Warn"]),
    ("ResourceQuota", "spec hard", {"pods": "8"}),
    ("ResourceQuota", "spec hard", None),
    ("ResourceQuota", "spec scopes", ["BestEffort"]),
    ("ResourceQuota", "spec scopeSelector", {"matchExpressions": []}),
    ("LimitRange", "spec limits", [{**LIMITS[0], "default": {"cpu": "2"}}]),
    ("LimitRange", "spec limits", []),
]


def told(before: dict[str, Any], after: dict[str, Any], check: Check) -> set[str]:
    workload = planned(WORKLOAD, Action.NONE, before=WORKLOAD)
    previous = content_with(WORKLOAD, before)
    found = findings_of(check, workload, planned(after, Action.UPDATE, before=before), previous=previous)
    return {one.rule for one in found}


@pytest.mark.parametrize(("sample", "path", "value"), CHANGES, ids=[f"{one} {path} {v}" for one, path, v in CHANGES])
def test_a_claimed_field_that_changes_is_told(sample: str, path: str, value: Any) -> None:
    before = SAMPLES[sample]
    after = with_field(before, path, value)
    kind = ObjectRef.of(before).group_kind
    parts = tuple(int(part) if part.isdigit() else part for part in path.split(" "))
    deeper = (*parts, 0, "expression") if parts[-1] == "validations" else parts
    judges = {one.CHECK: rule for one in CHECKS if (rule := Claims(one.CHECK.claims).judge_of(kind, deeper))}
    assert judges
    for check, rule in judges.items():
        assert rule in told(before, after, check)


def test_each_path_that_is_claimed_has_a_change_here() -> None:
    tried = {(ObjectRef.of(SAMPLES[one]).group_kind, _pattern(path)) for one, path, _ in CHANGES}
    claimed = {
        (kind, path.replace("[", "").replace("]", ""))
        for one in CHECKS
        if one is not controllers
        for claim in one.CHECK.claims
        for kind in claim.kinds
        for path in claim.paths
    }
    left = {one for one in claimed if one[0] in {kind for kind, _ in tried}} - tried
    # A webhook is known by its name: another name is another webhook. `reinvocationPolicy` is one of mutating ones, and
    # no slice changes the kind of its addresses.
    webhooks = GroupKind(GROUP, "ValidatingWebhookConfiguration")
    slices = GroupKind("discovery.k8s.io", "EndpointSlice")
    expected = {(webhooks, "webhooks.*.name"), (webhooks, "webhooks.*.reinvocationPolicy"), (slices, "addressType")}
    assert left == expected


def _pattern(path: str) -> str:
    return ".".join("*" if part.isdigit() else part for part in path.split(" "))


def test_each_annotation_of_the_table_is_claimed_and_told_when_it_changes_and_when_it_goes() -> None:
    claims = Claims(controllers.CHECK.claims)
    for one in ANNOTATIONS:
        name = one.name.replace("*", "x")
        ingress = an_object("networking.k8s.io/v1", "Ingress", "web", "shop")
        before, after = (
            with_field(ingress, f"metadata annotations {name}", value) for value in ("10.0.0.0/8", "192.0.2.0/24")
        )
        judge = claims.judge_of(ObjectRef.of(ingress).group_kind, ("metadata", "annotations", name))
        assert told(before, after, controllers.CHECK) >= {judge}, one.name
        if not one.default:
            assert told(before, ingress, controllers.CHECK) >= {judge}, one.name
