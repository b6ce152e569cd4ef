"""What the sources of a spec ask for, and what they were resolved to, in words. PURE.

REST shows the spec, the pins and the bundles of a request to the same readers; here no credentials are among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from django import template

from approvals.bundle_spec import SpecSource, parse_catalog_source, parse_spec
from approvals.catalogs.bundle_choice import read_record
from approvals.models import Request
from provisioner.catalogs.choice import explain_catalog
from provisioner.masking import masked
from provisioner.source import HttpSource
from provisioner.values import DEPENDENCY

# Filters of the templates of these pages.
register = template.Library()

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SourceFact:
    """`channel stable`; a `value` of "" leaves the name to speak for itself: any channel."""

    name: str
    value: str = ""

    @property
    def words(self) -> str:
        return f"{self.name} {self.value}".strip()


@dataclass(frozen=True, slots=True)
class ShownSource:
    """A source as it is asked for: its kind, where it is, and in a catalog the package. `became` is what it was
    resolved to, () where nobody knows yet."""

    kind: str
    place: str
    package: str
    asked: tuple[SourceFact, ...]
    became: tuple[SourceFact, ...] = ()

    @property
    def words(self) -> str:
        """All of it in one line."""
        start = " ".join(part for part in (self.kind, self.place) if part)
        package = [f"package {self.package}"] if self.package else []
        asked = ", ".join([start, *package, *(fact.words for fact in self.asked)])
        became = ", ".join(fact.words for fact in self.became)
        return f"{asked} → {became}" if became else asked


def asked_source(source: SpecSource) -> ShownSource:
    """A source as a spec or a Catalog has it."""
    destination = source.destination or str(source.body.get("destination") or "")
    folder = [SourceFact("into folder", destination)] if destination else []
    if source.type is None:
        return ShownSource(source.kind, "", "", tuple(folder))
    return ShownSource(
        source.kind,
        source.type.place_words(source.body, source.namespace),
        str(source.body.get("package") or "") if source.is_catalog else "",
        (*(SourceFact(*words) for words in source.type.asked_words(source.body)), *folder),
    )


@register.filter("sources_of")
def shown_sources(request: Request) -> list[ShownSource]:
    """The sources of a request in the order of its spec, with what they were resolved to, then the dependencies of its
    chart that were fetched; [] of a deletion, which takes nothing from them."""
    if request.purpose == Request.Purpose.DELETE:
        return []
    sources = request.bundle_spec.sources
    chosen = {str(choice["destination"]): choice for choice in request.bundles}
    found = []
    for source, pin in zip_longest(sources, request.pins[: len(sources)], fillvalue=None):
        assert source is not None
        bundle = chosen.get(source.destination) if source.is_catalog else None
        shown = asked_source(source)
        became = (*(_bundle(bundle) if bundle else ()), *(_pin(source, bundle, pin) if pin else ()))
        found.append(ShownSource(shown.kind, shown.place, shown.package, shown.asked, became))
    for pin in request.pins:
        if pin.get("kind") == DEPENDENCY:
            digest = SourceFact("digest", str(pin["digest"]))
            found.append(ShownSource(DEPENDENCY, masked(str(pin["reference"])), "", (), (digest,)))
    return found


def _bundle(bundle: Record) -> tuple[SourceFact, ...]:
    name, version = str(bundle["bundle"]), str(bundle["version"])
    content = SourceFact("image", str(bundle["image"])) if bundle["image"] else _chart(str(bundle.get("url") or ""))
    chosen = read_record(bundle)
    why = explain_catalog(chosen)
    return (
        *([SourceFact("catalog", chosen.catalog), SourceFact("by", why)] if why else []),
        SourceFact("bundle", name),
        SourceFact("version", version),
        SourceFact("of channel", str(bundle["channel"])),
        *([content] if content else []),
    )


def _chart(url: str) -> SourceFact | None:
    return SourceFact("chart", HttpSource(url).shown) if url else None


def _pin(source: SpecSource, bundle: Record | None, pin: Record) -> tuple[SourceFact, ...]:
    digest = str(pin["digest"])
    if bundle and bundle["image"].endswith(f"@{digest}"):
        return ()
    return (SourceFact(source.type.pin_name if source.type else "digest", digest),)


@register.filter
def source_words(source: Mapping[str, Any]) -> str:
    """The source of a Catalog in one line."""
    return asked_source(parse_catalog_source({"source": source})).words


@register.filter
def without_place(words: str, source: Mapping[str, Any]) -> str:
    """What is said of the source of a Catalog, without where it is, which stands beside it."""
    place = asked_source(parse_catalog_source({"source": source})).place
    return words.removeprefix(f"{place}: ") if place else words


@register.filter
def sources_asked(spec: Mapping[str, Any]) -> list[tuple[SpecSource, ShownSource]]:
    """The sources of a spec, each as it is parsed and in words."""
    return [(source, asked_source(source)) for source in parse_spec(spec).sources]
