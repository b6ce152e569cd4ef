"""What the sources of a spec name in the cluster, and in the terms of the spec what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from approvals.bundle_spec import KINDS, UpgradePolicy, parse_spec
from provisioner.errors import BadSource
from provisioner.values import GroupKind, ObjectRef


def spec(*sources: dict[str, Any]) -> dict[str, Any]:
    return {"installNamespace": "shop", "sources": [*sources]}


def reads(written: dict[str, Any]) -> list[ObjectRef]:
    return parse_spec(written).reads()


def of_core(kind: str, namespace: str, name: str) -> ObjectRef:
    return ObjectRef("", "v1", kind, namespace, name)


def test_secrets_and_config_maps_are_each_named_once() -> None:
    image = {"kind": "image", "image": {"ref": "x", "auth": {"secret": {"name": "pull"}}}}
    elsewhere = {"kind": "git", "git": {"auth": {"secret": {"name": "pull", "namespace": "ci"}}}}
    values = {"kind": "configMap", "configMap": {"name": "values"}}
    assert reads(spec(image, values, elsewhere, image)) == [
        of_core("Secret", "shop", "pull"),
        of_core("ConfigMap", "shop", "values"),
        of_core("Secret", "ci", "pull"),
    ]


def test_what_needs_nothing_names_nothing() -> None:
    assert reads({}) == []
    assert reads(spec({"kind": "http", "http": {"url": "https://x"}})) == []
    # A field beside the kind means nothing.
    assert reads(spec({"kind": "http", "image": {"auth": {"secret": {"name": "pull"}}}})) == []


def test_S08_what_a_chart_may_look_up_is_read_by_the_spec_too() -> None:
    named = [{"kind": "Secret", "name": "db"}, {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}]
    chart = {**spec(), "format": "helm", "config": {"lookup": [*named, {"kind": "Namespace", "name": "ci"}]}}
    assert reads(chart) == [
        of_core("Secret", "shop", "db"),
        ObjectRef("apps", "v1", "Deployment", "shop", "web"),
        of_core("Namespace", "", "ci"),
    ]
    assert reads({**chart, "format": "plain"}) == []
    assert reads({**chart, "config": {"lookup": [*named, {"kind": 5}]}}) == [], "the chart is refused for it"


def test_a_reference_without_a_name_is_told_by_its_place() -> None:
    with pytest.raises(BadSource, match=r"spec.sources\[1\].image.auth.secret has no name"):
        reads(spec({"kind": "http"}, {"kind": "image", "image": {"auth": {"secret": {"namespace": "ci"}}}}))


def test_a_spec_without_a_format_is_plain_and_what_the_crd_would_not_take_counts_as_not_said() -> None:
    assert parse_spec({}).format == "plain"
    strange = parse_spec({"format": "helm", "sources": ["x", {"kind": "image", "image": "y"}], "upgradePolicy": 3})
    assert (strange.format, strange.upgrade_policy) == ("helm", UpgradePolicy.REQUEST)
    assert [(source.kind, source.body) for source in strange.sources] == [("", {}), ("image", {})]
    with pytest.raises(BadSource, match=r"spec.sources\[1\] has no ref"):
        strange.sources[1].remote()


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        pytest.param([{"group": "a.example.com", "kind": "A"}], {GroupKind("a.example.com", "A")}, id="one"),
        pytest.param([{"kind": "Pod"}], {GroupKind("", "Pod")}, id="the core group"),
        pytest.param(None, set(), id="none"),
    ],
)
def test_optional_kinds_are_read(listed: Any, expected: set[GroupKind]) -> None:
    assert parse_spec({"optionalKinds": listed}).optional_kinds() == expected


@pytest.mark.parametrize(
    "listed",
    [
        pytest.param("Widget", id="a text"),
        pytest.param(["Widget"], id="a list of texts"),
        pytest.param([{"group": "a"}], id="no kind"),
        pytest.param([{"group": "a", "kind": ""}], id="an empty kind"),
        pytest.param([{"group": "a", "kind": "A", "version": "v1"}], id="more than asked for"),
        pytest.param([{"group": None, "kind": "A"}], id="null for a group"),
        pytest.param([{"kind": "A"}] * 101, id="too many"),
    ],
)
def test_optional_kinds_that_cannot_be_read_are_refused(listed: Any) -> None:
    with pytest.raises(BadSource, match="optionalKinds"):
        parse_spec({"optionalKinds": listed}).optional_kinds()


def test_the_crd_has_a_field_for_each_kind_of_source() -> None:
    crd = yaml.safe_load(Path("deploy/crds/bundledeployments.yaml").read_text())
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["sources"]
    fields = set(schema["items"]["properties"]) - {"kind", "parameters", "interval", "destination"}
    assert fields == set(KINDS)
