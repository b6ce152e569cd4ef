"""What content leaves to the API server by setting it to nothing."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from provisioner.cluster.choices import as_sent
from provisioner.cluster.compare import Altered, altered, lost
from tests.support.provisioner.contents import an_object


def service(**spec: Any) -> dict[str, Any]:
    return an_object("v1", "Service", "web", "shop", spec=spec)


def pod(*volumes: str) -> dict[str, Any]:
    mounts = [{"name": one, "mountPath": f"/{number}"} for number, one in enumerate(volumes)]
    containers = [{"name": "web", "image": "a", "volumeMounts": mounts}]
    return an_object(
        "v1", "Pod", "web", "shop", spec={"containers": containers, "volumes": [{"name": one} for one in volumes]}
    )


def of_job(**spec: Any) -> dict[str, Any]:
    return an_object("batch/v1", "Job", "once", "shop", spec=spec)


def deployment(**pod: Any) -> dict[str, Any]:
    return an_object("apps/v1", "Deployment", "web", "shop", spec={"template": {"spec": pod}})


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        pytest.param(
            service(clusterIP="", clusterIPs=[], healthCheckNodePort=0, ports=[{"port": 80, "nodePort": 0}]),
            service(ports=[{"port": 80}]),
            id="addresses and ports of a service",
        ),
        pytest.param(service(clusterIP=None, ports=None), service(ports=None), id="null"),
        pytest.param(service(ports=[{"port": 80, "protocol": ""}]), service(ports=[{"port": 80}]), id="a key of items"),
        pytest.param(service(clusterIP="None"), service(clusterIP="None"), id="a wish"),
        pytest.param(of_job(selector={}, completions=None), of_job(), id="what never changes in a Job"),
        pytest.param(of_job(parallelism=0, completions=0), of_job(parallelism=0, completions=0), id="0 that is a wish"),
        pytest.param(
            deployment(
                containers=[{"ports": [{"containerPort": 80, "protocol": None}]}], imagePullSecrets=[{"name": None}]
            ),
            deployment(containers=[{"ports": [{"containerPort": 80}]}], imagePullSecrets=[{}]),
            id="keys in the template of pods",
        ),
        pytest.param(
            an_object("example.com/v1", "Service", "web", "shop", spec={"clusterIP": ""}),
            an_object("example.com/v1", "Service", "web", "shop", spec={"clusterIP": ""}),
            id="a kind of somebody else",
        ),
        pytest.param(service(ports="", clusterIP={}), service(ports=""), id="rubbish"),
    ],
)
def test_what_content_sets_to_nothing_is_left_to_the_server(written: dict[str, Any], sent: dict[str, Any]) -> None:
    before = copy.deepcopy(written)
    assert as_sent(written) == sent
    assert written == before


@pytest.mark.parametrize("nothing", ["", None], ids=["empty", "null"])
def test_an_address_that_the_content_leaves_open_is_not_altered(nothing: Any) -> None:
    planned, answer = service(clusterIP="10.0.0.1"), service(clusterIP="10.0.0.2")
    assert altered(planned, answer, service(clusterIP=nothing)) == []


def test_a_port_that_the_content_gives_is_held_to_beside_one_that_it_leaves_open() -> None:
    def with_ports(given: int, other: int) -> dict[str, Any]:
        return service(
            ports=[{"name": "a", "port": 80, "nodePort": given}, {"name": "b", "port": 81, "nodePort": other}]
        )

    wished = with_ports(30080, 0)
    assert altered(with_ports(30080, 30001), with_ports(30080, 30002), wished) == []
    assert altered(with_ports(30080, 30001), with_ports(30081, 30001), wished) == [
        Altered("spec.ports[0].nodePort", "30080", "30081")
    ]


def test_a_port_left_open_is_not_lost() -> None:
    assert lost(service(ports=[{"port": 80, "nodePort": 0}]), service(ports=[{"port": 80, "nodePort": 30001}])) == []


def test_the_volume_of_a_token_has_another_name_on_each_call() -> None:
    planned, answer = pod("data", "kube-api-access-abcde"), pod("data", "kube-api-access-fghij")
    assert altered(planned, answer, pod("data")) == []
    other = altered(planned, pod("data", "kube-api-access-anything"), pod("data"))
    assert [one.path for one in other] == ["spec.containers[0].volumeMounts[1].name", "spec.volumes[1].name"]
