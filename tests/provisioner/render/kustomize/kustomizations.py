"""How small kustomizations of tests are built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from provisioner.render import BUILT_IN, Rendering, render_content
from provisioner.values import Content, Tree

SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}], selector: {app: web}}\n"


def built(
    files: Mapping[str, str | bytes], config: Mapping[str, Any] | None = None, destinations: tuple[str, ...] = ("",)
) -> Content:
    tree = Tree({path: text.encode() if isinstance(text, str) else text for path, text in files.items()})
    rendering = Rendering("kustomize", "home", "installer", BUILT_IN.get, config or {}, destinations)
    return render_content(tree, rendering, pins=[])
