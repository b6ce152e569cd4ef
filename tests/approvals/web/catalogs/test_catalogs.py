"""Catalogs in the browser: who may get one sees how it stands and what it offers; nobody else learns of it."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.html import strip_tags

from approvals.access import catalogs as readable
from approvals.catalogs import schedule
from approvals.models import BundleComparison, Catalog
from approvals.web.catalogs import catalogs as pages
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, opened, queries, told_in
from tests.support.approvals.scene import asked
from tests.support.provisioner.catalogs import bundle, channel, package
from tests.support.stored_catalogs import HARBOUR, catalog, stored

SECRETS = ("secret-port", "harbour", "example.com/catalog")
PAGES = ("/catalogs/prod/secret-port", "/catalogs/prod/secret-port/packages/harbour")


def port(env: World, name: str = "port", *documents: object) -> Catalog:
    row = catalog(name, of=env.cluster)
    stored(row, *(documents or HARBOUR))
    return row


def many(env: World, count: int, name: str = "port") -> Catalog:
    names = [f"package-{number:04}" for number in range(count)]
    return port(env, name, *(one for it in names for one in (package(it), bundle("1.0.0", it))))


def named(text: str) -> list[str]:
    return re.findall(r'href="/catalogs/prod/port/packages/[^"]+">([^<]+)</a>', text)


def test_a_list_says_how_each_catalog_stands_why_and_what_comes_next(env: World, browse: Browse) -> None:
    port(env)
    catalog("begun", of=env.cluster, reading_since=timezone.now())
    catalog("empty", of=env.cluster)
    since = timezone.now() - timedelta(hours=3)
    trouble = {"problem": "the server answered 404", "problem_code": "source-unavailable", "problem_since": since}
    catalog("lost", of=env.cluster, look_at=timezone.now() + timedelta(minutes=9), **trouble)
    port(env, "unsound", package(), bundle("1.0.0"))
    text = opened(browse(env.ada), "/catalogs")
    assert re.findall(r'href="/catalogs/prod/([^"/]+)"', text) == ["begun", "empty", "lost", "port", "unsound"]
    for words in (
        *(
            "being read",
            "waiting to be read",
            "not read",
            "the server answered 404",
            "3 h ago",
            "Next try",
            "1 problem in it",
        ),
        *("Check that the source exists", "image example.com/catalog:latest", "sha256:one"),
    ):
        assert words in text, words


def test_a_list_says_why_without_repeating_where_and_leaves_nothing_out(env: World, browse: Browse) -> None:
    where, why = "https://raw.example.com/a/catalog/index.yaml", f"the server answered 404 {'and so on ' * 20}end"
    row = catalog("lost", of=env.cluster, problem=f"{where}: {why}", problem_code="source-unavailable")
    Catalog.objects.filter(pk=row.pk).update(spec={"source": {"kind": "http", "http": {"url": where}}})
    text = " ".join(opened(browse(env.ada), "/catalogs").split())
    assert text.count(where) == 1
    assert f'<summary> <span class="brief">T{why[1:]}</span> </summary>' in text


def test_who_may_get_single_catalogs_is_told_of_no_others(env: World, browse: Browse) -> None:
    env.kubernetes.allowed -= {("ada", "get", "*")}
    env.kubernetes.allow("ada", "get", "port")
    catalog("port", of=env.cluster)
    text = opened(browse(env.ada), "/catalogs")
    assert "Further catalogs" not in text
    assert "what it takes to get every one" in text


def test_a_catalog_that_fails_after_it_was_read_still_offers_what_was_read(env: World, browse: Browse) -> None:
    Catalog.objects.filter(pk=port(env).pk).update(
        problem="no route to host", problem_code="unreachable", problem_since=timezone.now()
    )
    text = opened(browse(env.ada), "/catalogs/prod/port")
    for words in ("source unavailable", "no route to host", "still offered", "harbour"):
        assert words in text


def test_a_list_is_filtered_by_name_and_cluster(env: World, browse: Browse) -> None:
    for name in ("port", "reef"):
        catalog(name, of=env.cluster)
    client = browse(env.ada)
    found = {
        query: re.findall(r'href="/catalogs/prod/([^"/]+)"', opened(client, f"/catalogs?{query}"))
        for query in ("search=REE", "cluster=prod", "cluster=nowhere", "search=%25")
    }
    assert found == {"search=REE": ["reef"], "cluster=prod": ["port", "reef"], "cluster=nowhere": [], "search=%25": []}
    assert "No catalog matches the filter" in opened(client, "/catalogs?search=x")


def test_an_empty_list_says_how_one_comes_to_be(env: World, browse: Browse) -> None:
    assert "kubectl apply" in opened(browse(env.ada), "/catalogs")


def test_the_navigation_leads_there_and_says_where_one_is(env: World, browse: Browse) -> None:
    port(env)
    client = browse(env.ada)
    text = opened(client, "/catalogs")
    assert re.search(r'href="/catalogs" aria-current="page"\s+data-go="l"', text)
    text = opened(client, "/catalogs/prod/port/packages/harbour")
    crumbs = text.partition('aria-label="Breadcrumb"')[2].partition("</nav>")[0]
    assert re.findall(r'href="([^"]+)"', crumbs) == ["/catalogs", "/catalogs/prod/port"]
    assert '<span aria-current="page">harbour</span>' in crumbs


@pytest.mark.parametrize("path", PAGES)
def test_S02_who_may_not_get_a_catalog_learns_nothing_of_it(env: World, browse: Browse, path: str) -> None:
    """Not even whether there is one of that name."""
    client = browse(env.bert)
    before = client.get(path)
    port(env, "secret-port")
    after = client.get(path)
    assert (before.status_code, after.status_code) == (403, 403)
    texts = [re.sub(r"<input [^>]*csrf[^>]*>|[0-9a-f-]{32,}", "", told_in(one)) for one in (before, after)]
    assert texts[0] == texts[1]
    assert "kind: ClusterRole" in texts[1]
    assert [word for word in SECRETS[1:] if word in texts[1]] == []


@pytest.mark.parametrize("path", [*PAGES, "/catalogs/prod/secret-port/packages/harbour/icon"])
def test_S02_who_is_nobody_on_the_cluster_gets_404(env: World, browse: Browse, path: str) -> None:
    port(env, "secret-port")
    client = browse(User.objects.create_user("nobody"))
    assert client.get(path).status_code == 404
    assert "secret-port" not in told_in(client.get("/catalogs"))


def test_S02_a_list_has_only_those_that_one_may_get_and_names_the_rule_for_the_others(
    env: World, browse: Browse
) -> None:
    for name in ("mine", "theirs"):
        port(env, name)
    env.kubernetes.allow("bert", "get", "mine")
    text = opened(browse(env.bert), "/catalogs")
    assert re.findall(r'href="/catalogs/prod/([^"/]+)"', text) == ["mine"]
    assert "theirs" not in text
    assert "kind: ClusterRole" in text


def test_a_list_says_where_too_many_would_have_to_be_asked_about(
    env: World, browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readable, "MOST_ASKED", 1)
    for name in "ab":
        catalog(name, of=env.cluster)
        env.kubernetes.allow("bert", "get", name)
    text = opened(browse(env.bert), "/catalogs")
    assert re.findall(r'href="/catalogs/prod/([^"/]+)"', text) == ["a"]
    assert "Catalogs may be missing here" in text


def test_nothing_is_shown_while_nobody_can_be_asked(env: World, browse: Browse) -> None:
    port(env, "secret-port")
    env.kubernetes.is_down = True
    client = browse(env.ada)
    text = opened(client, "/catalogs")
    assert "Catalogs may be missing here" in text
    assert [word for word in SECRETS if word in text] == []
    assert client.get(PAGES[0]).status_code == 503


def test_packages_come_in_pages_in_both_directions_and_are_searched(
    env: World, browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "ROWS", 2)
    many(env, 5)
    client, path, walked = browse(env.ada), "/catalogs/prod/port", []
    while path:
        text = opened(client, path)
        walked.append(named(text))
        following = re.search(r'href="([^"]+)"\s+rel="next"', text)
        path = f"/catalogs/prod/port{following[1]}".replace("&amp;", "&") if following else ""
    names = [f"package-{number:04}" for number in range(5)]
    assert walked == [names[:2], names[2:4], names[4:]]
    assert 'rel="prev"' in text
    assert named(opened(client, "/catalogs/prod/port?search=0003")) == ["package-0003"]
    assert "1 package matches." in " ".join(opened(client, "/catalogs/prod/port?search=0003").split())
    assert "No package matches the filter" in opened(client, "/catalogs/prod/port?search=nothing")


@pytest.mark.parametrize("path", ["/catalogs/prod/port", "/catalogs/prod/port?search=package", "/catalogs"])
def test_a_page_costs_as_many_queries_for_many_packages_as_for_few(env: World, browse: Browse, path: str) -> None:
    many(env, 3)
    client = browse(env.ada)
    client.get(path)
    few = queries(client, path)
    Catalog.objects.all().delete()
    many(env, 60)
    many(env, 1, name="reef")
    assert queries(client, path) == few <= 15


def test_a_catalog_says_where_it_comes_from_and_who_wrote_it(env: World, browse: Browse) -> None:
    row = port(env)
    now, spec = timezone.now(), {**row.spec, "interval": "30m"}
    Catalog.objects.filter(pk=row.pk).update(
        authors=schedule.assign_authors([], spec, {"username": "carol"}),
        looked_at=now,
        look_at=now + timedelta(minutes=31),
        spec=spec,
    )
    text = " ".join(opened(browse(env.ada), "/catalogs/prod/port").split())
    for words in ("image example.com/catalog:latest", "every 30m", "in 31 min", ">carol<", "1 package,", "2 versions"):
        assert words in text, words
    assert "the operator allows" not in text
    Catalog.objects.filter(pk=row.pk).update(authors=[], look_at=None)
    text = " ".join(opened(browse(env.ada), "/catalogs/prod/port").split())
    assert "unknown" in text
    assert "not checked again" in text


def test_how_often_it_is_checked_agrees_with_when_it_is_checked_next(env: World, browse: Browse, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "SOURCE_POLL_MIN_SECONDS": 300}
    row = port(env)
    shown = {"spec": {**row.spec, "interval": "1m"}, "look_at": timezone.now() + timedelta(minutes=8, seconds=30)}
    Catalog.objects.filter(pk=row.pk).update(**shown)
    text = " ".join(strip_tags(opened(browse(env.ada), "/catalogs/prod/port")).split())
    assert "every 5m (its spec says 1m; the operator allows no shorter interval); next in 8 min" in text
    Catalog.objects.filter(pk=row.pk).update(problem="no route to host", problem_code="unreachable")
    text = " ".join(strip_tags(opened(browse(env.ada), "/catalogs/prod/port")).split())
    assert "shorter interval), less often after failures; next in 8 min" in text


def test_what_is_wrong_in_its_content_is_listed(env: World, browse: Browse) -> None:
    port(env, "port", package(), bundle("1.0.0"))
    assert "no channel has these bundles: harbour.v1.0.0" in opened(browse(env.ada), "/catalogs/prod/port")


def test_deployments_that_follow_it_are_for_readers_of_the_cluster(env: World, browse: Browse) -> None:
    port(env)
    source = {"kind": "catalog", "catalog": {"name": "port", "package": "harbour"}}
    world.submit_spec(
        env.cluster, world.seen("lighthouse", world.spec(format="registry-v1", sources=[source])), env.rita
    )
    asked(env.cluster, "bystander", env.rita)
    text = opened(browse(env.ada), "/catalogs/prod/port")
    assert re.findall(r'href="/deployments/prod/([^"]+)"', text) == ["lighthouse"]
    assert re.search(r'data-head="deployments">1<', text)
    env.kubernetes.closed.add("bundledeploymentrequests")
    env.kubernetes.allow("bert", "get")
    text = opened(browse(env.bert), "/catalogs/prod/port")
    assert "harbour" in text
    assert "lighthouse" not in text
    assert 'data-head="deployments"' not in text


def test_a_page_follows_the_first_reading_and_ends_with_it(env: World, browse: Browse) -> None:
    row = catalog(of=env.cluster)
    client = browse(env.ada)
    text = opened(client, "/catalogs/prod/port?search=har")
    assert 'hx-get="/catalogs/prod/port/again?search=har" hx-trigger="every 2s' in text
    part = client.get("/catalogs/prod/port/again?search=har")
    same = client.get("/catalogs/prod/port/again?search=har", headers={"If-None-Match": part["ETag"]})
    assert (same.status_code, same.content) == (304, b"")
    stored(row, *HARBOUR)
    part = client.get("/catalogs/prod/port/again?search=har", headers={"If-None-Match": part["ETag"]})
    assert named(part.content.decode()) == ["harbour"]
    assert "hx-get" not in part.content.decode()


def test_a_page_does_not_follow_what_is_read_or_failed(env: World, browse: Browse) -> None:
    port(env)
    catalog("lost", of=env.cluster, problem="no route to host", problem_code="unreachable")
    for name in ("port", "lost"):
        assert "hx-get" not in opened(browse(env.ada), f"/catalogs/prod/{name}").partition("<main")[2]


NAMES = ["port/harbour", "port/harbour/icon", "..", "/", "~1", "100% ?#;&\\\"'<b>", "Hafen für Schiffe"]


def documents(name: str) -> list[dict[str, Any]]:
    first, second = f"{name}.v1.0.0", f"{name}.v1.1.0"
    entries = ({"name": first}, {"name": second, "replaces": first})
    described = package(name, defaultChannel="stable", icon=HARBOUR[0]["icon"])
    return [described, bundle("1.0.0", name), bundle("1.1.0", name), channel("stable", *entries, of=name)]


def links(text: str, beginning: str) -> list[str]:
    found = [unescape(one) for one in re.findall(r'(?:href|src)="([^"]+)"', text)]
    return [one for one in found if one.startswith(beginning)]


@pytest.mark.parametrize("name", NAMES)
def test_every_package_has_its_page_its_icon_and_what_can_be_done_with_it(
    env: World, browse: Browse, name: str
) -> None:
    stored(catalog(of=env.cluster), *documents(name))
    env.kubernetes.allow("ada", "create")
    client = browse(env.ada)
    icon, address = links(opened(client, "/catalogs/prod/port"), "/catalogs/prod/port/packages/")
    assert icon == f"{address}/icon"
    assert (urlsplit(address).query, address.count("/")) == ("", 5)
    text = opened(client, address)
    assert f"{name}.v1.1.0" in unescape(text)
    assert icon in links(text, address)
    assert client.get(icon)["Content-Type"] == "image/png"
    wishes = [parse_qs(urlsplit(one).query) for one in links(text, "/deployments/new")]
    assert {one["package"][0] for one in wishes} == {name}
    opened(client, links(text, "/deployments/new")[0])
    changes = links(text, f"{address}/changes?")[0]
    opened(client, changes)
    assert client.post(changes, {"to": "1.1.0"}, follow=True).status_code == 200
    assert BundleComparison.objects.get().wish["package"] == name


@pytest.mark.parametrize("name", ["nothing", "port/harbour", "port~1quay"])
def test_another_name_in_the_address_is_not_found(env: World, browse: Browse, name: str) -> None:
    stored(catalog(of=env.cluster), *documents("port/harbour"))
    assert browse(env.ada).get(f"/catalogs/prod/port/packages/{quote(name, safe='/')}").status_code == 404
