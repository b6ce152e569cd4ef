"""Catalogs over REST: who may get one reads it, page by page and package by package."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.access import catalogs as readable
from approvals.models import Catalog
from tests.approvals.api.conftest import Call, problem_of
from tests.support.approvals.fixtures import World
from tests.support.provisioner.catalogs import bundle, channel, package
from tests.support.stored_catalogs import HARBOUR, catalog, stored, with_words


def read(call: Call, env: World, path: str, person: User | None = None) -> Any:
    response = call(person or env.ada, "get", path)
    assert response.status_code == 200, response.content
    return json.loads(response.content)


def port(env: World, *documents: Any, name: str = "port") -> Catalog:
    row = catalog(name, of=env.cluster)
    stored(row, *(documents or HARBOUR))
    return row


def test_a_list_shows_how_each_catalog_stands(env: World, call: Call) -> None:
    port(env)
    catalog("never-read", of=env.cluster, problem="the server answered 404", problem_code="source-unavailable")
    env.kubernetes.allow("ada", "get")
    unread, read_one = read(call, env, "catalogs")["results"]
    assert (unread["name"], unread["digest"], unread["package_count"]) == ("never-read", "", 0)
    assert unread["problem"] == "the server answered 404"
    assert (read_one["name"], read_one["digest"], read_one["bundle_count"]) == ("port", "sha256:one", 2)
    assert [one["name"] for one in read(call, env, f"catalogs?uid={read_one['uid']}")["results"]] == ["port"]


def test_only_catalogs_that_one_may_get_are_there(env: World, call: Call) -> None:
    for name in ("mine", "theirs"):
        port(env, name=name)
    env.kubernetes.allow("bert", "get", "mine")
    assert [one["name"] for one in read(call, env, "catalogs", env.bert)["results"]] == ["mine"]
    assert read(call, env, "catalogs/prod/mine", env.bert)["package_count"] == 1
    for path in ("catalogs/prod/theirs", "catalogs/prod/theirs/packages", "catalogs/prod/theirs/packages/harbour"):
        assert problem_of(call(env.bert, "get", path))["code"] == "not-found"


def test_one_catalog_costs_one_question_and_a_list_so_many(
    env: World, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readable, "MOST_ASKED", 2)
    for name in "abcd":
        catalog(name, of=env.cluster)
        env.kubernetes.allow("bert", "get", name)
    asked = env.kubernetes.asked
    asked.clear()
    assert read(call, env, "catalogs/prod/d", env.bert)["name"] == "d"
    assert [(one.verb, one.name) for _, one in asked] == [("get", "d")]
    asked.clear()
    answer = call(env.bert, "get", "catalogs")
    assert [one["name"] for one in json.loads(answer.content)["results"]] == ["a", "b"]
    assert answer["Pratique-Could-Not-Ask"] == "prod", "rows are missing"
    assert len(asked) == 3, "about all of them, and about two"


def test_nothing_is_said_of_a_catalog_while_nobody_can_be_asked(env: World, call: Call) -> None:
    port(env)
    env.kubernetes.is_down = True
    assert problem_of(call(env.ada, "get", "catalogs/prod/port"))["code"] == "could-not-ask"
    answer = call(env.ada, "get", "catalogs")
    assert (json.loads(answer.content)["results"], answer["Pratique-Could-Not-Ask"]) == ([], "prod")


def test_a_catalog_says_what_is_wrong_in_it(env: World, call: Call) -> None:
    port(env, package(), bundle("1.0.0"))
    env.kubernetes.allow("ada", "get")
    words = "no channel has these bundles: harbour.v1.0.0"
    assert read(call, env, "catalogs/prod/port")["problems"] == [{"where": "package harbour", "message": words}]


def test_packages_come_in_pages_and_are_searched(env: World, call: Call) -> None:
    port(env, *(package(name) for name in "abc"))
    env.kubernetes.allow("ada", "get")
    first = read(call, env, "catalogs/prod/port/packages?page_size=2")
    assert [one["name"] for one in first["results"]] == ["a", "b"]
    following = first["next"].partition("/api/v1/")[2]
    assert [one["name"] for one in read(call, env, following)["results"]] == ["c"]
    assert [one["name"] for one in read(call, env, "catalogs/prod/port/packages?search=B")["results"]] == ["b"]
    assert problem_of(call(env.ada, "get", "catalogs/prod/port/packages?sort=name"))["code"] == "invalid-query"


def test_a_package_has_its_channels_versions_and_icon(env: World, call: Call) -> None:
    row = port(env)
    moved = {**bundle("1.0.0"), "image": "example.com/harbour@sha256:other"}
    stored(row, *(moved if one["schema"] == "olm.bundle" and one["name"].endswith("1.0.0") else one for one in HARBOUR))
    env.kubernetes.allow("ada", "get")
    found = read(call, env, "catalogs/prod/port/packages/harbour")
    assert (found["display_name"], found["default_channel"]) == ("Harbour Operator", "stable")
    assert found["icon"]["media_type"] == "image/png"
    assert [one["version"] for one in found["bundles"]] == ["1.1.0", "1.0.0"]
    assert found["bundles"][1]["deprecation"] == "harbour.v1.0.0 is no longer supported"
    assert found["bundles"][1]["changed_content"]["before"] == "example.com/harbour:1.0.0"
    assert [(one["name"], one["heads"]) for one in found["channels"]] == [
        ("fast", ["harbour.v1.1.0"]),
        ("stable", ["harbour.v1.1.0"]),
    ]
    assert found["channels"][0]["entries"] == [
        {"name": "harbour.v1.1.0", "replaces": "", "skips": ["harbour.v0.9.0"], "skip_range": ">=0.1.0 <1.1.0"}
    ]
    assert problem_of(call(env.ada, "get", "catalogs/prod/port/packages/quay"))["code"] == "not-found"


def test_a_package_says_what_its_publisher_says_of_its_head(env: World, call: Call) -> None:
    head = with_words(
        bundle("1.1.0"),
        minKubeVersion="1.30.0",
        installModes=[{"type": "AllNamespaces", "supported": True}],
        annotations={"capabilities": "Deep Insights"},
        maturity="stable",
        keywords=["ships", "Quay"],
        links=[{"name": "Manual", "url": "https://example.com/m"}, {"name": "x", "url": "javascript:x"}],
        maintainers=[{"name": "Ada", "email": "ada@example.com"}],
    )
    entries = [{"name": "harbour.v1.0.0"}, {"name": "harbour.v1.1.0", "replaces": "harbour.v1.0.0"}]
    port(env, package(defaultChannel="stable"), bundle("1.0.0"), head, channel("stable", *entries))
    env.kubernetes.allow("ada", "get")
    found = read(call, env, "catalogs/prod/port/packages/harbour")
    assert found["facts"] == {
        "kubernetes": ">=1.30.0",
        "install_modes": ["AllNamespaces"],
        "capability": "Deep Insights",
        "maturity": "stable",
        "app_version": "",
        "keywords": ["ships", "Quay"],
        "links": [{"name": "Manual", "url": "https://example.com/m"}],
        "maintainers": [{"name": "Ada", "email": "ada@example.com"}],
    }
    assert [one["kubernetes"] for one in found["bundles"]] == [">=1.30.0", ""]


@pytest.mark.parametrize(
    ("name", "part"), [("port/harbour", "port~1harbour"), ("..", "~2~2"), ("a~1 %?#", "a~01%20%25%3F%23")], ids=str
)
def test_a_package_of_any_name_has_its_address(env: World, call: Call, name: str, part: str) -> None:
    port(env, package(name), bundle("1.0.0", name))
    env.kubernetes.allow("ada", "get")
    env.kubernetes.allow("ada", "create")
    assert read(call, env, f"catalogs/prod/port/packages/{part}")["name"] == name
    compared = call(env.ada, "post", f"catalogs/prod/port/packages/{part}/changes", {"to": "1.0.0"})
    assert json.loads(compared.content)["after"] == f"{name}.v1.0.0"
