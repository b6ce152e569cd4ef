"""Catalogs in a real browser: hostile words and icons break no page, and the picture says what the table says."""

from __future__ import annotations

import base64
from typing import Any

import playwright.sync_api as pw
import pytest
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from tests.browser.complaints import OPEN_ALL, complaints, listen, wider_than
from tests.browser.conftest import SignIn
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.pictures import PICTURES
from tests.support.provisioner.catalogs import bundle, channel, deprecated, package
from tests.support.stored_catalogs import HARBOUR, PNG, catalog, stored, with_words

LONG = "n" * 150
HARM = "\u202e<img src=x onerror=alert(1)>" + "w" * 600
VERSIONS = ("1.0.0", f"1.1.0-{'x' * 60}", f"2.0.0+{'y' * 60}")


def hostile(env: World) -> list[str]:
    """The addresses of pages about a catalog with words as long and as misleading as one may have."""
    source = {"kind": "http", "http": {"url": f"https://example.com/{'u' * 400}"}}
    row = catalog("c" * 200, of=env.cluster, problem=HARM, problem_code="source-unavailable")
    row.spec = {"source": source}
    row.save()
    names = [f"{LONG}.v{one}" for one in VERSIONS]
    words = {
        "displayName": HARM,
        "description": f"{HARM}\n" * 5,
        "annotations": {"description": HARM},
        "provider": {"name": HARM},
        "keywords": [HARM, *("k" * 100 + str(at) for at in range(3)), *(f"k {at}" for at in range(100))],
    }
    icon = {"mediatype": "image/png", "base64data": base64.b64encode(PNG).decode()}
    entries: list[dict[str, Any]] = [
        {"name": names[0], "replaces": names[2]},
        {"name": names[1], "replaces": names[0], "skips": [f"{LONG}.v0.{at}.0" for at in range(50)]},
        {"name": names[2], "replaces": names[1], "skipRange": "<2.0.0"},
        {"name": "m" * 250},
    ]
    bundles = [with_words(bundle(one, LONG), **words) for one in VERSIONS]
    stored(
        row,
        package(LONG, defaultChannel="d" * 200, icon=icon),
        *bundles,
        channel("d" * 200, *entries, of=LONG),
        *(deprecated(schema, name, LONG) for schema, name in (("olm.package", ""), ("olm.bundle", names[0]))),
    )
    return ["/catalogs", f"/catalogs/prod/{row.name}", f"/catalogs/prod/{row.name}/packages/{LONG}"]


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.thorough)])
def test_hostile_words_and_icons_break_no_page(
    scheme: str, env: World, live_server: LiveServer, sign_in: SignIn
) -> None:
    addresses = hostile(env)
    env.kubernetes.allow("ada", "create")
    page = sign_in(env.ada)
    heard = listen(page)
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type] # one of the two words that it takes
    wrong: dict[str, list[str]] = {}
    for address in addresses:
        page.goto(f"{live_server.url}{address}")
        page.evaluate(OPEN_ALL)
        if found := complaints(page) + wider_than(page, 1280, 360):
            wrong[address[:20]] = found
    assert wrong == {}
    assert heard == []
    assert page.locator("main img").count() == 1, "the icon, which no words add to"


def test_the_picture_says_no_more_than_the_table(env: World, live_server: LiveServer, sign_in: SignIn) -> None:
    entries: list[dict[str, Any]] = [
        {"name": "harbour.v1.0.0"},
        {"name": "harbour.v1.1.0", "replaces": "harbour.v1.0.0"},
        {"name": "harbour.v2.0.0", "replaces": "harbour.v1.1.0", "skips": ["harbour.v1.0.0"]},
    ]
    row = catalog(of=env.cluster)
    bundles = [bundle(one) for one in ("1.0.0", "1.1.0", "2.0.0")]
    stored(row, package(defaultChannel="stable"), *bundles, channel("stable", *entries))
    page = sign_in(env.ada)
    page.goto(f"{live_server.url}/catalogs/prod/port/packages/harbour")
    pw.expect(page.get_by_role("img", name="Upgrades in channel stable")).to_be_visible()
    assert page.locator(".edges .edge-line").count() == 2
    table = page.get_by_role("table", name="Versions of channel stable")
    told = [" ".join(one.split()) for one in table.locator("tbody td:nth-child(2)").all_inner_texts()]
    assert told == [
        "replaces harbour.v1.1.0 skips harbour.v1.0.0",
        "replaces harbour.v1.0.0",
        "none: it can only be installed anew",
    ]


def test_a_high_picture_is_not_cut_and_says_what_it_leaves_out(
    env: World, live_server: LiveServer, sign_in: SignIn
) -> None:
    versions = [f"1.{at}.0" for at in range(30)]
    entries = [{"name": f"harbour.v{one}", "skipRange": f"<{one}"} for one in versions]
    described = [package(defaultChannel="stable"), *map(bundle, versions), channel("stable", *entries)]
    stored(catalog(of=env.cluster), *described)
    page = sign_in(env.ada)
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"{live_server.url}/catalogs/prod/port/packages/harbour")
    # Of 29 * 30 / 2 ranges those into the head are drawn.
    pw.expect(page.get_by_text("406 upgrades between these versions are not drawn")).to_be_visible()
    assert page.locator(".edges").evaluate("one => one.scrollHeight <= one.clientHeight")
    assert complaints(page) == []


def test_long_reasons_can_be_opened_and_paper_breaks_no_short_word(
    env: World, live_server: LiveServer, sign_in: SignIn
) -> None:
    row = catalog(of=env.cluster, problem="no route to host " * 30, problem_code="unreachable")
    stored(row, *HARBOUR)
    for name in ("lighthouse", "quays"):
        source = {"kind": "catalog", "catalog": {"name": "port", "package": "harbour"}}
        wish = world.spec(format="registry-v1", sources=[source])
        world.submit_spec(env.cluster, world.seen(name, wish), env.rita)
    page = sign_in(env.ada)
    page.goto(f"{live_server.url}/catalogs")
    reason = page.locator(".whole .brief")
    is_cut = "one => one.scrollHeight > one.clientHeight + 1"
    assert reason.evaluate(is_cut)
    page.locator(".whole > summary").click()
    assert not reason.evaluate(is_cut)
    page.goto(f"{live_server.url}/catalogs/prod/port/packages/harbour")
    page.set_viewport_size({"width": 640, "height": 900})
    page.emulate_media(media="print")
    told = page.get_by_text("nothing of it").first
    # A word that is broken takes more lines than there are words.
    lines = told.evaluate(
        "one => { const r = document.createRange(); r.selectNodeContents(one);"
        " return new Set([...r.getClientRects()].map((it) => it.top)).size }"
    )
    assert lines <= 3


def test_on_a_telephone_a_package_stands_beside_its_icon(
    env: World, addresses: dict[str, str], sign_in: SignIn
) -> None:
    page = sign_in(env.ada)
    page.set_viewport_size({"width": 390, "height": 800})
    for name in ("catalog", "catalog-search"):
        page.goto(addresses[name])
        row = page.locator("tbody tr", has=page.locator("img.package-icon"))
        icon, link = row.locator("img").bounding_box(), row.locator("a").first.bounding_box()
        assert icon and link, name
        assert link["x"] > icon["x"] + icon["width"], name


def test_packages_come_into_the_page_once_the_catalog_has_been_read(
    env: World, live_server: LiveServer, sign_in: SignIn
) -> None:
    row = catalog(of=env.cluster, reading_since=timezone.now())
    page = sign_in(env.ada)
    heard = listen(page)
    page.goto(f"{live_server.url}/catalogs/prod/port")
    pw.expect(page.get_by_text("The catalog is being read.")).to_be_visible()
    stored(row, *HARBOUR)
    pw.expect(page.get_by_role("link", name="harbour")).to_be_visible()
    pw.expect(page.locator("#catalog[hx-get]")).to_have_count(0)
    assert heard == []


def test_a_browser_draws_every_icon_that_is_kept(env: World, live_server: LiveServer, sign_in: SignIn) -> None:
    names = {kind.replace(" ", "-"): picture for kind, picture in PICTURES.items()}
    described = [
        package(name, icon={"mediatype": media_type, "base64data": base64.b64encode(data).decode()})
        for name, (data, media_type) in names.items()
    ]
    stored(catalog(of=env.cluster), *described, package("without"))
    page = sign_in(env.ada)
    heard = listen(page)
    page.goto(f"{live_server.url}/catalogs/prod/port")
    icons = page.locator("main img.package-icon")
    pw.expect(icons).to_have_count(len(names))
    for icon in icons.all():
        icon.evaluate("one => one.decode()")
    assert heard == []
