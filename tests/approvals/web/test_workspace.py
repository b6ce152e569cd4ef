"""Around the inbox: saved views, deciding on several requests at once, and what happened to one's own."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.core.cache import cache
from django.db import transaction
from django.test import Client

from approvals import audit, services
from approvals.audit import Actor
from approvals.ledger.pivots.requests import list_askers
from approvals.models import AuditEntry, KubernetesIdentity, NewsRead, Request, Review, SavedView, SignIn
from approvals.services import own_views
from approvals.web import home
from tests.support.approvals import scene, world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, opened, queries, text_of


def asked(env: World, name: str, worst: str = "notable") -> Request:
    return world.in_review(scene.asked(env.cluster, name, env.rita), worst=worst)


def bulk(client: Client, *requests: Request, confirmed: bool = True, **form: Any) -> Any:
    picked = [f"{one.uid}/{one.subject_digest}" for one in requests]
    facts = {"decision": "Approve", "reason": "", "picked": picked, **({"confirmed": "1"} if confirmed else {}), **form}
    return client.post("/decide", facts)


def test_a_view_is_saved_under_a_name_and_is_its_owners_alone(
    env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    ada, rita = browse(env.ada), browse(env.rita)
    answer = ada.post("/views", {"name": "critical ones", "query": "severity=critical&tab=all&cursor=x&page=3&evil=1"})
    assert answer.url == "/?tab=all&severity=critical"
    assert "critical ones" in text_of(ada.get("/"))
    assert "critical ones" not in text_of(rita.get("/"))
    view = SavedView.objects.get()
    assert rita.post(f"/views/{view.pk}/remove").status_code == 404
    assert SavedView.objects.count() == 1
    ada.post(f"/views/{view.pk}/remove")
    assert SavedView.objects.count() == 0


@pytest.mark.parametrize("name", ["", "n" * 61])
def test_a_view_needs_a_name_that_fits(name: str, env: World, browse: Browse) -> None:
    assert browse(env.ada).post("/views", {"name": name, "query": "tab=all"}).status_code == 422
    assert SavedView.objects.count() == 0


def test_nobody_has_more_views_than_the_limit(env: World, browse: Browse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_views, "MAX_VIEWS", 1)
    client = browse(env.ada)
    client.post("/views", {"name": "one", "query": "tab=all"})
    assert client.post("/views", {"name": "two", "query": "tab=all"}).status_code == 422
    client.post("/views", {"name": "one", "query": "tab=open"})
    assert list(SavedView.objects.values_list("name", "query")) == [("one", "tab=open")]


def test_each_active_filter_is_shown_and_can_be_cleared(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    text = text_of(browse(env.ada).get("/?tab=all&severity=critical&search=harb"))
    assert 'class="chip" href="?tab=all&amp;search=harb"' in text
    assert 'class="chip" href="?tab=all&amp;severity=critical"' in text


def test_several_requests_are_approved_after_a_confirmation(env: World, browse: Browse) -> None:
    made = [asked(env, name) for name in ("a", "b")]
    client = browse(env.ada)
    first = text_of(bulk(client, *made, confirmed=False))
    assert "Approve 2 requests" in first
    assert Review.objects.count() == 0
    assert text_of(bulk(client, *made)).count("approval recorded") == 2
    assert set(Review.objects.values_list("request", "decision", "user")) == {
        (one.pk, "Approve", env.ada.pk) for one in made
    }


@pytest.mark.parametrize("worst", ["dangerous", "breaking", "critical", "unknown"])
def test_what_is_serious_is_not_approved_in_bulk(worst: str, env: World, browse: Browse) -> None:
    harmless, serious = asked(env, "a"), asked(env, "b", worst)
    text = text_of(bulk(browse(env.ada), harmless, serious))
    assert "1 of 2 recorded" in text
    assert "Review it on its own page" in text
    assert [one.request for one in Review.objects.all()] == [harmless]


def test_each_request_is_checked_by_itself(env: World, browse: Browse) -> None:
    """Rita made b; ada may not decide on a by name, and what she saw of c is old."""
    own = world.in_review(scene.asked(env.cluster, "b", env.ada), worst="notable")
    old, fine = asked(env, "c"), asked(env, "d")
    Request.objects.filter(pk=old.pk).update(subject_digest=f"sha256:{'e' * 64}")
    text = text_of(bulk(browse(env.ada), own, old, fine))
    assert text.count("approval recorded") == 1
    assert "review it again" in text
    assert [one.request for one in Review.objects.all()] == [fine]


def test_who_may_not_decide_records_nothing_in_bulk(env: World, browse: Browse) -> None:
    env.kubernetes.allow("bert", "get")
    env.kubernetes.allow("bert", "approve", "b")
    no, yes = asked(env, "a"), asked(env, "b")
    text = text_of(bulk(browse(env.bert), no, yes))
    assert "1 of 2 recorded" in text
    assert [one.request for one in Review.objects.all()] == [yes]


def test_who_may_not_read_learns_nothing_in_bulk(env: World, browse: Browse) -> None:
    made = asked(env, "hidden-away")
    for confirmed in (True, False):
        answer = bulk(browse(env.bert), made, confirmed=confirmed)
        assert answer.status_code == 422
        assert "hidden-away" not in text_of(answer)


def test_denials_in_bulk_need_a_reason(env: World, browse: Browse) -> None:
    made = asked(env, "a", "critical")
    client = browse(env.ada)
    assert bulk(client, made, decision="Deny").status_code == 422
    assert Review.objects.count() == 0
    assert "denial recorded" in text_of(bulk(client, made, decision="Deny", reason="not this week"))
    assert Review.objects.get().reason == "not this week"


@pytest.mark.parametrize("form", [{"decision": "Maybe"}, {"picked": ["x"]}, {"picked": []}, {"picked": ["x"] * 80}])
def test_bulk_survives_any_form(form: dict[str, Any], env: World, browse: Browse) -> None:
    assert bulk(browse(env.ada), asked(env, "a"), **form).status_code == 422
    assert Review.objects.count() == 0


def test_mine_lists_what_one_asked_for_with_its_outcome_and_reason(
    env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    quiet = asked(env, "mine-one")
    env.kubernetes.allow("rita", "get")
    bulk(browse(env.ada), quiet, decision="Deny", reason="breaks the harbour")
    Request.objects.filter(pk=quiet.pk).update(state="denied")
    text = text_of(browse(env.rita).get("/?tab=mine"))
    assert "mine-one" in text
    assert "Breaks the harbour." in text
    assert re.search(r'label-bad">denied</span>\s*<p class="quiet">\s*by <span class="mono">ada</span>', text)
    assert "mine-one" not in text_of(browse(env.ada).get("/?tab=mine"))


def test_a_requester_is_told_of_a_review_until_it_is_marked_as_read(env: World, browse: Browse) -> None:
    env.kubernetes.allow("rita", "get")
    made = asked(env, "told-one")
    bulk(browse(env.ada), made, decision="Deny", reason="not this week")
    client = browse(env.rita)
    text = text_of(client.get("/home"))
    assert "denied" in text
    assert "not this week" in text
    assert 'class="count">' in text_of(client.get("/me"))
    number = text.partition('name="number"')[2].partition('value="')[2].partition('"')[0]
    client.post("/home/read", {"number": number})
    assert NewsRead.objects.get().user == env.rita
    assert "Mark" not in text_of(client.get("/home")).partition('id="happened"')[2].partition("Your requests")[0]
    assert 'class="count">' not in text_of(client.get("/me"))
    assert "told-one" not in text_of(browse(env.bert).get("/home"))


def test_reading_never_goes_back(env: World, browse: Browse) -> None:
    client = browse(env.ada)
    for number in range(4):
        asked(env, f"n{number}")
    newest = AuditEntry.objects.count()
    assert newest > 7
    for number in ("7", "3"):
        client.post("/home/read", {"number": number})
    assert NewsRead.objects.get().number == 7
    client.post("/home/read", {"number": "9" * 18})
    assert NewsRead.objects.get().number == newest, "what comes later is told"
    assert client.post("/home/read", {"number": "x"}).status_code == 422


def test_home_costs_as_many_queries_for_much_news_as_for_little(env: World, browse: Browse) -> None:
    env.kubernetes.allow("rita", "get")
    client = browse(env.rita)
    counted = []
    for few, many in ((0, 2), (2, 12)):
        for number in range(few, many):
            bulk(browse(env.ada), asked(env, f"n{number}"))
        client.get("/home")
        counted.append(queries(client, "/home"))
    assert counted[0] == counted[1] <= 18


def test_home_tells_only_of_what_the_viewer_may_decide(env: World, browse: Browse) -> None:
    env.kubernetes.allow("bert", "get")
    for name in ("a", "b", "c"):
        asked(env, name)
    assert "Nothing is waiting for your decision" in text_of(browse(env.bert).get("/home"))
    assert "3 requests in review that you are allowed to decide" in text_of(browse(env.ada).get("/home"))
    env.kubernetes.allow("bert", "approve", "b")
    cache.clear()
    text = text_of(browse(env.bert).get("/home"))
    assert "1 request in review that you are allowed to decide" in text
    assert re.findall(r'href="/requests/[^"]+">(\w+)</a>', text) == ["b"]


def test_home_asks_kubernetes_as_often_for_many_requests_as_for_few(
    env: World, browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(home, "ASKED", 4)
    env.kubernetes.allow("bert", "get")
    counts = []
    for few, many in ((0, 6), (6, 18)):
        for number in range(few, many):
            asked(env, f"n{number}")
        cache.clear()
        env.kubernetes.asked.clear()
        browse(env.bert).get("/home")
        counts.append(sum(one.verb == "approve" for _, one in env.kubernetes.asked))
    assert counts == [5, 5]


def test_a_row_says_in_words_how_a_request_stands(env: World, browse: Browse) -> None:
    """Cause, by whom and where to go next, as its own page says it."""
    old = asked(env, "strimzi")
    seen = world.seen("strimzi", world.spec("2.0.0"), uid=old.deployment.uid, generation=2)
    world.submit_spec(env.cluster, seen, env.rita)
    new = world.in_review(old.deployment.requests.get(number=2), worst="notable")
    world.review(new, world.acting(env.ada), "RequestChanges", reason="pin the image")
    failed = asked(env, "argo")
    Request.objects.filter(pk=failed.pk).update(
        state="failed", problem="the registry did not answer", remedy="ask again"
    )
    text = text_of(browse(env.ada).get("/?tab=all"))
    assert "Request 2 replaced it." in text
    assert f'<a href="/requests/{new.uid}">Open request 2</a>' in text
    assert "changes requested" in text
    assert "Pin the image." in text
    assert 'by <span class="mono">ada</span>' in text
    assert "The registry did not answer." in text
    assert "Next: ask again" in text


@pytest.mark.parametrize(("decision", "is_told"), [("Approve", True), ("Deny", False)])
def test_who_approved_an_earlier_round_is_told_in_lists_that_it_no_longer_counts(
    decision: str, is_told: bool, env: World, browse: Browse
) -> None:
    said = {"by": world.acting(env.ada), "decision": decision, "reason": "read", "channel": "browser"}
    request = asked(env, "strimzi")
    services.review(request_id=request.pk, subject_digest=request.subject_digest, **said)
    client, words = browse(env.ada), "our approval no longer counts"
    assert words not in opened(client, "/?tab=open")
    Request.objects.filter(pk=request.pk).update(round=2, subject_digest=f"sha256:{'a' * 64}")
    for path in ("/?tab=needs-me", "/home"):
        assert (words in opened(client, path)) is is_told
    request.refresh_from_db()
    services.review(request_id=request.pk, subject_digest=request.subject_digest, **said)
    for path in ("/?tab=open", "/home"):
        assert words not in opened(client, path)


@pytest.mark.parametrize("path", ["/list?tab=open", "/list?tab=all&sort=oldest", "/home/list"])
def test_a_list_that_is_open_is_sent_again_only_when_something_happened(path: str, env: World, browse: Browse) -> None:
    env.kubernetes.allow("rita", "get")
    made = asked(env, "one")
    client = browse(env.rita)
    first = client.get(path)
    # A mark of another session is the same: what is followed holds no nonce and no token of a form.
    mark = browse(env.rita).get(path)["ETag"]
    assert mark == first["ETag"]
    assert f'hx-headers=\'{{"If-None-Match": "\\{mark[:-1]}\\""}}\'' in text_of(first)
    again = client.get(path, headers={"If-None-Match": mark})
    assert (again.status_code, again.content) == (304, b"")
    assert "no-store" in again["Cache-Control"]
    Request.objects.filter(pk=made.pk).update(state="denied")
    later = client.get(path, headers={"If-None-Match": mark})
    assert (later.status_code, later["ETag"] != mark) == (200, True)


def test_a_page_of_before_follows_nothing(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    client = browse(env.ada)
    assert 'hx-get="/list?tab=all"' in text_of(client.get("/?tab=all"))
    for query in ("tab=all&page=2", "tab=all&cursor=x"):
        assert 'hx-get="/list' not in text_of(client.get(f"/?{query}"))


def test_what_is_followed_is_for_those_who_may_read_now(env: World, browse: Browse) -> None:
    asked(env, "hidden-away")
    client = browse(env.ada)
    mark = client.get("/list?tab=all")["ETag"]
    env.kubernetes.allowed.discard(("ada", "get", "*"))
    cache.clear()
    answer = client.get("/list?tab=all", headers={"If-None-Match": mark})
    assert answer.status_code == 200
    assert "hidden-away" not in text_of(answer)
    assert Client().get("/list", headers={"HX-Request": "true"}).status_code == 204


def test_a_page_that_asks_by_itself_keeps_no_session_from_ending(env: World, browse: Browse) -> None:
    """Somebody leaves with a list open, which asks each half minute; their session ends as if it did not."""
    client, deployment = browse(env.ada), asked(env, "one").deployment
    seen, request = SignIn.objects.get().seen_at, deployment.requests.get()
    place = f"/deployments/{env.cluster.name}/{deployment.name}/progress"
    paths = ("/list?tab=open", "/home/list", "/home/count", f"/requests/{request.uid}/progress", place)
    with time_machine.travel(seen + timedelta(minutes=5), tick=True):
        assert {path: client.get(path).status_code for path in paths} == dict.fromkeys(paths, 200)
        assert SignIn.objects.get().seen_at == seen
        client.get("/")
        assert SignIn.objects.get().seen_at > seen, "what a person opens does"


def test_a_reviewer_is_told_that_their_review_was_dismissed(env: World, browse: Browse) -> None:
    made = asked(env, "told-one")
    env.kubernetes.allow("bert", "get")
    env.kubernetes.allow("bert", "approve")
    said: dict[str, Any] = {"by": world.acting(env.bert), "channel": "browser", "subject_digest": made.subject_digest}
    given = services.review(request_id=made.pk, decision="RequestChanges", reason="pin the image", **said)
    env.kubernetes.allow("ada", "override")
    dismissal: dict[str, Any] = {
        "by": world.acting(env.ada),
        "channel": "browser",
        "reason": "it is pinned by its digest",
    }
    services.dismiss(request_id=made.pk, review_id=given.pk, **dismissal)
    text = text_of(browse(env.bert).get("/home"))
    assert "dismissed the changes that bert requested" in text
    assert "it is pinned by its digest" in text


def test_the_same_name_on_another_cluster_is_somebody_else_in_the_news(env: World, browse: Browse) -> None:
    """Rita of `prod` is rosa on `moon`, where somebody else is called rita and denies what rosa asked for."""
    moon = world.cluster("moon")
    about = {"cluster": moon, "groups_seen_at": world.yesterday(), "authenticator": "mapped"}
    KubernetesIdentity.objects.create(user=env.rita, username="rosa", **about)
    for name in ("rosa", "rita"):
        env.kubernetes.allow(name, "get")
    wish = world.seen("crater", world.spec())
    made = world.submit_spec(moon, wish).requests.get()
    list_askers(_asked_by(made, "rosa"))
    with transaction.atomic():
        audit.record(verb="request.deny", actor=Actor("rita", "browser"), request=made, facts={"reason": "not here"})
        audit.record(verb="request.labels", actor=Actor("rosa", "browser"), request=made, facts={"reason": "my own"})
    client = browse(env.rita)
    text = text_of(client.get("/home"))
    assert ("not here" in text, "my own" in text) == (True, False)
    assert 'class="count">1<' in text_of(client.get("/me"))
    KubernetesIdentity.objects.filter(user=env.rita, cluster=moon).delete()
    assert 'class="count">' not in text_of(client.get("/me")), "S01: counted where rita was rosa"


def _asked_by(request: Request, name: str) -> Request:
    request.requesters = [{"username": name}]
    request.save()
    return request
