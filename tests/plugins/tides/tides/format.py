"""The format `tide-table`: each `tides.json` lists ports with the height of their next high water, in metres.

`config.labels` are put on each ConfigMap.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from provisioner.errors import BadBundle
from provisioner.render import Found, Rendered, Rendering
from provisioner.values import Tree

TABLE = "tides.json"


def render(tree: Tree, rendering: Rendering) -> Rendered:
    files = sorted(path for path in tree.files if path.rpartition("/")[2] == TABLE)
    if not files:
        raise BadBundle(f"there is no {TABLE}; expected one in a source")
    labels = dict(rendering.config.get("labels") or {})
    return Rendered([found for file in files for found in _objects(tree.files[file], file, labels)], used=files)


def _objects(data: bytes, file: str, labels: dict[str, str]) -> Iterator[Found]:
    try:
        ports = json.loads(data)["ports"]
        heights = {str(port["name"]): float(port["metres"]) for port in ports}
    except (ValueError, KeyError, TypeError) as exc:
        raise BadBundle(f"{file}: it is no tide table; expected ports, each with name and metres") from exc
    for name, metres in sorted(heights.items()):
        body: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap"}
        body["metadata"] = {"name": f"tide-{name}", **({"labels": labels} if labels else {})}
        yield Found({**body, "data": {"metres": str(metres)}}, file)
