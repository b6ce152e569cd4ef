from __future__ import annotations

import json
from typing import Any

import pytest

from provisioner.rbac import PolicyRule, allows, covers
from provisioner.values import AccessRequest
from tests.support.folders import VECTORS

FILE = VECTORS / "rbac-cases.json"
CASES: list[dict[str, Any]] = json.loads(FILE.read_text()) if FILE.is_file() else []


@pytest.mark.corpus
@pytest.mark.parametrize("case", CASES, ids=lambda it: it["input"]["name"])
def test_the_answer_is_that_of_kubernetes(case: dict[str, Any]) -> None:
    given, truth = case["input"], case["truth"]
    owner = [PolicyRule.from_object(entry) for entry in given["owner"]]
    if "attr" in given:
        asked = given["attr"]
        request = AccessRequest(
            verb=asked["Verb"],
            group=asked["APIGroup"],
            resource=asked["Resource"],
            subresource=asked["Subresource"],
            name=asked["Name"],
            namespace=asked["Namespace"],
            path=asked.get("Path", ""),
        )
        assert allows(owner, request) is truth["allows"]
        return
    found = covers(owner, [PolicyRule.from_object(entry) for entry in given["servant"]])
    assert found.covered is truth["covers"]
    assert [str(rule) for rule in found.missing] == truth["missing"]
