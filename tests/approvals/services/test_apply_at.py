"""When an approved request is applied: chosen with the approval or after it, by who may approve it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from approvals import services
from approvals.clock import database_now
from approvals.errors import InvalidInput, NotAllowed, NotOpen, SelfApproval
from approvals.ledger import rounds
from approvals.ledger.moves import locked
from approvals.models import AuditEntry, Request, Review
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, text_of
from tests.support.approvals.policies import look
from tests.support.approvals.waivers import approve
from tests.support.approvals.world import acting

TOMORROW = (datetime.now(UTC) + timedelta(days=1)).replace(second=0, microsecond=0)


@pytest.fixture
def asked(env: World) -> Request:
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    return world.in_review(Request.objects.get())


def test_it_is_chosen_with_the_approval_changed_and_removed(env: World, asked: Request) -> None:
    approve(asked, env.ada, apply_at=TOMORROW)
    found = look(asked)
    assert (found.state, found.apply_at, found.apply_at_by) == ("approved", TOMORROW, "ada")
    later = TOMORROW + timedelta(days=1)
    for when, by in ((later, "ada"), (None, "")):
        services.set_apply_at(by=acting(env.ada), request_id=asked.pk, apply_at=when, via="rest")
        asked.refresh_from_db()
        assert (asked.apply_at, asked.apply_at_by) == (when, by)
    told = AuditEntry.objects.filter(verb="request.apply_at").order_by("number")
    assert [entry.facts["applyAt"] for entry in told] == [TOMORROW.isoformat(), later.isoformat(), None]


@pytest.mark.parametrize("days", [-1, 32])
def test_a_time_that_is_over_or_too_far_away_is_refused(env: World, asked: Request, days: int) -> None:
    with pytest.raises(InvalidInput, match="expected a time in the next 31 days"):
        approve(asked, env.ada, apply_at=database_now() + timedelta(days=days))
    with pytest.raises(InvalidInput, match="only an approval says when"):
        approve(asked, env.ada, decision="Deny", apply_at=TOMORROW)
    assert not Review.objects.exists()


def test_S05_only_who_may_approve_it_says_when_it_is_applied(env: World, asked: Request) -> None:
    def choose(by: User) -> None:
        services.set_apply_at(by=acting(by), request_id=asked.pk, apply_at=TOMORROW, via="rest")

    with pytest.raises(NotAllowed):
        choose(env.bert)
    env.kubernetes.allow("rita", "approve")
    with pytest.raises(SelfApproval):
        choose(env.rita)
    approve(asked, env.ada, decision="Deny")
    look(asked)
    with pytest.raises(NotOpen):
        choose(env.ada)


def test_a_new_round_drops_the_time_and_is_decided_within_the_usual_hours(env: World, asked: Request) -> None:
    approve(asked, env.ada, apply_at=TOMORROW)
    look(asked)
    held_until = database_now() + timedelta(days=20)
    said = [{"name": "four-eyes", "needed": ["1 of security"], "problem": "", "note": ""}]
    Request.objects.update(approval_rules=said, finding_exceptions=said, external_checks=said)
    Request.objects.update(held_from=database_now(), held_until=held_until, expires_at=held_until)
    with transaction.atomic():
        rounds.void(locked(asked.pk), code="plan-changed", words="more", facts={})
    asked.refresh_from_db()
    assert (asked.apply_at, asked.held_from, asked.held_until) == (None, None, None)
    assert (asked.approval_rules, asked.finding_exceptions, asked.external_checks) == ([], [], [])
    assert asked.expires_at <= database_now() + timedelta(hours=72)


def test_a_page_takes_the_time_in_the_zone_of_the_browser(env: World, asked: Request, browse: Browse) -> None:
    local = f"{TOMORROW:%Y-%m-%dT%H:%M}"
    said = {"decision": "Approve", "subject_digest": asked.subject_digest, "reason": "read it", "typed": "strimzi"}
    form = {**said, "apply_at": local}
    wrong = browse(env.ada).post(f"/requests/{asked.uid}/review", {**form, "apply_at_zone": "Mars/Olympus"})
    assert wrong.status_code == 422
    assert f"The time is '{local}'; expected one such as 2026-12-05T03:00" in text_of(wrong).replace("&#x27;", "'")
    browse(env.ada).post(f"/requests/{asked.uid}/review", {**form, "apply_at_zone": "Asia/Kolkata"})
    found = look(asked)
    assert found.apply_at == TOMORROW - timedelta(hours=5, minutes=30)
    page = text_of(browse(env.ada).get(f"/requests/{asked.uid}"))
    assert f"ada chose {found.apply_at:%Y-%m-%d %H:%M} UTC" in page
    browse(env.ada).post(f"/requests/{asked.uid}/apply-at", {"apply_at": ""})
    asked.refresh_from_db()
    assert asked.apply_at is None
