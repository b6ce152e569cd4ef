"""A Helm repository's index is a catalog: any higher version of a chart may follow a lower one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from provisioner.catalogs.edges import find_head, list_heads, successors
from provisioner.catalogs.file_based import CatalogLimits
from provisioner.catalogs.presentation import PresentationShelf
from provisioner.catalogs.values import pack_package, unpack_package
from provisioner.errors import InvalidManifest
from provisioner.versions import version_of
from tests.support.provisioner.catalogs import chart, chart_index, read_charts


def test_charts_are_packages_and_versions_follow_by_semver() -> None:
    found = read_charts(chart_index(chart("1.9.0"), chart("1.10.0"), chart("2.0.0-rc.1")))
    assert found.problems == ()
    harbour = found.packages["harbour"]
    assert (harbour.default_channel, list(harbour.channels)) == ("stable", ["prerelease", "stable"])
    stable, first = harbour.channels["stable"], harbour.bundles["harbour-1.9.0"]
    assert [one.name for one in successors(stable, first.name, first.version)] == ["harbour-1.10.0"]
    assert list_heads(stable) == ("harbour-1.10.0",)
    assert find_head(harbour) == harbour.bundles["harbour-1.10.0"]
    assert list_heads(harbour.channels["prerelease"]) == ("harbour-2.0.0-rc.1",)
    assert unpack_package(pack_package(harbour)) == harbour


def test_a_version_is_fetched_from_its_address_by_its_digest() -> None:
    found = read_charts(
        chart_index(chart("1.0.0"), chart("1.1.0", urls=["oci://example.com/harbour:1.1.0"], digest=""))
    )
    one, two = found.packages["harbour"].bundles.values()
    assert {
        one.version.minor: (one.url, one.checksum, one.image),
        two.version.minor: (two.url, two.checksum, two.image),
    } == {
        0: ("https://charts.example.com/stable/harbour-1.0.0.tgz", f"sha256:{'a' * 64}", ""),
        1: ("", "", "example.com/harbour:1.1.0"),
    }


def test_a_chart_whose_latest_version_is_deprecated_is_deprecated() -> None:
    harbour = read_charts(chart_index(chart("1.0.0"), chart("1.1.0", deprecated=True))).packages["harbour"]
    assert harbour.deprecation_of("harbour-1.1.0") is not None
    assert harbour.deprecation_of("harbour-1.0.0") is None
    assert [one.schema for one in harbour.deprecations] == ["olm.package", "olm.bundle"]


def test_the_latest_version_speaks_for_the_chart() -> None:
    with PresentationShelf() as shelf:
        old, new = (
            chart("1.0.0", description="old"),
            chart("1.1.0", description="Keeps ships", icon="https://e/x.svg"),
        )
        harbour = read_charts(chart_index(old, {**new, "maintainers": [{"name": "Port"}]}), shelf).packages["harbour"]
        shown = shelf.of(harbour)
    assert (shown.summary, shown.provider, shown.icon) == ("Keeps ships", "Port", None)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        pytest.param(chart_index(chart("1.1.0"), chart("one")), "'one' is no version", id="no version"),
        pytest.param(chart_index(chart("1.1.0"), {"name": "harbour"}), "says no version", id="nothing"),
        pytest.param(
            chart_index(chart("1.1.0"), chart("1.0.0", urls=["file:///etc/passwd"])), "no address", id="a file"
        ),
        pytest.param(chart_index(chart("1.0.0"), chart("1.0.0")), "is there twice", id="twice"),
        pytest.param(
            chart_index(**{"a": [chart("1.0.0")], "b" * 200: [chart(f"1.0.0-{'c' * 100}")]}),
            "more than 253 characters",
            id="a long name",
        ),
        pytest.param(chart_index(chart("1.1.0"), quay="x"), "is no chart with a list", id="no list"),
    ],
)
def test_what_cannot_be_used_is_a_problem(document: Any, words: str) -> None:
    assert [one for one in read_charts(document).problems if words in str(one)]


def test_of_too_many_versions_the_newest_count() -> None:
    found = read_charts(
        chart_index(*(chart(f"1.{n}.0") for n in range(5))), limits=CatalogLimits(max_channel_entries=2)
    )
    assert [str(one.version) for one in found.packages["harbour"].bundles.values()] == ["1.4.0", "1.3.0"]
    assert len(found.problems) == 1


@pytest.mark.parametrize("document", [{"entries": []}, ["a"], {"apiVersion": "v1"}])
def test_what_is_no_index_is_refused(document: object) -> None:
    with pytest.raises(InvalidManifest, match="no index of a Helm repository"):
        read_charts(document)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        pytest.param({"apiVersion": "v1", "entries": {}}, "found none$", id="an index that is made anew"),
        pytest.param(chart_index(), "found none$", id="a chart without versions"),
        pytest.param(chart_index(chart("one")), "found none; chart 'harbour': 'one' is no version", id="no version"),
    ],
)
def test_an_index_without_any_version_takes_no_chart_away(document: object, words: str) -> None:
    with pytest.raises(InvalidManifest, match=f"this is no catalog: expected a chart with a version, {words}"):
        read_charts(document)


def test_many_builds_of_few_versions_do_not_multiply() -> None:
    """A build for each build of the version below would be a million names."""
    builds = [chart(f"{major}.0.0+{number}") for major in (1, 2) for number in range(500)]
    harbour = read_charts(chart_index(*builds)).packages["harbour"]
    stable = harbour.channels["stable"]
    assert sum(len(one.skips) for one in stable.entries) == 499
    assert len(json.dumps(pack_package(harbour))) < 20 * len(json.dumps(builds))
    assert {one[:11] for one in list_heads(stable)} == {"harbour-2.0"}
    following = successors(stable, "harbour-1.0.0+7", version_of("1.0.0+7"))
    assert len(following) == 500


def test_a_version_whose_numbers_have_64_bits_is_one() -> None:
    found = read_charts(chart_index(chart("1.0.20251128120000"), chart("1.0.18446744073709551616")))
    assert [str(one.version) for one in found.packages["harbour"].bundles.values()] == ["1.0.20251128120000"]
    assert ["is too large for a version" in one.words for one in found.problems] == [True]
