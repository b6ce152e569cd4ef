"""Lists, watches and what objects show of themselves."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from tests.contract.conftest import APPS, MERGE, RBAC, Reply, Server
from tests.contract.objects import binding, config, role, web

NAMES = ["a", "b", "c", "d", "e"]


@pytest.fixture
def five(server: Server) -> Server:
    """A namespace with five ConfigMaps of ours, labelled by their names; the cluster's own has no label."""
    for name in NAMES:
        obj = config(name)
        obj["metadata"]["labels"] = {"name": name, "set": "five"}
        assert server.ask("POST", server.place(), obj).code == 201
    return server


def _names(reply: Reply) -> list[str]:
    assert reply.code == 200, reply.message
    return [it["metadata"]["name"] for it in reply.body["items"]]


def _page(server: Server, limit: str, token: str = "") -> Reply:
    more = f"&continue={token}" if token else ""
    return server.ask("GET", f"{server.place()}?labelSelector=set%3Dfive&limit={limit}{more}")


def test_pages_of_a_list_follow_each_other(five: Server) -> None:
    first = _page(five, "2")
    second = _page(five, "2", first.body["metadata"]["continue"])
    third = _page(five, "2", second.body["metadata"]["continue"])
    assert [_names(it) for it in (first, second, third)] == [["a", "b"], ["c", "d"], ["e"]]
    assert not third.body["metadata"].get("continue")
    assert first.body["metadata"]["resourceVersion"] == third.body["metadata"]["resourceVersion"]


def test_what_goes_between_two_pages_hides_nothing_from_the_second(five: Server) -> None:
    token = _page(five, "2").body["metadata"]["continue"]
    five.ask("DELETE", five.place(name="a"))
    five.ask("DELETE", five.place(name="b"))
    assert _names(_page(five, "2", token)) == ["c", "d"]


def test_what_comes_between_two_pages_is_not_in_the_second(five: Server) -> None:
    token = _page(five, "2").body["metadata"]["continue"]
    late = config("bb")
    late["metadata"]["labels"] = {"set": "five"}
    five.ask("POST", five.place(), late)
    assert _names(_page(five, "9", token)) == ["c", "d", "e"]


@pytest.mark.parametrize(
    "query",
    [
        "limit=x",
        "continue=abc",
        "resourceVersion=x",
        "labelSelector=a%20b",
        "fieldSelector=data.a%3Db",
        "fieldSelector=x",
    ],
)
def test_a_question_that_cannot_be_understood_is_a_bad_request(server: Server, query: str) -> None:
    refused = server.ask("GET", f"{server.place()}?{query}")
    assert (refused.code, refused.body["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("name=a", ["a"]),
        ("name==a", ["a"]),
        ("name!=a,set=five", ["b", "c", "d", "e"]),
        ("name in (a, b)", ["a", "b"]),
        ("name notin (a,b),set", ["c", "d", "e"]),
        ("set,name in (e)", ["e"]),
        ("!name,set", []),
    ],
    ids=["same", "same twice", "other", "in", "not in", "has", "has not"],
)
def test_labels_select(five: Server, selector: str, found: list[str]) -> None:
    assert _names(five.ask("GET", f"{five.place()}?labelSelector={quote(selector)}")) == found


def test_names_select(five: Server) -> None:
    assert _names(five.ask("GET", f"{five.place()}?fieldSelector=metadata.name%3Dc")) == ["c"]
    among = five.ask("GET", f"{five.place()}?labelSelector=set&fieldSelector=metadata.name!%3Dc")
    assert _names(among) == ["a", "b", "d", "e"]


def test_secrets_are_selected_by_type(server: Server) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "b"}}
    server.ask("POST", server.place("secrets"), secret)
    assert _names(server.ask("GET", server.place("secrets") + "?fieldSelector=type%3DOpaque")) == ["s"]
    assert _names(server.ask("GET", server.place("secrets") + "?fieldSelector=type%3Dother")) == []


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("sendInitialEvents=true", 422),
        ("resourceVersionMatch=NotOlderThan", 422),
        ("resourceVersion=x", 500),
        ("labelSelector=a%20b", 400),
        ("timeoutSeconds=x", 400),
    ],
)
def test_a_watch_that_is_asked_for_wrongly_is_refused_at_once(server: Server, query: str, code: int) -> None:
    assert server.ask("GET", f"{server.place()}?watch=true&{query}").code == code


def _counted(server: Server, api: str, plural: str, obj: dict[str, Any]) -> Any:
    made = server.ask("POST", server.place(plural, api=api), obj)
    assert made.code == 201, made.message
    return made.body["metadata"].get("generation")


SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"ports": [{"port": 80}]}}
ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "x"}}
RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}


@pytest.mark.parametrize(
    ("api", "plural", "obj"),
    [
        ("/api/v1", "configmaps", config(a="1")),
        ("/api/v1", "secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}),
        ("/api/v1", "services", SERVICE),
        ("/api/v1", "serviceaccounts", ACCOUNT),
        (RBAC, "roles", role("x", RULE)),
        (RBAC, "rolebindings", binding("view", "x")),
    ],
    ids=["ConfigMap", "Secret", "Service", "ServiceAccount", "Role", "RoleBinding"],
)
def test_kinds_without_a_wish_count_no_generation(server: Server, api: str, plural: str, obj: dict[str, Any]) -> None:
    assert _counted(server, api, plural, obj) is None


def test_the_generation_counts_what_is_wished_for(server: Server) -> None:
    assert _counted(server, APPS, "deployments", web()) == 1
    place = server.place("deployments", "web", APPS)
    labelled = server.ask("PATCH", place, {"metadata": {"labels": {"a": "b"}}}, MERGE)
    assert labelled.body["metadata"]["generation"] == 1
    scaled = server.ask("PATCH", place, {"spec": {"replicas": 0}}, MERGE)
    assert scaled.body["metadata"]["generation"] == 2


@pytest.mark.parametrize("name", ["deployments/web/logs", "deployments/web/binding"])
def test_a_subresource_that_is_none_is_not_found(server: Server, name: str) -> None:
    server.ask("POST", server.place("deployments", api=APPS), web())
    refused = server.ask("GET", server.place(name, api=APPS))
    assert refused.code == 404
    assert refused.message == "the server could not find the requested resource"


def test_deleting_a_collection_names_what_went(five: Server) -> None:
    gone = five.ask("DELETE", f"{five.place()}?labelSelector=name%20in%20(a,b)")
    assert sorted(_names(gone)) == ["a", "b"]
    assert _names(five.ask("GET", f"{five.place()}?labelSelector=set")) == ["c", "d", "e"]
