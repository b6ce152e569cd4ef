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
from tests.support.journeys.station import Station
from tests.support.kubernetes.live import once_answered, wait_until
from tests.support.servers.registry import Registry


def ref_of(request: Request) -> ObjectRef:
    name = f"{request.deployment.name}-{request.number}"
    return ObjectRef("core.rukpak.io", "v1alpha2", "BundleDeploymentRequest", "", name)


def shown(station: Station, request: Request) -> Mapping[str, Any]:
    found: Mapping[str, Any] | None = station.api.get(ref_of(request))
    assert found
    return found


def listed(station: Station) -> None:
    """What the watch does when it starts: the list says what happened while nobody watched."""
    watch = SeenMirrors(cluster=station.cluster)
    watch.stop.set()
    once_answered(lambda: watch.look(station.api))
    own_kinds.repair(station.cluster.pk, watch._seen)


@pytest.fixture
def mirrored(station: Station, registry: Registry) -> tuple[Station, Request]:
    name = f"{station.namespace}-mirror"
    deployment = station.prepare(name, bundles.image(registry, name, bundles.app(name, "1")))
    station.look_after(deployment)
    request = station.latest(deployment)
    assert request.state == "in_review", request.problem
    return station, request


def forged(live: Any) -> None:
    one = {"type": "Approved", "status": "True", "reason": "Reviewed", "message": "believe me"}
    live["status"]["conditions"].append({**one, "lastTransitionTime": "2026-11-24T00:00:00Z"})


def forge(station: Station, request: Request) -> None:
    live: Any = dict(shown(station, request))
    forged(live)
    station.api.replace(live, field_manager="pratique-mirror", subresource="status")


def types(of: Mapping[str, Any]) -> set[str]:
    return {one["type"] for one in of["status"]["conditions"]}


def test_a_request_is_shown_from_the_first_moment_and_its_spec_stays(station: Station, registry: Registry) -> None:
    name = f"{station.namespace}-early"
    deployment = station.wish(name, bundles.image(registry, name, bundles.app(name, "1")))
    station.look_after(deployment)
    early = shown(station, station.latest(deployment))
    assert early["status"]["state"] == "preparing"
    assert set(early["spec"]) == {"bundleDeploymentRef", "purpose", "fromRevision", "toRevision", "requester"}
    station.work()
    assert station.latest(deployment).state == "in_review", station.latest(deployment).problem
    station.look_after(deployment)
    late = shown(station, station.latest(deployment))
    assert (late["metadata"]["uid"], late["spec"]) == (early["metadata"]["uid"], early["spec"])
    assert late["status"]["contentDigest"].startswith("sha256:")
    assert late["status"]["pins"]
    assert late["status"]["expiresAt"]
    assert (early["status"]["contentDigest"], early["status"].get("pins")) == ("", [])


def test_a_deleted_mirror_is_made_again(mirrored: tuple[Station, Request]) -> None:
    station, request = mirrored
    station.api.delete(ref_of(request))
    listed(station)
    station.look_after(request.deployment)
    assert shown(station, request)["status"]["state"] == "in_review"


@pytest.mark.proof
def test_S23_a_forged_approval_goes_whatever_the_forger_calls_itself(mirrored: tuple[Station, Request]) -> None:
    station, request = mirrored
    forge(station, request)
    assert "Approved" in types(shown(station, request))
    listed(station)
    station.look_after(request.deployment)
    assert "Approved" not in types(shown(station, request))


def test_what_is_as_we_left_it_is_not_written_again(mirrored: tuple[Station, Request]) -> None:
    station, request = mirrored
    before = shown(station, request)["metadata"]["resourceVersion"]
    listed(station)
    request.refresh_from_db()
    assert request.mirrored_at is not None, "nothing is marked"
    Request.objects.filter(pk=request.pk).update(mirrored_at=None)
    station.look_after(request.deployment)
    assert shown(station, request)["metadata"]["resourceVersion"] == before, "what is the same is no write"


class Followed(SeenMirrors):
    """Keeps what it sees for the test, whose rows other threads cannot read."""

    def _known(self) -> list[str]:
        return []

    def _note(self, seen: dict[str, str]) -> None:
        self._seen |= seen


def test_the_watch_sees_an_edit_and_a_deletion(mirrored: tuple[Station, Request]) -> None:
    station, request = mirrored
    name = ref_of(request).name
    watch = Followed(cluster=station.cluster)
    thread = threading.Thread(target=watch.look, args=(station.api,), daemon=True)
    thread.start()
    try:
        wait_until(lambda: name in watch._seen)
        ours = watch._seen[name]
        forge(station, request)
        wait_until(lambda: watch._seen[name] != ours)
        own_kinds.repair(station.cluster.pk, watch._seen)
        station.look_after(request.deployment)
        assert "Approved" not in types(shown(station, request))
        station.api.delete(ref_of(request))
        wait_until(lambda: watch._seen[name] == own_kinds.GONE)
    finally:
        watch.end()


def test_a_mirror_says_unknown_where_the_page_does_and_no_more_when_it_is_known(sandbox_station: Station) -> None:
    source = {"kind": "http", "http": {"url": "http://127.0.0.1:1/1.tar.gz"}}
    deployment = sandbox_station.look_after(sandbox_station.wish(f"{sandbox_station.namespace}-who", source))
    ref = ObjectRef("core.rukpak.io", "v1alpha2", "BundleDeployment", "", deployment.name)
    sandbox_station.edit(ref, lambda live: live["spec"].update(config={"a": "b"}))
    seen: Any = sandbox_station.api.get(ref)
    pivots.see(cluster=sandbox_station.cluster, obj=seen, writer=None)
    sandbox_station.look_after(deployment)
    request = sandbox_station.latest(deployment)
    assert shown(sandbox_station, request)["spec"]["requester"] == {
        "username": "rita and unknown requesters",
        "groups": [],
        "via": "browser",
    }
    pivots.see(
        cluster=sandbox_station.cluster, obj=seen, writer=SpecWriter(Identity("rita", ("requesters",)), "kubectl")
    )
    sandbox_station.look_after(deployment)
    assert shown(sandbox_station, request)["spec"]["requester"]["username"] == "rita"


def test_annotations_that_somebody_has_filled_are_said_with_the_remedy(sandbox_station: Station) -> None:
    source = {"kind": "http", "http": {"url": "http://127.0.0.1:1/1.tar.gz"}}
    deployment = sandbox_station.wish(f"{sandbox_station.namespace}-full", source)
    ref = ObjectRef("core.rukpak.io", "v1alpha2", "BundleDeployment", "", deployment.name)
    sandbox_station.edit(
        ref, lambda live: live["metadata"].update(annotations={"example.com/full": "x" * (256 * 1024 - 16)})
    )
    with pytest.raises(InvalidInput, match="kubectl annotate bundledeployment NAME KEY-"):
        sandbox_station.pause(deployment, "why")


def told(station: Station, name: str) -> dict[str, tuple[str, int]]:
    """Type and count by reason, of the events about this deployment."""
    resource = station.api.resource_of("events.k8s.io", "v1", "Event")
    assert resource
    found: list[dict[str, Any]] = station.api.list(resource, namespace="default")
    ours = [one for one in found if one["regarding"]["name"] == name]
    assert all(one["reportingController"] == "core.rukpak.io/pratique" for one in ours)
    return {one["reason"]: (one["type"], (one.get("series") or {}).get("count", 1)) for one in ours}


@pytest.mark.proof
def test_the_way_of_a_request_is_told_by_events(station: Station, registry: Registry) -> None:
    name = f"{station.namespace}-told"
    deployment = station.wish(name, bundles.image(registry, name, bundles.app(name, "1")))
    station.look_after(deployment)
    station.work()
    station.look_after(deployment)
    assert told(station, name) == {"Preparing": ("Normal", 1), "InReview": ("Normal", 1)}
    request = station.latest(deployment)
    Request.objects.filter(pk=request.pk).update(last_event="", mirrored_at=None)
    station.look_after(deployment)
    assert told(station, name)["InReview"] == ("Normal", 2)
