"""Nobody sees what Kubernetes does not allow them to read, and a page never costs more for more rows (S02)."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest
from django import forms
from django.contrib.auth.models import User
from django.test import Client

from approvals import access
from approvals.models import BundleDeployment, Policy, Request, Review
from approvals.web.fields import YamlField
from tests.support.approvals import scene, world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import SECRETS, Browse, queries, told_in
from tests.support.approvals.world import acting

OPEN_PAGES = [
    "/",
    "/?tab=all",
    "/deployments",
    "/deployments/new",
    "/deployments/offers?cluster=prod&install_namespace=harbour",
    "/catalogs",
    "/catalogs/packages?search=ships",
    "/clusters",
    "/sets",
    "/policies",
    "/policies/new",
    "/rules/approval-rules",
    "/rules/approval-rules/new",
    "/rules/approval-policies",
    "/rules/approval-policies/new",
    "/audit",
    "/me",
]
PAGES_OF_A_CLUSTER = [
    "/requests/{serious}",
    "/requests/{serious}/break-glass",
    "/requests/{serious}/progress",
    "/requests/{serious}/changes",
    "/requests/{serious}/changes/0",
    "/requests/{serious}/changes/0?view=split&lines=all",
    "/requests/{serious}/findings",
    "/requests/{serious}/rights",
    "/requests/{serious}/schemas",
    "/deployments/prod/lighthouse",
    "/deployments/prod/lighthouse/edit",
    "/deployments/prod/nothing",
]
POLICY_PAGES = ["/policies/of/routine", "/policies/of/routine/edit"]
POSTS = [
    "/requests/{serious}/review",
    "/requests/{serious}/break-glass",
    "/requests/{serious}/review-afterwards",
    "/requests/{serious}/withdraw",
    "/deployments/prod/lighthouse/edit",
    "/deployments/prod/lighthouse/pause",
    "/deployments/prod/lighthouse/delete",
]
ALL_GETS = [*OPEN_PAGES, *PAGES_OF_A_CLUSTER, *POLICY_PAGES]


def at(path: str, afternoon: dict[str, Any]) -> str:
    return path.format(serious=afternoon["serious"].uid)


def test_every_page_opens_for_a_reader_and_again_from_answers_that_are_kept(
    env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    client = browse(env.ada)
    for path in (*ALL_GETS, *ALL_GETS):
        answer = client.get(at(path, afternoon))
        assert answer.status_code == (404 if path.endswith("/nothing") else 200), path
        assert "no-store" in answer["Cache-Control"], path
        assert "script-src 'self'" in answer["Content-Security-Policy"], path
        text = answer.content.decode()
        assert [mark for mark in ("<style", " style=", " onclick=", "javascript:") if mark in text] == [], path
        assert not re.search(r"<script(?![^>]* src=)", text), path


@pytest.mark.parametrize("allowed", [True, False])
def test_an_answer_that_is_kept_is_the_one_that_was_given(allowed: bool, env: World) -> None:
    verb = "get" if allowed else "escalate"
    asked = access.may(acting(env.ada), env.cluster, verb)
    kept = access.may(acting(env.ada), env.cluster, verb)
    assert asked.allowed == allowed
    assert bool(asked.server_words) == allowed
    assert kept == asked


def test_a_stranger_is_sent_to_sign_in(env: World, afternoon: dict[str, Any]) -> None:
    client = Client()
    for path in (*ALL_GETS, *POSTS, "/me/tokens", "/me/chat", "/me/tokens/1/revoke"):
        ask = client.post if path in POSTS or path.startswith("/me/") else client.get
        response = ask(at(path, afternoon))
        assert response.status_code == 302, path
        assert response["Location"].startswith("/sign-in?next="), path


def test_a_page_of_many_clusters_shows_nothing_of_one_that_may_not_be_read(
    env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    client = browse(env.bert)
    for path in OPEN_PAGES:
        response = client.get(path)
        assert response.status_code == 200, path
        assert [word for word in SECRETS if word in told_in(response)] == [], path


def test_a_page_of_a_cluster_that_may_not_be_read_says_only_what_would_allow_it(
    env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    client = browse(env.bert)
    for path in PAGES_OF_A_CLUSTER:
        response = client.get(at(path, afternoon))
        assert response.status_code == 403, path
        text = told_in(response)
        assert "kind: ClusterRole" in text, path
        assert [word for word in SECRETS if word in text] == [], path


def test_who_is_nobody_on_a_cluster_learns_nothing_of_it(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    client = browse(User.objects.create_user("nobody"))
    for path in (*PAGES_OF_A_CLUSTER, *POLICY_PAGES):
        response = client.get(at(path, afternoon))
        assert response.status_code == 404, path
        assert [word for word in (*SECRETS, "prod<") if word in told_in(response)] == [], path


def test_no_form_is_taken_from_somebody_who_may_not_read(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    before = (Review.objects.count(), Request.objects.count(), BundleDeployment.objects.count())
    client = browse(env.bert)
    for path in POSTS:
        form = {"decision": "Deny", "typed": "lighthouse", "pause": "yes", "reason": "no"}
        assert client.post(at(path, afternoon), form).status_code == 403, path
    assert (Review.objects.count(), Request.objects.count(), BundleDeployment.objects.count()) == before


def test_a_policy_of_a_cluster_that_may_not_be_read_cannot_be_seen_or_changed(
    env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    client = browse(env.bert)
    for path in (
        "/policies/of/routine/edit",
        "/policies/of/routine/move",
        "/policies/built-in/prod/hold-unknown/change",
    ):
        assert client.post(path, {"name": "routine"}).status_code == 404, path
    assert Policy.objects.get().version == 1


def test_a_cluster_that_does_not_answer_shows_nothing(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    env.kubernetes.is_down = True
    client = browse(env.ada)
    response = client.get(at("/requests/{serious}", afternoon))
    assert response.status_code == 503
    assert "Kubernetes could not be asked" in told_in(response)
    assert [word for word in SECRETS if word in told_in(client.get("/?tab=all"))] == []


def test_the_inbox_costs_the_same_for_more_rows(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    client = browse(env.ada)
    few = queries(client, "/")
    for number in range(8):
        scene.reported(scene.asked(env.cluster, f"more-{number}", env.rita), scene.report_of("image-latest"))
    assert queries(client, "/") == few
    assert few == 16, "one of them for who requests changes, of all rows at once"


def test_a_request_page_costs_the_same_for_more_findings(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    client = browse(env.ada)
    small = scene.reported(scene.asked(env.cluster, "small", env.rita), scene.report_of("service-for-everybody"))
    large = scene.reported(
        scene.asked(env.cluster, "large", env.rita),
        scene.report_of("service-for-everybody", "binding-to-cluster-admin", "touches-pratique", "text-that-hides"),
    )
    assert queries(client, f"/requests/{small.uid}") == queries(client, f"/requests/{large.uid}") == 19, (
        "one of them for whether Kubernetes can still be asked about who requested it"
    )


def test_a_page_asks_about_no_more_than_thirty_live_objects(env: World, browse: Browse) -> None:
    env.kubernetes.allow("ada", "get")
    body = scene.report_of("image-same-tag-other-bytes")
    action, finding = body["plan"]["actions"][0], body["findings"][0]
    body["plan"]["actions"] = [
        {**action, "before": {}, "ref": {**action["ref"], "name": f"app-{number}"}} for number in range(60)
    ]
    # So many of each section open in place.
    body["findings"] = [
        {**finding, "ref": one["ref"], "evidence": {"seen": "x"}, "section": ("objects", "pods", "images")[at % 3]}
        for at, one in enumerate(body["plan"]["actions"])
    ]
    found = scene.reported(scene.asked(env.cluster, "wide", env.rita), body)
    client = browse(env.ada)
    env.kubernetes.asked.clear()
    text = told_in(client.get(f"/requests/{found.uid}/findings"))
    assert sum(1 for _, asked in env.kubernetes.asked if asked.name.startswith("app-")) == 30
    assert text.count("Evidence: see the object") == 30


def test_the_other_cluster_of_a_reader_stays_closed(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    other = world.cluster("staging")
    secret = scene.asked(other, "submarine", None)
    client = browse(env.ada)
    assert client.get(f"/requests/{secret.uid}").status_code == 404
    assert client.get("/deployments/staging/submarine").status_code == 404
    pages = [told_in(client.get(path)) for path in ("/?tab=all", "/deployments", "/audit", "/clusters")]
    assert not any("submarine" in page for page in pages)


@pytest.mark.parametrize(
    ("page", "fields"),
    [
        ("revoke", {"revision": "1", "reason": "leaks\0keys"}),
        ("pause", {"pause": "yes", "reason": "wait\0"}),
        ("edit", {"labels\0": "x"}),
    ],
)
def test_a_nul_is_refused_in_words_and_reaches_neither_cluster_nor_database(
    env: World, twice: BundleDeployment, browse: Callable[[User], Client], page: str, fields: dict[str, str]
) -> None:
    env.kubernetes.allow("ada", "update")
    before = copy.deepcopy(env.kubernetes.objects)
    answer = browse(env.ada).post(f"/deployments/prod/strimzi/{page}", fields)
    assert (answer.status_code, "contains a NUL" in answer.content.decode()) == (422, True)
    assert env.kubernetes.objects == before


def test_a_nul_in_an_address_or_a_search_finds_nothing(
    env: World, twice: BundleDeployment, browse: Callable[[User], Client]
) -> None:
    client = browse(env.ada)
    assert client.get("/deployments/prod/strimzi%00").status_code == 404
    assert client.get("/deployments/prod/strimzi?search=%00").status_code == 422


@pytest.mark.parametrize("text", ['a: "\\0"', '"\\0": a', 'a: [{b: "x\\0"}]'])
def test_a_nul_written_as_an_escape_in_yaml_is_refused_in_words(text: str) -> None:
    with pytest.raises(forms.ValidationError, match="contains a NUL"):
        YamlField(example="{}").clean(text)
