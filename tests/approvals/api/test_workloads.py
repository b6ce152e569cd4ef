"""What will run, as a part of the report over REST."""

from __future__ import annotations

import json

from tests.approvals.api.conftest import Call
from tests.support.approvals.changes import action, planned
from tests.support.approvals.containers import AFTER, BEFORE, NEW, OLD
from tests.support.approvals.fixtures import World


def test_containers_are_a_part_of_the_report_over_rest(here: World, call: Call) -> None:
    request = planned(here, action(AFTER, BEFORE))
    answer = call(here.ada, "get", f"requests/{request.uid}/report")
    shown = json.loads(answer.content)
    (one,) = shown["containers"]
    assert (one["container"], one["image"]) == ("main", {"before": OLD, "after": NEW})
    assert {"change": "gone", "in": "env", "value": "MODE=live-mode"} in one["settings"]
    assert {"change": "new", "in": "env", "value": "DB_PASSWORD=hidden"} in one["settings"]
    assert (shown["containersHidden"], shown["parts"]["containers"]["total"]) == (0, 1)
    (workload,) = shown["workloads"]
    assert (workload["change"], workload["scale"]) == ("changed", {"before": "1 replica", "after": "1 replica"})
    assert shown["parts"]["workloads"]["total"] == 1


def test_on_a_first_install_rest_names_images_and_no_settings(here: World, call: Call) -> None:
    answer = call(here.ada, "get", f"requests/{planned(here, action(AFTER)).uid}/report")
    (one,) = json.loads(answer.content)["containers"]
    assert (one["change"], one["image"], one["settings"]) == ("new", {"before": "", "after": NEW}, [])


def test_S09_over_rest_no_container_is_told_of_an_object_that_the_caller_may_not_get(here: World, call: Call) -> None:
    here.kubernetes.closed = {"deployments"}
    request = planned(here, action(AFTER, BEFORE))
    answer = call(here.ada, "get", f"requests/{request.uid}/report")
    shown = json.loads(answer.content)
    assert (shown["workloads"], shown["containers"], shown["containersHidden"]) == ([], [], 1)
    assert not [words for words in (OLD, NEW, "live-arg", "live-mode", "hunter") if words in answer.content.decode()]
