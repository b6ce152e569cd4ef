"""What the sources of a spec ask for, and what they were resolved to, in words. PURE.

REST shows the spec, the pins and the bundles of a request to the same readers; here no credentials are among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from django import template

from approvals.models import Request
from approvals.source_refs import CATALOG, body_of, listed_sources, remote_source
from provisioner.errors import BadSource
from provisioner.source import GitSource, HttpSource, shown_reference, shown_repository

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
        start = " ".join(one for one in (self.kind, self.place) if one)
        package = [f"package {self.package}"] if self.package else []
        asked = ", ".join([start, *package, *(one.words for one in self.asked)])
        became = ", ".join(one.words for one in self.became)
        return f"{asked} → {became}" if became else asked


def asked_source(source: Record, install_namespace: str = "") -> ShownSource:
    """A source as a spec or a Catalog has it."""
    kind, body = str(source.get("kind") or ""), body_of(source)
    destination = str(source.get("destination") or body.get("destination") or "")
    return ShownSource(
        kind,
        _place(source, install_namespace),
        str(body.get("package") or "") if kind == CATALOG else "",
        (*_wishes(source), *([SourceFact("into folder", destination)] if destination else [])),
    )


@register.filter("sources_of")
def shown_sources(request: Request) -> list[ShownSource]:
    """The sources of a request in the order of its spec, with what they were resolved to; [] of a deletion, which
    takes nothing from them."""
    if request.purpose == Request.Purpose.DELETE:
        return []
    sources, namespace = listed_sources(request.spec), str(request.spec.get("installNamespace") or "")
    chosen = {str(one["destination"]): one for one in request.bundles}
    found = []
    for source, pin in zip_longest(sources, request.pins[: len(sources)], fillvalue=None):
        assert source is not None
        bundle = chosen.get(str(source.get("destination") or "")) if source.get("kind") == CATALOG else None
        shown = asked_source(source, namespace)
        became = (*(_bundle(bundle) if bundle else ()), *(_pin(source, bundle, pin) if pin else ()))
        found.append(ShownSource(shown.kind, shown.place, shown.package, shown.asked, became))
    return found


def _place(source: Record, install_namespace: str) -> str:
    kind, body = source.get("kind"), body_of(source)
    if kind == "configMap":
        namespace = str(body.get("namespace") or install_namespace)
        return "/".join(one for one in (namespace, str(body.get("name") or "")) if one)
    try:
        remote = remote_source(source, "")
    except BadSource:
        return ""
    if isinstance(remote, GitSource):
        return shown_repository(remote.repository)
    return shown_reference(remote) if remote else str(body.get("name") or "")


def _wishes(source: Record) -> tuple[SourceFact, ...]:
    kind, body = source.get("kind"), body_of(source)
    if kind == CATALOG:
        channel, versions = str(body.get("channel") or ""), str(body.get("version") or "")
        edges = str(body.get("upgradeConstraintPolicy") or "")
        return (
            SourceFact("channel", channel) if channel else SourceFact("any channel"),
            SourceFact("version", versions) if versions else SourceFact("any version"),
            *([SourceFact("upgradeConstraintPolicy", edges)] if edges else []),
        )
    if kind == "git":
        ref = body.get("ref") or {}
        named = [SourceFact(name, str(ref[name])) for name in ("commit", "branch", "tag") if ref.get(name)]
        folder = str(body.get("directory") or "")
        return (*named, *([SourceFact("directory", folder)] if folder else []))
    checksum = str(body.get("checksum") or "") if kind == "http" else ""
    return (SourceFact("checksum", checksum),) if checksum else ()


def _bundle(bundle: Record) -> tuple[SourceFact, ...]:
    name, version = str(bundle["bundle"]), str(bundle["version"])
    content = SourceFact("image", str(bundle["image"])) if bundle["image"] else _chart(str(bundle.get("url") or ""))
    return (
        SourceFact("bundle", name),
        SourceFact("version", version),
        SourceFact("of channel", str(bundle["channel"])),
        *([content] if content else []),
    )


def _chart(url: str) -> SourceFact | None:
    return SourceFact("chart", shown_reference(HttpSource(url))) if url else None


def _pin(source: Record, bundle: Record | None, pin: Record) -> tuple[SourceFact, ...]:
    digest = str(pin["digest"])
    if bundle and bundle["image"].endswith(f"@{digest}"):
        return ()
    return (SourceFact("commit" if source.get("kind") == "git" else "digest", digest),)


@register.filter
def source_words(source: Mapping[str, Any]) -> str:
    """The source of a Catalog in one line."""
    return asked_source(source).words


@register.filter
def without_place(words: str, source: Mapping[str, Any]) -> str:
    """What is said of the source of a Catalog, without where it is, which stands beside it."""
    place = asked_source(source).place
    return words.removeprefix(f"{place}: ") if place else words


@register.filter
def sources_asked(spec: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], ShownSource]]:
    """The sources of a spec, each as it is written and in words."""
    namespace = str(spec.get("installNamespace") or "")
    return [(one, asked_source(one, namespace)) for one in listed_sources(spec)]
