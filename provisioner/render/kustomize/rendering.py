"""From a tree to the objects of its kustomization: found, built, read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from provisioner.errors import BadBundle, BadConfig, PratiqueError
from provisioner.json_values import mapping
from provisioner.masking import masked
from provisioner.render.known_keys import check_config_keys
from provisioner.render.kustomize.engine import Built, build
from provisioner.render.limits import YamlLimits, YamlMeter
from provisioner.render.objects import Found
from provisioner.render.plain import KUSTOMIZATIONS
from provisioner.render.renderings import Rendered, Rendering
from provisioner.render.yaml import load_documents
from provisioner.sentences import some
from provisioner.values import Tree

PATH = "path"
MAX_WORDS = 1000
# Fields of a kustomization whose entries may be addresses, and those that kustomize would hand to helm.
_LISTS = ("resources", "bases", "components", "crds", "configurations", "generators", "transformers", "validators")
_CHARTS = ("helmCharts", "helmChartInflationGenerator")
# As kustomize knows an address from a path.
_REMOTE = re.compile(r"(?i)(?:git::)?(?:[a-z][a-z0-9+.-]*://|[\w.-]+@[\w.-]+[:/]|gh:|(?:www\.)?github\.com[/:])\S*")
# From here on its words may quote a file or a generator, and so a value of a Secret.
_QUOTES = re.compile(r"[\n`\[{]|literal source |bytes : |for value |is not a string|node contents|unknown anchor")
_NOTHING = re.compile(r"\.\[no(?:Grp|Ver|Kind|Ns|Name)\]")
_CLEANED = re.compile(r"(?<=[a-z]):/(?!/)")
# What it says where it is plain what to change, in our words.
_REASONS = {
    "external plugins disabled": "it names a plug-in or a function; only those that are part of kustomize run here",
    "cycle detected": "its bases or components include each other in a circle",
    "doesn't exist": (
        "it names what is not in the sources: take a folder that holds its bases, too, and name its own in config.path"
    ),
    "security; file": "it reads a file outside of the folder of its kustomization, which kustomize refuses",
}


def find(tree: Tree, rendering: Rendering) -> Rendered:
    """The objects that kustomize builds, in its order, and the files that it read for them.

    Raises BadBundle, BadConfig, InvalidManifest and BundleTooLarge.
    """
    folder = _folder(tree, rendering)
    built = build(tree.files, folder)
    used = [path for path in built.used if path in tree.files]
    if built.refusal:
        reason = _reason(built.refusal, tree, used)
        raise BadBundle(f"the kustomization: {reason}", server_words=_words(built.refusal))
    top = next(path for path in used if PurePosixPath(path).name in KUSTOMIZATIONS)
    return Rendered(_objects(built, tree, top, rendering.limits), used)


def names_kustomization(path: str) -> bool:
    """Whether kustomize takes a file of this name for a kustomization."""
    return PurePosixPath(path).name in KUSTOMIZATIONS


def _folder(tree: Tree, rendering: Rendering) -> str:
    """Where the kustomization lies: as the config says, else at the root, else at that of the one source with one."""
    check_config_keys(rendering.config, (PATH,), "the format kustomize")
    there = {str(PurePosixPath(path).parent) for path in tree.files if names_kustomization(path)}
    folders = {"" if folder == "." else folder for folder in there}
    wanted = rendering.config.get(PATH)
    if wanted is not None:
        if not isinstance(wanted, str) or wanted.strip("/") not in folders:
            raise BadConfig(f"config.{PATH} names no folder with a kustomization; {_known(folders)}")
        return wanted.strip("/")
    found = sorted(folders & {"", *rendering.destinations})
    if not found:
        raise BadBundle(f"found no kustomization.yaml at the root; {_known(folders)}")
    if found[0] and len(found) > 1:
        raise BadBundle(f"several sources have a kustomization: say in config.{PATH} which is built; {_known(folders)}")
    return found[0]


def _known(folders: Iterable[str]) -> str:
    if not folders:
        return "there is none in any folder"
    return f"there are some in {some([folder or '/' for folder in sorted(folders)], 5)}; name one in config.{PATH}"


def _objects(built: Built, tree: Tree, top: str, limits: YamlLimits) -> Iterator[Found]:
    meter = YamlMeter(limits)
    for text, file in built.objects:
        place = file if file in tree.files else top
        for document in load_documents(text.encode(), name=place, meter=meter):
            yield Found(document.value, place)


def _words(refusal: str) -> str:
    """What kustomize said, without what it quotes; it cleans addresses as if they were paths."""
    said = _QUOTES.split(_NOTHING.sub("", refusal), maxsplit=1)[0][:MAX_WORDS].strip()
    return masked(_CLEANED.sub("://", said))


def _reason(refusal: str, tree: Tree, used: Iterable[str]) -> str:
    """Why kustomize refused, as everybody may know it, such as what a kustomization asks for in vain."""
    for path in used:
        if not names_kustomization(path):
            continue
        try:
            documents = list(load_documents(tree.files[path], name=path, meter=YamlMeter(YamlLimits())))
        except PratiqueError as exc:
            return str(exc)
        for document in documents:
            reason = _refused_field(mapping(document.value))
            if reason:
                return f"{path}: {reason}"
    return next((reason for words, reason in _REASONS.items() if words in refusal), "kustomize cannot build it")


def _refused_field(body: Mapping[str, Any]) -> str:
    for field in _CHARTS:
        if body.get(field):
            return f"{field}: no charts are rendered here; take the chart in a deployment of the format helm"
    for field in _LISTS:
        entries = body.get(field)
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, str) and _REMOTE.fullmatch(entry.strip()):
                return (
                    f"{field}: {masked(entry.strip())!a} lies elsewhere, and nothing is fetched here; add it to"
                    " spec.sources with a destination, and write the path to that folder"
                )
    return ""
