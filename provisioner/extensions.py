"""What an installed extension brings for others to use: its APIs, rights on them, roles for them. Pure.

An extension is a BundleDeployment, seen by those who use what it installs. Its APIs are those of its
CustomResourceDefinitions and APIServices, and what discovery says of them.

The ClusterRoles are as Kubernetes has them for its own APIs (view, edit, admin). Names are stable: the same grant is
the same objects again, whoever makes it. One binding holds one subject, so that to take a right back is to delete one
object.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from provisioner.api_groups import OWN_GROUP, RBAC_GROUP
from provisioner.cluster.annotations import has_named_owner, label_value, owner_on
from provisioner.cluster.client.discovery import Served, ServedResource
from provisioner.json_values import mapping, maps
from provisioner.rbac import OwnRules, PolicyRule, RbacSubject, allows, minimal
from provisioner.schema import kube_order
from provisioner.values import AccessRequest, JsonObject, ObjectRef

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
        served = [version for version in self.versions if version.is_served]
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
        more = {version.name: version for version in (*api.versions, *known.versions)}
        api = replace(known, versions=_ordered(more.values()), verbs=known.verbs | api.verbs)
    found[api.group, api.plural] = api


def _ordered(versions: Iterable[ApiVersion]) -> tuple[ApiVersion, ...]:
    return tuple(sorted(versions, key=lambda it: kube_order(it.name), reverse=True))


# Definitions


def _of_definition(definition: JsonObject, served: Served) -> ExtensionApi:
    spec, status = mapping(definition.get("spec")), mapping(definition.get("status"))
    names, group = mapping(spec.get("names")), str(spec.get("group") or "")
    plural, kind = str(names.get("plural") or ""), str(names.get("kind") or "")
    stored = {str(version) for version in status.get("storedVersions") or ()}
    versions = _ordered(_version(one, stored) for one in maps(spec.get("versions")))
    found = _served(served, group, plural)
    subresources = {name for one in found for name in one.subresources}
    return ExtensionApi(
        group,
        plural,
        kind,
        spec.get("scope") == "Namespaced",
        versions,
        ObjectRef.of(definition),
        tuple(sorted(str(short_name) for short_name in names.get("shortNames") or ())),
        frozenset(verb for one in found for verb in one.verbs) or CUSTOM_VERBS,
        tuple(sorted(subresources)),
        "" if found else _why_not_served(definition, versions),
    )


def _version(entry: Mapping[str, Any], stored: set[str]) -> ApiVersion:
    name, is_deprecated = str(entry.get("name") or ""), entry.get("deprecated") is True
    warning = str(entry.get("deprecationWarning") or "") if is_deprecated else ""
    return ApiVersion(name, entry.get("served") is True, name in stored, is_deprecated, warning)


def _why_not_served(definition: JsonObject, versions: tuple[ApiVersion, ...]) -> str:
    if not any(version.is_served for version in versions):
        return "no version is served"
    if mapping(definition.get("metadata")).get("deletionTimestamp"):
        return "its definition is being deleted"
    said = [
        f"{one.get('type')} is {one.get('status')}: {one.get('message')}"
        for one in maps(mapping(definition.get("status")).get("conditions"))
        if one.get("type") in ("NamesAccepted", "Established") and one.get("status") != "True"
    ]
    return "; ".join(said) or "the API server does not serve it yet"


# APIServices


def _of_service(service: JsonObject, served: Served) -> Iterator[ExtensionApi | UnknownApi]:
    spec, ref = mapping(service.get("spec")), ObjectRef.of(service)
    group, version = str(spec.get("group") or ""), str(spec.get("version") or "")
    found = [resource for resource in served.resources if (resource.group, resource.version) == (group, version)]
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
    conditions = maps(mapping(service.get("status")).get("conditions"))
    said = [str(condition.get("message") or "") for condition in conditions if condition.get("type") == "Available"]
    return next((words for words in said if words), "") or "nothing is known of it yet"


def _served(served: Served, group: str, plural: str) -> list[ServedResource]:
    return [resource for resource in served.resources if (resource.group, resource.plural) == (group, plural)]


# As people read them: what looks before what changes.
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
ANY = "*"
# Nobody lists, makes or deletes these parts of an object.
_PARTS = {"status": ("get", "update", "patch"), "scale": ("get", "update", "patch")}


@dataclass(frozen=True, slots=True)
class HeldVerbs:
    """The verbs that somebody may use on a resource, in their usual order.

    `named` are those for single objects only, by verb. Of `unknown` nobody could say.
    """

    verbs: tuple[str, ...] = ()
    named: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LocalRights:
    """What somebody holds in a namespace ("" for the whole cluster), and what in the whole cluster."""

    namespace: str
    here: OwnRules
    everywhere: OwnRules

    def rules_for(self, api: ExtensionApi) -> OwnRules:
        return self.here if api.is_namespaced else self.everywhere

    def request(self, verb: str, api: ExtensionApi, subresource: str = "") -> AccessRequest:
        namespace = self.namespace if api.is_namespaced else ""
        return AccessRequest(verb, api.group, api.plural, subresource, namespace)


@dataclass(frozen=True, slots=True)
class OwnRights:
    """What somebody may do with each API, by its name, and with its subresources, by both names.

    `unasked` are how many questions nobody asked, and `problem` why there were any.
    """

    apis: Mapping[str, HeldVerbs]
    subresources: Mapping[tuple[str, str], HeldVerbs]
    unasked: int = 0
    problem: str = ""


def open_questions(place: LocalRights, apis: Iterable[ExtensionApi]) -> Iterator[AccessRequest]:
    """What has to be asked one by one, for want of a complete list."""
    for api in apis:
        own = place.rules_for(api)
        for verb in _verbs_of(api, ""):
            request = place.request(verb, api)
            if not own.is_complete and not allows(own.rules, request):
                yield request


def rights_of(place: LocalRights, apis: Iterable[ExtensionApi], answers: Mapping[AccessRequest, bool]) -> OwnRights:
    """What the rules say, and the `answers` to what was asked beside them."""
    wanted = list(apis)
    held = {one.name: _held(place, one, answers) for one in wanted}
    parts = {(one.name, part): _held(place, one, answers, part) for one in wanted for part in one.subresources}
    unasked = sum(len(one.unknown) for one in held.values())
    return OwnRights(held, parts, unasked, place.here.problem or place.everywhere.problem if unasked else "")


def _held(
    place: LocalRights, api: ExtensionApi, answers: Mapping[AccessRequest, bool], subresource: str = ""
) -> HeldVerbs:
    own, verbs = place.rules_for(api), _verbs_of(api, subresource)
    requests = {verb: place.request(verb, api, subresource) for verb in verbs}
    held = [verb for verb in verbs if allows(own.rules, requests[verb]) or answers.get(requests[verb])]
    left = [verb for verb in verbs if verb not in held]
    named = {verb: names for verb in left if (names := _names(own.rules, requests[verb]))}
    unknown = () if own.is_complete else tuple(verb for verb in left if requests[verb] not in answers)
    return HeldVerbs((*held, *(() if subresource else _special(own.rules, place, api))), named, unknown)


def _verbs_of(api: ExtensionApi, subresource: str) -> tuple[str, ...]:
    if subresource:
        return _PARTS.get(subresource, VERBS)
    return tuple(verb for verb in VERBS if verb in api.verbs)


def _names(rules: Iterable[PolicyRule], request: AccessRequest) -> tuple[str, ...]:
    limited = (rule for rule in rules if rule.resource_names)
    fitting = (rule for rule in limited if allows([rule], replace(request, name=rule.resource_names[0])))
    return tuple(sorted({name for rule in fitting for name in rule.resource_names}))


def _special(rules: Iterable[PolicyRule], place: LocalRights, api: ExtensionApi) -> tuple[str, ...]:
    """Verbs of the extension's own making, where a rule names them for this very resource."""
    fitting = [rule for rule in rules if api.plural in rule.resources and not rule.resource_names]
    named = {verb for rule in fitting for verb in rule.verbs if verb not in (ANY, *VERBS)}
    return tuple(verb for verb in sorted(named) if allows(fitting, place.request(verb, api)))


MANAGED_BY, MANAGER = "app.kubernetes.io/managed-by", "kubectl-pratique"
APIS_OF, LEVEL = f"{OWN_GROUP}/apis-of", f"{OWN_GROUP}/access"
_AGGREGATED = f"{RBAC_GROUP}/aggregate-to-"
_READ = ("get", "list", "watch")
_WRITE = ("create", "delete", "deletecollection", "patch", "update")
_V1 = f"{RBAC_GROUP}/v1"
_HASH_LENGTH = 8


class AccessLevel(StrEnum):
    """What somebody is to do with objects: look, change, or everything that the extension knows."""

    VIEW = "view"
    EDIT = "edit"
    ADMIN = "admin"


def role_of(extension: Extension, level: AccessLevel, *, is_aggregated: bool) -> dict[str, Any]:
    """The ClusterRole for all APIs of the extension. Aggregated, it is part of Kubernetes' role of that name."""
    labels = _labels(extension.name, level)
    labels |= {f"{_AGGREGATED}{level}": "true"} if is_aggregated else {}
    rules = minimal(rule for api in extension.apis for rule in _rules(api, level))
    return {
        "apiVersion": _V1,
        "kind": "ClusterRole",
        "metadata": {"name": role_name(extension.name, level), "labels": labels},
        "rules": [rule.to_object() for rule in rules],
    }


def binding_of(extension: str, level: AccessLevel, subject: RbacSubject, namespace: str) -> dict[str, Any]:
    """The binding of one subject to that role: in a namespace, without one in the whole cluster."""
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    meta: dict[str, Any] = {"name": binding_name(extension, level, subject)}
    meta |= {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": _V1,
        "kind": kind,
        "metadata": {**meta, "labels": _labels(extension, level)},
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": role_name(extension, level)},
        "subjects": [_subject(subject)],
    }


def role_name(extension: str, level: AccessLevel) -> str:
    return f"{extension}-apis-{level}"


def binding_name(extension: str, level: AccessLevel, subject: RbacSubject) -> str:
    """Names of users may be anything: a hash tells them apart."""
    told_apart = hashlib.sha256(f"{subject.kind}\n{subject.namespace}\n{subject.name}".encode()).hexdigest()
    return f"{role_name(extension, level)}-{told_apart[:_HASH_LENGTH]}"


def selector_of(extension: str, level: AccessLevel | None) -> str:
    """The label selector of all that was made for an extension."""
    wanted = {MANAGED_BY: MANAGER, APIS_OF: label_value(extension)} | ({LEVEL: str(level)} if level else {})
    return ",".join(f"{key}={value}" for key, value in wanted.items())


def is_ours(obj: JsonObject, extension: str) -> bool:
    """Whether a role or binding was made by a grant of this extension's APIs."""
    labels = _labels_on(obj)
    return labels.get(MANAGED_BY) == MANAGER and labels.get(APIS_OF) == label_value(extension)


def is_aggregated(role: JsonObject) -> bool:
    """Whether the rules of a role are part of roles of Kubernetes."""
    return any(key.startswith(_AGGREGATED) and value == "true" for key, value in _labels_on(role).items())


def is_as_wanted(live: JsonObject | None, wanted: JsonObject) -> bool:
    """Whether a live role or binding says already what is wanted of it."""
    if live is None:
        return False
    keys = ("rules",) if wanted["kind"] == "ClusterRole" else ("roleRef", "subjects")
    labels, there = _labels_on(wanted), _labels_on(live)
    are_labelled = all(there.get(key) == value for key, value in labels.items())
    return are_labelled and is_aggregated(live) == is_aggregated(wanted) and all(live.get(k) == wanted[k] for k in keys)


def roles_in_use(bindings: Iterable[JsonObject], going: Iterable[ObjectRef]) -> frozenset[str]:
    """The ClusterRoles that bindings name once those that are `going` are gone."""
    gone = {ref.identity for ref in going}
    staying = (binding for binding in bindings if ObjectRef.of(binding).identity not in gone)
    return frozenset(str(mapping(one.get("roleRef")).get("name")) for one in staying if _names_cluster_role(one))


def _names_cluster_role(binding: JsonObject) -> bool:
    return mapping(binding.get("roleRef")).get("kind") == "ClusterRole"


def _rules(api: ExtensionApi, level: AccessLevel) -> Iterator[PolicyRule]:
    """Of parts of objects that only the extension knows (such as a console), nobody but an admin may use any: for many
    of them `get` is all it takes."""
    group = (api.group,)
    if level is AccessLevel.ADMIN:
        parts = (f"{api.plural}/{part}" for part in api.subresources)
        yield PolicyRule(("*",), group, (api.plural, *parts))
        return
    verbs = _READ if level is AccessLevel.VIEW else (*_READ, *_WRITE)
    known = tuple(verb for verb in verbs if verb in api.verbs)
    if known:
        yield PolicyRule(known, group, (api.plural,))
    for part in ("status", "scale"):
        if part in api.subresources:
            is_changed = part == "scale" and level is AccessLevel.EDIT
            yield PolicyRule(("get", "patch", "update") if is_changed else ("get",), group, (f"{api.plural}/{part}",))


def _labels(extension: str, level: AccessLevel) -> dict[str, str]:
    return {MANAGED_BY: MANAGER, APIS_OF: label_value(extension), LEVEL: str(level)}


def _subject(subject: RbacSubject) -> dict[str, str]:
    if subject.kind == "ServiceAccount":
        return {"kind": subject.kind, "name": subject.name, "namespace": subject.namespace}
    return {"kind": subject.kind, "name": subject.name, "apiGroup": RBAC_GROUP}


def _labels_on(obj: JsonObject) -> Mapping[str, Any]:
    return mapping(mapping(obj.get("metadata")).get("labels"))
