"""The outbox: an event is written with the change that it tells of, and tells what readers of the deployment know."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from cloudevents.core.formats.json import JSONFormat
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from approvals import audit
from approvals.audit import MACHINE, Actor
from approvals.events.cloud_event import write_event
from approvals.ledger.deciding import deciding_objects
from approvals.ledger.moves import locked, move
from approvals.lifecycle import Event
from approvals.models import AuditEntry, OutboxEvent, Report, Request
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.policies import allow, look, save
from tests.support.approvals.world import acting


@pytest.fixture
def home(settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "PUBLIC_URL": "https://pratique.example.com/"}


def withdraw(request: Request, reason: str = "a storm") -> None:
    move(locked(request.pk), Event.WITHDRAW, actor=Actor("rita", "browser"), facts={"reason": reason})


def test_an_event_is_written_with_its_change_or_not_at_all(request_: Request) -> None:
    before = OutboxEvent.objects.count()
    with transaction.atomic():
        withdraw(request_)
        assert OutboxEvent.objects.count() == before + 1
        transaction.set_rollback(True)
    assert (OutboxEvent.objects.count(), Request.objects.get().state) == (before, "in_review")
    with transaction.atomic():
        withdraw(request_)
    event = OutboxEvent.objects.last()
    assert event is not None
    entry = AuditEntry.objects.get(verb="request.withdraw")
    assert (event.number, event.at, event.type) == (entry.number, entry.at, "dev.pratique.request.withdrawn.v1")


def test_S53_it_says_what_a_reader_of_the_deployment_knows_and_no_more(home: None, request_: Request) -> None:
    Request.objects.update(change_reason="new berths", change_ticket="CHG-7", weight=4, labels={"team": "harbour"})
    Request.objects.update(earlier_labels=[{"team": "quay"}])
    with transaction.atomic():
        withdraw(request_, reason="x" * 5000)
    event = OutboxEvent.objects.last()
    assert event is not None
    page = f"https://pratique.example.com/requests/{request_.uid}"
    assert event.subject == f"prod/strimzi/{request_.uid}"
    assert (event.cluster, event.labels) == ("prod", [{"team": "harbour"}, {"team": "quay"}])
    assert event.data == {
        "cluster": "prod",
        "deployment": {
            "name": "strimzi",
            "uid": request_.deployment.uid,
            "page": "https://pratique.example.com/deployments/prod/strimzi",
        },
        "request": {
            "uid": str(request_.uid),
            "number": 1,
            "purpose": "deploy",
            "state": "withdrawn",
            "round": 1,
            "version": "",
            "severity": event.severity,
            "page": page,
        },
        "change": {"reason": "new berths", "ticket": "CHG-7"},
        "actor": {"name": "rita", "via": "browser"},
        "reason": "x" * 1000,
    }


@pytest.mark.parametrize(
    ("verb", "facts", "told"),
    [
        (
            "drift.found",
            {"object": "ConfigMap n/a", "revision": 3, "fields": [{"path": "data.x"}]},
            ("object", "revision"),
        ),
        ("deployment.health", {"to": "Failed", "why": "Secret n/token is missing"}, ()),
        ("revision.overdue", {"revision": 3, "why": "a word of the server", "minutes": 5}, ("revision",)),
    ],
)
def test_S53_of_what_the_audit_says_about_objects_only_listed_facts_go_out(
    request_: Request, verb: str, facts: dict[str, Any], told: tuple[str, ...]
) -> None:
    with transaction.atomic():
        entry = audit.record(verb=verb, actor=MACHINE, deployment=request_.deployment, facts=facts)
    event = OutboxEvent.objects.get(pk=entry.number)
    assert event.data == {
        "actor": {"name": "pratique", "via": "machine"},
        "cluster": "prod",
        "deployment": event.data["deployment"],
        **{name: facts[name] for name in told},
    }
    assert (event.subject, event.severity) == ("prod/strimzi", "")


def test_a_changed_policy_and_a_changed_rule_are_told_by_kind_and_name_without_what_they_say(env: World) -> None:
    said = [
        ("policy.saved", {"kind": "guard", "name": "routine", "expression": "worst == 'safe'"}, "Policy", "saved"),
        (
            "deciding-object.seen",
            {"kind": "ApprovalRule", "name": "two", "change": "deleted"},
            "ApprovalRule",
            "deleted",
        ),
        ("deciding-object.confirmed", {"kind": "FindingException", "name": "web"}, "FindingException", "confirmed"),
    ]
    for verb, facts, kind, change in said:
        with transaction.atomic():
            entry = audit.record(verb=verb, actor=Actor("ada", "rest"), facts={**facts, "cluster": "prod"})
        event = OutboxEvent.objects.get(pk=entry.number)
        assert event.data["policy"] == {"kind": kind, "name": facts["name"], "change": change}
        assert (event.cluster, event.subject) == ("prod", f"prod/{kind}/{facts['name']}")
        assert "expression" not in json.dumps(event.data)


def test_what_is_no_occasion_has_no_event_and_an_occasion_costs_one_statement(request_: Request) -> None:
    deployment = request_.deployment
    assert deployment.cluster.name == "prod"  # read before
    counts = []
    for verb in ("revision.recorded", "request.apply_at", "drift.found", "request.withdraw"):
        about: dict[str, Any] = {"deployment": deployment} if verb.startswith("drift") else {"request": request_}
        with transaction.atomic(), CaptureQueriesContext(connection) as caught:
            audit.record(verb=verb, actor=MACHINE, facts={"object": "ConfigMap n/a"}, **about)
        counts.append(len(caught))
    assert counts == [counts[0], counts[0], counts[0] + 1, counts[0] + 1]


def rule(env: World, name: str, part: dict[str, Any]) -> None:
    obj = {
        "metadata": {"name": name, "uid": name, "generation": 1, "resourceVersion": "1"},
        "spec": {"require": [part]},
    }
    deciding_objects.observe(cluster=env.cluster, kind="ApprovalRule", obj=obj, is_listed=True)


def told_of_needs() -> list[Any]:
    found = OutboxEvent.objects.filter(type="dev.pratique.request.needs-approval.v1").order_by("number")
    return [event.data["needs"] for event in found]


def test_S53_who_is_needed_is_told_once_in_each_round_by_groups_and_numbers(env: World, request_: Request) -> None:
    rule(env, "two", {"name": "eyes", "groups": ["security"], "users": ["zoe"]})
    look(request_)
    look(request_)
    (needs,) = told_of_needs()
    (needed_by_rule,) = needs["rules"]
    assert (needs["approvals"], needed_by_rule["name"]) == (1, "two")
    assert needed_by_rule["needed"][0] == "1 of group security or 1 listed user"
    assert "zoe" not in json.dumps(needs)
    Request.objects.update(asked_round=0)  # as in the next round
    world.review(request_, acting(env.ada))
    look(request_)
    assert [needs["approvals"] for needs in told_of_needs()] == [1, 0]


@pytest.mark.parametrize("state", ["in_review", "approved"])
def test_nobody_is_said_to_be_needed_where_the_requester_has_to_act_or_a_policy_approves(
    env: World, request_: Request, state: str
) -> None:
    if state == "in_review":
        world.review(request_, acting(env.ada), "RequestChanges", reason="smaller, please")
    else:
        allow(env, save(env, expression="true"))
    assert look(request_).state == state
    assert told_of_needs() == []


def test_an_event_is_a_cloud_event_to_the_library_of_cloud_events(home: None, env: World, request_: Request) -> None:
    look(request_)
    world.review(request_, acting(env.ada))
    events = list(OutboxEvent.objects.all())
    assert "dev.pratique.request.needs-approval.v1" in {event.type for event in events}
    for event in events:
        about: Any = {"event_id": str(event.number), "event_type": event.type, "subject": event.subject, "at": event.at}
        read = JSONFormat().read(None, json.dumps(write_event(**about, data=event.data)))
        assert (read.get_specversion(), read.get_source()) == ("1.0", "https://pratique.example.com")
        assert (read.get_id(), read.get_type(), read.get_subject()) == tuple(list(about.values())[:3])
        assert (read.get_time(), read.get_datacontenttype()) == (event.at, "application/json")
        assert read.get_data() == event.data


def test_a_rule_that_asks_others_is_told_again(env: World, request_: Request) -> None:
    rule(env, "slow", {"name": "security", "groups": ["security"], "escalateAfterHours": 2, "escalateTo": ["leads"]})
    look(request_)
    hours_ago = timezone.now() - timedelta(hours=3)
    Request.objects.update(changed_at=hours_ago)
    Report.objects.update(computed_at=hours_ago)
    look(request_)
    look(request_)
    assert [needs["rules"][0]["needed"][0] for needs in told_of_needs()] == [
        "1 of group security; after 2 hours leads as well",
        "1 of groups security, leads",
    ]
