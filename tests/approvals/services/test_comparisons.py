"""Who may ask what would change, how often, and who is shown what others asked for."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from approvals import services, tasks
from approvals.catalogs import comparisons
from approvals.errors import InvalidInput, NotAllowed, NotFound, TooMany, TooManyAttempts
from approvals.models import BundleComparison
from approvals.rate_limits import counters
from approvals.services import AskedComparison, ComparisonQuestion
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import acting
from tests.support.provisioner.catalogs import bundle, channel, package
from tests.support.stored_catalogs import catalog, stored

VERSIONS = ("1.0.0", "1.1.0", "1.2.0", "1.3.0")


def pinned(version: str) -> dict[str, Any]:
    return {**bundle(version), "image": f"example.com/harbour@sha256:{version[2] * 64}"}


@pytest.fixture
def port(env: World) -> World:
    """A catalog that ada and bert may get, and both may create deployments."""
    entries = [{"name": f"harbour.v{one}"} for one in VERSIONS]
    row = catalog("port", of=env.cluster)
    stored(row, package(defaultChannel="stable"), *map(pinned, VERSIONS), channel("stable", *entries))
    for name in ("ada", "bert"):
        env.kubernetes.allow(name, "get", "port")
        env.kubernetes.allow(name, "create")
    counters.memory.clear()
    return env


def ask(env: World, person: User, after: str = "1.1.0", **more: str) -> AskedComparison:
    question = ComparisonQuestion("harbour", after, **{"before": "1.0.0", **more})
    return services.resolve_comparison(by=acting(person), cluster=env.cluster, catalog="port", question=question)


def compare(env: World, person: User, after: str = "1.1.0", **more: str) -> BundleComparison:
    return services.compare_bundles(by=acting(person), asked=ask(env, person, after, **more))


def finish(row: BundleComparison) -> None:
    with transaction.atomic():
        comparisons.finish_comparison(
            row, {"held": [], "report": {"headline": ["1 object to update."]}}, {}, timezone.now()
        )


def test_who_may_not_get_the_catalog_does_not_learn_that_it_is_there(port: World) -> None:
    port.kubernetes.allowed.discard(("bert", "get", "port"))
    with pytest.raises(NotFound, match="there is no catalog port on cluster prod, or none that you may get"):
        ask(port, port.bert)


def test_who_may_not_create_a_deployment_is_told_which_right_that_takes(port: World) -> None:
    port.kubernetes.allowed.discard(("bert", "create", "*"))
    with pytest.raises(NotAllowed) as refused:
        ask(port, port.bert)
    assert "create" in str(refused.value.facts["rule"])


def test_both_rights_are_asked_again_where_somebody_else_has_asked_before(port: World) -> None:
    finish(compare(port, port.ada))
    for right in (("bert", "get", "port"), ("bert", "create", "*")):
        port.kubernetes.allowed.discard(right)
        with pytest.raises((NotFound, NotAllowed)):
            ask(port, port.bert)
        port.kubernetes.allowed.add(right)


def test_what_is_known_is_shown_to_the_next_person_without_a_task_or_a_count(port: World, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "COMPARISONS_PER_HOUR": 1}
    first = compare(port, port.ada)
    assert first.state == "waiting"
    assert compare(port, port.bert).pk == first.pk, "it is under way"
    finish(first)
    for person in (port.ada, port.bert):
        again = compare(port, person)
        assert (again.pk, again.state) == (first.pk, "done")
        result = services.read_comparison_result(by=acting(person), asked=ask(port, person), row=again)
        assert result is not None
        assert result["report"]["headline"] == ["1 object to update."]
    assert BundleComparison.objects.count() == 1


def test_each_person_has_so_many_under_way(port: World, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "COMPARISONS": 2}
    first, second = (compare(port, port.ada, one) for one in ("1.1.0", "1.2.0"))
    assert sorted([first.position, second.position]) == [0, 1]
    with pytest.raises(TooMany, match="PRATIQUE_COMPARISONS"):
        compare(port, port.ada, "1.3.0")
    assert compare(port, port.bert, "1.3.0").position == 0
    finish(first)
    assert compare(port, port.ada, "1.3.0", before="1.2.0").position == 0, "there is room again"


def test_two_that_are_asked_for_at_once_do_not_get_the_same_place(port: World) -> None:
    row = compare(port, port.ada)
    with pytest.raises(IntegrityError), transaction.atomic():
        BundleComparison.objects.create(
            key="other", cluster=port.cluster, wish={}, user=port.ada, position=row.position, asked_at=timezone.now()
        )
    wish = ask(port, port.ada, "1.2.0").wish
    with pytest.raises(TooMany):
        comparisons.start_comparison(port.cluster, wish, user=port.ada, most=1, now=timezone.now())


def test_each_person_may_ask_for_so_many_within_an_hour(port: World, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "COMPARISONS_PER_HOUR": 2}
    for after in ("1.1.0", "1.2.0"):
        finish(compare(port, port.ada, after))
    with pytest.raises(TooManyAttempts, match="2 comparisons within an hour.*PRATIQUE_COMPARISONS_PER_HOUR"):
        compare(port, port.ada, "1.3.0")
    assert compare(port, port.bert, "1.3.0").state == "waiting"


def test_what_failed_may_be_asked_for_again(port: World) -> None:
    row = compare(port, port.ada)
    with transaction.atomic():
        comparisons.fail_comparison(row, code="source-unavailable", words="example.com\0 is away", now=timezone.now())
    failed = services.find_known_comparison(ask(port, port.bert))
    assert failed is not None
    assert (failed.state, failed.problem) == ("failed", "example.com is away")
    again = compare(port, port.bert)
    assert (again.state, again.user) == ("waiting", port.bert)


def test_a_result_is_forgotten_in_time_and_sooner_where_a_tag_names_the_bundle(port: World) -> None:
    row = compare(port, port.ada)
    finish(row)
    row.refresh_from_db()
    assert row.expires_at is not None
    assert row.expires_at - timezone.now() > timedelta(hours=23)
    floating = comparisons.ComparisonWish("registry-v1", "harbour", "", "example.com/harbour:latest")
    brief = comparisons.start_comparison(port.cluster, floating, user=port.ada, most=2, now=timezone.now())
    finish(brief)
    brief.refresh_from_db()
    assert brief.expires_at is not None
    assert brief.expires_at - timezone.now() < timedelta(minutes=11)
    BundleComparison.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert services.find_known_comparison(ask(port, port.ada)) is None
    tasks.clear()
    assert BundleComparison.objects.count() == 0


def test_what_is_under_way_is_not_forgotten(port: World) -> None:
    compare(port, port.ada)
    assert comparisons.forget_expired_comparisons(timezone.now() + timedelta(days=30)) == 0


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"after": "9.9.9"}, "no bundle or version '9.9.9'; it has 1.3.0, 1.2.0"),
        ({"after": "harbour.v1.0.0"}, "both are harbour.v1.0.0"),
        ({"before": "1.0", "after": "1.1.0"}, "no bundle or version '1.0'"),
        ({"after": "1.1.0", "deployment": "web"}, "given twice"),
        ({"after": "1.1.0", "namespace": "no/namespace"}, "cannot be the name of the namespace"),
    ],
    ids=["no such version", "the same", "no such version before", "twice", "namespace"],
)
def test_what_cannot_be_compared_is_refused_in_words(port: World, asked: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        ask(port, port.ada, **asked)


def test_what_a_new_deployment_would_take_follows_channel_and_versions(port: World) -> None:
    found = ask(port, port.ada).package
    assert services.bundle_to_install(found, "stable", "<1.2.0").name == "harbour.v1.1.0"
    assert services.bundle_to_install(found, "", "").name == "harbour.v1.3.0"
    with pytest.raises(InvalidInput, match="has no channel alpha"):
        services.bundle_to_install(found, "alpha", "")
