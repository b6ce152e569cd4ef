"""The extensions of a cluster, as far as the caller may see them, and what the caller may do with their APIs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from provisioner.api_groups import OWN_GROUP
from provisioner.cli.plugin.reading import DEPLOYMENT, VERSION, Record, deployment_of, ref, why_not_installed
from provisioner.cli.usage import Usage
from provisioner.cluster.annotations import OWNER_KIND, OWNER_NAME, label_value
from provisioner.cluster.client.access import ask_self_many, own_rules
from provisioner.cluster.client.api import ClusterClient
from provisioner.errors import Forbidden
from provisioner.extensions import (
    Extension,
    ExtensionApi,
    LocalRights,
    OwnRights,
    extensions_of,
    open_questions,
    owner_named,
    rights_of,
)
from provisioner.pipeline import FIELD_MANAGER
from provisioner.sentences import number
from provisioner.values import ObjectRef

# Definitions hold whole schemas: a page of them is read at a time, and of each only what is told of it is kept.
PAGE = 25
DEPLOYMENTS_PAGE = 100
# Of rights, where the API server cannot list them.
MAX_QUESTIONS = 400
# Of deployments, by who may not list them.
MAX_LOOKS = 100
READER = "ask an administrator to bind you to the ClusterRole pratique-reader, which has it"
_DEFINITIONS = ("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
_SERVICES = ("apiregistration.k8s.io", "v1", "APIService")


@dataclass(frozen=True, slots=True)
class InstalledExtensions:
    """`problems` says what could not be found out, and so may be missing."""

    extensions: tuple[Extension, ...]
    problems: tuple[str, ...] = ()


def installed(api: ClusterClient, name: str = "") -> InstalledExtensions:
    """Every extension that the caller may get, or the one of this name."""
    named = {name: _is_applied(deployment_of(api, name))} if name else None
    problems: list[str] = []
    definitions = _read(api, _DEFINITIONS, name, problems)
    services = _read(api, _SERVICES, name, problems)
    deployments = _deployments(api, [*definitions, *services], problems) if named is None else named
    found = extensions_of(deployments, definitions, services, api.served(), FIELD_MANAGER)
    return InstalledExtensions(tuple(found), tuple(problems))


def _read(api: ClusterClient, kind: tuple[str, str, str], name: str, problems: list[str]) -> list[Record]:
    """What bears the labels of an extension, without schemas."""
    selector = f"{OWNER_KIND}={DEPLOYMENT}" + (f",{OWNER_NAME}={label_value(name)}" if name else "")
    resource = api.resource_of(*kind)
    if resource is None:
        problems.append(f"the cluster serves no {kind[2]}: {'/'.join(kind[:2])} is missing")
        return []
    try:
        return [_without_schemas(one) for one in api.list(resource, label_selector=selector, page=PAGE)]
    except Forbidden as exc:
        right = f"`list` on {resource.plural}.{resource.group}"
        problems.append(
            f"you may not list {kind[2]}s, so APIs are missing here ({exc.server_words or exc}). You need {right}: "
            f"{READER}"
        )
        return []


def _without_schemas(obj: Record) -> Record:
    spec = {**(obj.get("spec") or {})}
    if isinstance(spec.get("versions"), list):
        spec["versions"] = [{**one, "schema": None} for one in spec["versions"] if isinstance(one, dict)]
    return {**obj, "spec": spec}


def _deployments(api: ClusterClient, objects: Iterable[Record], problems: list[str]) -> dict[str, bool]:
    """By name whether a revision runs. Who may not list deployments may still get some of them."""
    resource = api.resource_of(OWN_GROUP, VERSION, DEPLOYMENT)
    if resource is None:
        raise Usage(why_not_installed(api))
    try:
        return {str(one["metadata"]["name"]): _is_applied(one) for one in api.list(resource, page=DEPLOYMENTS_PAGE)}
    except Forbidden as exc:
        known = sorted({owner for one in objects if (owner := owner_named(one, FIELD_MANAGER))})
        looked = {one: _got(api, one) for one in known[:MAX_LOOKS]}
        found = {one: _is_applied(obj) for one, obj in looked.items() if obj is not None}
        if not found:
            raise
        left = len(known) - len(found)
        words = (
            f"{number(left, 'extension')} left out: you may not get"
            if left
            else "those without an API are left out: you may not list"
        )
        problems.append(f"{words} BundleDeployments ({exc.server_words or exc})")
        return found


def _got(api: ClusterClient, name: str) -> Record | None:
    try:
        return api.get(ref(DEPLOYMENT, name))
    except Forbidden:
        return None


def _is_applied(deployment: Record) -> bool:
    return bool((deployment.get("status") or {}).get("activeRevision"))


def may_be_there(api: ClusterClient, namespace: str) -> bool:
    """False for a namespace that is surely not there; who may not look finds out by writing."""
    try:
        return api.get(ObjectRef("", "v1", "Namespace", "", namespace), metadata_only=True) is not None
    except Forbidden:
        return True


def own_rights(api: ClusterClient, apis: Sequence[ExtensionApi], namespace: str) -> OwnRights:
    """What the caller may do in a namespace, without one in the whole cluster: by two questions, or MAX_QUESTIONS more
    where an authorizer cannot list what it allows."""
    everywhere = own_rules(api)
    place = LocalRights(namespace, own_rules(api, namespace) if namespace else everywhere, everywhere)
    asked = list(open_questions(place, apis))
    return rights_of(place, apis, ask_self_many(api, asked[:MAX_QUESTIONS]))
