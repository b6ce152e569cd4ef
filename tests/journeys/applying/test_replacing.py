"""An approved replacement that would be refused by now: the old object stays, and it goes on once it may."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import yaml

from approvals.models import BundleDeployment
from provisioner.errors import InvalidObject
from provisioner.values import ObjectRef
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
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


def ask_for(site: DeployedSite, registry: Registry, version: int) -> BundleDeployment:
    name = f"{site.namespace}-replacing"
    return site.submit_spec(name, bundles.image(registry, name, bundle(version), str(version)))


@contextmanager
def policy(site: DeployedSite) -> Iterator[None]:
    """No Job of the station's namespace may have the new image, from the moment that this is in force."""
    rules = {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["jobs"]}
    here = {"matchLabels": {"kubernetes.io/metadata.name": site.namespace}}
    says = f"request.operation == 'DELETE' || object.spec.template.spec.containers.all(it, it.image != '{NEW}')"
    name = f"{site.namespace}-jobs"
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
        site.api.create(one)
    wait_until(lambda: is_refused(site))
    try:
        yield
    finally:
        for one in (binding, made):
            site.api.delete(ObjectRef.of(one))
    wait_until(lambda: not is_refused(site))


def is_refused(site: DeployedSite) -> bool:
    probe = job("probe", NEW)
    probe["metadata"]["namespace"] = site.namespace
    try:
        site.api.apply(probe, field_manager="probe", dry_run=True)
    except InvalidObject:
        return True
    return False


@pytest.mark.thorough
def test_a_replacement_that_is_refused_since_its_approval_waits_with_the_old_object(
    real_site: DeployedSite, registry: Registry
) -> None:
    deployment = ask_for(real_site, registry, 1)
    real_site.work()
    assert real_site.approve(deployment).state == "applied", real_site.latest(deployment).problem
    before = real_site.get("job", "migrate", "-n", real_site.namespace)["metadata"]["uid"]
    ask_for(real_site, registry, 2)
    real_site.work()
    real_site.agree(deployment)
    with policy(real_site):
        request = real_site.after_work(deployment)
        assert (request.state, request.problem_code, request.round) == ("approved", "objects-refused", 1)
        assert "has to be deleted to be made anew, and would then be refused" in request.problem
        assert "that image may not run here" in real_site.said(request)
        assert "that image may not run here" not in request.problem
        assert real_site.get("job", "migrate", "-n", real_site.namespace)["metadata"]["uid"] == before
    real_site.work(request)
    assert request.state == "applied", request.problem
    live = real_site.get("job", "migrate", "-n", real_site.namespace)
    assert live["metadata"]["uid"] != before
    assert live["spec"]["template"]["spec"]["containers"][0]["image"] == NEW


def test_a_replacement_that_would_be_refused_is_told_before_anybody_approves_it(
    real_site: DeployedSite, registry: Registry
) -> None:
    deployment = ask_for(real_site, registry, 1)
    real_site.work()
    assert real_site.approve(deployment).state == "applied", real_site.latest(deployment).problem
    with policy(real_site):
        ask_for(real_site, registry, 2)
        real_site.work()
    told = real_site.latest(deployment).reports.get().body["findings"]
    (refused,) = [one for one in told if "would then be refused" in one["message"]]
    assert "that image may not run here" in refused["serverWords"]
    assert not [one for one in told if "that image may not run here" in one["message"]]
