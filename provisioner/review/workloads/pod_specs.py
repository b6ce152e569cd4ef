"""Where pods and containers hide in objects, which of them a selector picks, and which objects they need by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.json_values import mapping, maps
from provisioner.review.base.claims import POD_PLACES
from provisioner.selectors import selects
from provisioner.values import GroupKind, JsonObject, ObjectRef

# Read before the whole reference is: nine in ten objects of a bundle make no pods.
_KINDS = frozenset(place.kind for place in POD_PLACES)
CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")


@dataclass(frozen=True, slots=True)
class Container:
    """`path` leads from the object to it; `list_name` is the list of the pod spec in which it stands."""

    ref: ObjectRef
    path: tuple[str | int, ...]
    list_name: str
    body: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.body.get("name") or self.path[-1])

    @property
    def security(self) -> Mapping[str, Any]:
        return mapping(self.body.get("securityContext"))


@dataclass(frozen=True, slots=True)
class PodSpec:
    """A pod spec of an object, or of its template, with the annotations and the labels of the pods."""

    ref: ObjectRef
    path: tuple[str | int, ...]
    body: Mapping[str, Any]
    annotations: Mapping[str, Any]
    labels: Mapping[str, Any]

    @property
    def account(self) -> str:
        """The name of the ServiceAccount that the pods run as; the API server takes the older field as well."""
        return str(self.body.get("serviceAccountName") or self.body.get("serviceAccount") or "default")

    @property
    def security(self) -> Mapping[str, Any]:
        return mapping(self.body.get("securityContext"))

    def containers(self) -> Iterator[Container]:
        for list_name in CONTAINER_LISTS:
            for index, body in enumerate(maps(self.body.get(list_name))):
                yield Container(self.ref, (*self.path, list_name, index), list_name, body)


def runs_pods(group_kind: GroupKind) -> bool:
    """Whether objects of this built-in kind make pods."""
    return group_kind in POD_PLACES


def pod_specs(objects: tuple[JsonObject, ...]) -> Iterator[PodSpec]:
    """The pod specs of built-in kinds among `objects`."""
    for obj in objects:
        if str(obj.get("kind", "")) not in _KINDS:
            continue
        ref = ObjectRef.of(obj)
        place = POD_PLACES.get(ref.group_kind)
        if place is None:
            continue
        pod = mapping(obj)
        for key in place:
            pod = mapping(pod.get(key))
        meta = mapping(pod.get("metadata"))
        annotations, labels = mapping(meta.get("annotations")), mapping(meta.get("labels"))
        yield PodSpec(ref, (*place, "spec"), mapping(pod.get("spec")), annotations, labels)


def pods_of_service(service: JsonObject, pods: Iterable[PodSpec]) -> list[PodSpec]:
    """The pods that a Service leads to; without a selector it leads to none."""
    selector, namespace = selector_of(service), ObjectRef.of(service).namespace
    return [
        pod for pod in pods if selector and pod.ref.namespace == namespace and selector.items() <= pod.labels.items()
    ]


def selector_of(service: JsonObject) -> Mapping[str, Any]:
    return mapping(mapping(service.get("spec")).get("selector"))


def pods_of_policy(policy: JsonObject, pods: Iterable[PodSpec]) -> list[PodSpec]:
    """The pods that a network policy is about: by an empty selector, or without one, all of its namespace."""
    selector, namespace = mapping(policy.get("spec")).get("podSelector"), ObjectRef.of(policy).namespace
    return [pod for pod in pods if pod.ref.namespace == namespace and selects(selector, pod.labels)]


_CONFIG = {"configMapRef": "ConfigMap", "secretRef": "Secret"}
_KEYS = {"configMapKeyRef": "ConfigMap", "secretKeyRef": "Secret"}
_FILES = {"configMap": "ConfigMap", "secret": "Secret"}


@dataclass(frozen=True, slots=True)
class Mention:
    """An object that a pod needs; `key` is "" where it reads the whole."""

    pod: PodSpec
    ref: ObjectRef
    key: str = ""
    is_optional: bool = False
    is_pull_secret: bool = False

    @property
    def is_read(self) -> bool:
        """Whether its containers see what it holds."""
        return self.ref.kind in {"ConfigMap", "Secret"} and not self.is_pull_secret


def mentions(pod: PodSpec) -> Iterator[Mention]:
    """Every object of its namespace that a pod template names."""
    for container in pod.containers():
        for entry in maps(container.body.get("envFrom")):
            yield from _of(pod, entry, _CONFIG)
        for entry in maps(container.body.get("env")):
            yield from _of(pod, mapping(entry.get("valueFrom")), _KEYS)
    for volume in maps(pod.body.get("volumes")):
        for part in (volume, *maps(mapping(volume.get("projected")).get("sources"))):
            yield from _of(pod, part, _FILES)
        if claim := mapping(volume.get("persistentVolumeClaim")).get("claimName"):
            yield Mention(pod, _ref(pod, "PersistentVolumeClaim", str(claim)))
    for secret in maps(pod.body.get("imagePullSecrets")):
        if secret.get("name"):
            yield Mention(pod, _ref(pod, "Secret", str(secret["name"])), is_pull_secret=True)
    if account := pod.body.get("serviceAccountName") or pod.body.get("serviceAccount"):
        yield Mention(pod, _ref(pod, "ServiceAccount", str(account)))


def _of(pod: PodSpec, holder: Mapping[str, Any], kinds: Mapping[str, str]) -> Iterator[Mention]:
    for key, kind in kinds.items():
        named = mapping(holder.get(key))
        name = str(named.get("name") or named.get("secretName") or "")
        if name:
            ref, is_optional = _ref(pod, kind, name), named.get("optional") is True
            yield Mention(pod, ref, str(named.get("key") or ""), is_optional)
            for item in maps(named.get("items")):  # the keys of a volume that become files, where not all do
                yield Mention(pod, ref, str(item.get("key") or ""), is_optional)


def _ref(pod: PodSpec, kind: str, name: str) -> ObjectRef:
    return ObjectRef("", "v1", kind, pod.ref.namespace, name)
