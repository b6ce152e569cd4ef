"""Real bundles of operators, in images."""

from __future__ import annotations

from pathlib import Path

from tests.support.folders import CORPUS
from tests.support.servers.registry import Registry

GRAFANA = CORPUS / "bundles/grafana-operator"


def image(registry: Registry, folder: Path, **more: bytes) -> dict[str, object]:
    """The bundle of a folder in an image; `more` are files of its metadata/."""
    files = {f"metadata/{name}.yaml": text for name, text in more.items()}
    files |= {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    name = f"{folder.parent.name}-{folder.name}"
    digest = registry.push(f"{registry.host}/{name}", files)
    return {"kind": "image", "image": {"ref": f"{registry.host}/{name}@{digest}"}}
