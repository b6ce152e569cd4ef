"""Of the tags of a repository those that are whole versions are versions of one package."""

from __future__ import annotations

import io

import pytest

from provisioner.catalogs import CatalogFile, read_helm_index
from provisioner.catalogs.tag_list import tag_index
from provisioner.errors import InvalidManifest


def test_whole_versions_are_versions_and_other_tags_are_not() -> None:
    tags = ["latest", "1", "1.2", "1.2.0", "v1.2.0", "1.3.0-rc.1", "1.2.1_build.7", "sha-0a1b2c3", "main"]
    text = tag_index("example.com/port/harbour", tags)
    found = read_helm_index([CatalogFile("tags", lambda: io.BytesIO(text))], address="")
    assert found.problems == ()
    harbour = found.packages["harbour"]
    assert {str(one.version): one.image for one in harbour.bundles.values()} == {
        "1.2.0": "example.com/port/harbour:1.2.0",
        "1.2.1+build.7": "example.com/port/harbour:1.2.1_build.7",
        "1.3.0-rc.1": "example.com/port/harbour:1.3.0-rc.1",
    }
    assert [one.name for one in harbour.channels["stable"].entries] == ["harbour-1.2.1+build.7", "harbour-1.2.0"]


def test_a_number_of_64_bits_is_one_of_a_version() -> None:
    text = tag_index("example.com/harbour", ["1.0.20251128120000", f"1.0.{'1' * 21}"])
    found = read_helm_index([CatalogFile("tags", lambda: io.BytesIO(text))], address="")
    assert [str(one.version) for one in found.packages["harbour"].bundles.values()] == ["1.0.20251128120000"]
    assert found.problems == ()


@pytest.mark.parametrize("tags", [["latest"], []])
def test_a_repository_without_versions_is_no_catalog(tags: list[str]) -> None:
    """A registry that has just come back lists none, and takes nothing away by it."""
    text = tag_index("example.com/harbour", tags)
    with pytest.raises(InvalidManifest, match="expected a chart with a version, found none"):
        read_helm_index([CatalogFile("tags", lambda: io.BytesIO(text))], address="")
