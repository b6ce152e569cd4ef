"""The outbox: an event is written with the change that it tells of, and tells what readers of the deployment know."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
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
from tests.support.approvals.policies import look
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


def test_an_event_is_a_cloud_event(home: None, env: World, request_: Request) -> None:
    """The rules of CloudEvents 1.0 for its attributes and for structured JSON."""
    world.review(request_, acting(env.ada))
    for event in OutboxEvent.objects.all():
        wrapped = json.loads(
            json.dumps(
                write_event(
                    event_id=str(event.number),
                    event_type=event.type,
                    subject=event.subject,
                    at=event.at,
                    data=event.data,
                )
            )
        )
        assert {name for name in wrapped if not (name.isascii() and name.isalnum() and name.islower())} == set()
        texts = ("specversion", "id", "source", "type", "subject", "time", "datacontenttype")
        assert all(isinstance(wrapped[name], str) and wrapped[name] for name in texts)
        assert (wrapped["specversion"], wrapped["source"]) == ("1.0", "https://pratique.example.com")
        assert wrapped["type"].startswith("dev.pratique.")
        assert wrapped["time"][10] == "T"
        assert wrapped["time"].endswith("+00:00")
    assert OutboxEvent.objects.exists()


def test_people_are_asked_once_a_round_and_again_where_a_rule_asks_others(env: World, request_: Request) -> None:
    part = {"name": "security", "groups": ["security"], "escalateAfterHours": 2, "escalateTo": ["leads"]}
    meta = {"name": "slow", "uid": "u", "generation": 1, "resourceVersion": "1"}
    rule = {"metadata": meta, "spec": {"require": [part]}}
    deciding_objects.observe(cluster=env.cluster, kind="ApprovalRule", obj=rule, is_listed=True)
    asked = OutboxEvent.objects.filter(type="dev.pratique.request.needs-approval.v1")
    look(request_)
    look(request_)
    (event,) = asked
    assert event.data["approvalsMissing"] == 1
    assert event.data["needed"][0] == "slow: 1 of group security; after 2 hours leads as well"
    Request.objects.update(changed_at=timezone.now() - timedelta(hours=3))
    Report.objects.update(computed_at=timezone.now() - timedelta(hours=3))
    look(request_)
    look(request_)
    (_, later) = asked.order_by("number")
    assert later.data["needed"][0] == "slow: 1 of groups security, leads"
