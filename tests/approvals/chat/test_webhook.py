"""The generic decision endpoint: one key is one robot, and the robot is asked about like everybody."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from approvals.chat import deliveries
from approvals.models import ChatDelivery, KubernetesIdentity, Report, Request, Review
from tests.approvals.chat.callbacks import act, check_refused
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.senders import WEBHOOK_KEY, decision_body, post_webhook, webhook_headers

pytestmark = pytest.mark.django_db


def send(body: bytes, **signing: Any) -> int:
    return post_webhook(body, webhook_headers(body, **signing)).status_code


def test_the_robot_decides_with_its_own_right(asked: Request, robot: User) -> None:
    assert send(decision_body(asked, reason="change 4711")) == 202
    assert act().words == "Approve by robot is recorded for strimzi"
    given = Review.objects.get()
    assert (given.user, given.channel, given.reason) == (robot, "webhook", "change 4711")


def test_the_answer_comes_before_any_work(env: World, asked: Request, robot: User) -> None:
    env.kubernetes.asked.clear()
    assert send(decision_body(asked)) == 202
    assert (env.kubernetes.asked, Review.objects.count()) == ([], 0)


def test_S21_a_human_named_in_the_body_is_text(env: World, asked: Request, robot: User) -> None:
    send(decision_body(asked, actor="ada", user="ada", username="ada", reason="fine"))
    act()
    given = Review.objects.get()
    assert (given.user, given.username, given.reason) == (robot, "robot", "fine (said to be from ada)")


def test_S21_the_robot_has_no_right_but_its_own(env: World, asked: Request) -> None:
    world.user("robot", env.cluster)
    send(decision_body(asked, actor="ada"))
    check_refused("does not allow robot")


def test_S05_the_robot_that_asked_does_not_approve(env: World, asked: Request, robot: User) -> None:
    Request.objects.update(requesters=[{"username": "robot", "user_id": robot.pk}])
    send(decision_body(asked))
    check_refused("someone else")


def test_S01_the_webhook_s_key_is_no_proof_of_what_a_cluster_said_of_the_robot(
    env: World, asked: Request, robot: User, configured: Settings
) -> None:
    """A listed ServiceAccount votes with its own token over REST; the key stands for the operator's mapping only."""
    name = "system:serviceaccount:itsm:bridge"
    KubernetesIdentity.objects.filter(user=robot).update(username=name, authenticator="token-review")
    env.kubernetes.allow(name, "approve")
    configured.PRATIQUE = {**configured.PRATIQUE, "MACHINE_REVIEWERS": [name]}
    send(decision_body(asked))
    check_refused("no Kubernetes identity")


def test_S22_a_robot_does_not_approve_what_touches_pratique(asked: Request, robot: User) -> None:
    columns = {"section": "content", "severity": "critical", "message": "own", "fingerprint": "f"}
    Report.objects.get().findings.create(position=0, rule="OWN-PRATIQUE-02", **columns)
    send(decision_body(asked))
    check_refused("cannot be approved without seeing")


def test_S03_deletions_are_named_in_the_body(asked: Request, robot: User) -> None:
    ref = {"group": "", "version": "v1", "kind": "Secret", "namespace": "harbour", "name": "old"}
    report = Report.objects.get()
    report.body["plan"]["actions"] = [{"action": "delete", "ref": ref}]
    report.save()
    send(decision_body(asked))
    assert "must acknowledge" in act().words
    send(decision_body(asked, acknowledges=["delete Secret harbour/old"]), key="msg_2")
    deliveries.act(ChatDelivery.objects.get(key="msg_2").pk)
    assert Review.objects.get().acknowledges == ["delete Secret harbour/old"]


def test_S03_a_digest_that_moved_is_refused(asked: Request, robot: User) -> None:
    send(decision_body(asked, subjectDigest="sha256:old"))
    check_refused("review it again")


@pytest.mark.parametrize(
    "change",
    [
        {"webhook-id": ""},
        {"webhook-id": "msg_2"},
        {"webhook-id": "m" * 129},
        {"webhook-timestamp": ""},
        {"webhook-timestamp": "soon"},
        {"webhook-timestamp": "nan"},
        {"webhook-timestamp": "1e400"},
        {"webhook-signature": ""},
        {"webhook-signature": "v1"},
        {"webhook-signature": "v1,"},
        {"webhook-signature": "v1,%%%"},
        {"webhook-signature": "v1,\u00e9\u00e9\u00e9\u00e9"},
        {"webhook-signature": "v1a," + base64.b64encode(b"x" * 64).decode()},
        {"webhook-signature": "v1," + base64.b64encode(b"x" * 32).decode()},
    ],
    ids=lambda change: " ".join(f"{key} {value[:12]!r}" for key, value in change.items()),
)
def test_unproved_callbacks_all_get_the_same_401(asked: Request, robot: User, change: dict[str, str]) -> None:
    body = decision_body(asked)
    answer = post_webhook(body, webhook_headers(body) | change)
    assert (answer.status_code, json.loads(answer.content)) == (401, {"error": "not verified"})
    assert not ChatDelivery.objects.exists()


@pytest.mark.parametrize("seconds", [-301, 330], ids=["too old", "from the future"])
def test_timestamps_far_from_now_are_refused(asked: Request, robot: User, seconds: int) -> None:
    assert send(decision_body(asked), at=time.time() + seconds) == 401


def test_another_key_is_refused(asked: Request, robot: User) -> None:
    assert send(decision_body(asked), secret=b"x" * 32) == 401


def test_two_signatures_let_a_key_be_changed(asked: Request, robot: User) -> None:
    body = decision_body(asked)
    headers, old = webhook_headers(body), webhook_headers(body, secret=b"o" * 32)
    headers["webhook-signature"] = f"{old['webhook-signature']} {headers['webhook-signature']}"
    assert post_webhook(body, headers).status_code == 202


@pytest.mark.parametrize(
    "secret", ["", "whsec_", "whsec_%%%", "\u00e9"], ids=["none", "empty", "no base64", "no ascii"]
)
def test_without_a_sound_secret_nothing_is_believed(
    asked: Request, robot: User, configured: Settings, secret: str
) -> None:
    configured.PRATIQUE = {**configured.PRATIQUE, "DECISION_WEBHOOK_SECRET": secret}
    assert send(decision_body(asked), secret=b"") == 401
    assert send(decision_body(asked), secret=WEBHOOK_KEY) == 401


def test_a_body_changed_on_the_way_is_refused(asked: Request, robot: User) -> None:
    headers = webhook_headers(decision_body(asked, decision="Deny"))
    assert post_webhook(decision_body(asked), headers).status_code == 401


@pytest.mark.parametrize("size", [64 * 1024, 5 * 1024 * 1024], ids=["over ours", "over Django's"])
def test_a_body_too_large_is_refused_before_it_is_read(asked: Request, robot: User, size: int) -> None:
    assert send(decision_body(asked, reason="x" * size)) == 401
    assert not ChatDelivery.objects.exists()


OTHER_SHAPES = {
    "empty": b"",
    "no json": b"no json",
    "null": b"null",
    "list": b"[]",
    "empty object": b"{}",
    "nested without end": b"[" * 30_000,
    "request a number": b'{"request": 1, "subjectDigest": "d", "decision": "Approve"}',
    "digest empty": b'{"request": "r", "subjectDigest": "", "decision": "Approve"}',
    "decision a list": b'{"request": "r", "subjectDigest": "d", "decision": ["Approve"]}',
    "acknowledges no list": b'{"request": "r", "subjectDigest": "d", "decision": "Approve", "acknowledges": "all"}',
    "acknowledges numbers": b'{"request": "r", "subjectDigest": "d", "decision": "Approve", "acknowledges": [1]}',
}


@pytest.mark.parametrize("body", OTHER_SHAPES.values(), ids=OTHER_SHAPES)
def test_a_proved_body_of_another_shape_is_told_what_is_expected(
    env: World, robot: User, body: bytes, configured: Settings
) -> None:
    answer = post_webhook(body, webhook_headers(body))
    assert (answer.status_code, "expected a JSON object" in json.loads(answer.content)["error"]) == (400, True)
    assert not ChatDelivery.objects.exists()


def test_a_proved_body_that_is_not_utf8_is_refused(env: World, configured: Settings) -> None:
    assert send(b'{"request": "\xff"}') == 401


def test_a_replay_is_answered_but_not_acted_on_twice(asked: Request, robot: User) -> None:
    body = decision_body(asked)
    headers = webhook_headers(body)
    answers = [post_webhook(body, headers) for _ in range(2)]
    assert [it.status_code for it in answers] == [202, 202]
    assert [json.loads(it.content)["duplicate"] for it in answers] == [False, True]
    act()
    assert Review.objects.count() == 1


def test_a_sender_that_tries_again_with_a_new_signature_is_known_by_its_id(asked: Request, robot: User) -> None:
    body = decision_body(asked)
    assert [send(body, at=time.time() - seconds) for seconds in (60, 0)] == [202, 202]
    assert ChatDelivery.objects.count() == 1


def test_without_a_user_the_endpoint_decides_nothing_and_says_so(
    asked: Request, robot: User, configured: Settings
) -> None:
    configured.PRATIQUE = {**configured.PRATIQUE, "DECISION_WEBHOOK_USER": ""}
    body = decision_body(asked)
    answer = post_webhook(body, webhook_headers(body))
    assert (answer.status_code, "DECISION_WEBHOOK_USER" in json.loads(answer.content)["error"]) == (400, True)


@pytest.mark.parametrize("is_there", [True, False], ids=["switched off", "not there"])
def test_a_robot_that_is_no_user_decides_nothing(asked: Request, robot: User, is_there: bool) -> None:
    if is_there:
        User.objects.filter(pk=robot.pk).update(is_active=False)
    else:
        robot.delete()
    assert send(decision_body(asked)) == 202
    check_refused("does not name an active user")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"request": "not-a-uuid"}, "the request does not exist"),
        ({"request": "00000000-0000-0000-0000-000000000000"}, "the request does not exist"),
        ({"request": "\ud800\0"}, "the request does not exist"),
        ({"decision": "approve"}, "expected one of Approve, RequestChanges, Deny"),
        ({"reason": "x" * 4001}, "at most 4000"),
    ],
    ids=["no uuid", "unknown", "no text", "small letter", "long reason"],
)
def test_what_cannot_be_decided_is_kept_with_the_reason(
    asked: Request, robot: User, change: dict[str, str], words: str
) -> None:
    assert send(decision_body(asked, **change)) == 202
    check_refused(words)


def test_words_that_no_database_takes_do_not_stop_a_decision(asked: Request, robot: User) -> None:
    send(decision_body(asked, reason="a\0b\ud800c"))
    assert "is recorded" in act().words
    assert Review.objects.get().reason == "a\ufffdb?c"


def test_S22_a_robot_is_told_that_it_accepts_no_findings(asked: Request, robot: User) -> None:
    body = decision_body(asked, waives=[{"fingerprint": "f1", "reason": "because"}])
    response = post_webhook(body, webhook_headers(body))
    assert response.status_code == 400
    assert "not in chat or by a machine" in response.content.decode()
    assert not ChatDelivery.objects.exists()
