"""A catalog is read whole, bounded, and what is wrong in it is said beside what is right."""

from __future__ import annotations

import base64
import json
from functools import partial
from typing import Any

import pytest
import yaml

from provisioner.catalogs.choice import CatalogOffer, NoChoice, PackageWish, choose
from provisioner.catalogs.edges import successors
from provisioner.catalogs.file_based import MAX_OBJECT_BYTES, MOST_OBJECTS, CatalogFile, CatalogLimits, read_catalog
from provisioner.catalogs.presentation import PackagePresentation, PresentationShelf
from provisioner.errors import BundleTooLarge, InvalidManifest
from provisioner.versions import version_of
from tests.support.folders import CORPUS
from tests.support.provisioner.catalogs import bundle, channel, deprecated, package, read, read_text


def problems(*documents: Any) -> list[str]:
    """Of these documents, in a catalog that has a package besides."""
    return [str(one) for one in read(package("elsewhere"), *documents).problems]


def test_documents_may_come_in_any_order() -> None:
    documents = [channel("stable", {"name": "harbour.v1.0.0"}), bundle("1.0.0"), package(defaultChannel="stable")]
    found = read(*documents).packages["harbour"]
    assert (found.default_channel, list(found.channels), list(found.bundles)) == (
        "stable",
        ["stable"],
        ["harbour.v1.0.0"],
    )


def test_a_bundle_keeps_its_image_version_apis_and_needs() -> None:
    properties = (
        {"type": "olm.gvk", "value": {"group": "example.com", "kind": "Berth", "version": "v1"}},
        {"type": "olm.gvk.required", "value": {"group": "cert-manager.io", "kind": "Issuer", "version": "v1"}},
        {"type": "olm.bundle.object", "value": {"data": "eHg="}},
    )
    found = read(package(), bundle("1.0.0", properties=properties)).packages["harbour"].bundles["harbour.v1.0.0"]
    assert (found.image, str(found.version), found.apis, found.needs) == (
        "example.com/harbour:1.0.0",
        "1.0.0",
        ("Berth.example.com/v1",),
        ("olm.gvk.required",),
    )


def test_deprecations_are_kept_with_their_words() -> None:
    found = read(package(), bundle("1.0.0"), deprecated("olm.bundle", "harbour.v1.0.0")).packages["harbour"]
    assert found.deprecation_of("harbour.v1.0.0") == "harbour.v1.0.0 is no longer supported"
    assert found.deprecation_of("harbour.v2.0.0") is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<html>503 Service Unavailable</html>", "found none in 1 documents; catalog.json:1: no document of a catalog"),
        ("", "found none in 0 documents"),
        (json.dumps(bundle("1.0.0")), "no olm.package describes it, so it is left out"),
        ('{"schema": "example.com.notes"}', "found none in 1 documents"),
    ],
)
def test_what_has_no_package_is_no_catalog(text: str, words: str) -> None:
    with pytest.raises(InvalidManifest, match="this is no catalog: expected packages") as refused:
        read_text(text)
    assert words in str(refused.value)


def test_a_document_of_a_schema_of_somebodys_own_is_passed_over() -> None:
    assert problems(package(), {"schema": "example.com.notes", "text": "hello"}) == []


@pytest.mark.parametrize(
    ("documents", "words"),
    [
        pytest.param([{"kind": "ConfigMap"}], "no document of a catalog: it has no schema", id="no schema"),
        pytest.param([["a"]], "no document of a catalog: it has no schema", id="a list"),
        pytest.param([bundle("1.0.0")], "no olm.package describes it, so it is left out", id="no package"),
        pytest.param([package(), package()], "package harbour is there twice; the first one counts", id="twice"),
        pytest.param(
            [package(), bundle("1.0.0"), bundle("1.0.0")],
            "bundle harbour.v1.0.0 of package harbour is there twice",
            id="bundle twice",
        ),
        pytest.param([package(), bundle("one")], "bundle harbour.vone: 'one' is no version", id="no version"),
        pytest.param(
            [package(), {**bundle("1.0.0"), "properties": []}],
            "has 0 properties olm.package; expected one",
            id="no properties",
        ),
        pytest.param(
            [package(), {**bundle("1.0.0", of="port"), "package": "harbour"}],
            "calls its package 'port', not 'harbour'",
            id="shadow",
        ),
        pytest.param(
            [package(), channel("stable", {"name": "harbour.v9.0.0"})],
            "names bundles that do not exist: harbour.v9.0.0",
            id="entry without bundle",
        ),
        pytest.param(
            [package(), bundle("1.0.0"), channel("stable", {"name": "harbour.v1.0.0", "skipRange": ">=="})],
            "skipRange is ignored",
            id="range",
        ),
        pytest.param(
            [package(), channel("stable", {"replaces": "a"})], "an entry without name", id="entry without name"
        ),
        pytest.param([package(), channel("stable", 7)], "an entry that is no mapping", id="entry is a number"),
        pytest.param(
            [package(), {**channel("stable"), "entries": {}}], "entries is dict, expected a list", id="entries"
        ),
        pytest.param([package(defaultChannel="gone")], "its default channel gone does not exist", id="default channel"),
        pytest.param([package(), bundle("1.0.0")], "no channel has these bundles: harbour.v1.0.0", id="no channel"),
        pytest.param([package(name="x" * 300)], "name has 300 characters, at most 253", id="long name"),
        pytest.param(
            [
                package(),
                bundle("1.0.0"),
                bundle("1.1.0"),
                channel(
                    "stable",
                    {"name": "harbour.v1.0.0", "replaces": "harbour.v1.1.0"},
                    {"name": "harbour.v1.1.0", "replaces": "harbour.v1.0.0"},
                ),
            ],
            "replace each other in a circle: harbour.v1.0.0, harbour.v1.1.0",
            id="circle",
        ),
        pytest.param(
            [
                package(),
                bundle("1.0.0"),
                bundle("1.1.0"),
                channel("stable", {"name": "harbour.v1.0.0"}, {"name": "harbour.v1.1.0"}),
            ],
            "channel stable has several heads: harbour.v1.0.0, harbour.v1.1.0",
            id="heads",
        ),
    ],
)
def test_what_is_wrong_is_a_problem_that_says_where(documents: list[Any], words: str) -> None:
    found = problems(*documents)
    assert any(words in one for one in found), found


def test_one_bad_package_hides_no_other() -> None:
    found = read(
        package(name="broken", defaultChannel=7), package(), bundle("1.0.0"), channel("s", {"name": "harbour.v1.0.0"})
    )
    assert list(found.packages) == ["harbour"]
    assert [str(one) for one in found.problems] == [
        "package broken, catalog.json:1: defaultChannel is int, expected a text"
    ]


@pytest.mark.parametrize("text", ['{"schema": "olm.package", ', "schema: [olm", "a: 1\na: 2", b"\xff\xfe", "\x00"])
def test_what_cannot_be_parsed_is_a_problem_with_its_line(text: str | bytes) -> None:
    good = json.dumps(package()).encode()
    bad = text.encode() if isinstance(text, str) else text
    found = read_text(good + b"\n---\n" + bad)
    assert list(found.packages) == ["harbour"]
    assert [one.where for one in found.problems] == ["catalog.json:2"]


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (CatalogLimits(max_bytes=100), "max_bytes"),
        (CatalogLimits(max_documents=2), "max_documents"),
        (CatalogLimits(max_document_bytes=50), "max_document_bytes"),
        (CatalogLimits(max_document_nodes=5), "more than 5 values"),
        (CatalogLimits(max_nodes=20), r"the catalog has more than 20 values \(max_nodes\)"),
        (CatalogLimits(max_entries=1), "max_entries"),
    ],
)
def test_a_limit_that_is_passed_is_named(limits: CatalogLimits, words: str) -> None:
    entries = ({"name": "harbour.v1.0.0"}, {"name": "harbour.v1.1.0"})
    with pytest.raises(BundleTooLarge, match=words):
        read(package(), bundle("1.0.0"), bundle("1.1.0"), channel("stable", *entries), limits=limits)


def test_a_channel_with_too_many_entries_is_left_out_in_words() -> None:
    entries = [{"name": f"harbour.v1.0.{number}"} for number in range(1001)]
    found = read(package(), channel("stable", *entries))
    assert found.packages["harbour"].channels == {}
    (one,) = found.problems
    assert str(one) == (
        "package harbour, catalog.json:2: channel stable of package harbour has 1001 entries, at most 1000, so it is "
        "left out"
    )


def test_what_follows_from_what_is_left_out_is_not_told_as_the_publishers_fault() -> None:
    entries = ({"name": "harbour.v1.0.0"}, {"name": "harbour.v1.1.0"})
    limits = CatalogLimits(max_channel_entries=1)
    kept = [package(defaultChannel="stable"), bundle("1.0.0"), channel("fast", {"name": "harbour.vOne"})]
    found = read(*kept, bundle("One"), channel("stable", *entries), package("quay", description=1), limits=limits)
    harbour = found.packages["harbour"]
    assert [str(one).partition(": ")[0] for one in found.problems] == [
        *("package harbour, catalog.json:4", "package harbour, catalog.json:5", "package quay, catalog.json:6")
    ]
    assert "has 2 entries, at most 1" in harbour.unusable_channels["stable"]
    assert harbour.unusable_bundles == {
        "harbour.vOne": "bundle harbour.vOne: 'One' is no version; expected one such as 1.2.3"
    }
    wish = PackageWish("harbour", channels=("stable",))
    answer = choose(wish, [CatalogOffer("a", harbour)])
    assert isinstance(answer, NoChoice)
    assert "has 2 entries, at most 1" in answer.words


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("package.required", {"packageName": "quay", "versionRange": ">=1.2"}, "package quay >=1.2"),
        ("package.required", {"packageName": "quay\0" + "x" * 300}, f"package quay\ufffd{'x' * 248}"),
        ("package.required", {"packageName": ["quay"]}, "olm.package.required: packageName"),
        ("gvk.required", {"group": "e.com", "version": "v1", "kind": "Berth"}, "API e.com/v1 Berth"),
        ("gvk.required", "Berth", "olm.gvk.required"),
        ("constraint", {"failureMessage": "no quay", "all": {}}, "olm.constraint: no quay"),
        ("constraint", {"all": {"constraints": []}, "b\0": 1}, "olm.constraint: all, b\ufffd"),
    ],
)
def test_what_a_bundle_needs_is_said_in_words(kind: str, value: object, words: str) -> None:
    found = read(package(), bundle("1.0.0", properties=({"type": f"olm.{kind}", "value": value},)))
    (one,) = found.packages["harbour"].bundles.values()
    assert (one.needs, one.needed) == ((f"olm.{kind}",), (words,))


def test_what_is_there_in_another_place_is_not_left_out() -> None:
    bad = {**bundle("One"), "name": "harbour.v1.0.0"}
    found = read(package(), bad, bundle("1.0.0"), channel("stable", {"name": "harbour.v1.0.0"}))
    assert found.packages["harbour"].unusable_bundles == {}
    assert len(found.problems) == 1


def test_problems_are_counted_beyond_those_that_are_listed() -> None:
    found = read(package(), *({"no": "schema"} for _ in range(12)), limits=CatalogLimits(max_problems=10))
    assert len(found.problems) == 11
    assert str(found.problems[-1]) == "the catalog: 2 more problems are not listed"


def test_a_description_is_cut_and_nothing_else_is_kept() -> None:
    found = read(package(description="x" * 10_000, icon={"base64data": "eA==", "mediatype": "image/svg+xml"}))
    assert len(found.packages["harbour"].description) == 4096


@pytest.mark.corpus
@pytest.mark.parametrize("folder", sorted((CORPUS / "fbc").glob("*/catalog-*")), ids=lambda path: path.name)
def test_real_catalogs_have_no_problem_and_one_head_a_channel(folder: Any) -> None:
    files = [CatalogFile(file.name, partial(file.open, "rb")) for file in sorted(folder.rglob("*.yaml"))]
    found = read_catalog(files)
    assert found.problems == ()
    assert sum(len(one.bundles) for one in found.packages.values()) == len(list(folder.rglob("bundle-*.yaml")))


def test_a_bundle_whose_version_has_numbers_of_64_bits_follows_by_range() -> None:
    entry = {"name": "harbour.v2.0.0", "skipRange": "<2.0.0"}
    name = "harbour.v1.0.20251128120000"
    found = read(package(), bundle("1.0.20251128120000"), bundle("2.0.0"), channel("stable", {"name": name}, entry))
    assert found.packages["harbour"].bundles[name].version.patch == 20251128120000
    following = successors(found.packages["harbour"].channels["stable"], name, version_of("1.0.20251128120000"))
    assert [one.name for one in following] == ["harbour.v2.0.0"]


CSV = {
    "apiVersion": "operators.coreos.com/v1alpha1",
    "kind": "ClusterServiceVersion",
    "metadata": {"name": "harbour.v1.0.0", "annotations": {"description": "Keeps ships", "capabilities": "Full"}},
    "spec": {"displayName": "Harbour", "provider": {"name": "Port"}, "minKubeVersion": "1.30.0"},
}
CRD = {"kind": "CustomResourceDefinition", "metadata": {"name": "a ClusterServiceVersion needs it"}}
METADATA = {"type": "olm.csv.metadata", "value": {"displayName": "Said in short"}}


def carried(document: Any) -> dict[str, Any]:
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    return {"type": "olm.bundle.object", "value": {"data": base64.b64encode(text).decode()}}


def presented(*properties: dict[str, Any]) -> PackagePresentation:
    with PresentationShelf() as shelf:
        return shelf.of(read(package(), bundle("1.0.0", properties=properties), shelf=shelf).packages["harbour"])


@pytest.mark.parametrize("text", [json.dumps(CSV), yaml.safe_dump(CSV)], ids=["JSON", "YAML"])
def test_the_manifest_of_the_operator_speaks_for_it(text: str) -> None:
    shown = presented(carried(CRD), carried(text.encode()))
    assert (shown.display_name, shown.provider, shown.summary) == ("Harbour", "Port", "Keeps ships")
    assert (shown.facts.kubernetes, shown.facts.capability) == (">=1.30.0", "Full")


def test_what_is_said_in_short_counts_before_the_manifest() -> None:
    assert presented(carried(CSV), METADATA).display_name == "Said in short"


@pytest.mark.parametrize(
    "one",
    [
        pytest.param({"type": "olm.bundle.object", "value": {"data": "%%"}}, id="no base64"),
        pytest.param({"type": "olm.bundle.object", "value": {"data": "é"}}, id="no ASCII"),
        pytest.param({"type": "olm.bundle.object", "value": {"ref": "objects/csv.yaml"}}, id="a file"),
        pytest.param({"type": "olm.bundle.object", "value": 7}, id="a number"),
        pytest.param(carried(b"{ClusterServiceVersion"), id="no JSON"),
        pytest.param(carried(b"ClusterServiceVersion \xff"), id="no UTF-8"),
        pytest.param(carried({**CSV, "kind": "ConfigMap"}), id="another kind"),
        pytest.param(carried({**CSV, "spec": "x", "metadata": 7}), id="nothing in it"),
        pytest.param(carried({**CSV, "padding": "x" * MAX_OBJECT_BYTES}), id="too large"),
        pytest.param(carried({**CSV, "deep": json.loads("[" * 200 + "]" * 200)}), id="too deep"),
        pytest.param(carried({**CSV, "many": [0] * 200_001}), id="too many values"),
    ],
)
def test_a_manifest_that_cannot_be_read_takes_nothing_else_away(one: dict[str, Any]) -> None:
    shown = presented(one)
    assert (shown.display_name, shown.provider) == ("", "")


def test_only_so_many_manifests_of_a_bundle_are_looked_at() -> None:
    assert presented(*[carried(CRD)] * MOST_OBJECTS, carried(CSV)).display_name == ""
