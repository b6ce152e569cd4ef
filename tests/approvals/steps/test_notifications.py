"""Events on the wire: signed, to checked addresses, again with the same id after a worker died."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import repeat
from typing import Any
from unittest.mock import Mock

import pytest
from standardwebhooks import Webhook

from approvals import tasks
from approvals.clock import database_now
from approvals.ledger import claims, notifications
from approvals.models import NotificationDelivery, NotificationTarget, OutboxEvent, Request
from approvals.services.notifications import targets
from approvals.steps.notifications import SENDS_AT_ONCE, SendNotifications, SpreadEvents
from approvals.working import do
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import acting
from tests.support.notification_targets import happened, target_row
from tests.support.servers.http import Asked, FileServer, Reply


@pytest.fixture
def server(http_server: FileServer, settings: Any) -> Iterator[FileServer]:
    """Where the operator lets targets be: a test takes that away."""
    allowed = {"ALLOWED_NETWORKS": ["127.0.0.0/8"], "PLAIN_HTTP_HOSTS": ["127.0.0.1"]}
    settings.PRATIQUE = {**settings.PRATIQUE, **allowed, "PUBLIC_URL": "https://pratique.example.com/"}
    http_server.serve("/hook", status=202)
    yield http_server
    http_server.forget()


@pytest.fixture
def hook(server: FileServer, request_: Request) -> NotificationTarget:
    """A target for which one event waits."""
    hook = target_row(f"{server.url}/hook")
    OutboxEvent.objects.all().delete()
    happened("request.start", request=request_)
    notifications.spread_events()
    return hook


def send(target: NotificationTarget) -> NotificationDelivery:
    do(SendNotifications(target.pk))
    return target.deliveries.latest("pk")


def sent(server: FileServer) -> list[Asked]:
    return [asked for asked in server.asked if asked.path == "/hook"]


def verify(asked: Asked, secret: str) -> Any:
    return Webhook(secret).verify(asked.body, dict(asked.headers))


def test_an_event_is_sent_once_and_proves_itself_to_the_library_of_standard_webhooks(
    hook: NotificationTarget, request_: Request, server: FileServer
) -> None:
    row = send(hook)
    assert (row.delivered_at is not None, row.status, row.attempts) == (True, 202, 1)
    (asked,) = sent(server)
    event = verify(asked, hook.secret)
    assert asked.headers["content-type"] == "application/cloudevents+json"
    assert asked.headers["webhook-id"] == event["id"] == str(row.event_id)
    assert (event["type"], event["subject"]) == (
        "dev.pratique.request.applying.v1",
        f"prod/strimzi/{request_.uid}",
    )
    assert event["data"] == row.event.data
    send(hook)
    assert len(sent(server)) == 1


class Killed(BaseException):
    """A worker that goes away in the middle."""


def test_a_worker_that_dies_after_it_sent_leaves_the_event_to_be_sent_again_with_its_id_and_both_secrets(
    hook: NotificationTarget, env: World, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(notifications, "note_result", Mock(side_effect=Killed))
        with pytest.raises(Killed):
            send(hook)
    assert hook.deliveries.get().send_at is not None
    before = hook.secret
    after = targets.make_target_secret(by=acting(env.ada), target=hook, via="browser")
    assert send(hook).delivered_at is not None
    first, second = sent(server)
    assert (first.body, first.headers["webhook-id"]) == (second.body, second.headers["webhook-id"])
    for secret in (before, after):
        assert verify(second, secret)["id"] == str(hook.deliveries.get().event_id)


@pytest.mark.parametrize(
    ("reply", "status", "words"),
    [
        (Reply(status=302, headers={"Location": "/elsewhere"}), 302, "302: redirects are not followed"),
        (Reply(status=404), 404, "127.0.0.1 answered 404"),
        (Reply(status=503), 503, "the server answered 503"),
    ],
)
def test_only_success_is_a_delivery_and_no_redirect_is_followed(
    hook: NotificationTarget, server: FileServer, reply: Reply, status: int, words: str
) -> None:
    server.serve_reply("/hook", reply)
    row = send(hook)
    assert (row.delivered_at, row.status, words in row.problem) == (None, status, True)
    assert [asked.path for asked in server.asked] == ["/hook"]


def test_a_body_without_end_is_not_read(hook: NotificationTarget, server: FileServer) -> None:
    server.serve_reply("/hook", Reply(body=repeat(b"x" * 65536), status=200))
    row = send(hook)
    assert row.delivered_at is not None
    assert row.milliseconds < 10_000


@pytest.mark.parametrize(
    ("operator", "address", "words"),
    [
        ({"ALLOWED_NETWORKS": []}, "", "which is not a public address; PRATIQUE_ALLOWED_NETWORKS can allow it"),
        ({"PLAIN_HTTP_HOSTS": []}, "", "expected https; PRATIQUE_PLAIN_HTTP_HOSTS can allow http"),
        ({}, "https://nowhere.invalid/hook", "nowhere.invalid cannot be resolved"),
        ({}, "https:", "ertificate"),
        ({}, "http://127.0.0.1:1/hook", "cannot be connected to"),
    ],
)
def test_S53_a_test_goes_where_sources_may_be_and_says_what_went_wrong_once(
    hook: NotificationTarget,
    env: World,
    server: FileServer,
    settings: Any,
    operator: dict[str, Any],
    address: str,
    words: str,
) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, **operator}
    hook.deliveries.all().delete()
    if address:
        hook.address = f"{server.https_url}/hook" if address == "https:" else address
        hook.save()
    targets.send_test(by=acting(env.ada), target=hook, via="browser")
    row = send(hook)
    assert (row.delivered_at, row.status, row.attempts) == (None, 0, 1)
    assert row.dead_at is not None
    assert words in row.problem
    assert sent(server) == []


def test_a_test_says_nothing_of_a_cluster_and_goes_before_what_waits(
    hook: NotificationTarget, env: World, server: FileServer
) -> None:
    target_row(f"{server.url}/other", name="other")
    test = targets.send_test(by=acting(env.ada), target=hook, via="browser")
    notifications.spread_events()
    send(hook)
    events = [json.loads(asked.body) for asked in sent(server)]
    assert [one["type"].split(".")[2] for one in events] == ["test", "request"]
    assert (events[0]["id"], events[0]["subject"]) == (str(test.event_id), "NotificationTarget/hook")
    assert events[0]["data"] == {"actor": {"name": "ada", "via": "browser"}}


def test_a_target_that_is_being_sent_to_or_is_away_delays_no_other(
    hook: NotificationTarget, request_: Request, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = target_row(f"{server.url}/other", name="other")
    server.serve("/other", status=200)
    happened("request.fail", request=request_)
    do(SpreadEvents())
    woken: list[int] = []
    monkeypatch.setattr("approvals.wake.notifications", woken.append)
    monkeypatch.setattr("approvals.wake.events", lambda: woken.append(0))
    tasks.sweep()
    assert woken == [hook.pk, other.pk], "nothing is left to give to targets"
    # A worker is waiting for the first one's answer.
    assert claims.take(claims.rows_of_task(SendNotifications.task, hook.pk), "a slow one")
    do(SendNotifications(hook.pk))
    assert send(other).delivered_at is not None
    assert sent(server) == []
    assert notifications.targets_due(database_now()) == [hook.pk]


def test_S40_targets_that_hold_their_connections_open_keep_few_threads(
    hook: NotificationTarget, request_: Request, server: FileServer
) -> None:
    happened("request.fail", request=request_)
    do(SpreadEvents())
    for number in range(SENDS_AT_ONCE):
        assert claims.take(claims.rows_of_task(f"{SendNotifications.task} {number}", 0), f"slow {number}")
    do(SendNotifications(hook.pk))
    assert sent(server) == []
    assert notifications.targets_due(database_now()) == [hook.pk], "the next sweep tries again"
