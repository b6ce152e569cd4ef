"""A package's words and icon are kept within bounds, and a picture that could hold a script is not kept at all."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest

from provisioner.catalogs import PackagePresentation, PresentationShelf
from provisioner.catalogs.icons import keeping
from provisioner.catalogs.icons.keeping import MAX_ICON_BYTES
from provisioner.catalogs.presentation import MAX_DESCRIPTION
from tests.support.pictures import GIF, PICTURES, PNG_HEAD, png, svg
from tests.support.provisioner.catalogs import bundle, channel, package, read

HUGE = PNG_HEAD + b"\0\0\0\rIHDR" + struct.pack(">II", 65_500, 65_500)


def presented(*documents: Any) -> PackagePresentation:
    with PresentationShelf() as shelf:
        return shelf.of(read(*documents, shelf=shelf).packages["harbour"])


def told(version: str, **words: Any) -> dict[str, Any]:
    return bundle(version, properties=({"type": "olm.csv.metadata", "value": words},))


def icon(data: bytes, media_type: str) -> dict[str, Any]:
    return package(icon={"mediatype": media_type, "base64data": base64.b64encode(data).decode()})


def test_the_head_of_the_default_channel_speaks_not_the_highest_version() -> None:
    shown = presented(
        package(defaultChannel="stable"),
        told("2.0.0", displayName="Two"),
        told("1.0.0", displayName="One"),
        channel("stable", {"name": "harbour.v1.0.0"}),
    )
    assert shown.display_name == "One"


def test_without_words_of_the_bundle_those_of_the_package_count() -> None:
    shown = presented(package(description="# Harbour\n\nKeeps ships."), bundle("1.0.0"))
    assert (shown.summary, shown.description) == ("Harbour", "# Harbour\n\nKeeps ships.")


def test_words_are_cut_and_hold_no_nul() -> None:
    words = {"displayName": "a\0b\nc" + "x" * 300, "description": "d" * (MAX_DESCRIPTION + 1), "provider": "nobody"}
    shown = presented(package(), told("1.0.0", **words))
    assert shown.display_name.startswith("a\ufffdb cx")
    assert (len(shown.display_name), len(shown.description)) == (253, MAX_DESCRIPTION)
    assert shown.provider == ""


@pytest.mark.parametrize(("data", "media_type"), PICTURES.values(), ids=PICTURES)
def test_a_raster_picture_is_kept(data: bytes, media_type: str) -> None:
    found = presented(icon(data, media_type)).icon
    assert found is not None
    assert (found.data, found.media_type) == (data, media_type)


def test_an_svg_that_is_a_picture_and_nothing_else_is_kept() -> None:
    data = svg("<path d='M0 0h9'/>")
    found = presented(icon(data, "image/svg+xml")).icon
    assert found is not None
    assert (found.data, found.media_type) == (data, "image/svg+xml")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        pytest.param(icon(b"<svg onload='x()'/>", "image/svg+xml"), "it is no SVG that a browser draws", id="svg"),
        pytest.param(icon(b"<svg onload='x()'/>", "image/png"), "its bytes are no image/png", id="svg as png"),
        pytest.param(icon(svg("<script/>"), "image/svg+xml"), "its SVG has scripts", id="a script"),
        pytest.param(icon(svg("") + bytes(MAX_ICON_BYTES), "image/svg+xml"), "more than 131072 bytes", id="large svg"),
        pytest.param(icon(svg(""), "image/x-icon"), "only image/gif, image/jpeg, image/png, image/svg+xml", id="other"),
        pytest.param(icon(b"RIFF....AVI ", "image/webp"), "its bytes are no image/webp", id="another riff"),
        pytest.param(icon(HUGE, "image/png"), "more than 4194304 points", id="few bytes, many points"),
        pytest.param(icon(png(1, 1) + bytes(MAX_ICON_BYTES), "image/png"), "more than 131072 bytes", id="too large"),
        pytest.param(icon(png(40, 40)[:-20], "image/png"), "its bytes are damaged", id="cut off"),
        pytest.param(icon(PNG_HEAD + b"points", "image/png"), "its bytes are damaged", id="a beginning alone"),
        pytest.param(icon(GIF, "image/png"), "its bytes are no image/png", id="another type"),
        pytest.param(package(icon={"mediatype": "image/png", "base64data": "%%"}), "no base64", id="no base64"),
        pytest.param(package(icon={"mediatype": 7, "base64data": "eHg="}), "its type is not said", id="no type"),
    ],
)
def test_any_other_icon_is_left_out_and_it_is_said_why(given: dict[str, Any], why: str) -> None:
    shown = presented(given)
    assert shown.icon is None
    assert why in shown.no_icon


@pytest.mark.parametrize("given", [package(), package(icon="x"), package(icon={"mediatype": "image/png"})])
def test_a_package_without_an_icon_lacks_none(given: dict[str, Any]) -> None:
    shown = presented(given)
    assert (shown.icon, shown.no_icon) == (None, "")


def test_the_icons_of_a_catalog_are_judged_up_to_so_many_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few kilobytes become megabytes of points, of each of some thousand packages."""
    monkeypatch.setattr(keeping, "MAX_POINTS", 2 * 40 * 40)
    names = ("anchor", "berth", "crane")
    packages = [{**icon(png(40, 40), "image/png"), "name": one} for one in names]
    with PresentationShelf() as shelf:
        found = read(*packages, shelf=shelf).packages
        shown = [shelf.of(found[one]) for one in names]
    assert [one.icon is not None for one in shown] == [True, True, False]
    assert shown[2].no_icon == "the icons of this catalog have more than 3200 points together"
