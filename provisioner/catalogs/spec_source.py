"""A package of a catalog as a source in a spec: what is written, and what it asks the catalog for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from provisioner.catalogs.choice import PackageWish, UpgradeEdges
from provisioner.errors import BadSource, InvalidRange
from provisioner.selectors import parse_terms, problem_of_selector, selector_words, selects
from provisioner.source import SourceField, SourceType, needed
from provisioner.values import JsonObject
from provisioner.versions import constraint_of

# The label that OLM v1 gives each of its catalogs. Here every Catalog counts as having it, whatever its labels say.
NAME_LABEL = "olm.operatorframework.io/metadata.name"
EVERY = "every catalog"


class CatalogSource(SourceType):
    """It is resolved to an image or archive by what the catalog offers."""

    kind = "catalog"
    label = "Package of a catalog"
    fields = (
        SourceField(
            "catalog",
            "Catalog",
            "The name of a Catalog of the cluster. You need permission to get it. Empty, if you select by labels.",
        ),
        SourceField(
            "catalog_selector",
            "Catalogs by label",
            f"In place of a name: labels such as tier=stable, team in (a, b), or {EVERY!r}. Of the catalogs with the "
            "package the one with the highest priority is taken. You need permission to get every Catalog.",
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
        words = given["catalog_selector"].strip()
        return {
            "name": given["catalog"],
            "selector": _parse_words(words) if words else None,
            **{key: given[key] for key in ("package", "channel", "version")},
        }

    @staticmethod
    def to_form(body: JsonObject) -> dict[str, Any]:
        return {
            "catalog": body.get("name", ""),
            "catalog_selector": (selector_words(body["selector"]) or EVERY) if is_selecting(body) else "",
            **{key: body.get(key, "") for key in ("package", "channel", "version")},
        }

    @classmethod
    def place_words(cls, body: JsonObject, namespace: str) -> str:
        if not is_selecting(body):
            return super().place_words(body, namespace)
        words = selector_words(body["selector"])
        return f"selected by {words}" if words else "selected from all"

    @staticmethod
    def problems_of_form(given: Mapping[str, str]) -> dict[str, str]:
        """What cannot be so in what a form was given, by field."""
        words = (given.get("catalog_selector") or "").strip()
        if bool(given.get("catalog")) is bool(words):
            return {"catalog": f"Name a Catalog or select by labels{', but not both' if words else ''}."}
        try:
            problem = problem_of_selector(_parse_words(words)) if words else ""
        except ValueError as exc:
            problem = f"{exc}, or {EVERY!r}"
        return {"catalog_selector": problem} if problem else {}

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
        if is_selecting(body):
            if body.get("name"):
                raise BadSource(f"{where} has both name and selector; expected one of them")
            if problem := problem_of_selector(body["selector"]):
                raise BadSource(f"{where}.selector: {problem}")
        try:
            versions = constraint_of(str(body["version"])) if body.get("version") else None
        except InvalidRange as exc:
            raise BadSource(f"{where}.version: {exc}") from exc
        edges = str(body.get("upgradeConstraintPolicy") or UpgradeEdges.CATALOG_PROVIDED)
        if edges not in list(UpgradeEdges):
            expected = ", ".join(UpgradeEdges)
            raise BadSource(f"{where}.upgradeConstraintPolicy is {edges!r}; expected one of {expected}")
        return PackageWish(package, (channel,) if channel else (), versions, UpgradeEdges(edges))


def is_selecting(body: JsonObject) -> bool:
    """Whether it selects among catalogs, also where the selector is empty: that selects every one."""
    return body.get("selector") is not None


def selects_catalog(selector: JsonObject, name: str, labels: Mapping[str, Any]) -> bool:
    """Whether a selector that can be read selects the Catalog of this name."""
    return selects(selector, {**labels, NAME_LABEL: name})


def _parse_words(words: str) -> dict[str, Any]:
    """The selector that a form was given. Raises ValueError."""
    return {"matchLabels": {}} if words == EVERY else parse_terms(words)
