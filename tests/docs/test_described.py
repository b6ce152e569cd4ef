"""`kubectl explain` is the manual: every field says what it is for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from tests.support.folders import ROOT

CRDS = sorted((ROOT / "deploy" / "crds").glob("*.yaml"))


def undescribed(schema: Mapping[str, Any], path: str) -> Iterator[str]:
    for name, field in schema.get("properties", {}).items():
        here = f"{path}.{name}"
        if len(str(field.get("description", ""))) < len("Its x."):
            yield here
        yield from undescribed(field, here)
    if "items" in schema:
        yield from undescribed(schema["items"], f"{path}[]")


@pytest.mark.parametrize("file", CRDS, ids=lambda one: one.stem)
@pytest.mark.parametrize("part", ["spec", "status"])
def test_no_field_is_without_a_description(file: Any, part: str) -> None:
    for version in yaml.safe_load(file.read_text("utf-8"))["spec"]["versions"]:
        found = version["schema"]["openAPIV3Schema"]["properties"][part]
        assert found.get("description")
        assert not list(undescribed(found, part))


def test_a_field_without_one_is_found() -> None:
    schema = {"properties": {"a": {"items": {"properties": {"b": {"type": "string"}}}, "description": "A list."}}}
    assert list(undescribed(schema, "spec")) == ["spec.a[].b"]
