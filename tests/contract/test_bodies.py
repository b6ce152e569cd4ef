"""What is sent and does not fit its kind: wrong types, unknown fields, keys that stand twice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.contract.conftest import APPS, MERGE, STRATEGIC, Reply, Server
from tests.contract.objects import config, web

UNMARSHALLED = "json: cannot unmarshal"


@pytest.fixture
def api(things: str) -> str:
    """The API of the kind Thing."""
    return f"/apis/{things}/v1"


def _thing(api: str, **spec: Any) -> dict[str, Any]:
    group_version = api.removeprefix("/apis/")
    return {"apiVersion": group_version, "kind": "Thing", "metadata": {"name": "a"}, "spec": {"size": 3, **spec}}


def _mistyped() -> dict[str, Any]:
    wrong = web()
    wrong["spec"]["replicas"] = "two"
    return wrong


def _unknown() -> dict[str, Any]:
    """A Deployment with two fields that no Deployment has."""
    wrong = web()
    wrong["spec"]["replica"] = 1
    wrong["spec"]["template"]["spec"]["containers"][0]["imag"] = "x"
    return wrong


UNKNOWN_FIELDS = ('unknown field "spec.replica"', 'unknown field "spec.template.spec.containers[0].imag"')


def test_a_wrong_type_is_a_bad_request_of_a_create(server: Server) -> None:
    refused = server.ask("POST", server.place("deployments", api=APPS), _mistyped())
    assert (refused.code, refused.body["reason"]) == (400, "BadRequest")
    assert UNMARSHALLED in refused.message


@pytest.mark.parametrize(
    "data",
    [{"a": 1}, {"a": True}, {"a": {}}, {"a": []}, "text", ["a"]],
    ids=["number", "bool", "map", "list", "text", "array"],
)
def test_a_config_map_holds_strings_only(server: Server, data: Any) -> None:
    refused = server.ask("POST", server.place(), {**config(), "data": data})
    assert refused.code == 400
    assert UNMARSHALLED in refused.message


@pytest.mark.parametrize("content_type", [MERGE, STRATEGIC])
def test_a_wrong_type_is_an_invalid_patch(server: Server, content_type: str) -> None:
    server.ask("POST", server.place(), config(a="1"))
    refused = server.ask("PATCH", server.place(name="settings"), {"data": {"a": 1}}, content_type)
    assert refused.code == 422
    assert " is invalid: patch: Invalid value: " in refused.message


def test_a_wrong_type_and_an_unknown_field_are_an_internal_error_of_an_apply(server: Server) -> None:
    refused = server.apply_to(server.place("deployments", "web", APPS), _mistyped())
    assert refused.code == 500
    assert refused.message.startswith("failed to create typed patch object")
    assert ".spec.replicas: expected numeric" in refused.message
    refused = server.apply_to(server.place("deployments", "web", APPS), _unknown())
    assert (refused.code, "field not declared in schema" in refused.message) == (500, True)


def test_a_quantity_may_be_a_number(server: Server) -> None:
    wish = web(resources={"limits": {"cpu": 2, "memory": "64Mi"}})
    made = server.ask("POST", server.place("deployments", api=APPS), wish)
    assert made.code == 201, made.message
    limits = made.body["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"cpu": "2", "memory": "64Mi"}


def test_all_unknown_fields_are_named_when_strict(server: Server) -> None:
    refused = server.ask("POST", f"{server.place('deployments', api=APPS)}?fieldValidation=Strict", _unknown())
    assert refused.code == 400
    assert "strict decoding error" in refused.message
    assert all(said in refused.message for said in UNKNOWN_FIELDS)


@pytest.mark.parametrize(
    ("validation", "warned"), [("Warn", True), ("", True), ("Ignore", False)], ids=["warn", "none", "ignore"]
)
def test_unknown_fields_are_dropped_and_warned_of(server: Server, validation: str, warned: bool) -> None:
    query = f"?fieldValidation={validation}" if validation else ""
    made = server.ask("POST", server.place("deployments", api=APPS) + query, _unknown())
    assert made.code == 201
    assert "replica" not in made.body["spec"]
    assert "imag" not in made.body["spec"]["template"]["spec"]["containers"][0]
    assert sorted(made.warnings) == (sorted(UNKNOWN_FIELDS) if warned else [])


def test_an_unknown_field_of_a_patch_is_dropped_and_warned_of(server: Server) -> None:
    server.ask("POST", server.place("deployments", api=APPS), web())
    place = server.place("deployments", "web", APPS)
    patched = server.ask("PATCH", place, {"spec": {"replica": 1}}, MERGE)
    assert (patched.code, patched.warnings) == (200, ['unknown field "spec.replica"'])
    assert "replica" not in patched.body["spec"]
    refused = server.ask("PATCH", f"{place}?fieldValidation=Strict", {"spec": {"replica": 1}}, MERGE)
    assert refused.code == 422
    assert 'strict decoding error: unknown field "spec.replica"' in refused.message


def _twice(obj: dict[str, Any]) -> bytes:
    return json.dumps(obj).replace('"a": "1"', '"a": "1", "a": "2"').encode()


def test_a_key_that_stands_twice_is_refused_when_strict(server: Server) -> None:
    refused = server.ask("POST", f"{server.place()}?fieldValidation=Strict", _twice(config(a="1")))
    assert refused.code == 400
    assert 'strict decoding error: duplicate field "data.a"' in refused.message


def test_a_key_that_stands_twice_counts_once_and_is_warned_of(server: Server) -> None:
    made = server.ask("POST", server.place(), _twice(config(a="1")))
    assert (made.code, made.body["data"]) == (201, {"a": "2"})
    assert made.warnings == ['duplicate field "data.a"']


@pytest.mark.parametrize("field", ["colour", "taste"], ids=["known", "unknown"])
def test_a_custom_resource_may_not_apply_what_its_schema_forbids(server: Server, api: str, field: str) -> None:
    place = server.place("things", "a", api)
    refused = server.apply_to(place, _thing(api, **{field: 1}))
    assert refused.code == 500
    wanted = "field not declared in schema" if field == "taste" else "expected string, got"
    assert f".spec.{field}: {wanted}" in refused.message


def test_a_custom_resource_of_a_wrong_type_is_invalid(server: Server, api: str) -> None:
    refused = server.ask("POST", server.place("things", api=api), _thing(api, colour=1))
    assert refused.code == 422
    assert "spec.colour" in refused.message
    assert 'spec.colour in body must be of type string: "integer"' in refused.message


def test_an_unknown_field_of_a_custom_resource_is_pruned_and_warned_of(server: Server, api: str) -> None:
    place = server.place("things", api=api)
    refused = server.ask("POST", f"{place}?fieldValidation=Strict", _thing(api, taste=1, smell=2))
    assert refused.code == 400
    assert 'unknown field "spec.smell", unknown field "spec.taste"' in refused.message
    made = server.ask("POST", place, _thing(api, taste=1))
    assert (made.code, made.warnings) == (201, ['unknown field "spec.taste"'])
    assert made.body["spec"] == {"size": 3, "colour": "red"}


def test_a_custom_resource_is_replaced_only_by_its_version(server: Server, api: str) -> None:
    made = server.ask("POST", server.place("things", api=api), _thing(api)).body
    place = server.place("things", "a", api)
    refused = server.ask("PUT", place, _thing(api, colour="blue"))
    assert refused.code == 422
    assert "metadata.resourceVersion: Invalid value: 0" in refused.message
    assert "must be specified for an update" in refused.message
    wish = {
        **_thing(api, colour="blue"),
        "metadata": {"name": "a", "resourceVersion": made["metadata"]["resourceVersion"]},
    }
    assert server.ask("PUT", place, wish).code == 200
    assert server.ask("PUT", place, wish).code == 409


def test_a_built_in_object_is_replaced_without_a_version(server: Server) -> None:
    server.ask("POST", server.place(), config(a="1"))
    assert server.ask("PUT", server.place(name="settings"), config(b="2")).body["data"] == {"b": "2"}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{nope", "the object provided is unrecognized"),
        (b"", "the object provided is unrecognized"),
        ({**config(), "kind": "Secret"}, "cannot be handled as a ConfigMap"),
        ({**config(), "apiVersion": "v2"}, "cannot be handled as a ConfigMap"),
    ],
    ids=["no JSON", "nothing", "another kind", "another version"],
)
def test_a_body_that_is_no_such_object_is_a_bad_request(server: Server, body: Any, said: str) -> None:
    refused: Reply = server.ask("POST", server.place(), body)
    assert refused.code == 400
    assert said in refused.message


@pytest.mark.parametrize(
    "meta",
    ["text", ["a"], 1, {"name": 1}, {"name": "settings", "labels": "x"}, {"name": "settings", "labels": {"a": 1}}],
    ids=["text", "list", "number", "name", "labels", "label"],
)
def test_metadata_of_a_wrong_type_is_a_bad_request(server: Server, meta: Any) -> None:
    refused = server.ask("POST", server.place(), {**config(), "metadata": meta})
    assert refused.code == 400
    assert UNMARSHALLED in refused.message


@pytest.mark.parametrize("meta", ["text", {"labels": {"a": 1}}], ids=["metadata", "label"])
def test_metadata_of_a_wrong_type_is_an_internal_error_of_an_apply(server: Server, meta: Any) -> None:
    refused = server.apply_to(server.place(name="settings"), {**config(a="1"), "metadata": meta})
    assert refused.code == 500


@pytest.mark.parametrize(
    ("meta", "said"),
    [
        ({"labels": {"a b": "c"}}, 'metadata.labels: Invalid value: "a b"'),
        ({"labels": {"a": "b c"}}, 'metadata.labels: Invalid value: "b c"'),
        ({"labels": {"a": "b" * 64}}, "metadata.labels: Invalid value"),
        ({"annotations": {"/a": "b"}}, 'metadata.annotations: Invalid value: "/a"'),
        ({"finalizers": ["mine"]}, "name is neither a standard finalizer name nor is it fully qualified"),
        (
            {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x"}]},
            'metadata.ownerReferences.uid: Invalid value: "": must not be empty',
        ),
        ({"name": "Not A Name"}, 'metadata.name: Invalid value: "Not A Name"'),
    ],
    ids=["label key", "label value", "long label", "annotation", "finalizer", "owner", "name"],
)
def test_metadata_that_no_object_may_have_is_invalid(server: Server, meta: dict[str, Any], said: str) -> None:
    refused = server.ask("POST", server.place(), {**config(), "metadata": {"name": "settings", **meta}})
    assert refused.code == 422
    assert said in refused.message
