"""A thinned schema is judged as the whole one."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provisioner.schema.cel.rule_check import RuleCheck
from provisioner.schema.definition.reduction import thinned
from provisioner.schema.definition.structural import KeywordRules, keyword_errors, structural_errors
from provisioner.schema.definition.validation import default_errors
from provisioner.schema.fields import FieldError
from tests.support.provisioner.compared import IDIOM
from tests.support.provisioner.shapes import SCHEMAS, TEXT, JsonDict, listed, mapped, obj, root

FAULTS: list[JsonDict] = [
    {"type": "text"},
    {"type": "array"},
    {"type": "array", "items": [TEXT]},
    {"uniqueItems": True},
    {"pattern": "("},
    {"additionalProperties": TEXT, "properties": {"x": TEXT}},
    {"x-kubernetes-list-type": "set"},
    {"x-kubernetes-list-type": "atomic"},
    {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]},
    {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"], "items": obj(a=TEXT, b=TEXT)},
    {"x-kubernetes-map-type": "atomic"},
    {"x-kubernetes-map-type": "whole"},
    {"x-kubernetes-preserve-unknown-fields": True},
    {"x-kubernetes-preserve-unknown-fields": False},
    {"x-kubernetes-int-or-string": True},
    IDIOM,
    {**IDIOM, "type": "text"},
    {"x-kubernetes-embedded-resource": True},
    {"x-kubernetes-validations": [{"rule": "self.x"}]},
    {"default": {"unknown": 1}},
    {"anyOf": [{"type": "string"}]},
    {"definitions": {}},
    {"$ref": "x"},
    {"type": None},
    {"items": TEXT},
]


def judged(schema: JsonDict) -> list[FieldError]:
    found = structural_errors(schema, "s") + keyword_errors(schema, "s", KeywordRules())
    if not structural_errors(schema, "s"):
        found += default_errors(schema, "s")
    return found or RuleCheck().run(schema, "s")


def nodes(schema: JsonDict) -> list[JsonDict]:
    below = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return [schema, *(node for it in below if isinstance(it, dict) for node in nodes(it))]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_every_fault_is_found_in_a_thinned_schema_under_the_same_path(data: st.DataObject) -> None:
    schema = copy.deepcopy(data.draw(st.builds(root, SCHEMAS)))
    for fault in data.draw(st.lists(st.sampled_from(FAULTS), max_size=2)):
        data.draw(st.sampled_from(nodes(schema))).update(copy.deepcopy(fault))
    assert judged(dict(thinned(schema))) == judged(schema)


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(obj(a=TEXT, b=obj(c=listed(obj(d=TEXT)), e=mapped(TEXT))), id="fields, lists and maps"),
        pytest.param(obj(a={**TEXT, "pattern": "^a", "maxLength": 3}), id="limits"),
        pytest.param(obj(a={**listed(TEXT), "x-kubernetes-list-type": "atomic"}), id="a list applied as a whole"),
        pytest.param(obj(a={**obj(b=TEXT), "x-kubernetes-map-type": "atomic"}), id="fields applied as a whole"),
        pytest.param(obj(a={"type": "object", "x-kubernetes-preserve-unknown-fields": True}), id="unknown fields"),
        pytest.param(obj(a={**IDIOM, "pattern": "^[0-9]+%?$"}), id="integer or string"),
    ],
)
def test_what_is_beyond_doubt_is_left_out(schema: JsonDict) -> None:
    before = copy.deepcopy(schema)
    assert nodes(dict(thinned(obj(spec=schema)))) == [obj()]
    beside_a_map = {**obj(spec=schema), "additionalProperties": TEXT}
    assert thinned(beside_a_map) == {**obj(spec={"type": "object"}), "additionalProperties": {"type": "string"}}
    assert schema == before


def test_what_the_keys_of_a_list_ask_of_its_items_stays() -> None:
    listed_by_key = {
        **listed(obj(a=TEXT, b=TEXT)),
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a"],
    }
    schema = obj(c=TEXT, ports=listed_by_key)
    assert thinned(schema) == obj(ports={**listed_by_key, "items": obj(a=TEXT)})


@pytest.mark.parametrize(
    "node", [TEXT, listed(TEXT), obj(a=TEXT), mapped(TEXT), IDIOM], ids=lambda it: str(it.get("type"))
)
def test_a_pattern_that_is_none_is_found_beside_any_type(node: JsonDict) -> None:
    schema = obj(spec=obj(a={**node, "pattern": "("}))
    assert judged(schema)
    assert judged(dict(thinned(schema))) == judged(schema)
