"""Catalogs for tests, written as their publishers write them."""

from __future__ import annotations

import io
import json
from typing import Any

import yaml

from provisioner.catalogs.file_based import CatalogFile, CatalogLimits, read_catalog
from provisioner.catalogs.helm_index import read_helm_index
from provisioner.catalogs.presentation import PresentationShelf
from provisioner.catalogs.values import Catalog, Package

CHARTS = "https://charts.example.com/stable/index.yaml"


def package(name: str = "harbour", **fields: Any) -> dict[str, Any]:
    return {"schema": "olm.package", "name": name, **fields}


def bundle(version: str, of: str = "harbour", *, properties: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    about = {"type": "olm.package", "value": {"packageName": of, "version": version}}
    return {
        "schema": "olm.bundle",
        "name": f"{of}.v{version}",
        "package": of,
        "image": f"example.com/{of}:{version}",
        "properties": [about, *properties],
    }


def channel(name: str, *entries: dict[str, Any], of: str = "harbour") -> dict[str, Any]:
    return {"schema": "olm.channel", "name": name, "package": of, "entries": list(entries)}


def deprecated(schema: str, name: str, of: str = "harbour") -> dict[str, Any]:
    entry = {"reference": {"schema": schema, "name": name}, "message": f"{name} is no longer supported"}
    return {"schema": "olm.deprecations", "package": of, "entries": [entry]}


def read(*documents: Any, limits: CatalogLimits | None = None, shelf: PresentationShelf | None = None) -> Catalog:
    return read_text("\n".join(map(json.dumps, documents)), limits=limits, shelf=shelf)


def read_text(
    text: str | bytes, *, limits: CatalogLimits | None = None, shelf: PresentationShelf | None = None
) -> Catalog:
    data = text.encode() if isinstance(text, str) else text
    return read_catalog([CatalogFile("catalog.json", lambda: io.BytesIO(data))], limits=limits, shelf=shelf)


def chart(version: str, **more: Any) -> dict[str, Any]:
    """A version of the chart harbour in the index of a Helm repository."""
    return {"name": "harbour", "version": version, "urls": [f"harbour-{version}.tgz"], "digest": "a" * 64, **more}


def chart_index(*versions: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "entries": {"harbour": list(versions), **more}}


def read_charts(
    document: object, shelf: PresentationShelf | None = None, limits: CatalogLimits | None = None
) -> Catalog:
    text = yaml.safe_dump(document).encode()
    file = CatalogFile("index.yaml", lambda: io.BytesIO(text))
    return read_helm_index([file], address=CHARTS, shelf=shelf, limits=limits)


REBUILD, LATER_REBUILD = "0.999.p", "0.1746550072.p"


def rebuilt(*, has_later: bool = True) -> list[dict[str, Any]]:
    """3.14.3 and rebuilds of it, as Red Hat writes them: each replaces 3.14.2 and skips those before it by name."""
    releases = ["", REBUILD, *([LATER_REBUILD] if has_later else [])]
    names = ["harbour.v3.14.3", *(f"harbour.v3.14.3-{one}" for one in releases[1:])]
    bundles = [
        {**bundle(f"3.14.3+{release}" if release else "3.14.3"), "name": name, "image": f"example.com/{name}:1"}
        for name, release in zip(names, releases, strict=True)
    ]
    entries = [
        {"name": name, "replaces": "harbour.v3.14.2", "skips": names[:at], "skipRange": ">=3.14.0 <3.14.3"}
        for at, name in enumerate(names)
    ]
    lower = bundle("3.14.2")
    return [package(defaultChannel="stable"), *(lower, *bundles), channel("stable", {"name": lower["name"]}, *entries)]


def harbour() -> Package:
    """1.0.0 → 1.0.1 → 1.1.0 by replaces, 1.2.0 by skipRange, and a channel of its own for 2.0.0, which skips 1.0.1."""
    found = read(
        package(defaultChannel="stable"),
        *(bundle(version) for version in ("1.0.0", "1.0.1", "1.1.0", "1.2.0", "2.0.0")),
        channel(
            "stable",
            {"name": "harbour.v1.0.0"},
            {"name": "harbour.v1.0.1", "replaces": "harbour.v1.0.0"},
            {"name": "harbour.v1.1.0", "replaces": "harbour.v1.0.1"},
            {"name": "harbour.v1.2.0", "replaces": "harbour.v1.1.0", "skipRange": ">=1.0.1 <1.2.0"},
        ),
        channel("fast", {"name": "harbour.v2.0.0", "skips": ["harbour.v1.0.1", "harbour.v1.2.0"]}),
    )
    assert found.problems == ()
    return found.packages["harbour"]
