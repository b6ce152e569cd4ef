"""Packages of any name that a catalog may give them: each has its page, and all that leads on from there."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from approvals.models import BundleComparison
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, opened
from tests.support.provisioner.catalogs import bundle, channel, package
from tests.support.stored_catalogs import HARBOUR, catalog, stored

NAMES = ["port/harbour", "port/harbour/icon", "..", "/", "~1", "100% ?#;&\\\"'<b>", "Hafen für Schiffe"]


def documents(name: str) -> list[dict[str, Any]]:
    first, second = f"{name}.v1.0.0", f"{name}.v1.1.0"
    entries = ({"name": first}, {"name": second, "replaces": first})
    described = package(name, defaultChannel="stable", icon=HARBOUR[0]["icon"])
    return [described, bundle("1.0.0", name), bundle("1.1.0", name), channel("stable", *entries, of=name)]


def links(text: str, beginning: str) -> list[str]:
    found = [unescape(one) for one in re.findall(r'(?:href|src)="([^"]+)"', text)]
    return [one for one in found if one.startswith(beginning)]


@pytest.mark.parametrize("name", NAMES)
def test_every_package_has_its_page_its_icon_and_what_can_be_done_with_it(
    here: World, browse: Browse, name: str
) -> None:
    stored(catalog(of=here.cluster), *documents(name))
    here.kubernetes.allow("ada", "create")
    client = browse(here.ada)
    icon, address = links(opened(client, "/catalogs/prod/port"), "/catalogs/prod/port/packages/")
    assert icon == f"{address}/icon"
    assert (urlsplit(address).query, address.count("/")) == ("", 5)
    text = opened(client, address)
    assert f"{name}.v1.1.0" in unescape(text)
    assert icon in links(text, address)
    assert client.get(icon)["Content-Type"] == "image/png"
    wishes = [parse_qs(urlsplit(one).query) for one in links(text, "/deployments/new")]
    assert {one["package"][0] for one in wishes} == {name}
    opened(client, links(text, "/deployments/new")[0])
    changes = links(text, f"{address}/changes?")[0]
    opened(client, changes)
    assert client.post(changes, {"to": "1.1.0"}, follow=True).status_code == 200
    assert BundleComparison.objects.get().wish["package"] == name


@pytest.mark.parametrize("name", ["nothing", "port/harbour", "port~1quay"])
def test_another_name_in_the_address_is_not_found(here: World, browse: Browse, name: str) -> None:
    stored(catalog(of=here.cluster), *documents("port/harbour"))
    assert browse(here.ada).get(f"/catalogs/prod/port/packages/{quote(name, safe='/')}").status_code == 404
