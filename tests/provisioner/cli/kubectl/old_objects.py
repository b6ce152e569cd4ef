"""Objects as RukPak had them, and as its issue 703 proposed them."""

from __future__ import annotations

from typing import Any


def of_v1alpha1(source: dict[str, Any], *, kind: str = "plain", **spec: Any) -> dict[str, Any]:
    inner = {"provisionerClassName": f"core-rukpak-io-{kind}", "source": source}
    outer = "helm" if kind == "helm" else "plain"
    told = {"provisionerClassName": f"core-rukpak-io-{outer}", "template": {"spec": inner}, **spec}
    about = {"apiVersion": "core.rukpak.io/v1alpha1", "kind": "BundleDeployment"}
    return {**about, "metadata": {"name": "web"}, "spec": told}


def of_proposal(*sources: dict[str, Any], **spec: Any) -> dict[str, Any]:
    about = {"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment"}
    return {**about, "metadata": {"name": "foo"}, "spec": {"sources": [*sources], **spec}}


IMAGE = {"type": "image", "image": {"ref": "registry.example.com/web:v1"}}
