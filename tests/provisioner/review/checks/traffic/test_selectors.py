"""Which pods Services lead to and network policies hold, before and after."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.checks.traffic import destinations
from provisioner.values import Action, Finding
from tests.support.provisioner.contents import an_object, content_with, findings_of, planned

Objects = list[dict[str, Any]]


def workload(name: str, **labels: str) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name, **labels}}, "spec": {"containers": []}}
    return an_object("apps/v1", "Deployment", name, "shop", spec={"template": template})


def service(**selector: str) -> dict[str, Any]:
    return an_object("v1", "Service", "web", "shop", spec={"selector": selector})


def policy(name: str = "guard", directions: tuple[str, ...] = ("Ingress",), **labels: str) -> dict[str, Any]:
    spec = {"podSelector": {"matchLabels": labels}, "policyTypes": list(directions)}
    return an_object("networking.k8s.io/v1", "NetworkPolicy", name, "shop", spec=spec)


def found_by(old: Objects, new: Objects) -> list[Finding]:
    names = {(one["kind"], one["metadata"]["name"]): one for one in old}
    actions = []
    for one in new:
        before = names.get((one["kind"], one["metadata"]["name"]))
        actions.append(planned(one, Action.UPDATE if before else Action.CREATE, before=before))
    found = findings_of(destinations.SELECTORS_CHECK, *actions, content=content_with(*new), previous=content_with(*old))
    return [one for one in found if one.rule in {"SV-04", "NP-05"}]


def said_by(old: Objects, new: Objects) -> list[tuple[str, str]]:
    return sorted((one.rule, str(one.severity)) for one in found_by(old, new))


WEB, DEBUG = workload("web"), workload("debug")
SHARED = workload("debug", part="front")
FRONT = workload("web", part="front")


@pytest.mark.parametrize(
    ("old", "new", "severity"),
    [
        pytest.param([WEB, service(app="web")], [WEB, service(app="web")], "", id="nothing changes"),
        pytest.param(
            [WEB, DEBUG, service(app="web")], [WEB, DEBUG, service(app="debug")], "dangerous", id="another workload"
        ),
        pytest.param(
            [FRONT, DEBUG, service(part="front")],
            [FRONT, SHARED, service(part="front")],
            "dangerous",
            id="the labels of another workload change",
        ),
        pytest.param(
            [FRONT, service(part="front")],
            [FRONT, SHARED, service(part="front")],
            "dangerous",
            id="a new workload shares the traffic",
        ),
        pytest.param([WEB, service(app="web")], [DEBUG, service(app="debug")], "notable", id="all is replaced"),
        pytest.param(
            [FRONT, SHARED, service(part="front")],
            [FRONT, DEBUG, service(part="front")],
            "notable",
            id="a workload leaves",
        ),
        pytest.param([FRONT, service(app="web")], [FRONT, service(part="front")], "notable", id="by another label"),
        pytest.param([WEB, service(app="web")], [WEB, service()], "dangerous", id="no selector any more"),
        pytest.param([WEB, service(app="x")], [WEB, service(app="y")], "dangerous", id="pods outside of the bundle"),
        pytest.param([service(app="x")], [service(app="y")], "notable", id="a bundle without pods"),
        pytest.param([WEB, service(app="x")], [WEB, service(app="x", b="c")], "notable", id="fewer outside of it"),
        pytest.param([WEB, service(app="web")], [WEB, service(app="none")], "", id="none, as AVL-04 says"),
        pytest.param([WEB], [WEB, service(app="web")], "", id="a new Service"),
    ],
)
def test_a_service_that_leads_to_other_pods_says_so(old: Objects, new: Objects, severity: str) -> None:
    assert said_by(old, new) == ([("SV-04", severity)] if severity else [])


def test_the_message_names_whose_pods_get_the_traffic_and_whose_do_not_any_more() -> None:
    (one,) = found_by([WEB, DEBUG, service(app="web")], [WEB, DEBUG, service(app="debug")])
    expected = "now leads to the pods of Deployment shop/debug and no longer to those of Deployment shop/web"
    assert one.message == f"Service shop/web {expected}"
    assert one.evidence["before"] == {"app": "web"}
    assert [ref.name for ref in one.evidence["selected"]] == ["debug"]


OTHER = policy("other", app="web")
GOING_OUT = policy("other", ("Egress",), app="web")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param([WEB, policy(app="web")], [WEB, policy(app="x")], ["dangerous"], id="nothing holds them any more"),
        pytest.param(
            [WEB, policy(app="web"), OTHER], [WEB, policy(app="x"), OTHER], ["notable"], id="another policy does"
        ),
        pytest.param(
            [WEB, policy(app="web"), GOING_OUT],
            [WEB, policy(app="x"), GOING_OUT],
            ["dangerous"],
            id="another policy does in another direction",
        ),
        pytest.param(
            [FRONT, policy(part="front")], [WEB, policy(part="front")], ["dangerous"], id="the labels of pods change"
        ),
        pytest.param([WEB, policy(app="x")], [WEB, policy(app="web")], ["notable"], id="it newly holds pods"),
        pytest.param(
            [WEB, DEBUG, policy(app="web")],
            [WEB, DEBUG, policy(app="debug")],
            ["dangerous", "notable"],
            id="others instead",
        ),
        pytest.param([WEB, policy(app="web")], [policy(app="web")], [], id="the pods are gone"),
        pytest.param([policy()], [WEB, policy()], [], id="new pods under an old policy"),
    ],
)
def test_a_policy_that_lets_pods_go_says_so(old: Objects, new: Objects, expected: list[str]) -> None:
    assert said_by(old, new) == [("NP-05", one) for one in expected]
