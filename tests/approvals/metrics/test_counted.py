"""What processes count while they work."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from approvals import instruments
from approvals.access.port import connect, observer_of, outcome_of
from approvals.errors import Refused
from approvals.ledger import claims
from approvals.models import Cluster
from approvals.services import prove
from approvals.steps import advance
from approvals.watch import lookout
from provisioner.cluster.client.answers import WatchEvent, WatchType
from provisioner.cluster.client.transport import Exchange
from provisioner.errors import BadSource, Unreachable
from tests.approvals.metrics.conftest import Scrape, key
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.kubernetes.endpoint import Endpoint

OF_ANOTHER = """[["steps", ["prepare", "done"], [2]], ["unsent_wakes", [], [1]],
    ["step_seconds", ["prepare"], [3.25, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]]]"""


def rises(scrape: Scrape, name: str, **labels: str) -> Any:
    """Call the result for how much the sample rose since."""
    before = scrape().get(key(name, **labels), 0.0)
    return lambda: scrape().get(key(name, **labels), 0.0) - before


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        pytest.param(None, "done", id="done"),
        pytest.param(Unreachable("no answer"), "waiting", id="waiting"),
        pytest.param(BadSource("no such host"), "failed", id="failed"),
        pytest.param(claims.LostClaim("gone"), "lost_claim", id="lost"),
        pytest.param(ZeroDivisionError("a bug"), "crashed", id="crashed"),
    ],
)
def test_steps_are_counted_by_how_they_end(
    error: Exception | None, outcome: str, env: World, scrape: Scrape, monkeypatch: pytest.MonkeyPatch
) -> None:
    def step(request: Any, worker: str) -> None:
        if error:
            raise error

    request = world.submit_spec(env.cluster, world.seen("one", world.spec()), env.rita).requests.get()
    monkeypatch.setattr(advance.STEPS["preparing"], "run", step)
    counted = rises(scrape, "pratique_steps_total", step="prepare", outcome=outcome)
    timed = rises(scrape, "pratique_step_seconds_count", step="prepare")
    lost = rises(scrape, "pratique_lost_claims_total", kind="request")
    advance.advance(request.pk)
    assert counted() == 1
    assert timed() == (1 if outcome in ("done", "failed") else 0)
    assert lost() == (1 if outcome == "lost_claim" else 0)


def test_requests_are_counted_by_view_and_status(env: World, scrape: Scrape) -> None:
    found = rises(scrape, "pratique_http_requests_total", view="sign-in", method="GET", status="200")
    lost = rises(scrape, "pratique_http_requests_total", view="other", method="other", status="404")
    Client().get("/sign-in")
    Client().generic("INVENTED", "/nothing-is-here")
    assert (found(), lost()) == (1, 1)


def test_S29_strangers_cannot_make_up_labels(env: World, scrape: Scrape) -> None:
    """A label of somebody's choice costs memory here and in Prometheus, for as long as they like."""
    before = {one for one in scrape() if one[0] == "pratique_http_requests_total"}
    for number in range(20):
        Client().generic(f"METHOD{number}", f"/nothing/{number}?{number}", headers={"host": f"h{number}.example"})
        Client().get(f"/deployments/c{number}/d{number}")
        Client().get(f"/api/v1/requests/{number}")
    made = {one for one in scrape() if one[0] == "pratique_http_requests_total"} - before
    assert len(made) <= 4, made


def test_refused_sign_ins_are_counted(env: World, scrape: Scrape) -> None:
    password = rises(scrape, "pratique_refused_sign_ins_total", door="password")
    Client().post("/sign-in", {"with": "password", "username": "ada", "password": "wrong"})
    assert password() == 1
    api = rises(scrape, "pratique_refused_sign_ins_total", door="api_token")
    Client().get("/api/v1/requests", headers={"Authorization": "Bearer prq_unknown"})
    assert api() == 1
    cluster = rises(scrape, "pratique_refused_sign_ins_total", door="cluster_token")
    with pytest.raises(Refused):
        prove(cluster=env.cluster.name, token="unknown", address="192.0.2.1")
    assert cluster() == 1


def test_refused_callbacks_are_counted(db: None, scrape: Scrape) -> None:
    slack = rises(scrape, "pratique_refused_callbacks_total", tool="slack", reason="unverified")
    webhook = rises(scrape, "pratique_refused_callbacks_total", tool="webhook", reason="unverified")
    Client().post("/chat/slack/decisions", data="{}", content_type="application/json")
    Client().post("/chat/slack/commands", data={})
    Client().post("/chat/webhook/decisions", data=json.dumps({}), content_type="application/json")
    assert (slack(), webhook()) == (2, 1)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (0, "no_answer"),
        (200, "ok"),
        (201, "ok"),
        (403, "refused"),
        (404, "not_found"),
        (409, "conflict"),
        (410, "gone"),
        (422, "invalid"),
        (429, "throttled"),
        (503, "server_error"),
    ],
)
def test_an_answer_of_a_cluster_is_one_of_few_outcomes(status: int, outcome: str) -> None:
    assert outcome_of(status) == outcome


def test_calls_to_a_cluster_are_counted_under_its_name(db: None, sandbox: Endpoint, scrape: Scrape) -> None:
    cluster = Cluster.objects.create(name="box", kubeconfig=sandbox.kubeconfig("admin"), created_at=timezone.now())
    counted = rises(scrape, "pratique_api_calls_total", cluster="box", verb="get", outcome="ok")
    timed = rises(scrape, "pratique_api_call_seconds_count", cluster="box", verb="get")
    connect(cluster).uid()
    assert (counted(), timed()) == (1, 1)


def test_a_cluster_that_is_away_is_counted(scrape: Scrape, db: None) -> None:
    counted = rises(scrape, "pratique_api_calls_total", cluster="gone", verb="get", outcome="no_answer")
    observer_of("gone")(Exchange("get", 0, 10.0))
    assert counted() == 1


def test_the_lag_of_the_watch_is_measured_by_the_newest_write(db: None, scrape: Scrape) -> None:
    now = timezone.now()
    times = [now - timedelta(hours=1), now - timedelta(seconds=20)]
    entries: list[Any] = [{"manager": "x", "time": one.isoformat().replace("+00:00", "Z")} for one in times]
    counted = rises(scrape, "pratique_watch_lag_seconds_count", cluster="prod")
    total = rises(scrape, "pratique_watch_lag_seconds_sum", cluster="prod")
    for obj in (
        {"metadata": {"managedFields": entries}},
        {"metadata": {"managedFields": [{"time": "soon"}, "x", {"time": "2026-01-01T00:00:00"}]}},
        {"metadata": {"managedFields": "x"}},
        {"metadata": {}},
        {},
    ):
        lookout.hear("prod", WatchEvent(WatchType.MODIFIED, obj))
    lookout.hear("prod", WatchEvent(WatchType.DELETED, {"metadata": {"managedFields": entries}}))
    assert counted() == 1
    assert 19.9 < total() <= (timezone.now() - times[-1]).total_seconds()


def test_a_clock_that_is_ahead_is_no_negative_lag(db: None, scrape: Scrape) -> None:
    total = rises(scrape, "pratique_watch_lag_seconds_sum", cluster="prod")
    ahead = (timezone.now() + timedelta(hours=1)).isoformat()
    lookout.hear("prod", WatchEvent(WatchType.ADDED, {"metadata": {"managedFields": [{"time": ahead}]}}))
    assert total() == 0


@pytest.mark.parametrize("text", ["", "Upper", "with blank", "x" * 41, 'q"uote', "line\nfeed", "1st"])
def test_what_is_no_plain_word_is_no_label(text: str) -> None:
    assert instruments.code_label(text) == "other"


def test_what_another_process_counted_is_told_by_this_one(env: World, scrape: Scrape) -> None:
    steps = rises(scrape, "pratique_steps_total", step="prepare", outcome="done")
    sent = rises(scrape, "pratique_unsent_wakes_total")
    quick = rises(scrape, "pratique_step_seconds_bucket", step="prepare", le="0.5")
    slow = rises(scrape, "pratique_step_seconds_bucket", step="prepare", le="+Inf")
    seconds = rises(scrape, "pratique_step_seconds_sum", step="prepare")
    instruments.count(json.loads(OF_ANOTHER))
    assert (steps(), sent(), quick(), slow(), seconds()) == (2, 1, 1, 2, 3.25)


def test_what_a_process_counted_can_be_sent() -> None:
    before = {(name, *labels): numbers for name, labels, numbers in instruments.counted()}
    instruments.steps.labels("prepare", "failed").inc()
    instruments.step_seconds.labels("restore").observe(7)
    found = {(name, *labels): numbers for name, labels, numbers in json.loads(json.dumps(instruments.counted()))}
    assert found["steps", "prepare", "failed"][0] - before.get(("steps", "prepare", "failed"), [0])[0] == 1
    assert found["step_seconds", "restore"][0] - before.get(("step_seconds", "restore"), [0])[0] == 7
    assert len(found["step_seconds", "restore"]) == 14, "the sum, and each bucket"
