"""Of a long rule of a role the line that frightens is shown, wherever it stands."""

from __future__ import annotations

from typing import Any

from provisioner.review.output.lines import MAX_LINES, MAX_RULES, names_in, rule_lines, rules_behind, telling_lines
from tests.support.provisioner.contents import an_object

ROLE = "ClusterRole.rbac.authorization.k8s.io operator"
HARMLESS = [f"boats{number}" for number in range(40)]


def role(*resources: str) -> dict[str, Any]:
    rule = {"apiGroups": ["shop.example.com"], "resources": ["berths"], "verbs": ["get"]}
    wide = {"apiGroups": [""], "resources": list(resources), "verbs": ["get", "list", "watch", "patch"]}
    return an_object("rbac.authorization.k8s.io/v1", "ClusterRole", "operator", rules=[rule, wide])


def said(before: dict[str, Any] | None, after: dict[str, Any], rule: str = "RB-11") -> list[str]:
    return [f"{one.kind} {one.text.strip()}" for one in rule_lines(before, after, 1, names_in(rule, {}))]


def test_of_forty_resources_the_secret_is_shown_with_its_verbs() -> None:
    lines = said(None, role(*HARMLESS, "secrets"))
    assert lines[0] == "@ rules[1]"
    assert [one for one in lines if "boats" in one] == []
    assert {"+ resources:", "+ - secrets", "+ verbs:", "+ - get", "+ - list", "+ - watch"} <= set(lines)
    assert "@ 40 lines" in lines


def test_a_rule_as_it_was_is_shown_as_no_change_and_only_a_new_resource_as_one() -> None:
    lines = said(role("pods"), role("pods", "secrets"))
    assert "+ - secrets" in lines
    assert {"  - pods", "  - get"} <= set(lines)


def test_a_wildcard_is_always_shown() -> None:
    assert '+ - "*"' in said(None, role(*HARMLESS, "*"), rule="RB-29")


def test_a_rule_that_the_role_has_no_more_has_no_lines() -> None:
    assert rule_lines(role("pods"), role("pods"), 7, ["pods"]) == []


def test_without_a_name_the_first_lines_are_shown() -> None:
    lines = rule_lines(None, role(*HARMLESS), 1, [])[1:]
    assert [one.text.strip() for one in telling_lines(lines[:MAX_LINES])] == [
        one.text.strip() for one in lines[:MAX_LINES]
    ]


def test_the_rules_behind_a_finding_are_named_once_each_and_not_without_end() -> None:
    ways = [{"binding": f"b{at}", "role": ROLE, "origin": ROLE, "rule": at // 2} for at in range(20)]
    assert rules_behind({"by": ways}) == [(ROLE, at) for at in range(MAX_RULES)]
    assert rules_behind({"by": "the name of a service"}) == []


def test_gained_rights_are_looked_for_by_their_own_words() -> None:
    gained = [{"scope": "", "verbs": ["patch"], "apiGroups": [""], "resources": ["pods/resize"]}]
    assert names_in("RB-DIFF", {"added": gained, "subject": "x"}) == {"patch", "pods/resize", "x"}
