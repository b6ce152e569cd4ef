"""What selectors and conditions look at of a request, and objects of a kind that is not served."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from approvals.clock import database_now
from approvals.deciding.approval_rules import ApprovalRule
from approvals.deciding.change_windows import HeldChange
from approvals.gate.deciding_objects import (
    conditions_of,
    host_of,
    live_objects,
    load_policies,
    read_windows,
    seen_objects,
    selected_by,
)
from approvals.gate.policies import reviewed_report
from approvals.gate.rule_facts import rules_of
from approvals.ledger.deciding import deciding_objects
from approvals.models import Report, Request
from provisioner.errors import TryLater
from tests.support.approvals.fixtures import World


@pytest.mark.parametrize(
    ("kind", "reference", "host"),
    [
        ("image", "ghcr.io/team/app@sha256:1", "ghcr.io"),
        ("image", "GHCR.IO./team/app:1", "ghcr.io"),
        ("image", "localhost:5000/app", "localhost"),
        ("image", "team/app", "docker.io"),
        ("image", "index.docker.io/team/app", "docker.io"),
        ("image", "registry-1.Docker.io/team/app", "docker.io"),
        ("git", "git@GitHub.com:team/app", "github.com"),
        ("git", "https://GitHub.com./team/app", "github.com"),
        ("http", "https://example.com:8443/app.tgz", "example.com"),
        ("configmap", "harbour/app", ""),
    ],
)
def test_a_host_has_one_name_however_a_source_writes_it(kind: str, reference: str, host: str) -> None:
    assert host_of(kind, reference) == host


def test_S14_a_condition_is_asked_with_every_set_of_labels(request_: Request) -> None:
    tiers, report = ('labels["tier"] == "prod"', 'name == "strimzi"'), reviewed_report(request_)
    for earlier, now, said in (
        ([], {"tier": "prod"}, ""),
        ([], {"tier": "dev"}, None),
        ([{"tier": "prod"}], {"tier": "dev"}, "it is true with some of the labels that the deployment had since"),
    ):
        request_.labels, request_.earlier_labels, request_.deployment.labels = now, earlier, now
        found = conditions_of(request_, report, tiers)
        assert found[tiers[1]] == ""
        words = found[tiers[0]]
        assert words == said or (said and words and words.startswith(said))


def test_what_goes_is_selected_by_where_it_came_from(env: World, request_: Request) -> None:
    pins = [{"kind": "image", "reference": "ghcr.io/team/app", "digest": "sha256:1"}]
    before = Request(deployment=request_.deployment, pins=pins, bundles=[{"package": "strimzi", "catalog": "c"}])
    request_.pins, request_.bundles = [], []
    about = selected_by(request_, reviewed_report(request_))
    assert (about.hosts, about.hosts_before) == ((), ())
    request_._state.fields_cache["from_revision"] = cast("Any", type("Revision", (), {"request": before}))
    about = selected_by(request_, reviewed_report(request_))
    assert (about.hosts_before, about.packages_before) == (("ghcr.io",), ("strimzi",))


def test_findings_about_objects_of_others_count_for_the_least_severity(request_: Request) -> None:
    report, ref = Report.objects.get(), {"group": "", "version": "v1", "kind": "Secret", "namespace": "a", "name": "b"}
    adopted = {"action": "adopt", "ref": ref, "before": {}, "after": {}, "uid": "u", "problem": ""}
    report.body = {
        **report.body,
        "plan": {**report.body["plan"], "actions": [adopted]},
        "private": [{"ref": ref, "severity": "breaking", "isNew": True}],
    }
    assert selected_by(request_, report).worst_new == "breaking"


@pytest.mark.parametrize(
    ("spec", "sure", "unread"),
    [
        pytest.param({"type": "Deny"}, [True], 0, id="every deployment"),
        pytest.param({"type": "Deny", "selector": {"names": ["other"]}}, [], 0, id="another one"),
        pytest.param({"type": "Deny", "when": "1 / 0 == 1"}, [False], 0, id="a condition that fails"),
        pytest.param({"type": "Deny", "when": 'name == "other"'}, [], 0, id="a condition that is false"),
        pytest.param({"type": "Deny", "selector": {"matchLabels": {"tier": "prod"}}}, [False], 0, id="earlier labels"),
        pytest.param({"type": "Perhaps"}, [], 1, id="it cannot be read"),
        pytest.param({"type": "Perhaps", "selector": {"names": ["other"]}}, [], 0, id="unreadable, about another one"),
        pytest.param({"type": "Deny", "selector": {"names": 3}}, [], 1, id="its selector cannot be read"),
    ],
)
def test_S14_which_windows_select_a_request(
    request_: Request, spec: dict[str, Any], sure: list[bool], unread: int
) -> None:
    request_.labels, request_.earlier_labels = {"tier": "dev"}, [{"tier": "prod"}]
    listed = SimpleNamespace(objects=[{"metadata": {"name": "w", "uid": "u"}, "spec": spec}])
    found = read_windows(
        request_, cast("Any", SimpleNamespace(resource_of=lambda *_: "windows", snapshot=lambda _: listed))
    )
    assert ([each.is_sure for each in found.selecting], len(found.unread)) == (sure, unread)


def test_what_a_rule_said_since_the_request_was_made_counts_and_what_it_said_before_does_not(
    env: World, request_: Request
) -> None:
    def read() -> tuple[int, list[int | None]]:
        rules = seen_objects(env.cluster, ApprovalRule)
        (facts,) = rules_of(request_, reviewed_report(request_), rules, None)
        assert facts.rule
        return len(facts.rule.require), [one.rule and len(one.rule.require) for one in facts.earlier]

    parts = [{"name": "a"}, {"name": "b"}]
    for generation, spec in enumerate(({"require": parts}, {"require": "nobody"}, {"require": parts[:1]}), 1):
        meta = {"name": "r", "uid": "u", "generation": generation, "resourceVersion": str(generation)}
        deciding_objects.observe(
            cluster=env.cluster, kind="ApprovalRule", obj={"metadata": meta, "spec": spec}, is_listed=True
        )
    assert read() == (1, [2, None])
    request_.created_at = database_now()
    assert read() == (1, [])
    deciding_objects.forget(cluster=env.cluster, uid="u")
    rules = seen_objects(env.cluster, ApprovalRule)
    request_.created_at = database_now()
    (gone,) = rules_of(request_, reviewed_report(request_), rules, None)
    assert (gone.rule, gone.earlier, len(gone.changes)) == (None, (), 4), "what an approval of before was given under"


def test_S51_a_rule_that_selects_by_some_of_the_labels_only_is_not_sure(env: World, request_: Request) -> None:
    request_.labels, request_.earlier_labels = {"tier": "prod"}, [{"tier": "dev"}]
    spec = {"selector": {"matchLabels": {"tier": "dev"}}, "require": [{"name": "a"}], "carryOver": True}
    meta = {"name": "r", "uid": "u", "generation": 1, "resourceVersion": "1"}
    obj = {"metadata": meta, "spec": spec}
    deciding_objects.observe(cluster=env.cluster, kind="ApprovalRule", obj=obj, is_listed=True)
    rules = seen_objects(env.cluster, ApprovalRule)
    (facts,) = rules_of(request_, reviewed_report(request_), rules, None)
    assert facts.rule and not facts.is_sure


def test_a_kind_that_is_away_for_a_moment_is_waited_for(env: World) -> None:
    api = cast("Any", type("Api", (), {"resource_of": lambda *_: None}))()
    assert live_objects(env.cluster, ApprovalRule, api) == ()
    meta = {"name": "four-eyes", "uid": "u", "generation": 1, "resourceVersion": "1"}
    deciding_objects.observe(
        cluster=env.cluster, kind="ApprovalRule", obj={"metadata": meta, "spec": {}}, is_listed=True
    )
    for _ in range(2):
        with pytest.raises(TryLater, match="does not serve ApprovalRule at the moment"):
            live_objects(env.cluster, ApprovalRule, api)
        deciding_objects.forget(cluster=env.cluster, uid="u")  # as the watch does


def test_windows_that_take_long_to_work_out_hold_until_they_were_read(
    request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rare recurrences, each of another start."""
    rare = {"type": "Deny", "timeZone": "UTC", "rrule": "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29;BYDAY=SU", "duration": "1h"}
    objects = [
        {"metadata": {"name": f"w{number}"}, "spec": {**rare, "dtstart": f"2025-01-01T{number:02}:00:00"}}
        for number in range(20)
    ]
    listed = SimpleNamespace(objects=objects)
    api = cast("Any", SimpleNamespace(resource_of=lambda *_: "windows", snapshot=lambda _: listed))
    monkeypatch.setattr("approvals.gate.deciding_objects.WINDOWS_SECONDS", 0.01)
    found, looks = read_windows(request_, api), 1
    assert 0 < len(found.selecting) < 20
    assert len(found.selecting) + len(found.unread) == 20
    assert not found.judge(HeldChange.APPLY, database_now()).is_open
    assert found.unread[-1].startswith(
        "change window w19 cannot be read, so the requests that it might select wait: to work out"
    )
    while found.unread and looks < 20:
        found, looks = read_windows(request_, api), looks + 1
    assert (len(found.selecting), found.unread) == (20, ()), "what was worked out is remembered"


@pytest.mark.parametrize("filling", ["", "x" * 900], ids=["remembered", "too long for that"])
def test_what_was_read_of_an_object_once_is_not_taken_for_another_one(
    env: World, request_: Request, filling: str
) -> None:
    def see(name: str, count: int, generation: int) -> None:
        expression = f"unjudged < {count} //{filling}"
        spec = {
            "effect": "Guard",
            "validations": [{"expression": expression}] * (3 if filling else 1),
            "validationActions": ["Deny"],
        }
        meta = {"name": name, "uid": name, "generation": generation, "resourceVersion": str(generation)}
        obj = {"metadata": meta, "spec": spec}
        deciding_objects.observe(cluster=env.cluster, kind="ApprovalPolicy", obj=obj, is_listed=False)

    def said() -> dict[str, str]:
        found = (loaded.document for loaded in load_policies(request_))
        return {document.name: document.validations[0].expression[:12] for document in found}

    see("a", 1, 1)
    see("b", 1, 1)
    assert said() == said() == {"a": "unjudged < 1", "b": "unjudged < 1"}
    see("b", 2, 2)
    assert said() == {"a": "unjudged < 1", "b": "unjudged < 2"}
