"""Which bundle a wish takes; the names of cases follow those of operator-controller's resolver."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.catalogs.choice import (
    CatalogOffer,
    Choice,
    Installed,
    NoChoice,
    PackageWish,
    UpgradeEdges,
    choose,
    explain_catalog,
    list_deprecations,
    newer_not_taken,
    upgrade_step,
)
from provisioner.catalogs.values import Deprecation, Package
from provisioner.values import ChosenBundle, UpgradeStep
from provisioner.versions import constraint_of, version_of
from tests.support.provisioner.catalogs import bundle, channel, chart, chart_index, harbour, package, read, read_charts


def installed(version: str) -> Installed:
    return Installed(f"harbour.v{version}", version_of(version))


def chosen(wish: PackageWish, *offers: CatalogOffer, of: Installed | None = None) -> str:
    found = choose(wish, offers or [CatalogOffer("main", harbour())], of)
    return str(found.bundle.version) if isinstance(found, Choice) else found.code


ANY = PackageWish("harbour")
STABLE = PackageWish("harbour", channels=("stable",))


@pytest.mark.parametrize(
    ("wish", "running", "answer"),
    [
        pytest.param(ANY, None, "2.0.0", id="the highest of all channels"),
        pytest.param(STABLE, None, "1.2.0", id="the highest of a channel"),
        pytest.param(replace(ANY, versions=constraint_of("<1.1.0")), None, "1.0.1", id="in a range"),
        pytest.param(
            replace(STABLE, versions=constraint_of(">=2")), None, "no-bundle", id="version exists in another channel"
        ),
        pytest.param(replace(ANY, channels=("slow",)), None, "no-bundle", id="channel does not exist"),
        pytest.param(replace(ANY, channels=("slow", "stable")), None, "1.2.0", id="one of the channels exists"),
        pytest.param(STABLE, "1.0.0", "1.0.1", id="upgrade found"),
        pytest.param(STABLE, "1.0.1", "1.2.0", id="upgrade found by a range"),
        pytest.param(STABLE, "1.2.0", "1.2.0", id="the installed one is the newest"),
        pytest.param(STABLE, "2.0.0", "no-bundle", id="downgrade not found"),
        pytest.param(replace(STABLE, edges=UpgradeEdges.SELF_CERTIFIED), "2.0.0", "1.2.0", id="downgrade found"),
        pytest.param(
            replace(STABLE, edges=UpgradeEdges.SELF_CERTIFIED), "1.0.0", "1.2.0", id="over an edge that is missing"
        ),
        pytest.param(replace(STABLE, versions=constraint_of("1.1.0")), "1.0.0", "no-bundle", id="upgrade not found"),
    ],
)
def test_one_catalog(wish: PackageWish, running: str | None, answer: str) -> None:
    assert chosen(wish, of=installed(running) if running else None) == answer


def without(found: Package, *versions: str) -> Package:
    gone = {f"harbour.v{version}" for version in versions}
    return replace(found, bundles={name: one for name, one in found.bundles.items() if name not in gone})


def retired(found: Package, *versions: str) -> Package:
    words = tuple(Deprecation("olm.bundle", f"harbour.v{version}", "gone") for version in versions)
    return replace(found, deprecations=words)


OLD = without(harbour(), "2.0.0", "1.2.0")


@pytest.mark.parametrize(
    ("offers", "answer"),
    [
        pytest.param([CatalogOffer("a", harbour()), CatalogOffer("b", None)], "2.0.0", id="one has it"),
        pytest.param([CatalogOffer("a", None), CatalogOffer("b", None)], "no-package", id="none has it"),
        pytest.param([], "no-package", id="no catalog"),
        pytest.param([CatalogOffer("a", harbour()), CatalogOffer("b", OLD)], "ambiguous", id="two have it"),
        pytest.param(
            [
                CatalogOffer("a", retired(harbour(), *("1.0.0", "1.0.1", "1.1.0", "1.2.0", "2.0.0"))),
                CatalogOffer("b", OLD),
            ],
            "1.1.0",
            id="prefer what is not deprecated",
        ),
    ],
)
def test_several_catalogs(offers: list[CatalogOffer], answer: str) -> None:
    found = choose(ANY, offers)
    assert (str(found.bundle.version) if isinstance(found, Choice) else found.code) == answer


ALL = ("1.0.0", "1.0.1", "1.1.0", "1.2.0", "2.0.0")


# As operator-controller's resolver has it (resolve/catalog_test.go): who is deprecated, which priority, who is chosen.
@pytest.mark.parametrize(
    ("catalogs", "answer"),
    [
        pytest.param({"a": (1, False), "b": (0, False)}, "a", id="the higher priority"),
        pytest.param({"a": (-3, False), "b": (-2, False)}, "b", id="also below zero"),
        pytest.param(
            {"a": (1, False), "b": (0, False), "c": (1, False)}, "a, c", id="a tie at the top names only the tied"
        ),
        pytest.param({"a": (2, False), "b": (0, False), "c": (0, False)}, "a", id="a tie below the top is none"),
        pytest.param({"a": (0, False), "b": (0, False)}, "a, b", id="nobody said a priority"),
        pytest.param({"a": (9, True), "b": (0, False)}, "b", id="what is deprecated comes after any priority"),
        pytest.param({"a": (9, True), "b": (3, True)}, "a", id="all are deprecated"),
        pytest.param(
            {"a": (3, True), "b": (3, True), "c": (0, False)}, "c", id="a tie of what is deprecated counts not"
        ),
        pytest.param({"a": (9, True), "b": (1, False), "c": (1, False)}, "b, c", id="a tie of what is not deprecated"),
        pytest.param({"a": (9, None), "b": (0, False)}, "b", id="one has no such package"),
        pytest.param({"a": (9, None), "b": (9, None)}, "no-package", id="none has it"),
    ],
)
def test_of_several_catalogs_the_highest_priority_is_taken_and_a_tie_named(
    catalogs: dict[str, tuple[int, bool | None]], answer: str
) -> None:
    offers = [
        CatalogOffer(name, None if is_old is None else retired(harbour(), *(ALL if is_old else ())), priority)
        for name, (priority, is_old) in catalogs.items()
    ]
    for order in (offers, offers[::-1]):
        found = choose(ANY, order)
        if isinstance(found, Choice):
            assert found.catalog == answer
            assert found.priority == catalogs[answer][0]
            others = [name for name, (_, is_old) in catalogs.items() if is_old is not None and name != answer]
            assert sorted(words.split(" ")[0] for words in found.passed_over) == sorted(others)
        else:
            assert found.code == answer or f"have the package harbour: {answer};" in found.words


def test_a_catalog_without_a_wanted_version_is_passed_over_whatever_its_priority() -> None:
    wish = replace(ANY, versions=constraint_of(">=2"))
    found = choose(wish, [CatalogOffer("a", OLD, 10), CatalogOffer("b", harbour(), -1)])
    assert isinstance(found, Choice)
    assert (found.catalog, found.passed_over) == ("b", ())


def test_why_a_catalog_was_chosen_is_said_with_those_passed_over() -> None:
    found = choose(
        ANY, [CatalogOffer("old", retired(harbour(), *ALL), 20), CatalogOffer("b", OLD, 3), CatalogOffer("c", OLD)]
    )
    assert isinstance(found, Choice)
    chosen = ChosenBundle("", found.catalog, "", "harbour", "", "", "", "", is_selected=True, priority=found.priority)
    assert explain_catalog(replace(chosen, passed_over=found.passed_over)) == (
        "priority 3, before c (priority 0), old (priority 20, deprecated there)"
    )
    assert explain_catalog(chosen) == "priority 3; no other selected catalog has it"
    assert explain_catalog(replace(chosen, is_selected=False)) == ""


def test_what_is_not_deprecated_comes_before_a_higher_version() -> None:
    assert chosen(ANY, CatalogOffer("a", retired(harbour(), "2.0.0"))) == "1.2.0"


def test_what_is_deprecated_is_taken_where_nothing_else_is_there_and_said() -> None:
    found = choose(replace(ANY, channels=("fast",)), [CatalogOffer("a", retired(harbour(), "2.0.0"))])
    assert isinstance(found, Choice)
    assert (found.bundle.name, found.deprecation) == ("harbour.v2.0.0", "gone")


@pytest.mark.parametrize("kind", ["olm.package.required", "olm.gvk.required", "olm.constraint"])
def test_what_a_bundle_depends_on_is_said_with_it(kind: str) -> None:
    found = read(
        package(), bundle("1.0.0", properties=({"type": kind, "value": {}},)), channel("s", {"name": "harbour.v1.0.0"})
    )
    answer = choose(ANY, [CatalogOffer("a", found.packages["harbour"])])
    assert isinstance(answer, Choice)
    assert answer.bundle.needs == (kind,)


# Versions with their explicit releases, the lowest first; on one line those that are equal to each other. As operator-controller
# orders them with BundleReleaseSupport (bundleutil.GetVersionAndRelease, compare.ByVersionAndRelease).
RELEASES = (
    (("1.0.0-rc.1", "9"),),
    (("1.0.0", ""), ("1.0.0+007", ""), ("1.0.0+123456789012345678901", "")),
    (("1.0.0+1", ""), ("1.0.0", "1"), ("1.0.0+9", "1")),
    (("1.0.0+ignored", "2"), ("1.0.0+2", "")),
    (("1.0.0", "2.1"),),
    (("1.0.0+10", "9"),),
    (("1.0.0+0", "10"), ("1.0.0+10", "")),
    (("1.0.0", "10.alpha.3"),),
    (("1.0.0+alpha", ""), ("1.0.0", "alpha")),
    (("1.0.0", "beta"),),
    (("1.0.1", ""),),
)


def test_releases_order_bundles_of_one_version_as_upstream_does() -> None:
    ranks = []
    for equal in RELEASES:
        documents: list[dict[str, Any]] = []
        for number, (version, release) in enumerate(equal):
            one = bundle(version)
            one["name"] += f"-{number}"
            one["properties"][0]["value"] |= {"release": release} if release else {}
            documents.append(one)
        entries = [{"name": one["name"]} for one in documents]
        found = read(package(), *documents, channel("s", *entries)).packages["harbour"].bundles.values()
        ranks.append([one.rank for one in found])
    assert all(rank == line[0] for line in ranks for rank in line)
    assert all(before[0] < after[0] for before, after in pairwise(ranks))


def test_why_nothing_is_chosen_names_what_there_is() -> None:
    offers = [CatalogOffer("main", harbour())]
    no_channel = choose(replace(ANY, channels=("slow",)), offers)
    no_edge = choose(replace(STABLE, versions=constraint_of("1.1.0")), offers, installed("1.0.0"))
    assert isinstance(no_channel, NoChoice)
    assert isinstance(no_edge, NoChoice)
    assert no_channel.words == "package harbour has no channel slow; it has fast, stable"
    assert no_edge.words == (
        "package harbour has no bundle in 1.1.0 in channel stable that may follow harbour.v1.0.0 (1.0.0) "
        "by the catalog's edges; these may: 1.0.1, 1.0.0"
    )
    no_version = choose(replace(STABLE, versions=constraint_of(">=2")), offers)
    assert isinstance(no_version, NoChoice)
    assert (
        no_version.words == "package harbour has no bundle in >=2 in channel stable; it has 1.2.0, 1.1.0, 1.0.1, 1.0.0"
    )


@pytest.mark.parametrize(
    ("wish", "chosen", "words"),
    [
        (STABLE, "1.2.0", ""),
        (
            replace(STABLE, versions=constraint_of("<1.2.0")),
            "1.1.0",
            "1.2.0 is not in <1.2.0: change catalog.version to take it",
        ),
        (STABLE, "1.0.1", "no edge leads to 1.2.0 from what runs; it may follow after 1.0.1"),
        (
            ANY,
            "1.1.0",
            (
                "no edge leads to 2.0.0 from what runs: upgradeConstraintPolicy SelfCertified would take it, and "
                "reviewers are told"
            ),
        ),
    ],
    ids=["the highest", "out of range", "over another", "of another channel"],
)
def test_what_is_newer_and_not_taken_is_said_with_the_reason(wish: PackageWish, chosen: str, words: str) -> None:
    assert newer_not_taken(wish, harbour(), harbour().bundles[f"harbour.v{chosen}"]) == words


@pytest.mark.parametrize(
    ("running", "step"),
    [
        (None, UpgradeStep.FIRST),
        ("1.2.0", UpgradeStep.SAME),
        ("1.1.0", UpgradeStep.FOLLOWS),
        ("1.0.1", UpgradeStep.FOLLOWS),
        ("1.0.0", UpgradeStep.LEAVES),
        ("2.0.0", UpgradeStep.LEAVES),
    ],
)
def test_how_a_bundle_stands_to_what_runs(running: str | None, step: UpgradeStep) -> None:
    of = installed(running) if running else None
    assert upgrade_step(harbour(), ["stable"], harbour().bundles["harbour.v1.2.0"], of) is step


def test_deprecations_are_those_of_the_package_the_channel_and_the_bundle() -> None:
    words = tuple(
        Deprecation(f"olm.{what}", name, f"no more {name}")
        for what, name in (("package", ""), ("channel", "stable"), ("channel", "fast"), ("bundle", "harbour.v1.2.0"))
    )
    found = list_deprecations(replace(harbour(), deprecations=words), "stable", "harbour.v1.2.0")
    assert found == (
        "package harbour: no more ",
        "channel stable: no more stable",
        "bundle harbour.v1.2.0: no more harbour.v1.2.0",
    )


RETIRED = retired(harbour(), *("1.0.0", "1.0.1", "1.1.0", "1.2.0", "2.0.0"))


@given(st.permutations([CatalogOffer("a", RETIRED), CatalogOffer("b", OLD), CatalogOffer("c", None)]))
def test_the_order_of_catalogs_changes_nothing(offers: list[CatalogOffer]) -> None:
    found = choose(ANY, offers)
    assert isinstance(found, Choice)
    assert found.catalog == "b"


def twins(*, has_first: bool = True, **edge: Any) -> Package:
    """A publisher adds another bundle of the version that runs, before it in the channel."""
    first, other = bundle("1.0.0"), {**bundle("1.0.0"), "name": "harbour.other", "image": "example.com/other:1"}
    entries = [{"name": "harbour.other", **edge}, *([{"name": first["name"]}] if has_first else [])]
    described = [package(defaultChannel="stable"), other, *([first] if has_first else [])]
    return read(*described, channel("stable", *entries)).packages["harbour"]


@pytest.mark.parametrize(
    ("package", "name", "step"),
    [
        pytest.param(twins(), "harbour.v1.0.0", UpgradeStep.LEAVES, id="without an edge"),
        pytest.param(twins(replaces="harbour.v1.0.0"), "harbour.other", UpgradeStep.FOLLOWS, id="over an edge"),
        pytest.param(twins(has_first=False), "harbour.other", UpgradeStep.SAME, id="under another name"),
    ],
)
def test_another_bundle_of_the_version_that_runs_needs_an_edge(package: Package, name: str, step: UpgradeStep) -> None:
    runs = installed("1.0.0")
    found = choose(STABLE, [CatalogOffer("main", package)], runs)
    assert isinstance(found, Choice)
    assert found.bundle.name == name
    assert upgrade_step(package, ["stable"], package.bundles["harbour.other"], runs) is step


def test_several_bundles_of_one_version_are_a_problem() -> None:
    described = [package(), bundle("1.0.0"), {**bundle("1.0.0"), "name": "harbour.other"}]
    found = read(*described, channel("stable", {"name": "harbour.v1.0.0"}, {"name": "harbour.other"}))
    words = "several bundles have the same version: harbour.other, harbour.v1.0.0"
    assert words in [one.words for one in found.problems]


def charts(*versions: str) -> Package:
    return read_charts(chart_index(*map(chart, versions))).packages["harbour"]


def test_of_charts_it_is_said_which_versions_are_there_and_no_edge_is_named() -> None:
    wish, package = PackageWish("harbour", versions=constraint_of("<2.0.0")), charts("1.0.0", "2.0.0", "2.1.0")
    offers = [CatalogOffer("port", package)]
    found = choose(wish, offers, Installed("harbour-2.0.0", version_of("2.0.0")))
    assert found == NoChoice(
        "no-bundle",
        "package harbour has no version in <2.0.0 that is as high as 2.0.0, which runs, or higher; these are: 2.1.0, 2.0.0",
    )
    nothing = choose(PackageWish("harbour", versions=constraint_of(">3.0.0")), offers)
    assert nothing == NoChoice("no-bundle", "package harbour has no version in >3.0.0; it has 2.1.0, 2.0.0, 1.0.0")


def test_beyond_a_chart_its_higher_version_is_named_without_an_edge() -> None:
    package = charts("1.0.0", "1.1.0")
    words = newer_not_taken(PackageWish("harbour"), package, package.bundles["harbour-1.0.0"])
    assert words == "1.1.0 is higher, and may follow after 1.0.0"


@pytest.mark.parametrize(
    ("versions", "running", "wish", "answer"),
    [
        pytest.param(("1.0.0", "1.1.0", "2.0.0-rc.1"), None, {}, "1.1.0", id="the first one is a release"),
        pytest.param(("1.0.0", "1.1.0", "2.0.0-rc.1"), "1.1.0", {}, "1.1.0", id="a release stays one"),
        pytest.param(("1.0.0", "2.0.0-rc.1"), "1.0.0", {"edges": UpgradeEdges.SELF_CERTIFIED}, "1.0.0", id="any edge"),
        pytest.param(("2.0.0-rc.1", "2.0.0-rc.2"), "2.0.0-rc.1", {}, "2.0.0-rc.2", id="the next pre-release"),
        pytest.param(("2.0.0-rc.1", "2.0.0"), "2.0.0-rc.1", {}, "2.0.0", id="its release"),
        pytest.param(("2.0.0-rc.1", "2.0.0", "3.0.0-alpha.1"), "2.0.0-rc.1", {}, "2.0.0", id="no other pre-release"),
        pytest.param(("1.0.0", "2.0.0-rc.1"), "2.0.0-rc.1", {}, "2.0.0-rc.1", id="a pre-release goes on"),
        pytest.param(("1.0.0", "2.0.0-rc.1"), None, {"channels": ("prerelease",)}, "2.0.0-rc.1", id="in a channel"),
        pytest.param(
            ("1.0.0", "2.0.0-rc.1"), None, {"versions": constraint_of(">=0-0")}, "2.0.0-rc.1", id="in a range"
        ),
        pytest.param(("1.0.0-rc.1", "2.0.0-rc.1"), None, {}, "no-bundle", id="only pre-releases"),
    ],
)
def test_a_prerelease_of_a_chart_is_taken_where_it_is_named_or_one_runs(
    versions: tuple[str, ...], running: str | None, wish: dict[str, Any], answer: str
) -> None:
    runs = Installed(f"harbour-{running}", version_of(running)) if running else None
    offered = CatalogOffer("port", charts(*versions))
    assert chosen(replace(ANY, **wish), offered, of=runs) == answer


def test_where_a_chart_has_only_prereleases_it_is_said_how_to_name_them() -> None:
    offers = [CatalogOffer("port", charts("1.0.0-rc.1", "1.0.0-rc.2"))]
    how = "name one in catalog.version to take it (>=0-0 takes the highest)"
    assert choose(ANY, offers) == NoChoice(
        "no-bundle", f"package harbour has no release; these are pre-releases: 1.0.0-rc.2, 1.0.0-rc.1; {how}"
    )
    runs = Installed("harbour-0.9.0", version_of("0.9.0"))
    higher = "package harbour has no release that is as high as 0.9.0, which runs, or higher"
    words = f"{higher}; these are pre-releases: 1.0.0-rc.2, 1.0.0-rc.1; {how}"
    assert choose(ANY, offers, runs) == NoChoice("no-bundle", words)
    assert chosen(replace(ANY, versions=constraint_of(">=0-0")), *offers) == "1.0.0-rc.2"


def test_what_a_chart_has_instead_names_its_prereleases_too() -> None:
    found = choose(replace(ANY, versions=constraint_of(">3")), [CatalogOffer("port", charts("1.0.0", "2.0.0-rc.1"))])
    assert isinstance(found, NoChoice)
    assert found.words == "package harbour has no version in >3; it has 2.0.0-rc.1, 1.0.0"


def test_a_prerelease_of_a_chart_that_is_not_taken_is_said() -> None:
    package = charts("1.0.0", "2.0.0-rc.1", "2.0.0-rc.2")
    words = newer_not_taken(ANY, package, package.bundles["harbour-1.0.0"])
    assert words == "2.0.0-rc.2 is a pre-release: name it in catalog.version to take it"
    words = newer_not_taken(ANY, package, package.bundles["harbour-2.0.0-rc.1"])
    assert words == "2.0.0-rc.2 is higher, and may follow after 2.0.0-rc.1"


def test_a_prerelease_of_an_operator_is_taken_as_its_channel_offers_it() -> None:
    described = [package(), bundle("1.0.0"), bundle("2.0.0-rc.1")]
    listed = channel("stable", {"name": "harbour.v1.0.0"}, {"name": "harbour.v2.0.0-rc.1"})
    assert chosen(ANY, CatalogOffer("main", read(*described, listed).packages["harbour"])) == "2.0.0-rc.1"
