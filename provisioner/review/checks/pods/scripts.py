"""Scripts that containers run from a ConfigMap of the bundle, and that change: what they do to data from then on."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.masking import masked
from provisioner.review.base.facts import Check, Facts, ReviewRule, items, mapping, maps
from provisioner.review.workloads.pod_specs import Container, PodSpec, pod_specs
from provisioner.values import Content, Finding, GroupKind, JsonObject, ObjectIdentity, ObjectRef, Section, Severity

_CHANGED = ReviewRule("POD-28", Section.PODS, Severity.NOTABLE)
_DELETES = ReviewRule("POD-28", Section.PODS, Severity.DANGEROUS)
_CONFIG_MAP = GroupKind("", "ConfigMap")
_SUFFIXES = (".sh", ".bash", ".py", ".pl", ".rb", ".ps1")
_INTERPRETERS = frozenset(
    {"sh", "bash", "ash", "dash", "zsh", "python", "python3", "perl", "ruby", "node", "source", "."}
)
# Whatever stands there, images run when they start.
_RUN_FOLDERS = ("/docker-entrypoint-initdb.d", "/docker-entrypoint.d", "/docker-entrypoint-init.d")
_DELETING = re.compile(
    r"\b(rm|rmdir|unlink|shred|wipefs|truncate|mkfs(\.\w+)?|pg_resetwal|rmtree|flushall|flushdb)\b|\bdd\b.*\bof=|--?delete\b|"
    r"\bdrop\s+(table|database|schema)\b|\bdelete\s+from\b|\b(kubectl|helm|etcdctl)\b.*\b(delete|del|uninstall)\b|"
    r"\bos\.(remove|unlink)\b",
    re.IGNORECASE,
)
MAX_LINES, MAX_SHOWN = 30, 6
_Place = tuple[str, str, str]  # list of containers, container, path


@dataclass(frozen=True, slots=True)
class _File:
    """One file of a container that is a key of a ConfigMap."""

    ref: ObjectRef
    key: str
    text: str
    is_run: bool


@dataclass(frozen=True, slots=True)
class _Run:
    """What the pods of one object find of ConfigMaps in their containers, and what they are made of."""

    files: Mapping[_Place, _File]
    template: str


def _changes(facts: Facts) -> Iterator[Finding]:
    if facts.previous is None:
        return
    before = _runs(facts.previous)
    for identity, (ref, run) in _runs(facts.content).items():
        if identity in before:
            yield from _of_pods(ref, before[identity][1], run, only_same=facts.hides_old_names)


def _of_pods(ref: ObjectRef, old: _Run, new: _Run, *, only_same: bool) -> Iterator[Finding]:
    """One finding for each script, whichever containers run it."""
    found: dict[tuple[ObjectRef, str], tuple[list[str], _File, _File]] = {}
    for place, file in new.files.items():
        former = old.files.get(place)
        if former is None or not (file.is_run or former.is_run) or former.text == file.text:
            continue
        if former.ref == file.ref or not only_same:
            found.setdefault((file.ref, file.key), ([], former, file))[0].append(place[1])
    for (reads, key), (containers, former, file) in found.items():
        come, gone = _lines(file.text, former.text), _lines(former.text, file.text)
        deleting = [line for line in come if _DELETING.search(line)]
        lines = [f"+ {line}" for line in (*deleting, *(one for one in come if one not in deleting))]
        lines += [f"- {line}" for line in gone]
        if lines:
            told: dict[str, Any] = {"containers": containers, "reads": reads, "name": key, "lines": lines[:MAX_LINES]}
            if old.template == new.template:
                told["restart"] = "next-run" if ref.kind == "CronJob" else "next-restart"
            rule, variant = (_DELETES, "script-deletes") if deleting else (_CHANGED, "script")
            yield rule.finding(variant, ref, key=[str(reads), key, lines], **told)


def _lines(text: str, other: str) -> list[str]:
    """The lines that `other` has not, without comments, and without what is written like a credential."""
    known = {line.strip() for line in other.splitlines()}
    stripped = (line.strip() for line in text.splitlines())
    return [masked(line) for line in stripped if line and not line.startswith("#") and line not in known]


def _runs(content: Content) -> dict[ObjectIdentity, tuple[ObjectRef, _Run]]:
    """Only what the content itself has in ConfigMaps: what others wrote there is not its reader's to see (S27)."""
    maps_of = {one.ref.identity: one.body for one in content.manifests if one.ref.group_kind == _CONFIG_MAP}
    found = {}
    for pod in pod_specs(tuple(one.body for one in content.manifests)):
        files = {
            (container.list_name, container.name, path): _File(ref, key, text, _is_run(container, path, text))
            for container in pod.containers()
            for path, ref, key, text in _mounted(pod, container, maps_of)
        }
        template = json.dumps([dict(pod.body), dict(pod.annotations)], sort_keys=True, default=str)
        found[pod.ref.identity] = pod.ref, _Run(files, template)
    return found


def _mounted(
    pod: PodSpec, container: Container, maps_of: Mapping[ObjectIdentity, JsonObject]
) -> Iterator[tuple[str, ObjectRef, str, str]]:
    """Path, ConfigMap, key and text of each file that a container finds."""
    volumes = {str(one.get("name")): one for one in maps(pod.body.get("volumes"))}
    for mount in maps(container.body.get("volumeMounts")):
        volume, part = volumes.get(str(mount.get("name")), {}), str(mount.get("subPath") or "")
        for source in (volume, *maps(mapping(volume.get("projected")).get("sources"))):
            named = mapping(source.get("configMap"))
            ref = ObjectRef("", "v1", "ConfigMap", pod.ref.namespace, str(named.get("name") or ""))
            texts = mapping(mapping(maps_of.get(ref.identity)).get("data"))
            listed = {str(one.get("path")): str(one.get("key")) for one in maps(named.get("items"))}
            for file, key in (listed or {str(key): str(key) for key in texts}).items():
                if isinstance(text := texts.get(key), str) and (not part or file == part):
                    path = str(mount.get("mountPath") or "/")
                    yield posixpath.normpath(path if part else f"{path}/{file}"), ref, key, text


def _is_run(container: Container, path: str, text: str) -> bool:
    """Whether a file is a program: by its first line, its name, its folder, or as the command names it."""
    if text.startswith("#!") or path.endswith(_SUFFIXES) or posixpath.dirname(path) in _RUN_FOLDERS:
        return True
    words = " ".join(str(one) for key in ("command", "args") for one in items(container.body.get(key))).split()
    before = dict(zip(words[1:], words, strict=False))
    return words[:1] == [path] or posixpath.basename(before.get(path, "")) in _INTERPRETERS


CHECK = Check("scripts", changes=_changes)
