"""Paths of CRDs to fields of their own schema."""

from __future__ import annotations

import pytest

from provisioner.schema.json_paths import leads_somewhere, pointed_at

SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer"}, "a.b": {"type": "string"}}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}


@pytest.mark.parametrize(
    ("path", "kind", "problem"),
    [
        (".spec.size", "integer", ""),
        (".spec", "object", ""),
        (".labels.any", "string", ""),
        (".spec.missing", "object", "does not refer to a valid field"),
        (".spec.size.deeper", "integer", "does not refer to a valid field"),
        (".spec.", "object", "unexpected end of JSON path"),
        (".spec[0]", "object", "array notation is not allowed"),
        ("spec.size", "object", "expected [ or . but got: spec"),
    ],
)
def test_a_path_of_plain_names_leads_to_its_node_or_says_why_not(path: str, kind: str, problem: str) -> None:
    node, words = pointed_at(path, SCHEMA)
    assert (node["type"], words) == (kind, problem)


@pytest.mark.parametrize(
    ("path", "leads"),
    [
        (".spec.size", True),
        ("['spec'].size", True),
        (".spec['a.b']", True),
        (".spec.a.b", False),
        (".labels['x/y']", True),
        (".spec.missing", False),
        (".spec[0]", False),
        ("spec", False),
        (".", False),
        ("", True),
    ],
)
def test_a_path_may_name_fields_in_brackets(path: str, leads: bool) -> None:
    assert leads_somewhere(path, SCHEMA) is leads
