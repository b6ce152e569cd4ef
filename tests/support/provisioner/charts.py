"""Small charts for tests, and how they are rendered."""

from __future__ import annotations

import base64
import io
import tarfile
from collections.abc import Mapping
from typing import Any

from provisioner.render import BUILT_IN, Rendering, Target, render_content
from provisioner.values import Content, Tree

CHART = b"apiVersion: v2\nname: shop\nversion: 1.2.3\n"
ONE = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}-one'}\ndata: {text: '{{ .Values.text }}'}\n"
# A value of a Secret, which nothing may show.
PASSWORD = "swordfish and chips"
SERVED = ("v1", "v1/ConfigMap", "apps/v1", "apps/v1/Deployment")


def chart(**files: bytes | str) -> dict[str, bytes]:
    """A chart whose template `one` prints one value; names of `files` have __ for / and lack their ending .yaml."""
    own = {"Chart.yaml": CHART, "values.yaml": b"text: own\n", "templates/one.yaml": ONE}
    given = {f"{path.replace('__', '/')}.yaml": text for path, text in files.items()}
    return own | {path: text.encode() if isinstance(text, str) else text for path, text in given.items()}


def config_map(text: str, name: str = "made", annotations: str = "{}") -> str:
    """A manifest that shows what `text`, a piece of a template, comes to."""
    return (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, annotations: {annotations}}}\n"
        f"data:\n  text: {{{{ {text} | quote }}}}\n"
    )


def coded(text: str) -> str:
    """The base64 of a text, as in `data` of a Secret."""
    return base64.b64encode(text.encode()).decode()


def packed(files: Mapping[str, bytes], name: str = "shop") -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as archive:
        for path, data in files.items():
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return whole.getvalue()


def rendered(
    files: Mapping[str, bytes],
    config: Mapping[str, Any] | None = None,
    *,
    target: Target | None = None,
    name: str = "helm",
    destinations: tuple[str, ...] = ("",),
    kept: Mapping[str, str] | None = None,
) -> Content:
    asked = Rendering(
        name, "home", "installer", BUILT_IN.get, config or {}, destinations, target=target, kept_values=kept
    )
    return render_content(Tree(dict(files)), asked, pins=[])


def texts(content: Content) -> dict[str, Any]:
    """`data.text` of each ConfigMap by its name."""
    return {one.ref.name: one.body["data"]["text"] for one in content.manifests if one.ref.kind == "ConfigMap"}
