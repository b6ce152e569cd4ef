"""Which APIs an extension serves: by its CustomResourceDefinitions and APIServices, and by what discovery says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from provisioner.cluster.annotations import has_named_owner, owner_on
from provisioner.cluster.client.discovery import Served, ServedResource
from provisioner.schema import kube_order
from provisioner.values import JsonObject, ObjectRef

# What the API server itself serves of every custom resource.
CUSTOM_VERBS = frozenset({"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True, slots=True)
class ApiVersion:
    """One version of an API; `warning` is what its authors say of a deprecated one."""

    name: str
    is_served: bool = True
    is_stored: bool = False
    is_deprecated: bool = False
    warning: str = ""


@dataclass(frozen=True, slots=True)
class ExtensionApi:
    """One resource with its versions, the preferred one first.

    `verbs` are those that its server knows. `source` is the object that brings it. `problem` says why nobody can use
    it now, "" where people can.
    """

    group: str
    plural: str
    kind: str
    is_namespaced: bool
    versions: tuple[ApiVersion, ...]
    source: ObjectRef
    short_names: tuple[str, ...] = ()
    verbs: frozenset[str] = CUSTOM_VERBS
    subresources: tuple[str, ...] = ()
    problem: str = ""

    @property
    def name(self) -> str:
        """As kubectl takes it: `widgets.example.com`."""
        return f"{self.plural}.{self.group}"

    @property
    def is_deprecated(self) -> bool:
        """Whether each version that is served is."""
        served = [one for one in self.versions if one.is_served]
        return bool(served) and all(one.is_deprecated for one in served)


@dataclass(frozen=True, slots=True)
class UnknownApi:
    """A group and version of which nobody can say what is in it, and why."""

    group: str
    version: str
    source: ObjectRef
    why: str


@dataclass(frozen=True, slots=True)
class Extension:
    """A BundleDeployment with all that it serves; `is_applied` says whether any revision of it runs."""

    name: str
    apis: tuple[ExtensionApi, ...] = ()
    unknown: tuple[UnknownApi, ...] = ()
    is_applied: bool = True


def owner_named(obj: JsonObject, manager: str) -> str:
    """The BundleDeployment that `manager` wrote `obj` for; "" where it wrote it for nobody.

    Whoever may edit a CustomResourceDefinition can forge it: a hint for people, and no proof (S20).
    """
    owner = owner_on(obj)
    return owner.name if owner is not None and has_named_owner(obj, manager) else ""


def extensions_of(
    deployments: Mapping[str, bool],
    definitions: Iterable[JsonObject],
    services: Iterable[JsonObject],
    served: Served,
    manager: str,
) -> list[Extension]:
    """The extensions of these names, sorted, each with the APIs of what was written for it.

    `deployments` says of each whether a revision of it runs.
    """
    apis: dict[str, dict[tuple[str, str], ExtensionApi]] = {name: {} for name in deployments}
    unknown: dict[str, list[UnknownApi]] = {name: [] for name in apis}
    for definition in definitions:
        owner = owner_named(definition, manager)
        if owner in apis:
            _add(apis[owner], _of_definition(definition, served))
    for service in services:
        owner = owner_named(service, manager)
        for one in _of_service(service, served) if owner in apis else ():
            if isinstance(one, UnknownApi):
                unknown[owner].append(one)
            else:
                _add(apis[owner], one)
    return [
        Extension(
            name,
            tuple(apis[name][key] for key in sorted(apis[name])),
            tuple(sorted(unknown[name], key=lambda it: (it.group, it.version))),
            deployments[name],
        )
        for name in sorted(apis)
    ]


def _add(found: dict[tuple[str, str], ExtensionApi], api: ExtensionApi) -> None:
    """Versions of one resource may come by several APIServices."""
    known = found.get((api.group, api.plural))
    if known is not None:
        more = {one.name: one for one in (*api.versions, *known.versions)}
        api = replace(known, versions=_ordered(more.values()), verbs=known.verbs | api.verbs)
    found[api.group, api.plural] = api


def _ordered(versions: Iterable[ApiVersion]) -> tuple[ApiVersion, ...]:
    return tuple(sorted(versions, key=lambda it: kube_order(it.name), reverse=True))


# Definitions


def _of_definition(definition: JsonObject, served: Served) -> ExtensionApi:
    spec, status = _map(definition.get("spec")), _map(definition.get("status"))
    names, group = _map(spec.get("names")), str(spec.get("group") or "")
    plural, kind = str(names.get("plural") or ""), str(names.get("kind") or "")
    stored = {str(one) for one in status.get("storedVersions") or ()}
    versions = _ordered(_version(one, stored) for one in _maps(spec.get("versions")))
    found = _served(served, group, plural)
    subresources = {name for one in found for name in one.subresources}
    return ExtensionApi(
        group,
        plural,
        kind,
        spec.get("scope") == "Namespaced",
        versions,
        ObjectRef.of(definition),
        tuple(sorted(str(one) for one in names.get("shortNames") or ())),
        frozenset(verb for one in found for verb in one.verbs) or CUSTOM_VERBS,
        tuple(sorted(subresources)),
        "" if found else _why_not_served(definition, versions),
    )


def _version(entry: Mapping[str, Any], stored: set[str]) -> ApiVersion:
    name, is_deprecated = str(entry.get("name") or ""), entry.get("deprecated") is True
    warning = str(entry.get("deprecationWarning") or "") if is_deprecated else ""
    return ApiVersion(name, entry.get("served") is True, name in stored, is_deprecated, warning)


def _why_not_served(definition: JsonObject, versions: tuple[ApiVersion, ...]) -> str:
    if not any(one.is_served for one in versions):
        return "no version is served"
    if _map(definition.get("metadata")).get("deletionTimestamp"):
        return "its definition is being deleted"
    said = [
        f"{one.get('type')} is {one.get('status')}: {one.get('message')}"
        for one in _maps(_map(definition.get("status")).get("conditions"))
        if one.get("type") in ("NamesAccepted", "Established") and one.get("status") != "True"
    ]
    return "; ".join(said) or "the API server does not serve it yet"


# APIServices


def _of_service(service: JsonObject, served: Served) -> Iterator[ExtensionApi | UnknownApi]:
    spec, ref = _map(service.get("spec")), ObjectRef.of(service)
    group, version = str(spec.get("group") or ""), str(spec.get("version") or "")
    found = [one for one in served.resources if (one.group, one.version) == (group, version)]
    if not found:
        yield UnknownApi(group, version, ref, _why_silent(service))
        return
    problem = f"its server does not answer: {_why_silent(service)}" if served.is_unknown(group, version) else ""
    for one in found:
        yield ExtensionApi(
            group,
            one.plural,
            one.kind,
            one.is_namespaced,
            (ApiVersion(version),),
            ref,
            tuple(sorted(one.other_names - {one.kind.lower()})),
            one.verbs,
            tuple(sorted(one.subresources)),
            problem,
        )


def _why_silent(service: JsonObject) -> str:
    conditions = _maps(_map(service.get("status")).get("conditions"))
    said = [str(one.get("message") or "") for one in conditions if one.get("type") == "Available"]
    return next((words for words in said if words), "") or "nothing is known of it yet"


def _served(served: Served, group: str, plural: str) -> list[ServedResource]:
    return [one for one in served.resources if (one.group, one.plural) == (group, plural)]


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _maps(value: object) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list | tuple) else []
