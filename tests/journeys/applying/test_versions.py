"""A real bundle from version to version, one of which fails midway: nothing is orphaned, nothing of it is left over."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from approvals import store
from approvals.models import BundleDeployment, InventoryItem, Request
from provisioner.errors import InvalidObject
from provisioner.review.base.record import from_record
from provisioner.values import Action, ObjectRef
from tests.support.folders import CORPUS
from tests.support.journeys.contents import bundles
from tests.support.journeys.contents.cert_manager import serve_cert_manager
from tests.support.journeys.deployed_site import SEEDER, DeployedSite
from tests.support.journeys.moments import look_until
from tests.support.kubernetes.live import wait_until
from tests.support.servers.registry import Registry

pytestmark = pytest.mark.corpus

NAME = "operator-controller"
FIRST, BAD, LAST = "v1.4.0", "v1.6.0", "v1.11.0"
IMAGE = f"quay.io/operator-framework/{NAME}"
REFUSED = "this image may not run here"
ADMISSION = "admissionregistration.k8s.io/v1"
CHANGED_DEPLOYMENTS = {
    "apiGroups": ["apps"],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["deployments"],
}


def source(registry: Registry, version: str) -> dict[str, object]:
    """The published manifests, with the images of that version in the place of those of the last build."""
    text = (CORPUS / "plain" / NAME / version / "experimental.yaml").read_bytes()
    return bundles.image(
        registry, NAME, {"manifests/all.yaml": text.replace(b":devel", f":{version}".encode())}, version
    )


def objects_of(request: Request) -> dict[tuple[str, str, str, str], ObjectRef]:
    assert request.content is not None
    return {one.ref.identity: one.ref for one in store.get(request.content).manifests}


def uids(site: DeployedSite, *requests: Request) -> dict[ObjectRef, str]:
    """Of what is there of all the objects of these requests."""
    refs = {identity: ref for request in requests for identity, ref in objects_of(request).items()}
    found = {ref: site.api.get(ref) for ref in refs.values()}
    return {ref: live["metadata"]["uid"] for ref, live in found.items() if live is not None}


def planned_to_go(request: Request) -> set[ObjectRef]:
    plan = from_record(request.reports.get(round=request.round).body).plan
    return {one.ref for one in plan.actions if one.action is Action.DELETE}


def held(deployment: BundleDeployment) -> set[str]:
    return set(InventoryItem.objects.filter(deployment=deployment).values_list("uid", flat=True))


def issue(site: DeployedSite, request: Request) -> None:
    """What cert-manager would do with what the request brought."""
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-21T12:00:00Z"}
    for ref in objects_of(request).values():
        if ref.group == "cert-manager.io":
            body = {"apiVersion": ref.api_version, "kind": ref.kind, "status": {"conditions": [ready]}}
            meta = {"name": ref.name} | ({"namespace": ref.namespace} if ref.namespace else {})
            site.api.apply(body | {"metadata": meta}, field_manager="cert-manager", subresource="status")


def go_to(site: DeployedSite, registry: Registry, version: str) -> Request:
    deployment = site.prepare(NAME, source(registry, version))
    return site.approve(deployment)


@pytest.fixture
def prepared(real_site: DeployedSite) -> DeployedSite:
    """A cluster with what the bundle builds upon: CRDs of cert-manager, its namespace, a node of the control plane."""
    real_site.ctl("label", "nodes", "--all", "--overwrite", "node-role.kubernetes.io/control-plane=")
    real_site.api.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "cert-manager"}}, field_manager=SEEDER
    )
    serve_cert_manager(real_site)
    return real_site


@pytest.fixture
def refusing(real_site: DeployedSite) -> Iterator[None]:
    """A policy of the cluster that leaves dry-runs alone, and refuses the operator's bad version for real."""
    image = f"'{IMAGE}:{BAD}'"
    policy: dict[str, Any] = {
        "apiVersion": ADMISSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": f"{real_site.namespace}-images"},
        "spec": {
            "matchConstraints": {"resourceRules": [CHANGED_DEPLOYMENTS]},
            "matchConditions": [{"name": "for-real", "expression": "!request.dryRun"}],
            "validations": [
                {
                    "expression": f"!object.spec.template.spec.containers.exists(one, one.image == {image})",
                    "message": REFUSED,
                }
            ],
        },
    }
    binding = {
        "apiVersion": ADMISSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": f"{real_site.namespace}-images"},
        "spec": {"policyName": f"{real_site.namespace}-images", "validationActions": ["Deny"]},
    }
    for one in (policy, binding):
        real_site.api.create(one)
    wait_until(lambda: _is_refused(real_site))
    yield
    for one in (binding, policy):
        real_site.api.delete(ObjectRef.of(one))


def _is_refused(site: DeployedSite) -> bool:
    """Whether the server goes by the policy; only what is written for real can tell."""
    probe = yaml.safe_load(bundles.app("probe", "1", replicas=0)["manifests/02.yaml"])
    probe["metadata"] = {"name": f"probe-{uuid.uuid4().hex[:8]}", "namespace": site.namespace}
    probe["spec"]["template"]["spec"]["containers"][0]["image"] = f"{IMAGE}:{BAD}"
    try:
        site.api.create(probe)
    except InvalidObject:
        return True
    return False


@pytest.mark.thorough
def test_a_version_that_fails_midway_leaves_no_orphans_and_nothing_behind_once_the_next_one_runs(
    prepared: DeployedSite, registry: Registry, refusing: None, settings: Any
) -> None:
    site = prepared
    settings.PRATIQUE = {**settings.PRATIQUE, "APPLY_MINUTES": 2}
    first = go_to(site, registry, FIRST)
    assert first.state == "applied", first.problem
    deployment = first.deployment
    issue(site, first)
    count = len(objects_of(first))
    assert look_until(site, deployment, f"{count} of {count}") == f"{count} of {count} objects are ready"

    bad = go_to(site, registry, BAD)
    assert (bad.state, bad.problem_code) == ("failed", "apply-failed")
    assert f"{NAME}-controller-manager" in bad.problem
    assert REFUSED in site.said(bad)
    assert REFUSED not in bad.problem
    only_bad = objects_of(bad).keys() - objects_of(first).keys()
    there = uids(site, first, bad)
    new = {ref for ref in there if ref.identity in only_bad}
    assert new, "nothing of the bad version was written before it failed"
    assert set(there.values()) == held(deployment)
    deployment.refresh_from_db()
    assert deployment.active_revision is not None
    assert deployment.active_revision.number == 1

    last = go_to(site, registry, LAST)
    assert last.state == "applied", last.problem
    wished = objects_of(last)
    gone = {ref for ref in new if ref.identity not in wished}
    assert gone, "the last version has everything that the bad one brought"
    assert gone <= planned_to_go(last)
    there = uids(site, first, bad, last)
    assert {ref.identity for ref in there} == wished.keys()
    assert set(there.values()) == held(deployment)
    issue(site, last)
    count = len(wished)
    assert look_until(site, deployment, f"{count} of {count}") == f"{count} of {count} objects are ready"
