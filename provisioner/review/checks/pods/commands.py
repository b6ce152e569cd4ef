"""What containers run and are told, where the object stays: commands, arguments, variables, hooks, mounts, whole
containers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from provisioner.review.base.claims import PODS, Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, items, maps
from provisioner.review.base.record import Mark
from provisioner.review.rules.messages import VARIANT
from provisioner.review.workloads.mounts import unmounted
from provisioner.review.workloads.pod_specs import Container
from provisioner.review.workloads.workload_changes import (
    ContainerChange,
    PodChange,
    container_changes,
    containers_by_name,
    of_containers,
    pod_changes,
)
from provisioner.values import Finding, ObjectRef, Section, Severity

_CHANGED = ReviewRule("POD-28", Section.PODS, Severity.NOTABLE)
MAX_SETTINGS = 60
_ORDERED = ("initContainers", "containers")
_MOUNTS = "mounts"
_FIELDS = ("command", "args", "env", "envFrom", "workingDir", "lifecycle")


def _changes(facts: Facts) -> Iterator[Finding]:
    shown: dict[ObjectRef, list[ContainerChange]] = defaultdict(list)
    for one in container_changes(facts.plan):
        shown[one.ref].append(one)
    for change in pod_changes(facts.plan):
        containers = shown[change.ref]
        if differs := _parts(change, containers):
            settings = list(_settings(containers))
            volumes = {"before": unmounted(change.before), "after": unmounted(change.after)}
            params: dict[str, Any] = volumes if volumes["before"] != volumes["after"] else {}
            yield _CHANGED.finding(
                "changed",
                change.ref,
                key=[differs, settings, volumes],
                differs=differs,
                settings=settings[:MAX_SETTINGS],
                left_out=max(0, len(settings) - MAX_SETTINGS),
                folders=(differs == [_MOUNTS] and _only_folders(containers)) or None,
                **params,
            )


def _parts(change: PodChange, containers: Iterable[ContainerChange]) -> list[str | dict[str, str]]:
    """What differs, as the phrases of POD-28 are named."""
    old, new = containers_by_name(change.before), containers_by_name(change.after)
    come = [{VARIANT: "new-container", "container": one.name} for key, one in new.items() if key not in old]
    gone = [{VARIANT: "no-container", "container": one.name} for key, one in old.items() if key not in new]
    kept = ["env" if key == "envFrom" else key for one, other in change.kept() for key in _differing(one, other)]
    lines = (line for one in containers if one.mark is Mark.CHANGED for line in one.lines)
    kept += [_MOUNTS] if any(line.what == "mount" for line in lines) else []
    kept += [name for name in _ORDERED if _is_reordered(change, name)]
    kept += ["volumes"] if unmounted(change.before) != unmounted(change.after) else []
    return [*come, *dict.fromkeys(kept), *gone]


def _is_reordered(change: PodChange, list_name: str) -> bool:
    places = [int(old.path[-1]) for old, new in change.kept() if new.list_name == list_name]
    return places != sorted(places)


def _differing(old: Container, new: Container) -> Iterator[str]:
    return (key for key in _FIELDS if _stated(key, old.body.get(key)) != _stated(key, new.body.get(key)))


def _stated(key: str, value: object) -> object:
    """What is empty says nothing; the order of variables counts where one may be made of others."""
    if isinstance(value, Mapping):
        return {name: inner for name, inner in value.items() if inner} or None
    if key == "env" and "$(" not in str(value):
        return sorted(maps(value), key=lambda it: str(it.get("name"))) or None
    return items(value) or (None if isinstance(value, list) else value or None)


def _only_folders(changes: Iterable[ContainerChange]) -> list[str]:
    """The folders of the node whose mounts differ; none where anything else does."""
    folders = {line.folder for one in changes for line in one.lines}
    return [] if "" in folders else sorted(folders)


def _settings(changes: Iterable[ContainerChange]) -> Iterator[dict[str, Any]]:
    """The lines that have come and gone, as a report's record has them."""
    for one in changes:
        for line in one.lines:
            yield {"container": one.title, "change": line.mark.name.lower(), "in": line.what, "value": line.text}


_CLAIMS = (
    of_containers("POD-28", "name", *_FIELDS, "volumeMounts", "volumeDevices"),
    Claim("POD-28", PODS, ("{pod}.volumes", *(f"{{pod}}.{name}.{{order}}" for name in _ORDERED))),
)
CHECK = Check("commands", changes=_changes, claims=_CLAIMS)
