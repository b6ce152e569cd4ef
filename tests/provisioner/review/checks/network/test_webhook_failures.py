"""What nobody can write while a webhook that fails closed is down."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.api_groups import ADMISSION_GROUP
from provisioner.review.checks.network import webhook_failures
from provisioner.values import Action, Finding, Severity
from tests.support.provisioner.contents import an_object, content_with, facts, judged_by, planned

ORDERS = ("shop.example.com", "orders")
DEPLOYMENTS = ("apps", "deployments")
NOT_HERE = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["shop"]}]}
ONLY_HERE = {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}
NOWHERE = {"matchLabels": {"guarded": "yes"}}
SERVICE = an_object("v1", "Service", "guard", "shop", spec={"selector": {"app": "guard"}})
WORKLOAD = an_object(
    "apps/v1", "Deployment", "guard", "shop", spec={"template": {"metadata": {"labels": {"app": "guard"}}}}
)


def webhook(
    kind: tuple[str, str], name: str = "a", operations: tuple[str, ...] = ("*",), **rest: Any
) -> dict[str, Any]:
    rule = {"apiGroups": [kind[0]], "apiVersions": ["v1"], "resources": [kind[1]], "operations": list(operations)}
    client = {"service": {"namespace": "shop", "name": "guard"}}
    return {"name": name, "rules": [rule], "clientConfig": client, "failurePolicy": "Fail", **rest}


def configuration(*webhooks: dict[str, Any]) -> dict[str, Any]:
    return an_object(f"{ADMISSION_GROUP}/v1", "ValidatingWebhookConfiguration", "guard", webhooks=list(webhooks))


def found_by(new: dict[str, Any], old: dict[str, Any] | None = None) -> list[Finding]:
    action = planned(new, Action.UPDATE if old else Action.CREATE, before=old)
    content, previous = content_with(new, SERVICE, WORKLOAD), content_with(old, SERVICE, WORKLOAD) if old else None
    found = judged_by(facts(action, content=content, previous=previous), [webhook_failures.FAIL_CLOSED_CHECK])
    return [finding for finding in found if finding.rule == "WH-12"]


@pytest.mark.parametrize(
    ("made", "severity", "sees_system", "own"),
    [
        pytest.param(webhook(ORDERS), Severity.NOTABLE, False, [], id="a kind of its own"),
        pytest.param(webhook(DEPLOYMENTS), Severity.DANGEROUS, True, ["Deployment shop/guard"], id="everywhere"),
        pytest.param(webhook(("", "namespaces")), Severity.NOTABLE, False, [], id="what is in no namespace"),
        pytest.param(
            webhook(("*", "*")), Severity.DANGEROUS, True, ["Deployment shop/guard"], id="everything everywhere"
        ),
        pytest.param(
            webhook(DEPLOYMENTS, namespaceSelector=NOT_HERE), Severity.DANGEROUS, True, [], id="not where it runs"
        ),
        pytest.param(
            webhook(DEPLOYMENTS, namespaceSelector=ONLY_HERE),
            Severity.DANGEROUS,
            False,
            ["Deployment shop/guard"],
            id="only where it runs",
        ),
        pytest.param(
            webhook(DEPLOYMENTS, namespaceSelector=NOWHERE), Severity.NOTABLE, False, [], id="namespaces with a label"
        ),
        pytest.param(
            webhook(DEPLOYMENTS, objectSelector={"matchLabels": {"guarded": "yes"}}),
            Severity.NOTABLE,
            False,
            [],
            id="objects with a label",
        ),
        pytest.param(
            webhook(DEPLOYMENTS, operations=("CREATE",), namespaceSelector=ONLY_HERE),
            Severity.NOTABLE,
            False,
            [],
            id="its workload can be changed, and not made anew",
        ),
    ],
)
def test_who_is_held_up_is_said(made: dict[str, Any], severity: Severity, sees_system: bool, own: list[str]) -> None:
    (found,) = found_by(configuration(made))
    assert (found.severity, found.evidence["seesSystem"], found.evidence["own"]) == (severity, sees_system, own)


def test_the_sentence_names_kinds_writes_and_limits() -> None:
    made = webhook(DEPLOYMENTS, operations=("CREATE", "UPDATE"), objectSelector={}, matchConditions=[{"name": "x"}])
    (found,) = found_by(configuration(made))
    assert found.message == (
        "While the webhook a is down (ValidatingWebhookConfiguration guard), nobody can create or change deployments.apps; "
        "those of the system in kube-system included, and its own Deployment shop/guard too, which cannot be changed to "
        "mend it, unless the matchConditions keep them out"
    )


def test_webhooks_of_one_configuration_are_said_together() -> None:
    (found,) = found_by(configuration(webhook(ORDERS), webhook(("shop.example.com", "bills"), "b")))
    assert "While 2 webhooks are down" in found.message
    assert found.evidence["kinds"] == ["orders.shop.example.com", "bills.shop.example.com"]


@pytest.mark.parametrize(
    ("old", "is_new"),
    [
        pytest.param(webhook(ORDERS), False, id="as it was"),
        pytest.param(webhook(ORDERS, failurePolicy="Ignore"), True, id="it let everything pass"),
        pytest.param(webhook(ORDERS, operations=("CREATE",)), True, id="it saw less"),
        pytest.param(webhook(("shop.example.com", "bills")), True, id="it saw something else"),
        pytest.param(webhook(("*", "*")), True, id="it saw everything, in other words"),
    ],
)
def test_what_fails_closed_now_or_sees_more_is_new(old: dict[str, Any], is_new: bool) -> None:
    assert [finding.is_new for finding in found_by(configuration(webhook(ORDERS)), configuration(old))] == [is_new]


def test_what_only_sees_less_is_not_new() -> None:
    both = configuration(webhook(ORDERS), webhook(("shop.example.com", "bills"), "b"))
    assert [finding.is_new for finding in found_by(configuration(webhook(ORDERS)), both)] == [False]


def test_its_own_workload_among_what_it_sees_is_new() -> None:
    old = configuration(webhook(DEPLOYMENTS, namespaceSelector=NOWHERE))
    assert [finding.is_new for finding in found_by(configuration(webhook(DEPLOYMENTS)), old)] == [True]


def test_what_lets_pass_while_it_is_down_holds_nobody_up() -> None:
    assert found_by(configuration(webhook(("*", "*"), failurePolicy="Ignore"))) == []
