"""Where a chart lies in a tree, which files Helm takes of it, and its manifests and hooks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from provisioner.errors import BadBundle, BadConfig, InvalidManifest
from provisioner.json_values import mapping, value_at
from provisioner.render.helm.ignore_file import IGNORE, ignored_paths
from provisioner.render.limits import YamlMeter
from provisioner.render.objects import Found
from provisioner.render.yaml import load_documents
from provisioner.sentences import number, some
from provisioner.values import Hook, HookMoment, Tree

CHART, VALUES, PATH = "Chart.yaml", "values.yaml", "path"
# What every bundle of the format registry-v1 has.
OPERATOR = "metadata/annotations.yaml"


def chart_folder(tree: Tree, destinations: Iterable[str], config: Mapping[str, Any]) -> tuple[str, str]:
    """The folder of the chart, and the destination of its source: `config.path`, else the one with a Chart.yaml.

    A chart lies at the root of its source, or in the one folder there, as in the archives that `helm package` writes.
    Raises BadConfig, and BadBundle where there is none, or several.
    """
    if path := config.get(PATH):
        folder = path.strip("/") if isinstance(path, str) else ""
        if f"{folder}/{CHART}" not in tree.files:
            raise BadConfig(f"config.{PATH}: expected the folder of a chart; no source has {f'{path}/{CHART}'[:200]!a}")
        inside = (place for place in destinations if not place or f"{folder}/".startswith(f"{place}/"))
        return folder, max(inside, key=len)
    found = [
        (folder, destination) for destination in sorted(set(destinations)) for folder in _charts(tree, destination)
    ]
    if not found:
        raise BadBundle(
            f"found no {CHART}{_instead(tree)}: a chart lies at the root of its source, or in a folder there"
        )
    if len(found) > 1:
        raise BadBundle(
            f"there are several charts ({some([folder or '/' for folder, _ in found])}): name one in config.{PATH}"
        )
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


# As in Helm's SplitManifests, `---` counts also where something follows it on its line.
_BLANKS = "\t\n\f\r "
_LINE = re.compile(r":\d+")
_TWICE = re.compile(r"on line \d+ (?:too|with another value: remove one of them)\Z")
_SEPARATOR = re.compile(rf"^---[{_BLANKS}]*", re.MULTILINE)


def rendered_objects(texts: Mapping[str, str], folder: str, meter: YamlMeter, *, helm_version: int) -> Iterator[Found]:
    """The objects of each template by its path in the chart, which lies in `folder` of the tree.

    Helm 3 leaves one line break at the end of a template, and Helm 4 all of them, as a block text with `|+` shows.

    Raises BundleTooLarge, and InvalidManifest with the line of the template's whole text: what else is wrong may quote
    values, and stands in its `server_words`.
    """
    for path, text in sorted(texts.items()):
        place = f"{folder}/{path}" if folder else path
        try:
            for document in _documents(text.rstrip() if helm_version == 3 else text):
                for one in load_documents(document.encode(), name=place, meter=meter):
                    yield Found(one.value, place)
        except InvalidManifest as exc:
            line = _LINE.match(str(exc).removeprefix(place))
            twice = _TWICE.search(str(exc))
            wrong = f"has a key twice, {twice[0]}" if twice else "is no valid YAML"
            words = f"{place}{line[0] if line else ''}: what this template renders {wrong}"
            raise InvalidManifest(words, server_words=str(exc)) from exc


def _documents(text: str) -> Iterator[str]:
    """Each document that says something, after as many line breaks as there are before it in the text."""
    start, line = 0, 0
    for found in _SEPARATOR.finditer(text):
        yield from _document(text[start : found.start()].rstrip(_BLANKS), line)
        line += text.count("\n", start, found.end())
        start = found.end()
    yield from _document(text[start:], line)


def _document(text: str, line: int) -> Iterator[str]:
    if said := text.lstrip():
        yield "\n" * (line + text.count("\n", 0, len(text) - len(said))) + said + "\n"


HOOK, WEIGHT, DELETE_POLICY = "helm.sh/hook", "helm.sh/hook-weight", "helm.sh/hook-delete-policy"
_INSTALLING = {"pre-install": HookMoment.BEFORE, "post-install": HookMoment.AFTER}
_UPGRADING = {"pre-upgrade": HookMoment.BEFORE, "post-upgrade": HookMoment.AFTER}
_DELETING = {"pre-delete": HookMoment.BEFORE_DELETION, "post-delete": HookMoment.AFTER_DELETION}
# The older name says that its success was wanted, which is so of all.
_TESTING = {"test": HookMoment.TEST, "test-success": HookMoment.TEST}
_CLEARED = "hook-succeeded"
# As Go reads an integer; Helm takes 0 for anything else.
_WEIGHT = re.compile(r"[+-]?[0-9]{1,9}")


def with_hooks(objects: Iterable[Found], *, is_upgrade: bool, with_tests: bool) -> list[Found]:
    """Each object with when it runs, without the hooks that never do here."""
    known = {**(_UPGRADING if is_upgrade else _INSTALLING), **_DELETING, **(_TESTING if with_tests else {})}
    kept = []
    for found in objects:
        annotations = mapping(value_at(found.body, "metadata", "annotations"))
        if HOOK not in annotations:
            kept.append(found)
            continue
        # An empty one is a hook, too, which never runs.
        named = _comma_words(annotations[HOOK])
        weight = str(annotations.get(WEIGHT) or "").strip()
        hook = Hook.at(
            (moment for name, moment in known.items() if name in named),
            weight=int(weight) if _WEIGHT.fullmatch(weight) else 0,
            is_cleared=_CLEARED in _comma_words(annotations.get(DELETE_POLICY)),
        )
        if hook.moments:
            kept.append(replace(found, hook=hook))
    return kept


def _comma_words(text: Any) -> frozenset[str]:
    return frozenset(one.strip().lower() for one in str(text).split(",") if one.strip()) if text else frozenset()
