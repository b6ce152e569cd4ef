"""What containers mount, and where, each volume in words; and what becomes of data when claims go."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.json_values import mapping, maps
from provisioner.masking import masked_value
from provisioner.review.base.facts import Facts, Listing
from provisioner.review.base.sizes import bytes_of, in_words
from provisioner.review.workloads.pod_specs import Container, PodSpec
from provisioner.values import GroupKind, JsonObject, ObjectRef

# The API server mounts every pod's token itself.
MOUNTED_BY_SERVER = "kube-api-access-"
_NAMED = {
    "configMap": ("ConfigMap", "name"),
    "secret": ("Secret", "secretName"),
    "persistentVolumeClaim": ("PersistentVolumeClaim", "claimName"),
    "hostPath": ("the node's", "path"),
}
_USUAL_MODE = 0o644
_HOW = ("mountPropagation", "recursiveReadOnly")
_EMPTY = {"emptyDir": "an empty directory", "downwardAPI": "fields of the pod"}


@dataclass(frozen=True, slots=True)
class Mount:
    """One place of a container at which a volume stands.

    `kind` is the field of the volume's source, such as `emptyDir`, "" for a claim of a StatefulSet's template. `source`
    says what it is, whatever the volume is called, `how` how it may be used. `folder` is the folder of the node that it
    is, "" where it is something else. `part` is the folder or file of the volume that stands there, "" for all of it.
    """

    path: str
    kind: str
    source: str
    how: tuple[str, ...]
    folder: str
    part: str = ""

    @property
    def words(self) -> str:
        how = ", ".join(self.how)
        return f"{self.source} at {self.path}{f' ({how})' if how else ''}"


def mounts_of(pod: PodSpec, container: Container) -> list[Mount]:
    """What a container mounts, and the devices that it sees."""
    volumes = {str(volume.get("name")): _source(volume) for volume in maps(pod.body.get("volumes"))}
    entries = [(mount, "mountPath") for mount in maps(container.body.get("volumeMounts"))]
    entries += [(device, "devicePath") for device in maps(container.body.get("volumeDevices"))]
    found = []
    for entry, key in entries:
        name = str(entry.get("name"))
        if _is_by_server(name):
            continue
        volume = volumes.get(name, {})
        kind = next(iter(volume), "")
        folder = str(mapping(volume[kind]).get("path")) if kind == "hostPath" else ""
        part = str(entry.get("subPath") or entry.get("subPathExpr") or "")
        how = [f"only {part}"] if part else []
        how += ["read-only"] if entry.get("readOnly") is True else []
        how += [str(entry[name]) for name in _HOW if entry.get(name) not in (None, "", "None", "Disabled")]
        source = volume_words(volume) or f"the claim {name}"
        path = posixpath.normpath(str(entry.get(key) or "/"))
        found.append(Mount(path, kind, source, tuple(how), folder, part))
    return found


def unmounted(pod: PodSpec) -> list[str]:
    """The volumes of a pod that stand in no container, in words: the node mounts them all the same."""
    used = {
        str(mount.get("name"))
        for container in pod.containers()
        for key in ("volumeMounts", "volumeDevices")
        for mount in maps(container.body.get(key))
    }
    volumes = ((str(volume.get("name")), _source(volume)) for volume in maps(pod.body.get("volumes")))
    return sorted(volume_words(source) for name, source in volumes if name not in used and not _is_by_server(name))


def _is_by_server(name: str) -> bool:
    return name.startswith(MOUNTED_BY_SERVER)


def _source(volume: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in sorted(volume.items()) if key != "name" and value is not None}


def volume_words(volume: Mapping[str, Any]) -> str:
    """The source of a volume: `Secret db`, `the node's /var/log`; "" where it has none."""
    kind = next(iter(volume), "")
    source = mapping(volume.get(kind))
    if kind == "projected":
        return f"{', '.join(_projected(source)) or 'nothing'}, together{_lenient(source)}"
    if kind in _NAMED:
        what, key = _NAMED[kind]
        made = f" ({source['type']})" if kind == "hostPath" and source.get("type") else ""
        read_only = " read-only" if source.get("readOnly") is True else ""
        return f"{what} {source.get(key)}{made}{_renamed(source)}{read_only}{_lenient(source)}"
    if kind == "downwardAPI":
        return f"{_EMPTY[kind]}{_fields_of_pod(source)}{_lenient(source)}"
    return _EMPTY.get(kind) or (
        f"{kind} {json.dumps(masked_value(source), sort_keys=True, default=str)}" if kind else ""
    )


def _lenient(source: Mapping[str, Any]) -> str:
    """What decides whether the pod starts without it, and who may read its files."""
    mode = source.get("defaultMode")
    modes = [f"mode {mode:04o}"] if isinstance(mode, int) and mode != _USUAL_MODE else []
    modes += [
        f"{item.get('path')} mode {item['mode']:04o}"
        for item in maps(source.get("items"))
        if isinstance(item.get("mode"), int)
    ]
    told = [*(["optional"] if source.get("optional") is True else []), *modes]
    return f", {', '.join(told)}" if told else ""


def _fields_of_pod(source: Mapping[str, Any]) -> str:
    told = []
    for item in maps(source.get("items")):
        field, amount = mapping(item.get("fieldRef")), mapping(item.get("resourceFieldRef"))
        more = {"of": amount.get("containerName"), "in": amount.get("divisor"), "by": field.get("apiVersion")}
        words = "".join(f" {word} {value}" for word, value in more.items() if value and value != "v1")
        told.append(f"{field.get('fieldPath') or amount.get('resource')}{words} as {item.get('path')}")
    return f" ({', '.join(told)})" if told else ""


def _renamed(source: Mapping[str, Any]) -> str:
    """The keys that get another name as files."""
    named = [(str(item.get("key")), str(item.get("path"))) for item in maps(source.get("items"))]
    told = ", ".join(f"{key} as {path}" for key, path in named if key != path)
    return f" with {told}" if told else ""


def _projected(source: Mapping[str, Any]) -> Iterator[str]:
    for projection in maps(source.get("sources")):
        for kind, what in projection.items():
            told = mapping(what)
            if kind in ("secret", "configMap"):
                yield f"{_NAMED[kind][0]} {told.get('name')}{_renamed(told)}{_lenient(told)}"
            elif kind == "serviceAccountToken":
                yield f"a token for {told.get('audience') or 'the API server'} as {told.get('path')}"
            elif kind == "downwardAPI":
                yield f"{_EMPTY[kind]}{_fields_of_pod(told)}{_lenient(told)}"
            elif what is not None:
                yield _EMPTY.get(kind) or f"{kind} {json.dumps(masked_value(told), sort_keys=True, default=str)}"


CLAIM = GroupKind("", "PersistentVolumeClaim")
VOLUMES = Listing("", "v1", "PersistentVolume")
_KEPT = "Retain"


@dataclass(frozen=True, slots=True)
class ClaimedVolume:
    """One claim: its bytes (None: unknown), its volume, and what happens to that afterwards (`policy`, "" unknown)."""

    name: str
    size: int | None
    volume: str
    policy: str

    @property
    def is_kept(self) -> bool:
        return self.policy == _KEPT

    @property
    def fate(self) -> str:
        """What becomes of it, by the name of its message in `shared/going`."""
        if not self.volume:
            return "no-volume"
        if self.is_kept:
            return "kept"
        return "deleted-with-it" if self.policy else "unknown-policy"


def holdings(claims: Iterable[JsonObject], facts: Facts) -> list[ClaimedVolume]:
    """What claims hold, by name; policies where the volumes of the cluster could be listed."""
    listed = facts.around.lists.get(VOLUMES)
    policies = {
        ObjectRef.of(obj).name: str(mapping(obj.get("spec")).get("persistentVolumeReclaimPolicy") or _KEPT)
        for obj in (listed.objects if listed else ())
    }
    found = []
    for claim in claims:
        spec, status = mapping(claim.get("spec")), mapping(claim.get("status"))
        asked = mapping(mapping(spec.get("resources")).get("requests")).get("storage")
        volume = str(spec.get("volumeName") or "")
        size = bytes_of(mapping(status.get("capacity")).get("storage") or asked)
        found.append(ClaimedVolume(ObjectRef.of(claim).name, size, volume, policies.get(volume, "")))
    return sorted(found, key=lambda held: held.name)


def in_sum(found: list[ClaimedVolume]) -> dict[str, Any]:
    """All of them: how many, how much, and how much of it for good on how many volumes."""
    gone = [claim for claim in found if claim.volume and not claim.is_kept]
    lost = {"lost": in_words(sum(claim.size or 0 for claim in gone)), "volumes": len(gone)} if gone else {}
    return {
        "variant": "claims",
        "claims": len(found),
        "size": in_words(sum(claim.size or 0 for claim in found)),
        **lost,
    }


def to_record(found: list[ClaimedVolume]) -> list[dict[str, Any]]:
    """As evidence."""
    return [
        {
            "claim": claim.name,
            "size": in_words(claim.size) if claim.size is not None else "",
            "volume": claim.volume,
            "policy": claim.policy,
        }
        for claim in found
    ]
