"""A package of a catalog as a source in a spec: what is written, and what it asks the catalog for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from provisioner.catalogs.choice import PackageWish, UpgradeEdges
from provisioner.errors import BadSource, InvalidRange
from provisioner.source import SourceField, SourceType, needed
from provisioner.values import JsonObject
from provisioner.versions import constraint_of


class CatalogSource(SourceType):
    """It is resolved to an image or archive by what the catalog offers."""

    kind = "catalog"
    label = "Package of a catalog"
    fields = (
        SourceField(
            "catalog", "Catalog", "The name of a Catalog of the cluster. You need permission to get it.", is_needed=True
        ),
        SourceField(
            "package",
            "Package",
            "The name of the package or chart. The format, below in the other spec fields, is registry-v1 for a "
            "package of OLM and helm for a chart.",
            is_needed=True,
        ),
        SourceField("channel", "Channel", "If empty, every channel counts."),
        SourceField(
            "version",
            "Versions",
            "A constraint such as >=1.2.0 <2.0.0: nothing else is taken, now or as an upgrade. One version alone, such "
            "as 1.2.0, is pinned: nothing newer is offered. If empty, any version may be taken. A chart without a "
            "channel gets a pre-release only if one of the same version runs.",
        ),
    )

    @staticmethod
    def to_spec(given: Mapping[str, str]) -> dict[str, Any]:
        return {"name": given["catalog"], **{key: given[key] for key in ("package", "channel", "version")}}

    @staticmethod
    def to_form(body: JsonObject) -> dict[str, Any]:
        return {
            "catalog": body.get("name", ""),
            **{key: body.get(key, "") for key in ("package", "channel", "version")},
        }

    @staticmethod
    def asked_words(body: JsonObject) -> list[tuple[str, str]]:
        channel, versions = str(body.get("channel") or ""), str(body.get("version") or "")
        edges = str(body.get("upgradeConstraintPolicy") or "")
        return [
            ("channel", channel) if channel else ("any channel", ""),
            ("version", versions) if versions else ("any version", ""),
            *([("upgradeConstraintPolicy", edges)] if edges else []),
        ]

    @staticmethod
    def version_words(body: JsonObject) -> str:
        return str(body.get("version") or "")

    @staticmethod
    def parse_wish(body: JsonObject, where: str) -> PackageWish:
        """What the catalog is asked for. Raises BadSource in the terms of the spec, where it stands at `where`."""
        package, channel = needed(body, "package", where), str(body.get("channel") or "")
        try:
            versions = constraint_of(str(body["version"])) if body.get("version") else None
        except InvalidRange as exc:
            raise BadSource(f"{where}.version: {exc}") from exc
        edges = str(body.get("upgradeConstraintPolicy") or UpgradeEdges.CATALOG_PROVIDED)
        if edges not in list(UpgradeEdges):
            expected = ", ".join(UpgradeEdges)
            raise BadSource(f"{where}.upgradeConstraintPolicy is {edges!r}; expected one of {expected}")
        return PackageWish(package, (channel,) if channel else (), versions, UpgradeEdges(edges))
