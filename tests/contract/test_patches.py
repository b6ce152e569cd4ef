"""JSON patches, merge patches and strategic merge patches."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.conftest import APPS, MERGE, STRATEGIC, Reply, Server
from tests.contract.objects import config, web

JSON = "application/json-patch+json"


@pytest.fixture
def deployed(server: Server) -> Server:
    """A Deployment of two containers, the first with two variables, and a finalizer."""
    wish = web(env=[{"name": "A", "value": "1"}, {"name": "B", "value": "1"}])
    wish["metadata"]["finalizers"] = ["example.com/one", "example.com/two"]
    wish["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "example.com/side:1"})
    assert server.ask("POST", server.place("deployments", api=APPS), wish).code == 201
    yield server
    server.ask("PATCH", server.place("deployments", "web", APPS), {"metadata": {"finalizers": None}}, MERGE)


def _patched(server: Server, patch: Any, content_type: str = STRATEGIC) -> Reply:
    return server.ask("PATCH", server.place("deployments", "web", APPS), patch, content_type)


def _containers(reply: Reply) -> Any:
    assert reply.code == 200, reply.message
    return reply.body["spec"]["template"]["spec"]["containers"]


def _of_pods(**spec: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": spec}}}


def test_list_items_are_merged_by_their_keys(deployed: Server) -> None:
    env = [{"name": "B", "value": "2"}, {"name": "C", "value": "3"}]
    first, side = _containers(_patched(deployed, _of_pods(containers=[{"name": "web", "env": env}])))
    assert (first["image"], side["name"]) == ("example.com/web:1", "side")
    assert sorted((it["name"], it["value"]) for it in first["env"]) == [("A", "1"), ("B", "2"), ("C", "3")]


def test_an_item_is_deleted_by_its_key(deployed: Server) -> None:
    left = _containers(_patched(deployed, _of_pods(containers=[{"name": "side", "$patch": "delete"}])))
    assert [it["name"] for it in left] == ["web"]


def test_a_list_is_replaced_whole_where_that_is_asked_for(deployed: Server) -> None:
    wish = [{"$patch": "replace"}, {"name": "new", "image": "example.com/new:1"}]
    assert [it["name"] for it in _containers(_patched(deployed, _of_pods(containers=wish)))] == ["new"]


def test_a_merge_patch_replaces_lists(deployed: Server) -> None:
    wish = _of_pods(containers=[{"name": "new", "image": "example.com/new:1"}])
    assert [it["name"] for it in _containers(_patched(deployed, wish, MERGE))] == ["new"]


def test_members_of_a_set_come_and_go(deployed: Server) -> None:
    more = _patched(deployed, {"metadata": {"finalizers": ["example.com/three"]}})
    assert sorted(more.body["metadata"]["finalizers"]) == ["example.com/one", "example.com/three", "example.com/two"]
    fewer = _patched(deployed, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/one"]}})
    assert sorted(fewer.body["metadata"]["finalizers"]) == ["example.com/three", "example.com/two"]


def test_a_map_is_replaced_or_emptied_as_told(deployed: Server) -> None:
    _patched(deployed, {"metadata": {"annotations": {"a": "1", "b": "1"}}})
    replaced = _patched(deployed, {"metadata": {"annotations": {"$patch": "replace", "c": "1"}}})
    assert replaced.body["metadata"]["annotations"].get("a") is None
    assert replaced.body["metadata"]["annotations"]["c"] == "1"
    emptied = _patched(deployed, {"metadata": {"annotations": None}})
    assert "c" not in (emptied.body["metadata"].get("annotations") or {})


def test_an_item_without_its_key_cannot_be_merged(deployed: Server) -> None:
    refused = _patched(deployed, _of_pods(containers=[{"image": "x"}]))
    assert refused.code == 500
    assert "does not contain declared merge key: name" in refused.message


@pytest.mark.parametrize(
    ("operations", "code"),
    [
        ([{"op": "test", "path": "/data/a", "value": "1"}, {"op": "add", "path": "/data/b", "value": "2"}], 200),
        ([{"op": "test", "path": "/data/a", "value": "2"}], 422),
        ([{"op": "remove", "path": "/data/none"}], 422),
        ([{"op": "move", "from": "/data/a", "path": "/data/b"}], 200),
        ([{"op": "copy", "from": "/data/a", "path": "/data/a~1b"}], 422),
        ([{"op": "dance", "path": "/data/a"}], 422),
        ({"op": "remove", "path": "/data/a"}, 400),
        ([1], 400),
    ],
    ids=["test and add", "wrong test", "remove nothing", "move", "bad key", "unknown", "no list", "no operation"],
)
def test_json_patches_do_what_they_say_or_nothing(server: Server, operations: Any, code: int) -> None:
    server.ask("POST", server.place(), config(a="1"))
    patched = server.ask("PATCH", server.place(name="settings"), operations, JSON)
    assert patched.code == code, patched.message
    after = server.ask("GET", server.place(name="settings")).body["data"]
    assert (after != {"a": "1"}) == (code == 200)


def test_a_patch_of_an_unknown_kind_is_not_understood(server: Server) -> None:
    server.ask("POST", server.place(), config(a="1"))
    assert server.ask("PATCH", server.place(name="settings"), {"data": {}}, "application/json").code == 415


def test_a_patch_may_presume_a_version_and_a_uid(server: Server) -> None:
    meta = server.ask("POST", server.place(), config(a="1")).body["metadata"]
    place = server.place(name="settings")
    presumed = {"resourceVersion": meta["resourceVersion"]}
    assert server.ask("PATCH", place, {"metadata": presumed, "data": {"a": "2"}}, MERGE).code == 200
    assert server.ask("PATCH", place, {"metadata": presumed, "data": {"a": "3"}}, MERGE).code == 409
    foreign = {"uid": "00000000-0000-0000-0000-000000000001"}
    assert server.ask("PATCH", place, {"metadata": foreign, "data": {"a": "3"}}, MERGE).code == 422
