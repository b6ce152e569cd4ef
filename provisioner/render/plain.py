"""Plain bundles: Kubernetes objects in the files of a folder, as `kubectl apply -f` takes them.

The folder is `manifests/`, or the root where there is none. In `manifests/` every file must be one we read (`.yaml`,
`.yml`, `.json`) or one that is plainly for people or tools (README, LICENSE and NOTICE, `.md`, `.txt`, dotfiles); any
other is refused, since left out in silence it would be missed too late. At the root only YAML and JSON are looked at:
sources and Dockerfiles live there as well. Folders whose name begins with a dot are never looked at. Of several sources
none may vanish by that: what one would bring by itself has to be read (`pipeline.prepare`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from provisioner.errors import InvalidManifest
from provisioner.render.limits import Limits, Meter
from provisioner.render.objects import Found, IsNamespaced, admit
from provisioner.render.yaml import load_documents
from provisioner.sentences import some
from provisioner.values import Manifest, Tree

FOLDER = "manifests"
READ = frozenset({".yaml", ".yml", ".json"})
_FOR_PEOPLE = frozenset({".md", ".txt"})
_FOR_PEOPLE_STEMS = frozenset({"README", "LICENSE", "NOTICE"})
_KUSTOMIZE_GROUP = "kustomize.config.k8s.io/"
_KUSTOMIZE_HARMLESS = frozenset({"apiVersion", "kind", "metadata", "resources"})


def render(
    tree: Tree,
    *,
    install_namespace: str,
    is_namespaced: IsNamespaced,
    allow_subfolders: bool = False,
    limits: Limits | None = None,
) -> tuple[Manifest, ...]:
    """The manifests of a plain bundle, by file name and then by their place in the file.

    See `objects.admit` for what is refused, dropped and filled in. Subfolders with manifests are refused unless
    `allow_subfolders`. Raises InvalidManifest and BundleTooLarge.
    """
    limits = limits or Limits()
    found = find(tree, allow_subfolders=allow_subfolders, limits=limits)
    return admit(found, install_namespace=install_namespace, is_namespaced=is_namespaced, limits=limits)


def find(tree: Tree, *, allow_subfolders: bool, limits: Limits) -> Iterator[Found]:
    """The objects as they stand in the files, in order. Raises like `render`."""
    meter = Meter(limits)
    files = _files(tree, allow_subfolders)
    for file in files:
        for document in load_documents(tree.files[file], name=file, meter=meter):
            found = Found(document.value, file, document.line)
            if not _is_kustomization(found.body):
                yield found
            elif not _adds_nothing(found, files):
                raise found.refuse("kustomize is not run here: build the bundle with it, and ship what it printed")


def files_read(tree: Tree) -> list[str]:
    """The files of a plain bundle that its objects come from, those in subfolders included; sorted."""
    folder = _folder(tree)
    return [path for path in _below(tree, folder) if _is_read(PurePosixPath(path))]


def _folder(tree: Tree) -> PurePosixPath:
    return PurePosixPath(FOLDER if _has_folder(tree) else ".")


def _has_folder(tree: Tree) -> bool:
    return any(path.startswith(f"{FOLDER}/") for path in tree.files)


def _files(tree: Tree, allow_subfolders: bool) -> list[str]:
    has_folder, folder = _has_folder(tree), _folder(tree)
    candidates = {path: PurePosixPath(path).relative_to(folder) for path in _below(tree, folder)}
    strangers = [
        path for path, inner in candidates.items() if has_folder and not _is_read(inner) and not _is_for_people(inner)
    ]
    if strangers:
        raise InvalidManifest(f"{_listed(strangers)}: not a manifest; {FOLDER}/ takes .yaml, .yml and .json files")
    files = [path for path, inner in candidates.items() if _is_read(inner)]
    nested = [path for path in files if len(candidates[path].parts) > 1]
    if nested and not allow_subfolders:
        raise InvalidManifest(
            f"{_listed(nested)}: subfolders are not read, a plain bundle holds its manifests in one folder:"
            " pack that folder, or name its directory in the git repository"
            " (`pratique review --subfolders` reads them all)"
        )
    if not files:
        raise InvalidManifest(f"found no manifests: neither a folder {FOLDER}/ with any, nor YAML or JSON at the root")
    return files


def _below(tree: Tree, folder: PurePosixPath) -> list[str]:
    paths = [path for path in sorted(tree.files) if PurePosixPath(path).is_relative_to(folder)]
    return [path for path in paths if not any(part.startswith(".") for part in PurePosixPath(path).parts)]


def _is_read(path: PurePosixPath) -> bool:
    return path.suffix.lower() in READ


def _is_for_people(path: PurePosixPath) -> bool:
    return path.suffix.lower() in _FOR_PEOPLE or path.name.partition(".")[0].upper() in _FOR_PEOPLE_STEMS


def _listed(paths: list[str]) -> str:
    return some([repr(path)[1:-1] for path in paths[:5]], 5, total=len(paths))


def _is_kustomization(body: Any) -> bool:
    version = body.get("apiVersion") if isinstance(body, dict) else None
    return isinstance(version, str) and version.startswith(_KUSTOMIZE_GROUP)


def _adds_nothing(found: Found, files: list[str]) -> bool:
    """Whether a kustomization only lists the files beside it, all of them: then it changes nothing and is left out."""
    resources = found.body.get("resources")
    if set(found.body) - _KUSTOMIZE_HARMLESS or not isinstance(resources, list):
        return False
    folder = PurePosixPath(found.file).parent
    listed = {str(folder / str(resource)) for resource in resources}
    return listed == set(files) - {found.file}
