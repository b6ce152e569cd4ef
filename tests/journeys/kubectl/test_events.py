"""What `kubectl describe bd` tells of a request's way, as the service's own account may write it."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.models import Request
from tests.support.journeys.contents import bundles
from tests.support.journeys.station import Station
from tests.support.servers.registry import Registry


def told(station: Station, name: str) -> dict[str, tuple[str, int]]:
    """Type and count by reason, of the events about this deployment."""
    resource = station.api.resource_of("events.k8s.io", "v1", "Event")
    assert resource
    found: list[dict[str, Any]] = station.api.list(resource, namespace="default")
    ours = [one for one in found if one["regarding"]["name"] == name]
    assert all(one["reportingController"] == "core.rukpak.io/pratique" for one in ours)
    return {one["reason"]: (one["type"], (one.get("series") or {}).get("count", 1)) for one in ours}


@pytest.mark.proof
def test_the_way_of_a_request_is_told_by_events(any_station: Station, registry: Registry) -> None:
    station, name = any_station, f"{any_station.namespace}-told"
    deployment = station.wish(name, bundles.image(registry, name, bundles.app(name, "1")))
    station.look_after(deployment)
    station.work()
    station.look_after(deployment)
    assert told(station, name) == {"Preparing": ("Normal", 1), "InReview": ("Normal", 1)}
    request = station.latest(deployment)
    Request.objects.filter(pk=request.pk).update(last_event="", mirrored_at=None)
    station.look_after(deployment)
    assert told(station, name)["InReview"] == ("Normal", 2)
