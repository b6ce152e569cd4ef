"""Releases of one version, which registry-v1 bundles write as build metadata; in a chart's version it has no order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from provisioner.catalogs.choice import (
    CatalogOffer,
    Choice,
    Installed,
    PackageWish,
    UpgradeEdges,
    choose,
    newer_not_taken,
    upgrade_step,
)
from provisioner.catalogs.edges import find_head, list_heads, successors
from provisioner.catalogs.values import Package
from provisioner.values import UpgradeStep
from provisioner.versions import constraint_of, version_of
from tests.support.provisioner.catalogs import (
    LATER_REBUILD,
    REBUILD,
    bundle,
    channel,
    chart,
    chart_index,
    package,
    read,
    read_charts,
    rebuilt,
)

PLAIN, FIRST, LATER = "3.14.3", f"3.14.3+{REBUILD}", f"3.14.3+{LATER_REBUILD}"
ANY = PackageWish("harbour")


def of(*documents: dict[str, Any]) -> Package:
    found = read(*documents)
    assert found.problems == ()
    return found.packages["harbour"]


def chosen(package: Package, versions: str = "", running: str = "", **more: Any) -> str:
    wish = replace(ANY, versions=constraint_of(versions) if versions else None, **more)
    found = choose(wish, [CatalogOffer("main", package)], installed(package, running) if running else None)
    return str(found.bundle.version) if isinstance(found, Choice) else found.code


def installed(package: Package, running: str) -> Installed:
    (one,) = (it for it in package.bundles.values() if str(it.version) == running)
    return Installed(one.name, one.version, one.release)


@pytest.mark.parametrize(
    ("versions", "answer"),
    [
        ("", LATER),
        ("3.14.3", LATER),
        ("=3.14.3", LATER),
        (">=3.14.0 <3.15.0", LATER),
        (LATER, LATER),
        (f"={FIRST}", FIRST),
        (f"<3.14.3 || ={FIRST}", FIRST),
        ("3.14.3+1", "no-bundle"),
        ("<3.14.3", "3.14.2"),
    ],
)
def test_a_version_stands_for_all_its_releases_and_one_with_a_release_for_itself(versions: str, answer: str) -> None:
    assert chosen(of(*rebuilt()), versions) == answer


@pytest.mark.parametrize(
    ("running", "answer"), [("3.14.2", LATER), (PLAIN, LATER), (FIRST, LATER), (LATER, LATER)], ids=str
)
def test_a_rebuild_follows_what_it_skips(running: str, answer: str) -> None:
    assert chosen(of(*rebuilt()), running=running) == answer


def test_what_a_rebuild_skips_is_another_bundle() -> None:
    found = of(*rebuilt(has_later=False))
    runs = installed(found, FIRST)
    assert upgrade_step(found, ["stable"], found.bundles["harbour.v3.14.3"], runs) is UpgradeStep.LEAVES
    assert upgrade_step(found, ["stable"], found.bundles[runs.name], runs) is UpgradeStep.SAME
    assert chosen(found, "=3.14.2", FIRST) == "no-bundle"
    assert chosen(found, "=3.14.3", FIRST) == FIRST


def test_a_rebuild_is_newer_than_what_is_chosen() -> None:
    found = of(*rebuilt())
    wish = replace(ANY, versions=constraint_of(FIRST))
    words = f"{LATER} is not in {FIRST}: change catalog.version to take it"
    assert newer_not_taken(wish, found, found.bundles[f"harbour.v3.14.3-{REBUILD}"]) == words
    assert newer_not_taken(ANY, found, found.bundles[f"harbour.v3.14.3-{LATER_REBUILD}"]) == ""
    assert find_head(found) == found.bundles[f"harbour.v3.14.3-{LATER_REBUILD}"]


def test_what_another_release_of_the_version_skips_is_not_taken_for_being_higher() -> None:
    names = ["harbour.v1.0.0+2", "harbour.v1.0.0+1"]
    found = of(
        package(),
        bundle("1.0.0+2"),
        bundle("1.0.0+1"),
        channel("stable", {"name": names[0]}, {"name": names[1], "skips": [names[0]]}),
    )
    assert chosen(found) == "1.0.0+1"
    assert chosen(found, "1.0.0+2") == "1.0.0+2"
    assert newer_not_taken(ANY, found, found.bundles[names[1]]) == ""


def test_a_release_that_the_catalog_states_by_itself_can_be_named() -> None:
    described = []
    for release in ("1", "10", "9"):
        one = bundle("1.0.0")
        one["properties"][0]["value"]["release"] = release
        described.append({**one, "name": f"harbour.v1.0.0-{release}"})
    listed = channel("stable", *({"name": one["name"]} for one in described))
    found = read(package(), *described, listed).packages["harbour"]
    assert found.bundles["harbour.v1.0.0-9"].pin == "1.0.0+9"
    assert replace(found.bundles["harbour.v1.0.0-9"], release=">9 ||").pin == "1.0.0", "what no range can name"
    for versions, name in (("", "10"), ("1.0.0+9", "9")):
        wish = replace(ANY, versions=constraint_of(versions) if versions else None)
        choice = choose(wish, [CatalogOffer("main", found)])
        assert isinstance(choice, Choice)
        assert choice.bundle.release == name


def test_a_chart_does_not_follow_another_build_of_its_version() -> None:
    found = read_charts(chart_index(chart("1.0.0+k8s2"), chart("1.0.0+k8s1"), chart("0.9.0"), chart("1.1.0")))
    assert found.problems == ()
    harbour = found.packages["harbour"]
    stable = harbour.channels["stable"]
    entries = {one.name: (one.replaces, one.skips) for one in stable.entries}
    assert entries == {
        "harbour-1.1.0": ("harbour-1.0.0+k8s2", ("harbour-1.0.0+k8s1",)),
        "harbour-1.0.0+k8s2": ("harbour-0.9.0", ()),
        "harbour-1.0.0+k8s1": ("harbour-0.9.0", ()),
        "harbour-0.9.0": ("", ()),
    }
    assert list_heads(stable) == ("harbour-1.1.0",)
    following = successors(stable, "harbour-1.0.0+k8s1", version_of("1.0.0+k8s1"))
    assert [one.name for one in following] == ["harbour-1.1.0"]
    assert chosen(harbour, "<1.1.0", "1.0.0+k8s1") == "1.0.0+k8s1"
    assert chosen(harbour, "1.0.0+k8s1") == "1.0.0+k8s1"
    wish = replace(ANY, versions=constraint_of("1.0.0+k8s1"), edges=UpgradeEdges.SELF_CERTIFIED)
    builds = read_charts(chart_index(chart("1.0.0+k8s2"), chart("1.0.0+k8s1"))).packages["harbour"]
    assert newer_not_taken(wish, builds, builds.bundles["harbour-1.0.0+k8s1"]) == "", "no build is newer than another"


@pytest.mark.parametrize("text", ["z" * 21, "010", "1.007", f"9.{'a' * 20}"])
def test_build_metadata_that_olm_takes_for_no_release_has_no_order(text: str) -> None:
    """operator-registry refuses releases of more than 20 characters, and numbers that begin with a 0."""
    written = (f"1.0.0+{text}", "1.0.0", "1.0.0+2")
    names = [{"name": f"harbour.v{one}"} for one in written]
    found = read(package(), *map(bundle, written), channel("stable", *names)).packages["harbour"]
    odd, plain, second = (found.bundles[one["name"]] for one in names)
    assert odd.rank == plain.rank < second.rank
    assert chosen(found) == "1.0.0+2"
    assert chosen(found, written[0]) == written[0], "it can be named still"


@pytest.mark.parametrize("release", ["001", "a" * 21, "a b", "1..2"])
def test_a_stated_release_that_olm_refuses_makes_its_bundle_unusable(release: str) -> None:
    """As in operator-registry's conversion and operator-controller's order, where such a bundle is an error."""
    odd = bundle("1.0.0")
    odd["properties"][0]["value"]["release"] = release
    found = read(package(), odd, bundle("0.9.0"), channel("stable", {"name": "harbour.v0.9.0"}))
    assert [*found.packages["harbour"].bundles] == ["harbour.v0.9.0"]
    assert f"bundle harbour.v1.0.0 has the release {release!r}, which OLM takes for none" in str(found.problems)


def test_a_version_that_names_a_release_can_always_be_asked_for() -> None:
    """The page of a package asks which bundle each version means."""
    described = []
    for release in ("a", "b"):
        one = bundle(f"1.0.0-{'a' * 247}")
        one["properties"][0]["value"]["release"] = release * 20
        described.append({**one, "name": f"harbour.{release}"})
    found = read(package(), *described).packages["harbour"]
    for one in found.bundles.values():
        assert constraint_of(one.pin).takes(one.version, one.release)


@pytest.mark.parametrize(
    ("versions", "answer"),
    [
        ("", "2.0.0-rc.1"),
        (">=1.0.0 <2.0.0", "1.1.0"),
        ("<2", "1.1.0"),
        (">1.0.0", "1.1.0"),
        ("!=1.0.0", "1.1.0"),
        ("1.x", "1.1.0"),
        (">=1.0.0 <2.0.0-0", "1.2.0-beta"),
        (">=1.0.0-0", "2.0.0-rc.1"),
        ("2.0.0-rc.1", "2.0.0-rc.1"),
        ("<1.1.0 || 2.0.0-rc.1", "2.0.0-rc.1"),
        ("2.0.0", "no-bundle"),
    ],
)
def test_a_range_takes_a_pre_release_only_where_it_names_one(versions: str, answer: str) -> None:
    """As in OLM v1 and Helm: whoever wants less than 2.0.0 wants no candidate of it."""
    written = ("1.0.0", "1.1.0", "1.2.0-beta", "2.0.0-rc.1")
    listed = channel("stable", *({"name": f"harbour.v{one}"} for one in written))
    assert chosen(read(package(), *map(bundle, written), listed).packages["harbour"], versions) == answer
