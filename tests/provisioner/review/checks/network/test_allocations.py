"""Node ports and cluster IPs that two Services ask for, or that one has until later."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.checks.network import services
from provisioner.values import Action
from tests.support.provisioner.contents import an_object, findings_of, named, planned

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
    assert [one.variant for one in found] == variants
    assert all(one.ref is not None and "shop" in one.message for one in found)
