"""What containers run and are told: commands, arguments, variables, hooks and mounts, scripts of ConfigMaps, commands
that fetch what they run, and volumes over the programs of the image."""

from __future__ import annotations

import json
import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.json_values import items, mapping, maps, value_at
from provisioner.masking import masked
from provisioner.review.base.claims import PODS, Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts
from provisioner.review.base.record import Mark
from provisioner.review.rules.messages import VARIANT
from provisioner.review.workloads.fetched_code import FetchedCode, fetched_code
from provisioner.review.workloads.mounts import mounts_of, unmounted
from provisioner.review.workloads.pod_specs import Container, PodSpec, pod_specs
from provisioner.review.workloads.workload_changes import (
    HOOKS,
    PROBES,
    ContainerChange,
    PodChange,
    container_changes,
    containers_by_name,
    of_containers,
    pod_changes,
)
from provisioner.values import Content, Finding, GroupKind, JsonObject, ObjectIdentity, ObjectRef, Section, Severity

_CHANGED = ReviewRule("POD-28", Section.PODS, Severity.NOTABLE)
_DELETES = ReviewRule("POD-28", Section.PODS, Severity.DANGEROUS)
_FETCHED = ReviewRule("POD-29", Section.PODS, Severity.DANGEROUS)
_INSTALLED = ReviewRule("POD-29", Section.PODS, Severity.NOTABLE)
_HIDES_PROGRAMS = ReviewRule("POD-31", Section.PODS, Severity.DANGEROUS)
_HIDES_TRUST = ReviewRule("POD-31", Section.PODS, Severity.NOTABLE)

MAX_SETTINGS, MAX_LINES = 60, 30
_ORDERED = ("initContainers", "containers")
_MOUNTS = "mounts"
_FIELDS = ("command", "args", "env", "envFrom", "workingDir", "lifecycle")

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
_Place = tuple[str, str, str]  # list of containers, container, path

# What lies in these folders is run.
_PROGRAM_FOLDERS = ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/libexec")
_LIBRARY_FOLDERS = ("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib")
_WHOLE_FOLDERS = frozenset({"/", "/usr", "/usr/local", *_LIBRARY_FOLDERS})
_LOADER = "/etc/ld.so."
# Who users are, whom programs trust, where names lead, and what shells do first.
_TRUSTED = (
    "/etc/ca-certificates",
    "/etc/cron.d",
    "/etc/crontab",
    "/etc/group",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/pam.d",
    "/etc/passwd",
    "/etc/pki",
    "/etc/profile",
    "/etc/profile.d",
    "/etc/resolv.conf",
    "/etc/shadow",
    "/etc/ssl",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/usr/local/share/ca-certificates",
    "/usr/share/ca-certificates",
)


def compare_commands(facts: Facts) -> Iterator[Finding]:
    """Find what containers run and are told from now on, where the object stays."""
    shown: dict[ObjectRef, list[ContainerChange]] = defaultdict(list)
    for container in container_changes(facts.plan):
        shown[container.ref].append(container)
    for change in pod_changes(facts.plan):
        containers = shown[change.ref]
        if not (differs := _find_differing(change, containers)):
            continue
        # The lines that have come and gone, as a report's record has them.
        settings = [
            {"container": container.title, "change": line.mark.name.lower(), "in": line.what, "value": line.text}
            for container in containers
            for line in container.lines
        ]
        # The folders of the node whose mounts differ, where nothing else does.
        folders = {line.folder for container in containers for line in container.lines}
        is_of_folders = differs == [_MOUNTS] and "" not in folders
        volumes = {"before": unmounted(change.before), "after": unmounted(change.after)}
        params: dict[str, Any] = volumes if volumes["before"] != volumes["after"] else {}
        yield _CHANGED.finding(
            "changed",
            change.ref,
            key=[differs, settings, volumes],
            differs=differs,
            settings=settings[:MAX_SETTINGS],
            left_out=max(0, len(settings) - MAX_SETTINGS),
            folders=(sorted(folders) if is_of_folders else None) or None,
            **params,
        )


def _find_differing(change: PodChange, containers: Iterable[ContainerChange]) -> list[str | dict[str, str]]:
    """Return what differs, as the phrases of POD-28 are named."""
    old, new = containers_by_name(change.before), containers_by_name(change.after)
    come = [{VARIANT: "new-container", "container": container.name} for key, container in new.items() if key not in old]
    gone = [{VARIANT: "no-container", "container": container.name} for key, container in old.items() if key not in new]
    kept: list[str] = []
    for former, container in change.kept():
        stated = ((key, former.body.get(key), container.body.get(key)) for key in _FIELDS)
        differing = (key for key, was, now in stated if _find_stated(key, was) != _find_stated(key, now))
        kept += ("env" if key == "envFrom" else key for key in differing)
    lines = (line for container in containers if container.mark is Mark.CHANGED for line in container.lines)
    kept += [_MOUNTS] if any(line.what == "mount" for line in lines) else []
    for name in _ORDERED:
        places = [int(former.path[-1]) for former, container in change.kept() if container.list_name == name]
        kept += [name] if places != sorted(places) else []
    kept += ["volumes"] if unmounted(change.before) != unmounted(change.after) else []
    return [*come, *dict.fromkeys(kept), *gone]


def _find_stated(key: str, value: object) -> object:
    """What is empty says nothing; the order of variables counts where one may be made of others."""
    if isinstance(value, Mapping):
        return {name: inner for name, inner in value.items() if inner} or None
    if key == "env" and "$(" not in str(value):
        return sorted(maps(value), key=lambda variable: str(variable.get("name"))) or None
    return items(value) or (None if isinstance(value, list) else value or None)


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

    ref: ObjectRef
    files: Mapping[_Place, _File]
    template: str


def compare_scripts(facts: Facts) -> Iterator[Finding]:
    """Find scripts that containers run from a ConfigMap of the bundle, and that change: one finding for each script."""
    before = _find_runs(facts.previous) if facts.previous is not None else {}
    for identity, new in (_find_runs(facts.content) if before else {}).items():
        if (old := before.get(identity)) is None:
            continue
        found: dict[tuple[ObjectRef, str], tuple[list[str], _File, _File]] = {}
        for place, file in new.files.items():
            former = old.files.get(place)
            if former is None or not (file.is_run or former.is_run) or former.text == file.text:
                continue
            if former.ref == file.ref or not facts.hides_old_names:
                found.setdefault((file.ref, file.key), ([], former, file))[0].append(place[1])
        for (reads, key), (containers, former, file) in found.items():
            come, gone = _find_lines(file.text, former.text), _find_lines(former.text, file.text)
            deleting = [line for line in come if _DELETING.search(line)]
            lines = [f"+ {line}" for line in (*deleting, *(line for line in come if line not in deleting))]
            lines += [f"- {line}" for line in gone]
            if lines:
                params: dict[str, Any] = {"containers": containers, "reads": reads, "name": key}
                params["lines"] = lines[:MAX_LINES]
                if old.template == new.template:
                    params["restart"] = "next-run" if new.ref.kind == "CronJob" else "next-restart"
                rule, variant = (_DELETES, "script-deletes") if deleting else (_CHANGED, "script")
                yield rule.finding(variant, new.ref, key=[str(reads), key, lines], **params)


def _find_lines(text: str, other: str) -> list[str]:
    """Return the lines that `other` has not, without comments, and without what is written like a credential."""
    known = {line.strip() for line in other.splitlines()}
    stripped = (line.strip() for line in text.splitlines())
    return [masked(line) for line in stripped if line and not line.startswith("#") and line not in known]


def _find_runs(content: Content) -> dict[ObjectIdentity, _Run]:
    """Return what the content itself has in ConfigMaps: what others wrote there is not its reader's to see (S27)."""
    manifests = content.manifests
    config_maps = {
        manifest.ref.identity: manifest.body for manifest in manifests if manifest.ref.group_kind == _CONFIG_MAP
    }
    found = {}
    for pod in pod_specs(tuple(manifest.body for manifest in manifests)):
        files = {}
        for container in pod.containers():
            for path, ref, key, text in _find_mounted_files(pod, container, config_maps):
                file = _File(ref, key, text, _is_run(container, path, text))
                files[container.list_name, container.name, path] = file
        template = json.dumps([dict(pod.body), dict(pod.annotations)], sort_keys=True, default=str)
        found[pod.ref.identity] = _Run(pod.ref, files, template)
    return found


def _find_mounted_files(
    pod: PodSpec, container: Container, config_maps: Mapping[ObjectIdentity, JsonObject]
) -> Iterator[tuple[str, ObjectRef, str, str]]:
    """Yield path, ConfigMap, key and text of each file that a container finds."""
    volumes = {str(volume.get("name")): volume for volume in maps(pod.body.get("volumes"))}
    for mount in maps(container.body.get("volumeMounts")):
        volume, part = volumes.get(str(mount.get("name")), {}), str(mount.get("subPath") or "")
        for source in (volume, *maps(value_at(volume, "projected", "sources"))):
            named = mapping(source.get("configMap"))
            ref = ObjectRef("", "v1", "ConfigMap", pod.ref.namespace, str(named.get("name") or ""))
            texts = mapping(mapping(config_maps.get(ref.identity)).get("data"))
            listed = {str(item.get("path")): str(item.get("key")) for item in maps(named.get("items"))}
            for file, key in (listed or {str(key): str(key) for key in texts}).items():
                if isinstance(text := texts.get(key), str) and (not part or file == part):
                    path = str(mount.get("mountPath") or "/")
                    yield posixpath.normpath(path if part else f"{path}/{file}"), ref, key, text


def _is_run(container: Container, path: str, text: str) -> bool:
    """Whether a file is a program: by its first line, its name, its folder, or as the command names it."""
    if text.startswith("#!") or path.endswith(_SUFFIXES) or posixpath.dirname(path) in _RUN_FOLDERS:
        return True
    words = " ".join(str(word) for key in ("command", "args") for word in items(container.body.get(key))).split()
    before = dict(zip(words[1:], words, strict=False))
    return words[:1] == [path] or posixpath.basename(before.get(path, "")) in _INTERPRETERS


@dataclass(frozen=True, slots=True)
class _Fetching:
    """One command that fetches: of which container, in which field, and its words as they may be shown."""

    container: str
    path: tuple[str | int, ...]
    does: tuple[FetchedCode, ...]
    words: str


def judge_fetched_code(state: StateFacts) -> Iterator[Finding]:
    """Find commands that fetch what they run, so that no review has seen it, or that give others a shell."""
    for pod in pod_specs(state.objects):
        fetching: list[_Fetching] = []
        for container in pod.containers():
            named = ((str(entry.get("name")), entry.get("value")) for entry in maps(container.body.get("env")))
            variables = {name: value for name, value in named if isinstance(value, str)}
            for path, words in _find_commands(container):
                if does := tuple(fetched_code(words, variables)):
                    text = " ".join(masked(" ".join(words)).split())
                    fetching.append(_Fetching(container.name, (*container.path, *path), does, text))
        installing = [command for command in fetching if set(command.does) == {FetchedCode.INSTALLS}]
        others = [command for command in fetching if command not in installing]
        for rule, found in ((_FETCHED, others), (_INSTALLED, installing)):
            if found:
                does_all = list(dict.fromkeys(what for command in found for what in command.does))
                key = [[command.container, str(command.path[-1]), command.words] for command in found]
                commands = [{"container": command.container, "command": command.words} for command in found]
                yield rule.finding("fetches", pod.ref, where=found[0].path, key=key, does=does_all, commands=commands)


def _find_commands(container: Container) -> Iterator[tuple[tuple[str | int, ...], list[str]]]:
    """Yield each command that runs in a container, with the field that it is in."""
    body = container.body
    words = [*items(body.get("command")), *items(body.get("args"))]
    yield ("command",) if body.get("command") else ("args",), list(map(str, words))
    hooks = mapping(body.get("lifecycle"))
    handlers = {("lifecycle", name): hooks.get(name) for name in HOOKS} | {(name,): body.get(name) for name in PROBES}
    for path, handler in handlers.items():
        yield (*path, "exec", "command"), list(map(str, items(value_at(handler, "exec", "command"))))


def judge_hidden_files(state: StateFacts) -> Iterator[Finding]:
    """Find volumes over folders of the image in which its programs lie, or by which it knows whom to trust."""
    for pod in pod_specs(state.objects):
        if programs := _find_mounts(pod, _hides_programs):
            yield _HIDES_PROGRAMS.finding("programs", pod.ref, key=programs, mounts=programs)
        if trusted := _find_mounts(pod, lambda path: path == "/etc" or _is_in(path, _TRUSTED)):
            yield _HIDES_TRUST.finding("trusted-files", pod.ref, key=trusted, mounts=trusted)


def _find_mounts(pod: PodSpec, is_over: Callable[[str], bool]) -> list[dict[str, Any]]:
    """Return what stands where, in which container; folders of the node are told as such (POD-05)."""
    found = []
    for container in pod.containers():
        for mount in mounts_of(pod, container):
            if is_over(mount.path) and mount.kind != "hostPath":
                place = {"source": mount.source, "path": mount.path, "how": list(mount.how)}
                found.append({**place, "container": container.name})
    return sorted(found, key=lambda place: tuple(place.values()))


def _hides_programs(path: str) -> bool:
    is_library = _is_in(path, _LIBRARY_FOLDERS) and ".so" in path.rpartition("/")[2]
    return is_library or _is_in(path, _PROGRAM_FOLDERS) or path in _WHOLE_FOLDERS or path.startswith(_LOADER)


def _is_in(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


_COMMAND_CLAIMS = (
    of_containers("POD-28", "name", *_FIELDS, "volumeMounts", "volumeDevices"),
    Claim("POD-28", PODS, ("{pod}.volumes", *(f"{{pod}}.{name}.{{order}}" for name in _ORDERED))),
)
COMMANDS_CHECK = Check("commands", changes=compare_commands, claims=_COMMAND_CLAIMS)
SCRIPTS_CHECK = Check("scripts", changes=compare_scripts)
FETCHED_CODE_CHECK = Check(
    "fetched code",
    standing=judge_fetched_code,
    claims=(of_containers("POD-29", "command", "args", "lifecycle", *PROBES),),
)
HIDDEN_FILES_CHECK = Check(
    "hidden files", standing=judge_hidden_files, claims=(of_containers("POD-31", "volumeMounts"),)
)
