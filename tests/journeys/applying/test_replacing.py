"""An approved replacement that would be refused by now: the old object stays, and it goes on once it may."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from approvals.models import BundleDeployment
from provisioner.errors import InvalidObject
from provisioner.values import ObjectRef
from tests.support.journeys.contents import bundles
from tests.support.journeys.station import Station
from tests.support.kubernetes.live import wait_until
from tests.support.servers.registry import Registry

ADMISSION = "admissionregistration.k8s.io/v1"
NEW = "registry.example.com/migrate:2"


def job(name: str, image: str) -> dict[str, Any]:
    pod = {"restartPolicy": "Never", "containers": [{"name": "migrate", "image": image}]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": {"spec": pod}}}


def bundle(version: int) -> dict[str, bytes]:
    made = yaml.safe_dump(job("migrate", NEW.replace(":2", f":{version}")))
    return bundles.app("harbour", "1") | {"manifests/50.yaml": made.encode()}


def ask_for(station: Station, registry: Registry, version: int) -> BundleDeployment:
    name = f"{station.namespace}-replacing"
    return station.wish(name, bundles.image(registry, name, bundle(version), str(version)))


@contextmanager
def policy(station: Station) -> Iterator[None]:
    """No Job of the station's namespace may have the new image, from the moment that this is in force."""
    rules = {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["jobs"]}
    here = {"matchLabels": {"kubernetes.io/metadata.name": station.namespace}}
    says = f"request.operation == 'DELETE' || object.spec.template.spec.containers.all(it, it.image != '{NEW}')"
    name = f"{station.namespace}-jobs"
    made = {
        "apiVersion": ADMISSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"namespaceSelector": here, "resourceRules": [rules]},
            "validations": [{"expression": says, "message": "that image may not run here"}],
        },
    }
    binding = {
        "apiVersion": ADMISSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    for one in (made, binding):
        station.api.create(one)
    wait_until(lambda: is_refused(station))
    try:
        yield
    finally:
        for one in (binding, made):
            station.api.delete(ObjectRef.of(one))
    wait_until(lambda: not is_refused(station))


def is_refused(station: Station) -> bool:
    probe = job("probe", NEW)
    probe["metadata"]["namespace"] = station.namespace
    try:
        station.api.apply(probe, field_manager="probe", dry_run=True)
    except InvalidObject:
        return True
    return False


def test_a_replacement_that_is_refused_since_its_approval_waits_with_the_old_object(
    real_station: Station, registry: Registry
) -> None:
    deployment = ask_for(real_station, registry, 1)
    real_station.work()
    assert real_station.approve(deployment).state == "applied", real_station.latest(deployment).problem
    before = real_station.get("job", "migrate", "-n", real_station.namespace)["metadata"]["uid"]
    ask_for(real_station, registry, 2)
    real_station.work()
    real_station.agree(deployment)
    with policy(real_station):
        request = real_station.after_work(deployment)
        assert (request.state, request.problem_code, request.round) == ("approved", "objects-refused", 1)
        assert "has to be deleted to be made anew, and would then be refused" in request.problem
        assert "that image may not run here" in real_station.said(request)
        assert "that image may not run here" not in request.problem
        assert real_station.get("job", "migrate", "-n", real_station.namespace)["metadata"]["uid"] == before
    real_station.work(request)
    assert request.state == "applied", request.problem
    live = real_station.get("job", "migrate", "-n", real_station.namespace)
    assert live["metadata"]["uid"] != before
    assert live["spec"]["template"]["spec"]["containers"][0]["image"] == NEW


def test_a_replacement_that_would_be_refused_is_told_before_anybody_approves_it(
    real_station: Station, registry: Registry
) -> None:
    deployment = ask_for(real_station, registry, 1)
    real_station.work()
    assert real_station.approve(deployment).state == "applied", real_station.latest(deployment).problem
    with policy(real_station):
        ask_for(real_station, registry, 2)
        real_station.work()
    told = real_station.latest(deployment).reports.get().body["findings"]
    (refused,) = [one for one in told if "would then be refused" in one["message"]]
    assert "that image may not run here" in refused["serverWords"]
    assert not [one for one in told if "that image may not run here" in one["message"]]
