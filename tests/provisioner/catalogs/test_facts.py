"""What a bundle says of itself: where it runs, how it is installed, and who stands behind it, all within bounds."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.catalogs.presentation import (
    MAX_URL,
    MAX_WORD,
    MOST_KEYWORDS,
    MOST_LINKS,
    MOST_MAINTAINERS,
    BundleFacts,
    BundleLink,
    Maintainer,
    PresentationShelf,
    chart_facts,
    operator_facts,
    pack_facts,
    unpack_facts,
)
from tests.support.provisioner.catalogs import bundle, chart, chart_index, package, read, read_charts

TOLD = {
    "annotations": {"capabilities": "Deep Insights"},
    "installModes": [
        {"type": "OwnNamespace", "supported": True},
        {"type": "MultiNamespace", "supported": False},
        {"type": "AllNamespaces", "supported": True},
    ],
    "minKubeVersion": "1.30.0",
    "maturity": "stable",
    "keywords": ["Ships", "moor ings", "ships"],
    "links": [{"name": "Manual", "url": "https://example.com/manual"}],
    "provider": {"name": "Port Authority", "url": "https://port.example.com"},
    "maintainers": [{"name": "Ada", "email": "ada@example.com"}],
}
FACTS = BundleFacts(
    kubernetes=">=1.30.0",
    install_modes=("OwnNamespace", "AllNamespaces"),
    capability="Deep Insights",
    maturity="stable",
    keywords=("Ships", "moor ings"),
    links=(
        BundleLink("Manual", "https://example.com/manual"),
        BundleLink("Port Authority", "https://port.example.com"),
    ),
    maintainers=(Maintainer("Ada", "ada@example.com"),),
)


def told(version: str, **words: Any) -> dict[str, Any]:
    return bundle(version, properties=({"type": "olm.csv.metadata", "value": words},))


def test_an_operator_says_where_and_how_it_runs() -> None:
    with PresentationShelf() as shelf:
        harbour = read(package(), told("1.0.0"), told("1.1.0", **TOLD), shelf=shelf).packages["harbour"]
        assert shelf.of(harbour).facts == FACTS
    kubernetes = {name: one.kubernetes for name, one in harbour.bundles.items()}
    assert kubernetes == {"harbour.v1.0.0": "", "harbour.v1.1.0": ">=1.30.0"}


def test_a_chart_says_where_it_runs_and_where_it_comes_from() -> None:
    entry = chart(
        "1.0.0",
        kubeVersion=">=1.28.0-0",
        appVersion="4.2",
        keywords=["ships", "quay"],
        home="https://example.com",
        sources=["https://git.example.com/harbour", "https://example.com"],
        maintainers=[{"name": "Ada", "email": "ada@example.com"}, {"name": "Bert"}],
    )
    with PresentationShelf() as shelf:
        harbour = read_charts(chart_index(entry), shelf).packages["harbour"]
        found = shelf.of(harbour).facts
    assert found == BundleFacts(
        kubernetes=">=1.28.0-0",
        app_version="4.2",
        keywords=("ships", "quay"),
        links=(BundleLink("Home", "https://example.com"), BundleLink("Source", "https://git.example.com/harbour")),
        maintainers=(Maintainer("Ada", "ada@example.com"), Maintainer("Bert", "")),
    )
    assert harbour.bundles["harbour-1.0.0"].kubernetes == ">=1.28.0-0"


def test_facts_come_back_from_their_document() -> None:
    assert unpack_facts(pack_facts(FACTS)) == FACTS
    assert unpack_facts({}) == BundleFacts()
    assert unpack_facts({**pack_facts(FACTS), "of_a_later_version": 1}) == FACTS


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("javascript:alert(1)", id="a script"),
        pytest.param("data:text/html,x", id="a page of its own"),
        pytest.param("ftp://example.com", id="another scheme"),
        pytest.param("//example.com", id="no scheme"),
        pytest.param("https://", id="no host"),
        pytest.param("https://example.com@evil.example", id="a name before the host"),
        pytest.param("https://exаmple.com", id="letters that look alike"),
        pytest.param("https://example.com/\u202egpj", id="text that runs backwards"),
        pytest.param('https://example.com/"onclick="x', id="quotes"),
        pytest.param("https://example.com/a\nb", id="two lines"),
        pytest.param("https://[example.com", id="half an address"),
        pytest.param(f"https://example.com/{'x' * MAX_URL}", id="too long"),
        pytest.param(7, id="a number"),
        pytest.param(None, id="nothing"),
    ],
)
def test_other_links_are_left_out(url: object) -> None:
    assert operator_facts({"links": [{"name": "Manual", "url": url}]}).links == ()
    assert chart_facts({"home": url, "sources": [url]}).links == ()


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        pytest.param("ships, quay", (), id="a text"),
        pytest.param({"ships": "quay"}, (), id="a mapping"),
        pytest.param(None, (), id="nothing"),
        pytest.param([7, None, ["ships"], {"a": "b"}, "", "  ", "\u200b", "quay"], ("quay",), id="what is no word"),
        pytest.param([f"w{n}" for n in range(10_000)], tuple(f"w{n}" for n in range(MOST_KEYWORDS)), id="many"),
        pytest.param(["w" * 10_240, "quay"], ("w" * (MAX_WORD - 1) + "…", "quay"), id="10 KB"),
        pytest.param(["\u202e" * 10_240, "quay"], ("quay",), id="10 KB that nobody sees"),
        pytest.param(["\u202eya\u2066uq\u200d", "\x1b[31mquay\x07"], ("yauq", "[31mquay"), id="bidi and control"),
        pytest.param(["a\nb\t c\u2028d\x85e"], ("a b c d e",), id="several lines"),
        pytest.param(["Quay", "quay", "QUAY", "Kai"], ("Quay", "Kai"), id="the same in other letters"),
    ],
)
def test_keywords_are_bounded_and_hide_nothing(told: object, kept: tuple[str, ...]) -> None:
    for found in (operator_facts({"keywords": told}), chart_facts({"keywords": told})):
        assert found.keywords == kept
        assert unpack_facts(pack_facts(found)) == found


def test_facts_are_bounded() -> None:
    listed = [{"name": "n" * 300, "url": f"https://example.com/{n}", "email": f"{n}@example.com"} for n in range(100)]
    modes = [{"type": f"Mode{n}", "supported": True} for n in range(100)]
    words = {"minKubeVersion": "1" * 300, "maturity": "m\0" * 300, "installModes": modes}
    found = operator_facts({"links": listed, "maintainers": listed, **words})
    assert (len(found.links), len(found.maintainers)) == (MOST_LINKS, MOST_MAINTAINERS)
    assert len(found.install_modes) == 8
    assert {len(one.name) for one in (*found.links, *found.maintainers)} == {253}
    assert len(found.kubernetes) == len(">=") + 63
    assert "\0" not in found.maturity


@pytest.mark.parametrize("told", ["x", 7, [], {"a": "b"}, [7, "x", {}, {"name": 7, "url": {}}], None])
def test_what_is_no_fact_says_nothing(told: object) -> None:
    keys = ("annotations", "provider", "links", "maintainers", "installModes", "minKubeVersion", "home", "sources")
    said = dict.fromkeys([*keys, "kubeVersion", "appVersion", "maturity"], told)
    text = told if isinstance(told, str) else ""
    assert operator_facts(said) == BundleFacts(kubernetes=f">={text}" if text else "", maturity=text)
    assert chart_facts(said) == BundleFacts(kubernetes=text, app_version=text)
