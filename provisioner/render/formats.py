"""The formats a bundle may have, and the one way from a tree to a content.

A format is a function from a tree and a `Rendering` to the objects it finds. It decides nothing about them: what all
contents have to obey (objects.admit) is applied afterwards, to plug-ins too. To add a format, write such a function
and put it in FORMATS, or name it in another package as an entry point of the group `pratique.formats`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any

from provisioner.errors import BadBundle
from provisioner.render import plain
from provisioner.render.canonical import content_digest
from provisioner.render.limits import Limits
from provisioner.render.objects import Found, IsNamespaced, admit
from provisioner.values import Content, Pin, Tree

ENTRY_POINTS = "pratique.formats"


@dataclass(frozen=True, slots=True)
class Rendering:
    """How a tree shall be rendered: what the BundleDeployment says, and which scope the cluster's kinds have."""

    format: str
    install_namespace: str
    service_account: str
    is_namespaced: IsNamespaced
    config: Mapping[str, Any] = field(default_factory=dict)
    allow_subfolders: bool = False
    limits: Limits = field(default_factory=Limits)


Format = Callable[[Tree, Rendering], Iterable[Found]]


def _plain(tree: Tree, rendering: Rendering) -> Iterable[Found]:
    return plain.find(tree, allow_subfolders=rendering.allow_subfolders, limits=rendering.limits)


FORMATS: dict[str, Format] = {"plain": _plain}


def format_names() -> list[str]:
    """The formats that can be asked for, plug-ins included, without loading any."""
    return sorted({*FORMATS, *entry_points(group=ENTRY_POINTS).names})


def render_content(tree: Tree, rendering: Rendering, *, pins: Iterable[Pin]) -> Content:
    """Render an unpacked bundle, once: what this returns is what is reviewed, stored and applied.

    The same tree and rendering give the same digest on every run and machine. Raises BadBundle (also for an unknown
    format), InvalidManifest and BundleTooLarge.
    """
    manifests = admit(
        _format(rendering.format)(tree, rendering),
        install_namespace=rendering.install_namespace,
        is_namespaced=rendering.is_namespaced,
        limits=rendering.limits,
    )
    digest = content_digest(
        manifests, install_namespace=rendering.install_namespace, service_account=rendering.service_account
    )
    return Content(manifests, rendering.install_namespace, rendering.service_account, tuple(pins), digest)


def _format(name: str) -> Format:
    if name in FORMATS:
        return FORMATS[name]
    for plugin in entry_points(group=ENTRY_POINTS, name=name):
        loaded: Format = plugin.load()
        return loaded
    raise BadBundle(f"the format {name!r} is not known here; known are {', '.join(format_names())}")
