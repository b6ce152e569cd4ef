"""A package comes back from its document as it was."""

from __future__ import annotations

import json

import pytest

from provisioner.catalogs import packed_package, unpacked_package
from tests.support.provisioner.catalogs import bundle, channel, deprecated, harbour, package, read


def test_a_package_comes_back_from_its_document() -> None:
    gvk = {"type": "olm.gvk", "value": {"group": "example.com", "kind": "Berth", "version": "v1"}}
    needs = {"type": "olm.package.required", "value": {"packageName": "quay", "versionRange": ">1.0.0"}}
    metadata = {"type": "olm.csv.metadata", "value": {"minKubeVersion": "1.30.0"}}
    rich = read(
        package(description="Keeps ships", defaultChannel="stable"),
        bundle("1.0.0-rc.1+build", properties=(gvk, needs, metadata)),
        channel("stable", {"name": "harbour.v1.0.0-rc.1+build", "skips": ["a", "b"], "skipRange": ">=0.1.0 || 3.x"}),
        deprecated("olm.channel", "stable"),
    ).packages["harbour"]
    assert rich.bundles["harbour.v1.0.0-rc.1+build"].needed == ("package quay >1.0.0",)
    assert rich.bundles["harbour.v1.0.0-rc.1+build"].kubernetes == ">=1.30.0"
    for one in (rich, harbour()):
        assert unpacked_package(json.loads(json.dumps(packed_package(one)))) == one


@pytest.mark.parametrize("kept", [8, 10], ids=["before it was said what is a chart", "before Kubernetes was said"])
def test_what_was_stored_before_there_was_more_is_read(kept: int) -> None:
    found = packed_package(harbour())
    old = {**found, "bundles": [one[:kept] for one in found["bundles"]]}
    assert unpacked_package({name: old[name] for name in old if not name.startswith("unusable")}) == harbour()
