"""Attacks on the doors around lists: bulk decisions, export, saved views, news, dismissals, what is followed."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from approvals import services
from approvals.models import Dismissal, NewsRead, Request, Review, SavedView
from tests.support.approvals import scene, world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, text_of

LISTS = (
    "/list?tab=all",
    "/home/list",
    "/home",
    "/home/count",
    "/audit/export?format=jsonl",
    "/audit/export?format=csv",
)


def asked(env: World, name: str, worst: str = "notable") -> Request:
    return world.in_review(scene.asked(env.cluster, name, env.rita), worst=worst)


def changes_requested(env: World, name: str = "a") -> Review:
    request = asked(env, name)
    return world.review(request, world.acting(env.ada), "RequestChanges", reason="pin the image")


def whole(answer: Any) -> str:
    return b"".join(answer.streaming_content).decode() if answer.streaming else text_of(answer)


def decided(client: Client, *requests: Request, **form: Any) -> Any:
    picked = [f"{one.uid}/{one.subject_digest}" for one in requests]
    return client.post("/decide", {"decision": "Approve", "reason": "", "picked": picked, "confirmed": "1", **form})


def test_a_foreign_page_sends_none_of_these_forms(env: World) -> None:
    review = changes_requested(env)
    env.kubernetes.allow("ada", "override")
    services.save_view(by=world.acting(env.ada), name="mine", query="tab=all")
    forms = {
        "/decide": {"decision": "Deny", "reason": "x", "confirmed": "1", "picked": [str(review.request.uid)]},
        "/views": {"name": "theirs", "query": "tab=all"},
        f"/views/{SavedView.objects.get().pk}/remove": {},
        "/home/read": {"number": "1"},
        f"/requests/{review.request.uid}/reviews/{review.pk}/dismiss": {"reason": "x"},
    }
    client = Client(enforce_csrf_checks=True)
    world.enter(client, env.ada)
    for path, form in forms.items():
        assert client.post(path, form).status_code == 403, path
        # A link or a picture on a foreign page only asks by GET.
        client.get(path, form)
    kept = (Review.objects.count(), SavedView.objects.get().name, NewsRead.objects.count(), Dismissal.objects.count())
    assert kept == (1, "mine", 0, 0)


def test_a_right_that_ended_after_the_list_was_shown_decides_nothing_in_bulk(env: World, browse: Browse) -> None:
    """The answer of the list is kept for ten seconds; a decision asks afresh."""
    made, client = asked(env, "a"), browse(env.ada)
    assert "you can decide" in text_of(client.get("/"))
    env.kubernetes.allowed.discard(("ada", "approve", "*"))
    assert "0 of 1 recorded" in text_of(decided(client, made))
    assert not Review.objects.exists()


def test_bulk_approves_nothing_past_requested_changes(env: World, browse: Browse) -> None:
    from approvals.steps import evaluate

    review = changes_requested(env)
    carol = world.user("carol", env.cluster, "platform")
    env.kubernetes.allow("carol", "approve")
    env.kubernetes.allow("carol", "get")
    decided(browse(carol), review.request)
    evaluate.run(Request.objects.get(pk=review.request_id), "w")
    assert Request.objects.get(pk=review.request_id).state == "in_review"


@pytest.mark.parametrize("path", LISTS)
def test_what_the_viewer_may_no_longer_read_is_gone_from_every_list(path: str, env: World, browse: Browse) -> None:
    env.kubernetes.allow("rita", "get")
    request = asked(env, "harbour")
    decided(browse(env.ada), request)
    client = browse(env.rita)
    assert path == "/home/count" or "harbour" in whole(client.get(path))
    env.kubernetes.allowed.discard(("rita", "get", "*"))
    cache.clear()
    text = whole(client.get(path))
    assert "harbour" not in text
    assert str(request.uid) not in text
    assert 'class="count">1' not in text


def test_ids_of_others_are_answered_like_ids_that_are_not_there(env: World, browse: Browse) -> None:
    """Saved views, and reviews of requests on a cluster that the viewer may not read."""
    services.save_view(by=world.acting(env.ada), name="mine", query="tab=all")
    review = changes_requested(env)
    client = browse(env.bert)
    theirs, none = SavedView.objects.get().pk, 10**6
    views = [client.post(f"/views/{key}/remove") for key in (theirs, none)]
    assert [one.status_code for one in views] == [404, 404]
    path = f"/requests/{review.request.uid}/reviews"
    dismissals = [client.post(f"{path}/{key}/dismiss", {"reason": "x"}).status_code for key in (review.pk, none)]
    assert dismissals == [403, 403]
    assert (SavedView.objects.count(), Dismissal.objects.count()) == (1, 0)


def test_a_review_is_dismissed_on_its_own_request_only(env: World, browse: Browse) -> None:
    """Who may override one deployment does not reach a review of another through its address."""
    review, other = changes_requested(env, "a"), asked(env, "b")
    carol = world.user("carol", env.cluster, "platform")
    env.kubernetes.allow("carol", "get")
    env.kubernetes.allow("carol", "override", "b")
    client = browse(carol)
    for request in (other, review.request):
        assert client.post(f"/requests/{request.uid}/reviews/{review.pk}/dismiss", {"reason": "x"}).status_code >= 400
    assert not Dismissal.objects.exists()


@pytest.mark.parametrize(
    "query",
    ["//evil.example/", "tab=all&next=//evil.example/", "javascript:alert(1)", "tab=%0d%0aSet-Cookie:x", "a=b" * 3_000],
)
def test_a_saved_view_leads_nowhere_but_to_the_list(query: str, env: World, browse: Browse) -> None:
    answer = browse(env.ada).post("/views", {"name": "view", "query": query})
    assert answer.status_code == 302
    assert answer["Location"].startswith("/?")
    assert "evil" not in answer["Location"]
    assert "\n" not in answer["Location"]


def test_a_name_of_a_view_is_text(env: World, browse: Browse) -> None:
    client = browse(env.ada)
    client.post("/views", {"name": "<script>\u202ex</script>", "query": "tab=all"})
    text = text_of(client.get("/"))
    assert "&lt;script&gt;" in text
    assert "\u202e" not in text
    assert "<script>\\u" not in text
