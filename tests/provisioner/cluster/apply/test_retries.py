"""What is tried again and what is not: conflicts, lost answers, throttling, webhooks that come up late."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from provisioner.cluster.annotations import NONCE
from provisioner.cluster.client import transport
from provisioner.cluster.client.api import ClusterClient
from provisioner.values import CollisionProtection, ObjectRef, OutcomeState
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.provisioner.cluster_scene import Scene, failures
from tests.support.provisioner.flaky import Line, Trouble, flaky, status

pytestmark = pytest.mark.thorough

WEBHOOK = 'Internal error occurred: failed calling webhook "x.example.com": dial tcp 10.0.0.1:443: connection refused'
CONVERSION = "conversion webhook for example.com/v1, Kind=Widget failed: connection refused"


@pytest.fixture
def line(scene: Scene, api_server: Endpoint) -> Iterator[Line]:
    """The scene's cluster from now on is the one behind this line."""
    with flaky(api_server) as (line, cluster):
        scene.cluster = cluster
        yield line


def meanwhile(change: Callable[[], Any]) -> Trouble:
    """The write goes through, after somebody else has written."""

    def happen() -> None:
        change()

    return happen


def elsewhere(scene: Scene, direct: Any, key: str) -> Callable[[], Any]:
    obj = scene.config_map(**{key: "theirs"})
    return lambda: direct.apply(obj, field_manager="somebody")


def without_a_conflict_a_change_is_one_write(scene: Scene, _: ClusterClient, line: Line) -> None:
    scene.deploy(scene.config_map(a="1"))
    planned, before = scene.plan(obj := scene.config_map(a="2")), (line.writes, line.dry_runs)
    assert failures(scene.apply(planned, obj)) == []
    assert (line.writes - before[0], line.dry_runs - before[1]) == (1, 0)


def with_conflicts_that_leave_our_change_the_same_it_is_written_in_the_end(
    scene: Scene, direct: ClusterClient, line: Line
) -> None:
    scene.deploy(scene.config_map(a="1"))
    planned = scene.plan(obj := scene.config_map(a="2"))
    line.troubles = [meanwhile(elsewhere(scene, direct, key)) for key in ("x", "y", "z")]
    (outcome,) = scene.apply(planned, obj)
    assert outcome.state is OutcomeState.DONE, outcome.message
    assert scene.live(obj)["data"]["a"] == "2"
    assert line.troubles == []


def with_a_conflict_that_changes_what_we_would_change_nothing_is_written(
    scene: Scene, direct: ClusterClient, line: Line
) -> None:
    scene.deploy(scene.config_map(a="1", keep="1"))
    planned = scene.plan(obj := scene.config_map(a="2", keep="1"))
    live = scene.live(obj)
    line.troubles = [meanwhile(lambda: direct.replace({**live, "data": {"a": "1"}}))]
    (outcome,) = scene.apply(planned, obj)
    assert outcome.state is OutcomeState.FAILED
    assert "would also change data.keep" in outcome.server_words
    assert scene.live(obj)["data"] == {"a": "1"}


def with_a_conflict_rebased_away_nothing_is_left_to_write(scene: Scene, direct: ClusterClient, line: Line) -> None:
    """Somebody made our change before us; it is there, and not a field of it is taken from anybody."""
    scene.deploy(scene.config_map(a="1"))
    planned = scene.plan(obj := scene.config_map(a="2"))
    live = scene.live(obj)
    line.troubles = [meanwhile(lambda: direct.replace({**live, "data": {"a": "2"}}))]
    (outcome,) = scene.apply(planned, obj)
    assert outcome.state is OutcomeState.UNCHANGED
    assert line.writes == 2


# kapp's tests of the same name: what was agreed is written though others write, and no more.
CONFLICTS: dict[str, Callable[[Scene, ClusterClient, Line], None]] = {
    "WithoutConflict": without_a_conflict_a_change_is_one_write,
    "WithConflict": with_conflicts_that_leave_our_change_the_same_it_is_written_in_the_end,
    "WithConflict, approved diff no longer matches": (
        with_a_conflict_that_changes_what_we_would_change_nothing_is_written
    ),
    "WithConflictRebasedAway": with_a_conflict_rebased_away_nothing_is_left_to_write,
}


@pytest.mark.parametrize("row", CONFLICTS.values(), ids=CONFLICTS)
def test_update_retry_on_conflict(
    scene: Scene, kubernetes_api: ClusterClient, line: Line, row: Callable[[Scene, ClusterClient, Line], None]
) -> None:
    row(scene, kubernetes_api, line)


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(status(429, "TooManyRequests", "slow down", Retry_After="1"), id="throttled"),
        pytest.param(status(500, "InternalError", WEBHOOK), id="a webhook that is not ready"),
        pytest.param(status(500, "InternalError", CONVERSION), id="a conversion webhook that is not ready"),
        pytest.param(status(503, "ServiceUnavailable", "apiserver is shutting down"), id="shutting down"),
        pytest.param(status(504, "Timeout", "etcdserver: request timed out"), id="etcd"),
        pytest.param(
            status(409, "Conflict", 'Operation cannot be fulfilled on resourcequotas "q": modified'),
            id="quota conflict",
        ),
    ],
)
@pytest.mark.parametrize("is_new", [True, False], ids=["create", "update"])
def test_what_passes_by_itself_is_tried_again(scene: Scene, line: Line, trouble, is_new):
    if not is_new:
        scene.deploy(scene.config_map(a="1"))
    planned = scene.plan(obj := scene.config_map(a="2"))
    line.troubles = [trouble]
    (outcome,) = scene.apply(planned, obj)
    assert outcome.state is OutcomeState.DONE, outcome.message
    assert scene.live(obj)["data"] == {"a": "2"}


def test_as_long_as_the_server_asks_we_wait(scene: Scene, line: Line):
    planned = scene.plan(obj := scene.config_map())
    line.troubles = [status(429, "TooManyRequests", "slow down", Retry_After="1")]
    began = time.monotonic()
    assert failures(scene.apply(planned, obj)) == []
    assert time.monotonic() - began >= 1.0


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(status(403, "Forbidden", "exceeded quota: q"), id="quota"),
        pytest.param(status(400, "BadRequest", 'admission webhook "x" denied the request: no'), id="denied"),
        pytest.param(status(422, "Invalid", "data: Invalid value"), id="invalid"),
        pytest.param(status(401, "Unauthorized", "Unauthorized"), id="unauthenticated"),
    ],
)
def test_what_does_not_pass_is_a_failure_at_once(scene: Scene, line: Line, trouble):
    planned = scene.plan(obj := scene.config_map())
    line.troubles = [trouble, trouble]
    (outcome,) = scene.apply(planned, obj)
    assert outcome.state is OutcomeState.FAILED
    assert len(line.troubles) == 1


@pytest.mark.parametrize("seconds", [0.0, 3600.0], ids=["at once", "after it let us wait"])
def test_a_refusal_by_a_server_that_was_away_a_moment_ago_is_asked_again(
    scene: Scene, line: Line, monkeypatch: pytest.MonkeyPatch, seconds: float
):
    """It accepts connections, then serves, then reads the roles: seen on a real API server that was killed."""

    waited: list[float] = []

    def refuse() -> Any:
        waited.append(seconds)
        return status(403, "Forbidden", "cannot patch resource")()

    now = time.monotonic()
    clock = SimpleNamespace(monotonic=lambda: now + sum(waited), perf_counter=time.perf_counter)
    monkeypatch.setattr(transport, "time", clock)
    planned = scene.plan(obj := scene.config_map(a="1"))
    line.loses_answers = 1
    line.troubles = [lambda: None, refuse]
    assert failures(scene.apply(planned, obj)) == []
    assert line.troubles == []
    assert scene.live(obj)["data"] == {"a": "1"}


def test_a_refusal_long_after_the_server_was_away_is_a_failure(
    scene: Scene, line: Line, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(transport, "READS_RIGHTS_SECONDS", 0.0)
    planned = scene.plan(obj := scene.config_map(a="1"))
    line.loses_answers = 1
    line.troubles = [lambda: None, status(403, "Forbidden", "cannot patch resource")]
    (outcome,) = scene.apply(planned, obj)
    assert (outcome.state, "cannot patch" in outcome.server_words) == (OutcomeState.FAILED, True)


def test_trying_again_ends_at_the_deadline(scene: Scene, line: Line):
    planned = scene.plan(obj := scene.config_map())
    line.troubles = [status(500, "InternalError", WEBHOOK)] * 100
    (outcome,) = scene.apply(planned, obj, timeout_seconds=4.0)
    assert (outcome.state, "failed calling webhook" in outcome.server_words) == (OutcomeState.FAILED, True)
    assert line.troubles, "it was not tried as often as it would have taken"
    assert scene.live(obj) is None


@pytest.mark.parametrize("is_new", [True, False], ids=["create", "update"])
def test_a_write_whose_answer_was_lost_is_found_done_and_not_doubled(scene: Scene, line: Line, is_new):
    if not is_new:
        scene.deploy(scene.config_map(a="1"))
    planned = scene.plan(obj := scene.config_map(a="2"))
    line.loses_answers = 1
    assert failures(scene.apply(planned, obj)) == []
    live, item = scene.live(obj), scene.inventory.items()[ObjectRef.of(obj).identity]
    assert (live["metadata"]["uid"], live["metadata"]["annotations"][NONCE]) == (item.uid, item.nonce)


def test_an_adoption_whose_answer_was_lost_is_found_done(scene: Scene, line: Line):
    made = scene.cluster.create(scene.config_map(theirs="1"))
    planned = scene.plan(obj := scene.config_map(a="1"), collision_protection=CollisionProtection.IF_NO_CONTROLLER)
    line.loses_answers = 1
    assert failures(scene.apply(planned, obj)) == []
    live, item = scene.live(obj), scene.inventory.items()[ObjectRef.of(obj).identity]
    assert (item.uid, live["metadata"]["annotations"][NONCE]) == (made["metadata"]["uid"], item.nonce)


@pytest.mark.parametrize("lost", [1, 2], ids=["the deletion's", "both"])
def test_a_replacement_whose_answers_were_lost_is_made_once(scene: Scene, line: Line, lost):
    scene.deploy(scene.job(image="example.com/migrate:1"))
    old = scene.live(scene.job())["metadata"]["uid"]
    planned = scene.plan(obj := scene.job(image="example.com/migrate:2"))
    line.loses_answers = lost
    assert failures(scene.apply(planned, obj)) == []
    live, item = scene.live(obj), scene.inventory.items()[ObjectRef.of(obj).identity]
    assert live["metadata"]["uid"] != old
    assert (item.uid, item.nonce) == (live["metadata"]["uid"], live["metadata"]["annotations"][NONCE])
