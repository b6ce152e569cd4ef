"""Evidence in the words of people: no raw keys, no counts of nothing, no paths that Go prints."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from provisioner.review.output.evidence import facts_of
from tests.support.provisioner.cases import CASES, report_of

RAW = re.compile(r"[a-z][A-Z]|_")


def told(evidence: dict[str, Any]) -> dict[str, str]:
    return {fact.name: fact.text for fact in facts_of(evidence)}


def test_counts_of_refused_objects_are_said_in_words_and_none_is_not_said() -> None:
    evidence = {"rejectsNextWrite": 0, "rejectsWhenEdited": 2, "valid": 1, "version": "v1"}
    assert told(evidence) == {"refused once that part is edited": "2", "stay valid": "1", "version": "v1"}


def test_what_the_api_server_says_of_no_field_is_said_without_its_nil() -> None:
    errors = ['<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf)']
    (table,) = facts_of({"examples": [{"object": "shop/a", "errors": errors}]})
    assert table.name == "objects concerned"
    assert table.rows == (('Invalid value: "": "spec" must validate one and only one schema (oneOf)', "shop/a"),)


def test_a_way_to_a_right_names_binding_role_and_rule_as_people_do() -> None:
    role = "ClusterRole.rbac.authorization.k8s.io robot"
    way = {"binding": "RoleBinding.rbac.authorization.k8s.io shop/robot", "role": role, "origin": role, "rule": 2}
    (table,) = facts_of({"by": [way, {**way, "origin": "ClusterRole.rbac.authorization.k8s.io reader"}]})
    assert (table.name, table.columns) == ("granted by", ("binding", "role", "rule"))
    assert table.rows == (
        ("RoleBinding shop/robot", "ClusterRole robot", "rules[2]"),
        ("RoleBinding shop/robot", "ClusterRole robot", "rules[2] of ClusterRole reader"),
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(False, "no", id="no"),
        pytest.param({"apiGroups": [""], "verbs": ["get", "list"]}, "apiGroups: core\nverbs: get, list", id="map"),
        pytest.param([[{"verbs": ["get"]}]], '[{"verbs": ["get"]}]', id="nested too deeply"),
    ],
)
def test_a_value_is_said_and_not_printed(value: object, text: str) -> None:
    assert told({"fact": value}) == {"fact": text}


@pytest.mark.parametrize("case", CASES[::6], ids=lambda case: case.name)
def test_no_fact_of_a_finding_has_a_raw_name(case: Path) -> None:
    facts = [fact for finding in report_of(case).findings for fact in facts_of(finding.evidence)]
    names = {name for fact in facts for name in (fact.name, *fact.columns)}
    assert {name for name in names if RAW.search(name)} == set()
    assert not any("<nil>" in fact.text for fact in facts)
