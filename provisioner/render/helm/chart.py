"""Where in a tree the chart lies, and which of its files Helm would take."""

from __future__ import annotations

from collections.abc import Iterable

from provisioner.errors import BadBundle
from provisioner.render.helm.ignored import IGNORE, ignored_paths
from provisioner.sentences import number, some
from provisioner.values import Tree

CHART, VALUES = "Chart.yaml", "values.yaml"
# What every bundle of the format registry-v1 has.
OPERATOR = "metadata/annotations.yaml"


def chart_folder(tree: Tree, destinations: Iterable[str]) -> tuple[str, str]:
    """The one folder with a Chart.yaml, and the destination of its source.

    A chart lies at the root of its source, or in the one folder there, as in the archives that `helm package` writes.
    Raises BadBundle where there is none, or several.
    """
    found = [(folder, one) for one in sorted(set(destinations)) for folder in _charts(tree, one)]
    if not found:
        raise BadBundle(
            f"found no {CHART}{_instead(tree)}: a chart lies at the root of its source, or in a folder there"
        )
    if len(found) > 1:
        raise BadBundle(f"there are several charts ({some([folder or '/' for folder, _ in found])}); expected one")
    return found[0]


def chart_files(tree: Tree, folder: str) -> dict[str, bytes]:
    """The files of the chart by their path in it, without those that its .helmignore names."""
    prefix = f"{folder}/" if folder else ""
    files = {path.removeprefix(prefix): data for path, data in tree.files.items() if path.startswith(prefix)}
    ignored = ignored_paths(files.get(IGNORE, b""), files)
    return {path: data for path, data in files.items() if path not in ignored}


def _instead(tree: Tree) -> str:
    """What there is in place of a chart, where that can be told."""
    if any(path == OPERATOR or path.endswith(f"/{OPERATOR}") for path in tree.files):
        return f", but {OPERATOR}: this is an operator bundle, whose format is registry-v1"
    if not tree.files:
        return ", and no other file"
    return f" among {number(len(tree.files), 'file')}, such as {min(tree.files)!a}"


def _charts(tree: Tree, destination: str) -> list[str]:
    prefix = f"{destination}/" if destination else ""
    if f"{prefix}{CHART}" in tree.files:
        return [destination]
    inner = [path.removeprefix(prefix) for path in tree.files if path.startswith(prefix)]
    return sorted(
        prefix + path.partition("/")[0] for path in inner if path.count("/") == 1 and path.endswith(f"/{CHART}")
    )
