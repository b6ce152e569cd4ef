"""The pages that draw a report, and the list of its findings: to whom, of what, and never more than a page."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from django.core.cache import cache

from approvals.web.requests.report_view import MAX_OPENED
from approvals.web.requests.tabs import FINDINGS_PER_PAGE
from tests.support.approvals import scene
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, queries, text_of
from tests.support.approvals.reports import ORDER, drawn, many
from tests.support.provisioner.example_crd import TEXT, crd
from tests.support.provisioner.example_roles import PODS, SECRETS, binding, role

MAX_PAGE_BYTES = 1_000_000
# Queries of a page, with one more for each live object that Kubernetes is asked about, at most thirty.
PINNED = {
    "": 19,  # with how it stands, who has decided and what differs since the viewer's review
    "/findings": 12,  # with the form that decides, as on the page of the request
    "/findings?severity=critical&page=2": 12,
    "/rights": 12,
    "/schemas": 12,
    "/changes": 13,  # the bar: who has decided, what policies and reviewers hold it back, who requested it
}


def test_the_graph_of_an_account_is_drawn_worst_first_and_others_are_chosen(env: World, browse: Browse) -> None:
    robot = binding("a", "a")
    request = drawn(
        env, [role("a", PODS), robot], [role("a", PODS, SECRETS), robot, binding("v", "view", namespace="shop")]
    )
    client = browse(env.ada)
    text = text_of(client.get(f"/requests/{request.uid}/rights"))
    assert "get, list, watch" in text
    assert "RB-11" in text
    assert 'href="/requests/' in text
    named = quote("ServiceAccount shop/robot")
    assert client.get(f"/requests/{request.uid}/rights?account={named}").status_code == 200


@pytest.mark.parametrize("path", ["rights?account=User%20eve", "rights?account=<b>", "schemas?crd=nothing"])
def test_what_the_report_does_not_know_is_not_found(
    path: str, env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    assert browse(env.ada).get(f"/requests/{afternoon['serious'].uid}/{path}").status_code == 404


@pytest.mark.parametrize("path", ["rights", "schemas", "findings"])
def test_a_request_without_a_report_has_no_pictures(path: str, env: World, browse: Browse) -> None:
    request = scene.asked(env.cluster, "early", env.rita)
    assert browse(env.ada).get(f"/requests/{request.uid}/{path}").status_code == 404


def test_an_empty_picture_says_what_would_stand_there(env: World, browse: Browse) -> None:
    request = scene.reported(scene.asked(env.cluster, "plain", env.rita), scene.report_of("image-latest"))
    client = browse(env.ada)
    assert "This bundle has no bindings" in text_of(client.get(f"/requests/{request.uid}/rights"))
    assert "No custom resource definition changes" in text_of(client.get(f"/requests/{request.uid}/schemas"))


def test_S09_a_definition_that_the_viewer_may_not_get_is_not_drawn(env: World, browse: Browse) -> None:
    request = drawn(env, [crd({"secretField": TEXT})], [crd({"other": TEXT})])
    client, path = browse(env.ada), f"/requests/{request.uid}/schemas"
    assert "secretField" in text_of(client.get(path))
    cache.clear()
    env.kubernetes.closed = {"customresourcedefinitions"}
    hidden = client.get(path)
    assert hidden.status_code == 200
    # The bar above has the headline of the report, which whoever sees the request sees.
    picture = text_of(hidden).partition('<nav class="tabs" aria-label="Request">')[2]
    assert "not allowed to see" in picture
    assert "secretField" not in picture


def test_a_schema_says_what_stored_objects_show_to_who_may_get_them(env: World, browse: Browse) -> None:
    body = scene.report_of("crd-field-removed")
    first = next(one for one in body["findings"] if one["section"] == "crds")
    spec = next(one["after"] for one in body["plan"]["actions"] if one["ref"] == first["ref"])["spec"]
    stored = {"group": spec["group"], "version": "v1", "kind": spec["names"]["kind"], "namespace": "", "name": ""}
    told = {"message": "only schemas compared", "serverWords": "3 of 3 objects lose it", "withheld": True}
    body["findings"] = [{**first, **told, "sources": [stored]}]
    request, client = scene.reported(scene.asked(env.cluster, "berth", env.rita), body), browse(env.ada)
    assert "3 of 3 objects lose it" in text_of(client.get(f"/requests/{request.uid}/schemas"))
    cache.clear()
    env.kubernetes.closed = {spec["names"]["plural"]}
    hidden = text_of(client.get(f"/requests/{request.uid}/schemas"))
    assert "3 of 3 objects lose it" not in hidden
    assert "only schemas compared" in hidden


def test_S09_roles_that_the_viewer_may_not_get_are_only_counted(env: World, browse: Browse) -> None:
    special = {"verbs": ["get"], "apiGroups": ["x.example"], "resources": ["treasures"]}
    request = drawn(env, [role("a", special), binding("a", "a")], [role("a", special, PODS), binding("a", "a")])
    client, path = browse(env.ada), f"/requests/{request.uid}/rights"
    assert "treasures" in text_of(client.get(path))
    cache.clear()
    env.kubernetes.closed = {"clusterroles"}
    hidden = text_of(client.get(path))
    assert "treasures" not in hidden
    assert "not allowed to see" in hidden


@pytest.mark.parametrize(
    "name", ["n" * 253, "a\u202eb", "</script><b>", "раypal"], ids=["long", "bidi", "markup", "look-alike"]
)
def test_S24_hostile_names_are_shown_escaped_in_every_picture(name: str, env: World, browse: Browse) -> None:
    old = [role(name, PODS), binding(name, name), crd({name: TEXT})]
    new = [role(name, PODS, SECRETS), binding(name, name), crd({name: {"type": "integer", "enum": [name]}})]
    request, client = drawn(env, old, new), browse(env.ada)
    for path in ("", "/rights", "/schemas", "/findings", "/findings?search=" + quote(name)):
        text = text_of(client.get(f"/requests/{request.uid}{path}"))
        assert [mark for mark in ("\u202e", "<b>", "р") if mark in text] == [], path
        assert "armada" in text


@pytest.mark.parametrize(
    ("query", "takes"),
    [
        pytest.param("severity=breaking", lambda it: it["severity"] == "breaking", id="severity"),
        pytest.param("section=permissions", lambda it: it["section"] == "permissions", id="section"),
        pytest.param("new=yes", lambda it: it["isNew"], id="new"),
        pytest.param("search=EVERY+secret", lambda it: "every Secret" in it["message"], id="words"),
        pytest.param("search=rb-11", lambda it: it["rule"] == "RB-11", id="rule"),
        pytest.param("severity=breaking&section=permissions", lambda it: False, id="both"),
        pytest.param("severity=nonsense", lambda it: False, id="a word that means nothing"),
        pytest.param("page=7&section=", lambda it: True, id="nothing"),
    ],
)
def test_findings_are_filtered_by_the_address(
    query: str, takes: Callable[[Any], bool], env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    serious = afternoon["serious"]
    text = text_of(browse(env.ada).get(f"/requests/{serious.uid}/findings?{query}"))
    everything = serious.reports.get().body["findings"]
    wanted = [one for one in everything if takes(one)]
    assert re.search(rf"{len(wanted)} of {len(everything)} findings", text)
    assert text.count('class="finding"') == len(wanted)


def test_one_finding_is_opened_by_its_address(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    serious = afternoon["serious"]
    finding = next(one for one in serious.reports.get().body["findings"] if one["path"])
    text = text_of(browse(env.ada).get(f"/requests/{serious.uid}/findings?only={finding['fingerprint']}"))
    assert '<details class="finding" open>' in text
    assert "Affected lines" in text


def test_S09_no_search_tells_what_a_hidden_secret_holds(env: World, browse: Browse) -> None:
    body = scene.report_of("secret-in-the-bundle")
    ref = {"group": "", "version": "v1", "kind": "Secret", "namespace": "shop", "name": "key"}
    telling = {"rule": "OBJ-02", "message": "Changes data.moonlight of it", "ref": ref}
    body["findings"] = [{**body["findings"][0], **telling}]
    request, client = scene.reported(scene.asked(env.cluster, "vault", env.rita), body), browse(env.ada)
    assert "0 of 1" in text_of(client.get(f"/requests/{request.uid}/findings?search=moonlight"))
    assert "1 of 1" in text_of(client.get(f"/requests/{request.uid}/findings?search=shop"))


@pytest.mark.thorough
def test_a_page_of_findings_costs_the_same_for_more_of_them(env: World, browse: Browse) -> None:
    client = browse(env.ada)
    few, all_of_them = many(env, 700, 500, "few"), many(env, 2_000, 5_000, "all")
    for one in (few, all_of_them):
        found = {}
        for path in PINNED:
            cache.clear()
            found[path] = queries(client, f"/requests/{one.uid}{path}")
        assert found == PINNED


@pytest.mark.thorough
def test_two_thousand_findings_and_five_thousand_objects_fit_into_a_page(env: World, browse: Browse) -> None:
    request, client = many(env), browse(env.ada)
    text = text_of(client.get(f"/requests/{request.uid}/findings"))
    assert len(text.encode()) < MAX_PAGE_BYTES
    body = request.reports.get().body["findings"]
    never_left_out = [one for one in body if one["severity"] in ("critical", "unknown")]
    assert len(never_left_out) > 8 * MAX_OPENED
    opened = text.count('<details class="finding">')
    assert opened + text.count('class="finding-brief"') >= len(never_left_out)
    assert opened <= 2 * 8 * MAX_OPENED
    for severity in ORDER:
        count = sum(1 for one in body if one["severity"] == severity)
        assert not count or re.search(rf"{severity}</span> {count}\b", text), severity
    listed = text_of(client.get(f"/requests/{request.uid}/findings?page=3"))
    assert listed.count('class="finding"') == FINDINGS_PER_PAGE
    assert "101 to 150 of 2000" in listed


def test_the_page_says_whether_objects_or_schemas_judged(env: World, browse: Browse) -> None:
    body = scene.report_of("crd-field-removed")
    first = next(one for one in body["findings"] if one["section"] == "crds")
    body["findings"] = [
        {**first, "fingerprint": basis, "evidence": {**first["evidence"], "basis": basis}}
        for basis in ("objects", "schemas")
    ]
    request, client = scene.reported(scene.asked(env.cluster, "berth", env.rita), body), browse(env.ada)
    for basis, words in (
        ("objects", "Severity based on the objects stored in the cluster"),
        ("schemas", "Severity based on the schemas alone"),
    ):
        assert words in text_of(client.get(f"/requests/{request.uid}/findings?only={basis}"))
