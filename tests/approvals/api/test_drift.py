"""Drift over REST."""

from __future__ import annotations

import json
from typing import Any

from django.core.cache import cache
from django.db import transaction

from approvals import audit
from tests.approvals.api.conftest import Call
from tests.support.approvals import scene
from tests.support.approvals.fixtures import World


def drift(call: Call, here: World, afternoon: dict[str, Any]) -> list[dict[str, Any]]:
    answer = call(here.ada, "get", f"deployments/{afternoon['deployment'].uid}/drift")
    assert answer.status_code == 200, answer.content
    found: list[dict[str, Any]] = json.loads(answer.content)["results"]
    return found


def test_drift_says_who_changed_what_and_when(here: World, afternoon: dict[str, Any], call: Call) -> None:
    scene.drifted(afternoon["deployment"])
    (row,) = drift(call, here, afternoon)
    assert (row["object"], row["kind"], row["state"], row["is_hidden"]) == (
        "ConfigMap harbour/berth-0",
        "changed",
        "open",
        False,
    )
    assert row["changes"] == [
        {
            "path": "data.depth",
            "change": "changed",
            "manager": "kubectl-edit",
            "at": "2026-11-21T12:00:00Z",
            "expected": "ten fathoms",
            "found": "two feet",
        }
    ]


def test_S09_values_are_hidden_from_who_may_not_get_the_object(
    here: World, afternoon: dict[str, Any], call: Call
) -> None:
    scene.drifted(afternoon["deployment"])
    here.kubernetes.closed.add("configmaps")
    (row,) = drift(call, here, afternoon)
    assert row["is_hidden"]
    assert "two feet" not in json.dumps(row)
    assert row["changes"][0]["path"] == "data.depth"


def test_S38_whether_a_secret_differs_is_told_only_to_who_may_get_it(
    here: World, afternoon: dict[str, Any], call: Call
) -> None:
    def told() -> list[Any]:
        paths = (f"deployments/{afternoon['deployment'].uid}/drift", "audit")
        return [json.loads(call(here.ada, "get", path).content) for path in paths]

    afternoon["deployment"].inventory.filter(name="berth-1").update(group="", version="v1", kind="Secret")
    here.kubernetes.closed.add("secrets")
    equal = told()
    secret = scene.drifted(afternoon["deployment"], "berth-1", kind="added")
    with transaction.atomic():
        facts = {"object": str(secret.item), "kind": "added", "fields": secret.fields}
        audit.record(verb="drift.found", actor=audit.MACHINE, deployment=afternoon["deployment"], facts=facts)
    assert told() == equal
    here.kubernetes.closed.clear()
    cache.clear()
    assert [row["object"] for row in drift(call, here, afternoon)] == ["Secret harbour/berth-1"]


def test_a_page_of_drift_is_bounded(here: World, afternoon: dict[str, Any], call: Call) -> None:
    for number in range(12):
        scene.drifted(afternoon["deployment"], f"berth-{number}")
    answer = call(here.ada, "get", f"deployments/{afternoon['deployment'].uid}/drift?page_size=5")
    found = json.loads(answer.content)
    assert (found["count"], len(found["results"])) == (12, 5)
