"""A package's words and icon are kept within bounds."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from provisioner.catalogs.presentation import MAX_DESCRIPTION, MAX_ICON_BYTES, PackagePresentation, PresentationShelf
from tests.support.pictures import GIF, svg
from tests.support.provisioner.catalogs import bundle, channel, package, read


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


def test_an_icon_of_the_package_is_kept() -> None:
    found = presented(icon(GIF, "image/GIF")).icon
    assert found is not None
    assert (found.data, found.media_type) == (GIF, "image/gif")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        pytest.param(icon(svg("") + bytes(MAX_ICON_BYTES), "image/svg+xml"), "more than 131072 bytes", id="large svg"),
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
