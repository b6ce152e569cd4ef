"""What lists cost, however long they are, and that neither counts nor filters tell of what nobody was asked about."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.core.cache import cache

from approvals.models import AuditEntry, Request
from approvals.selectors import inbox as selector
from approvals.selectors import keyset
from approvals.web import inbox
from tests.support.approvals import scene, world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, queries, text_of

ROWS = 6
LISTS = (
    *(
        "/",
        "/?tab=mine",
        "/?tab=open",
        "/?tab=applying",
        "/?tab=decided",
        "/?tab=all&sort=deployment",
        "/?tab=all&search=d0",
    ),
    *("/home", "/home/count", "/deployments", "/audit", "/policies", "/catalogs", "/clusters"),
    *("/api/v1/requests?page_size=200", "/api/v1/deployments?page_size=200", "/api/v1/audit"),
)
APPROVE = "approve"


@pytest.fixture
def page_of_six(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "ROWS", ROWS)


def reviewed(env: World, count: int, start: int = 0) -> list[Request]:
    return [
        world.in_review(scene.asked(env.cluster, f"d{number:03}", env.rita), worst="notable")
        for number in range(start, start + count)
    ]


def named(text: str) -> list[str]:
    return re.findall(r'href="/requests/[^"]+">(\w+)</a>', text)


def asked_by_name(env: World) -> int:
    return sum(bool(one.name) for _, one in env.kubernetes.asked if one.verb == APPROVE)


def test_a_list_costs_as_many_queries_for_many_rows_as_for_few(env: World, browse: Browse) -> None:
    reviewed(env, 3)
    client = browse(env.ada)
    few = {}
    for path in LISTS:
        client.get(path)
        few[path] = queries(client, path)
    reviewed(env, 12, start=3)
    assert {path: queries(client, path) for path in LISTS} == few
    # Who filters has it asked first whether few match.
    assert {path: cost for path, cost in few.items() if cost > (17 if "search" in path else 16)} == {}


def test_who_may_approve_everything_costs_two_questions_whatever_the_tab(env: World, browse: Browse) -> None:
    reviewed(env, 9)
    client = browse(env.ada)
    for tab in selector.TABS:
        cache.clear()
        env.kubernetes.asked.clear()
        client.get(f"/?tab={tab}")
        assert [(one.verb, one.name) for _, one in env.kubernetes.asked] == [("get", ""), (APPROVE, "")], tab


def test_who_may_not_is_asked_about_by_the_rows_of_the_page_alone(
    env: World, browse: Browse, page_of_six: None
) -> None:
    reviewed(env, 20)
    env.kubernetes.allow("bert", "get")
    env.kubernetes.allow("bert", APPROVE, "d001")
    client = browse(env.bert)
    for path in ("/", "/?tab=open", "/?tab=all"):
        cache.clear()
        env.kubernetes.asked.clear()
        client.get(path)
        assert asked_by_name(env) == ROWS, path
    client.get("/?tab=all")
    assert asked_by_name(env) == ROWS, "kept for 10 seconds"


def test_no_count_covers_rows_that_nobody_asked_about(env: World, browse: Browse, page_of_six: None) -> None:
    """Bert may decide on three: two are on the first page of his, and whether there are more, nobody asked."""
    made = reviewed(env, 20)
    env.kubernetes.allow("bert", "get")
    for request in (made[19], made[18], made[2]):
        env.kubernetes.allow("bert", APPROVE, request.deployment.name)
    client = browse(env.bert)
    text = text_of(client.get("/"))
    assert named(text) == ["d019", "d018"]
    assert 'class="count">2+<' in text
    assert "Kubernetes was asked about the requests of this page only" in text
    others = text_of(client.get("/?tab=open"))
    assert re.search(r"Needs me\s*</a>", others), "no count where no row was asked about"


def test_pages_of_needs_me_lead_to_all_that_may_be_decided(env: World, browse: Browse, page_of_six: None) -> None:
    reviewed(env, 20)
    env.kubernetes.allow("bert", "get")
    for name in ("d000", "d009", "d019"):
        env.kubernetes.allow("bert", APPROVE, name)
    client, path, found = browse(env.bert), "/", []
    while path:
        text = text_of(client.get(path))
        found += named(text)
        following = re.search(r'href="([^"]+)"\s+rel="next"', text)
        path = f"/{following[1]}".replace("&amp;", "&") if following else ""
    assert found == ["d019", "d009", "d000"]


FILTERS = [
    ("severity=critical", ["harbour"]),
    ("severity=nonsense", []),
    ("purpose=delete", []),
    ("format=plain&state=in_review&severity=critical", ["harbour"]),
    ("state=failed", ["ferry"]),
    ("requester=rita&state=failed", ["ferry"]),
    ("requester=ada", []),
    ("search=HARB", ["harbour"]),
    ("search=no%20such%20words", []),
    ("cluster=nowhere", []),
    ("cluster=prod&state=applied", ["lighthouse"]),
]


@pytest.mark.parametrize(("query", "names"), FILTERS)
def test_requests_are_found_by_what_is_said_of_them(
    env: World, afternoon: dict[str, Any], browse: Browse, query: str, names: list[str]
) -> None:
    assert named(text_of(browse(env.ada).get(f"/?tab=all&{query}"))) == names


@pytest.mark.parametrize("most", [0, 1, 500])
def test_a_list_is_the_same_whether_its_rows_are_few_or_many(
    env: World, browse: Browse, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Few are read by their keys, many along the order of the list: as pages, counts and entries of the audit."""
    monkeypatch.setattr(keyset, "MOST_NAMED", most)
    monkeypatch.setattr(inbox, "ROWS", 2)
    reviewed(env, 5)
    client, path, found = browse(env.rita), "/?tab=mine&search=D00&requester=rita&sort=deployment", []
    env.kubernetes.allow("rita", "get")
    while path:
        text = text_of(client.get(path))
        found += named(text)
        following = re.search(r'href="([^"]+)"\s+rel="next"', text)
        path = f"/{following[1]}".replace("&amp;", "&") if following else ""
    assert found == ["d000", "d001", "d002", "d003", "d004"]
    answer = json.loads(client.get("/api/v1/requests?search=d00&requester=rita&state=in_review&page_size=2").content)
    assert (answer["count"], [one["deployment"] for one in answer["results"]]) == (5, ["d004", "d003"])
    entries = json.loads(client.get("/api/v1/audit?deployment=d002&verb=request.made").content)
    assert (entries["count"], [one["deployment"] for one in entries["results"]]) == (1, ["d002"])
    made = AuditEntry.objects.filter(deployment="d002", actor="rita").count()
    assert f"<strong>{made}</strong> of" in text_of(client.get("/audit?deployment=d002&actor=rita"))


def test_requests_are_found_by_words_of_their_headline(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    words = afternoon["serious"].reports.get().headline[0][:40].upper()
    assert named(text_of(browse(env.ada).get("/", {"tab": "all", "search": words}))) == ["harbour"]


def test_requests_are_found_by_the_rules_of_their_present_report(
    env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    rules = {one["rule"] for one in afternoon["serious"].reports.get().body["findings"]}
    secrets = {
        one["rule"]
        for one in afternoon["serious"].reports.get().body["findings"]
        if one["ref"] and one["ref"]["kind"] == "Secret"
    }
    others = {
        one["rule"]
        for one in afternoon["serious"].reports.get().body["findings"]
        if not (one["ref"] and one["ref"]["kind"] == "Secret")
    }
    client = browse(env.ada)
    assert set(afternoon["serious"].rules.values_list("rule", flat=True)) == others <= rules
    for rule in sorted(others):
        assert "harbour" in named(text_of(client.get(f"/?tab=all&rule={rule}")))
    assert secrets - others, "a rule that only a Secret meets"
    for rule in sorted(secrets - others):
        found = named(text_of(client.get(f"/?tab=all&rule={rule}")))
        assert "harbour" not in found, "it is for those who may get the Secret"


def test_the_worst_comes_first_where_something_waits_and_the_newest_where_it_is_over(
    env: World, browse: Browse
) -> None:
    for name, worst in (("a", "critical"), ("b", "safe"), ("c", "breaking")):
        world.in_review(scene.asked(env.cluster, name, env.rita), worst=worst)
    client = browse(env.ada)
    assert named(text_of(client.get("/"))) == ["a", "c", "b"]
    assert named(text_of(client.get("/?tab=all"))) == ["c", "b", "a"]
    assert named(text_of(client.get("/?tab=all&sort=oldest"))) == ["a", "b", "c"]


@pytest.mark.parametrize("path", ["/?tab=all", "/deployments", "/audit"])
def test_links_of_before_still_lead_to_a_page(
    env: World, browse: Browse, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "ROWS", 2)
    reviewed(env, 5)
    client = browse(env.ada)
    for query in ("page=2", "page=99999999", "page=-1", "page=x", "cursor=x", "cursor="):
        answer = client.get(path, {**dict([query.split("=")]), **({"tab": "all"} if "tab" in path else {})})
        assert answer.status_code == 200
    assert named(text_of(client.get("/?tab=all&page=2"))) == ["d002", "d001"]
