"""What an operator says of itself is found in either form in which catalogs carry it."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
import yaml

from provisioner.catalogs import PackagePresentation, PresentationShelf
from provisioner.catalogs.operators import MAX_OBJECT_BYTES, MOST_OBJECTS
from tests.support.provisioner.catalogs import bundle, package, read

CSV = {
    "apiVersion": "operators.coreos.com/v1alpha1",
    "kind": "ClusterServiceVersion",
    "metadata": {"name": "harbour.v1.0.0", "annotations": {"description": "Keeps ships", "capabilities": "Full"}},
    "spec": {"displayName": "Harbour", "provider": {"name": "Port"}, "minKubeVersion": "1.30.0"},
}
CRD = {"kind": "CustomResourceDefinition", "metadata": {"name": "a ClusterServiceVersion needs it"}}
METADATA = {"type": "olm.csv.metadata", "value": {"displayName": "Said in short"}}


def carried(document: Any) -> dict[str, Any]:
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    return {"type": "olm.bundle.object", "value": {"data": base64.b64encode(text).decode()}}


def presented(*properties: dict[str, Any]) -> PackagePresentation:
    with PresentationShelf() as shelf:
        return shelf.of(read(package(), bundle("1.0.0", properties=properties), shelf=shelf).packages["harbour"])


@pytest.mark.parametrize("text", [json.dumps(CSV), yaml.safe_dump(CSV)], ids=["JSON", "YAML"])
def test_the_manifest_of_the_operator_speaks_for_it(text: str) -> None:
    shown = presented(carried(CRD), carried(text.encode()))
    assert (shown.display_name, shown.provider, shown.summary) == ("Harbour", "Port", "Keeps ships")
    assert (shown.facts.kubernetes, shown.facts.capability) == (">=1.30.0", "Full")


def test_what_is_said_in_short_counts_before_the_manifest() -> None:
    assert presented(carried(CSV), METADATA).display_name == "Said in short"


@pytest.mark.parametrize(
    "one",
    [
        pytest.param({"type": "olm.bundle.object", "value": {"data": "%%"}}, id="no base64"),
        pytest.param({"type": "olm.bundle.object", "value": {"data": "é"}}, id="no ASCII"),
        pytest.param({"type": "olm.bundle.object", "value": {"ref": "objects/csv.yaml"}}, id="a file"),
        pytest.param({"type": "olm.bundle.object", "value": 7}, id="a number"),
        pytest.param(carried(b"{ClusterServiceVersion"), id="no JSON"),
        pytest.param(carried(b"ClusterServiceVersion \xff"), id="no UTF-8"),
        pytest.param(carried({**CSV, "kind": "ConfigMap"}), id="another kind"),
        pytest.param(carried({**CSV, "spec": "x", "metadata": 7}), id="nothing in it"),
        pytest.param(carried({**CSV, "padding": "x" * MAX_OBJECT_BYTES}), id="too large"),
        pytest.param(carried({**CSV, "deep": json.loads("[" * 200 + "]" * 200)}), id="too deep"),
        pytest.param(carried({**CSV, "many": [0] * 200_001}), id="too many values"),
    ],
)
def test_a_manifest_that_cannot_be_read_takes_nothing_else_away(one: dict[str, Any]) -> None:
    shown = presented(one)
    assert (shown.display_name, shown.provider) == ("", "")


def test_only_so_many_manifests_of_a_bundle_are_looked_at() -> None:
    assert presented(*[carried(CRD)] * MOST_OBJECTS, carried(CSV)).display_name == ""
