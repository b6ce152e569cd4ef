"""The tool crdify, reproduced with its false alarms and its silence. Run by `make bench`, which measures beside it."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.errors import InvalidManifest
from tests.bench.reports.crdify import CrdifyConfig, crdify_triples
from tests.support.provisioner.shapes import crd, root, version
from tests.support.provisioner.vectors import UPGRADES, cases

CASES = [case for case in cases("crdify-cases.json") + UPGRADES if not case.get("crdify_panic")]


def triples_of(result: dict[str, Any]) -> set[tuple[str, str, str]]:
    found = {("", "", it["name"]) for it in result.get("crdValidation", ())}
    compared = [it for kind in ("sameVersionValidation", "servedVersionValidation") for it in result.get(kind, ())]
    return found | {
        (it["version"], place["property"], check["name"])
        for it in compared
        for place in it["propertyComparisons"]
        for check in place["comparisonResults"]
    }


@pytest.mark.corpus
@pytest.mark.parametrize("case", CASES, ids=lambda it: it["name"])
def test_crdify_says_the_same(case: dict[str, Any]) -> None:
    config = CrdifyConfig.of(case["config"]) if case.get("config") else None
    assert set(crdify_triples(case["old"], case["new"], config)) == triples_of(case["crdify"] or {})


def checks(old: dict[str, Any], new: dict[str, Any], **config: Any) -> list[tuple[str, str]]:
    sides = (crd(version(schema=root(side))) for side in (old, new))
    return [(path, check) for _, path, check in crdify_triples(*sides, CrdifyConfig.of(config))]


TEXT = {"type": "string"}
BRANCHES = [{"required": ["a"]}, {"required": ["b"]}]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(TEXT, {**TEXT, "minLength": 0}, [("^.spec", "minLength")], id="a bound that bounds nothing"),
        pytest.param({**TEXT, "maxLength": 3}, TEXT, [], id="a bound removed"),
        pytest.param({**TEXT, "enum": ["a", "b"]}, {**TEXT, "enum": ["b", "a"]}, [], id="enum in another order"),
        pytest.param({**TEXT, "enum": ["a"]}, TEXT, [("^.spec", "enum")], id="an enum dropped"),
        pytest.param({**TEXT, "format": "x"}, TEXT, [("^.spec", "unhandled")], id="what it does not know"),
        pytest.param(TEXT, {**TEXT, "x-unknown": 1}, [], id="what Go's type does not hold"),
        pytest.param({**TEXT, "title": ""}, TEXT, [], id="an empty text is none"),
        pytest.param(
            {**TEXT, "oneOf": BRANCHES},
            TEXT,
            [("", "existingFieldRemoval"), ("^.spec", "oneOf")],
            id="branches are fields to it",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": TEXT},
            {"type": "object", "additionalProperties": {**TEXT, "maxLength": 1}},
            [("^.spec", "unhandled"), ("^.spec.additionalProperties", "maxLength")],
            id="a change below a map is told twice",
        ),
    ],
)
def test_a_change_is_last_event_crdify_tells_it(
    old: dict[str, Any], new: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert checks(old, new) == expected


@pytest.mark.parametrize(
    ("old", "new", "config"),
    [
        pytest.param(
            {**TEXT, "enum": ["a"]},
            {**TEXT, "enum": ["a", "b"]},
            {"validations": [{"name": "enum", "configuration": {"additionPolicy": "Allow"}}]},
            id="enum",
        ),
        pytest.param(
            {**TEXT, "pattern": "a"},
            TEXT,
            {"validations": [{"name": "pattern", "configuration": {"removalPolicy": "Allow"}}]},
            id="pattern",
        ),
        pytest.param(
            TEXT,
            {**TEXT, "nullable": True},
            {"validations": [{"name": "nullable", "enforcement": "None"}]},
            id="nullable",
        ),
        pytest.param({**TEXT, "format": "x"}, TEXT, {"unhandledEnforcement": "None"}, id="unhandled"),
    ],
)
def test_its_configuration_silences_it(old: dict[str, Any], new: dict[str, Any], config: dict[str, Any]) -> None:
    assert checks(old, new)
    assert checks(old, new, **config) == []


@pytest.mark.parametrize("given", [None, [], {"validations": "all"}, {"validations": [{}]}])
def test_a_configuration_of_another_form_is_refused(given: object) -> None:
    with pytest.raises(InvalidManifest):
        CrdifyConfig.of(given)
