"""Policies and webhooks that become weaker or narrower."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.checks.governance import admission
from provisioner.values import Action, Finding
from tests.support.provisioner.contents import an_object, config_map, findings_of, named, planned

GROUP = "admissionregistration.k8s.io"
RULE = {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"], "operations": ["CREATE", "UPDATE"]}
FEW, MANY = {"expression": "object.spec.replicas <= 5"}, {"expression": "object.spec.replicas <= 500"}
CONDITION = {"name": "x", "expression": "request.userInfo.username != 'ada'"}
SELECTOR = {"matchLabels": {"limited": "yes"}}
DANGEROUS, NOTABLE = ["dangerous"], ["notable"]


def policy(kind: str = "ValidatingAdmissionPolicy", **spec: Any) -> dict[str, Any]:
    found = {"matchConstraints": {"resourceRules": [RULE]}, "validations": [FEW], **spec}
    return an_object(f"{GROUP}/v1", kind, "limits", spec=found)


def matching(**constraints: Any) -> dict[str, Any]:
    return {"matchConstraints": {"resourceRules": [RULE], **constraints}}


def binding(**spec: Any) -> dict[str, Any]:
    found = {"policyName": "limits", "validationActions": ["Deny"], **spec}
    return an_object(f"{GROUP}/v1", "ValidatingAdmissionPolicyBinding", "limits", spec=found)


def find_weaker_policies(before: dict[str, Any], after: dict[str, Any]) -> list[Finding]:
    return named(findings_of(admission.WEAKER_POLICIES_CHECK, planned(after, Action.UPDATE, before=before)), "WH-14")


def severities(found: list[Finding]) -> list[str]:
    return [str(finding.severity) for finding in found]


@pytest.mark.parametrize(
    ("before", "after", "expected", "words"),
    [
        ({}, {"failurePolicy": "Ignore"}, DANGEROUS, "lets pass what it cannot judge"),
        ({"failurePolicy": "Ignore"}, {}, NOTABLE, "now refuses what it cannot judge"),
        ({}, {"failurePolicy": "Fail"}, [], ""),
        ({}, matching(resourceRules=[{**RULE, "operations": ["CREATE"]}]), DANGEROUS, "UPDATE deployments.apps"),
        ({}, matching(resourceRules=[{**RULE, "resourceNames": ["web"]}]), DANGEROUS, "CREATE deployments.apps"),
        ({}, matching(excludeResourceRules=[RULE]), DANGEROUS, "leaves out CREATE deployments.apps"),
        ({}, matching(namespaceSelector=SELECTOR), DANGEROUS, "namespaceSelector leaves out"),
        ({}, matching(objectSelector=SELECTOR), DANGEROUS, "objectSelector leaves out"),
        ({}, matching(matchPolicy="Exact"), DANGEROUS, "other versions"),
        (matching(namespaceSelector=SELECTOR), {}, NOTABLE, "more than before"),
        ({}, {"matchConditions": [CONDITION]}, DANGEROUS, "conditions which were not there"),
        (
            {"matchConditions": [CONDITION]},
            {"matchConditions": [{**CONDITION, "expression": "false"}]},
            DANGEROUS,
            "conditions in the place of others",
        ),
        ({"matchConditions": [CONDITION]}, {}, NOTABLE, "conditions are gone"),
        ({}, {"validations": [MANY]}, DANGEROUS, "1 validation was changed"),
        ({"validations": [FEW, MANY]}, {"validations": [MANY]}, DANGEROUS, "1 validation was removed"),
        ({}, {"validations": [FEW, MANY]}, NOTABLE, "may refuse more"),
        ({}, {"validations": [{**FEW, "message": "too many"}]}, [], ""),
        (
            {"variables": [{"name": "most", "expression": "5"}]},
            {"variables": [{"name": "most", "expression": "500"}]},
            DANGEROUS,
            "by its variables most",
        ),
        ({"mutations": [{"patchType": "JSONPatch"}]}, {}, DANGEROUS, "no longer changes objects as it did"),
        ({}, {"mutations": [{"patchType": "JSONPatch"}]}, NOTABLE, "changes more"),
        ({}, {"paramKind": {"kind": "ConfigMap", "apiVersion": "v1"}}, NOTABLE, "from another kind"),
        ({"auditAnnotations": [{"key": "a"}]}, {}, NOTABLE, "audit log"),
        ({}, {"reinvocationPolicy": "IfNeeded"}, NOTABLE, "is asked again, or no longer"),
    ],
)
def test_a_policy_that_becomes_weaker_says_what_passes(
    before: dict[str, Any], after: dict[str, Any], expected: list[str], words: str
) -> None:
    found = find_weaker_policies(policy(**before), policy(**after))
    assert severities(found) == expected
    assert any(words in finding.message for finding in found) == bool(expected)
    assert (
        severities(find_weaker_policies(*(policy("MutatingAdmissionPolicy", **side) for side in (before, after))))
        == expected
    )


PARAMETERS = {"paramRef": {"name": "settings", "parameterNotFoundAction": "Deny"}}


@pytest.mark.parametrize(
    ("before", "after", "expected", "words"),
    [
        ({}, {"validationActions": ["Audit", "Warn"]}, DANGEROUS, "only answered by Audit and Warn"),
        ({"validationActions": ["Warn"]}, {"validationActions": ["Deny"]}, NOTABLE, "now refuses what fails"),
        ({"validationActions": ["Warn"]}, {"validationActions": ["Audit"]}, NOTABLE, "by Audit instead of Warn"),
        ({"validationActions": ["Warn"]}, {"validationActions": []}, NOTABLE, "by nothing instead of Warn"),
        ({"validationActions": []}, {"validationActions": ["Audit"]}, NOTABLE, "by Audit instead of nothing"),
        ({}, {"validationActions": []}, DANGEROUS, "what fails the policy is done"),
        ({"validationActions": ["Deny", "Audit"]}, {"validationActions": ["Audit", "Deny"]}, [], ""),
        ({}, {"policyName": "nothing"}, DANGEROUS, "the policy nothing into force and no longer limits"),
        ({}, {"matchResources": {"resourceRules": [RULE]}}, DANGEROUS, "no longer asked about"),
        ({"matchResources": {"resourceRules": [RULE]}}, {}, NOTABLE, "more than before"),
        ({}, {"matchResources": {"namespaceSelector": SELECTOR}}, DANGEROUS, "namespaceSelector leaves out"),
        (
            PARAMETERS,
            {"paramRef": {"name": "settings", "parameterNotFoundAction": "Allow"}},
            DANGEROUS,
            "where its parameters are not found",
        ),
        (
            {"paramRef": {"name": "settings", "parameterNotFoundAction": "Allow"}},
            PARAMETERS,
            NOTABLE,
            "now refuses what it matches",
        ),
        (
            PARAMETERS,
            {"paramRef": {"name": "lax", "parameterNotFoundAction": "Deny"}},
            DANGEROUS,
            "takes other parameters",
        ),
    ],
)
def test_a_binding_that_becomes_weaker_says_what_passes(
    before: dict[str, Any], after: dict[str, Any], expected: list[str], words: str
) -> None:
    found = find_weaker_policies(binding(**before), binding(**after))
    assert severities(found) == expected
    assert any(words in finding.message for finding in found) == bool(expected)


def test_an_object_that_holds_the_parameters_of_a_policy_decides_what_passes() -> None:
    takes = policy(paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
    bound = binding(paramRef={"name": "settings", "namespace": "shop", "parameterNotFoundAction": "Deny"})
    kept = [planned(one, Action.NONE, before=one) for one in (takes, bound)]
    edited = planned(config_map(most="500"), Action.UPDATE, before=config_map(most="5"))
    other = planned(config_map("other", most="500"), Action.UPDATE, before=config_map("other", most="5"))
    (one,) = named(findings_of(admission.WEAKER_POLICIES_CHECK, *kept, edited, other), "WH-14")
    assert one.message.startswith("Changes ConfigMap shop/settings, from which ValidatingAdmissionPolicyBinding limits")
    deleted = planned(config_map(most="5"), Action.DELETE, before=config_map(most="5"))
    (one,) = named(findings_of(admission.WEAKER_POLICIES_CHECK, *kept, deleted), "WH-14")
    assert one.variant == "parameters-deleted"


def test_a_new_binding_puts_its_policy_into_force() -> None:
    made = [planned(policy(), Action.CREATE), planned(binding(), Action.CREATE)]
    (one,) = named(findings_of(admission.WEAKER_POLICIES_CHECK, *made), "WH-14")
    assert str(one.severity) == "notable"
    assert "puts the policy limits into force: what fails it is refused" in one.message
    mutating = an_object(f"{GROUP}/v1", "MutatingAdmissionPolicyBinding", "limits", spec={"policyName": "limits"})
    (one,) = named(findings_of(admission.WEAKER_POLICIES_CHECK, planned(mutating, Action.CREATE)), "WH-14")
    assert one.variant == "in-force-changing"
    only_warns = planned(binding(validationActions=["Warn", "Audit"]), Action.CREATE)
    assert named(findings_of(admission.WEAKER_POLICIES_CHECK, made[0], only_warns), "WH-14") == []


SERVICE = {"namespace": "shop", "name": "guard", "path": "/check"}


def rule(*operations: str, group: str = "apps", version: str = "v1", resources: str = "deployments") -> dict[str, Any]:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "resources": resources.split(),
        "operations": list(operations) or ["*"],
    }


def webhook(name: str = "a.example.com", **body: Any) -> dict[str, Any]:
    found = {"name": name, "rules": [rule()], "failurePolicy": "Fail", "sideEffects": "None", "timeoutSeconds": 10}
    return {**found, "clientConfig": {"service": SERVICE}, **body}


def configuration(*listed: dict[str, Any], kind: str = "ValidatingWebhookConfiguration") -> dict[str, Any]:
    return an_object(f"{GROUP}/v1", kind, "guard", webhooks=list(listed))


def find_weaker_webhooks(before: list[dict[str, Any]], after: list[dict[str, Any]], **rest: Any) -> list[Finding]:
    old, new = configuration(*before, **rest), configuration(*after, **rest)
    return named(findings_of(admission.WEAKER_WEBHOOKS_CHECK, planned(new, Action.UPDATE, before=old)), "WH-13")


GUARDED = {"matchLabels": {"guarded": "yes"}}
CONDITIONS = [{"name": "x", "expression": "request.userInfo.username != 'ada'"}]


@pytest.mark.parametrize(
    ("before", "after", "expected", "words"),
    [
        ({}, {"failurePolicy": "Ignore"}, DANGEROUS, "while it is down"),
        ({"failurePolicy": "Ignore"}, {}, [], ""),
        ({}, {"rules": [rule("CREATE")]}, DANGEROUS, "CONNECT deployments.apps, DELETE deployments.apps, UPDATE"),
        ({}, {"rules": [rule(resources="deployments daemonsets")]}, [], ""),
        ({"rules": [rule(resources="*")]}, {}, DANGEROUS, "CREATE *.apps"),
        ({"rules": [rule(group="extensions")]}, {}, [], ""),
        ({"rules": [rule(version="v1beta1")]}, {}, [], ""),
        ({"rules": [rule(version="v1beta1")]}, {"matchPolicy": "Exact"}, ["dangerous"] * 2, "CREATE deployments.apps"),
        ({}, {"namespaceSelector": GUARDED}, DANGEROUS, "in namespaces that its namespaceSelector leaves out"),
        ({}, {"objectSelector": GUARDED}, DANGEROUS, "of objects that its objectSelector leaves out"),
        ({"objectSelector": GUARDED}, {}, [], ""),
        ({}, {"excludeResourceRules": [rule("CREATE")]}, DANGEROUS, "leaves out CREATE deployments.apps"),
        ({}, {"matchConditions": CONDITIONS}, DANGEROUS, "under conditions which were not there"),
        (
            {"matchConditions": [{"name": "x", "expression": "1"}]},
            {"matchConditions": CONDITIONS},
            DANGEROUS,
            "of others",
        ),
        ({"matchConditions": CONDITIONS}, {}, [], ""),
        ({}, {"clientConfig": {"service": {**SERVICE, "name": "other"}}}, DANGEROUS, "answered by another server"),
        ({}, {"clientConfig": {"url": "https://x.example.com"}}, DANGEROUS, "answered by another server"),
        (
            {},
            {"clientConfig": {"service": {**SERVICE, "path": "/ok"}}},
            NOTABLE,
            "is asked at /ok and no longer at /check",
        ),
        ({}, {"clientConfig": {"service": {**SERVICE, "port": 443}}}, [], ""),
        ({}, {"timeoutSeconds": 1}, NOTABLE, "1 instead of 10 seconds to answer: what would wait longer is refused"),
        ({}, {"timeoutSeconds": 20}, [], ""),
        ({}, {"sideEffects": "NoneOnDryRun"}, NOTABLE, "which decides what dry runs do"),
        ({"reinvocationPolicy": "IfNeeded"}, {"reinvocationPolicy": "Never"}, NOTABLE, "not asked again"),
    ],
)
def test_a_webhook_that_becomes_weaker_says_what_passes(
    before: dict[str, Any], after: dict[str, Any], expected: list[str], words: str
) -> None:
    found = find_weaker_webhooks([webhook(**before)], [webhook(**after)])
    assert [str(finding.severity) for finding in found] == expected
    assert any(words in finding.message for finding in found) == bool(expected)


def test_a_webhook_that_is_gone_is_told_unless_another_one_stands_for_it() -> None:
    one, other = webhook("a.example.com"), webhook("b.example.com")
    (gone,) = find_weaker_webhooks([one, other], [one])
    assert "The webhook b.example.com" in gone.message
    assert "is no longer there" in gone.message
    assert find_weaker_webhooks([one], [other]) == []
    assert len(find_weaker_webhooks([one], [webhook("b.example.com", rules=[rule("CREATE")])])) == 1


def test_what_holds_for_several_webhooks_of_a_configuration_is_said_once() -> None:
    names = ["a.example.com", "b.example.com", "c.example.com"]
    (one,) = find_weaker_webhooks([webhook(it) for it in names], [webhook(it, failurePolicy="Ignore") for it in names])
    assert one.message.startswith("Each of the webhooks a.example.com, b.example.com, c.example.com of Validating")
    assert one.path == ("webhooks",)


def test_mutating_ones_and_configurations_that_are_taken_over_are_looked_at_too() -> None:
    old, new = (
        configuration(webhook(failurePolicy=policy), kind="MutatingWebhookConfiguration")
        for policy in ("Fail", "Ignore")
    )
    found = findings_of(admission.WEAKER_WEBHOOKS_CHECK, planned(new, Action.ADOPT, before=old))
    assert [str(finding.severity) for finding in named(found, "WH-13")] == ["dangerous"]


def test_another_path_of_the_bundles_own_server_is_told_where_no_answer_means_yes() -> None:
    """While no answer means no, the program that comes with the bundle decides as it did before."""
    service = planned(an_object("v1", "Service", "guard", "shop"), Action.NONE)
    for policy, expected in (("Fail", []), ("Ignore", ["notable"])):
        old, new = (
            configuration(webhook(failurePolicy=policy, clientConfig={"service": {**SERVICE, "path": path}}))
            for path in ("/v1beta1", "/v1")
        )
        found = findings_of(admission.WEAKER_WEBHOOKS_CHECK, service, planned(new, Action.UPDATE, before=old))
        assert [str(finding.severity) for finding in named(found, "WH-13")] == expected
