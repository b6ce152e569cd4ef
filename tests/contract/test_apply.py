"""Server-side apply: who owns what, what falls away, and what an apply may presume."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.conftest import APPLY, APPS, MERGE, Reply, Request, Server
from tests.contract.objects import config, web

FOREIGN_UID = "00000000-0000-0000-0000-000000000001"


def _owned(obj: dict[str, Any], manager: str) -> Any:
    entries = obj["metadata"].get("managedFields", [])
    return next((it["fieldsV1"] for it in entries if it["manager"] == manager), None)


def _containers(reply: Reply) -> list[str]:
    return [it["name"] for it in reply.body["spec"]["template"]["spec"]["containers"]]


def _two_containers() -> dict[str, Any]:
    wish = web()
    wish["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "example.com/side:1"})
    return wish


def test_a_whole_item_that_is_given_up_goes_with_its_key(server: Server) -> None:
    place = server.place("deployments", "web", APPS)
    assert server.apply_to(place, _two_containers()).code == 201
    after = server.apply_to(place, web())
    assert after.code == 200, after.message
    assert _containers(after) == ["web"]


def test_an_item_that_another_owns_in_part_keeps_that_part(server: Server) -> None:
    place = server.place("deployments", "web", APPS)
    server.apply_to(place, _two_containers())
    theirs = web()
    env = [{"name": "A", "value": "1"}]
    theirs["spec"]["template"]["spec"]["containers"] = [{"name": "side", "image": "example.com/side:1", "env": env}]
    assert server.apply_to(place, theirs, "two").code == 200
    after = server.apply_to(place, web())
    assert after.code == 200, after.message
    side = after.body["spec"]["template"]["spec"]["containers"][1]
    assert (side["name"], side["image"], side["env"]) == ("side", "example.com/side:1", env)


@pytest.mark.parametrize(
    ("version", "code"), [("0", 200), ("1", 409), ("", 200), ("text", 500)], ids=["zero", "old", "none", "text"]
)
def test_a_version_is_presumed_of_an_object_that_is_there(server: Server, version: str, code: int) -> None:
    place = server.place(name="settings")
    server.apply_to(place, config(a="1"))
    wish = config(a="2")
    wish["metadata"]["resourceVersion"] = version
    assert server.apply_to(place, wish).code == code


def test_the_version_that_an_object_has_is_a_good_one(server: Server) -> None:
    place = server.place(name="settings")
    wish = config(a="2")
    wish["metadata"]["resourceVersion"] = server.apply_to(place, config(a="1")).body["metadata"]["resourceVersion"]
    assert server.apply_to(place, wish).code == 200
    assert server.apply_to(place, {**wish, "data": {"a": "3"}}).code == 409


@pytest.mark.parametrize(
    ("version", "code"), [("0", 201), ("1", 201), ("7", 201), ("text", 500)], ids=["zero", "one", "more", "text"]
)
def test_a_version_is_not_presumed_of_an_object_that_is_absent(server: Server, version: str, code: int) -> None:
    wish = config(a="1")
    wish["metadata"]["resourceVersion"] = version
    assert server.apply_to(server.place(name="settings"), wish).code == code


def test_a_foreign_uid_is_a_conflict_where_nothing_is(server: Server) -> None:
    wish = config(a="1")
    wish["metadata"]["uid"] = FOREIGN_UID
    refused = server.apply_to(server.place(name="settings"), wish)
    assert refused.code == 409
    assert "uid mismatch" in refused.message


def test_a_foreign_uid_is_invalid_where_something_is(server: Server) -> None:
    place = server.place(name="settings")
    server.apply_to(place, config(a="1"))
    wish = config(a="1")
    wish["metadata"]["uid"] = FOREIGN_UID
    refused = server.apply_to(place, wish)
    assert refused.code == 422
    assert f'metadata.uid: Invalid value: "{FOREIGN_UID}": field is immutable' in refused.message


def test_a_conflict_with_an_applier_names_no_version(server: Server) -> None:
    place = server.place(name="settings")
    server.apply_to(place, config(a="1", b="1"))
    refused = server.apply_to(place, config(a="2"), "two")
    assert refused.code == 409
    assert refused.message == 'Apply failed with 1 conflict: conflict with "one": .data.a'
    both = server.apply_to(place, config(a="2", b="2"), "two")
    assert both.message == 'Apply failed with 2 conflicts: conflicts with "one":\n- .data.a\n- .data.b'
    assert [it["field"] for it in both.body["details"]["causes"]] == [".data.a", ".data.b"]


def test_a_conflict_with_an_updater_names_its_version(server: Server) -> None:
    place = server.place(name="settings")
    server.apply_to(place, config(a="1"))
    server.ask("PATCH", f"{place}?fieldManager=editor", {"data": {"a": "2"}}, MERGE)
    refused = server.apply_to(place, config(a="3"))
    assert refused.code == 409
    assert refused.message.startswith('Apply failed with 1 conflict: conflict with "editor" using v1')
    assert refused.message.endswith(": .data.a")


def test_an_applier_owns_items_by_their_keys(server: Server) -> None:
    applied = _owned(server.apply_to(server.place("deployments", "web", APPS), web()).body, "one")
    item = applied["f:spec"]["f:template"]["f:spec"]["f:containers"]['k:{"name":"web"}']
    assert item == {".": {}, "f:image": {}, "f:name": {}}


def test_an_updater_owns_also_the_map_that_it_begins(server: Server) -> None:
    place = server.place(name="settings")
    server.apply_to(place, config(a="1"))
    patched = server.ask("PATCH", f"{place}?fieldManager=editor", {"metadata": {"annotations": {"a": "1"}}}, MERGE)
    assert _owned(patched.body, "editor") == {"f:metadata": {"f:annotations": {".": {}, "f:a": {}}}}
    patched = server.ask("PATCH", f"{place}?fieldManager=editor", {"data": {"b": "1"}}, MERGE)
    assert _owned(patched.body, "editor")["f:data"] == {"f:b": {}}


def test_what_is_created_is_owned_with_what_holds_it(server: Server) -> None:
    made = server.ask("POST", f"{server.place()}?fieldManager=maker", config(a="1"))
    assert _owned(made.body, "maker") == {"f:data": {".": {}, "f:a": {}}}


def test_a_value_that_two_apply_is_shared_and_what_one_gives_up_alone_goes(server: Server) -> None:
    place = server.place(name="settings")
    server.apply_to(place, config(a="1", b="1"))
    assert server.apply_to(place, config(a="1"), "two").code == 200
    assert server.apply_to(place, config(c="1")).body["data"] == {"a": "1", "c": "1"}


def test_who_updates_is_known_by_the_name_of_their_program(server: Server) -> None:
    place = server.place(name="settings")
    server.apply_to(place, config(a="1"))
    patched = server.ask("PATCH", place, {"data": {"b": "2"}}, MERGE).body
    assert (_owned(patched, "one"), _owned(patched, "contract")) == ({"f:data": {"f:a": {}}}, {"f:data": {"f:b": {}}})


def test_a_dry_run_changes_nothing(server: Server) -> None:
    place = server.place(name="settings")
    before = server.apply_to(place, config(a="1")).body
    assert server.apply_to(place, config(a="2"), more="&dryRun=All").body["data"] == {"a": "2"}
    assert server.get("configmaps", "settings") == before


def test_the_field_that_everybody_gives_up_goes_with_its_map(server: Server) -> None:
    place = server.place(name="settings")
    server.apply_to(place, config(a="1"))
    bare = {key: value for key, value in config().items() if key != "data"}
    after = server.apply_to(place, bare)
    assert after.code == 200
    assert "data" not in after.body


def test_an_apply_of_nothing_is_not_noted(server: Server) -> None:
    bare = {key: value for key, value in config().items() if key != "data"}
    made = server.apply_to(server.place(name="settings"), bare)
    assert made.code == 201
    assert "managedFields" not in made.body["metadata"]


def test_the_same_apply_again_changes_no_version(server: Server) -> None:
    place = server.place(name="settings")
    first = server.apply_to(place, config(a="1")).body["metadata"]
    assert server.apply_to(place, config(a="1")).body["metadata"] == first


def test_managed_fields_are_reset_by_an_empty_entry(server: Server) -> None:
    place = server.place(name="settings")
    server.apply_to(place, config(a="1"))
    server.ask("PATCH", place, {"metadata": {"managedFields": [{}]}}, MERGE)
    assert "managedFields" not in server.ask("GET", place).body["metadata"]
    refused = server.apply_to(place, config(a="2"), "two")
    assert refused.message == 'Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.a'


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("?force=true", "fieldManager: Required value: is required for apply patch"),
        (f"?fieldManager={'x' * 129}", "fieldManager: Too long: may not be more than 128 bytes"),
        ("?fieldManager=one&dryRun=Some", 'dryRun: Unsupported value: ["Some"]'),
        ("?fieldManager=one&fieldValidation=Loose", 'fieldValidation: Unsupported value: "Loose"'),
    ],
    ids=["no manager", "long manager", "dry run", "validation"],
)
def test_options_that_do_not_exist_are_invalid(server: Server, query: str, wrong: str) -> None:
    refused = server.ask("PATCH", server.place(name="settings") + query, config(a="1"), APPLY)
    assert refused.code == 422
    assert wrong in refused.message


def test_force_is_for_applies_only(server: Server) -> None:
    place = server.place(name="settings")
    server.apply_to(place, config(a="1"))
    refused = server.ask("PATCH", f"{place}?force=true", {"data": {"a": "2"}}, MERGE)
    assert refused.code == 422
    assert "force: Forbidden: may not be specified for non-apply patch" in refused.message


def test_managed_fields_are_not_for_appliers(server: Server) -> None:
    wish = config(a="1")
    wish["metadata"]["managedFields"] = [{"manager": "x", "operation": "Apply", "apiVersion": "v1"}]
    refused = server.apply_to(server.place(name="settings"), wish)
    assert refused.code == 400
    assert refused.message == "metadata.managedFields must be nil"


@pytest.mark.parametrize(
    ("verbs", "code"), [((), 403), (("create",), 403), (("patch",), 403), (("create", "patch"), 201)]
)
def test_an_apply_that_creates_needs_patch_and_create(server: Server, verbs: tuple[str, ...], code: int) -> None:
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": list(verbs) or ["get"]}
    server.grant("carol", rule)
    path = server.place(name="settings") + "?fieldManager=one"
    answer = server.send(Request("PATCH", path, config(a="1"), APPLY, user="carol"))
    assert answer.code == code, answer.message
    if code == 403:
        missing = "create" if verbs == ("patch",) else "patch"
        assert f'User "carol" cannot {missing} resource "configmaps"' in answer.message


@pytest.mark.parametrize("nothing", ["", None], ids=["empty", "null"])
def test_an_address_that_a_service_leaves_open_is_given_by_the_server(server: Server, nothing: Any) -> None:
    wish = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"clusterIP": nothing, "ports": [{"port": 80}]},
    }
    made = server.apply_to(server.place("services", "web"), wish)
    assert made.code == 201, made.message
    assert made.body["spec"]["clusterIP"] == made.body["spec"]["clusterIPs"][0] != ""
