"""How many comparisons are worked on at once, and for how long."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from approvals import services
from approvals.catalogs.comparisons import ComparisonWish
from approvals.ledger import claims
from approvals.models import BundleComparison
from approvals.steps.catalogs import comparison
from approvals.steps.catalogs.comparison import CompareBundles, Pace
from approvals.working import do
from provisioner.errors import BadSource
from provisioner.source import EgressPolicy
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import acting
from tests.support.comparisons import asked, begun, port


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "connect", lambda _: None)


def test_one_person_has_one_comparison_at_work_and_leaves_a_place_to_others(
    env: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    port(env, "ada", "bert")
    first, second = begun(env), begun(env, "1.2.0")
    of_bert = services.compare_bundles(by=acting(env.bert), asked=asked(env, "1.2.0", before="1.1.0"))

    def compare(wish: ComparisonWish, *_: Any) -> None:
        if wish == ComparisonWish.of(first.wish):
            do(CompareBundles(second.pk))
            do(CompareBundles(of_bert.pk))
        raise BadSource("it is no bundle")

    monkeypatch.setattr(comparison, "compare_wish", compare)
    do(CompareBundles(first.pk))
    found = {row.pk: (row.state, row.attempts) for row in BundleComparison.objects.all()}
    assert found == {first.pk: ("failed", 1), second.pk: ("waiting", 0), of_bert.pk: ("failed", 1)}
    BundleComparison.objects.update(look_again_at=None)
    do(CompareBundles(second.pk))
    second.refresh_from_db()
    assert second.state == "failed", "its turn comes after the first one"


def test_a_comparison_that_takes_too_long_is_not_begun_again(env: World, monkeypatch: pytest.MonkeyPatch) -> None:
    port(env, "ada")
    row = begun(env)

    def compare(wish: ComparisonWish, api: Any, pace: Pace) -> None:
        assert pace.begin("fetching it") > 0
        replace(pace, ends_at=0.0).begin("rendering it")

    monkeypatch.setattr(comparison, "compare_wish", compare)
    do(CompareBundles(row.pk))
    row.refresh_from_db()
    assert (row.state, row.attempts, row.problem_code) == ("failed", 1, "out-of-time")
    assert row.problem == "the comparison took more than 600 s: it was ended before rendering it"


def test_S40_who_asked_first_comes_first_and_one_cluster_never_has_all_places(env: World) -> None:
    users = [env.ada, env.ada, env.bert, env.rita]
    there = world.cluster("there")
    rows = [
        BundleComparison.objects.create(
            key=str(at), cluster=where, wish={}, user=user, position=at, asked_at=timezone.now() + timedelta(seconds=at)
        )
        for at, (user, where) in enumerate(
            [*((one, env.cluster) for one in users), (User.objects.create(username="alan"), there)]
        )
    ]
    (first, _, third, fourth, elsewhere) = (row.pk for row in rows)
    assert comparison.in_line(timezone.now()) == [first, third, elsewhere]
    claims.take(claims.rows_of_task(CompareBundles.task, first), "worker")
    assert comparison.in_line(timezone.now()) == [third, elsewhere]
    BundleComparison.objects.filter(pk=third).delete()
    assert comparison.in_line(timezone.now()) == [fourth, elsewhere]


def test_few_are_at_work_at_once_whoever_asks(env: World, monkeypatch: pytest.MonkeyPatch) -> None:
    port(env, "ada", "bert", "rita")
    people = (env.ada, env.bert, env.rita)
    env.kubernetes.allow("rita", "get", "port")
    rows = [
        services.compare_bundles(by=acting(person), asked=asked(env, after, before))
        for person, after, before in zip(people, ("1.1.0", "1.2.0", "1.2.0"), ("1.0.0", "1.0.0", "1.1.0"), strict=True)
    ]
    left = list(rows[1:])

    def compare(*_: Any) -> None:
        if left:
            do(CompareBundles(left.pop(0).pk))
        raise BadSource("it is no bundle")

    monkeypatch.setattr(comparison, "compare_wish", compare)
    do(CompareBundles(rows[0].pk))
    found = [BundleComparison.objects.get(pk=row.pk) for row in rows]
    assert [(row.state, row.progress) for row in found] == [
        ("failed", ""),
        ("failed", ""),
        ("waiting", "waiting for other comparisons"),
    ]


@dataclass
class Bounded:
    """An API server that notes until when it may be asked."""

    moment: float = 0.0

    def until(self, moment: float) -> Bounded:
        return Bounded(moment)


def test_api_server_and_sources_have_the_time_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_until, given = list[float](), list[float]()

    def fetch(_: Any, *, egress: EgressPolicy, **__: Any) -> None:
        given.append(egress.timeout_seconds)
        raise BadSource("it is no bundle")

    def after(wish: ComparisonWish, api: Any, pace: Pace) -> None:
        asked_until.append(api.moment)
        comparison._fetch_bundle(wish, wish.after, pace)

    monkeypatch.setattr(comparison.pipeline, "fetch_sources", fetch)
    monkeypatch.setattr(comparison, "_render_after", after)
    wish = ComparisonWish("registry-v1", "harbour", "", f"example.com/harbour@sha256:{'1' * 64}")
    for seconds, most in ((7.0, 7.0), (10_000.0, comparison.FETCH_SECONDS)):
        pace = Pace(lambda _: None, time.monotonic() + seconds)
        with pytest.raises(BadSource):
            comparison.compare_wish(wish, Bounded(), pace)  # type: ignore[arg-type] # as far as it is asked
        assert asked_until.pop() == pace.ends_at
        assert 0 < given.pop() <= most
