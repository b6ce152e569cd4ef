"""Which writes met policies that stood all the time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from django.utils import timezone

from approvals.admission import MARGIN, REVIEWS, InForce, PolicySet, StampedWrite, look, met
from approvals.admission.policies import shipped
from approvals.kubectl_reviews import pending_clusters
from approvals.models import AuthorAdmission, ReviewAdmission
from provisioner.cluster.client.api import ClusterClient
from provisioner.values import ObjectRef
from tests.support.approvals.fixtures import World

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
STOOD = InForce(sure_from=100, seen_until=200, since=NOW)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (StampedWrite(after=100, by=101), True),
        (StampedWrite(after=150, by=200), True),
        (StampedWrite(after=99, by=150), False),
        (StampedWrite(after=150, by=201), False),
        (StampedWrite(after=0, by=150), False),
        (StampedWrite(after=0, by=150, created_at=NOW + MARGIN), False),
        (StampedWrite(after=0, by=150, created_at=NOW + MARGIN + timedelta(seconds=1)), True),
        (StampedWrite(after=0, by=201, created_at=NOW + timedelta(hours=1)), False),
        (StampedWrite(after=120, by=150, created_at=NOW - timedelta(hours=1)), True),
    ],
    ids=[
        "just after",
        "until the last look",
        "perhaps before",
        "perhaps after the last look",
        "nobody knows since when",
        "made too early",
        "made later",
        "made after the last look",
        "made earlier and changed now",
    ],
)
def test_S05_a_write_is_proved_only_between_two_looks(written: StampedWrite, expected: bool) -> None:
    assert met(written, STOOD) is expected


pytestmark = pytest.mark.django_db
ENFORCED = PolicySet(REVIEWS.file, ReviewAdmission, lambda *_: "", REVIEWS.unserved)


class Stored:
    """A cluster that holds the shipped policies, written at `written_at` by its clock."""

    def __init__(self, written_at: datetime):
        self.written_at = written_at
        self.generation = 1

    def get(self, ref: ObjectRef) -> dict[str, Any]:
        (found,) = [one for one in shipped(REVIEWS.file) if ObjectRef.of(one) == ref]
        about = {
            "name": ref.name,
            "uid": f"uid-{ref.name}",
            "generation": self.generation,
            "creationTimestamp": "2020-01-01T00:00:00Z",
            "managedFields": [{"manager": "kubectl", "time": self.written_at.isoformat()}, {"manager": "nobody"}],
        }
        return {**found, "metadata": about}


def since(stored: Stored, env: World) -> datetime:
    found = look(cast(ClusterClient, stored), env.cluster, ENFORCED)
    assert found.since is not None
    return found.since


def test_S06_a_cluster_whose_clock_is_ahead_dates_its_policies_itself(env: World) -> None:
    """Else what it dates before them could seem to be newer than they are."""
    ahead = timezone.now() + timedelta(minutes=5)
    stored = Stored(ahead)
    assert since(stored, env) == ahead
    assert since(stored, env) == ahead


@pytest.mark.parametrize(
    ("seconds", "looked_after", "is_sure", "is_due"),
    [(11, 0, False, True), (9, 0, False, False), (11, 10.5, False, False), (11, 0, True, False)],
    ids=["the margin is over", "not yet", "looked at since", "sure already"],
)
def test_policies_of_authors_are_looked_at_as_soon_as_they_can_prove_one(
    env: World, seconds: float, looked_after: float, is_sure: bool, is_due: bool
) -> None:
    """Who wrote 44 s after the policies was unknown, and a second later known: the second look came 20 s after the first."""
    now = timezone.now()
    since = now - timedelta(seconds=seconds)
    ReviewAdmission.objects.create(cluster=env.cluster, looked_at=now)
    looked_at = since + timedelta(seconds=looked_after)
    sure_from = 7 if is_sure else None
    AuthorAdmission.objects.create(cluster=env.cluster, since=since, looked_at=looked_at, sure_from=sure_from)
    assert (env.cluster.pk in pending_clusters(now)) is is_due


def test_policies_of_long_ago_stand_since_they_were_seen(env: World) -> None:
    began_at = timezone.now()
    stored = Stored(began_at - timedelta(days=1))
    first = since(stored, env)
    assert began_at <= first <= timezone.now()
    assert since(stored, env) == first
    stored.generation = 2
    assert since(stored, env) > first
