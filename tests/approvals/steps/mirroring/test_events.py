"""Events about a BundleDeployment: one for each state that a request comes to, and nothing in it that is not for all."""

from __future__ import annotations

from typing import Any, cast

import pytest
from django.utils import timezone

from approvals.models import Request
from approvals.steps.mirroring import events
from provisioner.cluster.client.api import ClusterClient
from provisioner.errors import AlreadyExists, Forbidden, PratiqueError, Unreachable
from provisioner.values import ObjectRef
from tests.support.approvals.fixtures import World

URL = "https://pratique.example/requests/1"


class Written:
    """A cluster that keeps the events that it is sent, or refuses."""

    def __init__(self, refusal: PratiqueError | None = None):
        self.refusal = refusal
        self.events: dict[str, dict[str, Any]] = {}

    def create(self, obj: dict[str, Any], **_: Any) -> None:
        if self.refusal:
            raise self.refusal
        name = obj["metadata"]["name"]
        if name in self.events:
            raise AlreadyExists(name, status=409)
        self.events[name] = obj

    def get(self, ref: ObjectRef) -> dict[str, Any]:
        return self.events[ref.name]

    def merge(self, part: dict[str, Any], **_: Any) -> None:
        self.events[part["metadata"]["name"]] |= {"series": part["series"]}


def tell(cluster: Written, request: Request) -> list[tuple[str, str, int]]:
    """Reason, type and how often, of each event that there is then."""
    request.refresh_from_db()
    events.tell(cast(ClusterClient, cluster), request.deployment, request, name="boat-1", url=URL)
    return [(one["reason"], one["type"], one.get("series", {}).get("count", 1)) for one in cluster.events.values()]


def come_to(request: Request, state: str, code: str = "") -> Request:
    Request.objects.filter(pk=request.pk).update(state=state, problem_code=code, problem="hunter2" if code else "")
    return request


def test_each_state_is_told_once_and_one_that_returns_is_counted(request_: Request, env: World) -> None:
    cluster = Written()
    assert tell(cluster, come_to(request_, "in_review")) == [("InReview", "Normal", 1)]
    assert tell(cluster, request_) == [("InReview", "Normal", 1)]
    waits = ("HeldBack", "Normal", 1)
    assert tell(cluster, come_to(request_, "in_review", "held-back")) == [("InReview", "Normal", 1), waits]
    assert tell(cluster, come_to(request_, "in_review")) == [("InReview", "Normal", 2), waits]
    assert tell(cluster, come_to(request_, "denied"))[2:] == [("Denied", "Warning", 1)]


def test_an_event_holds_state_and_link_and_no_words_of_others(request_: Request) -> None:
    request = come_to(request_, "failed", "apply-failed")
    request.refresh_from_db()
    deployment = request.deployment
    deployment.name = "b" * 253
    found = events.event_of(deployment, request, name="boat-1", url=URL, now=timezone.now())
    assert found["note"] == f"Request boat-1 is failed (apply-failed): {URL}"
    assert found["regarding"]["uid"] == deployment.uid
    assert found["metadata"]["namespace"] == "default"
    assert len(found["metadata"]["name"]) == 253
    assert "hunter2" not in str(found)
    assert len(events.event_of(deployment, request, name="n" * 900, url="u" * 900, now=timezone.now())["note"]) == 1024
    note = events.event_of(deployment, request, name="n", url="\u00e9" * 900, now=timezone.now())["note"]
    assert len(note.encode()) in (1023, 1024), "the API server counts bytes"


def test_where_none_may_be_written_there_is_none_and_nothing_else_fails(
    request_: Request, caplog: pytest.LogCaptureFixture
) -> None:
    assert tell(Written(Forbidden("no", status=403)), request_) == []
    assert "an event was not written" in caplog.text
    request_.refresh_from_db()
    assert request_.last_event


def test_a_cluster_that_does_not_answer_is_told_later(request_: Request) -> None:
    """And nothing waits for it: a webhook in the way of events is no reason to show nothing."""
    assert tell(Written(Unreachable("away")), request_) == []
    assert len(tell(Written(), request_)) == 1


def test_a_name_that_somebody_has_taken_is_not_told_in(request_: Request) -> None:
    cluster = Written()
    tell(cluster, request_)
    (name,) = cluster.events
    cluster.events[name] = {**cluster.events[name], "note": "believe me"}
    Request.objects.filter(pk=request_.pk).update(last_event="")
    tell(cluster, request_)
    taken, ours = cluster.events.values()
    assert "series" not in taken
    assert (ours["note"].startswith("Request boat-1 is"), ours["metadata"]["name"] != name) == (True, True)
