"""What kubectl shows of requests: objects that are repaired when somebody deletes or edits them, and events."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from approvals.errors import InvalidInput
from approvals.ledger import pivots
from approvals.ledger.pivots import SpecWriter
from approvals.models import Request
from approvals.watch import own_kinds
from approvals.watch.own_kinds import SeenMirrors
from provisioner.values import Identity, ObjectRef
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.kubernetes.live import once_answered, wait_until
from tests.support.servers.registry import Registry


def ref_of(request: Request) -> ObjectRef:
    name = f"{request.deployment.name}-{request.number}"
    return ObjectRef("core.rukpak.io", "v1alpha2", "BundleDeploymentRequest", "", name)


def shown(site: DeployedSite, request: Request) -> Mapping[str, Any]:
    found: Mapping[str, Any] | None = site.api.get(ref_of(request))
    assert found
    return found


def listed(site: DeployedSite) -> None:
    """What the watch does when it starts: the list says what happened while nobody watched."""
    watch = SeenMirrors(cluster=site.cluster)
    watch.stop.set()
    once_answered(lambda: watch.look(site.api))
    own_kinds.repair(site.cluster.pk, watch._seen)


@pytest.fixture
def mirrored(site: DeployedSite, registry: Registry) -> tuple[DeployedSite, Request]:
    name = f"{site.namespace}-mirror"
    deployment = site.prepare(name, bundles.image(registry, name, bundles.app(name, "1")))
    site.look_after(deployment)
    request = site.latest(deployment)
    assert request.state == "in_review", request.problem
    return site, request


def forged(live: Any) -> None:
    one = {"type": "Approved", "status": "True", "reason": "Reviewed", "message": "believe me"}
    live["status"]["conditions"].append({**one, "lastTransitionTime": "2026-11-24T00:00:00Z"})


def forge(site: DeployedSite, request: Request) -> None:
    live: Any = dict(shown(site, request))
    forged(live)
    site.api.replace(live, field_manager="pratique-mirror", subresource="status")


def types(of: Mapping[str, Any]) -> set[str]:
    return {one["type"] for one in of["status"]["conditions"]}


def test_a_request_is_shown_from_the_first_moment_and_its_spec_stays(site: DeployedSite, registry: Registry) -> None:
    name = f"{site.namespace}-early"
    deployment = site.submit_spec(name, bundles.image(registry, name, bundles.app(name, "1")))
    site.look_after(deployment)
    early = shown(site, site.latest(deployment))
    assert early["status"]["state"] == "preparing"
    assert set(early["spec"]) == {"bundleDeploymentRef", "purpose", "fromRevision", "toRevision", "requester"}
    site.work()
    assert site.latest(deployment).state == "in_review", site.latest(deployment).problem
    site.look_after(deployment)
    late = shown(site, site.latest(deployment))
    assert (late["metadata"]["uid"], late["spec"]) == (early["metadata"]["uid"], early["spec"])
    assert late["status"]["contentDigest"].startswith("sha256:")
    assert late["status"]["pins"]
    assert late["status"]["expiresAt"]
    assert (early["status"]["contentDigest"], early["status"].get("pins")) == ("", [])


def test_a_deleted_mirror_is_made_again(mirrored: tuple[DeployedSite, Request]) -> None:
    site, request = mirrored
    site.api.delete(ref_of(request))
    listed(site)
    site.look_after(request.deployment)
    assert shown(site, request)["status"]["state"] == "in_review"


@pytest.mark.proof
def test_S23_a_forged_approval_goes_whatever_the_forger_calls_itself(mirrored: tuple[DeployedSite, Request]) -> None:
    site, request = mirrored
    forge(site, request)
    assert "Approved" in types(shown(site, request))
    listed(site)
    site.look_after(request.deployment)
    assert "Approved" not in types(shown(site, request))


def test_what_is_as_we_left_it_is_not_written_again(mirrored: tuple[DeployedSite, Request]) -> None:
    site, request = mirrored
    before = shown(site, request)["metadata"]["resourceVersion"]
    listed(site)
    request.refresh_from_db()
    assert request.mirrored_at is not None, "nothing is marked"
    Request.objects.filter(pk=request.pk).update(mirrored_at=None)
    site.look_after(request.deployment)
    assert shown(site, request)["metadata"]["resourceVersion"] == before, "what is the same is no write"


class Followed(SeenMirrors):
    """Keeps what it sees for the test, whose rows other threads cannot read."""

    def _known(self) -> list[str]:
        return []

    def _note(self, seen: dict[str, str]) -> None:
        self._seen |= seen


def test_the_watch_sees_an_edit_and_a_deletion(mirrored: tuple[DeployedSite, Request]) -> None:
    site, request = mirrored
    name = ref_of(request).name
    watch = Followed(cluster=site.cluster)
    thread = threading.Thread(target=watch.look, args=(site.api,), daemon=True)
    thread.start()
    try:
        wait_until(lambda: name in watch._seen)
        ours = watch._seen[name]
        forge(site, request)
        wait_until(lambda: watch._seen[name] != ours)
        own_kinds.repair(site.cluster.pk, watch._seen)
        site.look_after(request.deployment)
        assert "Approved" not in types(shown(site, request))
        site.api.delete(ref_of(request))
        wait_until(lambda: watch._seen[name] == own_kinds.GONE)
    finally:
        watch.end()


def test_a_mirror_says_unknown_where_the_page_does_and_no_more_when_it_is_known(sandbox_site: DeployedSite) -> None:
    source = {"kind": "http", "http": {"url": "http://127.0.0.1:1/1.tar.gz"}}
    deployment = sandbox_site.look_after(sandbox_site.submit_spec(f"{sandbox_site.namespace}-who", source))
    ref = ObjectRef("core.rukpak.io", "v1alpha2", "BundleDeployment", "", deployment.name)
    sandbox_site.edit(ref, lambda live: live["spec"].update(config={"a": "b"}))
    seen: Any = sandbox_site.api.get(ref)
    pivots.see(cluster=sandbox_site.cluster, obj=seen, writer=None)
    sandbox_site.look_after(deployment)
    request = sandbox_site.latest(deployment)
    assert shown(sandbox_site, request)["spec"]["requester"] == {
        "username": "rita and unknown requesters",
        "groups": [],
        "via": "browser",
    }
    pivots.see(cluster=sandbox_site.cluster, obj=seen, writer=SpecWriter(Identity("rita", ("requesters",)), "kubectl"))
    sandbox_site.look_after(deployment)
    assert shown(sandbox_site, request)["spec"]["requester"]["username"] == "rita"


def test_annotations_that_somebody_has_filled_are_said_with_the_remedy(sandbox_site: DeployedSite) -> None:
    source = {"kind": "http", "http": {"url": "http://127.0.0.1:1/1.tar.gz"}}
    deployment = sandbox_site.submit_spec(f"{sandbox_site.namespace}-full", source)
    ref = ObjectRef("core.rukpak.io", "v1alpha2", "BundleDeployment", "", deployment.name)
    sandbox_site.edit(
        ref, lambda live: live["metadata"].update(annotations={"example.com/full": "x" * (256 * 1024 - 16)})
    )
    with pytest.raises(InvalidInput, match="kubectl annotate bundledeployment NAME KEY-"):
        sandbox_site.pause(deployment, "why")


def told(site: DeployedSite, name: str) -> dict[str, tuple[str, int]]:
    """Type and count by reason, of the events about this deployment."""
    resource = site.api.resource_of("events.k8s.io", "v1", "Event")
    assert resource
    found: list[dict[str, Any]] = site.api.list(resource, namespace="default")
    ours = [one for one in found if one["regarding"]["name"] == name]
    assert all(one["reportingController"] == "core.rukpak.io/pratique" for one in ours)
    return {one["reason"]: (one["type"], (one.get("series") or {}).get("count", 1)) for one in ours}


@pytest.mark.proof
def test_the_way_of_a_request_is_told_by_events(site: DeployedSite, registry: Registry) -> None:
    name = f"{site.namespace}-told"
    deployment = site.submit_spec(name, bundles.image(registry, name, bundles.app(name, "1")))
    site.look_after(deployment)
    site.work()
    site.look_after(deployment)
    assert told(site, name) == {"Preparing": ("Normal", 1), "InReview": ("Normal", 1)}
    request = site.latest(deployment)
    Request.objects.filter(pk=request.pk).update(last_event="", mirrored_at=None)
    site.look_after(deployment)
    assert told(site, name)["InReview"] == ("Normal", 2)
