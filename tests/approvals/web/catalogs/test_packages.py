"""A package in the browser: its versions and edges, where it runs, and nothing of its publisher's that could do harm."""

from __future__ import annotations

import base64
import re
from typing import Any
from urllib.parse import unquote

import pytest
from django.core.cache import cache
from django.utils import timezone

from approvals.catalogs import bundle_choice
from approvals.models import Catalog
from provisioner.catalogs.presentation import MAX_ICON_BYTES
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, opened, queries, text_of
from tests.support.approvals.revisions import revision
from tests.support.pictures import svg
from tests.support.provisioner.catalogs import bundle, channel, deprecated, package
from tests.support.stored_catalogs import HARBOUR, PNG, catalog, stored, stored_charts, with_words

PAGE = "/catalogs/prod/port/packages/harbour"
CHAIN = ("1.0.0", "1.1.0", "1.2.0")


def port(env: World, *documents: object) -> Catalog:
    row = catalog(of=env.cluster)
    stored(row, *(documents or HARBOUR))
    return row


def chain(*versions: str) -> list[dict[str, Any]]:
    """Each replaces the one before, from 1.0.0 on."""
    names = [f"harbour.v{one}" for one in versions]
    entries = [{"name": name, "replaces": before} for name, before in zip(names, ["", *names], strict=False)]
    return [package(defaultChannel="stable"), *map(bundle, versions), channel("stable", *entries)]


def runs(env: World, name: str, version: str = "") -> None:
    """A deployment of this name that follows the package, of which a version runs where one is named."""
    source = {"kind": "catalog", "catalog": {"name": "port", "package": "harbour", "version": version or ">=0.0.1"}}
    made = world.submit_spec(
        env.cluster, world.seen(name, world.spec(format="registry-v1", sources=[source])), env.rita
    )
    if version:
        bundle_choice.bundles_for(made.requests.get())
        revision(made, 1, "active")


def words_of(text: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def test_a_package_says_what_it_is_and_lists_its_versions_with_what_each_may_follow(env: World, browse: Browse) -> None:
    port(env)
    text = opened(browse(env.ada), PAGE)
    for words in (
        *(
            "Harbour Operator",
            "Port Authority",
            "Keeps ships",
            "<h3>Harbour</h3>",
            "1.1.0",
            "1.0.0",
            "stable (default)",
        ),
        *('replaces <span class="mono">harbour.v1.0.0</span>', "harbour.v1.0.0 is no longer supported"),
    ):
        assert words in text, words
    fast = opened(browse(env.ada), f"{PAGE}?channel=fast")
    assert 'every version in <span class="mono">&gt;=0.1.0 &lt;1.1.0</span>' in fast
    assert 'skips <span class="mono">harbour.v0.9.0</span>' in fast


def test_a_long_reason_of_a_publisher_can_be_opened(env: World, browse: Browse) -> None:
    said = deprecated("olm.bundle", "harbour.v1.0.0")
    said["entries"][0]["message"] = reason = f"{'no longer mended ' * 20}end"
    port(env, *chain(*CHAIN), said)
    text = " ".join(opened(browse(env.ada), PAGE).split())
    assert f'<details class="quiet whole"> <summary> <span class="brief">{reason}</span> </summary> </details>' in text


def test_facts_of_the_publisher_stand_below_the_description_and_hostile_ones_are_text(
    env: World, browse: Browse
) -> None:
    told = with_words(
        bundle("1.0.0"),
        minKubeVersion="1.30.0",
        maturity="<b>stable</b>",
        keywords=["ships", "<i>big & old</i>", "т\u202els"],
        installModes=[{"type": "AllNamespaces", "supported": True}, {"type": "OwnNamespace", "supported": False}],
        annotations={"capabilities": "Deep Insights"},
        maintainers=[{"name": "Ada", "email": "ada@example.com"}],
        links=[{"name": "Manual", "url": "https://example.com/manual"}, {"name": "Evil", "url": "javascript:alert(1)"}],
    )
    port(env, package(defaultChannel="stable"), told, channel("stable", {"name": "harbour.v1.0.0"}))
    about = opened(browse(env.ada), PAGE).partition('id="about"')[2].partition("</section>")[0]
    for words in ("&gt;=1.30.0", "&lt;b&gt;stable&lt;/b&gt;", "AllNamespaces", "Deep Insights", "Ada"):
        assert words in about, words
    assert '<a href="https://example.com/manual" rel="noopener nofollow">Manual</a>' in about
    found = re.findall(r'<a class="label label-plain"\s+href="([^"]+)">([^<]+)</a>', about)
    assert found == [
        ("/catalogs/packages?search=ships", "ships"),
        ("/catalogs/packages?search=%3Ci%3Ebig%20%26%20old%3C%2Fi%3E", "&lt;i&gt;big &amp; old&lt;/i&gt;"),
        ("/catalogs/packages?search=%D1%82ls", "\\u0442ls"),
    ]
    assert "OwnNamespace" not in about
    assert "javascript:" not in about


def test_without_facts_there_is_no_list_of_them(env: World, browse: Browse) -> None:
    port(env, *chain(*CHAIN))
    about = opened(browse(env.ada), PAGE).partition('id="about"')[2].partition("</section>")[0]
    assert "It has none" in about
    assert "<dt>" not in about


def test_what_runs_where_stands_in_the_list_in_the_picture_and_beside_its_version(env: World, browse: Browse) -> None:
    port(env, *chain(*CHAIN))
    runs(env, "lighthouse", "1.1.0")
    runs(env, "buoy")
    text = opened(browse(env.ada), PAGE)
    deployed = text.partition('id="deployed"')[2].partition("</section>")[0]
    assert re.findall(r'href="/deployments/prod/([^"]+)"', deployed) == ["buoy", "lighthouse"]
    assert "nothing of it" in deployed
    assert re.search(r'data-head="runs">1\.1\.0<', deployed)
    assert text.count('class="edge-dot edge-running" cx') == 2, "of 1.1.0, and in the legend"
    assert re.search(r'data-head="runs in">\s+lighthouse\s+<', text)


def test_who_may_not_read_the_cluster_sees_the_package_and_no_deployment(env: World, browse: Browse) -> None:
    port(env, *chain(*CHAIN))
    runs(env, "lighthouse", "1.1.0")
    env.kubernetes.allow("bert", "get", "port")
    text = opened(browse(env.bert), PAGE)
    assert "1.2.0" in text
    assert "lighthouse" not in text
    assert "edge-running" not in text
    assert "deployments/new" not in text, "who may not read the cluster cannot fill in the form"


def test_each_version_leads_to_the_form_with_itself_filled_in(env: World, browse: Browse) -> None:
    port(env, *chain("1.0.0", "1.1.0+2"))
    text = opened(browse(env.ada), PAGE)
    assert "deployments/new" not in text, "ada may create none"
    assert "create" in words_of(text.partition('id="deployed"')[2].partition("</section>")[0])
    env.kubernetes.allow("ada", "create")
    cache.clear()
    text = opened(browse(env.ada), PAGE)
    start = "/deployments/new?cluster=prod&amp;catalog=port&amp;package=harbour&amp;channel=stable"
    found = re.findall(r'href="(/deployments/new[^"]+)"', text)
    assert found == [start, start, f"{start}&amp;version=1.1.0%2B2", f"{start}&amp;version=1.0.0"]


def test_what_has_no_image_or_no_bundle_cannot_be_installed_and_says_why(env: World, browse: Browse) -> None:
    env.kubernetes.allow("ada", "create")
    listed = [package(defaultChannel="stable"), {**bundle("1.0.0"), "image": ""}]
    port(env, *listed, channel("stable", {"name": "harbour.v1.0.0"}, {"name": "harbour.v2.0.0"}))
    text = opened(browse(env.ada), PAGE)
    assert "deployments/new" not in text
    assert "It has no image" in text
    assert "The catalog has no bundle of this name" in text


def test_what_our_limits_or_its_version_leave_out_is_said_as_what_it_is(env: World, browse: Browse) -> None:
    entries = [{"name": f"harbour.v1.{number}.0"} for number in range(1001)]
    port(
        env,
        package(defaultChannel="stable"),
        *(bundle("1.0.0"), {**bundle("One"), "name": "harbour.v2.0.0"}),
        *(channel("stable", *entries), channel("fast", {"name": "harbour.v2.0.0"})),
    )
    text = words_of(opened(browse(env.ada), PAGE))
    assert "Channel stable cannot be used; this is fast . Channel stable of package harbour has 1001 entries" in text
    assert "It cannot be used: bundle harbour.v2.0.0: &#x27;One&#x27; is no version" in text
    picture, _, table = text.partition("Versions of channel fast")
    assert "unusable, head harbour.v2.0.0" in picture
    assert "unusable" in table
    assert "missing" not in text
    for untrue in ("does not exist", "do not exist", "no channel has", "has no bundle of this name"):
        assert untrue not in text.lower(), untrue
    text = words_of(opened(browse(env.ada), f"{PAGE}?channel=fast"))
    assert "What is wrong in the catalog about it" in text
    assert "has 1001 entries, at most 1000" in text


def test_what_a_version_needs_beside_itself_is_said_with_it(env: World, browse: Browse) -> None:
    store = {"type": "olm.package.required", "value": {"packageName": "store", "versionRange": ">=1.2"}}
    berth = {"type": "olm.gvk.required", "value": {"group": "example.com", "version": "v1", "kind": "Berth"}}
    many = tuple({"type": "olm.constraint", "value": {"failureMessage": f"no {n}"}} for n in range(12))
    port(
        env,
        package(defaultChannel="stable"),
        *(bundle("1.0.0", properties=(store, berth)), bundle("1.1.0", properties=many)),
        channel("stable", {"name": "harbour.v1.0.0"}, {"name": "harbour.v1.1.0", "replaces": "harbour.v1.0.0"}),
    )
    text = words_of(opened(browse(env.ada), PAGE))
    new, old = text.partition("harbour.v1.1.0")[2].split("harbour.v1.0.0", 2)[0::2]
    assert "needs package store &gt;=1.2" in old
    assert "needs API example.com/v1 Berth" in old
    assert "needs olm.constraint: no 0" in new
    assert new.count("needs ") == 10
    assert "and 2 more constraints" in new


def test_the_version_that_runs_is_compared_with_nothing_and_the_others_with_it(env: World, browse: Browse) -> None:
    env.kubernetes.allow("ada", "create")
    port(env, *chain("1.0.0", "1.1.0"))
    runs(env, "lighthouse", "1.0.0")
    text = opened(browse(env.ada), PAGE)
    found = re.findall(r'packages/harbour/changes\?([^"]+)"', text)
    assert found == ["from=harbour.v1.0.0&amp;to=1.1.0", "to=1.0.0"]
    for query in found:
        page = opened(browse(env.ada), f"{PAGE}/changes?{query.replace('&amp;', '&')}")
        assert "name two different bundles" not in page


def test_a_chart_is_not_told_in_the_words_of_olm(env: World, browse: Browse) -> None:
    env.kubernetes.allow("ada", "create")
    stored_charts(catalog(of=env.cluster), "1.0.0", "1.1.0", "1.2.0")
    text = words_of(opened(browse(env.ada), PAGE))
    assert "any lower version" in text
    assert "a newer version" in text
    for words in ("replaces", "skips", "skipRange", "every version in"):
        assert words not in text, words
    form = opened(browse(env.ada), "/deployments/new?cluster=prod&catalog=port&package=harbour")
    assert "Set the format to registry-v1" not in form
    assert "helm for a chart" in form


def test_the_problems_of_a_chart_stand_on_its_page(env: World, browse: Browse) -> None:
    stored_charts(catalog(of=env.cluster), "1.0.0", "one")
    text = words_of(opened(browse(env.ada), PAGE))
    assert "&#x27;one&#x27; is no version" in text


@pytest.mark.parametrize(
    ("is_digested", "words"),
    [(True, ""), (False, "The catalog has no digest of this chart")],
    ids=["a digest", "no digest"],
)
def test_a_chart_by_url_can_be_installed_and_compared_where_the_index_has_its_digest(
    is_digested: bool, words: str, env: World, browse: Browse
) -> None:
    env.kubernetes.allow("ada", "create")
    stored_charts(catalog(of=env.cluster), "1.0.0", is_digested=is_digested)
    text = opened(browse(env.ada), PAGE)
    assert ("version=1.0.0" in text, "harbour/changes?to=1.0.0" in text) == (is_digested, is_digested)
    assert words in text


def test_changed_content_under_one_version_is_said_first(env: World, browse: Browse) -> None:
    row = port(env, *chain("1.0.0"))
    moved = [{**one, "image": "example.com/other"} if one["schema"] == "olm.bundle" else one for one in chain("1.0.0")]
    stored(row, *moved, digest="sha256:two")
    text = opened(browse(env.ada), PAGE)
    assert "The same version has other content than before" in text
    assert "example.com/harbour:1.0.0" in text
    assert "changed content" in text
    assert text.count("example.com/harbour:1.0.0") == 1, "the same problem is not told twice"


def test_deprecations_of_package_channel_and_version_are_told(env: World, browse: Browse) -> None:
    about = [("olm.package", ""), ("olm.channel", "stable"), ("olm.bundle", "harbour.v1.0.0")]
    entries = [one for schema, name in about for one in deprecated(schema, name)["entries"]]
    port(env, *chain("1.0.0"), {"schema": "olm.deprecations", "package": "harbour", "entries": entries})
    text = words_of(opened(browse(env.ada), PAGE))
    assert "no longer supports this package" in text
    assert "no longer supports this channel : stable is no longer supported" in text
    assert "harbour.v1.0.0 is no longer supported" in text


def test_hostile_words_are_text_and_hidden_characters_are_seen(env: World, browse: Browse) -> None:
    words = {
        "displayName": "Har\u202ebour<script>alert(1)</script>",
        "description": "<img src=x onerror=alert(1)>\n\n[link](javascript:alert(1)) \u2066hidden\u2069 {{ settings }}",
        "annotations": {"description": "<svg onload=alert(1)>"},
        "provider": {"name": "<b>Port</b>"},
    }
    needs = {"type": "olm.constraint", "value": {"failureMessage": "no\u202e<script>alert(2)</script>"}}
    port(
        env,
        package(defaultChannel="stable"),
        with_words(bundle("1.0.0", properties=(needs,)), **words),
        channel("stable", {"name": "harbour.v1.0.0"}),
    )
    for path in (PAGE, "/catalogs/prod/port"):
        text = opened(browse(env.ada), path)
        for harm in ("<script>alert", "<img src=x", "<svg onload", "<b>Port", "\u202e", "\u2066", 'href="javascript'):
            assert harm not in text, (path, harm)
        assert "Har\\u202ebour" in text
    assert "{{ settings }}" in opened(browse(env.ada), PAGE)
    assert "olm.constraint: no\\u202e&lt;script&gt;alert(2)" in opened(browse(env.ada), PAGE)


def test_an_icon_that_is_not_what_it_says_is_never_shown(env: World, browse: Browse) -> None:
    harm = svg("", onload="alert(1)")
    row = port(env)
    client = browse(env.ada)
    answer = client.get(f"{PAGE}/icon")
    assert (answer.content, answer["Content-Type"], answer["X-Content-Type-Options"]) == (PNG, "image/png", "nosniff")
    assert f'src="{PAGE}/icon"' in opened(client, "/catalogs/prod/port")
    icons = {
        "image/png": (harm, "its bytes are no image/png"),
        "image/svg+xml": (harm + LARGE, "more than 131072 bytes"),
    }
    for media_type, (data, why) in icons.items():
        icon = {"mediatype": media_type, "base64data": base64.b64encode(data).decode()}
        stored(row, package(icon=icon), *chain("1.0.0")[1:], digest=media_type)
        assert client.get(f"{PAGE}/icon").status_code == 404
        text = opened(client, PAGE)
        assert "<img" not in text
        assert '<span class="package-icon"' in text
        assert re.search(f"Its icon is not shown: [^.]*{why}", text)
        assert "onload" not in text
    assert client.get("/catalogs/prod/port/packages/nothing/icon").status_code == 404
    assert browse(env.bert).get(f"{PAGE}/icon").status_code == 403


LARGE = bytes(MAX_ICON_BYTES)


def test_an_svg_stands_in_no_page_and_its_address_lets_nothing_run(env: World, browse: Browse) -> None:
    data = svg('<script>alert("in no page")</script>', onload="alert(1)")
    icon = {"mediatype": "image/svg+xml", "base64data": base64.b64encode(data).decode()}
    port(env, package(icon=icon, defaultChannel="stable"), *chain("1.0.0")[1:])
    client = browse(env.ada)
    answer = client.get(f"{PAGE}/icon")
    assert (answer.status_code, answer.content, answer["Content-Type"]) == (200, data, "image/svg+xml")
    assert answer["Content-Security-Policy"] == "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    assert answer["X-Content-Type-Options"] == "nosniff"
    # In pages of several packages one that draws for minutes would stop all of them.
    for path, is_drawn in ((PAGE, True), ("/catalogs/prod/port", False), ("/catalogs/packages?search=harbour", False)):
        text = opened(client, path)
        assert (re.search(rf'<img class="package-icon"\s+src="{PAGE}/icon"', text) is not None) is is_drawn, path
        assert "in no page" not in text
        assert "data:image" not in text
        assert icon["base64data"][:40] not in text


def test_a_circle_is_said_and_drawn(env: World, browse: Browse) -> None:
    entries = [
        {"name": "harbour.v1.0.0", "replaces": "harbour.v1.1.0"},
        {"name": "harbour.v1.1.0", "replaces": "harbour.v1.0.0"},
    ]
    port(env, package(defaultChannel="stable"), bundle("1.0.0"), bundle("1.1.0"), channel("stable", *entries))
    text = opened(browse(env.ada), PAGE)
    assert "replace each other in a circle" in text
    assert text.count('<g class="edge-line">') == 2


def test_ten_thousand_channels_are_bounded_and_any_can_be_typed(env: World, browse: Browse) -> None:
    names = [f"channel-{number:05}" for number in range(10_000)]
    entry = {"name": "harbour.v1.0.0"}
    port(env, package(defaultChannel="channel-00007"), bundle("1.0.0"), *(channel(name, entry) for name in names))
    client = browse(env.ada)
    text = opened(client, PAGE)
    assert "10000 channels; only the first 200 are offered" in " ".join(text.split())
    assert len(text) < 60_000
    assert 'value="channel-00007"' in text
    assert "channel-09999" in opened(client, f"{PAGE}?channel=channel-09999")
    assert "There is no channel" in opened(client, f"{PAGE}?channel=channel-10000")


def test_a_channel_of_a_thousand_versions_comes_in_pages(env: World, browse: Browse) -> None:
    port(env, *chain(*(f"1.{number}.0" for number in range(1000))))
    client = browse(env.ada)
    text = " ".join(opened(client, PAGE).split())
    assert "1 to 50 of 1000" in text
    assert "the 40 highest versions" in text
    assert "960 lower ones" in text
    assert "harbour.v1.949.0" in opened(client, f"{PAGE}?page=2")


def test_a_package_costs_as_many_queries_however_large_it_is(env: World, browse: Browse) -> None:
    row = port(env, *chain("1.0.0"))
    runs(env, "buoy-0", "1.0.0")
    client = browse(env.ada)
    client.get(PAGE)
    few = queries(client, PAGE)
    stored(row, *chain(*(f"1.{number}.0" for number in range(80))), digest="sha256:two")
    for number in range(1, 6):
        runs(env, f"buoy-{number}", "1.3.0")
    assert queries(client, PAGE) == few <= 18


@pytest.mark.parametrize("page", ["", "/changes"])
@pytest.mark.parametrize("name", ["nothing", "Harbour", "%2e%2e"])
def test_a_package_that_is_not_there_is_not_found_and_said(env: World, browse: Browse, name: str, page: str) -> None:
    port(env)
    answer = browse(env.ada).get(f"/catalogs/prod/port/packages/{name}{page}")
    assert answer.status_code == 404
    text = words_of(text_of(answer))
    assert f"has no package named {unquote(name)} ." in text
    assert "was read just now and has 1 package" in text
    assert "check the name, which the publisher chose" in text
    assert "It had the package until" not in text


def test_a_package_that_was_taken_out_says_until_when_it_was_there_and_who_takes_it(env: World, browse: Browse) -> None:
    row = port(env)
    runs(env, "lighthouse", "1.1.0")
    stored(row, package("quay"), digest="sha256:two")
    answer = browse(env.ada).get(PAGE)
    assert answer.status_code == 404
    text = words_of(text_of(answer))
    assert f"It had the package until {timezone.now():%Y-%m-%d}" in text
    assert "ask its publisher what replaces the package" in text
    assert 'href="/deployments/prod/lighthouse"' in text_of(answer)
    env.kubernetes.allow("bert", "get", "port")
    text = text_of(browse(env.bert).get(PAGE))
    assert "It had the package until" in text
    assert "lighthouse" not in text, "bert may not read the deployments of the cluster"
    assert "check the name" in text, "and is told nothing that hints at them"


def test_where_the_catalog_was_never_read_nobody_says_that_the_package_is_not_there(env: World, browse: Browse) -> None:
    catalog(of=env.cluster, problem="no route to host", problem_code="unreachable", problem_since=timezone.now())
    answer = browse(env.ada).get(PAGE)
    assert answer.status_code == 404
    text = words_of(text_of(answer))
    assert "Nothing of the catalog was read yet" in text
    assert "no route to host" in text
    assert "has no package" not in text


@pytest.mark.parametrize("path", ["", "/again", "/packages/harbour", "/packages/harbour/changes"])
def test_a_catalog_that_is_not_there_is_said_to_who_might_get_it(env: World, browse: Browse, path: str) -> None:
    answer = browse(env.ada).get(f"/catalogs/prod/port{path}")
    assert answer.status_code == 404
    assert "Cluster prod has no Catalog port" in text_of(answer)
    answer = browse(env.bert).get(f"/catalogs/prod/port{path}")
    assert answer.status_code == 403
    assert "has no Catalog" not in text_of(answer)


def test_a_package_without_channels_says_that_nothing_can_be_installed(env: World, browse: Browse) -> None:
    port(env, package(), bundle("1.0.0"))
    text = opened(browse(env.ada), PAGE)
    assert "This package has no channels" in text
    assert "no channel has these bundles" in text.lower()
