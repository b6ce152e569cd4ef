"""Webhooks that no longer see, or no longer refuse, what they did."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.checks.governance import admission
from provisioner.values import Action, Finding
from tests.support.provisioner.contents import an_object, findings_of, named, planned

GROUP = "admissionregistration.k8s.io"
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


def found_by(before: list[dict[str, Any]], after: list[dict[str, Any]], **rest: Any) -> list[Finding]:
    old, new = configuration(*before, **rest), configuration(*after, **rest)
    return named(findings_of(admission.WEAKER_WEBHOOKS_CHECK, planned(new, Action.UPDATE, before=old)), "WH-13")


SELECTOR = {"matchLabels": {"guarded": "yes"}}
CONDITION = [{"name": "x", "expression": "request.userInfo.username != 'ada'"}]
DANGEROUS, NOTABLE = ["dangerous"], ["notable"]


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
        ({}, {"namespaceSelector": SELECTOR}, DANGEROUS, "in namespaces that its namespaceSelector leaves out"),
        ({}, {"objectSelector": SELECTOR}, DANGEROUS, "of objects that its objectSelector leaves out"),
        ({"objectSelector": SELECTOR}, {}, [], ""),
        ({}, {"excludeResourceRules": [rule("CREATE")]}, DANGEROUS, "leaves out CREATE deployments.apps"),
        ({}, {"matchConditions": CONDITION}, DANGEROUS, "under conditions which were not there"),
        (
            {"matchConditions": [{"name": "x", "expression": "1"}]},
            {"matchConditions": CONDITION},
            DANGEROUS,
            "of others",
        ),
        ({"matchConditions": CONDITION}, {}, [], ""),
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
    found = found_by([webhook(**before)], [webhook(**after)])
    assert [str(one.severity) for one in found] == expected
    assert any(words in one.message for one in found) == bool(expected)


def test_a_webhook_that_is_gone_is_told_unless_another_one_stands_for_it() -> None:
    one, other = webhook("a.example.com"), webhook("b.example.com")
    (gone,) = found_by([one, other], [one])
    assert "The webhook b.example.com" in gone.message
    assert "is no longer there" in gone.message
    assert found_by([one], [other]) == []
    assert len(found_by([one], [webhook("b.example.com", rules=[rule("CREATE")])])) == 1


def test_what_holds_for_several_webhooks_of_a_configuration_is_said_once() -> None:
    names = ["a.example.com", "b.example.com", "c.example.com"]
    (one,) = found_by([webhook(it) for it in names], [webhook(it, failurePolicy="Ignore") for it in names])
    assert one.message.startswith("Each of the webhooks a.example.com, b.example.com, c.example.com of Validating")
    assert one.path == ("webhooks",)


def test_mutating_ones_and_configurations_that_are_taken_over_are_looked_at_too() -> None:
    old, new = (
        configuration(webhook(failurePolicy=policy), kind="MutatingWebhookConfiguration")
        for policy in ("Fail", "Ignore")
    )
    found = findings_of(admission.WEAKER_WEBHOOKS_CHECK, planned(new, Action.ADOPT, before=old))
    assert [str(one.severity) for one in named(found, "WH-13")] == ["dangerous"]


def test_another_path_of_the_bundles_own_server_is_told_where_no_answer_means_yes() -> None:
    """While no answer means no, the program that comes with the bundle decides as it did before."""
    service = planned(an_object("v1", "Service", "guard", "shop"), Action.NONE)
    for policy, expected in (("Fail", []), ("Ignore", ["notable"])):
        old, new = (
            configuration(webhook(failurePolicy=policy, clientConfig={"service": {**SERVICE, "path": path}}))
            for path in ("/v1beta1", "/v1")
        )
        found = findings_of(admission.WEAKER_WEBHOOKS_CHECK, service, planned(new, Action.UPDATE, before=old))
        assert [str(one.severity) for one in named(found, "WH-13")] == expected
