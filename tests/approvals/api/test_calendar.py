"""The calendar of a cluster's change windows, over REST."""

from __future__ import annotations

from approvals.ledger.deciding.deciding_objects import observe
from tests.approvals.api.conftest import Call, problem_of
from tests.support.approvals.fixtures import World
from tests.support.approvals.windows import STOP


def test_who_may_list_change_windows_reads_them_as_a_calendar(env: World, call: Call) -> None:
    about = {"name": "stop", "uid": "u-1", "generation": 1, "resourceVersion": "1"}
    observe(cluster=env.cluster, kind="ChangeWindow", obj={"metadata": about, "spec": STOP}, is_listed=True)
    env.kubernetes.allow("rita", "get")
    refused = call(env.rita, "get", "clusters/prod/change-windows.ics")
    assert (refused.status_code, problem_of(refused)["code"]) == (403, "not-allowed")
    env.kubernetes.allow("ada", "list")
    answer = call(env.ada, "get", "clusters/prod/change-windows.ics")
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/calendar; charset=utf-8")
    text = answer.content.decode()
    assert text.startswith("BEGIN:VCALENDAR\r\n")
    assert "SUMMARY:Deny: stop\r\n" in text
