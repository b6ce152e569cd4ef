"""The lines that a finding is about, and no others; of a long rule of a role the line that frightens."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.output.lines import (
    MAX_LINES,
    MAX_RULES,
    concerned_place,
    lines_at,
    names_in,
    rule_lines,
    rules_behind,
    telling_lines,
)
from tests.support.provisioner.contents import an_object, config_map
from tests.support.provisioner.example_crd import TEXT, crd


def said(before: dict[str, Any] | None, after: dict[str, Any] | None, *path: str | int, version: str = "") -> list[str]:
    lines = lines_at(before, after, concerned_place(before, after, path, version))
    return [f"{line.kind} {line.text}" for line in (*lines[:1], *telling_lines(lines[1:]))]


def pod(image: str) -> dict[str, Any]:
    return an_object("v1", "Pod", "a", "shop", spec={"containers": [{"name": "x"}, {"name": "y", "image": image}]})


CASES = {
    "changed": (pod("a:1"), pod("a:2"), "image", ["- image: a:1", "+ image: a:2"]),
    "new": (None, pod("a:2"), "image", ["+ image: a:2"]),
    "as before": (pod("a:1"), pod("a:1"), "image", ["  image: a:1"]),
    "gone with its object": (pod("a:1"), None, "image", ["- image: a:1"]),
}


@pytest.mark.parametrize(("before", "after", "key", "expected"), CASES.values(), ids=CASES)
def test_a_field_is_shown_as_it_was_and_will_be(
    before: dict[str, Any] | None, after: dict[str, Any] | None, key: str, expected: list[str]
) -> None:
    assert said(before, after, "spec", "containers", 1, key) == [f"@ spec.containers[1].{key}", *expected]


def test_an_item_of_a_list_is_found_by_its_name() -> None:
    assert said(None, pod("a:1"), "spec", "containers", "y", "image") == ["@ spec.containers.y.image", "+ image: a:1"]
    gone = said(crd({"a": TEXT}, "v1", "v2"), crd({"a": TEXT}, "v1"), "spec", "versions", "v2")
    assert gone[:2] == ["@ spec.versions.v2", "- v2:"]


def test_an_item_is_shown_beside_the_one_that_it_was() -> None:
    first, second = {"resources": ["pods"], "verbs": ["get"]}, {"resources": ["nodes"], "verbs": ["get", "list"]}
    role = {"rules": [first, {**second, "verbs": ["get", "list", "watch"]}]}
    assert said({"rules": [second]}, role, "rules", 1, "verbs") == [
        *("@ rules[1].verbs", "  verbs:", "    - get", "    - list", "+   - watch")
    ]
    assert said({"rules": [second]}, role, "rules", 0, "verbs") == ["@ rules[0].verbs", "+ verbs:", "+   - get"]


def test_of_a_field_that_is_not_there_the_next_above_is_shown() -> None:
    assert said(None, config_map(a="1"), "data", "b", "c") == ["@ data", "+ data:", '+   a: "1"']
    assert said(None, config_map(a="1"), "status") == []
    assert said(None, config_map(a="1")) == []
    assert said(None, None, "data") == []


def test_a_field_of_a_custom_resource_is_shown_in_its_schema() -> None:
    old, new = (
        crd({"a": {"type": "array", "items": TEXT}}, "v1", "v2"),
        crd({"a": {"type": "array", "items": {"type": "integer"}}}, "v2"),
    )
    lines = said(old, new, "spec", "a", "[]", version="v2")
    assert lines[1:] == ["  items:", "-   type: string", "+   type: integer"]
    assert said(crd({"b": TEXT}), crd({"c": TEXT}), "spec", "b", version="v1")[1:] == ["- b:", "-   type: string"]


def test_secrets_stay_masked_and_hidden_characters_are_seen() -> None:
    secret = an_object("v1", "Secret", "s", "shop", data={"password": "aHVudGVyMg=="})
    assert "aHVudGVyMg" not in str(said(None, secret, "data", "password"))
    assert said(None, config_map(a="x\u202ey"), "data", "a")[1:] == ['+ a: "x\\u202ey"']


def test_a_long_field_is_cut_and_says_by_how_much() -> None:
    lines = said(None, config_map(**{f"k{at}": "v" for at in range(500)}), "data")
    assert len(lines) == MAX_LINES + 2
    assert lines[-1] == f"@ and {501 - MAX_LINES} more lines"


@pytest.mark.parametrize("path", [("data", 0), ("data", "a", "b", 3), (0,), ("metadata", "name", "x")], ids=str)
def test_a_path_that_leads_nowhere_does_no_harm(path: tuple[str | int, ...]) -> None:
    assert isinstance(said(config_map(a="1"), config_map(a="2"), *path), list)


ROLE = "ClusterRole.rbac.authorization.k8s.io operator"
HARMLESS = [f"boats{number}" for number in range(40)]


def role(*resources: str) -> dict[str, Any]:
    rule = {"apiGroups": ["shop.example.com"], "resources": ["berths"], "verbs": ["get"]}
    wide = {"apiGroups": [""], "resources": list(resources), "verbs": ["get", "list", "watch", "patch"]}
    return an_object("rbac.authorization.k8s.io/v1", "ClusterRole", "operator", rules=[rule, wide])


def rule_words(before: dict[str, Any] | None, after: dict[str, Any], rule: str = "RB-11") -> list[str]:
    return [f"{one.kind} {one.text.strip()}" for one in rule_lines(before, after, 1, names_in(rule, {}))]


def test_of_forty_resources_the_secret_is_shown_with_its_verbs() -> None:
    lines = rule_words(None, role(*HARMLESS, "secrets"))
    assert lines[0] == "@ rules[1]"
    assert [line for line in lines if "boats" in line] == []
    assert {"+ resources:", "+ - secrets", "+ verbs:", "+ - get", "+ - list", "+ - watch"} <= set(lines)
    assert "@ 40 lines" in lines


def test_a_rule_as_it_was_is_shown_as_no_change_and_only_a_new_resource_as_one() -> None:
    lines = rule_words(role("pods"), role("pods", "secrets"))
    assert "+ - secrets" in lines
    assert {"  - pods", "  - get"} <= set(lines)


def test_a_wildcard_is_always_shown() -> None:
    assert '+ - "*"' in rule_words(None, role(*HARMLESS, "*"), rule="RB-29")


def test_a_rule_that_the_role_has_no_more_has_no_lines() -> None:
    assert rule_lines(role("pods"), role("pods"), 7, ["pods"]) == []


def test_without_a_name_the_first_lines_are_shown() -> None:
    lines = rule_lines(None, role(*HARMLESS), 1, [])[1:]
    assert [line.text.strip() for line in telling_lines(lines[:MAX_LINES])] == [
        line.text.strip() for line in lines[:MAX_LINES]
    ]


def test_the_rules_behind_a_finding_are_named_once_each_and_not_without_end() -> None:
    ways = [{"binding": f"b{at}", "role": ROLE, "origin": ROLE, "rule": at // 2} for at in range(20)]
    assert rules_behind({"by": ways}) == [(ROLE, at) for at in range(MAX_RULES)]
    assert rules_behind({"by": "the name of a service"}) == []


def test_gained_rights_are_looked_for_by_their_own_words() -> None:
    gained = [{"scope": "", "verbs": ["patch"], "apiGroups": [""], "resources": ["pods/resize"]}]
    assert names_in("RB-DIFF", {"added": gained, "subject": "x"}) == {"patch", "pods/resize", "x"}
