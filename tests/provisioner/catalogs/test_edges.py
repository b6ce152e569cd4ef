"""What may follow what: replaces, skips and skipRange, as operator-controller reads them."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import replace
from itertools import pairwise

import pytest

from provisioner.catalogs.edges import find_circle, find_head, find_route, list_heads, successors
from provisioner.catalogs.values import CatalogBundle, Channel, ChannelEntry, Package
from provisioner.versions import VersionRange, range_of, version_of
from tests.support.provisioner.catalogs import harbour


@pytest.mark.parametrize(
    ("channel", "installed", "following"),
    [
        pytest.param("stable", "1.0.0", ["1.0.1"], id="replaces"),
        pytest.param("stable", "1.0.1", ["1.1.0", "1.2.0"], id="replaces, and a range"),
        pytest.param("stable", "1.1.0", ["1.2.0"], id="one by both"),
        pytest.param("stable", "1.2.0", [], id="the head"),
        pytest.param("fast", "1.0.1", ["2.0.0"], id="skips"),
        pytest.param("fast", "1.1.0", [], id="not skipped"),
        pytest.param("stable", "1.0.5", ["1.2.0"], id="an installed version that the catalog no longer has"),
        pytest.param("stable", "0.9.0", [], id="before every range"),
    ],
)
def test_successors(channel: str, installed: str, following: list[str]) -> None:
    found = successors(harbour().channels[channel], f"harbour.v{installed}", version_of(installed))
    assert [one.name for one in found] == [f"harbour.v{version}" for version in following]


def test_a_bundle_does_not_follow_itself_though_its_range_holds_it() -> None:
    entry = ChannelEntry("a", replaces="a", skips=("a",))
    assert successors(Channel("stable", (entry,)), "a", version_of("1.0.0")) == ()


def test_heads_are_what_nothing_replaces_or_skips() -> None:
    package = harbour()
    assert list_heads(package.channels["stable"]) == ("harbour.v1.2.0",)
    assert list_heads(Channel("empty")) == ()
    assert list_heads(Channel("c", (ChannelEntry("a"), ChannelEntry("b", skips=("a",))))) == ("b",)


@pytest.mark.parametrize(
    ("replaces", "circle"),
    [
        ({"a": "", "b": "a", "c": "b"}, ()),
        ({"a": "c", "b": "a", "c": "b"}, ("a", "c", "b")),
        ({"a": "b", "b": "c", "c": "b"}, ("b", "c")),
        ({"a": "a"}, ("a",)),
        ({"a": "gone"}, ()),
    ],
)
def test_circles_are_found(replaces: dict[str, str], circle: tuple[str, ...]) -> None:
    entries = tuple(ChannelEntry(name, replaces=before) for name, before in replaces.items())
    assert find_circle(Channel("stable", entries)) == circle


@pytest.mark.parametrize(
    ("channel", "installed", "wanted", "way"),
    [
        ("stable", "1.0.0", "1.2.0", ("1.0.1", "1.2.0")),
        ("stable", "1.0.1", "1.2.0", ("1.2.0",)),
        ("stable", "1.2.0", "1.2.0", ()),
        ("stable", "1.2.0", "1.0.0", None),
        ("fast", "1.0.0", "2.0.0", None),
    ],
)
def test_a_route_takes_the_fewest_upgrades(
    channel: str, installed: str, wanted: str, way: tuple[str, ...] | None
) -> None:
    package = harbour()
    found = find_route(
        package, package.channels[channel], package.bundles[f"harbour.v{installed}"], f"harbour.v{wanted}"
    )
    assert found == (None if way is None else tuple(f"harbour.v{version}" for version in way))


def test_a_route_ends_where_entries_follow_each_other_in_a_circle() -> None:
    package = harbour()
    entries = (
        ChannelEntry("harbour.v1.0.0", replaces="harbour.v1.0.1"),
        ChannelEntry("harbour.v1.0.1", replaces="harbour.v1.0.0"),
    )
    assert find_route(package, Channel("c", entries), package.bundles["harbour.v1.0.0"], "harbour.v2.0.0") is None


def test_a_route_is_the_shortest_that_successors_know() -> None:
    chance = random.Random(20261127)
    for _ in range(300):
        package = random_package(chance)
        channel, (first, *_, last) = package.channels["c"], package.bundles.values()
        ways = {first.name: 0}
        pending = deque([first])
        while pending:
            here = pending.popleft()
            for one in successors(channel, here.name, here.version):
                if one.name not in ways:
                    ways[one.name] = ways[here.name] + 1
                    pending.append(package.bundles[one.name])
        found = find_route(package, channel, first, last.name)
        assert (None if found is None else len(found)) == ways.get(last.name)
        for name, follower in pairwise([first.name, *(found or ())]):
            assert follower in [one.name for one in successors(channel, name, package.bundles[name].version)]


def random_package(chance: random.Random) -> Package:
    """Eight bundles of few versions, with edges of all kinds."""

    def version() -> str:
        return (
            f"1.{chance.randint(0, 1)}.{chance.randint(0, 1)}{chance.choice(['', '', '-rc.1', '-rc.10', '-2', '+b'])}"
        )

    def some_range() -> VersionRange:
        parts = [[f"{chance.choice(['=', '!=', '<', '<=', '>', '>='])}{version()}" for _ in range(3)] for _ in range(2)]
        return range_of(" || ".join(" ".join(part[: chance.randint(1, 3)]) for part in parts))

    names = [f"harbour.{number}" for number in range(8)]
    entries = tuple(
        ChannelEntry(
            one,
            chance.choice(["", *names]),
            tuple(chance.sample(names, chance.randint(0, 1))),
            some_range() if chance.random() < 0.3 else None,
        )
        for one in names
    )
    bundles = {one: CatalogBundle(one, "", version_of(version())) for one in names}
    return Package("harbour", "c", channels={"c": Channel("c", entries)}, bundles=bundles)


@pytest.mark.parametrize(
    ("default", "head"),
    [
        pytest.param("stable", "harbour.v1.2.0", id="of the default channel"),
        pytest.param("", "harbour.v2.0.0", id="of all bundles"),
    ],
)
def test_the_head_of_a_package_is_where_its_default_channel_ends(default: str, head: str) -> None:
    found = find_head(replace(harbour(), default_channel=default))
    assert found is not None
    assert found.name == head


def test_a_package_whose_default_channel_ends_nowhere_has_no_head() -> None:
    assert find_head(Package("harbour", "stable", channels={"stable": Channel("stable", ())})) is None
