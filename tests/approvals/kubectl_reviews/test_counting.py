"""Reviews that cannot be answered hold up no others."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import pytest
from django.db import DataError
from django.db.models import Value
from django.db.models.functions import Concat
from django.utils import timezone

from approvals.admission import PolicyState
from approvals.kubectl_reviews import counting
from approvals.kubectl_reviews.judging import MAX_PER_HOUR, NotCounted
from approvals.models import KubectlReview
from provisioner.cluster.client.api import ClusterClient
from provisioner.errors import Forbidden, InvalidObject, Unauthenticated
from tests.support.approvals.fixtures import World

pytestmark = pytest.mark.django_db


class Refusing:
    """A cluster that takes no status."""

    def apply(self, *_: Any, **__: Any) -> None:
        raise InvalidObject("etcdserver: request is too large", status=422)


def seen(here: World, **changed: Any) -> KubectlReview:
    now = timezone.now()
    facts = {"uid": "u", "name": "mine", "created_at": now, "seen_at": now, **changed}
    return KubectlReview.objects.create(cluster=here.cluster, **facts)


def test_one_whose_status_is_not_taken_is_over(here: World) -> None:
    row = seen(here, settled_at=timezone.now(), code="not-found", words="no such request")
    counting._tell(cast(ClusterClient, Refusing()), row)
    row.refresh_from_db()
    assert row.finished_at is not None


def test_one_that_cannot_be_kept_is_over_and_says_so(here: World) -> None:
    row = seen(here)
    counting._give_up(row, DataError("a value is too long"))
    row.refresh_from_db()
    assert (row.code, bool(row.settled_at), bool(row.finished_at)) == ("failed", True, True)


@pytest.mark.parametrize("error", [Forbidden("no", status=403), Unauthenticated("who?", status=401)])
def test_what_is_forbidden_now_is_tried_again(here: World, error: Exception) -> None:
    row = seen(here)
    counting._give_up(row, error)
    row.refresh_from_db()
    assert (row.settled_at, row.finished_at) == (None, None)


def test_what_another_worker_has_settled_is_not_settled_again(here: World) -> None:
    row = seen(here)
    KubectlReview.objects.filter(pk=row.pk).update(settled_at=timezone.now())
    counting._settle(row, NotCounted("not-open", "the request is approved"))
    row.refresh_from_db()
    assert row.code == ""


def made(here: World, who: str, many: int, *, first: int = 0, **changed: Any) -> None:
    """So many reviews of one person, one after the other."""
    now = timezone.now()
    KubectlReview.objects.bulk_create(
        KubectlReview(
            cluster=here.cluster,
            uid=f"{who}-{number}",
            name=f"{who}-{number}",
            created_at=now + timedelta(milliseconds=first + number),
            seen_at=now,
            reviewer=who,
            **changed,
        )
        for number in range(many)
    )


def in_turn(here: World) -> list[str]:
    return [row.name for row in counting._in_turn(here.cluster, KubectlReview.objects.filter(finished_at=None))]


def test_S40_reviewers_take_turns_however_many_one_of_them_makes(here: World) -> None:
    made(here, "mallory", 40)
    made(here, "alice", 2, first=100)
    made(here, "carol", 1, first=200)
    assert in_turn(here)[:6] == ["mallory-0", "alice-0", "carol-0", "mallory-1", "alice-1", "mallory-2"]


def test_S40_what_is_over_the_limit_comes_last_and_is_not_read(here: World) -> None:
    now = timezone.now()
    made(here, "mallory", MAX_PER_HOUR, username="mallory", settled_at=now, finished_at=now)
    KubectlReview.objects.update(uid=Concat("uid", Value("-counted")), reviewer="mallory")
    made(here, "mallory", 3, first=1000)
    made(here, "alice", 30, first=2000)
    assert in_turn(here)[-3:] == ["mallory-0", "mallory-1", "mallory-2"]
    row = KubectlReview.objects.filter(finished_at=None, reviewer="mallory").earliest("pk")
    told: list[Any] = []

    class Written:
        """A cluster that is only told."""

        def apply(self, obj: Any, **_: Any) -> None:
            told.append(obj["status"]["conditions"][0]["reason"])

    counting._take(cast(ClusterClient, Written()), here.cluster, row, PolicyState(None, ""))
    row.refresh_from_db()
    assert (told, row.code, bool(row.finished_at)) == (["TooMany"], "too-many", True)
