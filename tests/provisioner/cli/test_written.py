"""Reports as JSON are read by people line by line, and are not much larger than what they say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from provisioner.cli.written import as_json
from tests.support.provisioner.large_crds import crd


@pytest.mark.parametrize(
    "record", [{}, [], {"b": [], "a": {}}, {"a": {"b": {"c": [1, {"d": "ü\n"}]}}, "e": None}, [{"a": 1}, [2]], "a"]
)
def test_what_is_written_is_read_again(record: Any) -> None:
    text = as_json(record)
    assert json.loads(text) == record
    assert text.endswith("\n")


def test_each_entry_of_a_list_has_a_line() -> None:
    record = {"plan": {"actions": [{"b": [1, 2], "a": 1}], "digest": "x"}, "findings": []}
    assert as_json(record).splitlines() == [
        "{",
        '  "findings": [],',
        '  "plan": {',
        '    "actions": [',
        '      {"a": 1, "b": [1, 2]}',
        "    ],",
        '    "digest": "x"',
        "  }",
        "}",
    ]


def test_a_deep_schema_is_no_larger_than_it_is() -> None:
    action = {"before": crd("ship", width=3), "after": crd("ship", width=3)}
    record = {"plan": {"actions": [action]}}
    assert len(as_json(record)) < len(json.dumps(record)) + 100
