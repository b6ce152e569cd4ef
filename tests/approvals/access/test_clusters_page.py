"""The clusters' page: what it knows of each API server, its watch and our rights, without asking the cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from approvals import refusals
from approvals.access import port
from approvals.errors import MissingRight
from approvals.health_endpoints import startup_checks
from approvals.models import AuthorAdmission, Request, ReviewAdmission
from approvals.selectors import lists
from approvals.web import tags
from provisioner.cluster.client.transport import Exchange
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, text_of


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is known from other tests."""
    monkeypatch.setattr(startup_checks, "_notes", {})
    port._answers.clear()
    monkeypatch.setattr(refusals, "_noted_at", {})
    monkeypatch.setattr(refusals, "_silences", Counter())
    port._silences.clear()
    yield
    port._answers.clear()
    port._silences.clear()


def words(env: World, browse: Browse) -> str:
    return " ".join(text_of(browse(env.ada).get("/clusters")).split())


def called(*exchanges: tuple[int, float]) -> None:
    observe = port.observer_of("prod")
    for status, seconds in exchanges:
        observe(Exchange("ask", status, seconds))


def test_before_the_first_call_the_page_says_that_nothing_is_known(env: World, browse: Browse) -> None:
    text = words(env, browse)
    assert "not called yet by this web process" in text
    assert "not measured yet" in text
    assert "Not checked yet by this web process." in text


def test_the_latency_is_the_median_of_the_last_answers(env: World, browse: Browse) -> None:
    called((200, 9.0), *[(201, 0.012)] * 19, (403, 0.5))
    text = words(env, browse)
    assert "responded <time" in text
    assert '12 ms <span class="quiet">(median of the last 20 calls from this web process)' in text


def test_a_server_that_stopped_answering_is_told_until_it_answers(env: World, browse: Browse) -> None:
    called((200, 0.01), (0, 10.0))
    assert "did not respond</strong> <time" in words(env, browse)
    called((200, 0.01))
    assert "did not answer" not in words(env, browse)


def test_the_page_makes_no_calls_of_its_own(env: World, browse: Browse) -> None:
    client = browse(env.ada)
    client.get("/")
    env.kubernetes.asked.clear()
    client.get("/clusters")
    assert env.kubernetes.asked == []


@pytest.mark.parametrize(
    ("until", "expected"),
    [(timedelta(minutes=1), "running"), (-timedelta(minutes=1), "not running"), (None, "not running")],
    ids=str,
)
def test_the_watch_is_told(until: timedelta | None, expected: str, env: World, browse: Browse) -> None:
    env.cluster.watched_until = timezone.now() + until if until else None
    env.cluster.save()
    assert ("not running</strong>: changes" in words(env, browse)) == (expected == "not running")


def test_rights_that_web_lacks_are_told_to_readers_of_their_cluster(env: World, browse: Browse) -> None:
    startup_checks.put_notes("rights", {"prod": "the account of web may not: create x", "other": "secret words"})
    text = words(env, browse)
    assert "Missing permissions: the account of web may not: create x" in text
    assert "secret words" not in text
    assert "may not: create x" not in " ".join(text_of(browse(env.bert).get("/clusters")).split())
    startup_checks.put_notes("rights", {})
    assert "The web process has all the permissions it needs, and no request is waiting for one." in words(env, browse)


def test_requests_that_wait_for_a_right_of_ours_are_counted(
    env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    assert MissingRight.code == lists.MISSING_RIGHT
    Request.objects.filter(pk=afternoon["serious"].pk).update(state="preparing", problem_code=MissingRight.code)
    # One that ended waits for nothing.
    Request.objects.filter(problem_code="unreachable").update(problem_code=MissingRight.code)
    text = words(env, browse)
    assert (
        '<a href="/?tab=open&amp;cluster=prod">1 open request is</a> waiting for a permission that the worker lacks'
        in text
    )
    assert "pratique-manage rights --cluster prod | kubectl apply -f -" in text


@pytest.mark.parametrize(("number", "expected"), [(0.42, "0.4 ms"), (12.4, "12 ms"), (999, "999 ms"), (3210, "3.2 s")])
def test_milliseconds_are_written_for_people(number: float, expected: str) -> None:
    assert tags.milliseconds(number) == expected


def test_what_admission_policies_prove_is_told_with_what_to_apply(env: World, browse: Browse) -> None:
    assert words(env, browse).count("Not checked yet by a worker.") == 2
    now = timezone.now()
    missing = "the cluster has no MutatingAdmissionPolicy pratique-authors"
    AuthorAdmission.objects.create(cluster=env.cluster, looked_at=now, problem=missing)
    ReviewAdmission.objects.create(cluster=env.cluster, looked_at=now, since=now, facts="x")
    text = words(env, browse)
    assert f"have no known requester. Why: {missing}" in text
    assert "kind: MutatingAdmissionPolicyBinding metadata: name: pratique-authors" in text
    assert "Reviews by kubectl do not count." not in text
    assert "name: pratique-reviews" not in text
    assert "are in force, and unchanged since <time" in text
    assert missing not in " ".join(text_of(browse(env.bert).get("/clusters")).split())
