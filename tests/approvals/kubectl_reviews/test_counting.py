"""Reviews that cannot be answered hold up no others."""

from __future__ import annotations

from typing import Any, cast

import pytest
from django.db import DataError
from django.utils import timezone

from approvals.kubectl_reviews import counting
from approvals.kubectl_reviews.judging import NotCounted
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
