"""A catalog comes from its source into files, of an image from the folder that its label names."""

from __future__ import annotations

import io
import ipaddress
import tarfile
from typing import Any

import pytest

from provisioner.catalogs.fetch import FOLDER_LABEL, FetchLimits, fetch_catalog, tag_index
from provisioner.catalogs.file_based import CatalogFile
from provisioner.catalogs.helm_index import read_helm_index
from provisioner.errors import BadSource, BundleTooLarge, InvalidArchive, InvalidManifest, UnsafePath
from provisioner.source import ConfigMapSource, EgressPolicy, ImageSource
from tests.support.servers.registry import Registry

EGRESS = EgressPolicy(allowed_networks=(ipaddress.ip_network("127.0.0.0/8"),), plain_http_hosts=("127.0.0.1",))


def layer(*entries: tuple[str, bytes, str]) -> bytes:
    """Name, type (0 a file, 2 a link, 3 a device) and contents of each entry, as an operating system's image has them."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, kind, text in entries:
            member = tarfile.TarInfo(name)
            member.type = kind
            member.linkname = text if kind == b"2" else ""
            member.size = len(text) if kind == b"0" else 0
            archive.addfile(member, io.BytesIO(text.encode()))
    return packed.getvalue()


def push(registry: Registry, name: str, *layers: bytes, labels: dict[str, str]) -> ImageSource:
    registry.push(f"{name}:v1", {}, layers=layers, labels=labels)
    return ImageSource(f"{registry.host}/{name}:v1", insecure_http=True)


def read(source: Any, **limits: int) -> dict[str, str]:
    with fetch_catalog(source, egress=EGRESS, limits=FetchLimits(**limits)) as found:
        return {one.name: one.open().read().decode() for one in found.files}


SYSTEM = (
    ("bin/sh", b"2", "/usr/bin/bash"),
    ("dev/null", b"3", ""),
    ("etc/a\\x2d.conf", b"0", "x"),
    ("usr/share/other.yaml", b"0", "a: b"),
)


def test_of_an_operating_system_only_the_folder_of_the_catalog_is_read(registry: Registry) -> None:
    base = layer(*SYSTEM, ("configs/old/catalog.yaml", b"0", "old"), ("./configs/quay/catalog.json", b"0", "first"))
    upper = layer(
        ("configs/.wh.old", b"0", ""), ("configs/quay/catalog.json", b"0", "second"), ("configs/x.md", b"0", "n")
    )
    source = push(registry, "system", base, upper, labels={FOLDER_LABEL: "/configs"})
    assert read(source) == {"configs/quay/catalog.json": "second"}


def test_without_the_label_all_files_are_read(registry: Registry) -> None:
    source = push(registry, "plain", layer(("a.yaml", b"0", "a"), ("b/c.JSON", b"0", "c")), labels={})
    assert read(source) == {"a.yaml": "a", "b/c.JSON": "c"}


@pytest.mark.parametrize(
    ("entries", "folder", "error", "words"),
    [
        pytest.param([("configs/a.yaml", b"2", "/etc/passwd")], "/configs", UnsafePath, "symbolic link", id="a link"),
        pytest.param([("configs/../a.yaml", b"0", "a")], "", UnsafePath, "climbs", id="a name that climbs"),
        pytest.param([("a.yaml", b"0", "a")], "/configs", BadSource, "no files in its folder configs", id="elsewhere"),
        pytest.param([("a.yaml", b"0", "a")], "/../etc", BadSource, "expected a folder of the image", id="a label"),
    ],
)
def test_what_is_no_catalog_is_refused(
    registry: Registry, entries: list[Any], folder: str, error: type[Exception], words: str
) -> None:
    labels = {FOLDER_LABEL: folder} if folder else {}
    with pytest.raises(error, match=words):
        read(push(registry, "refused", layer(*entries), labels=labels))


def test_an_archive_that_is_cut_off_is_no_catalog(registry: Registry) -> None:
    whole = layer(("a.yaml", b"0", "a" * 5000))
    with pytest.raises(InvalidArchive, match="cut off"):
        read(push(registry, "cut", whole[:-40], labels={}))


def test_a_catalog_past_its_size_is_not_unpacked(registry: Registry) -> None:
    source = push(registry, "large", layer(("a.yaml", b"0", "a" * 5000)), labels={})
    with pytest.raises(BundleTooLarge):
        read(source, max_bytes=4000)


def test_a_config_map_is_a_catalog_as_well() -> None:
    files = {"catalog.yaml": b"schema: olm.package"}
    assert read(ConfigMapSource("shop", "catalog", "u", "7", files)) == {"catalog.yaml": "schema: olm.package"}


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
