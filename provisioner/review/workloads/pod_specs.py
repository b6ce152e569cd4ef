"""Where pods and containers hide in objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.review.base.claims import POD_PLACES
from provisioner.review.base.facts import mapping, maps
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
