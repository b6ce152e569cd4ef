"""What a scrape says of the records and the queue."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import redis as redis_client
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from approvals.models import BundleDeployment, ChatDelivery, Cluster, Request
from tests.approvals.metrics.conftest import Scrape, key
from tests.support.approvals import world
from tests.support.approvals.fixtures import World

QUERIES = 7


def open_request(env: World, name: str, **changes: Any) -> Request:
    found = world.submit_spec(env.cluster, world.seen(name, world.spec()), env.rita).requests.get()
    Request.objects.filter(pk=found.pk).update(**changes)
    found.refresh_from_db()
    return found


def test_open_requests_are_told_by_cluster_state_and_age(env: World, scrape: Scrape) -> None:
    now = timezone.now()
    open_request(env, "one", created_at=now - timedelta(hours=2), changed_at=now - timedelta(hours=1))
    open_request(env, "two")
    found = scrape()
    assert found[key("pratique_requests", cluster="prod", state="preparing")] == 2
    assert found[key("pratique_requests", cluster="prod", state="in_review")] == 0
    assert found[key("pratique_oldest_request_seconds", state="preparing")] == pytest.approx(7200, abs=60)
    assert found[key("pratique_idlest_request_seconds", state="preparing")] == pytest.approx(3600, abs=60)
    assert found[key("pratique_oldest_request_seconds", state="approved")] == 0
    assert found[key("pratique_max_open_requests")] == 200


def test_what_waits_and_what_failed_is_told_by_its_code(env: World, scrape: Scrape) -> None:
    open_request(env, "one", problem_code="unreachable")
    now = timezone.now()
    open_request(env, "two", state="failed", problem_code="bad-source", settled_at=now)
    open_request(env, "old", state="failed", problem_code="bad-bundle", settled_at=now - timedelta(days=2))
    found = scrape()
    assert found[key("pratique_waiting_requests", code="unreachable")] == 1
    assert found[key("pratique_failed_requests", code="bad-source")] == 1
    assert key("pratique_failed_requests", code="bad-bundle") not in found
    assert found[key("pratique_settled_requests", state="failed")] == 1
    assert found[key("pratique_settled_requests", state="applied")] == 0


def test_claims_are_told_held_and_lapsed(env: World, scrape: Scrape) -> None:
    now = timezone.now()
    open_request(env, "one", claimed_by="w", claimed_until=now + timedelta(minutes=1))
    open_request(env, "two", claimed_by="w", claimed_until=now - timedelta(minutes=1))
    waiting = world.in_review(open_request(env, "three"))
    Request.objects.filter(pk=waiting.pk).update(claimed_by="w", claimed_until=now - timedelta(minutes=1))
    BundleDeployment.objects.filter(name="one").update(claimed_by="w", claimed_until=now - timedelta(minutes=1))
    found = scrape()
    assert found[key("pratique_request_claims", state="held")] == 1
    assert found[key("pratique_request_claims", state="lapsed")] == 1
    assert found[key("pratique_deployment_claims", state="held")] == 0
    assert found[key("pratique_deployment_claims", state="lapsed")] == 1


def test_deaths_at_open_requests_are_told(env: World, scrape: Scrape) -> None:
    open_request(env, "one", worker_deaths=1)
    open_request(env, "two", worker_deaths=2)
    open_request(env, "three", state="failed", worker_deaths=4)
    assert scrape()[key("pratique_request_worker_deaths")] == 3


def test_a_cluster_tells_when_it_was_reached_and_whether_it_is_watched(env: World, scrape: Scrape) -> None:
    now = timezone.now()
    Cluster.objects.update(reached_at=now - timedelta(minutes=5), watched_until=now + timedelta(seconds=9))
    Cluster.objects.create(name="new", kubeconfig="{}", created_at=now, problem="no answer")
    found = scrape()
    assert found[key("pratique_cluster_contact_seconds", cluster="prod")] == pytest.approx(300, abs=30)
    assert key("pratique_cluster_contact_seconds", cluster="new") not in found
    assert [found[key("pratique_cluster_watched", cluster=name)] for name in ("prod", "new")] == [1, 0]
    assert [found[key("pratique_cluster_trouble", cluster=name)] for name in ("prod", "new")] == [0, 1]


def test_deployments_are_told_by_health(env: World, scrape: Scrape) -> None:
    open_request(env, "one")
    open_request(env, "two")
    BundleDeployment.objects.filter(name="two").update(health="Failed")
    found = scrape()
    assert found[key("pratique_deployments", cluster="prod", health="not_looked_at")] == 1
    assert found[key("pratique_deployments", cluster="prod", health="Failed")] == 1


def test_decisions_from_chat_that_nobody_acted_on_are_told(env: World, scrape: Scrape) -> None:
    now = timezone.now()
    ChatDelivery.objects.create(tool="slack", key="1", wish={}, received_at=now - timedelta(minutes=2))
    ChatDelivery.objects.create(tool="slack", key="2", wish={}, received_at=now, done_at=now)
    found = scrape()
    assert found[key("pratique_open_chat_deliveries")] == 1
    assert found[key("pratique_oldest_chat_delivery_seconds")] == pytest.approx(120, abs=30)


def test_a_scrape_costs_the_same_few_queries_however_much_there_is(env: World, scrape: Scrape) -> None:
    for number in range(6):
        open_request(env, f"d{number}", problem_code=f"code-{number}")
        world.cluster(f"c{number}")
    with CaptureQueriesContext(connection) as asked:
        scrape()
    assert len(asked) == QUERIES, [one["sql"] for one in asked]


def test_scrapes_right_after_each_other_read_the_records_once(env: World, scrape: Scrape) -> None:
    from approvals.metrics import exposition

    scrape()
    with CaptureQueriesContext(connection) as asked:
        exposition()
    assert len(asked) == 0


def test_a_database_that_is_away_is_told_and_fails_no_scrape(env: World, scrape: Scrape) -> None:
    def away(*_: object) -> None:
        raise OperationalError("the words of the database")

    with connection.execute_wrapper(away):
        found = scrape()
    assert found[key("pratique_database_up")] == 0
    assert not [name for name, _ in found if name == "pratique_requests"]
    assert scrape()[key("pratique_database_up")] == 1


def test_names_and_words_of_tenants_are_no_labels(env: World, scrape: Scrape) -> None:
    """S27: a label is kept for months, and shown to whoever may see a dashboard."""
    canary = "canary-of-a-tenant"
    open_request(env, canary, problem_code=f"X{canary}", problem=canary, claimed_by=canary)
    Cluster.objects.update(problem=canary)
    BundleDeployment.objects.update(health=canary[:20], problem=canary)
    told = scrape()
    assert not [one for one in told if canary in str(one) or canary[:20] in str(one)]
    assert told[key("pratique_waiting_requests", code="other")] == 1
    assert told[key("pratique_deployments", cluster="prod", health="other")] == 1


def test_the_queue_is_told(db: None, redis: str, settings: Any, scrape: Scrape) -> None:
    own = f"{redis.removesuffix('/0')}/7"  # others send messages to the first database meanwhile
    settings.PRATIQUE = {**settings.PRATIQUE, "REDIS_URL": own}
    with redis_client.Redis.from_url(own) as client:
        client.rpush("celery", "a", "b")
        client.hset("unacked", "x", "y")
        client.zadd("unacked_index", {"x": timezone.now().timestamp() - 60})
        try:
            found = scrape()
        finally:
            client.delete("celery", "unacked", "unacked_index")
    assert found[key("pratique_queue_up")] == 1
    assert found[key("pratique_queue_messages")] == 2
    assert found[key("pratique_queue_unacked_messages")] == 1
    assert found[key("pratique_queue_oldest_unacked_seconds")] == pytest.approx(60, abs=20)


def test_a_queue_that_is_away_is_told(db: None, settings: Any, scrape: Scrape) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "REDIS_URL": "redis://:canary-password@127.0.0.1:1/0"}
    found = scrape()
    assert found[key("pratique_queue_up")] == 0
    assert key("pratique_queue_messages") not in found
