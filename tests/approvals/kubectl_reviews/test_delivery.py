"""Reviews that cannot be answered hold up no others."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from django.db import DataError
from django.db.models import Value
from django.db.models.functions import Concat
from django.utils import timezone

from approvals.admission import PolicyState
from approvals.kubectl_reviews import delivery
from approvals.kubectl_reviews.review_rules import MAX_PER_HOUR, NotCounted, SaidReview
from approvals.ledger import rounds
from approvals.models import KubectlReview, Request, VoidedRound
from provisioner.cluster.client.api import ClusterClient
from provisioner.errors import Forbidden, InvalidObject, Unauthenticated
from provisioner.values import Identity
from tests.support.approvals import world
from tests.support.approvals.fixtures import World

pytestmark = pytest.mark.django_db


class Refusing:
    """A cluster that takes no status."""

    def apply(self, *_: Any, **__: Any) -> None:
        raise InvalidObject("etcdserver: request is too large", status=422)


def seen(env: World, **changed: Any) -> KubectlReview:
    now = timezone.now()
    facts = {"uid": "u", "name": "mine", "created_at": now, "seen_at": now, **changed}
    return KubectlReview.objects.create(cluster=env.cluster, **facts)


def test_one_whose_status_is_not_taken_is_over(env: World) -> None:
    row = seen(env, settled_at=timezone.now(), code="not-found", words="no such request")
    delivery._tell(cast(ClusterClient, Refusing()), row)
    row.refresh_from_db()
    assert row.finished_at is not None


def test_one_that_cannot_be_kept_is_over_and_says_so(env: World) -> None:
    row = seen(env)
    delivery._give_up(row, DataError("a value is too long"))
    row.refresh_from_db()
    assert (row.code, bool(row.settled_at), bool(row.finished_at)) == ("failed", True, True)


@pytest.mark.parametrize("error", [Forbidden("no", status=403), Unauthenticated("who?", status=401)])
def test_what_is_forbidden_now_is_tried_again(env: World, error: Exception) -> None:
    row = seen(env)
    delivery._give_up(row, error)
    row.refresh_from_db()
    assert (row.settled_at, row.finished_at) == (None, None)


def test_what_another_worker_has_settled_is_not_settled_again(env: World) -> None:
    row = seen(env)
    KubectlReview.objects.filter(pk=row.pk).update(settled_at=timezone.now())
    delivery._settle(row, NotCounted("not-open", "the request is approved"))
    row.refresh_from_db()
    assert row.code == ""


def made(env: World, who: str, many: int, *, first: int = 0, **changed: Any) -> None:
    """So many reviews of one person, one after the other."""
    now = timezone.now()
    KubectlReview.objects.bulk_create(
        KubectlReview(
            cluster=env.cluster,
            uid=f"{who}-{number}",
            name=f"{who}-{number}",
            created_at=now + timedelta(milliseconds=first + number),
            seen_at=now,
            reviewer=who,
            **changed,
        )
        for number in range(many)
    )


def in_turn(env: World) -> list[str]:
    return [row.name for row in delivery.order_by_turn(env.cluster, KubectlReview.objects.filter(finished_at=None))]


def test_S40_reviewers_take_turns_however_many_one_of_them_makes(env: World) -> None:
    made(env, "mallory", 40)
    made(env, "alice", 2, first=100)
    made(env, "carol", 1, first=200)
    assert in_turn(env)[:6] == ["mallory-0", "alice-0", "carol-0", "mallory-1", "alice-1", "mallory-2"]


def test_S40_a_late_review_is_read_before_all_that_another_made(env: World, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def reviewer_of(_: object, row: KubectlReview) -> str:
        read.append(row.name)
        return "mallory"

    monkeypatch.setattr(delivery, "READ_AT_ONCE", 2)
    monkeypatch.setattr(delivery, "read_reviewer", reviewer_of)
    made(env, "unread", 20)
    KubectlReview.objects.update(reviewer="")
    delivery._read_reviewers(cast(ClusterClient, None), KubectlReview.objects.filter(reviewer=""))
    assert sorted(read) == ["unread-0", "unread-1", "unread-18", "unread-19"], (
        "the oldest are not put off by the newest"
    )


def test_S40_a_decision_that_comes_meanwhile_waits_for_few_reviews_of_others(
    env: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[str] = []

    def reviewer_of(_: object, row: KubectlReview) -> str:
        taken.append("read")
        return row.name.partition("-")[0]

    def take(_: object, __: object, row: KubectlReview, ___: object) -> None:
        if not any(one.startswith("mallory") for one in taken):
            made(env, "carol", 1, first=2000)
            KubectlReview.objects.filter(name="carol-0").update(reviewer="")
            taken.clear()
        taken.append(row.name)
        KubectlReview.objects.filter(pk=row.pk).update(finished_at=row.seen_at)

    monkeypatch.setattr(delivery, "connect", lambda _: None)
    monkeypatch.setattr(delivery.admission, "survey", lambda *_: None)
    monkeypatch.setattr(delivery, "read_reviewer", reviewer_of)
    monkeypatch.setattr(delivery, "_count_review", take)
    made(env, "mallory", 200)
    KubectlReview.objects.update(reviewer="")
    delivery.count(env.cluster.pk)
    before = taken[: taken.index("carol-0")]
    assert len([one for one in before if one != "read"]) <= 10
    assert before.count("read") <= 50


def test_S40_what_is_over_the_limit_comes_last_and_is_not_read(env: World) -> None:
    now = timezone.now()
    made(env, "mallory", MAX_PER_HOUR, username="mallory", settled_at=now, finished_at=now)
    KubectlReview.objects.update(uid=Concat("uid", Value("-counted")), reviewer="mallory")
    made(env, "mallory", 3, first=1000)
    made(env, "alice", 30, first=2000)
    assert in_turn(env)[-3:] == ["mallory-0", "mallory-1", "mallory-2"]
    row = KubectlReview.objects.filter(finished_at=None, reviewer="mallory").earliest("pk")
    told: list[Any] = []

    class Written:
        """A cluster that is only told."""

        def apply(self, obj: Any, **_: Any) -> None:
            told.append(obj["status"]["conditions"][0]["reason"])

    delivery._count_review(cast(ClusterClient, Written()), env.cluster, row, PolicyState(None, ""))
    row.refresh_from_db()
    assert (told, row.code, bool(row.finished_at)) == (["TooMany"], "too-many", True)


def test_asking_again_sheds_no_deny_that_is_not_counted_yet(env: World) -> None:
    deployment = world.submit_spec(env.cluster, world.seen("shop", world.spec()), env.rita)
    request = world.in_review(deployment.requests.get())
    row, now = seen(env), timezone.now()
    known = PolicyState(now - timedelta(hours=1), "")
    said = SaidReview(
        uid="u",
        name="mine",
        generation=1,
        created_at=now,
        reviewer=Identity("ada"),
        request_name="shop-1",
        deployment_name="shop",
        decision="Deny",
        subject_digest=request.subject_digest,
        round=1,
        reason="",
        acknowledges=(),
    )
    assert rounds.report_anew(deployment, "rita")
    assert not delivery._decide(env.cluster, row, said, known), "it waits for the new report"
    again = {"state": "in_review", "round": 2, "subject_digest": "sha256:2"}
    Request.objects.filter(pk=request.pk).update(**again)
    assert delivery._decide(env.cluster, row, said, known)
    row.refresh_from_db()
    assert row.review, (row.code, row.words)
    assert (row.review.decision, row.review.round) == ("Deny", 2)
    other = seen(env, uid="other")
    VoidedRound.objects.update(code="catalog-changed")
    delivery._decide(env.cluster, other, replace(said, reviewer=Identity("bert")), known)
    other.refresh_from_db()
    assert other.code == "old-round", "what ended for another reason is another question"


def test_what_it_says_of_when_the_request_is_applied_is_read() -> None:
    about = {"uid": "u", "name": "mine", "creationTimestamp": "2026-11-30T12:00:00Z"}
    spec = {
        "reviewer": {"username": "ada"},
        "requestRef": {"name": "shop-1"},
        "bundleDeploymentName": "shop",
        "decision": "Approve",
        "subjectDigest": "sha256:1",
        "round": 1,
    }
    assert delivery.parse_review({"metadata": about, "spec": spec}).apply_at is None
    said = delivery.parse_review({"metadata": about, "spec": {**spec, "applyAt": "2026-12-05T02:00:00Z"}})
    assert said.apply_at == datetime(2026, 12, 5, 2, tzinfo=UTC)
