"""Services that lead to a host, and addresses that no selector makes."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.checks.traffic import destinations
from provisioner.review.frame import wanted
from provisioner.values import Action, Finding, Plan
from tests.support.provisioner.contents import an_object, content_with, core_ref, findings_of, named, planned


def service(**spec: Any) -> dict[str, Any]:
    return an_object("v1", "Service", "db", "shop", spec=spec)


def outside(host: str) -> dict[str, Any]:
    return service(type="ExternalName", externalName=host)


def sliced(*addresses: str, of: str = "db") -> dict[str, Any]:
    made = an_object("discovery.k8s.io/v1", "EndpointSlice", "db-1", "shop", endpoints=[{"addresses": [*addresses]}])
    made["metadata"]["labels"] = {"kubernetes.io/service-name": of}
    return made


def endpoints(*addresses: str) -> dict[str, Any]:
    subset = {"addresses": [{"ip": one} for one in addresses], "ports": [{"port": 5432}]}
    return an_object("v1", "Endpoints", "db", "shop", subsets=[subset])


SELECTS = service(selector={"app": "db"})


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
    assert [str(one.severity) for one in found] == ([severity] if severity else [])


def test_a_name_inside_the_cluster_is_not_called_a_host() -> None:
    (one,) = named(
        findings_of(destinations.DESTINATIONS_CHECK, planned(outside("db.prod.svc.cluster.local"), Action.CREATE)),
        "SV-05",
    )
    assert one.evidence["to"] == "name"


def found_by(*created: dict[str, Any], old: list[dict[str, Any]] | None = None, **rest: Any) -> list[Finding]:
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
        pytest.param([service(), sliced("10.0.0.1")], [], "notable", id="with a new Service of its own"),
        pytest.param([service(), endpoints("10.0.0.1")], [], "notable", id="Endpoints"),
        pytest.param([SELECTS, sliced("10.0.0.1")], [], "dangerous", id="of a Service with pods"),
        pytest.param([service(), sliced("10.0.0.1")], [SELECTS], "dangerous", id="of one that had pods"),
        pytest.param([service(), sliced("10.0.0.1")], [service()], "dangerous", id="of one that was there"),
        pytest.param([sliced("10.0.0.1")], [], "dangerous", id="of one that is not in the bundle"),
        pytest.param([sliced("10.0.0.1", of="")], [], "notable", id="of none"),
        pytest.param(
            [service(), sliced("10.0.0.2")], [service(), sliced("10.0.0.1")], "dangerous", id="another address"
        ),
        pytest.param(
            [service(), sliced("10.0.0.1")],
            [service(), sliced("10.0.0.1", "10.0.0.2")],
            "notable",
            id="an address less",
        ),
        pytest.param(
            [SELECTS, sliced("10.0.0.1")],
            [SELECTS, sliced("10.0.0.1", of="other")],
            "dangerous",
            id="the same address for another Service",
        ),
        pytest.param([service(), sliced("10.0.0.1")], [service(), sliced("10.0.0.1")], "", id="nothing changes"),
        pytest.param([sliced()], [], "", id="no address"),
    ],
)
def test_addresses_that_no_selector_makes_are_told_with_whose_traffic_they_take(
    created: list[dict[str, Any]], old: list[dict[str, Any]], severity: str
) -> None:
    assert [str(one.severity) for one in found_by(*created, old=old)] == ([severity] if severity else [])


@pytest.mark.parametrize(
    ("live", "severity", "why"),
    [
        pytest.param({"spec": {"selector": {"a": "b"}}}, "dangerous", "beside-with-pods", id="with pods"),
        pytest.param({"spec": {}}, "dangerous", "beside", id="without pods"),
        pytest.param(None, "notable", None, id="there is none"),
    ],
)
def test_a_service_beside_the_bundle_is_looked_at(live: Any, severity: str, why: str | None) -> None:
    (one,) = found_by(sliced("10.0.0.1"), live={core_ref("Service", "db").identity: live})
    assert (str(one.severity), one.evidence.get("why")) == (severity, why)


def test_the_service_of_addresses_is_read_where_the_bundle_does_not_bring_it() -> None:
    plan = Plan((), "sha256:plan")
    assert wanted(content_with(sliced("10.0.0.1")), plan, [destinations.DESTINATIONS_CHECK]) == [
        core_ref("Service", "db")
    ]
    assert wanted(content_with(service(), sliced("10.0.0.1")), plan, [destinations.DESTINATIONS_CHECK]) == []
