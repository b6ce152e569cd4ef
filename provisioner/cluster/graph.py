"""Which objects of a bundle need which others of it, and in how many steps they can come. Pure.

Phases (order.py) say what generally comes first; the needs say what this very object cannot do without, also within one
phase or against the order of the phases.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from provisioner import api_groups
from provisioner.errors import DependencyCycle, InvalidManifest
from provisioner.values import GroupKind, JsonObject, Manifest, ObjectIdentity, ObjectRef

# An order that the content states itself, in the words of kpt and cli-utils.
DEPENDS_ON = "config.kubernetes.io/depends-on"
NAMESPACE = GroupKind("", "Namespace")
DEFINITION = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")

_STORAGE_CLASS = ("storage.k8s.io", "StorageClass")
_STATED = re.compile(r"([^/]*)/(?:namespaces/([^/]+)/)?([^/]+)/([^/]+)")


@dataclass(frozen=True, slots=True)
class Need:
    """Something that has to be there first; `is_ready`: it also has to work."""

    identity: ObjectIdentity
    is_ready: bool = False


@dataclass(frozen=True, slots=True)
class _Bundle:
    """A bundle's manifests by what others ask for."""

    by_identity: dict[ObjectIdentity, Manifest] = field(default_factory=dict)
    definitions: dict[GroupKind, Manifest] = field(default_factory=dict)
    served: dict[tuple[str, str], Manifest] = field(default_factory=dict)
    workloads: list[Manifest] = field(default_factory=list)


def needs_of(manifests: Iterable[Manifest]) -> dict[ObjectIdentity, frozenset[Need]]:
    """For each manifest what it needs of the others. What is no part of the bundle is nobody's need.

    Raises InvalidManifest where an object states an order that nobody can read.
    """
    bundle = _bundle(manifests)
    return {identity: frozenset(_within(bundle, manifest)) for identity, manifest in bundle.by_identity.items()}


def in_steps(
    needs: Mapping[ObjectIdentity, frozenset[Need]], place: Callable[[ObjectIdentity], tuple[int, int]]
) -> dict[ObjectIdentity, tuple[int, int]]:
    """(phase, step) for each object: its own `place`, or later, so that it comes after everything that it needs.

    Raises DependencyCycle, showing it.
    """
    placed: dict[ObjectIdentity, tuple[int, int]] = {}
    for identity in _needed_first(needs):
        own = place(identity)
        for need in needs[identity]:
            phase, step = placed[need.identity]
            own = max(own, (phase, step + 1))
        placed[identity] = own
    return placed


def stated(manifest: Manifest) -> list[ObjectIdentity]:
    """What an object itself says that it depends on; nothing where that cannot be read."""
    try:
        return [need.identity for need in _stated(manifest)]
    except InvalidManifest:
        return []


def _needed_first(needs: Mapping[ObjectIdentity, frozenset[Need]]) -> Iterator[ObjectIdentity]:
    """Every object after what it needs. A stack of our own: a bundle may be deeper than Python's."""
    done: set[ObjectIdentity] = set()
    for start in sorted(needs):
        path = {start: _sorted_needs(needs, start)} if start not in done else {}
        while path:
            current = next(reversed(path))
            needed = next((one for one in path[current] if one not in done), None)
            if needed is None:
                done.add(current)
                path.popitem()
                yield current
            elif needed in path:
                raise DependencyCycle(_cycle_words([*path], needed))
            else:
                path[needed] = _sorted_needs(needs, needed)


def _sorted_needs(
    needs: Mapping[ObjectIdentity, frozenset[Need]], identity: ObjectIdentity
) -> Iterator[ObjectIdentity]:
    return iter(sorted({need.identity for need in needs[identity]}))


def _cycle_words(path: list[ObjectIdentity], again: ObjectIdentity) -> str:
    cycle = [*path[path.index(again) :], again]
    shown = [str(ObjectRef(group, "", kind, namespace, name)) for group, kind, namespace, name in cycle]
    return f"no order of apply is possible, each needs the next: {' → '.join(shown)}"


def _bundle(manifests: Iterable[Manifest]) -> _Bundle:
    found = _Bundle()
    for manifest in manifests:
        ref, spec = manifest.ref, _map(manifest.body.get("spec"))
        found.by_identity[ref.identity] = manifest
        if ref.group_kind == DEFINITION:
            names = _map(spec.get("names"))
            found.definitions[GroupKind(_text(spec.get("group")), _text(names.get("kind")))] = manifest
        elif ref.group_kind == GroupKind("apiregistration.k8s.io", "APIService") and spec.get("service"):
            found.served[_text(spec.get("group")), _text(spec.get("version"))] = manifest
        elif _pod_labels(manifest.body):
            found.workloads.append(manifest)
    return found


def _within(bundle: _Bundle, manifest: Manifest) -> Iterator[Need]:
    for need in (*_of_place(bundle, manifest), *_of_kind(bundle, manifest), *_stated(manifest)):
        if need.identity in bundle.by_identity:
            yield need


def _of_place(bundle: _Bundle, manifest: Manifest) -> Iterator[Need]:
    """The namespace that an object lives in, and what serves its kind."""
    ref = manifest.ref
    if ref.namespace:
        yield Need(("", "Namespace", "", ref.namespace), is_ready=True)
    definition = bundle.definitions.get(ref.group_kind)
    if definition is not None:
        yield Need(definition.ref.identity, is_ready=True)
        yield from _of_conversion(bundle, definition, ref.version)
    elif ref.api_version and (service := bundle.served.get((ref.group, ref.version))):
        yield Need(service.ref.identity, is_ready=True)


def _of_conversion(bundle: _Bundle, definition: Manifest, version: str) -> Iterator[Need]:
    """An object in another version than the stored one is converted, by the bundle's own webhook as it may be."""
    spec = _map(definition.body.get("spec"))
    stored = {_text(_map(one).get("name")) for one in _list(spec.get("versions")) if _map(one).get("storage") is True}
    webhook = _map(_map(spec.get("conversion")).get("webhook"))
    if version not in stored:
        yield from _backend(bundle, _map(_map(webhook.get("clientConfig")).get("service")))


def _of_kind(bundle: _Bundle, manifest: Manifest) -> Iterator[Need]:
    ref, spec = manifest.ref, _map(manifest.body.get("spec"))
    for service in _called(manifest):
        yield from _backend(bundle, service)
    match (ref.group, ref.kind):
        case (api_groups.RBAC_GROUP, "RoleBinding" | "ClusterRoleBinding"):
            role = _map(manifest.body.get("roleRef"))
            kind = _text(role.get("kind"))
            yield Need((api_groups.RBAC_GROUP, kind, ref.namespace if kind == "Role" else "", _text(role.get("name"))))
        case (api_groups.ADMISSION_GROUP, "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding"):
            yield Need(
                (api_groups.ADMISSION_GROUP, ref.kind.removesuffix("Binding"), "", _text(spec.get("policyName")))
            )
        case ("", "PersistentVolumeClaim" | "PersistentVolume"):
            yield Need((*_STORAGE_CLASS, "", _text(spec.get("storageClassName"))))
        case ("networking.k8s.io", "Ingress"):
            yield Need(("networking.k8s.io", "IngressClass", "", _text(spec.get("ingressClassName"))))
        case ("cert-manager.io", "Certificate"):
            yield from _issuer(ref, _map(spec.get("issuerRef")))


def _called(manifest: Manifest) -> list[Mapping[str, Any]]:
    """The services that the API server will call because of an object."""
    if manifest.ref.group == "apiregistration.k8s.io":
        return [_map(_map(manifest.body.get("spec")).get("service"))]
    hooks = _list(manifest.body.get("webhooks")) if manifest.ref.group == api_groups.ADMISSION_GROUP else []
    return [_map(_map(_map(hook).get("clientConfig")).get("service")) for hook in hooks]


def _issuer(ref: ObjectRef, issuer: Mapping[str, Any]) -> Iterator[Need]:
    kind = _text(issuer.get("kind")) or "Issuer"
    namespace = ref.namespace if kind == "Issuer" else ""
    yield Need((_text(issuer.get("group")) or ref.group, kind, namespace, _text(issuer.get("name"))))


def _backend(bundle: _Bundle, service: Mapping[str, Any]) -> Iterator[Need]:
    """A Service that the API server calls, and the workloads behind it, which have to answer."""
    namespace = _text(service.get("namespace"))
    identity = ("", "Service", namespace, _text(service.get("name")))
    found = bundle.by_identity.get(identity)
    if found is None:
        return
    yield Need(identity)
    selector = _map(_map(found.body.get("spec")).get("selector"))
    for workload in bundle.workloads:
        is_behind = bool(selector) and selector.items() <= _pod_labels(workload.body).items()
        if workload.ref.namespace == namespace and is_behind:
            yield Need(workload.ref.identity, is_ready=True)


def _stated(manifest: Manifest) -> Iterator[Need]:
    annotations = _map(_map(manifest.body.get("metadata")).get("annotations"))
    for word in filter(None, (part.strip() for part in _text(annotations.get(DEPENDS_ON)).split(","))):
        match = _STATED.fullmatch(word)
        if match is None:
            wanted = "group/kind/name or group/namespaces/namespace/kind/name"
            raise InvalidManifest(f"{manifest.ref}: {DEPENDS_ON} says {word!r}; expected {wanted}")
        group, namespace, kind, name = match.groups()
        yield Need((group, kind, namespace or "", name), is_ready=True)


def _pod_labels(body: JsonObject) -> Mapping[str, Any]:
    template = _map(_map(body.get("spec")).get("template"))
    return _map(_map(template.get("metadata")).get("labels"))


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
