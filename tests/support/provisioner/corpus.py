"""The bundles of the corpus, version after version, and what they hold; nothing where the corpus is not there.

Read are folders of manifests (plain/), the manifests of registry+v1 bundles (bundles/, fbc/) and those inside the
bundles of catalogs (fbc/). Charts are left out: nothing here renders them.
"""

from __future__ import annotations

import base64
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import yaml

from provisioner.render import BUILT_IN, Rendering, render_content
from provisioner.values import Content, GroupKind, Tree
from tests.support.folders import CORPUS

# Of these a version has several files or folders of which somebody installs one.
IN_VARIANTS = frozenset({"ingress-nginx", "operator-controller"})
HELD = "olm.bundle.object"


@dataclass(frozen=True, slots=True)
class Bundle:
    """One version of a `family` of bundles, read from `files`."""

    family: str
    version: str
    files: tuple[Path, ...]

    @property
    def order(self) -> list[int]:
        return [int(number) for number in re.findall(r"\d+", self.version)]


def pairs() -> list[tuple[Bundle, Bundle]]:
    """Every two versions of a family that follow each other."""
    families: dict[str, list[Bundle]] = defaultdict(list)
    for bundle in (*_plain(), *_registry(), *_catalogd()):
        families[bundle.family].append(bundle)
    ordered = [sorted(several, key=lambda it: it.order) for _, several in sorted(families.items())]
    return [pair for several in ordered for pair in pairwise(several)]


def named(pair: tuple[Bundle, Bundle]) -> str:
    return f"{pair[0].family} {pair[0].version} {pair[1].version}"


@cache
def content_of(bundle: Bundle) -> Content:
    files = {name: data for file in bundle.files for name, data in _read(file)}
    return render_content(Tree(files), Rendering("plain", "default", "installer", is_namespaced), pins=())


def is_namespaced(kind: GroupKind) -> bool | None:
    return BUILT_IN.get(kind, True)


def _plain() -> Iterator[Bundle]:
    for folder in sorted((CORPUS / "plain").glob("*/*/")):
        files = sorted(folder.rglob("*.yaml"))
        if folder.parent.name not in IN_VARIANTS:
            yield Bundle(f"plain/{folder.parent.name}", folder.name, tuple(files))
            continue
        for file in files:
            yield Bundle(f"plain/{folder.parent.name}/{file.relative_to(folder)}", folder.name, (file,))


def _registry() -> Iterator[Bundle]:
    for folder in sorted([*CORPUS.glob("bundles/*/*/manifests/"), *CORPUS.glob("fbc/*/*/bundles/*/*/manifests/")]):
        version = folder.parent
        files = sorted(one for one in folder.iterdir() if one.suffix in {".yaml", ".yml", ".json"})
        yield Bundle(str(version.parent.relative_to(CORPUS)), version.name, tuple(files))


def _catalogd() -> Iterator[Bundle]:
    for file in sorted(CORPUS.glob("fbc/*/*/bundles/bundle-*.yaml")):
        if HELD not in file.read_text():  # newer catalogs name an image and hold no manifest
            continue
        yield Bundle(str(file.parent.parent.relative_to(CORPUS)), file.stem.removeprefix("bundle-v"), (file,))


def _read(file: Path) -> Iterator[tuple[str, bytes]]:
    """The files that a file stands for: itself, or the objects inside the bundle of a catalog."""
    if not file.match("fbc/*/*/bundles/bundle-*.yaml"):
        yield file.name, file.read_bytes()
        return
    for blob in yaml.load_all(file.read_text(), Loader=yaml.CSafeLoader):
        held = [one["value"]["data"] for one in blob["properties"] if one["type"] == HELD]
        for place, data in enumerate(held):
            yield f"{place}.json", json.dumps(json.loads(base64.b64decode(data))).encode()
