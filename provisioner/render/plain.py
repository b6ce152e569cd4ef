"""Plain bundles: Kubernetes objects in the files of a folder, as `kubectl apply -f` takes them.

Each source is read by itself, in the folder of the tree where it lies. Its manifests are in its `manifests/`, or at its
root where it has no such folder; in subfolders of that only where `config.recursive` says so, which it does by itself
as soon as there are several sources. In `manifests/` every file must be one we read (`.yaml`, `.yml`, `.json`) or one
that is plainly for people or tools (README, LICENSE and NOTICE, `.md`, `.txt`, dotfiles); any other is refused. Files
elsewhere, and folders whose name begins with a dot, are not read; the report lists what was not (rule SRC-01).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from provisioner.errors import BadConfig, InvalidManifest
from provisioner.json_values import value_at
from provisioner.render.known_keys import check_config_keys
from provisioner.render.limits import YamlMeter
from provisioner.render.objects import Found
from provisioner.render.yaml import load_documents
from provisioner.sentences import some
from provisioner.values import Tree

FOLDER = "manifests"
READ = frozenset({".yaml", ".yml", ".json"})
RECURSIVE = "recursive"
_FOR_PEOPLE = frozenset({".md", ".txt"})
_FOR_PEOPLE_STEMS = frozenset({"README", "LICENSE", "NOTICE"})
KUSTOMIZATIONS = frozenset({"kustomization.yaml", "kustomization.yml", "Kustomization"})
_KUSTOMIZE_GROUP = "kustomize.config.k8s.io/"
_KUSTOMIZE_HARMLESS = frozenset({"apiVersion", "kind", "metadata", "resources"})


def select(tree: Tree, *, destinations: Iterable[str] = ("",), config: Mapping[str, Any]) -> list[list[str]]:
    """For each source the files that hold its manifests, sorted; `destinations` are the folders that they lie in.

    Raises BadConfig for a `config` that this format does not know, and InvalidManifest for a source without manifests,
    for subfolders where they are not read and for what no file of `manifests/` may be.
    """
    folders = sorted(set(destinations), key=len, reverse=True)
    check_config(config)
    is_recursive: bool = config.get(RECURSIVE, (len(folders) > 1))
    owned: dict[str, list[str]] = {folder: [] for folder in folders}
    for path in sorted(tree.files):
        owner = next((folder for folder in folders if not folder or path.startswith(f"{folder}/")), None)
        if owner is not None:
            owned[owner].append(path)
    return [_files(folder, owned[folder], is_recursive) for folder in sorted(folders)]


def check_config(config: Mapping[str, Any]) -> None:
    """Raise BadConfig for what no plain bundle can be given."""
    check_config_keys(config, (RECURSIVE,), "the format plain")
    if not isinstance(config.get(RECURSIVE, False), bool):
        raise BadConfig(f"config.{RECURSIVE} is {type(config[RECURSIVE]).__name__}; expected true or false")


def find(tree: Tree, sources: Iterable[list[str]], meter: YamlMeter) -> Iterator[Found]:
    """The objects as they stand in the selected files, by file name and then by their place in the file.

    Raises InvalidManifest and BundleTooLarge.
    """
    beside = {file: files for files in sources for file in files}
    for file in sorted(beside):
        for document in load_documents(tree.files[file], name=file, meter=meter):
            found = Found(document.value, file, document.line)
            version = value_at(found.body, "apiVersion")
            is_named = version is None and PurePosixPath(file).name in KUSTOMIZATIONS
            if not (is_named or (isinstance(version, str) and version.startswith(_KUSTOMIZE_GROUP))):
                yield found
            elif not _adds_nothing(found, beside[file]):
                raise found.refuse(
                    "kustomize is not run in the format plain: set spec.format to kustomize"
                    " (`pratique review --format kustomize`), or ship what `kustomize build` printed"
                )


def is_readable(path: str) -> bool:
    """Whether a file of this name could hold objects: it is YAML or JSON, and nothing above it begins with a dot."""
    return _is_read(PurePosixPath(path)) and not _is_hidden(PurePosixPath(path))


def _files(destination: str, paths: list[str], is_recursive: bool) -> list[str]:
    """Those of the source at `destination` that hold its manifests."""
    own = {path: PurePosixPath(path).relative_to(destination or ".") for path in paths}
    has_folder = any(len(inner.parts) > 1 and inner.parts[0] == FOLDER for inner in own.values())
    folder = FOLDER if has_folder else "."
    candidates = {
        path: inner.relative_to(folder)
        for path, inner in own.items()
        if inner.is_relative_to(folder) and not _is_hidden(inner)
    }
    strangers = [
        path
        for path, inner in candidates.items()
        if has_folder
        and not _is_read(inner)
        and not (inner.suffix.lower() in _FOR_PEOPLE or inner.name.partition(".")[0].upper() in _FOR_PEOPLE_STEMS)
    ]
    if strangers:
        raise InvalidManifest(f"{_listed(strangers)}: not a manifest; {FOLDER}/ takes .yaml, .yml and .json files")
    files = [path for path, inner in candidates.items() if _is_read(inner)]
    nested = [path for path in files if len(candidates[path].parts) > 1]
    if nested and not is_recursive:
        raise InvalidManifest(
            f"{_listed(nested)}: subfolders are not read, a plain bundle holds its manifests in one folder:"
            f" set config.{RECURSIVE} to true to read them all (`pratique review --recursive`),"
            " pack that folder, or name its directory in the git repository"
        )
    if not files:
        where = f" in the source at {destination}" if destination else ""
        raise InvalidManifest(
            f"found no manifests{where}: neither a folder {FOLDER}/ with any, nor YAML or JSON at the root"
        )
    return files


def _is_hidden(path: PurePosixPath) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _is_read(path: PurePosixPath) -> bool:
    return path.suffix.lower() in READ


def _listed(paths: list[str]) -> str:
    return some([repr(path)[1:-1] for path in paths[:5]], 5, total=len(paths))


def _adds_nothing(found: Found, files: Iterable[str]) -> bool:
    """Whether a kustomization only lists the files beside it, all of them: then it changes nothing and is left out."""
    resources = value_at(found.body, "resources")
    if not isinstance(found.body, Mapping) or set(found.body) - _KUSTOMIZE_HARMLESS or not isinstance(resources, list):
        return False
    folder = PurePosixPath(found.file).parent
    listed = {str(folder / str(resource)) for resource in resources}
    return listed == set(files) - {found.file}
