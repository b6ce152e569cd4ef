"""In which order the objects of a bundle enter a cluster, and leave it, and which needs which others of it. Pure.

The phases are those of OLM v1: what others stand on comes first, what can refuse comes last. Phases say what generally
comes first; the needs say what this very object cannot do without, also within one phase or against their order.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from provisioner import api_groups
from provisioner.api_groups import ADMISSION_GROUP
from provisioner.errors import DependencyCycle, InvalidManifest
from provisioner.json_values import items, mapping
from provisioner.phases import PHASE_OF, PHASES, phase_name, phase_of
from provisioner.values import GroupKind, HookMoment, JsonObject, Manifest, ObjectIdentity, ObjectRef

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
    bundle = _Bundle()
    for manifest in manifests:
        ref, spec = manifest.ref, mapping(manifest.body.get("spec"))
        bundle.by_identity[ref.identity] = manifest
        if ref.group_kind == DEFINITION:
            names = mapping(spec.get("names"))
            bundle.definitions[GroupKind(_text_or_empty(spec.get("group")), _text_or_empty(names.get("kind")))] = (
                manifest
            )
        elif ref.group_kind == GroupKind("apiregistration.k8s.io", "APIService") and spec.get("service"):
            bundle.served[_text_or_empty(spec.get("group")), _text_or_empty(spec.get("version"))] = manifest
        elif _pod_labels(manifest.body):
            bundle.workloads.append(manifest)
    needs = {}
    for identity, manifest in bundle.by_identity.items():
        found = (*_needs_of_place(bundle, manifest), *_needs_of_kind(bundle, manifest), *_stated(manifest))
        needs[identity] = frozenset(need for need in found if need.identity in bundle.by_identity)
    return needs


def place_in_steps(
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


def stated_dependencies(manifest: Manifest) -> list[ObjectIdentity]:
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
            needed = next((need for need in path[current] if need not in done), None)
            if needed is None:
                done.add(current)
                path.popitem()
                yield current
            elif needed in path:
                above = [*path]
                cycle = [*above[above.index(needed) :], needed]
                shown = (str(ObjectRef(group, "", kind, namespace, name)) for group, kind, namespace, name in cycle)
                words = f"no order of apply is possible, each needs the next: {' → '.join(shown)}"
                raise DependencyCycle(words)
            else:
                path[needed] = _sorted_needs(needs, needed)


def _sorted_needs(
    needs: Mapping[ObjectIdentity, frozenset[Need]], identity: ObjectIdentity
) -> Iterator[ObjectIdentity]:
    return iter(sorted({need.identity for need in needs[identity]}))


def _needs_of_place(bundle: _Bundle, manifest: Manifest) -> Iterator[Need]:
    """The namespace that an object lives in, and what serves its kind."""
    ref = manifest.ref
    if ref.namespace:
        yield Need(("", "Namespace", "", ref.namespace), is_ready=True)
    definition = bundle.definitions.get(ref.group_kind)
    if definition is not None:
        yield Need(definition.ref.identity, is_ready=True)
        spec = mapping(definition.body.get("spec"))
        stored = {
            _text_or_empty(mapping(version).get("name"))
            for version in items(spec.get("versions"))
            if mapping(version).get("storage") is True
        }
        webhook = mapping(mapping(spec.get("conversion")).get("webhook"))
        if ref.version not in stored:
            yield from _backend(bundle, mapping(mapping(webhook.get("clientConfig")).get("service")))
    elif ref.api_version and (service := bundle.served.get((ref.group, ref.version))):
        yield Need(service.ref.identity, is_ready=True)


def _needs_of_kind(bundle: _Bundle, manifest: Manifest) -> Iterator[Need]:
    ref, spec = manifest.ref, mapping(manifest.body.get("spec"))
    # The services that the API server will call because of an object.
    if ref.group == "apiregistration.k8s.io":
        yield from _backend(bundle, mapping(spec.get("service")))
    for hook in items(manifest.body.get("webhooks")) if ref.group == ADMISSION_GROUP else []:
        yield from _backend(bundle, mapping(mapping(mapping(hook).get("clientConfig")).get("service")))
    match (ref.group, ref.kind):
        case (api_groups.RBAC_GROUP, "RoleBinding" | "ClusterRoleBinding"):
            role = mapping(manifest.body.get("roleRef"))
            kind = _text_or_empty(role.get("kind"))
            yield Need(
                (api_groups.RBAC_GROUP, kind, ref.namespace if kind == "Role" else "", _text_or_empty(role.get("name")))
            )
        case (api_groups.ADMISSION_GROUP, "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding"):
            yield Need(
                (
                    api_groups.ADMISSION_GROUP,
                    ref.kind.removesuffix("Binding"),
                    "",
                    _text_or_empty(spec.get("policyName")),
                )
            )
        case ("", "PersistentVolumeClaim" | "PersistentVolume"):
            yield Need((*_STORAGE_CLASS, "", _text_or_empty(spec.get("storageClassName"))))
        case ("networking.k8s.io", "Ingress"):
            yield Need(("networking.k8s.io", "IngressClass", "", _text_or_empty(spec.get("ingressClassName"))))
        case ("cert-manager.io", "Certificate"):
            issuer = mapping(spec.get("issuerRef"))
            kind = _text_or_empty(issuer.get("kind")) or "Issuer"
            namespace = ref.namespace if kind == "Issuer" else ""
            yield Need(
                (_text_or_empty(issuer.get("group")) or ref.group, kind, namespace, _text_or_empty(issuer.get("name")))
            )


def _backend(bundle: _Bundle, service: Mapping[str, Any]) -> Iterator[Need]:
    """A Service that the API server calls, and the workloads behind it, which have to answer."""
    namespace = _text_or_empty(service.get("namespace"))
    identity = ("", "Service", namespace, _text_or_empty(service.get("name")))
    found = bundle.by_identity.get(identity)
    if found is None:
        return
    yield Need(identity)
    selector = mapping(mapping(found.body.get("spec")).get("selector"))
    for workload in bundle.workloads:
        is_behind = bool(selector) and selector.items() <= _pod_labels(workload.body).items()
        if workload.ref.namespace == namespace and is_behind:
            yield Need(workload.ref.identity, is_ready=True)


def _stated(manifest: Manifest) -> Iterator[Need]:
    annotations = mapping(mapping(manifest.body.get("metadata")).get("annotations"))
    for word in filter(None, (part.strip() for part in _text_or_empty(annotations.get(DEPENDS_ON)).split(","))):
        match = _STATED.fullmatch(word)
        if match is None:
            wanted = "group/kind/name or group/namespaces/namespace/kind/name"
            raise InvalidManifest(f"{manifest.ref}: {DEPENDS_ON} says {word!r}; expected {wanted}")
        group, namespace, kind, name = match.groups()
        yield Need((group, kind, namespace or "", name), is_ready=True)


def _pod_labels(body: JsonObject) -> Mapping[str, Any]:
    template = mapping(mapping(body.get("spec")).get("template"))
    return mapping(mapping(template.get("metadata")).get("labels"))


def _text_or_empty(value: object) -> str:
    return value if isinstance(value, str) else ""


# Custom resources go before the workloads that clean up after them.
CUSTOM = "custom"

_SYSTEM_NAMESPACES = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
WEBHOOKS = frozenset({GroupKind(ADMISSION_GROUP, f"{kind}WebhookConfiguration") for kind in ("Validating", "Mutating")})
_LEAVING = tuple(name for phase in reversed(PHASES) for name in ((CUSTOM, phase) if phase == "deploy" else (phase,)))
_BUILT_IN_GROUPS = frozenset({"", "apps", "batch", "policy", "autoscaling", "extensions"}) | (
    {key.group for key in PHASE_OF if key.group.endswith(".k8s.io")} - {"autoscaling.k8s.io"}
)
_PODS = frozenset({GroupKind("", "Pod"), GroupKind("", "ReplicationController")})
_DIGITS = re.compile(r"([0-9]+)")


_NUMBER = re.compile(r"([0-9]+)[-_]")
# (step, numbers of the file name): what comes before what inside a phase.
_Turn = tuple[int, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class ApplyStep:
    """What may be written at once. `needs` is what has to work before, beside that everything before is written."""

    manifests: tuple[Manifest, ...]
    needs: frozenset[ObjectIdentity] = frozenset()


@dataclass(frozen=True, slots=True)
class Phase:
    name: str
    steps: tuple[ApplyStep, ...]

    @property
    def manifests(self) -> tuple[Manifest, ...]:
        """Those of all steps, in their order."""
        return tuple(manifest for step in self.steps for manifest in step.manifests)


@dataclass(frozen=True, slots=True)
class DeletionPhase:
    name: str
    refs: tuple[ObjectRef, ...]


@lru_cache(maxsize=1024)
def _phase_number(group: str, kind: str) -> int:
    return PHASES.index(phase_name(group, kind))


def phases(manifests: Iterable[Manifest]) -> list[Phase]:
    """The phases that have something in them, in order, and in each the steps that follow one upon the other. Without
    hooks, which stand before and after all phases (`hooks_at`).

    A step is over when the next begins. What an object needs is in a step before its own, if need be by
    moving the object into a later phase; within that, numbers in front of file names order (01_a, 02-b).
    Raises DependencyCycle and InvalidManifest where no order can be found.
    """
    bundle = [manifest for manifest in manifests if manifest.hook is None]
    needs = needs_of(bundle)
    places = place_in_steps(needs, lambda identity: (_phase_number(*identity[:2]), 0))
    found: dict[int, dict[_Turn, list[Manifest]]] = {}
    for manifest in bundle:
        phase, step = places[manifest.ref.identity]
        parts = (_NUMBER.match(part) for part in manifest.file.split("/"))
        numbers = tuple(float(number.group(1)) if number else math.inf for number in parts)  # what has none comes last
        found.setdefault(phase, {}).setdefault((step, numbers), []).append(manifest)
    made = []
    for phase, turns in sorted(found.items()):
        steps = []
        for _, together in sorted(turns.items()):
            ready = {need.identity for manifest in together for need in needs[manifest.ref.identity] if need.is_ready}
            # Custom resources last: a webhook that still refuses them must not keep the workload behind it from coming.
            together.sort(key=lambda one: (not is_built_in(one.ref.group), _as_numbered(one.file), one.ref))
            steps.append(ApplyStep(tuple(together), frozenset(ready)))
        made.append(Phase(PHASES[phase], tuple(steps)))
    return made


# The moments before and after the phases, in their order.
EARLY = (HookMoment.BEFORE, HookMoment.BEFORE_DELETION)
LATE = (HookMoment.AFTER, HookMoment.TEST, HookMoment.AFTER_DELETION)


def hooks_at(moment: HookMoment, manifests: Iterable[Manifest]) -> list[Manifest]:
    """The hooks that run at a moment, in the order in which they do: one after the other, as Helm has it."""
    running = [manifest for manifest in manifests if manifest.hook and moment in manifest.hook.moments]

    def turn(manifest: Manifest) -> tuple[int, str, int, ObjectRef]:
        ref, weight = manifest.ref, manifest.hook.weight if manifest.hook else 0
        return weight, ref.name, _phase_number(ref.group, ref.kind), ref

    return sorted(running, key=turn)


def deletion_phases(
    refs: Iterable[ObjectRef], bodies: Mapping[ObjectIdentity, JsonObject] | None = None
) -> list[DeletionPhase]:
    """The reverse: the last to come is the first to go, but custom resources go before the workloads of `deploy`.

    `bodies` are the objects as far as they are known: what one of them states that it depends on goes after it, if need
    be in a later phase. A phase comes again for each step of it. Only what admits goes first all the same: a webhook
    whose backend is dead would keep what it guards from ever being deleted.
    """
    known = {ref.identity: ref for ref in refs}
    places = _places_of_leaving(known, bodies or {})
    found: dict[tuple[int, int], list[ObjectRef]] = {}
    for identity, place in places.items():
        found.setdefault(place, []).append(known[identity])
    return [
        DeletionPhase(_LEAVING[phase], tuple(sorted(found[phase, step], reverse=True))) for phase, step in sorted(found)
    ]


def _places_of_leaving(
    known: Mapping[ObjectIdentity, ObjectRef], bodies: Mapping[ObjectIdentity, JsonObject]
) -> dict[ObjectIdentity, tuple[int, int]]:
    """(phase, step) of what goes. An order that nobody can keep is no reason to keep the objects: then phases count."""

    def place(identity: ObjectIdentity) -> tuple[int, int]:
        ref = known[identity]
        name = phase_of(ref)
        return _LEAVING.index(CUSTOM if name == "deploy" and not is_built_in(ref.group) else name), 0

    waits: dict[ObjectIdentity, set[Need]] = {identity: set() for identity in known}
    for identity in known.keys() & bodies.keys():
        for needed in stated_dependencies(Manifest(bodies[identity])):
            if needed in known and phase_of(known[needed]) != "admission":
                waits[needed].add(Need(identity))
    try:
        return place_in_steps({identity: frozenset(needs) for identity, needs in waits.items()}, place)
    except DependencyCycle:
        return {identity: place(identity) for identity in known}


def is_built_in(group: str) -> bool:
    """Whether a group is Kubernetes' own: the old short names, and `*.k8s.io` served by the API server itself."""
    return group in _BUILT_IN_GROUPS


def is_workload(obj: JsonObject) -> bool:
    """Whether a controller of Kubernetes itself brings it up; what is paused waits for people."""
    ref = ObjectRef.of(obj)
    is_one = ref.group in ("apps", "batch") or ref.group_kind in _PODS
    return is_one and (obj.get("spec") or {}).get("paused") is not True


def is_system_namespace(ref: ObjectRef) -> bool:
    """Whether it is a namespace of Kubernetes itself, which no plan may delete."""
    return ref.group_kind == NAMESPACE and ref.name in _SYSTEM_NAMESPACES


def defined_kinds(manifests: Iterable[Manifest]) -> frozenset[GroupKind]:
    """The kinds that CRDs among the manifests define."""
    found = set()
    for manifest in manifests:
        if manifest.ref.group_kind == DEFINITION:
            spec = mapping(manifest.body.get("spec"))
            found.add(GroupKind(str(spec.get("group") or ""), str(mapping(spec.get("names")).get("kind") or "")))
    return frozenset(found)


def served_versions(manifests: Iterable[Manifest]) -> dict[GroupKind, frozenset[str]]:
    """The versions in which the CRDs among the manifests serve their kinds."""
    found = {}
    for manifest in manifests:
        for kind in defined_kinds([manifest]):
            known = [mapping(version) for version in items(mapping(manifest.body.get("spec")).get("versions"))]
            found[kind] = frozenset(str(version.get("name")) for version in known if version.get("served"))
    return found


def created_namespaces(manifests: Iterable[Manifest]) -> frozenset[str]:
    """The names of the Namespaces among the manifests."""
    return frozenset(manifest.ref.name for manifest in manifests if manifest.ref.group_kind == NAMESPACE)


@lru_cache(maxsize=1024)
def _as_numbered(file: str) -> tuple[tuple[int, int, str], ...]:
    """A file name as people number it: 2_a before 10_b. Numbers by their length: one may have any number of digits."""
    found = []
    for index, part in enumerate(_DIGITS.split(file)):
        digits = part.lstrip("0")
        if part:
            found.append((0, len(digits), digits) if index % 2 else (1, 0, part))
    return tuple(found)
