"""A thinned schema is judged as the whole one."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provisioner.schema.celcheck import RuleCheck, rule_text_errors
from provisioner.schema.defaults import default_errors
from provisioner.schema.fields import FieldError
from provisioner.schema.structural import KeywordRules, keyword_errors, structural_errors
from provisioner.schema.thinning import thinned
from tests.provisioner.schema.shapes import SCHEMAS, TEXT, JsonDict, listed, mapped, obj, root

FAULTS: list[JsonDict] = [
    {"type": "text"},
    {"type": "array"},
    {"type": "array", "items": [TEXT]},
    {"uniqueItems": True},
    {"pattern": "("},
    {"additionalProperties": TEXT, "properties": {"x": TEXT}},
    {"x-kubernetes-list-type": "set"},
    {"x-kubernetes-map-type": "atomic"},
    {"x-kubernetes-preserve-unknown-fields": False},
    {"x-kubernetes-validations": [{"rule": "self.x"}]},
    {"default": {"unknown": 1}},
    {"anyOf": [{"type": "string"}]},
    {"definitions": {}},
    {"$ref": "x"},
    {"type": None},
    {"items": TEXT},
]


def judged(schema: JsonDict) -> list[FieldError]:
    found = structural_errors(schema, "s") + keyword_errors(schema, "s", KeywordRules()) + rule_text_errors(schema, "s")
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
    ],
)
def test_what_is_beyond_doubt_is_left_out(schema: JsonDict) -> None:
    before = copy.deepcopy(schema)
    assert nodes(dict(thinned(obj(spec=schema)))) == [obj(spec={"type": "object"}), {"type": "object"}]
    assert schema == before
