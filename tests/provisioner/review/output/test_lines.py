"""The lines that a finding is about, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.output.lines import MAX_LINES, concerned_lines
from tests.support.provisioner.contents import an_object, config_map
from tests.support.provisioner.ships import TEXT, crd


def said(before: dict[str, Any] | None, after: dict[str, Any] | None, *path: str | int, version: str = "") -> list[str]:
    return [f"{line.kind} {line.text}" for line in concerned_lines(before, after, path, version)]


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
