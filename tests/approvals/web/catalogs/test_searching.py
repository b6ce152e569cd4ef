"""One search over all catalogs: what one may read, where it is, and nothing of what one may not."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.catalogs import search as found_by
from approvals.models import Catalog, CatalogPackage
from approvals.web.catalogs import catalogs as pages
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, opened, queries, text_of
from tests.support.provisioner.catalogs import bundle, channel, package
from tests.support.stored_catalogs import HARBOUR, catalog, stored, with_words

PAGE = "/catalogs/packages"


def described(name: str, **words: Any) -> list[dict[str, Any]]:
    """A package whose head says this of itself."""
    entry = {"name": f"{name}.v1.0.0"}
    return [
        package(name, defaultChannel="stable"),
        with_words(bundle("1.0.0", name), **words),
        channel("stable", entry, of=name),
    ]


def offering(env: World, name: str, *documents: Any) -> Catalog:
    row = catalog(name, of=env.cluster)
    stored(row, *(documents or HARBOUR))
    return row


def pages_from(client: Client, path: str) -> list[list[tuple[str, str]]]:
    """The packages of each page, from this one to the last."""
    walked = []
    while path:
        text = opened(client, path)
        walked.append(named(text))
        following = re.search(r'href="([^"]+)"\s+rel="next"', text)
        path = f"{PAGE}{following[1]}".replace("&amp;", "&") if following else ""
    return walked


def named(text: str) -> list[tuple[str, str]]:
    """The packages that are listed, each with its catalog."""
    return re.findall(r'href="/catalogs/prod/([^"/]+)/packages/([^"/]+)">', text)


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("quay", [("reef", "quay"), ("reef", "berths")]),
        ("BERTHS of", [("reef", "berths")]),
        ("pilot", [("reef", "quay")]),
        ("authority keeps", [("port", "harbour")]),
        ("harbour pilot", []),
        ("100%", []),
        ("_", []),
    ],
    ids=["a name before words", "a summary", "a description", "a provider", "every word", "no pattern", "no sign"],
)
def test_words_are_found_in_all_catalogs_each_with_where_it_is(
    search: str, found: list[tuple[str, str]], env: World, browse: Browse
) -> None:
    offering(env, "port")
    offering(
        env,
        "reef",
        *described("berths", annotations={"description": "Berths of a quay"}),
        *described("quay", description="Moors ships.\n\nIt calls a PILOT first."),
    )
    assert named(opened(browse(env.ada), f"{PAGE}?search={search.replace('%', '%25')}")) == found


def test_what_only_a_description_says_is_shown_around_the_word(env: World, browse: Browse) -> None:
    offering(env, "reef", *described("quay", description=f"{'far ' * 50}calls a <b>pilot</b> first {'more ' * 50}"))
    text = opened(browse(env.ada), f"{PAGE}?search=quay+pilot")
    assert re.search(r"Further down: …[^<]*calls a &lt;b&gt;pilot&lt;/b&gt; first more[^<]*…<", text)
    assert "Further down" not in opened(browse(env.ada), f"{PAGE}?search=quay")


def test_what_only_keywords_lead_to_comes_last_and_says_by_which(env: World, browse: Browse) -> None:
    offering(
        env,
        "reef",
        *described("anchors", keywords=["Tide", "tide tables", "<i>tidewater</i>", "other"]),
        *described("berths", description="Calls a pilot at high tide."),
        *described("cranes", annotations={"description": "Lifts by tide"}, keywords=["tide"]),
        *described("tide"),
    )
    text = opened(browse(env.ada), f"{PAGE}?search=TIDE")
    assert [name for _, name in named(text)] == ["tide", "berths", "cranes", "anchors"]
    rows = text.split("<tr>")
    assert "Keywords: tide, tide tables, &lt;i&gt;tidewater&lt;/i&gt;</p>" in rows[-1]
    assert "Further down" not in rows[-1], "its description has no such word"
    assert "Keyword" not in "".join(rows[:-1]), "what was found is shown there already"


def test_words_of_a_search_may_stand_in_keywords_and_elsewhere(env: World, browse: Browse) -> None:
    offering(env, "reef", *described("berths", description="Calls a pilot.", keywords=["tide tables"]))
    text = opened(browse(env.ada), f"{PAGE}?search=berths+tide+pilot")
    assert named(text) == [("reef", "berths")]
    assert "Further down: Calls a pilot." in text
    assert "Keyword: tide tables" in text
    assert named(opened(browse(env.ada), f"{PAGE}?search=tide+tablespoon")) == []


def test_a_catalog_is_searched_for_keywords_too(env: World, browse: Browse) -> None:
    offering(env, "reef", *described("berths", keywords=["Tide"]), *described("quay"))
    text = opened(browse(env.ada), "/catalogs/prod/reef?search=tide")
    assert named(text) == [("reef", "berths")]


def test_S02_a_keyword_leads_to_no_package_that_one_may_not_read(env: World, browse: Browse) -> None:
    for name in ("mine", "theirs"):
        offering(env, name, *described("berths", keywords=["tide", f"tide-of-{name}"]))
    env.kubernetes.allow("bert", "get", "mine")
    text = opened(browse(env.bert), f"{PAGE}?search=tide")
    assert named(text) == [("mine", "berths")]
    assert "1 package matches." in " ".join(text.split())
    assert "theirs" not in text
    assert named(opened(browse(User.objects.create_user("nobody")), f"{PAGE}?search=tide")) == []


def test_an_edition_that_is_not_shown_is_not_searched(env: World, browse: Browse) -> None:
    row = offering(env, "port")
    stored(row, *described("quay"), digest="sha256:two")
    assert CatalogPackage.objects.filter(name="harbour").exists(), "the edition before is kept for its readers"
    assert named(opened(browse(env.ada), f"{PAGE}?search=harbour")) == []


def test_S02_only_catalogs_that_one_may_get_are_searched(env: World, browse: Browse) -> None:
    offering(env, "mine")
    offering(env, "theirs")
    env.kubernetes.allow("bert", "get", "mine")
    text = opened(browse(env.bert), f"{PAGE}?search=harbour")
    assert named(text) == [("mine", "harbour")]
    assert "theirs" not in text
    assert "1 package matches." in " ".join(text.split())


def test_S02_who_is_nobody_finds_nothing_and_learns_of_nothing(env: World, browse: Browse) -> None:
    offering(env, "port")
    for person in (User.objects.create_user("nobody"), env.bert):
        text = opened(browse(person), f"{PAGE}?search=harbour&cluster=prod")
        assert named(text) == []
        assert "Keeps ships" not in text
        assert "There is no catalog that you may get" in text


def test_nothing_is_found_while_nobody_can_be_asked_and_that_is_said(env: World, browse: Browse) -> None:
    offering(env, "port")
    env.kubernetes.is_down = True
    text = opened(browse(env.ada), f"{PAGE}?search=harbour")
    assert named(text) == []
    assert "Packages may be missing here" in text


def test_a_search_is_narrowed_to_a_cluster(env: World, browse: Browse) -> None:
    offering(env, "port")
    client = browse(env.ada)
    assert named(opened(client, f"{PAGE}?search=harbour&cluster=prod")) == [("port", "harbour")]
    assert named(opened(client, f"{PAGE}?search=harbour&cluster=moon")) == []


def test_an_empty_search_says_what_is_searched_and_no_hits_say_what_was(env: World, browse: Browse) -> None:
    client = browse(env.ada)
    assert "There is no catalog that you may get" in opened(client, PAGE)
    offering(env, "port")
    assert "Packages appear here once you search" in opened(browse(env.ada), PAGE)
    text = " ".join(opened(browse(env.ada), f"{PAGE}?search=nothing").split())
    assert "No package matches." in text
    assert "descriptions of the 1 catalog that you may get were searched" in text


def test_of_more_words_than_are_looked_for_that_is_said(env: World, browse: Browse) -> None:
    offering(env, "port")
    words = "+".join(["harbour"] * found_by.MOST_WORDS)
    assert "words were looked for" not in opened(browse(env.ada), f"{PAGE}?search={words}")
    text = opened(browse(env.ada), f"{PAGE}?search={words}+nothing")
    assert f"Only the first {found_by.MOST_WORDS} words were looked for." in text
    assert named(text) == [("port", "harbour")]


def test_what_is_found_comes_in_pages_and_costs_as_many_queries_for_many_as_for_few(
    env: World, browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "ROWS", 2)
    monkeypatch.setattr(found_by, "MOST_NAMED", 1)
    offering(env, "port", *(one for at in range(3) for one in described(f"quay-{at}", description="a pilot")))
    client, path = browse(env.ada), f"{PAGE}?search=quay"
    client.get(path)
    few = queries(client, path)
    offering(env, "reef", *(one for at in range(3) for one in described(f"quay-{at}", description="a pilot")))
    assert queries(client, path) == few <= 16
    walked = pages_from(client, path)
    assert [len(one) for one in walked] == [3, 2, 1]
    assert sorted(one for page_ in walked for one in page_) == sorted(
        (where, f"quay-{at}") for where in ("port", "reef") for at in range(3)
    )


def test_what_keywords_lead_to_follows_over_pages(env: World, browse: Browse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "ROWS", 2)
    keyed = [one for name in ("a", "c", "e") for one in described(name, keywords=["tide"])]
    told = [one for name in ("b", "d", "f") for one in described(name, description="At high tide.")]
    offering(env, "reef", *keyed, *told)
    walked = pages_from(browse(env.ada), f"{PAGE}?search=tide")
    assert [[name for _, name in one] for one in walked] == [["b", "d"], ["f", "a"], ["c", "e"]]


def test_a_page_has_at_most_50_packages_and_the_first_one_20_more_that_are_named_so(env: World, browse: Browse) -> None:
    offering(env, "port", *(package(f"quay-{at}") for at in range(80)))
    client = browse(env.ada)
    text = opened(client, f"{PAGE}?search=quay")
    assert len(named(text)) == 70
    following = re.search(r'href="([^"]+)"\s+rel="next"', text)
    assert following is not None
    assert len(named(opened(client, f"{PAGE}{following[1]}".replace("&amp;", "&")))) == 10


def test_a_package_says_which_other_catalogs_have_one_of_its_name(env: World, browse: Browse) -> None:
    for name in ("port", "reef"):
        offering(env, name)
    offering(env, "cove", package("quay"))
    offering(env, "port-of-the-moon")
    stored(catalog("moon", of=world.cluster("moon")), *HARBOUR)
    page = "/catalogs/prod/port/packages/harbour"
    told = opened(browse(env.ada), page).partition("A package of this name is also in")[2].partition("</p>")[0]
    assert re.findall(r">([^<]+)</a>", told) == ["port-of-the-moon", "reef"]
    for name in ("port", "reef"):
        env.kubernetes.allow("bert", "get", name)
    told = opened(browse(env.bert), page).partition("A package of this name is also in")[2].partition("</p>")[0]
    assert re.findall(r">([^<]+)</a>", told) == ["reef"], "S02: bert may not get the other one"


def test_the_list_of_catalogs_leads_to_the_search(env: World, browse: Browse) -> None:
    text = text_of(browse(env.ada).get("/catalogs"))
    assert re.search(r'<form action="/catalogs/packages"[^>]*role="search"', text)
