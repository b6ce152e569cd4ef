from __future__ import annotations

import copy
from typing import Any

import pytest

from provisioner.errors import InvalidManifest
from provisioner.schema import FieldError, admit
from provisioner.schema.admission.pruning import default, prune
from provisioner.schema.admission.validation import validate
from tests.support.provisioner.shapes import TEXT, WHOLE, JsonDict, listed, mapped, obj, root, thing

PRESERVED: JsonDict = {"x-kubernetes-preserve-unknown-fields": True}
ONE_OF = '<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). '
EMBEDDED: JsonDict = {"type": "object", "x-kubernetes-embedded-resource": True, **PRESERVED}


def errors(schema: JsonDict, spec: Any, old: Any = ...) -> list[str]:
    before = {} if old is ... else {"old": thing(old)}
    return [str(error) for error in admit(root(schema), thing(spec), **before).errors]


PRUNED = {
    "an unknown field goes": (obj(a=TEXT), {"a": "1", "b": {"c": 1}}, {"a": "1"}, ["spec.b"]),
    "a nested one too": (obj(a=obj(b=TEXT)), {"a": {"c": 1}}, {"a": {}}, ["spec.a.c"]),
    "in items": (listed(obj(b=TEXT)), [{"b": "1", "c": 1}, {"d": 1}], [{"b": "1"}, {}], ["spec[0].c", "spec[1].d"]),
    "in map values": (mapped(obj(b=TEXT)), {"x": {"c": 1}}, {"x": {}}, ["spec.x.c"]),
    "an open map empties objects": (mapped(True), {"x": {"c": 1}, "y": 1}, {"x": {}, "y": 1}, ["spec.x.c"]),
    "a closed map keeps its keys for validation": (mapped(False), {"y": 1}, {"y": 1}, []),
    "kept where said so": (obj(a=TEXT, more=PRESERVED), {"b": {"c": 1}}, {"b": {"c": 1}}, []),
    "named fields below prune again": (obj(a=obj(b=TEXT), more=PRESERVED), {"a": {"c": 1}}, {"a": {}}, ["spec.a.c"]),
    "anything kept": ({**PRESERVED}, [{"a": {"b": 1}}], [{"a": {"b": 1}}], []),
    "a resource": (
        obj(a=EMBEDDED),
        {"a": {"kind": "K", "metadata": {"x": 1}}},
        {"a": {"kind": "K", "metadata": {"x": 1}}},
        [],
    ),
    "a resource that is described keeps its own metadata": (
        obj(a={"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": obj(b=TEXT)}}),
        {"a": {"kind": "K", "metadata": {}, "spec": {"c": 1}, "status": {}}},
        {"a": {"kind": "K", "metadata": {}, "spec": {}}},
        ["spec.a.spec.c", "spec.a.status"],
    ),
    "a text": (TEXT, "x", "x", []),
    "an object where a text should be": (listed(listed(TEXT)), [[{"a": 1}]], [[{}]], ["spec[0][0].a"]),
}


@pytest.mark.parametrize(("schema", "before", "after", "pruned"), PRUNED.values(), ids=PRUNED)
def test_what_the_schema_does_not_know_is_pruned(schema: JsonDict, before: Any, after: Any, pruned: list[str]) -> None:
    found = admit(root(schema), thing(before))
    assert found.after["spec"] == after
    assert found.pruned == pruned


def test_a_resource_keeps_its_own_metadata_whatever_the_schema_says() -> None:
    found = admit({"type": "object"}, {**thing({}), "more": 1})
    assert found.after == {key: value for key, value in thing({}).items() if key != "spec"}
    assert found.pruned == ["more", "spec"]


DEFAULTED = {
    "a forbidden null is dropped": (obj(a=TEXT), {"a": None}, {}),
    "an allowed one stays": (obj(a={**TEXT, "nullable": True}), {"a": None}, {"a": None}),
    "or gives way to the default": (obj(a={**TEXT, "default": "d"}), {"a": None}, {"a": "d"}),
    "a default where nothing is": (obj(a={**TEXT, "default": "d"}), {}, {"a": "d"}),
    "but not over a value": (obj(a={**TEXT, "default": "d"}), {"a": "x"}, {"a": "x"}),
    "nor inside an absent parent": (obj(p=obj(a={**TEXT, "default": "d"})), {}, {}),
    "unless that has a default": (obj(p={**obj(a={**TEXT, "default": "d"}), "default": {}}), {}, {"p": {"a": "d"}}),
    "in items": (listed(obj(a={**TEXT, "default": "d"})), [{}], [{"a": "d"}]),
    "in map values": (mapped(obj(a={**TEXT, "default": "d"})), {"k": {}}, {"k": {"a": "d"}}),
    "a null item stays, and fails": (listed(TEXT), [None], [None]),
    "or becomes the item's default": (listed({**TEXT, "default": "d"}), [None], ["d"]),
    "a null value of a map is dropped": (mapped(TEXT), {"k": None}, {}),
    "an allowed null is a value": (obj(a={**TEXT, "nullable": True, "default": "d"}), {"a": None}, {"a": None}),
}


@pytest.mark.parametrize(("schema", "before", "after"), DEFAULTED.values(), ids=DEFAULTED)
def test_nulls_and_defaults(schema: JsonDict, before: Any, after: Any) -> None:
    assert admit(root(schema), thing(before)).after["spec"] == after


REFUSED = {
    "required": (obj("a", a=TEXT), {}, "spec.a: Required value"),
    "type": (WHOLE, "x", 'spec: Invalid value: "string": spec in body must be of type integer: "string"'),
    "null": (listed(TEXT), [None], 'spec[0]: Invalid value: "null": spec[0] in body must be of type string: "null"'),
    "maxLength": ({**TEXT, "maxLength": 2}, "abc", "spec: Too long: may not be more than 2 bytes"),
    "one byte": ({**TEXT, "maxLength": 1}, "ab", "spec: Too long: may not be more than 1 byte"),
    "minLength": (
        {**TEXT, "minLength": 2},
        "é",
        'spec: Invalid value: "é": spec in body should be at least 2 chars long',
    ),
    "pattern": ({**TEXT, "pattern": "^a"}, "b", "spec: Invalid value: \"b\": spec in body should match '^a'"),
    "enum": ({**TEXT, "enum": ["a", "b"]}, "c", 'spec: Unsupported value: "c": supported values: "a", "b"'),
    "enum of numbers": ({**WHOLE, "enum": [1]}, 2, 'spec: Unsupported value: 2: supported values: "1"'),
    "minimum": (
        {**WHOLE, "minimum": 2},
        1,
        "spec: Invalid value: 1: spec in body should be greater than or equal to 2",
    ),
    "exclusive": (
        {**WHOLE, "maximum": 2, "exclusiveMaximum": True},
        2,
        "spec: Invalid value: 2: spec in body should be less than 2",
    ),
    "multipleOf": ({**WHOLE, "multipleOf": 2}, 3, "spec: Invalid value: 3: spec in body should be a multiple of 2"),
    "multipleOf the least there is": (
        {"type": "number", "multipleOf": 5e-324},
        0.0,
        "spec: Invalid value: 0: spec in body should be a multiple of 5e-324",
    ),
    "int32": (
        {**WHOLE, "format": "int32"},
        2**31,
        '<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec',
    ),
    "maxItems": (listed(TEXT, maxItems=1), ["a", "b"], "spec: Too many: 2: must have at most 1 item"),
    "minItems": (listed(TEXT, minItems=1), [], "spec: Invalid value: 0: spec in body should have at least 1 items"),
    "maxProperties": (mapped(TEXT, maxProperties=0), {"a": "1"}, "spec: Too many: 1: must have at most 0 items"),
    "minProperties": (
        mapped(TEXT, minProperties=1),
        {},
        "spec: Invalid value: 0: spec in body should have at least 1 properties",
    ),
    "closed map": (mapped(False), {"a": 1}, 'spec: Invalid value: "a": spec.a in body is a forbidden property'),
    "format": ({**TEXT, "format": "email"}, "x", 'spec: Invalid value: "x": spec in body must be of type email: "x"'),
    "int or string": (
        {"x-kubernetes-int-or-string": True},
        True,
        'spec: Invalid value: "boolean": spec in body must be of type integer,string: "boolean"',
    ),
    "set": (listed(TEXT, **{"x-kubernetes-list-type": "set"}), ["a", "b", "a", "a"], 'spec[2]: Duplicate value: "a"'),
    "map": (
        listed(obj(k=TEXT, v=TEXT), **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}),
        [{"k": "a"}, {"k": "a", "v": "b"}],
        'spec[1]: Duplicate value: {"k":"a"}',
    ),
}


@pytest.mark.parametrize(("schema", "spec", "expected"), REFUSED.values(), ids=REFUSED)
def test_an_error_has_the_servers_words(schema: JsonDict, spec: Any, expected: str) -> None:
    assert errors(schema, spec) == [expected]


@pytest.mark.parametrize(
    ("schema", "spec"),
    [
        pytest.param(WHOLE, 3.0, id="3.0 is an integer"),
        pytest.param({"type": "number"}, 3, id="an integer is a number"),
        pytest.param({**TEXT, "maxLength": 2}, "éé", id="lengths are counted in characters"),
        pytest.param({**TEXT, "pattern": "b"}, "abc", id="patterns are searched, not anchored"),
        pytest.param({**TEXT, "format": "nonsense"}, "x", id="an unknown format is ignored"),
        pytest.param({**WHOLE, "enum": [1]}, 1.0, id="an enum compares numbers"),
        pytest.param({"type": "number", "enum": [1]}, 1.5, id="and even cuts them, as the server does"),
        pytest.param({**TEXT, "nullable": True}, None, id="null where allowed"),
        pytest.param({}, {"a": [1, None]}, id="a schema that says nothing"),
        pytest.param({"x-kubernetes-int-or-string": True}, "50%", id="int or string"),
        pytest.param(mapped({}), {"a": 1}, id="a map of anything"),
    ],
)
def test_a_valid_value_has_no_errors(schema: JsonDict, spec: Any) -> None:
    assert errors(schema, spec) == []


@pytest.mark.parametrize(
    ("junctors", "spec", "expected"),
    [
        ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"a": "1"}, []),
        (
            {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {},
            ['<nil>: Invalid value: "": "spec" must validate at least one schema (anyOf)', "spec.a: Required value"],
        ),
        ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"b": "1"}, []),
        (
            {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {"a": "1", "b": "1"},
            [f"{ONE_OF}Found 2 valid alternatives"],
        ),
        (
            {"allOf": [{"required": ["a"]}, {"maxProperties": 3}]},
            {},
            ["spec.a: Required value", '<nil>: Invalid value: "": "spec" must validate all the schemas (allOf)'],
        ),
        (
            {"not": {"required": ["a"]}},
            {"a": "1"},
            ['<nil>: Invalid value: "": "spec" must not validate the schema (not)'],
        ),
        ({"not": {"required": ["a"]}}, {}, []),
    ],
    ids=str,
)
def test_junctors_are_judged_and_explained_as_by_the_server(junctors: JsonDict, spec: Any, expected: list[str]) -> None:
    assert errors(obj(a=TEXT, b=TEXT, more=junctors), spec) == expected


UPDATES = {
    "an untouched field": (obj(a={**TEXT, "maxLength": 1}, b=TEXT), {"a": "bad"}, {"a": "bad", "b": "x"}, 0),
    "a touched one": (obj(a={**TEXT, "maxLength": 1}), {"a": "bad"}, {"a": "bad2"}, 1),
    "a missing field, nothing touched": (obj("c", a=TEXT, c=TEXT), {"a": "1"}, {"a": "1"}, 0),
    "a missing field, its object touched": (obj("c", a=TEXT, c=TEXT), {"a": "1"}, {"a": "2"}, 1),
    "a list is touched whole": (listed({**TEXT, "maxLength": 1}), ["bad", "x"], ["bad", "y"], 1),
    "a map list by its keys": (
        listed(
            obj(k=TEXT, v={**TEXT, "maxLength": 1}),
            **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
        ),
        [{"k": "1", "v": "bad"}, {"k": "2", "v": "x"}],
        [{"k": "2", "v": "y"}, {"k": "1", "v": "bad"}],
        0,
    ),
    "a map by its keys": (mapped({**TEXT, "maxLength": 1}), {"a": "bad"}, {"a": "bad", "b": "x"}, 0),
    "repeated items that were there before": (
        listed(TEXT, **{"x-kubernetes-list-type": "set"}),
        ["a", "a"],
        ["a", "a", "a"],
        0,
    ),
    "nothing is spared inside junctors": (
        obj(a=TEXT, b=TEXT, more={"anyOf": [{"properties": {"a": {"maxLength": 1}}}]}),
        {"a": "bad"},
        {"a": "bad", "b": "x"},
        2,
    ),
}


@pytest.mark.parametrize(("schema", "old", "new", "remaining"), UPDATES.values(), ids=UPDATES)
def test_what_an_update_leaves_alone_may_stay_invalid(schema: JsonDict, old: Any, new: Any, remaining: int) -> None:
    assert errors(schema, old)
    assert len(errors(schema, new, old)) == remaining


def test_a_resource_inside_needs_a_kind_and_a_version_of_its_own() -> None:
    found = admit(root(obj(a=EMBEDDED)), thing({"a": {"metadata": 1, "kind": "", "apiVersion": "a/b/c"}}))
    assert [str(error) for error in found.embedded] == [
        'spec.a.kind: Invalid value: "": must not be empty',
        'spec.a.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
        "spec.a.metadata: Invalid value: 1: must be an object",
    ]
    assert found.refusals == (*found.errors, *found.embedded)
    missing = admit(root(obj(a=EMBEDDED)), thing({"a": {}})).embedded
    assert [str(error) for error in missing] == ["spec.a.apiVersion: Required value", "spec.a.kind: Required value"]


def test_nothing_that_is_given_is_changed() -> None:
    schema = root(obj(a={**obj(b={**TEXT, "default": "d"}), "default": {}}, c=WHOLE))
    new, old = thing({"a": {"x": [1]}, "c": None}), thing({"c": 1})
    kept = copy.deepcopy((schema, new, old))
    found = admit(schema, new, old=old)
    assert (schema, new, old) == kept
    assert found.after["spec"] == {"a": {"b": "d"}}


def test_the_steps_can_be_taken_one_by_one() -> None:
    schema = root(obj("a", a={**TEXT, "default": "d"}, b=TEXT))
    pruned, dropped = prune(schema, thing({"b": None, "x": 1}))
    assert dropped == ["spec.x"]
    assert default(schema, pruned)["spec"]["a"] == "d"
    assert [str(it) for it in validate(schema, pruned)] == [
        'spec.b: Invalid value: "null": spec.b in body must be of type string: "null"',
        "spec.a: Required value",
    ]


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        pytest.param({"properties": None, "items": 1, "required": None}, "items", id="a number for a keyword"),
        pytest.param({"type": ["string"], "enum": "a", "anyOf": {}, "not": []}, "type", id="wrong shapes"),
        pytest.param(
            {"properties": {"spec": True}, "additionalProperties": "yes"}, "properties[spec]", id="a field that is none"
        ),
        pytest.param(
            {"x-kubernetes-validations": [{}, {"rule": None}, 1, {"rule": 3}], "allOf": [1]},
            "x-kubernetes-validations[2]",
            id="rules that are none",
        ),
    ],
)
def test_a_schema_that_no_server_would_read_is_refused_by_its_first_wrong_place(schema: JsonDict, place: str) -> None:
    for spec in ("x", {"a": [1]}, None, 1.5):
        with pytest.raises(InvalidManifest) as refused:
            admit(schema, thing(spec), old=thing({"a": 1}))
        assert str(refused.value).startswith(f"the schema: {place}: Invalid value: ")


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"properties": None, "items": None, "required": None}, id="nulls for keywords"),
        pytest.param({"properties": {"spec": {"type": "string", "pattern": "("}}}, id="a pattern that is none"),
    ],
)
def test_a_schema_that_no_server_would_take_does_not_crash(schema: JsonDict) -> None:
    for spec in ("x", {"a": [1]}, None, 1.5):
        admit(schema, thing(spec), old=thing({"a": 1}))


def test_deep_objects_are_admitted() -> None:
    schema: JsonDict = TEXT
    value: Any = "x"
    for _ in range(60):
        schema, value = obj(a=schema), {"a": value}
    assert admit(root(schema), thing(value)).errors == []


def test_an_error_is_not_searched_for_among_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[object] = []

    def counted(one: FieldError, other: object) -> bool:
        looks.append(other)
        return str(one) == str(other)

    monkeypatch.setattr(FieldError, "__eq__", counted)
    names = [f"f{place}" for place in range(300)]
    assert len(validate(obj(*names), {})) == len(names)
    assert len(looks) < len(names)
