"""What a bundle says of itself that decides whether somebody finds and can use it: keywords, which Kubernetes
it is for, how it can be installed, how mature it is, and who stands behind it. All of it is its publisher's word. PURE.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from provisioner.catalogs.texts import line_of
from provisioner.json_values import as_mapping, mappings_in

MOST_LINKS = 20
MOST_MAINTAINERS = 20
MOST_INSTALL_MODES = 8
MOST_KEYWORDS = 30
MAX_URL = 1024
MAX_WORD = 63
# In a chart's index, by the name that a link gets. Many charts say the same in both.
CHART_LINKS = (("home", "Home"), ("sources", "Source"))


@dataclass(frozen=True, slots=True)
class BundleLink:
    """A link that its publisher gives. Only http and https are kept, and no address that holds a user's name."""

    name: str
    url: str


@dataclass(frozen=True, slots=True)
class Maintainer:
    """Who maintains it; either may be ""."""

    name: str
    email: str


@dataclass(frozen=True, slots=True)
class BundleFacts:
    """Each "" or empty where the bundle does not say it.

    `kubernetes` is the range of Kubernetes versions that it is for, as its publisher writes it; `install_modes` are
    those of OLM that it supports, such as AllNamespaces; `capability` is how much the operator does, such as Deep
    Insights; `app_version` is what a chart installs; `keywords` are words by which people may look for it.
    """

    kubernetes: str = ""
    install_modes: tuple[str, ...] = ()
    capability: str = ""
    maturity: str = ""
    app_version: str = ""
    keywords: tuple[str, ...] = ()
    links: tuple[BundleLink, ...] = ()
    maintainers: tuple[Maintainer, ...] = ()


def facts_of_operator(value: Mapping[str, Any]) -> BundleFacts:
    """Those of the property olm.csv.metadata, which has the fields of a ClusterServiceVersion's spec."""
    annotations, provider = as_mapping(value.get("annotations")), as_mapping(value.get("provider"))
    links = [(one.get("name"), one.get("url")) for one in mappings_in(value.get("links"))]
    return BundleFacts(
        kubernetes=kubernetes_of_operator(value),
        install_modes=tuple(islice(_install_modes(value.get("installModes")), MOST_INSTALL_MODES)),
        capability=line_of(annotations.get("capabilities"), MAX_WORD),
        maturity=line_of(value.get("maturity"), MAX_WORD),
        keywords=_keywords(value.get("keywords")),
        links=_links([*links, (provider.get("name"), provider.get("url"))]),
        maintainers=_maintainers(value.get("maintainers")),
    )


def facts_of_chart(entry: Mapping[str, Any]) -> BundleFacts:
    """Those of a version in the index of a Helm repository."""
    links = [
        (name, url)
        for key, name in CHART_LINKS
        for url in (entry[key] if isinstance(entry.get(key), list) else [entry.get(key)])
    ]
    return BundleFacts(
        kubernetes=kubernetes_of_chart(entry),
        app_version=line_of(entry.get("appVersion"), MAX_WORD),
        keywords=_keywords(entry.get("keywords")),
        links=_links(links),
        maintainers=_maintainers(entry.get("maintainers")),
    )


def kubernetes_of_operator(value: Mapping[str, Any]) -> str:
    """The range of Kubernetes versions that an operator is for; "" where it does not say it."""
    least = line_of(value.get("minKubeVersion"), MAX_WORD)
    return f">={least}" if least else ""


def kubernetes_of_chart(entry: Mapping[str, Any]) -> str:
    """The same of a chart, which says a range."""
    return line_of(entry.get("kubeVersion"))


def packed_facts(facts: BundleFacts) -> dict[str, Any]:
    """The document of `unpacked_facts`, without what is not said."""
    return {name: value for name, value in asdict(facts).items() if value}


_FIELDS = {one.name for one in fields(BundleFacts)}


def unpacked_facts(document: Mapping[str, Any]) -> BundleFacts:
    """Of an edition that was stored before there were facts, the document is empty; a later version may know more."""
    said = {name: document[name] for name in document.keys() & _FIELDS}
    said["install_modes"] = tuple(said.get("install_modes", ()))
    said["keywords"] = tuple(said.get("keywords", ()))
    said["links"] = tuple(BundleLink(**one) for one in said.get("links", ()))
    said["maintainers"] = tuple(Maintainer(**one) for one in said.get("maintainers", ()))
    return BundleFacts(**said)


def _install_modes(listed: object) -> Iterator[str]:
    for one in mappings_in(listed):
        name = line_of(one.get("type"), MAX_WORD)
        if name and one.get("supported") is True:
            yield name


def _keywords(listed: object) -> tuple[str, ...]:
    """Each once, in whatever letters it is written, in the publisher's order."""
    kept: dict[str, str] = {}
    for one in listed if isinstance(listed, list) else ():
        if word := line_of(_without_hidden(one), MAX_WORD):
            kept.setdefault(word.lower(), word)
        if len(kept) == MOST_KEYWORDS:
            break
    return tuple(kept.values())


def _without_hidden(value: object) -> str:
    """The text without control, bidi and zero-width characters: nobody types them into a search."""
    text = value[: MAX_WORD * 4] if isinstance(value, str) else ""
    return "".join(one for one in text if one.isprintable() or one.isspace())


def _links(told: Iterable[tuple[object, object]]) -> tuple[BundleLink, ...]:
    """Each address once, in the publisher's order."""
    kept: dict[str, BundleLink] = {}
    for name, url in told:
        if isinstance(url, str) and _is_safe(url := url.strip()):
            kept.setdefault(url, BundleLink(line_of(name) or url, url))
    return tuple(islice(kept.values(), MOST_LINKS))


def _is_safe(url: str) -> bool:
    if len(url) > MAX_URL or not url.isascii() or not url.isprintable() or set(url) & set(' "<>\\^`{|}'):
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        return False


def _maintainers(listed: object) -> tuple[Maintainer, ...]:
    told = (Maintainer(line_of(one.get("name")), line_of(one.get("email"))) for one in mappings_in(listed))
    return tuple(islice((one for one in dict.fromkeys(told) if one.name or one.email), MOST_MAINTAINERS))
