"""The event that asks an external check: signed, the same each time, and sent to checked addresses only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import Any
from unittest.mock import Mock
from uuid import uuid4

import pytest
import time_machine
from standardwebhooks import Webhook

from approvals import services, wake
from approvals.clock import database_now
from approvals.deciding.external_checks import ExternalCheck
from approvals.ledger import claims
from approvals.ledger.deciding import check_runs, deciding_objects
from approvals.models import CheckRun, CheckSecret, Request
from approvals.steps import evaluate
from approvals.steps.external_checks import OF_ONE_CHECK, OF_ONE_CLUSTER, SENDS_AT_ONCE, SendCheckRun, in_line
from approvals.working import do
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.rollouts import asked
from tests.support.approvals.world import acting
from tests.support.servers.http import Asked, FileServer, Reply


@pytest.fixture
def server(http_server: FileServer, settings: Any) -> Iterator[FileServer]:
    """Where the operator lets checks be: a test takes that away."""
    allowed = {"ALLOWED_NETWORKS": ["127.0.0.0/8"], "PLAIN_HTTP_HOSTS": ["127.0.0.1"]}
    settings.PRATIQUE = {**settings.PRATIQUE, **allowed, "PUBLIC_URL": "https://pratique.example.com/"}
    http_server.serve("/tickets", status=202)
    yield http_server
    http_server.forget()


@pytest.fixture
def run(env: World, request_: Request, server: FileServer) -> CheckRun:
    meta = {"name": "tickets", "uid": "u-1", "generation": 1, "resourceVersion": "1"}
    obj = {"metadata": meta, "spec": {"url": f"{server.url}/tickets"}}
    deciding_objects.observe(cluster=env.cluster, kind=ExternalCheck.kind, obj=obj, is_listed=True)
    env.kubernetes.allow("ada", "update")
    services.make_check_secret(by=acting(env.ada), cluster=env.cluster, name="tickets", via="browser")
    Request.objects.update(change_reason="new berths", change_ticket="CHG-7")
    evaluate.run(Request.objects.get(), "")
    return CheckRun.objects.get()


def send(run: CheckRun) -> CheckRun:
    do(SendCheckRun(run.pk))
    run.refresh_from_db()
    return run


def sent(server: FileServer) -> list[Asked]:
    return [asked for asked in server.asked if asked.path == "/tickets"]


def verify(asked: Asked, secret: str) -> Any:
    return Webhook(secret).verify(asked.body, dict(asked.headers))


def test_the_event_is_signed_and_tells_what_a_reader_of_the_deployment_knows(
    env: World, request_: Request, run: CheckRun, server: FileServer
) -> None:
    assert send(run).delivered_at is not None
    (asked,) = sent(server)
    event = verify(asked, CheckSecret.objects.get().secret)
    assert (asked.method, asked.headers["content-type"]) == ("POST", "application/cloudevents+json")
    assert asked.headers["webhook-id"] == event["id"] == str(run.uid)
    assert event["type"] == "dev.pratique.check.after-report.v1"
    assert event["data"] == {
        "run": str(run.uid),
        "check": {"name": "tickets", "stage": "AfterReport", "enforcement": "Mandatory"},
        "cluster": "prod",
        "deployment": {"name": "strimzi", "uid": request_.deployment.uid},
        "request": {
            "uid": str(request_.uid),
            "number": 1,
            "purpose": "deploy",
            "round": 1,
            "version": "",
            "severity": "safe",
            "page": f"https://pratique.example.com/requests/{request_.uid}",
        },
        "change": {"reason": "new berths", "ticket": "CHG-7"},
        "subjectDigest": run.subject_digest,
        "answer": {
            "url": f"https://pratique.example.com/api/v1/checks/{run.uid}",
            "token": check_runs.token_of(run),
            "until": run.due_at.isoformat(),
        },
    }
    do(SendCheckRun(run.pk))
    assert len(sent(server)) == 1


class Killed(BaseException):
    """A worker that goes away in the middle."""


def test_what_was_not_delivered_is_sent_again_with_the_same_id_and_both_secrets(
    env: World, run: CheckRun, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.serve("/tickets", status=503)
    assert (send(run).delivered_at, run.problem, run.attempts) == (None, "unreachable", 1)
    assert run.send_at is not None
    assert timedelta() < run.send_at - database_now() <= timedelta(seconds=2)
    before = CheckSecret.objects.get().secret
    services.make_check_secret(by=acting(env.ada), cluster=env.cluster, name="tickets", via="browser")
    server.serve("/tickets")
    assert in_line(database_now() + timedelta(seconds=2)) == [run.pk]
    with time_machine.travel(database_now() + timedelta(seconds=2)):
        # A worker that was killed before it could write down that it sent it leaves the row as it was.
        with monkeypatch.context() as patched:
            patched.setattr(check_runs, "note_sent", Mock(side_effect=Killed))
            with pytest.raises(Killed):
                send(run)
        assert send(run).delivered_at is not None
        for secret in (before, CheckSecret.objects.get().secret):
            assert verify(sent(server)[-1], secret)["id"] == str(run.uid)
    assert len(sent(server)) == 3
    assert {(asked.body, asked.headers["webhook-id"]) for asked in sent(server)} == {
        (sent(server)[0].body, str(run.uid))
    }


@pytest.mark.parametrize(
    ("status", "problem"),
    [(302, "source-unavailable"), (404, "source-unavailable"), (410, "source-unavailable"), (429, "unreachable")],
)
def test_only_success_counts_as_delivered_and_no_redirect_is_followed(
    run: CheckRun, server: FileServer, status: int, problem: str
) -> None:
    server.serve("/tickets", status=status, headers={"Location": f"{server.url}/elsewhere"})
    assert (send(run).delivered_at, run.problem) == (None, problem)
    assert [asked.path for asked in server.asked] == ["/tickets"]


@pytest.mark.parametrize(
    ("operator", "problem"),
    [({"ALLOWED_NETWORKS": []}, "forbidden-address"), ({"PLAIN_HTTP_HOSTS": []}, "bad-source")],
)
def test_S49_an_event_goes_where_sources_may_be_fetched_from_and_nowhere_else(
    run: CheckRun, server: FileServer, settings: Any, operator: dict[str, Any], problem: str
) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, **operator}
    assert (send(run).delivered_at, run.problem) == (None, problem)
    assert sent(server) == []


@pytest.mark.parametrize("ends", ["time", "answer", "verdict", "round"])
def test_nothing_is_sent_once_no_answer_counts(run: CheckRun, server: FileServer, ends: str) -> None:
    at = run.asked_at
    if ends == "time":
        server.serve("/tickets", status=503)
        at = send(run).due_at
        server.forget()
    elif ends == "answer":
        services.answer_check(
            run=run.uid, token=check_runs.token_of(run), outcome="passed", subject_digest=run.subject_digest
        )
    else:
        Request.objects.update(**({"state": "denied"} if ends == "verdict" else {"round": 2}))
    with time_machine.travel(at, tick=False):
        assert send(run).send_at is None
    assert sent(server) == []


def several(run: CheckRun, number: int, **changes: Any) -> list[CheckRun]:
    """More runs as this one."""
    fields = {
        field.attname: getattr(run, field.attname) for field in CheckRun._meta.concrete_fields if field.name != "id"
    }
    numbers = range(2, 2 + number)
    return [CheckRun.objects.create(**{**fields, **changes, "uid": uuid4(), "number": each}) for each in numbers]


def test_S40_clusters_and_checks_take_turns_and_one_that_holds_its_connections_leaves_places(
    env: World, request_: Request, run: CheckRun
) -> None:
    several(run, 20)
    others = several(run, 20, check_uid="u-2")
    moon = asked(world.cluster("moon"), "quay", env.rita)
    (far,) = several(run, 1, request_id=moon.pk)
    first = in_line(database_now())
    assert len(first) == SENDS_AT_ONCE and far.pk in first
    mine = [CheckRun.objects.get(pk=pk) for pk in first if pk != far.pk]
    assert len(mine) == OF_ONE_CLUSTER and len([one for one in mine if one.check_uid == "u-1"]) == OF_ONE_CHECK
    assert others[0].pk in first


def test_S40_no_more_are_sent_at_once_than_there_are_places_and_who_is_done_calls_the_next(
    run: CheckRun, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting, woken = several(run, 3), list[int]()
    monkeypatch.setattr(wake, "check_run", woken.append)
    with ExitStack() as held:
        for _ in range(SENDS_AT_ONCE):
            held.enter_context(claims.place(SendCheckRun.task, 0, SENDS_AT_ONCE))
        assert (send(run).attempts, sent(server)) == (0, [])
    assert send(waiting[-1]).attempts == 0  # it is not its turn
    assert send(run).attempts == 1
    assert woken == [waiting[0].pk, waiting[1].pk]


def test_S40_who_does_not_answer_once_is_asked_nothing_else_meanwhile(run: CheckRun, server: FileServer) -> None:
    (other,), (elsewhere,) = several(run, 1), several(run, 1, check_uid="u-2")
    server.serve("/tickets", status=503)
    send(run)
    for row in (other, elsewhere):
        row.refresh_from_db()
    assert (other.send_at, other.attempts) == (run.send_at, 0) and elsewhere.send_at == run.asked_at


def test_the_time_to_answer_begins_when_the_event_is_sent_first(
    env: World, request_: Request, run: CheckRun, server: FileServer
) -> None:
    """However long it waited in line behind others: a check that is well has not failed to answer."""
    late = run.due_at + timedelta(minutes=1)
    with time_machine.travel(late, tick=False):
        assert stands(request_) == "waiting"
        send(run)
        assert (run.delivered_at, run.due_at) == (late, late + timedelta(minutes=10))
        assert (
            verify(sent(server)[0], CheckSecret.objects.get().secret)["data"]["answer"]["until"]
            == run.due_at.isoformat()
        )
    with time_machine.travel(run.due_at, tick=False):
        assert stands(request_) == "no answer"


def stands(request: Request) -> str:
    evaluate.run(Request.objects.get(pk=request.pk), "")
    return str(Request.objects.get(pk=request.pk).external_checks[0]["state"])


def test_it_is_tried_ever_more_rarely_until_the_time_is_over(run: CheckRun, server: FileServer) -> None:
    server.serve_reply("/tickets", Reply(status=500))
    waits, now = [], run.asked_at
    while True:
        with time_machine.travel(now, tick=False):
            send(run)
        if run.send_at is None:
            break
        waits.append((run.send_at - now).total_seconds())
        now = run.send_at
    assert waits[:3] == [pytest.approx(0.875 * 2**number, rel=0.15) for number in (1, 2, 3)]
    assert max(waits) <= 300
    assert now < run.due_at
