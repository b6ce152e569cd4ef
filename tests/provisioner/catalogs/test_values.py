"""A package comes back from its document as it was."""

from __future__ import annotations

import json

import pytest

from provisioner.catalogs.values import pack_package, package_of_address, package_to_address, unpack_package
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
        assert unpack_package(json.loads(json.dumps(pack_package(one)))) == one


@pytest.mark.parametrize("kept", [8, 10], ids=["before it was said what is a chart", "before Kubernetes was said"])
def test_what_was_stored_before_there_was_more_is_read(kept: int) -> None:
    found = pack_package(harbour())
    old = {**found, "bundles": [one[:kept] for one in found["bundles"]]}
    assert unpack_package({name: old[name] for name in old if not name.startswith("unusable")}) == harbour()


WRITTEN = {
    "harbour": "harbour",
    "port/harbour": "port~1harbour",
    "/": "~1",
    "//": "~1~1",
    "../harbour": "..~1harbour",
    ".": "~2",
    "..": "~2~2",
    "...": "...",
    "a~b": "a~0b",
    "~1": "~01",
    "~2": "~02",
    "~01": "~001",
    "100 %? #1; \\ ü": "100 %? #1; \\ ü",
}


@pytest.mark.parametrize(("name", "part"), WRITTEN.items(), ids=WRITTEN)
def test_a_name_is_one_part_of_an_address_and_comes_back(name: str, part: str) -> None:
    assert package_to_address(name) == part
    assert package_of_address(part) == name


def test_a_tilde_that_nobody_escaped_is_itself() -> None:
    assert package_of_address("a~b~") == "a~b~"
