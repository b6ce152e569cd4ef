"""What the sources of a spec ask for, and what they were resolved to, in words. PURE.

REST shows the spec, the pins and the bundles of a request to the same readers; here no credentials are among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from approvals.bundle_spec import SpecSource
from approvals.models import Request
from provisioner.errors import BadSource
from provisioner.source import GitSource, HttpSource, shown_reference, shown_repository

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


def asked_source(source: SpecSource) -> ShownSource:
    """A source as a spec or a Catalog has it."""
    destination = source.destination or str(source.body.get("destination") or "")
    return ShownSource(
        source.kind,
        _place(source),
        str(source.body.get("package") or "") if source.is_catalog else "",
        (*_wishes(source), *([SourceFact("into folder", destination)] if destination else [])),
    )


def shown_sources(request: Request) -> list[ShownSource]:
    """The sources of a request in the order of its spec, with what they were resolved to; [] of a deletion, which
    takes nothing from them."""
    if request.purpose == Request.Purpose.DELETE:
        return []
    sources = request.bundle_spec.sources
    chosen = {str(one["destination"]): one for one in request.bundles}
    found = []
    for source, pin in zip_longest(sources, request.pins[: len(sources)], fillvalue=None):
        assert source is not None
        bundle = chosen.get(source.destination) if source.is_catalog else None
        shown = asked_source(source)
        became = (*(_bundle(bundle) if bundle else ()), *(_pin(source, bundle, pin) if pin else ()))
        found.append(ShownSource(shown.kind, shown.place, shown.package, shown.asked, became))
    return found


def _place(source: SpecSource) -> str:
    body = source.body
    if source.kind == "configMap":
        namespace = str(body.get("namespace") or source.namespace)
        return "/".join(one for one in (namespace, str(body.get("name") or "")) if one)
    try:
        remote = source.remote()
    except BadSource:
        return ""
    if isinstance(remote, GitSource):
        return shown_repository(remote.repository)
    return shown_reference(remote) if remote else str(body.get("name") or "")


def _wishes(source: SpecSource) -> tuple[SourceFact, ...]:
    kind, body = source.kind, source.body
    if source.is_catalog:
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


def _pin(source: SpecSource, bundle: Record | None, pin: Record) -> tuple[SourceFact, ...]:
    digest = str(pin["digest"])
    if bundle and bundle["image"].endswith(f"@{digest}"):
        return ()
    return (SourceFact("commit" if source.kind == "git" else "digest", digest),)
