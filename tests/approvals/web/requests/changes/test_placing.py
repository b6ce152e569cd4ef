"""At which line of an object a finding stands."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.web.requests.diff_lines import LinePlaces
from provisioner.review.base.difference import all_lines
from tests.support.provisioner.contents import an_object
from tests.support.provisioner.ships import TEXT, crd

NAME = "Deployment shop/web"


def deployment(*containers: dict[str, Any]) -> dict[str, Any]:
    return an_object("apps/v1", "Deployment", "web", "shop", spec={"template": {"spec": {"containers": [*containers]}}})


WEB, OLD = {"name": "web", "image": "shop/web:1"}, {"name": "old", "image": "shop/old:1"}
BEFORE, AFTER = deployment(OLD, WEB), deployment({**WEB, "image": "shop/web:2"}, {"name": "new"})
CONTAINERS = ["spec", "template", "spec", "containers"]


def stands_at(path: list[Any], evidence: dict[str, Any] | None = None, sides: Any = (BEFORE, AFTER)) -> list[str]:
    lines = all_lines(*sides)
    found = LinePlaces(*sides, lines).lines_of({"path": path, "evidence": evidence or {}}, NAME)
    return [f"{lines[at].kind} {lines[at].text.strip()}" for at in found]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param([*CONTAINERS, 0, "image"], ["+ image: shop/web:2"], id="a field, by the number of its item"),
        pytest.param([*CONTAINERS, "web", "image"], ["+ image: shop/web:2"], id="a field, by the name of its item"),
        pytest.param([*CONTAINERS, "new"], ["+ - name: new"], id="an item"),
        pytest.param([*CONTAINERS, "old"], ["- - name: old"], id="an item that goes"),
        pytest.param([*CONTAINERS, "old", "image"], ["- image: shop/old:1"], id="a field of an item that goes"),
        pytest.param(["spec", "template"], ["  template:"], id="a field around others"),
        pytest.param([*CONTAINERS, 0, "securityContext"], ["  - name: web"], id="what is missing stands at its item"),
        pytest.param(["status", "x"], [], id="nowhere"),
        pytest.param([], [], id="without a path"),
    ],
)
def test_a_finding_stands_at_the_line_that_its_path_names(path: list[Any], expected: list[str]) -> None:
    assert stands_at(path) == expected


def test_a_finding_of_several_places_stands_at_each_of_this_object() -> None:
    places = [
        {"object": NAME, "path": [*CONTAINERS, "web", "image"], "version": ""},
        {"object": NAME, "path": [*CONTAINERS, "new"], "version": ""},
        {"object": "Deployment shop/other", "path": ["spec"], "version": ""},
    ]
    assert stands_at([], {"all_places": places}) == ["+ image: shop/web:2", "+ - name: new"]


def test_a_path_of_a_custom_resource_stands_in_the_schema_of_its_version() -> None:
    sides = (crd({"a": TEXT}, "v1", "v2"), crd({"a": {"type": "integer"}}, "v1", "v2"))
    lines = all_lines(*sides)
    (at,) = LinePlaces(*sides, lines).lines_of({"path": ["spec", "a"], "evidence": {"version": "v2"}}, "CRD ships")
    assert lines[at].text.strip() == "a:"
    assert lines[at].path[:3] == ("spec", "versions", 1)
