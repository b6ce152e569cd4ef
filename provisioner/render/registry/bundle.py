"""What lies in an operator bundle: metadata/annotations.yaml, and the objects of manifests/."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain

from provisioner.errors import BadBundle, InvalidManifest
from provisioner.render.limits import YamlMeter
from provisioner.render.objects import Found
from provisioner.render.registry.csv import ClusterServiceVersion, csv_of
from provisioner.render.registry.fields import Fields
from provisioner.render.registry.names import go_json, ordered
from provisioner.render.registry.requirements import as_properties, bounded, of_properties, unreadable
from provisioner.render.yaml import load_documents
from provisioner.sentences import some
from provisioner.values import Requirement, Tree

ANNOTATIONS, PROPERTIES, MANIFESTS = "metadata/annotations.yaml", "metadata/properties.yaml", "manifests/"
DEPENDENCIES = "metadata/dependencies.yaml"
PACKAGE = "operators.operatorframework.io.bundle.package.v1"
OLM_PROPERTIES = "olm.properties"


@dataclass(frozen=True, slots=True)
class RegistryBundle:
    """`files` are the paths that were read, `csv_file` that of the ClusterServiceVersion."""

    package: str
    csv: ClusterServiceVersion
    csv_file: str
    crds: tuple[Found, ...]
    others: tuple[Found, ...]
    files: tuple[str, ...]
    requirements: tuple[Requirement, ...]

    def metadata_of(self, kind: str) -> list[Fields]:
        """The metadata of each object of manifests/ of this kind, CRDs aside."""
        bodies = [Fields.of(one.body, one.place) for one in self.others]
        return [body.mapping("metadata") for body in bodies if body.text("kind") == kind]


def bundle_folder(tree: Tree, destinations: Iterable[str]) -> str:
    """The destination of the one source that is an operator bundle; raises BadBundle where none or several are."""
    found = [one for one in sorted(set(destinations)) if _within(one, ANNOTATIONS) in tree.files]
    if not found:
        raise BadBundle(f"found no {ANNOTATIONS}: an operator bundle (registry+v1) has manifests/ and metadata/")
    if len(found) > 1:
        raise BadBundle(f"several sources are operator bundles ({some([one or '/' for one in found])}); expected one")
    return found[0]


def read(tree: Tree, folder: str, meter: YamlMeter) -> RegistryBundle:
    """The bundle whose root is `folder`. Raises BadBundle, InvalidManifest and BundleTooLarge."""
    package = _one(tree, _within(folder, ANNOTATIONS), meter).mapping("annotations").text(PACKAGE)
    prefix = _within(folder, MANIFESTS)
    paths = sorted(path for path in tree.files if path.startswith(prefix))
    nested = [path for path in paths if "/" in path.removeprefix(prefix)]
    if nested:
        raise InvalidManifest(f"{some(nested)}: manifests/ of an operator bundle has no subfolders")
    objects = [
        Found(document.value, path, document.line)
        for path in paths
        for document in load_documents(tree.files[path], name=path, meter=meter)
    ]
    by_kind: dict[str, list[Found]] = {"ClusterServiceVersion": [], "CustomResourceDefinition": [], "": []}
    for one in objects:
        kind = Fields.of(one.body, one.place).text("kind")
        by_kind[kind if kind in by_kind else ""].append(one)
    versions = by_kind["ClusterServiceVersion"]
    if len(versions) != 1:
        raise BadBundle(f"{prefix} has {len(versions)} ClusterServiceVersions; expected one")
    csv = csv_of(versions[0])
    text = csv.annotations.get(OLM_PROPERTIES, "[]")
    where = f"metadata.annotations[{OLM_PROPERTIES}]"
    documents = list(load_documents(text.encode(), name=where, meter=meter))
    value = documents[0].value if len(documents) == 1 else None
    if not isinstance(value, list):
        raise InvalidManifest(f"{where}: expected a list of properties")
    own = [Fields.of(one, where) for one in value]
    listed, read = _entries(tree, _within(folder, PROPERTIES), meter)
    if any(tree.files[path] for path in read):
        written = go_json([ordered(one.value) for one in (*own, *listed)] or None)
        csv = replace(csv, annotations={**csv.annotations, OLM_PROPERTIES: written})
    dependencies, read_too = _dependencies(tree, _within(folder, DEPENDENCIES), meter)
    asked = of_properties([*own, *listed])
    return RegistryBundle(
        package,
        csv,
        versions[0].file,
        tuple(by_kind["CustomResourceDefinition"]),
        tuple(by_kind[""]),
        (_within(folder, ANNOTATIONS), *read, *read_too, *paths),
        bounded(chain(csv.requirements, asked, dependencies)),
    )


def _dependencies(tree: Tree, path: str, meter: YamlMeter) -> tuple[list[Requirement], list[str]]:
    """What dependencies.yaml asks for. OLM v1 does not read it, so that one that cannot be read refuses no bundle."""
    try:
        entries, read = _entries(tree, path, meter)
        return list(of_properties(as_properties(entries))), read
    except InvalidManifest as exc:
        return [unreadable(path, str(exc))], [path]


def _entries(tree: Tree, path: str, meter: YamlMeter) -> tuple[list[Fields], list[str]]:
    """The entries of properties.yaml or dependencies.yaml, and its path where it is there."""
    if path not in tree.files:
        return [], []
    documents = _documents(tree, path, meter)
    name = path.rpartition("/")[2].removesuffix(".yaml")
    return (documents[0].mappings(name) if documents else []), [path]


def _one(tree: Tree, path: str, meter: YamlMeter) -> Fields:
    """The one document of a file."""
    documents = _documents(tree, path, meter)
    if not documents:
        raise InvalidManifest(f"{path}: 0 documents; expected one")
    return documents[0]


def _documents(tree: Tree, path: str, meter: YamlMeter) -> list[Fields]:
    """The one document of a file, or none. Raises InvalidManifest for more."""
    documents = list(load_documents(tree.files[path], name=path, meter=meter))
    if len(documents) > 1:
        raise InvalidManifest(f"{path}: {len(documents)} documents; expected one")
    return [Fields.of(one.value, path) for one in documents]


def _within(folder: str, path: str) -> str:
    return f"{folder}/{path}" if folder else path
