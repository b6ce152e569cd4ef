"""Network policies, routes, and API groups that a Service takes over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from provisioner.review.base.facts import ClusterSurroundings, ServedKind
from provisioner.review.checks.network import network_policies, services
from provisioner.review.frame import mentioned
from provisioner.values import Action, Finding, ObjectRef, Severity
from tests.support.provisioner.contents import an_object, content_with, facts, findings_of, judged_by, named, planned

DNS = {"ports": [{"port": 53, "protocol": "UDP"}]}
PEER = {"podSelector": {"matchLabels": {"a": "b"}}}


def policy(name: str = "guard", **spec: Any) -> dict[str, Any]:
    return an_object("networking.k8s.io/v1", "NetworkPolicy", name, "shop", spec={"podSelector": PEER, **spec})


def found_by(
    *actions: Any, checks: Any = (network_policies.CHECK, services.API_SERVICES_CHECK), **around: Any
) -> list[Finding]:
    return judged_by(facts(*actions, around=ClusterSurroundings(**around)), list(checks))


def rules_of(found: list[Finding]) -> list[str]:
    return sorted(finding.rule for finding in found)


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([policy(ingress=[{"from": [PEER]}])], [], id="some pods let some in"),
        pytest.param([policy(podSelector={}, ingress=[{"from": [PEER]}])], ["NP-01"], id="for every pod"),
        pytest.param([policy(podSelector={}, policyTypes=["Ingress"])], [], id="denies all, as it should"),
        pytest.param([policy(ingress=[{}])], ["NP-03"], id="from everywhere"),
        pytest.param([policy(ingress=[{"from": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}])], ["NP-03"], id="from any IP"),
        pytest.param([policy(egress=[{"to": [PEER], **DNS}])], [], id="DNS goes out"),
        pytest.param([policy(egress=[{"to": [PEER], "ports": [{"port": 1, "endPort": 99}]}])], [], id="DNS in a range"),
        pytest.param([policy(egress=[{"to": [PEER], "ports": [{"port": 443}]}])], ["NP-04"], id="no DNS"),
        pytest.param([policy(policyTypes=["Egress"])], ["NP-04"], id="nothing goes out"),
        pytest.param(
            [policy(policyTypes=["Egress"]), policy("out", egress=[{"to": [PEER]}])],
            [],
            id="another lets all ports out",
        ),
        pytest.param(
            [policy(policyTypes=["Egress"]), policy("dns", egress=[{"to": [PEER], **DNS}])],
            [],
            id="another lets DNS out",
        ),
    ],
)
def test_policies_are_judged_by_what_they_let_through(objects: list[dict[str, Any]], expected: list[str]) -> None:
    assert rules_of(found_by(*(planned(one, Action.CREATE) for one in objects))) == expected


@pytest.mark.parametrize(
    ("before", "after", "count"),
    [
        pytest.param({"ingress": []}, {"ingress": [{"from": [PEER]}]}, 1, id="a new rule"),
        pytest.param({"policyTypes": ["Ingress", "Egress"]}, {"policyTypes": ["Ingress"]}, 1, id="a direction less"),
        pytest.param({"podSelector": {"a": "b"}}, {"podSelector": {"a": "c"}}, 1, id="other pods"),
        pytest.param({"ingress": [{"from": [PEER]}]}, {"ingress": []}, 0, id="a rule less"),
    ],
)
def test_a_policy_that_lets_more_through_is_said(before: dict[str, Any], after: dict[str, Any], count: int) -> None:
    old, new = ({**policy(), "spec": one} for one in (before, after))
    found = found_by(planned(new, Action.UPDATE, before=old))
    assert rules_of(found).count("NP-02") == count


def test_a_deleted_policy_is_said() -> None:
    assert rules_of(found_by(planned(policy(), Action.DELETE, before=policy()))) == ["NP-02"]


@pytest.mark.parametrize(
    ("kind", "spec", "variant", "lacks"),
    [
        ("gateway.networking.k8s.io/v1 HTTPRoute", {"hostnames": ["x.example.com"]}, "host", None),
        ("gateway.networking.k8s.io/v1 HTTPRoute", {}, "every-host-of-gateway", None),
        ("gateway.networking.k8s.io/v1 Gateway", {"listeners": [{"port": 80}]}, "listener-for-every-host", "tls"),
        (
            "gateway.networking.k8s.io/v1 Gateway",
            {"listeners": [{"port": 1, "hostname": "a", "tls": {"mode": "x"}}]},
            "listener",
            None,
        ),
        ("networking.k8s.io/v1 Ingress", {"rules": [{}]}, "every-host", "tls"),
        ("networking.k8s.io/v1 Ingress", {"rules": [{"host": "a"}], "tls": [{"hosts": ["a"]}]}, "host", None),
    ],
)
def test_routes_and_gateways_say_what_they_serve(kind: str, spec: Any, variant: str, lacks: str | None) -> None:
    made = planned(an_object(*kind.split(), "a", "shop", spec=spec), Action.CREATE)
    (found,) = named(found_by(made, checks=(network_policies.CHECK, services.EXPOSURE_CHECK)), "SV-02")
    assert (found.variant, found.evidence.get("lacks")) == (variant, lacks)


@pytest.mark.parametrize(("host", "count"), [pytest.param(True, 1, id="host"), pytest.param(False, 0, id="own")])
def test_a_pod_on_the_nodes_network_says_its_ports(host: bool, count: int) -> None:
    container = {"name": "a", "ports": [{"containerPort": 8080}]}
    pod = an_object("v1", "Pod", "a", "shop", spec={"hostNetwork": host, "containers": [container]})
    assert rules_of(found_by(planned(pod, Action.CREATE))).count("SV-03") == count


# API services

METRICS = an_object(
    "apiregistration.k8s.io/v1",
    "APIService",
    "v1beta1.metrics.k8s.io",
    spec={"group": "metrics.k8s.io", "version": "v1beta1", "service": {"namespace": "shop", "name": "metrics"}},
)
SERVICE = ObjectRef("", "v1", "Service", "shop", "metrics")
SERVED = (ServedKind("metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes"),)


@pytest.mark.parametrize(
    ("exists", "expected"),
    [
        pytest.param({SERVICE.identity: True}, [], id="there"),
        pytest.param({SERVICE.identity: False}, [("AS-03", Severity.BREAKING)], id="nowhere"),
        pytest.param({}, [("AS-03", Severity.UNKNOWN)], id="nobody may look"),
    ],
)
def test_an_api_service_needs_its_service(exists: dict[Any, bool], expected: list[tuple[str, Severity]]) -> None:
    found = found_by(planned(METRICS, Action.CREATE), exists=exists)
    assert [(finding.rule, finding.severity) for finding in found] == expected


def test_the_service_of_an_api_is_asked_for() -> None:
    assert mentioned(facts(planned(METRICS, Action.CREATE)), [services.API_SERVICES_CHECK]) == [SERVICE]


def test_a_group_that_is_served_already_is_taken_over() -> None:
    found = found_by(planned(METRICS, Action.CREATE), kinds=SERVED, exists={SERVICE.identity: True})
    assert [(finding.rule, finding.severity) for finding in found] == [("AS-01", Severity.CRITICAL)]


def test_a_group_that_nobody_answers_for_any_more_is_breaking() -> None:
    (found,) = found_by(planned(METRICS, Action.DELETE, before=METRICS), kinds=SERVED)
    assert (found.rule, found.severity) == ("AS-04", Severity.BREAKING)
    assert "NodeMetrics" in found.message


NAMED = [{"from": [PEER]}]
NARROW = [{"from": [PEER], "ports": [{"port": 80}]}]


@pytest.mark.parametrize(
    ("before", "after", "is_said"),
    [
        pytest.param({"ingress": NAMED}, {"ingress": NARROW}, False, id="a port is named"),
        pytest.param({"ingress": NARROW}, {"ingress": NAMED}, True, id="a port is no longer named"),
        pytest.param({"ingress": [{}]}, {"ingress": NAMED}, False, id="some instead of everybody"),
        pytest.param({"ingress": NAMED}, {"ingress": NAMED, "egress": NAMED}, False, id="egress is restricted at last"),
        pytest.param(
            {"ingress": NAMED, "egress": NARROW},
            {"ingress": NAMED, "policyTypes": ["Ingress"]},
            True,
            id="egress is free",
        ),
        pytest.param({"ingress": [{"from": [PEER, {}]}]}, {"ingress": NAMED}, False, id="one of two is left"),
    ],
)
def test_only_what_is_not_contained_in_the_old_rules_is_called_wider(
    before: dict[str, Any], after: dict[str, Any], is_said: bool
) -> None:
    old, new = policy(**before), policy(**after)
    found = found_by(planned(new, Action.UPDATE, before=old))
    assert ("NP-02" in rules_of(found)) is is_said


@pytest.mark.parametrize(
    ("cidrs", "words"),
    [
        (["0.0.0.0/0"], "from everywhere"),
        (["0.0.0.0/1", "128.0.0.0/1"], "from everywhere"),
        (["::/0"], "from everywhere"),
        (["64.0.0.0/2"], "a good part of all addresses"),
        (["10.0.0.0/8"], ""),
        (["no address"], ""),
    ],
    ids=str,
)
def test_address_blocks_are_judged_by_what_they_hold_together(cidrs: list[str], words: str) -> None:
    obj = policy(ingress=[{"from": [{"ipBlock": {"cidr": one}} for one in cidrs]}])
    said = [finding.message for finding in found_by(planned(obj, Action.CREATE)) if finding.rule == "NP-03"]
    assert [words in one for one in said] == ([True] if words else [])


CREATE, UPDATE, DELETE, NONE = Action.CREATE, Action.UPDATE, Action.DELETE, Action.NONE


def service(name: str, *node_ports: int, kind: str = "NodePort", **spec: Any) -> dict[str, Any]:
    ports = [{"port": 80 + at, "nodePort": one} for at, one in enumerate(node_ports)]
    return an_object("v1", "Service", name, "shop", spec={"type": kind, "ports": ports, **spec})


A, B = service("a", 30080), service("b", 30080)
FREE = service("a")


@pytest.mark.parametrize(
    ("actions", "variants"),
    [
        pytest.param([planned(A, CREATE), planned(B, CREATE)], ["taken"], id="both new"),
        pytest.param([planned(A, NONE, before=A), planned(B, CREATE)], ["taken"], id="beside one that stays"),
        pytest.param([planned(B, CREATE), planned(service("c", 30080), NONE, before=B)], ["taken"], id="before it"),
        pytest.param([planned(B, CREATE), planned(A, DELETE, before=A)], ["held-until-delete"], id="renamed"),
        pytest.param([planned(B, CREATE), planned(FREE, UPDATE, before=A)], ["held-until-update"], id="freed later"),
        pytest.param([planned(FREE, UPDATE, before=A), planned(B, CREATE)], [], id="freed first"),
        pytest.param([planned(A, UPDATE, before=A)], [], id="its own"),
        pytest.param([planned(A, CREATE), planned(service("b", 30081), CREATE)], [], id="another"),
        pytest.param(
            [planned(A, CREATE), planned(service("b", kind="LoadBalancer", healthCheckNodePort=30080), CREATE)],
            ["taken"],
            id="for health checks",
        ),
        pytest.param(
            [planned(service(name, clusterIP="10.0.0.9"), CREATE) for name in "ab"], ["taken"], id="an address"
        ),
        pytest.param([planned(service(name, clusterIP="None"), CREATE) for name in "ab"], [], id="no address"),
        pytest.param(
            [planned(A, CREATE), planned(service("b", 30080, kind="ExternalName"), CREATE)], [], id="not of this type"
        ),
    ],
)
def test_what_only_one_service_can_have_is_told_of_the_second(actions: list[Any], variants: list[str]) -> None:
    found = named(findings_of(services.ALLOCATIONS_CHECK, *actions), "OBJ-10")
    assert [finding.variant for finding in found] == variants
    assert all(finding.ref is not None and "shop" in finding.message for finding in found)


def test_what_the_server_chose_in_a_dry_run_is_asked_for_by_nobody() -> None:
    wished = [an_object("v1", "Service", name, "shop", spec={"type": "NodePort"}) for name in "abc"]
    # A dry run answers all that nobody named with the same dummies.
    chosen = {"clusterIP": "10.96.0.0", "clusterIPs": ["10.96.0.0"]}
    created = [planned(service(name, 30000, **chosen), CREATE) for name in "ab"]
    had = service("c", 30007, clusterIP="10.96.3.4")
    more = planned({**had, "spec": {**had["spec"], "ports": [*had["spec"]["ports"], {"nodePort": 30000}]}}, UPDATE)
    more = replace(more, before=had)
    content = content_with(*wished)
    assert findings_of(services.ALLOCATIONS_CHECK, *created, more, content=content) == []
    # What a Service has it keeps, whether or not the bundle names it.
    (found,) = findings_of(services.ALLOCATIONS_CHECK, more, planned(service("d", 30007), CREATE))
    assert found.variant == "taken"


@pytest.mark.parametrize("group", [{}, ["apps"], None], ids=str)
def test_a_group_that_is_no_text_is_taken_over_too(group: object) -> None:
    taking = an_object(
        "apiregistration.k8s.io/v1", "APIService", "v1.apps", spec={"group": group, "service": {"name": "s"}}
    )
    found = judged_by(facts(planned(taking, Action.CREATE)), [services.EXPOSURE_CHECK])
    assert [finding.variant for finding in found if finding.rule == "AS-01"] == ["answered-by-service"]
