"""What changes in containers: their images, and in objects that stay also what they run and what they are told.

What is named like a credential, or written like one, is
hidden. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.alignment import Aligner
from provisioner.masking import HIDDEN, is_credential, masked, masked_as
from provisioner.review.base.facts import items, mapping, maps
from provisioner.review.base.marks import Mark
from provisioner.review.workloads.mounts import Mount, mounts_of
from provisioner.review.workloads.pod_changes import containers_by_name, pod_changes
from provisioner.review.workloads.pod_specs import Container, PodSpec
from provisioner.values import ObjectRef, Plan

HOOKS = ("postStart", "preStop")
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_KINDS_OF_LIST = {"containers": "", "initContainers": "init", "ephemeralContainers": "ephemeral"}


@dataclass(frozen=True, slots=True)
class Line:
    """One value that has come or gone, such as an argument; `what` is one of `report.schema.json`.

    `text` is safe from secrets. `folder` is the folder of the node that a mount is, "" for everything else.
    """

    mark: Mark
    what: str
    text: str
    folder: str = ""


@dataclass(frozen=True, slots=True)
class ContainerChange:
    """A container of `ref` that is new, gone or changed. `role` is `init`, `ephemeral` or "".

    `before` and `after` are its images, "" where there is none.
    """

    ref: ObjectRef
    name: str
    role: str
    mark: Mark
    before: str
    after: str
    lines: tuple[Line, ...]

    @property
    def title(self) -> str:
        return f"{self.name} ({self.role})" if self.role else self.name

    @property
    def images(self) -> str:
        """`quay.io/x/y: v1 → v2` where only the tag or digest differs, else both in full; "" where it has none."""
        return image_words(self.before, self.after)


def container_changes(plan: Plan) -> list[ContainerChange]:
    """The containers that change in each object that stays, in the order of the plan."""
    return [found for pods in pod_changes(plan) for found in changes_between(pods.before, pods.after)]


def to_record(changes: Iterable[ContainerChange]) -> list[dict[str, Any]]:
    """The JSON of the changes, as report.schema.json describes it."""
    return [
        {
            "object": str(one.ref),
            "container": one.name,
            "role": one.role or "container",
            "change": one.mark.name.lower(),
            "image": {"before": one.before, "after": one.after},
            "settings": [{"change": it.mark.name.lower(), "in": it.what, "value": it.text} for it in one.lines],
        }
        for one in changes
    ]


def image_words(before: str, after: str) -> str:
    """`quay.io/x/y: v1 → v2` where only the tag or digest differs, else both in full."""
    if not before or not after:
        return before or after
    (old, was), (new, is_now) = _parts(before), _parts(after)
    return f"{old}: {was} → {is_now}" if old == new and was and is_now else f"{before} → {after}"


def _parts(image: str) -> tuple[str, str]:
    """The repository, and what follows it: tag, digest, or both."""
    name, at, digest = image.partition("@")
    head, slash, last = name.rpartition("/")
    path, colon, tag = last.partition(":")
    return f"{head}{slash}{path}", f"{tag if colon else ''}{at}{digest}"


def changes_between(before: PodSpec | None, after: PodSpec | None) -> Iterator[ContainerChange]:
    """The containers that come, go or change between two states of one object.

    Of an object that itself comes or goes they are told by their images alone.
    """
    old, new = (containers_by_name(side) if side else {} for side in (before, after))
    for key, container in new.items():
        if before is None or after is None:
            yield _change(container.ref, container, Mark.NEW, ("", _image(container)), ())
        elif found := _between(before, after, old.get(key), container):
            yield found
    for key, container in old.items():
        if key not in new:
            yield _change(after.ref if after else container.ref, container, Mark.GONE, (_image(container), ""), ())


def _between(before: PodSpec, after: PodSpec, old: Container | None, new: Container) -> ContainerChange | None:
    lines = tuple(_lines(old.body if old else {}, new.body)) + tuple(
        _mounts(mounts_of(before, old) if old else [], mounts_of(after, new))
    )
    if old is None:
        return _change(new.ref, new, Mark.NEW, ("", _image(new)), lines)
    images = _image(old), _image(new)
    return _change(new.ref, new, Mark.CHANGED, images, lines) if lines or images[0] != images[1] else None


def _mounts(old: list[Mount], new: list[Mount]) -> Iterator[Line]:
    """What is mounted that was not, or not there or not so; and what is no longer."""
    before, after = ({(one.words, one.folder) for one in side} for side in (old, new))
    yield from (Line(Mark.GONE, "mount", *told) for told in sorted(before - after))
    yield from (Line(Mark.NEW, "mount", *told) for told in sorted(after - before))


def _change(
    ref: ObjectRef, of: Container, mark: Mark, images: tuple[str, str], lines: tuple[Line, ...]
) -> ContainerChange:
    return ContainerChange(ref, of.name, _KINDS_OF_LIST[of.list_name], mark, *images, lines)


def _image(container: Container) -> str:
    image = container.body.get("image")
    return image if isinstance(image, str) else ""


def _lines(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Line]:
    for what, key in (("command", "command"), ("arg", "args")):
        yield from _listed(what, _words(old.get(key)), _words(new.get(key)))
    yield from _variables(_env(old), _env(new))
    yield from _listed("workingDir", _words(_one(old, "workingDir")), _words(_one(new, "workingDir")))
    before, after = mapping(old.get("lifecycle")), mapping(new.get("lifecycle"))
    for name in HOOKS:
        yield from _listed(name, _words(_hook(before.get(name))), _words(_hook(after.get(name))))
    yield from _listed("stopSignal", _words(_one(before, "stopSignal")), _words(_one(after, "stopSignal")))


def _one(holder: Mapping[str, Any], key: str) -> list[object]:
    return [holder[key]] if holder.get(key) else []


def _hook(handler: object) -> list[object]:
    """What is done when a container starts or ends: a command by its words, a request by its address."""
    told = mapping(handler)
    if request := mapping(told.get("httpGet")):
        scheme, host = str(request.get("scheme") or "HTTP").lower(), request.get("host") or ""
        headers = (f"{one.get('name')}: {one.get('value')}" for one in maps(request.get("httpHeaders")))
        return [f"{scheme}://{host}:{request.get('port')}{request.get('path') or '/'}", *headers]
    if socket := mapping(told.get("tcpSocket")):
        return [f"tcp://{socket.get('host') or ''}:{socket.get('port')}"]
    if pause := mapping(told.get("sleep")):
        return [f"sleep {pause.get('seconds')}"]
    return items(mapping(told.get("exec")).get("command"))


def _words(listed: object) -> list[tuple[str, str]]:
    """Each argument, a longer text by its lines, as it is and as it may be shown."""
    found: list[tuple[str, str]] = []
    flag = ""
    for word in map(str, items(listed)):
        is_value = is_credential(flag) and not word.startswith("-")
        flag = word.lstrip("-") if word.startswith("-") and "=" not in word else ""
        shown = HIDDEN if is_value else masked(word)
        found += zip(word.split("\n"), _as_many(shown, word), strict=True)
    return found


def _as_many(shown: str, word: str) -> list[str]:
    """The shown lines of a text; what is hidden over several lines is hidden in each."""
    lines, count = shown.split("\n"), word.count("\n") + 1
    return lines if len(lines) == count else [HIDDEN] * count


def _listed(what: str, old: list[tuple[str, str]], new: list[tuple[str, str]]) -> Iterator[Line]:
    for run in Aligner().runs([one for one, _ in old], [one for one, _ in new]):
        if not run.is_equal:
            yield from (Line(Mark.GONE, what, shown) for _, shown in old[run.first : run.last])
            yield from (Line(Mark.NEW, what, shown) for _, shown in new[run.start : run.end])


_FROM = {"configMapRef": "ConfigMap", "secretRef": "Secret"}
_KEYS = {"configMapKeyRef": "ConfigMap", "secretKeyRef": "Secret"}


def _env(body: Mapping[str, Any]) -> dict[str, tuple[object, str]]:
    """Each variable by its name: what it is, to compare, and in words."""
    found: dict[str, tuple[object, str]] = {}
    for entry in maps(body.get("envFrom")):
        source = next(((kind, mapping(entry.get(key))) for key, kind in _FROM.items() if entry.get(key)), None)
        if source is not None:
            words = f"{entry.get('prefix') or ''}* from {source[0]} {source[1].get('name')}{_optional(source[1])}"
            found[f"*{words}"] = (words, words)
    for entry in maps(body.get("env")):
        name = str(entry.get("name"))
        found[name] = (dict(entry), f"{name}{_value(name, entry)}")
    return found


def _value(name: str, entry: Mapping[str, Any]) -> str:
    source = mapping(entry.get("valueFrom"))
    for key, kind in _KEYS.items():
        if source.get(key):
            named = mapping(source[key])
            return f" from {kind} {named.get('name')}, key {named.get('key')}{_optional(named)}"
    for key in ("fieldRef", "resourceFieldRef"):
        if source.get(key):
            named = mapping(source[key])
            return f" from {named.get('fieldPath') or named.get('resource')}"
    if source:
        return f" from {', '.join(sorted(map(str, source)))}"
    text = str(entry.get("value") if entry.get("value") is not None else "")
    return f"={masked_as(name, text)}"


def _optional(named: Mapping[str, Any]) -> str:
    return ", optional" if named.get("optional") is True else ""


def _variables(old: dict[str, tuple[object, str]], new: dict[str, tuple[object, str]]) -> Iterator[Line]:
    for name in sorted({**old, **new}):
        before, after = old.get(name), new.get(name)
        if before is not None and after is not None and before[0] == after[0]:
            continue
        if before is not None:
            yield Line(Mark.GONE, "env", before[1])
        if after is not None:
            yield Line(Mark.NEW, "env", after[1])
