"""A catalog that wants to do harm takes bounded memory and time, and spoils no other package."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import pytest

from provisioner.catalogs.edges import find_circle, find_route, successors
from provisioner.catalogs.file_based import CatalogFile, CatalogLimits, read_catalog
from provisioner.catalogs.presentation import PresentationShelf
from provisioner.catalogs.values import (
    Catalog,
    CatalogBundle,
    Channel,
    ChannelEntry,
    Deprecation,
    Package,
    pack_package,
    unpack_package,
)
from provisioner.errors import BundleTooLarge
from provisioner.versions import range_of, version_of
from tests.support.provisioner.catalogs import bundle, channel, package, read

MIB = 1024 * 1024


def words(catalog: Catalog) -> list[str]:
    return [str(one) for one in catalog.problems]


def test_a_circle_of_replaces_ends_and_is_said() -> None:
    versions = [f"1.{number}.0" for number in range(300)]
    entries = [
        {"name": f"harbour.v{here}", "replaces": f"harbour.v{versions[at - 1]}"} for at, here in enumerate(versions)
    ]
    found = read(package(), *map(bundle, versions), channel("stable", *entries))
    harbour = found.packages["harbour"]
    stable, first = harbour.channels["stable"], harbour.bundles["harbour.v1.0.0"]
    assert len(find_circle(stable)) == 300
    assert "replace each other in a circle" in words(found)[0]
    way = find_route(harbour, stable, first, "harbour.v1.299.0")
    assert way is not None
    assert len(way) == 299
    assert [one.name for one in successors(stable, first.name, first.version)] == ["harbour.v1.1.0"]


@pytest.mark.timeout(60)
def test_a_way_over_ten_thousand_entries_that_all_have_a_range_is_found() -> None:
    names = [f"a.{number}" for number in range(10_000)]
    away = range_of("!=1.5.0 >=9.0.0")
    entries = tuple(
        ChannelEntry(one, before, skip_range=away) for one, before in zip(names, ["", *names], strict=False)
    )
    bundles = {one: CatalogBundle(one, "", version_of(f"1.{number}.0")) for number, one in enumerate(names)}
    found = Package("a", "c", channels={"c": Channel("c", entries)}, bundles=bundles)
    assert find_route(found, found.channels["c"], bundles["a.0"], "a.9999") == tuple(names[1:])


def test_ten_thousand_channels_are_read_and_come_back() -> None:
    channels = [channel(f"c{number}", {"name": "harbour.v1.0.0"}) for number in range(10_000)]
    found = read(package(), bundle("1.0.0"), *channels)
    assert found.problems == ()
    harbour = found.packages["harbour"]
    assert len(harbour.channels) == 10_000
    assert unpack_package(pack_package(harbour)) == harbour


def test_channels_past_the_entries_of_one_package_are_left_out_and_it_is_said() -> None:
    channels = [channel(f"c{number}", {"name": "a"}, {"name": "b"}) for number in range(3)]
    found = read(package(), package("quay"), *channels, limits=CatalogLimits(max_package_entries=4))
    assert list(found.packages["harbour"].channels) == ["c0", "c1"]
    assert any("has more than 4 entries; channel c2 is left out" in one for one in words(found))
    assert "quay" in found.packages


def test_names_past_the_memory_that_they_may_take_end_the_reading() -> None:
    apis = tuple({"type": "olm.gvk", "value": {"kind": "K" * 200, "group": f"g{n}"}} for n in range(100))
    with pytest.raises(BundleTooLarge, match="max_kept_bytes"):
        read(package(), bundle("1.0.0", properties=apis), limits=CatalogLimits(max_kept_bytes=10_000))


def test_a_package_that_takes_the_name_of_another_does_not_replace_it() -> None:
    real = [package(description="real"), bundle("1.0.0"), channel("stable", {"name": "harbour.v1.0.0"})]
    theirs = {**bundle("9.9.9"), "image": "evil.example.com/harbour"}
    shadow = [package(description="shadow"), {**bundle("1.0.0"), "image": "evil.example.com/harbour"}]
    found = read(*real, *shadow, {**theirs, "package": "other"})
    harbour = found.packages["harbour"]
    assert (harbour.description, harbour.bundles["harbour.v1.0.0"].image) == ("real", "example.com/harbour:1.0.0")
    assert len([one for one in words(found) if "is there twice; the first one counts" in one]) == 2
    assert any("calls its package 'harbour', not 'other'" in one for one in words(found))


@pytest.mark.parametrize(
    "name", ["harbour\u202e", "har\u200bbour", "har\nbour", "har\0bour", "harbour ", " harbour", "har  bour"]
)
def test_a_name_that_hides_something_is_none(name: str) -> None:
    found = read(package(name), package("quay"))
    assert list(found.packages) == ["quay"]
    assert len(found.problems) == 1


class Endless(io.RawIOBase):
    """A catalog of so many bytes that is made while it is read."""

    def __init__(self, documents: Iterator[bytes]):
        self._documents = documents

    def readline(self, size: int | None = -1, /) -> bytes:
        return next(self._documents, b"")

    read = readline


def large(megabytes: int) -> Iterator[bytes]:
    """Bundles of a megabyte each, which is mostly their manifests, as the largest public catalogs have them."""
    yield json.dumps(package()).encode() + b"\n"
    weight: dict[str, Any] = {"type": "olm.bundle.object", "value": {"data": "x" * MIB}}
    for number in range(megabytes):
        yield json.dumps(bundle(f"1.{number}.0", properties=(weight,))).encode() + b"\n"


def test_memory_does_not_grow_with_what_bundles_carry_along() -> None:
    tracemalloc.start()
    try:
        with PresentationShelf() as shelf:
            file = CatalogFile("catalog.json", lambda: Endless(large(60)))  # type: ignore[arg-type, return-value] # a stream as far as it is read
            found = read_catalog([file], shelf=shelf)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found.packages["harbour"].bundles) == 60
    assert peak < 20 * MIB


def test_words_of_a_problem_do_not_grow_with_what_they_quote() -> None:
    """They are stored, and shown on pages and in the status of the Catalog."""
    text = "x" * MIB
    other = bundle("1.0.0")
    other["properties"][0]["value"]["packageName"] = [text]
    found = read(package(), other, channel("stable", {"schema": text}, {"name": "harbour.v1.0.0"}))
    assert len(found.problems) == 2
    assert max(map(len, words(found))) < 1_100
    assert max(map(len, found.packages["harbour"].unusable_bundles.values())) <= 1_000


@pytest.mark.timeout(60)
def test_a_package_with_as_many_deprecations_as_bundles_is_looked_through_quickly() -> None:
    count = 30_000
    gone = tuple(Deprecation("olm.bundle", f"a.{number}", f"since {number}") for number in range(count))
    more = (Deprecation("olm.bundle", "a.7", "again"), Deprecation("olm.package", "b", ""))
    found = Package("a", deprecations=(*gone, *more))
    said = [found.deprecation_of(f"a.{number}") for number in range(count)]
    assert said[7] == "since 7"
    assert None not in said
    assert found.deprecation_of("b") is None
    assert replace(found, deprecations=gone[:1]).deprecation_of("a.7") is None


def test_nothing_that_is_kept_holds_what_no_database_keeps() -> None:
    """One NUL would have the database refuse the whole catalog, and with it every other package."""
    nul = "a\0b"
    about = {"type": "olm.package", "value": {"packageName": "harbour", "version": "1.1.0", "release": nul}}
    needs = {"type": "olm.gvk.required", "value": {"kind": nul, "group": nul, "version": nul}}
    entries = [
        {"name": "harbour.v1.0.0", "replaces": nul, "skips": [nul], "skipRange": f"<{nul}"},
        {"schema": nul},
        {"name": nul},
    ]
    gone = {"reference": {"schema": "olm.bundle", "name": nul}, "message": nul}
    with PresentationShelf() as shelf:
        found = read(
            package(description=nul, defaultChannel=nul, icon={"mediatype": nul, "base64data": "eHg="}),
            bundle(
                "1.0.0", properties=({"type": "olm.gvk", "value": {"kind": nul, "group": nul, "version": nul}}, needs)
            ),
            {**bundle("1.1.0"), "image": nul, "properties": [about]},
            {**bundle("1.2.0"), "properties": [{**about, "value": {"packageName": nul}}]},
            channel("stable", *entries),
            channel("fast", {"name": "harbour.v1.0.0", "skips": nul}),
            {"schema": "olm.deprecations", "package": "harbour", "entries": [gone]},
            {"schema": nul, "package": nul},
            package(nul),
            shelf=shelf,
        )
        harbour = found.packages["harbour"]
        kept = json.dumps([pack_package(harbour), words(found), asdict(shelf.of(harbour))])
    assert kept.count("a\\ufffdb") > 8
    assert "\\u0000" not in kept


@pytest.mark.parametrize("form", ["schema: x\nlist:\n%s", '{"schema": "x", "list": [%s1]}'], ids=["yaml", "json"])
def test_S26_one_list_of_a_document_is_refused_before_it_is_read_whole(form: str) -> None:
    text = (form % (("- a\n" if "list:\n" in form else "1,") * 210_000)).encode()
    with pytest.raises(BundleTooLarge, match="catalog:1: more than 200000 values"):
        read_catalog([CatalogFile("catalog", lambda: io.BytesIO(text))])
