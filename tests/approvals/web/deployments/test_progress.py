"""What a deployment's page says of its latest request, and how it follows what happens until nothing is under way."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from approvals.lifecycle import State
from approvals.models import BundleDeployment, Outcome, Request
from approvals.steps import evaluate
from approvals.web.deployments.views import _wait_seconds
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, opened
from tests.support.approvals.world import acting

PAGE = "/deployments/prod/strimzi"


def words_of(html: str) -> str:
    return " ".join(html.split())


def denied(request: Request, here: World, reason: str) -> None:
    world.review(request, acting(here.ada), "Deny", reason=reason)
    evaluate.run(Request.objects.get(pk=request.pk), "w")


def test_a_denial_is_told_with_who_and_why_and_the_next_step(here: World, request_: Request, browse: Browse) -> None:
    denied(request_, here, "not on a Friday")
    for verb in ("get", "update"):
        here.kubernetes.allow("rita", verb)
    shown = words_of(opened(browse(here.rita), PAGE))
    assert f'<a href="/requests/{request_.uid}">Request 1</a>: denied by <span class="mono">ada</span>' in shown
    assert "Not on a Friday." in shown
    assert f'<a class="button" href="{PAGE}/edit">Change it</a>' in shown


def test_a_step_that_the_viewer_may_not_take_is_not_offered(here: World, request_: Request, browse: Browse) -> None:
    denied(request_, here, "not on a Friday")
    here.kubernetes.allow("rita", "get")
    shown = opened(browse(here.rita), PAGE)
    assert "Not on a Friday." in shown
    assert ("Change it" in shown, "Ask again" in shown) == (False, False)


def test_a_reason_of_others_is_text(here: World, request_: Request, browse: Browse) -> None:
    denied(request_, here, "<script>alert(1)</script>\u202e")
    shown = opened(browse(here.ada), PAGE)
    assert ("<script>alert" in shown, "\u202e" in shown) == (False, False)


def test_the_fragment_counts_the_objects_and_says_that_the_page_is_old(
    here: World, request_: Request, browse: Browse
) -> None:
    client = browse(here.ada)
    assert 'hx-trigger="every 10s"' in opened(client, PAGE)
    Request.objects.filter(pk=request_.pk).update(state=State.APPLYING, phase="workloads")
    Outcome.objects.create(
        request=request_, position=0, object="ConfigMap a/b", action="create", state="failed", at=timezone.now()
    )
    fragment = words_of(opened(client, f"{PAGE}/progress?seen=1-in_review-0"))
    assert "phase workloads; 1 of 1 objects" in fragment
    assert "1 failed" in fragment
    assert 'hx-trigger="every 2s"' in fragment
    assert "changed since you opened the page" in fragment
    assert 'hx-swap-oob="true"' in fragment
    assert "<html" not in fragment


def test_it_asks_no_more_once_nothing_is_under_way(here: World, request_: Request, browse: Browse) -> None:
    denied(request_, here, "no")
    assert "hx-trigger" not in opened(browse(here.ada), f"{PAGE}/progress")


@pytest.mark.parametrize(
    ("state", "problem", "revision", "health", "seconds"),
    [
        pytest.param("applying", "", None, "", 2, id="being applied"),
        pytest.param("approved", "no rights", None, "", 10, id="waits for somebody"),
        pytest.param("in_review", "", None, "", 10, id="waits for people"),
        pytest.param("applied", "", 1, "InProgress", 10, id="not healthy yet"),
        pytest.param("applied", "", 1, "Current", 0, id="healthy"),
        pytest.param("denied", "", None, "", 0, id="denied, nothing runs"),
    ],
)
def test_how_soon_it_asks_again(state: str, problem: str, revision: int | None, health: str, seconds: int) -> None:
    deployment = BundleDeployment(active_revision_id=revision, health=health)
    assert _wait_seconds(deployment, Request(state=state, problem=problem)) == seconds


def test_S02_who_may_not_read_the_cluster_gets_no_fragment(here: World, request_: Request, browse: Browse) -> None:
    stranger = world.user("mallory", here.cluster)
    answer = browse(stranger).get(f"{PAGE}/progress")
    assert answer.status_code == 403
    assert "Request 1" not in answer.content.decode()


def test_the_page_costs_the_same_however_many_requests_there_are(
    here: World, request_: Request, browse: Browse, django_assert_num_queries: Any
) -> None:
    denied(request_, here, "no")
    client = browse(here.ada)
    client.get(PAGE)
    with CaptureQueriesContext(connection) as few:
        opened(client, PAGE)
    for number in range(2, 6):
        again = Request.objects.get(pk=request_.pk)
        again.pk, again.number, again.uid = None, number, f"00000000-0000-4000-8000-00000000000{number}"
        again.save(force_insert=True)
    with django_assert_num_queries(len(few)):
        opened(client, PAGE)
