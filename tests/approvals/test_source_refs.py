"""What the sources of a spec name in the cluster, and in the terms of the spec what is missing."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.source_refs import read_by
from provisioner.errors import BadSource
from provisioner.values import ObjectRef


def spec(*sources: dict[str, Any]) -> dict[str, Any]:
    return {"installNamespace": "shop", "sources": [*sources]}


def of_core(kind: str, namespace: str, name: str) -> ObjectRef:
    return ObjectRef("", "v1", kind, namespace, name)


def test_secrets_and_config_maps_are_each_named_once() -> None:
    image = {"kind": "image", "image": {"ref": "x", "auth": {"secret": {"name": "pull"}}}}
    elsewhere = {"kind": "git", "git": {"auth": {"secret": {"name": "pull", "namespace": "ci"}}}}
    values = {"kind": "configMap", "configMap": {"name": "values"}}
    assert read_by(spec(image, values, elsewhere, image)) == [
        of_core("Secret", "shop", "pull"),
        of_core("ConfigMap", "shop", "values"),
        of_core("Secret", "ci", "pull"),
    ]


def test_what_needs_nothing_names_nothing() -> None:
    assert read_by({}) == []
    assert read_by(spec({"kind": "http", "http": {"url": "https://x"}})) == []
    # A field beside the kind means nothing.
    assert read_by(spec({"kind": "http", "image": {"auth": {"secret": {"name": "pull"}}}})) == []


def test_S08_what_a_chart_may_look_up_is_read_by_the_spec_too() -> None:
    named = [{"kind": "Secret", "name": "db"}, {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}]
    chart = {**spec(), "format": "helm", "config": {"lookup": [*named, {"kind": "Namespace", "name": "ci"}]}}
    assert read_by(chart) == [
        of_core("Secret", "shop", "db"),
        ObjectRef("apps", "v1", "Deployment", "shop", "web"),
        of_core("Namespace", "", "ci"),
    ]
    assert read_by({**chart, "format": "plain"}) == []
    assert read_by({**chart, "config": {"lookup": [*named, {"kind": 5}]}}) == [], "the chart is refused for it"


def test_a_reference_without_a_name_is_told_by_its_place() -> None:
    with pytest.raises(BadSource, match=r"spec.sources\[1\].image.auth.secret has no name"):
        read_by(spec({"kind": "http"}, {"kind": "image", "image": {"auth": {"secret": {"namespace": "ci"}}}}))
