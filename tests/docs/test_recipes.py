"""The recipes of Deciding: each is an object that the product reads and its CRD takes, and there are five of each kind."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from approvals.deciding.finding_exceptions import FindingException
from approvals.deciding.rings import OnFailure, parse_rings
from approvals.deciding.table import BY_NAME
from approvals.ledger.deciding.deciding_objects import check_expressions
from provisioner.review.rules.files import rule_text
from provisioner.schema import admit
from provisioner.values import Severity
from tests.support.folders import ROOT

PAGES = [
    "operating/approval-rules.md",
    "operating/change-windows.md",
    "operating/policies.md",
    "reviewing/external-checks.md",
    "reviewing/finding-exceptions.md",
    "reviewing/deputies.md",
    "reviewing/sets.md",
]
SCHEMAS = {
    crd["spec"]["names"]["kind"]: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for crd in (yaml.safe_load(file.read_text()) for file in (ROOT / "deploy/crds").glob("*.yaml"))
}


def documents(page: str) -> list[dict[str, Any]]:
    return [
        yaml.safe_load(block)
        for block in re.findall(r"^```yaml\n(.*?)^```", (ROOT / "docs" / page).read_text(), re.DOTALL | re.MULTILINE)
    ]


OBJECTS = {
    f"{page}:{one['metadata']['name']}": one for page in PAGES for one in documents(page) if one.get("kind") in BY_NAME
}


@pytest.mark.parametrize("page", PAGES)
def test_each_manual_has_five_recipes(page: str) -> None:
    recipes = (ROOT / "docs" / page).read_text().split("\n## Recipes\n")[1].split("\n## ")[0].split("\n### ")[1:]
    assert len(recipes) >= 5
    assert all("```" in one for one in recipes)


@pytest.mark.parametrize("recipe", OBJECTS.values(), ids=OBJECTS)
def test_its_definition_takes_a_recipe_and_the_product_reads_it(recipe: dict[str, Any]) -> None:
    admitted = admit(SCHEMAS[recipe["kind"]], recipe)
    assert (admitted.errors, admitted.pruned) == ([], [])
    parsed = BY_NAME[recipe["kind"]].parse(recipe["spec"])
    check_expressions(parsed)
    if isinstance(parsed, FindingException):
        rule = rule_text(parsed.rule)
        assert rule and any(Severity(parsed.max_severity).is_at_least(one) for one in rule.severities)


def test_orders_of_sets_are_read() -> None:
    orders = [one for one in documents("reviewing/sets.md") if "rings" in one]
    for order in orders:
        assert parse_rings(order["rings"])
        assert OnFailure(order.get("onFailure", "Stop"))
    assert len(orders) >= 5
