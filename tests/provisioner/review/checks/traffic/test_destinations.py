"""Where Services lead, by selectors, hosts and addresses, and hosts that lose TLS."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.checks.traffic import destinations
from provisioner.review.frame import wanted
from provisioner.values import Action, Finding, Plan, Severity
from tests.support.provisioner.contents import an_object, content_with, core_ref, findings_of, named, planned


def outside_service(**spec: Any) -> dict[str, Any]:
    return an_object("v1", "Service", "db", "shop", spec=spec)


def outside(host: str) -> dict[str, Any]:
    return outside_service(type="ExternalName", externalName=host)


def sliced(*addresses: str, of: str = "db") -> dict[str, Any]:
    made = an_object("discovery.k8s.io/v1", "EndpointSlice", "db-1", "shop", endpoints=[{"addresses": [*addresses]}])
    made["metadata"]["labels"] = {"kubernetes.io/service-name": of}
    return made


def endpoints(*addresses: str) -> dict[str, Any]:
    subset = {"addresses": [{"ip": one} for one in addresses], "ports": [{"port": 5432}]}
    return an_object("v1", "Endpoints", "db", "shop", subsets=[subset])


SELECTS = outside_service(selector={"app": "db"})


@pytest.mark.parametrize(
    ("action", "before", "after", "severity"),
    [
        pytest.param(Action.CREATE, None, outside("db.example.org"), "notable", id="a new one"),
        pytest.param(Action.UPDATE, outside("a.org"), outside("b.org"), "dangerous", id="another host"),
        pytest.param(Action.ADOPT, SELECTS, outside("b.org"), "dangerous", id="one that is taken over"),
        pytest.param(Action.UPDATE, outside("a.org"), outside("a.org"), "", id="the same host"),
        pytest.param(Action.UPDATE, SELECTS, outside("b.org"), "", id="it led to pods, as AVL-03 says"),
        pytest.param(Action.UPDATE, outside("a.org"), SELECTS, "notable", id="back to pods"),
        pytest.param(Action.DELETE, outside("a.org"), outside("a.org"), "", id="it goes"),
    ],
)
def test_a_service_that_leads_to_a_host_says_so(
    action: Action, before: dict[str, Any] | None, after: dict[str, Any], severity: str
) -> None:
    found = named(findings_of(destinations.DESTINATIONS_CHECK, planned(after, action, before=before)), "SV-05")
    assert [str(finding.severity) for finding in found] == ([severity] if severity else [])


def test_a_name_inside_the_cluster_is_not_called_a_host() -> None:
    (one,) = named(
        findings_of(destinations.DESTINATIONS_CHECK, planned(outside("db.prod.svc.cluster.local"), Action.CREATE)),
        "SV-05",
    )
    assert one.evidence["to"] == "name"


def find_elsewhere(*created: dict[str, Any], old: list[dict[str, Any]] | None = None, **rest: Any) -> list[Finding]:
    """What is said of these objects, of which those of `old` were there, as they were there."""
    known = {(one["kind"], one["metadata"]["name"]): one for one in old or []}
    before = [known.get((one["kind"], one["metadata"]["name"])) for one in created]
    actions = [
        planned(one, Action.UPDATE if was else Action.CREATE, before=was)
        for one, was in zip(created, before, strict=True)
    ]
    previous = content_with(*old) if old else None
    return named(findings_of(destinations.DESTINATIONS_CHECK, *actions, previous=previous, **rest), "SV-06")


@pytest.mark.parametrize(
    ("created", "old", "severity"),
    [
        pytest.param([outside_service(), sliced("10.0.0.1")], [], "notable", id="with a new Service of its own"),
        pytest.param([outside_service(), endpoints("10.0.0.1")], [], "notable", id="Endpoints"),
        pytest.param([SELECTS, sliced("10.0.0.1")], [], "dangerous", id="of a Service with pods"),
        pytest.param([outside_service(), sliced("10.0.0.1")], [SELECTS], "dangerous", id="of one that had pods"),
        pytest.param(
            [outside_service(), sliced("10.0.0.1")], [outside_service()], "dangerous", id="of one that was there"
        ),
        pytest.param([sliced("10.0.0.1")], [], "dangerous", id="of one that is not in the bundle"),
        pytest.param([sliced("10.0.0.1", of="")], [], "notable", id="of none"),
        pytest.param(
            [outside_service(), sliced("10.0.0.2")],
            [outside_service(), sliced("10.0.0.1")],
            "dangerous",
            id="another address",
        ),
        pytest.param(
            [outside_service(), sliced("10.0.0.1")],
            [outside_service(), sliced("10.0.0.1", "10.0.0.2")],
            "notable",
            id="an address less",
        ),
        pytest.param(
            [SELECTS, sliced("10.0.0.1")],
            [SELECTS, sliced("10.0.0.1", of="other")],
            "dangerous",
            id="the same address for another Service",
        ),
        pytest.param(
            [outside_service(), sliced("10.0.0.1")], [outside_service(), sliced("10.0.0.1")], "", id="nothing changes"
        ),
        pytest.param([sliced()], [], "", id="no address"),
    ],
)
def test_addresses_that_no_selector_makes_are_told_with_whose_traffic_they_take(
    created: list[dict[str, Any]], old: list[dict[str, Any]], severity: str
) -> None:
    assert [str(finding.severity) for finding in find_elsewhere(*created, old=old)] == ([severity] if severity else [])


@pytest.mark.parametrize(
    ("live", "severity", "why"),
    [
        pytest.param({"spec": {"selector": {"a": "b"}}}, "dangerous", "beside-with-pods", id="with pods"),
        pytest.param({"spec": {}}, "dangerous", "beside", id="without pods"),
        pytest.param(None, "notable", None, id="there is none"),
    ],
)
def test_a_service_beside_the_bundle_is_looked_at(live: Any, severity: str, why: str | None) -> None:
    (one,) = find_elsewhere(sliced("10.0.0.1"), live={core_ref("Service", "db").identity: live})
    assert (str(one.severity), one.evidence.get("why")) == (severity, why)


def test_the_service_of_addresses_is_read_where_the_bundle_does_not_bring_it() -> None:
    plan = Plan((), "sha256:plan")
    assert wanted(content_with(sliced("10.0.0.1")), plan, [destinations.DESTINATIONS_CHECK]) == [
        core_ref("Service", "db")
    ]
    assert wanted(content_with(outside_service(), sliced("10.0.0.1")), plan, [destinations.DESTINATIONS_CHECK]) == []


BACKEND = {"service": {"name": "web", "port": {"number": 80}}}


def ingress(*hosts: str, tls: list[dict[str, Any]] | None = None, **rest: Any) -> dict[str, Any]:
    rules = [{"host": host} if host else {} for host in hosts]
    return an_object(
        "networking.k8s.io/v1", "Ingress", "web", "shop", spec={"rules": rules, **({"tls": tls} if tls else {}), **rest}
    )


def by(*hosts: str) -> dict[str, Any]:
    return {"secretName": "certificate", "hosts": [*hosts]} if hosts else {"secretName": "certificate"}


@pytest.mark.parametrize(
    ("before", "after", "hosts"),
    [
        (ingress("a.org", tls=[by("a.org")]), ingress("a.org"), ["a.org"]),
        (
            ingress("a.org", "b.org", tls=[by("a.org", "b.org")]),
            ingress("a.org", "b.org", tls=[by("b.org")]),
            ["a.org"],
        ),
        (ingress("a.org", "b.org", tls=[by("a.org", "b.org")]), ingress("b.org", tls=[by("b.org")]), []),
        (ingress("a.org", tls=[by("a.org")]), ingress("a.org", tls=[by()]), []),
        (ingress("a.org", tls=[by()]), ingress("a.org"), ["a.org"]),
        (ingress("", tls=[by()]), ingress(""), ["every host"]),
        (ingress(tls=[by()]), ingress(), ["every host"]),
        (
            ingress("a.org", tls=[by("a.org"), by()], defaultBackend=BACKEND),
            ingress("a.org", tls=[by("a.org")], defaultBackend=BACKEND),
            ["every host"],
        ),
        (ingress("a.org", tls=[by("a.org", "b.org")]), ingress("a.org", "b.org"), ["a.org"]),
        (ingress("a.org", tls=[by("b.org")]), ingress("a.org", "b.org"), []),
        (ingress("a.org", tls=[by()]), ingress("a.org", "", tls=[by("a.org")]), []),
        (ingress("a.org"), ingress("a.org"), []),
        (ingress("a.org"), ingress("a.org", tls=[by("a.org")]), []),
    ],
    ids=[
        "gone",
        "one of two",
        "the host is gone too",
        "for every host now",
        "by an entry for every host",
        "of every host",
        "of an Ingress without rules",
        "of every host that no rule names",
        "another host was not served before",
        "no such host was served before",
        "every host was not served before",
        "never",
        "newly",
    ],
)
def test_a_host_that_is_no_longer_served_by_tls_is_told(
    before: dict[str, Any], after: dict[str, Any], hosts: list[str]
) -> None:
    found = named(findings_of(destinations.TLS_CHECK, planned(after, Action.UPDATE, before=before)), "ING-04")
    assert [finding.evidence["hosts"] for finding in found] == ([hosts] if hosts else [])
    assert all(finding.severity is Severity.DANGEROUS and finding.is_new for finding in found)


@pytest.mark.parametrize(
    ("before", "after", "variant"),
    [("one", "other", "certificate"), ("", "other", "own-certificate"), ("one", "", "default-certificate")],
)
def test_another_certificate_is_notable(before: str, after: str, variant: str) -> None:
    old, new = (ingress("a.org", tls=[{"hosts": ["a.org"], "secretName": one}]) for one in (before, after))
    (found,) = named(findings_of(destinations.TLS_CHECK, planned(new, Action.UPDATE, before=old)), "ING-04")
    assert (found.severity, found.variant) == (Severity.NOTABLE, variant)


def test_a_new_ingress_without_tls_is_not_told() -> None:
    assert not findings_of(destinations.TLS_CHECK, planned(ingress("a.org"), Action.CREATE))


Objects = list[dict[str, Any]]


def workload(name: str, **labels: str) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name, **labels}}, "spec": {"containers": []}}
    return an_object("apps/v1", "Deployment", name, "shop", spec={"template": template})


def selecting_service(**selector: str) -> dict[str, Any]:
    return an_object("v1", "Service", "web", "shop", spec={"selector": selector})


def policy(name: str = "guard", directions: tuple[str, ...] = ("Ingress",), **labels: str) -> dict[str, Any]:
    spec = {"podSelector": {"matchLabels": labels}, "policyTypes": list(directions)}
    return an_object("networking.k8s.io/v1", "NetworkPolicy", name, "shop", spec=spec)


def find_selected(old: Objects, new: Objects) -> list[Finding]:
    names = {(one["kind"], one["metadata"]["name"]): one for one in old}
    actions = []
    for one in new:
        before = names.get((one["kind"], one["metadata"]["name"]))
        actions.append(planned(one, Action.UPDATE if before else Action.CREATE, before=before))
    found = findings_of(destinations.SELECTORS_CHECK, *actions, content=content_with(*new), previous=content_with(*old))
    return [finding for finding in found if finding.rule in {"SV-04", "NP-05"}]


def said_by(old: Objects, new: Objects) -> list[tuple[str, str]]:
    return sorted((finding.rule, str(finding.severity)) for finding in find_selected(old, new))


WEB, DEBUG = workload("web"), workload("debug")
SHARED = workload("debug", part="front")
FRONT = workload("web", part="front")


@pytest.mark.parametrize(
    ("old", "new", "severity"),
    [
        pytest.param(
            [WEB, selecting_service(app="web")], [WEB, selecting_service(app="web")], "", id="nothing changes"
        ),
        pytest.param(
            [WEB, DEBUG, selecting_service(app="web")],
            [WEB, DEBUG, selecting_service(app="debug")],
            "dangerous",
            id="another workload",
        ),
        pytest.param(
            [FRONT, DEBUG, selecting_service(part="front")],
            [FRONT, SHARED, selecting_service(part="front")],
            "dangerous",
            id="the labels of another workload change",
        ),
        pytest.param(
            [FRONT, selecting_service(part="front")],
            [FRONT, SHARED, selecting_service(part="front")],
            "dangerous",
            id="a new workload shares the traffic",
        ),
        pytest.param(
            [WEB, selecting_service(app="web")],
            [DEBUG, selecting_service(app="debug")],
            "notable",
            id="all is replaced",
        ),
        pytest.param(
            [FRONT, SHARED, selecting_service(part="front")],
            [FRONT, DEBUG, selecting_service(part="front")],
            "notable",
            id="a workload leaves",
        ),
        pytest.param(
            [FRONT, selecting_service(app="web")],
            [FRONT, selecting_service(part="front")],
            "notable",
            id="by another label",
        ),
        pytest.param(
            [WEB, selecting_service(app="web")], [WEB, selecting_service()], "dangerous", id="no selector any more"
        ),
        pytest.param(
            [WEB, selecting_service(app="x")],
            [WEB, selecting_service(app="y")],
            "dangerous",
            id="pods outside of the bundle",
        ),
        pytest.param([selecting_service(app="x")], [selecting_service(app="y")], "notable", id="a bundle without pods"),
        pytest.param(
            [WEB, selecting_service(app="x")],
            [WEB, selecting_service(app="x", b="c")],
            "notable",
            id="fewer outside of it",
        ),
        pytest.param(
            [WEB, selecting_service(app="web")], [WEB, selecting_service(app="none")], "", id="none, as AVL-04 says"
        ),
        pytest.param([WEB], [WEB, selecting_service(app="web")], "", id="a new Service"),
    ],
)
def test_a_service_that_leads_to_other_pods_says_so(old: Objects, new: Objects, severity: str) -> None:
    assert said_by(old, new) == ([("SV-04", severity)] if severity else [])


def test_the_message_names_whose_pods_get_the_traffic_and_whose_do_not_any_more() -> None:
    (one,) = find_selected([WEB, DEBUG, selecting_service(app="web")], [WEB, DEBUG, selecting_service(app="debug")])
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
        pytest.param([WEB, policy(app="x")], [WEB, policy(app="web")], ["notable"], id="it now holds pods"),
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
