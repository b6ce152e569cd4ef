"""Small bundles in folders, and the content that they become."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from provisioner import pipeline
from provisioner.render import BUILT_IN
from provisioner.source import EgressPolicy, LocalSource
from provisioner.unpack import UnpackLimits
from provisioner.values import Content, Pin

CONFIG_MAP = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {a: "%s"}\n'


def bundle(folder: Path, **maps: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in maps.items():
        (folder / f"{name}.yaml").write_text(CONFIG_MAP % (name, value))
    return folder


def prepare(
    *sources: LocalSource, pins: tuple[Pin, ...] = (), namespace: str = "shop", config: Mapping[str, Any] | None = None
) -> Content:
    return pipeline.prepare(
        sources,
        options=pipeline.PrepareOptions(namespace, "installer", config=config or {}),
        egress=EgressPolicy(),
        credentials=None,
        limits=UnpackLimits(),
        is_namespaced=BUILT_IN.get,
        pins=pins,
    )
