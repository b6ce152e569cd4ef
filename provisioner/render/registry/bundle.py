"""What lies in an operator bundle, and what OLM would refuse of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeVar

from provisioner.api_groups import ADMISSION_GROUP
from provisioner.errors import BadBundle, InvalidManifest
from provisioner.render.limits import YamlMeter
from provisioner.render.objects import Found
from provisioner.render.registry.csv import (
    ClusterServiceVersion,
    InstallMode,
    WebhookType,
    as_properties,
    bounded,
    csv_of,
    property_requirements,
    unreadable,
)
from provisioner.render.registry.fields import SUPPORTED, Fields, go_json, ordered
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
        bodies = [Fields.of(other.body, other.place) for other in self.others]
        return [body.mapping("metadata") for body in bodies if body.text("kind") == kind]


def bundle_folder(tree: Tree, destinations: Iterable[str]) -> str:
    """The destination of the one source that is an operator bundle; raises BadBundle where none or several are."""
    found = [
        destination for destination in sorted(set(destinations)) if _within(destination, ANNOTATIONS) in tree.files
    ]
    if not found:
        raise BadBundle(f"found no {ANNOTATIONS}: an operator bundle (registry+v1) has manifests/ and metadata/")
    if len(found) > 1:
        raise BadBundle(f"several sources are operator bundles ({some([one or '/' for one in found])}); expected one")
    return found[0]


def read(tree: Tree, folder: str, meter: YamlMeter) -> RegistryBundle:
    """The bundle whose root is `folder`. Raises BadBundle, InvalidManifest and BundleTooLarge."""
    annotations = _within(folder, ANNOTATIONS)
    stated = _documents(tree, annotations, meter)
    if not stated:
        raise InvalidManifest(f"{annotations}: 0 documents; expected one")
    package = stated[0].mapping("annotations").text(PACKAGE)
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
    for found in objects:
        kind = Fields.of(found.body, found.place).text("kind")
        by_kind[kind if kind in by_kind else ""].append(found)
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
    listed, read = _listed_entries(tree, _within(folder, PROPERTIES), meter)
    if any(tree.files[path] for path in read):
        written = go_json([ordered(one.value) for one in (*own, *listed)] or None)
        csv = replace(csv, annotations={**csv.annotations, OLM_PROPERTIES: written})
    # OLM v1 does not read dependencies.yaml, so that one that cannot be read refuses no bundle.
    path = _within(folder, DEPENDENCIES)
    try:
        entries, read_too = _listed_entries(tree, path, meter)
        dependencies = list(property_requirements(as_properties(entries)))
    except InvalidManifest as exc:
        dependencies, read_too = [unreadable(path, str(exc))], [path]
    asked = property_requirements([*own, *listed])
    return RegistryBundle(
        package,
        csv,
        versions[0].file,
        tuple(by_kind["CustomResourceDefinition"]),
        tuple(by_kind[""]),
        (annotations, *read, *read_too, *paths),
        bounded(chain(csv.requirements, asked, dependencies)),
    )


def _listed_entries(tree: Tree, path: str, meter: YamlMeter) -> tuple[list[Fields], list[str]]:
    """The entries of properties.yaml or dependencies.yaml, and its path where it is there."""
    if path not in tree.files:
        return [], []
    documents = _documents(tree, path, meter)
    name = path.rpartition("/")[2].removesuffix(".yaml")
    return (documents[0].mappings(name) if documents else []), [path]


def _documents(tree: Tree, path: str, meter: YamlMeter) -> list[Fields]:
    """The one document of a file, or none. Raises InvalidManifest for more."""
    documents = list(load_documents(tree.files[path], name=path, meter=meter))
    if len(documents) > 1:
        raise InvalidManifest(f"{path}: {len(documents)} documents; expected one")
    return [Fields.of(document.value, path) for document in documents]


def _within(folder: str, path: str) -> str:
    return f"{folder}/{path}" if folder else path


_Name = TypeVar("_Name", str, tuple[str, str])
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_MAX_SUBDOMAIN = 253
_FORBIDDEN_GROUPS = frozenset({"olm.operatorframework.io", "*"})
_FORBIDDEN_RESOURCES = frozenset(
    {
        "*",
        "mutatingwebhookconfiguration",
        "mutatingwebhookconfigurations",
        "validatingwebhookconfiguration",
        "validatingwebhookconfigurations",
    }
)


def check(bundle: RegistryBundle) -> None:
    """Raise BadBundle with every reason why OLM would not install it."""
    problems = [words for ask in _QUESTIONS for words in ask(bundle)]
    if problems:
        raise BadBundle("; ".join(problems))


def _deployments_are_named_once(bundle: RegistryBundle) -> Iterator[str]:
    for name in _repeated(deployment.name for deployment in bundle.csv.deployments):
        yield f"the ClusterServiceVersion has the deployment {name!r} more than once"


def _deployments_have_names(bundle: RegistryBundle) -> Iterator[str]:
    for name in sorted({deployment.name for deployment in bundle.csv.deployments}):
        if not _is_subdomain(name):
            yield f"the deployment name {name[:80]!r} is no DNS subdomain"


def _crds_are_there_once(bundle: RegistryBundle) -> Iterator[str]:
    for name in _repeated(_names(bundle)):
        yield f"the bundle has the CRD {name!r} more than once"


def _owned_crds_are_there(bundle: RegistryBundle) -> Iterator[str]:
    for name in sorted(set(bundle.csv.owned_crds) - set(_names(bundle))):
        yield f"the ClusterServiceVersion owns the CRD {name!r}, which is not in the bundle"


def _package_is_named(bundle: RegistryBundle) -> Iterator[str]:
    if not bundle.package:
        yield "metadata/annotations.yaml names no package"


def _conversion_is_for_all_namespaces(bundle: RegistryBundle) -> Iterator[str]:
    if bundle.csv.modes == {InstallMode.ALL}:
        return
    for webhook in bundle.csv.webhooks:
        if webhook.type == WebhookType.CONVERSION:
            modes = ", ".join(sorted(bundle.csv.modes)) or "none"
            yield f"the conversion webhook {webhook.name!r} needs AllNamespaces as the only install mode; found {modes}"


def _webhooks_have_deployments(bundle: RegistryBundle) -> Iterator[str]:
    known = {deployment.name for deployment in bundle.csv.deployments}
    for webhook in sorted(bundle.csv.webhooks, key=lambda webhook: (webhook.deployment, webhook.type, webhook.name)):
        if webhook.deployment not in known:
            yield f"the {webhook.type} {webhook.name!r} names the deployment {webhook.deployment!r}, which is not there"


def _webhooks_are_named_once(bundle: RegistryBundle) -> Iterator[str]:
    for kind, name in _repeated((webhook.type, webhook.name) for webhook in bundle.csv.webhooks):
        yield f"the {kind} {name!r} is there more than once"


def _webhooks_have_names(bundle: RegistryBundle) -> Iterator[str]:
    for kind, name in sorted({(webhook.type, webhook.name) for webhook in bundle.csv.webhooks}):
        if not _is_subdomain(name):
            yield f"the {kind} name {name[:80]!r} is no DNS subdomain"


def _crds_are_converted_once(bundle: RegistryBundle) -> Iterator[str]:
    crds = [crd for webhook in bundle.csv.webhooks if webhook.type == WebhookType.CONVERSION for crd in webhook.crds]
    for name in _repeated(crds):
        yield f"more than one conversion webhook is for the CRD {name!r}"


def _converted_crds_are_owned(bundle: RegistryBundle) -> Iterator[str]:
    for webhook in sorted(bundle.csv.webhooks, key=lambda webhook: webhook.name):
        if webhook.type != WebhookType.CONVERSION:
            continue
        for crd in sorted(set(webhook.crds) - set(bundle.csv.owned_crds)):
            yield f"the conversion webhook {webhook.name!r} is for the CRD {crd!r}, which the bundle does not own"


def _webhooks_leave_admission_alone(bundle: RegistryBundle) -> Iterator[str]:
    for webhook in bundle.csv.webhooks:
        if webhook.type == WebhookType.CONVERSION:
            continue
        start = f"the webhook {webhook.name!r} has a rule for"
        for rule in webhook.rules:
            for group in rule.texts("apiGroups"):
                if group in _FORBIDDEN_GROUPS:
                    yield f"{start} the API group {group!r}, which no bundle may have"
                for resource in rule.texts("resources") if group == ADMISSION_GROUP else ():
                    if resource.lower() in _FORBIDDEN_RESOURCES:
                        yield f"{start} {resource!r} of {group}, which no bundle may have"


def _objects_are_supported(bundle: RegistryBundle) -> Iterator[str]:
    for other in bundle.others:
        kind = Fields.of(other.body, other.place).text("kind")
        if kind not in SUPPORTED:
            yield f"{other.place}: an operator bundle cannot have a {kind or 'object without a kind'}"


def _no_api_services(bundle: RegistryBundle) -> Iterator[str]:
    if bundle.csv.owned_api_services:
        yield "apiservicedefinitions are not supported"


_QUESTIONS: tuple[Callable[[RegistryBundle], Iterable[str]], ...] = (
    _deployments_are_named_once,
    _deployments_have_names,
    _crds_are_there_once,
    _owned_crds_are_there,
    _package_is_named,
    _conversion_is_for_all_namespaces,
    _webhooks_have_deployments,
    _webhooks_are_named_once,
    _webhooks_have_names,
    _crds_are_converted_once,
    _converted_crds_are_owned,
    _webhooks_leave_admission_alone,
    _objects_are_supported,
    _no_api_services,
)


def _names(bundle: RegistryBundle) -> list[str]:
    return [Fields.of(crd.body, crd.place).mapping("metadata").text("name") for crd in bundle.crds]


def _repeated(names: Iterable[_Name]) -> list[_Name]:
    return sorted(name for name, count in Counter(names).items() if count > 1)


def _is_subdomain(name: str) -> bool:
    return len(name) <= _MAX_SUBDOMAIN and _SUBDOMAIN.fullmatch(name) is not None
