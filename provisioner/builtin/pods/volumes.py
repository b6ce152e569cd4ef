"""Volumes of a pod, and where its containers mount them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.builtin import forms
from provisioner.builtin.changes import FieldRefusal, Path, is_number, numbered, quoted
from provisioner.builtin.pods.environment import is_by_key
from provisioner.json_values import as_mapping, value_at

_FILE_PATHS = frozenset(
    ["metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels", "metadata.annotations"]
)
LEAST_TOKEN_SECONDS = 600


def of_mounts(container: Mapping[str, Any], path: Path, volumes: Mapping[str, Any]) -> Iterator[FieldRefusal]:
    is_privileged = value_at(container, "securityContext", "privileged") is True
    for place, one in numbered(container.get("volumeMounts")):
        where = (*path, "volumeMounts", place)
        if one.get("name") not in volumes:
            yield FieldRefusal((*where, "name"), f"names no volume of the pod: {quoted(one.get('name') or '')}")
        for key in ("subPath", "subPathExpr"):
            text = str(one.get(key) or "")
            if text.startswith("/") or ".." in text.split("/"):
                yield FieldRefusal(((*where, key)), "must be a path inside the volume, without `..`")
        if one.get("subPath") and one.get("subPathExpr"):
            yield FieldRefusal((*where, "subPathExpr"), "must not be set beside subPath")
        if one.get("mountPropagation") == "Bidirectional" and not is_privileged:
            words = "must not be Bidirectional in a container that is not privileged"
            yield FieldRefusal((*where, "mountPropagation"), words)
    for place, one in numbered(container.get("volumeDevices")):
        volume = as_mapping(volumes.get(str(one.get("name"))))
        if not (volume.get("persistentVolumeClaim") or volume.get("ephemeral")):
            yield FieldRefusal((*path, "volumeDevices", place, "name"), "must name a volume of the pod that is a claim")


def of_volumes(pod: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    for place, one in numbered(pod.get("volumes")):
        where = (*path, "volumes", place)
        sources = [key for key, value in one.items() if key != "name" and value is not None]
        if len(sources) > 1:
            yield FieldRefusal(where, f"must be of one type, and is of {', '.join(sorted(sources))}")
        if ".." in str(value_at(one, "hostPath", "path") or "").split("/"):
            yield FieldRefusal((*where, "hostPath", "path"), "must not hold `..`")
        yield from _of_sources(one, where)
        for holder, inner in _file_holders(one, where):
            yield from _of_files(holder, inner)


def _of_sources(volume: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    limit = forms.quantity(value_at(volume, "emptyDir", "sizeLimit"))
    if limit is not None and limit < 0:
        yield FieldRefusal((*path, "emptyDir", "sizeLimit"), "must not be below 0")
    policy = value_at(volume, "image", "pullPolicy")
    if policy not in (None, "", "Always", "IfNotPresent", "Never"):
        words = f"must be Always, IfNotPresent or Never, and is {quoted(policy)}"
        yield FieldRefusal((*path, "image", "pullPolicy"), words)
    inner = ("ephemeral", "volumeClaimTemplate", "spec")
    claim = value_at(volume, *inner)
    if claim is not None and value_at(claim, "resources", "requests", "storage") is None:
        yield FieldRefusal((*path, *inner, "resources", "requests", "storage"), "is missing")
    taken: dict[str, int] = {}
    for place, one in numbered(value_at(volume, "projected", "sources")):
        yield from _of_projected(one, (*path, "projected", "sources", place))
        for file in _files_of(one):
            if taken.setdefault(file, place) != place:
                yield FieldRefusal((*path, "projected"), f"has two files by one path: {quoted(file)}")


def _of_projected(source: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    kinds = sorted(key for key, value in source.items() if value is not None)
    if len(kinds) > 1:
        yield FieldRefusal(path, f"must be of one type, and is of {', '.join(kinds)}")
    seconds = value_at(source, "serviceAccountToken", "expirationSeconds")
    if is_number(seconds) and seconds < LEAST_TOKEN_SECONDS:
        words = f"must be at least {LEAST_TOKEN_SECONDS}, and is {seconds}"
        yield FieldRefusal((*path, "serviceAccountToken", "expirationSeconds"), words)


def _files_of(source: Mapping[str, Any]) -> Iterator[str]:
    for kind in ("secret", "configMap", "downwardAPI"):
        for _, one in numbered(value_at(source, kind, "items")):
            yield str(one.get("path") or "")
    token = value_at(source, "serviceAccountToken", "path")
    if token:
        yield str(token)


def _file_holders(volume: Mapping[str, Any], path: Path) -> Iterator[tuple[Any, Path]]:
    for kind in ("configMap", "secret", "downwardAPI"):
        if volume.get(kind) is not None:
            yield volume[kind], (*path, kind)
    for place, one in numbered(value_at(volume, "projected", "sources")):
        where = (*path, "projected", "sources", place)
        for kind in ("configMap", "secret", "downwardAPI"):
            if one.get(kind) is not None:
                yield one[kind], (*where, kind)


def _of_files(holder: Any, path: Path) -> Iterator[FieldRefusal]:
    for place, one in numbered(value_at(holder, "items")):
        text = str(one.get("path") or "")
        if text.startswith(("/", "..")) or ".." in text.split("/"):
            yield FieldRefusal((*path, "items", place, "path"), "must be a path inside the volume, without `..`")
        field = value_at(one, "fieldRef", "fieldPath")
        if path[-1] == "downwardAPI" and isinstance(field, str) and field not in _FILE_PATHS and not is_by_key(field):
            yield FieldRefusal(
                (*path, "items", place, "fieldRef", "fieldPath"), f"names no field that can be read: {quoted(field)}"
            )
