"""Where in a tree the chart lies, and which of its files Helm would take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from provisioner.errors import BadBundle
from provisioner.render.helm.limits import MAX_IGNORE_PATTERN, MAX_IGNORE_PATTERNS
from provisioner.sentences import some
from provisioner.values import Tree

CHART, VALUES = "Chart.yaml", "values.yaml"
IGNORE = ".helmignore"


def chart_folder(tree: Tree, destinations: Iterable[str]) -> tuple[str, str]:
    """The one folder with a Chart.yaml, and the destination of its source.

    A chart lies at the root of its source, or in the one folder there, as in the archives that `helm package` writes.
    Raises BadBundle where there is none, or several.
    """
    found = [(folder, one) for one in sorted(set(destinations)) for folder in _charts(tree, one)]
    if not found:
        raise BadBundle(f"found no {CHART}: a chart lies at the root of its source, or in a folder there")
    if len(found) > 1:
        raise BadBundle(f"there are several charts ({some([folder or '/' for folder, _ in found])}); expected one")
    return found[0]


def chart_files(tree: Tree, folder: str) -> dict[str, bytes]:
    """The files of the chart by their path in it, without those that its .helmignore names."""
    prefix = f"{folder}/" if folder else ""
    files = {path.removeprefix(prefix): data for path, data in tree.files.items() if path.startswith(prefix)}
    rules = _rules(files)
    return {path: data for path, data in files.items() if not _is_ignored(path, rules)}


def _charts(tree: Tree, destination: str) -> list[str]:
    prefix = f"{destination}/" if destination else ""
    if f"{prefix}{CHART}" in tree.files:
        return [destination]
    inner = [path.removeprefix(prefix) for path in tree.files if path.startswith(prefix)]
    return sorted(
        prefix + path.partition("/")[0] for path in inner if path.count("/") == 1 and path.endswith(f"/{CHART}")
    )


def _rules(files: Mapping[str, bytes]) -> list[str]:
    """The lines of .helmignore that say something. Helm reads neither `**` nor, in a way anybody expects, `!`."""
    lines = files.get(IGNORE, b"").decode(errors="replace").splitlines()
    rules = [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
    if len(rules) > MAX_IGNORE_PATTERNS:
        raise BadBundle(f"{IGNORE}: it has {len(rules)} patterns; expected at most {MAX_IGNORE_PATTERNS}")
    for rule in rules:
        if len(rule) > MAX_IGNORE_PATTERN:
            raise BadBundle(
                f"{IGNORE}: the pattern {rule[:100]!r}… has {len(rule)} characters;"
                f" expected at most {MAX_IGNORE_PATTERN}"
            )
        if rule.startswith("!") or "**" in rule:
            raise BadBundle(f"{IGNORE}: the pattern {rule[:100]!r} is not supported; expected one without ! and **")
    return [*rules, "templates/.?*"]


def _is_ignored(path: str, rules: Iterable[str]) -> bool:
    parts = path.split("/")
    steps = [("/".join(parts[:size]), size < len(parts)) for size in range(1, len(parts) + 1)]
    return any(_matches(step, is_folder, rule) for rule in rules for step, is_folder in steps)


def _matches(path: str, is_folder: bool, rule: str) -> bool:
    if rule.endswith("/"):
        if not is_folder:
            return False
        rule = rule.rstrip("/")
    if "/" not in rule:
        return fnmatchcase(path.rpartition("/")[2], rule)
    wanted, found = rule.lstrip("/").split("/"), path.split("/")
    return len(wanted) == len(found) and all(map(fnmatchcase, found, wanted))
