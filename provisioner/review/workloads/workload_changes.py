"""What will run: the workloads that come, go or change, with their images, how many pods, access to nodes and accounts.

Pure. Of a plan that holds only what one reader may see, it tells only that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from provisioner.alignment import Aligner
from provisioner.json_values import items, mapping, maps
from provisioner.masking import HIDDEN, is_credential, masked, masked_as, masked_value
from provisioner.review.base.claims import PODS, Claim
from provisioner.review.base.difference import ABSENT, FieldChange, changed_paths
from provisioner.review.base.messages import path_text
from provisioner.review.base.record import Mark
from provisioner.review.workloads.mounts import mounts_of
from provisioner.review.workloads.pod_security import host_access
from provisioner.review.workloads.pod_specs import Container, PodSpec, pod_specs
from provisioner.sentences import number
from provisioner.values import Action, GroupKind, JsonObject, ObjectRef, Plan

CONTAINER_LISTS = ("containers", "initContainers", "ephemeralContainers")
STAYING = frozenset({Action.UPDATE, Action.REPLACE, Action.ADOPT, Action.RERUN})


def of_containers(rule: str, *fields: str) -> Claim:
    """The claim of a rule to fields of all containers of pods."""
    return Claim(rule, PODS, tuple(f"{{pod}}.{name}.*.{field}" for name in CONTAINER_LISTS for field in fields))


@dataclass(frozen=True, slots=True)
class PodChange:
    """The pods of one object that stays, before and after; they may be the same."""

    before: PodSpec
    after: PodSpec

    @property
    def ref(self) -> ObjectRef:
        return self.after.ref

    def kept(self) -> Iterator[tuple[Container, Container]]:
        """The containers that both sides have, by their names."""
        old = containers_by_name(self.before)
        for key, container in containers_by_name(self.after).items():
            if key in old:
                yield old[key], container


def pod_changes(plan: Plan) -> Iterator[PodChange]:
    """The pods of every object that stays, in the order of the plan."""
    for planned in plan.actions:
        if planned.action in STAYING and planned.before is not None and planned.after is not None:
            for old, new in zip(pod_specs((planned.before,)), pod_specs((planned.after,)), strict=False):
                yield PodChange(old, new)


def containers_by_name(pod: PodSpec) -> dict[tuple[str, str], Container]:
    """By the list in which each stands and its name."""
    return {(container.list_name, container.name): container for container in pod.containers()}


def field_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[FieldChange]:
    """The smallest fields that differ. What is null counts as absent, as the API server has it."""
    return changed_paths(_stated(old), _stated(new))


def change_record(change: FieldChange) -> dict[str, str]:
    """Path, `before` and `after`, as far as there are values, without what is named or written like a credential."""
    name, both = str(change.path[-1]) if change.path else "", (change.before, change.after)
    before, after = (None if side == ABSENT else _in_one_line(masked_value(side, name)) for side in both)
    return {"path": path_text(change.path), **sides(before, after)}


def sides(before: Any, after: Any) -> dict[str, Any]:
    """`before` and `after`, as far as there is one."""
    return {side: one for side, one in (("before", before), ("after", after)) if one is not None}


def _in_one_line(value: object) -> str:
    """A value as people write it in one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_in_one_line(inner)}" for key, inner in value.items()) or "{}"
    if isinstance(value, list):
        return "; ".join(map(_in_one_line, value)) or "[]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _stated(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _stated(inner) for key, inner in value.items() if inner is not None}
    return [_stated(inner) for inner in value] if isinstance(value, list) else value


DEPLOYMENT = GroupKind("apps", "Deployment")
STATEFUL_SET = GroupKind("apps", "StatefulSet")
DAEMON_SET = GroupKind("apps", "DaemonSet")
SCALED = frozenset({DEPLOYMENT, STATEFUL_SET, GroupKind("apps", "ReplicaSet"), GroupKind("", "ReplicationController")})
# It sets what pods ask for, not how many there are.
SIZER = GroupKind("autoscaling.k8s.io", "VerticalPodAutoscaler")
_TARGETS = {
    GroupKind("autoscaling", "HorizontalPodAutoscaler"): "scaleTargetRef",
    GroupKind("keda.sh", "ScaledObject"): "scaleTargetRef",
    SIZER: "targetRef",
}
_SCALER_KINDS = frozenset(target.kind for target in _TARGETS)

QUARTER = "25%"


def is_autoscaler(group_kind: GroupKind) -> bool:
    """Whether objects of this kind set the replicas of workloads."""
    return group_kind in _TARGETS and group_kind != SIZER


def replicas_of(obj: JsonObject) -> int:
    """How many pods a workload asks for; the server's default is one."""
    count = mapping(obj.get("spec")).get("replicas")
    return count if isinstance(count, int) and not isinstance(count, bool) else 1


def target_of(scaler: JsonObject) -> ObjectRef | None:
    """The workload whose replicas an autoscaler sets; None for what is no autoscaler."""
    if scaler.get("kind") not in _SCALER_KINDS:  # most objects are none
        return None
    ref, spec = ObjectRef.of(scaler), mapping(scaler.get("spec"))
    target = mapping(spec.get(_TARGETS.get(ref.group_kind, "")))
    if not target.get("name"):
        return None
    group, _, version = str(target.get("apiVersion") or "apps/v1").rpartition("/")
    return ObjectRef(group, version, str(target.get("kind") or DEPLOYMENT.kind), ref.namespace, str(target["name"]))


def autoscalers_of(ref: ObjectRef, objects: Iterable[JsonObject]) -> Iterator[JsonObject]:
    """Those among `objects` that set the replicas of a workload."""
    for other in objects:
        target = target_of(other)
        if target is not None and target.identity == ref.identity and is_autoscaler(ObjectRef.of(other).group_kind):
            yield other


def most_of(obj: JsonObject, objects: Iterable[JsonObject]) -> int:
    """How many it may run at most: as an autoscaler among `objects` lets it, else as it asks."""
    specs = (mapping(scaler.get("spec")) for scaler in autoscalers_of(ObjectRef.of(obj), objects))
    most = (spec.get("maxReplicas", spec.get("maxReplicaCount")) for spec in specs)
    return next((count for count in most if isinstance(count, int)), replicas_of(obj))


def part_of(value: object, total: int, *, up: bool) -> int | None:
    """A number, or a percentage of `total`, rounded as Kubernetes does it there; None for what is neither."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    digits = value.removesuffix("%") if isinstance(value, str) and value.endswith("%") else ""
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 4):
        return None
    product = int(digits) * total
    return -(-product // 100) if up else product // 100


@dataclass(frozen=True, slots=True)
class Rolling:
    """How many pods a Deployment starts beside those that it should have, and how many of them it lets go meanwhile."""

    surge: int
    unavailable: int


def rolling(strategy: Mapping[str, Any], count: int) -> Rolling | None:
    """How `count` pods are replaced; None where all go first, or nobody can read it."""
    stated = mapping(strategy.get("rollingUpdate"))
    unavailable = part_of(stated.get("maxUnavailable", QUARTER), count, up=False)
    surge = part_of(stated.get("maxSurge", QUARTER), count, up=True)
    if strategy.get("type") == "Recreate" or unavailable is None or surge is None:
        return None
    return Rolling(surge, unavailable if unavailable or surge else 1)  # the server lets one go then


# What is kept runs on, but is no part of the deployment any more.
RUNNING = STAYING | {Action.CREATE, Action.DELETE}
_JOB, _CRON_JOB = GroupKind("batch", "Job"), GroupKind("batch", "CronJob")


@dataclass(frozen=True, slots=True)
class PodRun:
    """How one object runs its pods: `scale` is how many in words, "" where it is one; `host` as `host_access` says."""

    scale: str = ""
    host: tuple[str, ...] = ()
    account: str = ""


@dataclass(frozen=True, slots=True)
class WorkloadChange:
    """An object whose pods come, go, run anew or change. `before` and `after` are empty where it is not there."""

    ref: ObjectRef
    mark: Mark
    before: PodRun
    after: PodRun
    containers: tuple[ContainerChange, ...]
    runs_again: bool = False


def workload_changes(plan: Plan) -> list[WorkloadChange]:
    """What of the plan runs pods and comes, goes, runs anew or changes how, in the order of the plan."""
    scalers = [planned for planned in plan.actions if is_autoscaler(planned.ref.group_kind)]
    old_scalers = [scaler.before for scaler in scalers if scaler.before]
    new_scalers = [scaler.after for scaler in scalers if scaler.after]
    found = []
    for planned in plan.actions:
        if planned.action not in RUNNING:
            continue
        old, new = (next(pod_specs((obj,)), None) if obj else None for obj in (planned.before, planned.after))
        # What is adopted is not always known.
        if not (old and new if planned.action in STAYING else old or new):
            continue
        change = WorkloadChange(
            planned.ref,
            Mark.CHANGED if old and new else Mark.NEW if new else Mark.GONE,
            _pod_run(planned.before, old, old_scalers),
            _pod_run(planned.after, new, new_scalers),
            tuple(changes_between(old, new)),
            planned.action is Action.RERUN,
        )
        if change.containers or change.before != change.after or change.runs_again:
            found.append(change)
    return found


def running_record(changes: Sequence[WorkloadChange]) -> dict[str, Any]:
    """The JSON of the changes and of their containers, as report.schema.json describes it."""
    workloads = [
        {
            "object": str(change.ref),
            "change": change.mark.name.lower(),
            "runsAgain": change.runs_again,
            "scale": {"before": change.before.scale, "after": change.after.scale},
            "hostAccess": {"before": list(change.before.host), "after": list(change.after.host)},
            "serviceAccount": {"before": change.before.account, "after": change.after.account},
        }
        for change in changes
    ]
    return {"workloads": workloads, "containers": to_record(found for change in changes for found in change.containers)}


def _pod_run(obj: JsonObject | None, pod: PodSpec | None, scalers: Iterable[JsonObject]) -> PodRun:
    if not obj or not pod:
        return PodRun()
    ref, spec = ObjectRef.of(obj), mapping(obj.get("spec"))
    if ref.group_kind in SCALED:
        scaler = next(autoscalers_of(ref, scalers), None)
        scale = _range(scaler) if scaler else number(replicas_of(obj), "replica")
    elif ref.group_kind == DAEMON_SET:
        scale = "one per node"
    elif ref.group_kind == _CRON_JOB:
        scale = f"schedule {spec.get('schedule')}{', suspended' if spec.get('suspend') is True else ''}"
    else:
        parallel = spec.get("parallelism", 1) if ref.group_kind == _JOB else 1
        scale = "" if parallel == 1 else f"{parallel} at once"
    return PodRun(scale, host_access(pod), pod.account)


def _range(scaler: JsonObject) -> str:
    """How many an autoscaler lets run; KEDA has names and defaults of its own."""
    spec, ref = mapping(scaler.get("spec")), ObjectRef.of(scaler)
    low = spec.get("minReplicas") or spec.get("minReplicaCount", 0 if ref.kind == "ScaledObject" else 1)
    high = spec.get("maxReplicas") or spec.get("maxReplicaCount", 100)
    return f"{low} to {high} replicas, as {ref.kind} {ref.name} decides"


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
            "object": str(change.ref),
            "container": change.name,
            "role": change.role or "container",
            "change": change.mark.name.lower(),
            "image": {"before": change.before, "after": change.after},
            "settings": [
                {"change": line.mark.name.lower(), "in": line.what, "value": line.text} for line in change.lines
            ],
        }
        for change in changes
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
    was, is_now = (
        {(mount.words, mount.folder) for mount in mounts_of(pod, container)} if container else set()
        for pod, container in ((before, old), (after, new))
    )
    lines = (
        *_lines(old.body if old else {}, new.body),
        *(Line(Mark.GONE, "mount", *told) for told in sorted(was - is_now)),
        *(Line(Mark.NEW, "mount", *told) for told in sorted(is_now - was)),
    )
    if old is None:
        return _change(new.ref, new, Mark.NEW, ("", _image(new)), lines)
    images = _image(old), _image(new)
    return _change(new.ref, new, Mark.CHANGED, images, lines) if lines or images[0] != images[1] else None


def _change(
    ref: ObjectRef, of: Container, mark: Mark, images: tuple[str, str], lines: tuple[Line, ...]
) -> ContainerChange:
    return ContainerChange(ref, of.name, _KINDS_OF_LIST[of.list_name], mark, *images, lines)


def _image(container: Container) -> str:
    image = container.body.get("image")
    return image if isinstance(image, str) else ""


def _lines(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Line]:
    for what, key in (("command", "command"), ("arg", "args")):
        yield from _listed(what, _argument_texts(old.get(key)), _argument_texts(new.get(key)))
    was, is_now = _env(old), _env(new)
    for name in sorted({**was, **is_now}):
        gone, come = was.get(name), is_now.get(name)
        if gone is not None and come is not None and gone[0] == come[0]:
            continue
        yield from [Line(Mark.GONE, "env", gone[1])] if gone is not None else []
        yield from [Line(Mark.NEW, "env", come[1])] if come is not None else []
    yield from _listed("workingDir", _argument_texts(_one(old, "workingDir")), _argument_texts(_one(new, "workingDir")))
    before, after = mapping(old.get("lifecycle")), mapping(new.get("lifecycle"))
    for name in HOOKS:
        yield from _listed(name, _argument_texts(_hook(before.get(name))), _argument_texts(_hook(after.get(name))))
    yield from _listed(
        "stopSignal", _argument_texts(_one(before, "stopSignal")), _argument_texts(_one(after, "stopSignal"))
    )


def _one(holder: Mapping[str, Any], key: str) -> list[object]:
    return [holder[key]] if holder.get(key) else []


def _hook(handler: object) -> list[object]:
    """What is done when a container starts or ends: a command by its words, a request by its address."""
    told = mapping(handler)
    if request := mapping(told.get("httpGet")):
        scheme, host = str(request.get("scheme") or "HTTP").lower(), request.get("host") or ""
        headers = (f"{header.get('name')}: {header.get('value')}" for header in maps(request.get("httpHeaders")))
        return [f"{scheme}://{host}:{request.get('port')}{request.get('path') or '/'}", *headers]
    if socket := mapping(told.get("tcpSocket")):
        return [f"tcp://{socket.get('host') or ''}:{socket.get('port')}"]
    if pause := mapping(told.get("sleep")):
        return [f"sleep {pause.get('seconds')}"]
    return items(mapping(told.get("exec")).get("command"))


def _argument_texts(listed: object) -> list[tuple[str, str]]:
    """Each argument, a longer text by its lines, as it is and as it may be shown."""
    found: list[tuple[str, str]] = []
    flag = ""
    for word in map(str, items(listed)):
        is_value = is_credential(flag) and not word.startswith("-")
        flag = word.lstrip("-") if word.startswith("-") and "=" not in word else ""
        lines, shown = word.split("\n"), (HIDDEN if is_value else masked(word)).split("\n")
        # What is hidden over several lines is hidden in each.
        found += zip(lines, shown if len(shown) == len(lines) else [HIDDEN] * len(lines), strict=True)
    return found


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
