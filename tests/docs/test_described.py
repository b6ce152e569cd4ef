"""`kubectl explain` is the manual: every field of a spec says what it is for."""

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
def test_no_field_of_a_spec_is_without_a_description(file: Any) -> None:
    for version in yaml.safe_load(file.read_text("utf-8"))["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        assert spec.get("description")
        assert not list(undescribed(spec, "spec"))


def test_a_field_without_one_is_found() -> None:
    schema = {"properties": {"a": {"items": {"properties": {"b": {"type": "string"}}}, "description": "A list."}}}
    assert list(undescribed(schema, "spec")) == ["spec.a[].b"]
