"""A report of any size comes in answers of at most 300 kB, and nothing of it is lost between them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from approvals.api.report_parts import MAX_BYTES, part_of
from tests.approvals.api.conftest import Call, problem_of
from tests.support.approvals import scene
from tests.support.approvals.fixtures import World
from tests.support.provisioner.contents import config_map


def record(findings: int, actions: int, *, evidence: int = 10, body: int = 0, containers: int = 0) -> dict[str, Any]:
    ref = {"group": "", "version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "n" * 200}
    return {
        "version": 1,
        "headline": ["One.", "Two."],
        "worst": "unknown",
        "totals": {"unknown": findings},
        "findings": [
            {
                "rule": "X",
                "severity": "unknown",
                "message": f"message {at}",
                "evidence": {"e": "x" * evidence},
                "ref": ref,
            }
            for at in range(findings)
        ],
        "entries": [
            {"message": f"entry {at}", "findings": [f"{one:064}" for one in range(min(findings, 150))]}
            for at in range(findings // 10)
        ],
        "containers": [
            {"container": f"c{at}", "settings": [{"change": "new", "in": "arg", "value": "x" * body}] * body}
            for at in range(containers)
        ],
        "workloads": [
            {
                "object": f"c{at}",
                "scale": {"before": "", "after": "x" * 3 * body},
                "hostAccess": {"before": [], "after": ["hostPath /x"] * body},
            }
            for at in range(containers)
        ],
        "plan": {
            "digest": scene.DIGEST,
            "actions": [{"ref": ref, "at": at, "before": {"a": "b" * body}, "after": None} for at in range(actions)],
        },
    }


def test_a_small_report_is_whole() -> None:
    small = record(3, 2, body=100)
    part = part_of(small)
    assert {name: part[name] for name in small} == small
    assert part["is_whole"] is True
    assert part["parts"]["findings"] == {"total": 3, "from": 0, "count": 3, "next": None}


@pytest.mark.parametrize(
    ("findings", "actions", "evidence", "body"),
    [
        pytest.param(2_000, 5_000, 500, 2_000, id="many of both"),
        pytest.param(40, 40, 300, 500_000, id="40 definitions of a bundle of 20 MB"),
        pytest.param(200, 0, 39_000, 0, id="long evidence"),
        pytest.param(30, 1, 2_000_000, 0, id="evidence of megabytes"),
        pytest.param(0, 20_000, 0, 0, id="no finding"),
    ],
)
def test_every_part_is_small_and_together_they_are_the_report(
    findings: int, actions: int, evidence: int, body: int
) -> None:
    report = record(findings, actions, evidence=evidence, body=body)
    messages: list[str] = []
    positions: list[int] = []
    at: dict[str, int | None] = {"findings": 0, "actions": 0}
    while any(start is not None for start in at.values()):
        part = part_of(report, findings_from=at["findings"] or 0, actions_from=at["actions"] or 0)
        assert len(json.dumps(part)) <= MAX_BYTES, at
        assert part["totals"] == report["totals"]
        if at["findings"] is not None:
            messages += [one["message"] for one in part["findings"]]
        if at["actions"] is not None:
            positions += [one["at"] for one in part["plan"]["actions"]]
        at = {name: part["parts"][name]["next"] if start is not None else None for name, start in at.items()}
    assert messages == [one["message"] for one in report["findings"]]
    assert positions == list(range(actions))


@pytest.mark.parametrize(
    ("name", "left_out", "count"),
    [
        ("containers", ("settings_left_out", 1_980), 30),
        ("workloads", ("object", "c0"), 30),
        ("entries", ("findings_left_out", 50), 200),
    ],
)
def test_containers_workloads_and_entries_come_in_parts_as_well(
    name: str, left_out: tuple[str, object], count: int
) -> None:
    report = record(2_000, 10, evidence=500, body=2_000, containers=30)
    told: list[str] = []
    start: int | None = 0
    while start is not None:
        part = part_of(report, **{f"{name}_from": start})
        assert len(json.dumps(part)) <= MAX_BYTES
        assert told or part[name][0][left_out[0]] == left_out[1]
        assert len(part["workloads"][0]["hostAccess"]["after"]) == 20
        told += [one.get("container") or one.get("object") or one["message"] for one in part[name]]
        start = part["parts"][name]["next"]
    assert told == [f"{'entry ' if name == 'entries' else 'c'}{at}" for at in range(count)]


def test_a_large_report_is_read_part_by_part_over_rest(env: World, call: Call) -> None:
    body = scene.report_of("account-reads-every-secret", "crd-version-dropped")
    finding, planned = body["findings"][0], body["plan"]["actions"][0]
    body["findings"] = [{**finding, "fingerprint": f"f{at}", "message": f"number {at}"} for at in range(2_000)]
    body["plan"]["actions"] = [planned] * 2_000
    uid = scene.reported(scene.asked(env.cluster, "armada", env.rita), body).uid
    first = call(env.ada, "get", f"requests/{uid}/report")
    assert len(first.content) <= MAX_BYTES
    shown = json.loads(first.content)
    assert (shown["is_whole"], shown["parts"]["findings"]["total"]) == (False, 2_000)
    following = shown["parts"]["findings"]["next"]
    second = json.loads(call(env.ada, "get", f"requests/{uid}/report?findings_from={following}").content)
    assert second["findings"][0]["message"] == f"number {following}"
    only = json.loads(call(env.ada, "get", f"requests/{uid}/report?finding=f1999").content)
    assert [one["evidence"] for one in only["findings"]] == [finding["evidence"]]
    one = json.loads(call(env.ada, "get", f"requests/{uid}/report/objects/7").content)
    assert (one["before"], one["after"]) == (planned["before"], planned["after"])


def test_what_differs_in_an_object_is_read_in_hunks_and_parts(env: World, call: Call) -> None:
    body = scene.report_of("image-known-before")
    planned = body["plan"]["actions"][0]
    before = config_map(a="1", **{f"k{at:02}": "x" for at in range(20)}, z="\u202e")
    wide = config_map(**{f"k{at:05}": "x" * 100 for at in range(5_000)})
    body["plan"]["actions"] = [
        {**planned, "before": before, "after": {**before, "data": {**before["data"], "a": "2", "z": "3"}}},
        {**planned, "before": None, "after": wide},
    ]
    uid = scene.reported(scene.asked(env.cluster, "armada", env.rita), body).uid
    shown = json.loads(call(env.ada, "get", f"requests/{uid}/report/objects/0/changes").content)
    changed = [[one for one in hunk["lines"] if one["kind"] != " "] for hunk in shown["hunks"]]
    assert [hunk["place"] for hunk in shown["hunks"]] == ["metadata", "data"]
    assert changed[0] == [
        {"kind": "-", "text": '  a: "1"', "old": 7, "new": 0},
        {"kind": "+", "text": '  a: "2"', "old": 0, "new": 7},
    ]
    assert "\\u202e" in changed[1][0]["text"]
    lines, following = 0, 0
    while following is not None:
        answer = call(env.ada, "get", f"requests/{uid}/report/objects/1/changes?lines_from={following}")
        assert answer.status_code == 200, answer.content[:500]
        assert len(answer.content) <= MAX_BYTES
        part = json.loads(answer.content)
        lines += sum(len(hunk["lines"]) for hunk in part["hunks"])
        following = part["parts"]["lines"]["next"]
    assert lines == 5_006


def test_S09_nothing_differs_in_an_object_that_the_caller_may_not_get(env: World, call: Call) -> None:
    body = scene.report_of("image-known-before")
    planned = body["plan"]["actions"][0]
    states = {"before": config_map(a="live-value"), "after": config_map(a="ours")}
    ref = {"group": "", "version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "settings"}
    body["plan"]["actions"] = [{**planned, **states, "ref": ref, "action": "update"}]
    uid = scene.reported(scene.asked(env.cluster, "armada", env.rita), body).uid
    env.kubernetes.closed = {"configmaps"}
    shown = json.loads(call(env.ada, "get", f"requests/{uid}/report/objects/0/changes").content)
    assert (shown["hunks"], shown["parts"]["lines"]["total"]) == ([], 0)


@pytest.mark.parametrize(
    "path", ["report/objects/2000/changes", "report/objects/2000", "report/objects/-1", "report/objects/x"]
)
def test_an_object_that_is_not_planned_is_not_found(
    env: World, afternoon: dict[str, Any], call: Call, path: str
) -> None:
    response = call(env.ada, "get", f"requests/{afternoon['serious'].uid}/{path}")
    assert (response.status_code, problem_of(response)["code"]) == (404, "not-found")


def test_a_part_that_cannot_be_is_refused(env: World, afternoon: dict[str, Any], call: Call) -> None:
    assert call(env.ada, "get", f"requests/{afternoon['serious'].uid}/report?findings_from=-1").status_code == 400
