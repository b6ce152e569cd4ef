"""What was chosen: the sources of a request and of a deployment, for those who decide and for those who own it."""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from typing import Any

import pytest
from django.core.cache import cache
from django.utils.html import strip_tags

from approvals.bundle_spec import parse_spec
from approvals.models import Request
from approvals.web.requests.sources import asked_source, shown_sources
from provisioner.api_groups import OWN_GROUP
from provisioner.values import AccessAnswer, ChosenBundle
from tests.support.approvals import scene, world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, opened
from tests.support.stored_catalogs import HARBOUR, catalog, stored

DIGEST = f"sha256:{'a' * 64}"
COMMIT = "b" * 40
TAKEN: dict[str, Any] = {"name": "port", "package": "harbour", "channel": "stable", "version": ">=1.0.0 <2.0.0"}
FROM_CATALOG = {"kind": "catalog", "catalog": TAKEN}
CHOSEN = ChosenBundle(
    destination="",
    catalog="port",
    digest="sha256:one",
    package="harbour",
    channel="stable",
    bundle="harbour.v1.1.0",
    version="1.1.0",
    image=f"example.com/harbour@{DIGEST}",
)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"kind": "image", "image": {"ref": "reg.example/app:1.2"}}, "image reg.example/app:1.2"),
        (
            {"kind": "git", "git": {"repository": "https://u:secret@x.example/r", "ref": {"branch": "main"}}},
            "git https://x.example/r, branch main",
        ),
        (
            {"kind": "git", "git": {"repository": "https://x/r", "ref": {"tag": "v1"}, "directory": "deploy"}},
            "git https://x/r, tag v1, directory deploy",
        ),
        (
            {"kind": "http", "http": {"url": "https://x/a.tgz?token=secret", "checksum": DIGEST}},
            f"http https://x/a.tgz, checksum {DIGEST}",
        ),
        ({"kind": "configMap", "configMap": {"name": "local"}}, "configMap shop/local"),
        ({"kind": "configMap", "configMap": {"name": "local", "namespace": "own"}}, "configMap own/local"),
        (FROM_CATALOG, "catalog port, package harbour, channel stable, version >=1.0.0 <2.0.0"),
        (
            {"kind": "catalog", "catalog": {"name": "port", "package": "harbour"}},
            "catalog port, package harbour, any channel, any version",
        ),
        (
            {"kind": "catalog", "catalog": {"selector": {"matchLabels": {"tier": "a"}}, "package": "harbour"}},
            "catalog selected by tier=a, package harbour, any channel, any version",
        ),
        (
            {"kind": "catalog", "catalog": {"selector": {}, "package": "harbour"}},
            "catalog selected from all, package harbour, any channel, any version",
        ),
        ({"kind": "image", "image": {"ref": "a/b"}, "destination": "charts/a"}, "image a/b, into folder charts/a"),
        ({"kind": "oddity", "parameters": {"token": "secret"}}, "oddity"),
        ({"kind": "git", "git": {}}, "git"),
        ({}, ""),
    ],
    ids=lambda it: it[:40] if isinstance(it, str) else "",
)
def test_a_source_is_told_as_it_is_asked_for_and_without_credentials(source: dict[str, Any], words: str) -> None:
    (parsed,) = parse_spec({"installNamespace": "shop", "sources": [source]}).sources
    assert asked_source(parsed).words == words


def test_each_source_says_what_it_was_resolved_to() -> None:
    sources = [
        {"kind": "image", "image": {"ref": "a/b:1"}},
        {"kind": "git", "git": {"repository": "https://x/r", "ref": {"branch": "main"}}, "destination": "git"},
        {"kind": "http", "http": {"url": "https://x/a.tgz"}, "destination": "later"},
    ]
    pins = [{"digest": DIGEST, "destination": ""}, {"digest": COMMIT, "destination": "git"}]
    told = [one.words for one in shown_sources(Request(spec={"sources": sources}, pins=pins))]
    assert told == [
        f"image a/b:1 → digest {DIGEST}",
        f"git https://x/r, branch main, into folder git → commit {COMMIT}",
        "http https://x/a.tgz, into folder later",
    ]


def test_fetched_dependencies_of_a_chart_are_told_after_the_sources() -> None:
    spec = {"sources": [{"kind": "image", "image": {"ref": "a/b:1"}}]}
    values = {"kind": "valuesFrom", "reference": "Secret shop/db", "digest": DIGEST}
    needed = {"kind": "dependency", "reference": "oci://r/base:1.0.0", "digest": DIGEST, "destination": "charts/x.tgz"}
    told = shown_sources(Request(spec=spec, pins=[{"kind": "image", "digest": DIGEST}, values, needed]))
    assert [one.words for one in told][1:] == [f"dependency oci://r/base:1.0.0 → digest {DIGEST}"]


@pytest.mark.parametrize(
    ("bundle", "words"),
    [
        ({}, f"image example.com/harbour@{DIGEST}"),
        ({"image": "example.com/harbour:1"}, f"image example.com/harbour:1, digest {DIGEST}"),
        ({"image": "", "url": "https://u:p@x/harbour.tgz"}, f"chart https://x/harbour.tgz, digest {DIGEST}"),
    ],
    ids=["digest", "tag", "chart"],
)
def test_of_a_catalog_the_chosen_bundle_is_told_with_its_content(bundle: dict[str, Any], words: str) -> None:
    request = Request(
        spec={"sources": [FROM_CATALOG]},
        bundles=[{**asdict(CHOSEN), **bundle}],
        pins=[{"digest": DIGEST, "destination": ""}],
    )
    (told,) = shown_sources(request)
    became = ", ".join(one.words for one in told.became)
    assert became == f"bundle harbour.v1.1.0, version 1.1.0, of channel stable, {words}"


def test_of_selected_catalogs_the_taken_one_is_told_with_the_reason() -> None:
    source = {"kind": "catalog", "catalog": {"selector": {}, "package": "harbour"}}
    taken = replace(CHOSEN, is_selected=True, priority=10, passed_over=("community (priority 0)",))
    (told,) = shown_sources(Request(spec={"sources": [source]}, bundles=[asdict(taken)]))
    words = ", ".join(one.words for one in told.became)
    assert words.startswith("catalog port, by priority 10, before community (priority 0), bundle harbour.v1.1.0,")


def test_a_deletion_takes_nothing_from_its_sources() -> None:
    assert shown_sources(Request(spec={"sources": [FROM_CATALOG]}, purpose=Request.Purpose.DELETE)) == []


def taken_from_catalog(env: World) -> Request:
    """A request under review whose source is a catalog, which is there."""
    stored(catalog(of=env.cluster), *HARBOUR)
    wish = world.spec(sources=[FROM_CATALOG], format="registry-v1")
    request = world.submit_spec(env.cluster, world.seen("quay", wish), env.rita).requests.get()
    pins = [{"kind": "image", "reference": CHOSEN.image, "digest": DIGEST, "destination": ""}]
    scene.reported(request, scene.report_of("image-same-tag-other-bytes"))
    Request.objects.filter(pk=request.pk).update(bundles=[asdict(CHOSEN)], pins=pins)
    return request


def panel(text: str, heading: str) -> str:
    """The panel with this heading, as people read it."""
    (found,) = (one for one in text.split("<section")[1:] if re.search(rf"<h2[^>]*>\s*{heading}\s*</h2>", one))
    return " ".join(strip_tags(found.partition("</section>")[0]).split())


def test_the_overview_says_which_bundle_of_which_catalog_was_chosen(env: World, browse: Browse) -> None:
    request = taken_from_catalog(env)
    text = opened(browse(env.ada), f"/requests/{request.uid}")
    told = panel(text, "Source")
    assert "catalog port, package harbour, channel stable, version &gt;=1.0.0 &lt;2.0.0" in told
    assert (
        "bundle harbour.v1.1.0, version 1.1.0, of channel stable, image example.com/harbour@sha256:aaaaaaaaaaaa…"
        in told
    )
    assert 'href="/catalogs/prod/port/packages/harbour"' in text


def test_the_printed_report_has_a_line_for_each_source(env: World, browse: Browse) -> None:
    text = opened(browse(env.ada), f"/requests/{taken_from_catalog(env).uid}/report.html")
    assert "<p>Source: catalog port, package harbour, channel stable, version &gt;=1.0.0 &lt;2.0.0 → bundle" in text


@pytest.mark.parametrize("address", ["/requests/{}", "/deployments/prod/quay"])
def test_a_catalog_that_the_viewer_may_not_get_is_no_link(
    address: str, env: World, browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, ask = taken_from_catalog(env), env.kubernetes.ask
    address = address.format(request.uid)
    assert 'href="/catalogs/prod/port"' in opened(browse(env.ada), address)
    cache.clear()

    def narrow(cluster: Any, identity: Any, asked: Any) -> AccessAnswer:
        if (asked.group, asked.resource) == (OWN_GROUP, "catalogs"):
            return AccessAnswer(False, "no rule")
        return ask(cluster, identity, asked)

    monkeypatch.setattr(env.kubernetes, "ask", narrow)
    text = opened(browse(env.ada), address)
    assert 'href="/catalogs/prod/port' not in text
    # REST shows the spec to the same readers.
    assert "package harbour" in " ".join(strip_tags(text).split())


def test_a_catalog_that_is_not_there_is_no_link(env: World, browse: Browse) -> None:
    wish = world.spec(sources=[FROM_CATALOG], format="registry-v1")
    request = world.submit_spec(env.cluster, world.seen("quay", wish), env.rita).requests.get()
    text = opened(browse(env.ada), f"/requests/{request.uid}")
    assert "catalog port, package harbour" in panel(text, "Source")
    assert 'href="/catalogs/prod/port' not in text


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({}, "upgradePolicy Request : a newer version makes a request that people decide on (the default)"),
        ({"upgradePolicy": "Manual"}, "upgradePolicy Manual : a newer version is only shown"),
        ({"upgradePolicy": "Automatic"}, "upgradePolicy Automatic : a newer version makes a request that grants"),
    ],
    ids=["default", "manual", "automatic"],
)
def test_a_spec_shows_what_is_pinned_and_what_follows_an_upgrade(
    wanted: dict[str, str], words: str, env: World, browse: Browse
) -> None:
    wish = world.spec(sources=[FROM_CATALOG], format="registry-v1", **wanted)
    world.submit_spec(env.cluster, world.seen("quay", wish), env.rita)
    told = panel(opened(browse(env.ada), "/deployments/prod/quay"), "Spec").replace(" :", ":")
    assert "channel stable, version &gt;=1.0.0 &lt;2.0.0" in told
    assert words.replace(" :", ":") in told


def test_a_spec_shows_how_often_a_source_is_checked(env: World, browse: Browse) -> None:
    sources = [
        {"kind": "image", "image": {"ref": "a/b:1"}, "interval": "1h30m"},
        {"kind": "image", "image": {"ref": "a/c:1"}, "destination": "c"},
        {"kind": "configMap", "configMap": {"name": "local"}, "destination": "d"},
    ]
    world.submit_spec(env.cluster, world.seen("quay", world.spec(sources=sources)), env.rita)
    told = panel(opened(browse(env.ada), "/deployments/prod/quay"), "Spec")
    assert "image a/b:1 interval 1h30m" in told
    assert told.count("interval: set by the operator") == 1
    assert "configMap harbour/local" in told
