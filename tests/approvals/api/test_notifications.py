"""Notification targets over REST."""

from __future__ import annotations

import json
from typing import Any

from approvals.clock import database_now
from approvals.models import NotificationDelivery, NotificationTarget
from tests.approvals.api.conftest import Call, problem_of
from tests.support.approvals.fixtures import World

WISH = {"address": "https://hooks.example.com/a", "event_types": ["dev.pratique.request.denied.v1"]}
HOOK = "notification-targets/hook"


def body_of(response: Any) -> Any:
    return json.loads(response.content)


def test_a_target_is_made_changed_with_its_etag_tested_and_deleted(env: World, call: Call) -> None:
    made = call(env.ada, "post", "notification-targets", {"name": "hook", **WISH})
    assert (made.status_code, body_of(made)["granted"], body_of(made)["secret"][:6]) == (201, ["prod"], "whsec_")
    again = call(env.ada, "post", "notification-targets", {"name": "hook", **WISH})
    assert (again.status_code, problem_of(again)["code"]) == (409, "changed")
    found = call(env.ada, "get", HOOK)
    assert "secret" not in body_of(found)
    assert problem_of(call(env.ada, "put", HOOK, WISH))["code"] == "precondition-required"
    wish = {**WISH, "clusters": ["prod"], "min_severity": "dangerous"}
    saved = call(env.ada, "put", HOOK, wish, if_match=found["ETag"])
    assert (saved.status_code, body_of(saved)["version"]) == (200, 2)
    assert call(env.ada, "put", HOOK, wish, if_match=found["ETag"]).status_code == 412

    test = call(env.ada, "post", f"{HOOK}/test")
    assert (test.status_code, body_of(test)["type"]) == (202, "dev.pratique.test.v1")
    NotificationDelivery.objects.update(send_at=None, dead_at=database_now(), attempts=1, status=404)
    (row,) = body_of(call(env.ada, "get", f"{HOOK}/deliveries"))["results"]
    assert (row["status"], row["attempts"], row["subject"]) == (404, 1, "NotificationTarget/hook")
    sent = call(env.ada, "post", f"{HOOK}/deliveries/{row['id']}/send-again")
    assert (sent.status_code, body_of(sent)["dead_at"]) == (202, None)
    assert call(env.ada, "post", f"{HOOK}/deliveries/{row['id']}/send-again").status_code == 409
    assert body_of(call(env.ada, "post", f"{HOOK}/secret"))["secret"] == NotificationTarget.objects.get().secret

    etag = call(env.ada, "get", HOOK)["ETag"]
    assert call(env.ada, "delete", HOOK, if_match=etag).status_code == 204
    assert call(env.ada, "get", HOOK).status_code == 404


def test_S53_what_is_sent_is_listed_to_nobody_else(env: World, call: Call) -> None:
    call(env.ada, "post", "notification-targets", {"name": "hook", **WISH})
    env.kubernetes.allow("bert", "get")
    refused = call(env.bert, "post", "notification-targets", {"name": "mine", **WISH})
    assert (refused.status_code, problem_of(refused)["code"]) == (403, "not-allowed")
    assert body_of(call(env.bert, "get", "notification-targets"))["results"] == []
    for method, path in (("get", HOOK), ("get", f"{HOOK}/deliveries"), ("post", f"{HOOK}/test")):
        assert call(env.bert, method, path).status_code == 404, (method, path)
