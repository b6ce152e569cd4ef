"""Charts that need others, their lock files, and a Helm repository that serves them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache

from tests.support.provisioner.charts import config_map, packed

Needed = Mapping[str, str]


def needs(name: str, repository: str, version: str = "1.x", **more: str) -> Needed:
    return {"name": name, "version": version, "repository": repository, **more}


def chart_with(*asked: Needed, locked: Sequence[str] | None = (), digest: str = "") -> dict[str, bytes]:
    """A chart that needs these, and a lock file with the versions `locked`, by default 1.0.0 of each; None for none."""
    versions = (locked or ["1.0.0"] * len(asked)) if locked is not None else []
    exact = [
        {"name": entry["name"], "version": version, "repository": entry["repository"]}
        for entry, version in zip(asked, versions, strict=False)
    ]
    text = json.dumps([list(asked), exact], separators=(",", ":"))
    lock = {
        "dependencies": exact,
        "digest": digest or f"sha256:{hashlib.sha256(text.encode()).hexdigest()}",
        "generated": "2026-01-01T00:00:00Z",
    }
    metadata = {"apiVersion": "v2", "name": "shop", "version": "1.2.3", "dependencies": list(asked)}
    files = {"Chart.yaml": json.dumps(metadata), "templates/own.yaml": config_map('"own"', "own")}
    if locked is not None:
        files["Chart.lock"] = json.dumps(lock)
    return {path: content.encode() for path, content in files.items()}


def subchart(name: str, text: str = "one", version: str = "1.0.0", **more: bytes) -> dict[str, bytes]:
    """A chart with one ConfigMap of its name that says `text`."""
    metadata = f"apiVersion: v2\nname: {name}\nversion: {version}\n"
    return {"Chart.yaml": metadata.encode(), "templates/map.yaml": config_map(f'"{text}"', name).encode(), **more}


@cache
def archive(name: str, text: str = "one", version: str = "1.0.0") -> bytes:
    return packed(subchart(name, text, version), name)


def index(*entries: tuple[str, str, str, bytes | None]) -> bytes:
    """The index of a Helm repository: name, version and URL of each chart, and the archive for its digest, if any."""
    listed: dict[str, list[object]] = {}
    for name, version, url, data in entries:
        digest = {"digest": hashlib.sha256(data).hexdigest()} if data is not None else {}
        listed.setdefault(name, []).append({"name": name, "version": version, "urls": [url], **digest})
    return json.dumps({"apiVersion": "v1", "entries": listed}).encode()
