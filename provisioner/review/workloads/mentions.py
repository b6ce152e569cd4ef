"""The objects that pods need by name: ConfigMaps, Secrets, claims and accounts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.review.base.facts import mapping, maps
from provisioner.review.workloads.pod_specs import PodSpec
from provisioner.values import ObjectRef

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
    yield from _of_volumes(pod)
    for one in maps(pod.body.get("imagePullSecrets")):
        if one.get("name"):
            yield Mention(pod, _ref(pod, "Secret", str(one["name"])), is_pull_secret=True)
    if account := pod.body.get("serviceAccountName") or pod.body.get("serviceAccount"):
        yield Mention(pod, _ref(pod, "ServiceAccount", str(account)))


def _of_volumes(pod: PodSpec) -> Iterator[Mention]:
    for volume in maps(pod.body.get("volumes")):
        for part in (volume, *maps(mapping(volume.get("projected")).get("sources"))):
            yield from _of(pod, part, _FILES)
        if claim := mapping(volume.get("persistentVolumeClaim")).get("claimName"):
            yield Mention(pod, _ref(pod, "PersistentVolumeClaim", str(claim)))


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
