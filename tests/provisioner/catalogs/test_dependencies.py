"""Which packages come first: as a table of catalogs and needs, with the plan that follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from provisioner.catalogs.choice import CatalogOffer
from provisioner.catalogs.dependencies import (
    MAX_DEPTH,
    MOST_LOOKS,
    DependencyPlan,
    InstalledPackage,
    NeedState,
    plan_dependencies,
)
from provisioner.catalogs.values import Catalog, pack_package, unpack_package
from provisioner.render.registry.needs import API, CONSTRAINT, PACKAGE, ApiNeed, UnjudgedNeed, need_of_property
from provisioner.versions import version_of
from tests.support.provisioner.catalogs import bundle, channel, package, read


def needs_package(name: str, versions: str = "") -> dict[str, Any]:
    return {"type": PACKAGE, "value": {"packageName": name, "versionRange": versions}}


def needs_api(kind: str) -> dict[str, Any]:
    return {"type": API, "value": {"group": "db.example.com", "version": "v1", "kind": kind}}


def brings(kind: str) -> dict[str, Any]:
    return {"type": "olm.gvk", "value": {"group": "db.example.com", "version": "v1", "kind": kind}}


def joined(how: str, *members: dict[str, Any], message: str = "") -> dict[str, Any]:
    """A constraint whose members are written as properties are."""
    names = {PACKAGE: "package", API: "gvk"}
    listed = [
        {names[member["type"]]: member["value"]} if member["type"] in names else member["value"] for member in members
    ]
    return {"type": CONSTRAINT, "value": {how: {"constraints": listed}, "failureMessage": message}}


def of(name: str, versions: Mapping[str, list[dict[str, Any]]], **channels: list[str]) -> list[dict[str, Any]]:
    """A package of these versions, all of them in its default channel unless channels are given."""
    lines = channels or {"stable": list(versions)}
    return [
        package(name, defaultChannel="stable"),
        *(channel(line, *({"name": f"{name}.v{one}"} for one in listed), of=name) for line, listed in lines.items()),
        *(bundle(one, of=name, properties=tuple(properties)) for one, properties in versions.items()),
    ]


@dataclass
class Shelf:
    """Catalogs by name, what is installed, and what the cluster serves."""

    catalogs: Mapping[str, Catalog]
    running: Mapping[str, str | None] = field(default_factory=dict)
    served: Mapping[str, bool | None] = field(default_factory=dict)

    def installed(self, name: str) -> list[InstalledPackage]:
        version = self.running.get(name)
        found = InstalledPackage(f"my-{name}", version_of(version) if version else None)
        return [found] if name in self.running else []

    def serves(self, api: ApiNeed) -> bool | None:
        return self.served.get(api.kind, False)

    def offers(self, name: str) -> list[CatalogOffer]:
        return [CatalogOffer(key, one.packages.get(name)) for key, one in self.catalogs.items()]

    def offers_of_api(self, api: ApiNeed) -> list[CatalogOffer]:
        return [CatalogOffer(key, found) for key, one in self.catalogs.items() for found in one.packages.values()]


def shelf(*documents: list[dict[str, Any]], **catalogs: list[dict[str, Any]]) -> Shelf:
    """One catalog `main`, or several by their names."""
    main = {"main": [document for listed in documents for document in listed]} if documents else {}
    return Shelf({name: read(*listed) for name, listed in {**main, **catalogs}.items()})


def plan(known: Shelf, *needs: dict[str, Any], catalog: str = "main") -> DependencyPlan:
    asked = [need_of_property(need["type"], need["value"]) for need in needs]
    return plan_dependencies(asked, known, package="harbour", catalog=catalog)


def steps(found: DependencyPlan) -> list[str]:
    return [f"{step.package} {step.version}" for step in found.steps]


STORE = of("store", {"1.0.0": [], "1.2.0": [], "2.0.0": []})


@pytest.mark.parametrize(
    ("known", "need", "planned", "state", "words"),
    [
        (shelf(STORE), needs_package("store", ">=1.0.0 <2.0.0"), ["store 1.2.0"], "planned", "would come first"),
        (shelf(STORE), needs_package("store"), ["store 2.0.0"], "planned", "store 2.0.0 of catalog main"),
        (shelf(STORE), needs_package("store", ">=3.0.0"), [], "unmet", "the newest is 2.0.0 in catalog main"),
        (shelf(STORE), needs_package("depot", ">=3.0.0"), [], "unmet", "no catalog that you may read offers package"),
        (
            shelf(of("store", {"1.0.0": [], "2.0.0": []}, stable=["1.0.0"], fast=["1.0.0", "2.0.0"])),
            needs_package("store", ">=2.0.0"),
            [],
            "unmet",
            "2.0.0 is in channel fast of catalog main, which is not its default channel",
        ),
        (
            shelf(of("store", {"1.0.0": [needs_package("disk", ">=2")]}), of("disk", {"2.1.0": []})),
            needs_package("store"),
            ["disk 2.1.0", "store 1.0.0"],
            "planned",
            "",
        ),
        (
            shelf(of("store", {"1.0.0": [needs_package("disk", ">=3")]}), of("disk", {"2.1.0": []})),
            needs_package("store"),
            [],
            "unmet",
            "store 1.0.0 of catalog main would do, but it needs package disk >=3: no catalog",
        ),
        (
            shelf(of("store", {"1.0.0": [needs_package("disk")]}), of("disk", {"2.0.0": [needs_package("store")]})),
            needs_package("store"),
            [],
            "unmet",
            "in a circle: store needs disk needs store",
        ),
        (
            shelf(of("store", {"1.0.0": [needs_package("harbour")]})),
            needs_package("store"),
            [],
            "unmet",
            "in a circle: harbour needs store needs harbour",
        ),
        (shelf(of("store", {"1.0.0": [brings("Disk")]})), needs_api("Disk"), ["store 1.0.0"], "planned", ""),
        (
            # The newest in the default channel brings it no more.
            shelf(of("store", {"1.0.0": [brings("Disk")], "2.0.0": []})),
            needs_api("Disk"),
            ["store 1.0.0"],
            "planned",
            "",
        ),
        (shelf(STORE), needs_api("Disk"), [], "unmet", "no default channel of a catalog that you may read offers it"),
        (
            shelf(of("store", {"1.0.0": [brings("Disk")]}), of("depot", {"1.0.0": [brings("Disk")]})),
            needs_api("Disk"),
            [],
            "unmet",
            "several packages bring it: depot, store; create a deployment of one of them yourself",
        ),
        (
            shelf(main=STORE, other=of("store", {"3.0.0": []})),
            needs_package("store"),
            ["store 2.0.0"],
            "planned",
            "of catalog main",
        ),
        (
            shelf(one=STORE, other=of("store", {"3.0.0": []})),
            needs_package("store"),
            [],
            "unmet",
            "several catalogs of priority 0 have the package store: one, other",
        ),
        (
            shelf(STORE),
            joined("any", needs_package("depot"), needs_package("store")),
            ["store 2.0.0"],
            "planned",
            "",
        ),
        (
            shelf(STORE),
            joined("any", needs_package("depot"), needs_package("disk")),
            [],
            "unmet",
            "package depot: no catalog that you may read offers package depot; package disk: no catalog",
        ),
        (
            shelf(STORE, of("disk", {"1.0.0": []})),
            joined("all", needs_package("store"), needs_package("disk")),
            ["store 2.0.0", "disk 1.0.0"],
            "planned",
            "",
        ),
        (shelf(STORE), joined("not", needs_package("store")), [], "met", "none of it is there"),
        (
            shelf(STORE),
            {"type": CONSTRAINT, "value": {"cel": {"rule": "true"}, "failureMessage": "be big"}},
            [],
            "unknown",
            "CEL is not evaluated",
        ),
    ],
)
def test_what_is_missing_is_planned_in_order_or_said(
    known: Shelf, need: dict[str, Any], planned: list[str], state: str, words: str
) -> None:
    found = plan(known, need)
    (judged,) = found.needs
    assert (steps(found), judged.state) == (planned, state)
    assert words in judged.why


@pytest.mark.parametrize(
    ("running", "served", "need", "state", "words"),
    [
        ({"store": "1.2.0"}, {}, needs_package("store", ">=1.2.0"), "met", "deployment my-store runs 1.2.0"),
        ({"store": "1.1.0"}, {}, needs_package("store", ">=1.2.0"), "unmet", "runs 1.1.0: change the version"),
        ({"store": None}, {}, needs_package("store", ">=1.2.0"), "asked", "asks for it, and nothing of it runs yet"),
        ({}, {"Disk": True}, needs_api("Disk"), "met", "the cluster serves it"),
        ({}, {"Disk": None}, needs_api("Disk"), "unknown", "whether the cluster serves it is not known"),
        ({"disk": None}, {}, needs_api("Disk"), "asked", "deployment my-disk asks for disk, which brings it"),
        ({"disk": "1.0.0"}, {}, needs_api("Disk"), "unmet", "runs disk 1.0.0, which does not bring it"),
        ({"store": "1.2.0"}, {}, joined("any", needs_package("depot"), needs_package("store")), "met", "one of them"),
        ({"store": "1.2.0"}, {}, joined("not", needs_package("store")), "unmet", "it must not be there"),
        (
            {"store": "1.2.0"},
            {"Disk": None},
            joined("all", needs_package("store"), needs_api("Disk")),
            "unknown",
            "not known",
        ),
    ],
)
def test_what_is_there_is_not_planned(
    running: dict[str, str | None], served: dict[str, bool | None], need: dict[str, Any], state: str, words: str
) -> None:
    known = shelf(STORE, of("disk", {"1.0.0": [brings("Disk")]}))
    known.running, known.served = running, served
    found = plan(known, need)
    assert (steps(found), found.needs[0].state) == ([], state)
    assert words in found.needs[0].why


def test_a_package_that_two_need_comes_once_and_before_both() -> None:
    known = shelf(
        of("store", {"1.0.0": [needs_package("disk", ">=1.0.0")]}),
        of("cache", {"1.0.0": [needs_package("disk", "<2.0.0"), needs_api("Disk")]}),
        of("disk", {"1.5.0": [brings("Disk")]}),
    )
    found = plan(known, needs_package("store"), needs_package("cache"))
    assert steps(found) == ["disk 1.5.0", "store 1.0.0", "cache 1.0.0"]
    assert [step.after for step in found.steps] == [(), ("disk",), ("disk",)]
    assert [step.needed_by for step in found.steps] == ["store", "", ""]
    assert found.steps[0].versions == ">=1.0.0 <2.0.0"


def test_where_two_need_different_versions_that_is_said_and_nothing_of_the_second_is_left() -> None:
    known = shelf(
        of("store", {"1.0.0": [needs_package("disk", ">=2.0.0")]}),
        of("cache", {"1.0.0": [needs_package("tape"), needs_package("disk", "<2.0.0")]}),
        of("disk", {"1.5.0": [], "2.0.0": []}),
        of("tape", {"1.0.0": []}),
    )
    found = plan(known, needs_package("store"), needs_package("cache"))
    assert steps(found) == ["disk 2.0.0", "store 1.0.0"]
    assert "store needs it too, and gets 2.0.0: no version does for both" in found.needs[1].why


def test_what_must_not_be_there_is_looked_for_in_the_plan_too() -> None:
    known = shelf(STORE)
    found = plan(known, joined("not", needs_package("store", ">=2.0.0")), needs_package("store"))
    assert [need.state for need in found.needs] == [NeedState.MET, NeedState.PLANNED, NeedState.UNMET]
    assert "this bundle must not have it, and store 2.0.0" in found.needs[2].why


@pytest.mark.parametrize(
    ("member", "is_barred"),
    [
        (joined("any", needs_package("depot"), needs_package("store")), True),
        (joined("all", needs_package("store"), needs_api("Disk")), True),
        (joined("all", needs_package("store"), needs_package("depot")), False),
        (joined("any", needs_package("store", "<1.0.0"), needs_package("depot")), False),
    ],
)
def test_what_must_not_be_there_is_looked_for_where_it_is_joined(member: dict[str, Any], is_barred: bool) -> None:
    known = shelf(STORE)
    known.served = {"Disk": True}
    found = plan(known, joined("not", member), needs_package("store"))
    barred = [need for need in found.needs if "must not have it, and store 2.0.0" in need.why]
    assert len(barred) == is_barred


def test_a_deployment_is_pinned_where_the_newest_does_not_bring_the_api() -> None:
    known = shelf(of("store", {"1.0.0": [brings("Disk")], "2.0.0": []}), of("depot", {"1.0.0": [brings("Buoy")]}))
    found = plan(known, needs_api("Disk"), needs_api("Buoy"))
    assert [(step.package, step.version, step.versions) for step in found.steps] == [
        ("store", "1.0.0", "1.0.0"),
        ("depot", "1.0.0", ""),
    ]


def test_what_nobody_judges_of_a_planned_bundle_stands_beside_it() -> None:
    cel = {"type": CONSTRAINT, "value": {"cel": {"rule": "true"}, "failureMessage": "be big"}}
    (step,) = plan(shelf(of("store", {"1.0.0": [cel]})), needs_package("store")).steps
    assert step.unjudged == ("be big: CEL is not evaluated",)


def test_plans_are_bounded_in_depth_and_in_looks() -> None:
    chain = [of(f"p{at}", {"1.0.0": [needs_package(f"p{at + 1}")]}) for at in range(MAX_DEPTH + 2)]
    found = plan(shelf(*chain), needs_package("p0"))
    assert (steps(found), found.needs[0].state) == ([], NeedState.UNMET)
    assert f"a plan has at most {MAX_DEPTH} levels" in found.needs[0].why
    # Alternatives that fail late, each with alternatives of its own.
    deep = joined("any", *[needs_package(f"q{at}") for at in range(20)])
    wide = [of(f"q{at}", {"1.0.0": [deep]}) for at in range(20)]
    found = plan(shelf(*wide), deep)
    assert (steps(found), found.needs[0].state) == ([], NeedState.UNKNOWN)
    assert f"more than {MOST_LOOKS} needs" in found.needs[0].why
    # What must not be there is looked for, too.
    many = [joined("not", *[needs_package(f"r{at}") for at in range(50)]) for _ in range(20)]
    found = plan(shelf(STORE), *many)
    assert (found.needs[0].state, len(found.needs)) == (NeedState.UNKNOWN, 1)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("text", "its value is no mapping"),
        ({}, "expected one need, found none"),
        ({"all": {}, "any": {}}, "expected one need, found all, any"),
        ({"all": {"constraints": []}}, "its all cannot be read"),
        ({"some": {"constraints": [{}]}}, "its some cannot be read"),
        ({"package": {"packageName": "a\u202eb"}}, "it names no package"),
        ({"package": {"packageName": "store", "versionRange": "~newest"}}, "cannot be read"),
        ({"gvk": {"group": "a", "kind": ["b"], "version": "v1"}}, "it names no kind in a version"),
        ({"cel": {"rule": "x" * 5000}}, "more than 4096 characters"),
    ],
)
def test_a_constraint_that_cannot_be_read_is_not_taken_to_be_met(value: Any, why: str) -> None:
    found = plan(shelf(STORE), {"type": CONSTRAINT, "value": value})
    assert (found.needs[0].state, steps(found)) == (NeedState.UNKNOWN, [])
    assert why in found.needs[0].why


def test_a_constraint_is_read_to_a_bounded_depth() -> None:
    value: dict[str, Any] = {"package": {"packageName": "store"}}
    for _ in range(30):
        value = {"all": {"constraints": [value]}}
    assert "nested too deeply" in plan(shelf(STORE), {"type": CONSTRAINT, "value": value}).needs[0].why


def test_what_a_stored_package_needs_is_what_was_read() -> None:
    (found,) = shelf(of("store", {"1.0.0": [needs_package("disk", ">=2"), needs_api("Disk")]})).offers("store")
    assert found.package is not None
    document = pack_package(found.package)
    assert unpack_package(document).bundles == found.package.bundles
    document["bundles"] = [record[:-1] for record in document["bundles"]]  # as it was stored before needs were kept
    earlier = unpack_package(document).bundles["store.v1.0.0"].other_needs
    assert [(type(need), str(need)) for need in earlier] == [
        (UnjudgedNeed, "API db.example.com/v1 Disk"),
        (UnjudgedNeed, "package disk >=2"),
    ]
    assert [str(need) for need in found.package.bundles["store.v1.0.0"].other_needs] == [
        "Disk in db.example.com/v1",
        "package disk >=2",
    ]
