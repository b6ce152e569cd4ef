"""Which plug-ins are installed, and which of them have a name that cannot be theirs."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from importlib import metadata

from provisioner.sentences import some

# What spec.format and spec.sources[].kind can hold (deploy/crds/bundledeployments.yaml).
MAX_NAME = 60
NAME = re.compile(rf"(?=.{{1,{MAX_NAME}}}\Z)[a-zA-Z]([-a-zA-Z0-9.]*[a-zA-Z0-9])?")
MAX_WORD = 100
UNREAD = "entry_points.txt"


class PluginGroup(StrEnum):
    """The groups of entry points."""

    FORMATS = "pratique.formats"
    SOURCES = "pratique.sources"
    CHECKS = "pratique.checks"

    @property
    def noun(self) -> str:
        """What a plug-in of the group brings: format, source or check."""
        return self.value.rpartition(".")[2].removesuffix("s")


@dataclass(frozen=True, slots=True, order=True)
class Plugin:
    """An entry point `name` of `package` (its name and version) that leads to `target` (`module:attribute`).

    `problem` says why it is disabled and what to do, "" where nothing is known against it.
    """

    group: PluginGroup
    name: str
    package: str
    target: str
    problem: str = ""

    def __str__(self) -> str:
        return f"the {self.group.noun} {self.name} of the package {self.package}"


def installed(group: PluginGroup, ours: Collection[str]) -> list[Plugin]:
    """All plug-ins of a group, sorted, those of other names than a plug-in may have with their problem.

    `ours` are the names that Pratique has itself. Nothing is loaded. What is installed later is found by new processes.
    """
    found = [plugin for plugin in _on_path(tuple(sys.path)) if plugin.group is group]
    packages: dict[str, list[str]] = defaultdict(list)
    for plugin in found:
        packages[plugin.name].append(plugin.package)

    def problem(plugin: Plugin) -> str:
        if plugin.name in ours:
            return f"Pratique has a {group.noun} of this name itself. Its authors have to choose another name"
        if len(packages[plugin.name]) > 1:
            return (
                f"{some(packages[plugin.name])} bring a {group.noun} of this name, and nobody could say which one"
                " counts. Uninstall all of them but one"
            )
        if not NAME.fullmatch(plugin.name):
            return (
                f"no BundleDeployment can name it. Its authors have to choose a name of at most {MAX_NAME} letters,"
                " digits, dots and hyphens, which begins with a letter"
            )
        return ""

    return [replace(plugin, problem=plugin.problem or problem(plugin)) for plugin in found]


@lru_cache(maxsize=1)
def _on_path(_: tuple[str, ...]) -> tuple[Plugin, ...]:
    """Of two copies of a package the first on `sys.path` counts, as where it is imported.

    Where the entry points of one cannot be read, it brings a plug-in with that problem for each group.
    """
    found: dict[str, list[Plugin]] = {}
    for distribution in metadata.distributions():
        groups: list[PluginGroup] = list(PluginGroup)
        try:
            text = distribution.read_text(UNREAD) or ""
            groups = [group for group in groups if group in text]
            points = [point for point in distribution.entry_points if point.group in groups] if groups else []
        except Exception as exc:  # noqa: BLE001 -- a damaged package may raise anything, and must not hide the others
            problem = f"its {UNREAD} cannot be read ({type(exc).__name__}). Install the package again"
            package = _package(distribution)
            plugins = [Plugin(group, UNREAD, package, "", problem) for group in groups]
        else:
            package = _package(distribution) if points else ""
            plugins = [Plugin(PluginGroup(point.group), shown(point.name), package, point.value) for point in points]
        if plugins:
            found.setdefault(re.sub(r"[-_.]+", "-", (plugins[0].package).rpartition(" ")[0]).lower(), plugins)
    return tuple(sorted(plugin for plugins in found.values() for plugin in plugins))


def _package(distribution: metadata.Distribution) -> str:
    try:
        name, version = distribution.metadata["Name"], distribution.metadata["Version"]
    except Exception:  # noqa: BLE001 -- its metadata may be damaged, too
        name, version = None, None
    return f"{shown(name or 'without a name')} {shown(version or '(no version)')}"


def shown(words: str, at_most: int = MAX_WORD) -> str:
    """Words of a package as they are; cut where they are long, and with escapes where they cannot be printed."""
    clipped = words if len(words) <= at_most else f"{words[:at_most]}…"
    return clipped if clipped.isprintable() else ascii(clipped)[1:-1]
