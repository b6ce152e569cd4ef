"""What the API server refuses of workloads. Source: pkg/apis/apps/validation and pkg/apis/batch/validation."""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from provisioner.builtin import metadata, pods
from provisioner.builtin.changes import NEVER, Change, FieldRefusal, Path, first_difference, is_number, numbered, quoted
from provisioner.builtin.forms import alike, is_domain_path, is_percent
from provisioner.json_values import mapping, value_at

_MONTHS = {
    name: number
    for number, name in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1
    )
}
_DAYS = {name: number for number, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])}
_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of the month", 1, 31, {}),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 6, _DAYS),
)
_WORDS = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
_EVERY = "@every "
_DURATION = re.compile(r"[+-]?((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+|[+-]?0")
_LARGEST = 2**63 - 1


def problem_of_schedule(text: str) -> str:
    """Why `text` is no schedule, "" for one."""
    if "TZ" in text:
        return "names a time zone, which belongs to `timeZone`"
    if text.startswith("@"):
        if text.startswith(_EVERY):
            return "" if _DURATION.fullmatch(text.removeprefix(_EVERY)) else "must name a duration after @every"
        return "" if text in _WORDS else f"is no schedule: {text.split(maxsplit=1)[0]} is not known"
    parts = text.split()
    if len(parts) != len(_FIELDS):
        return f"must have 5 fields, and has {len(parts)}"
    for part, field in zip(parts, _FIELDS, strict=True):
        for one in part.split(","):
            if one and (words := _check_range(one, field)):
                return words
    return ""


def _check_range(text: str, field: tuple[str, int, int, dict[str, int]]) -> str:
    name, least, most, names = field
    span, slash, step = text.partition("/")
    ends = span.split("-")
    if len(ends) > 2 or "/" in step:
        return f"has {quoted(text)} as {name}, which cannot be read"
    if ends[0] in ("*", "?"):
        low, high = least, most
    else:
        numbers = [_number(end, names) for end in ends]
        if None in numbers:
            return f"has {quoted(text)} as {name}, which cannot be read"
        low, high = (numbers[0] or 0), (numbers[-1] or 0)
        high = most if slash and len(ends) == 1 else high
    if slash and not _is_step(step):
        return f"has {quoted(text)} as {name}, of which the step cannot be read or is 0"
    if low < least or high > most:
        return f"has {quoted(text)} as {name}, which must be from {least} to {most}"
    return f"has {quoted(text)} as {name}, which begins after its end" if low > high else ""


def _number(text: str, names: dict[str, int]) -> int | None:
    known = names.get(text.lower())
    if known is not None:
        return known
    is_number = re.fullmatch(r"\+?[0-9]+", text) is not None and len(text) < 19
    return int(text) if is_number else None


def _is_step(text: str) -> bool:
    step = _number(text, {})
    return step is not None and 0 < step <= _LARGEST


def is_time_zone(name: str) -> bool | None:
    """Whether the server knows a zone; None where this machine has no database of zones to look into."""
    if not name or name.lower() == "local" or name.startswith("/") or ".." in name:
        return False
    return True if _is_known(name) else False if _is_known("Europe/Berlin") else None


def _is_known(name: str) -> bool:
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


_TEMPLATE: Path = ("spec", "template")
LARGEST_PARALLELISM = 100_000
_BY_CONTROLLER = ("controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")
# While a Job is suspended, these may change in its template.
_RESOURCES_SINCE = 36
_FREE_WHILE_SUSPENDED = ("affinity", "nodeSelector", "tolerations", "schedulingGates")


def _check_deployment(change: Change) -> Iterator[FieldRefusal]:
    yield from _check_selected_template(change)
    strategy = mapping(change.spec.get("strategy"))
    yield from _check_strategy(strategy, ("spec", "strategy"), "Recreate")
    seconds, least = change.spec.get("progressDeadlineSeconds"), change.spec.get("minReadySeconds") or 0
    if is_number(seconds) and seconds <= least:
        yield FieldRefusal(("spec", "progressDeadlineSeconds"), f"must be above minReadySeconds, which is {least}")


def _check_daemon_set(change: Change) -> Iterator[FieldRefusal]:
    yield from _check_selected_template(change)
    strategy = mapping(change.spec.get("updateStrategy"))
    rolling = mapping(strategy.get("rollingUpdate"))
    if strategy.get("type") not in ("RollingUpdate", "OnDelete"):
        yield FieldRefusal(
            ("spec", "updateStrategy", "type"),
            f"must be RollingUpdate or OnDelete, and is {quoted(strategy.get('type'))}",
        )
    elif strategy["type"] == "RollingUpdate":
        path: Path = ("spec", "updateStrategy", "rollingUpdate")
        yield from _check_amounts(rolling, path)
        if not _is_nothing(rolling.get("maxUnavailable")) and not _is_nothing(rolling.get("maxSurge")):
            yield FieldRefusal((*path, "maxSurge"), "must be 0 where maxUnavailable is above 0")


def _check_replica_set(change: Change) -> Iterator[FieldRefusal]:
    yield from _check_selected_template(change)


def _check_stateful_set(change: Change) -> Iterator[FieldRefusal]:
    claims = list(numbered(change.spec.get("volumeClaimTemplates")))
    names = [str(value_at(one, "metadata", "name") or "") for _, one in claims]
    yield from _check_selected_template(change, claims=tuple(names))
    for place, one in claims:
        where: Path = ("spec", "volumeClaimTemplates", place)
        if not names[place]:
            yield FieldRefusal((*where, "metadata", "name"), "is missing")
        if change.old is None and value_at(one, "spec", "resources", "requests", "storage") is None:
            yield FieldRefusal((*where, "spec", "resources", "requests", "storage"), "is missing")
    spec = change.spec
    strategy = mapping(spec.get("updateStrategy"))
    if strategy.get("type") not in ("RollingUpdate", "OnDelete"):
        yield FieldRefusal(
            ("spec", "updateStrategy", "type"),
            f"must be RollingUpdate or OnDelete, and is {quoted(strategy.get('type'))}",
        )
    elif strategy["type"] == "OnDelete" and strategy.get("rollingUpdate") is not None:
        yield FieldRefusal(("spec", "updateStrategy", "rollingUpdate"), "must not be set where the type is OnDelete")
    if spec.get("podManagementPolicy") not in ("OrderedReady", "Parallel"):
        yield FieldRefusal(
            ("spec", "podManagementPolicy"),
            f"must be OrderedReady or Parallel, and is {quoted(spec.get('podManagementPolicy'))}",
        )


def _check_selected_template(change: Change, claims: tuple[str, ...] = ()) -> Iterator[FieldRefusal]:
    """`claims` are names of volumes that the workload makes for each pod."""
    spec, template = change.spec, mapping(change.spec.get("template"))
    selector = spec.get("selector")
    yield from metadata.check_selector(selector, ("spec", "selector"))
    yield from pods.check_template(template, _TEMPLATE, claims)
    labels = value_at(template, "metadata", "labels")
    if not value_at(selector, "matchLabels") and not value_at(selector, "matchExpressions"):
        yield FieldRefusal(("spec", "selector"), "must not be empty")
    elif not metadata.is_selected(selector, labels):
        yield FieldRefusal(
            (*_TEMPLATE, "metadata", "labels"), "do not have what the selector asks for: the pods would not be found"
        )
    if value_at(template, "spec", "activeDeadlineSeconds") is not None:
        yield FieldRefusal((*_TEMPLATE, "spec", "activeDeadlineSeconds"), "must not be set in pods that run for ever")


def _check_strategy(strategy: Mapping[str, Any], path: Path, whole: str) -> Iterator[FieldRefusal]:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind not in ("RollingUpdate", whole):
        yield FieldRefusal((*path, "type"), f"must be RollingUpdate or {whole}, and is {quoted(kind)}")
    elif kind == whole and rolling is not None:
        words = (
            f"must not be set where the type is {whole}; what the server filled in earlier stays unless you wrote it"
        )
        yield FieldRefusal((*path, "rollingUpdate"), words)
    elif kind == "RollingUpdate":
        given = mapping(rolling)
        yield from _check_amounts(given, (*path, "rollingUpdate"))
        if _is_nothing(given.get("maxUnavailable")) and _is_nothing(given.get("maxSurge")):
            yield FieldRefusal((*path, "rollingUpdate", "maxUnavailable"), "must not be 0 where maxSurge is 0")


def _check_amounts(rolling: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    for key in ("maxUnavailable", "maxSurge"):
        value = rolling.get(key)
        if isinstance(value, str) and not is_percent(value):
            yield FieldRefusal((*path, key), f"must be a number or a percentage such as 25%, and is {quoted(value)}")
        elif isinstance(value, str) and key == "maxUnavailable" and int(value[:-1]) > 100:
            yield FieldRefusal((*path, key), f"must be at most 100%, and is {quoted(value)}")
        elif is_number(value) and value < 0:
            yield FieldRefusal((*path, key), f"must be at least 0, and is {value}")


def _is_nothing(value: Any) -> bool:
    return value in (0, None) or (isinstance(value, str) and is_percent(value) and int(value[:-1]) == 0)


def _check_job(change: Change) -> Iterator[FieldRefusal]:
    yield from _check_job_spec(change.spec, ("spec",))
    if change.old is not None:
        # `completions` of an indexed Job may change with its parallelism.
        old, new = change.old_spec, change.spec
        if old.get("completions") != new.get("completions"):
            is_elastic = new.get("completionMode") == "Indexed" and new.get("completions") == new.get("parallelism")
            if not is_elastic or new.get("completions") is None:
                yield FieldRefusal(("spec", "completions"), NEVER, is_of_update=True)
        for key in ("backoffLimitPerIndex", "manualSelector", "managedBy"):
            if old.get(key) != new.get(key):
                yield FieldRefusal(("spec", key), NEVER, is_of_update=True)
        if not alike(_split_template(old), _split_template(new)):
            rest = [_split_template(one, _FREE_WHILE_SUSPENDED) for one in (old, new)]
            if not change.is_before(_RESOURCES_SINCE):
                rest = [_without_resources(pod) for pod, _ in rest]
            if old.get("suspend") is not True or not alike(*rest):
                yield FieldRefusal(
                    first_difference(old.get("template"), new.get("template"), _TEMPLATE), NEVER, is_of_update=True
                )


def _check_job_spec(spec: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    template = mapping(spec.get("template"))
    yield from pods.check_template(template, (*path, "template"))
    restart = value_at(template, "spec", "restartPolicy")
    if restart not in ("OnFailure", "Never"):
        words = f"must be OnFailure or Never, and is {quoted(restart)}"
        yield FieldRefusal((*path, "template", "spec", "restartPolicy"), words)
    yield from _check_completions(spec, path)
    manager = spec.get("managedBy")
    if isinstance(manager, str) and not is_domain_path(manager):
        problem = f"must be a domain, a slash and a path, and is {quoted(manager)}"
        yield FieldRefusal((*path, "managedBy"), problem)
    yield from _check_success(spec, path)
    for key in ("completions", "parallelism", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"):
        value = spec.get(key)
        if is_number(value) and value < 0:
            yield FieldRefusal((*path, key), f"must be at least 0, and is {value}")
    is_chosen = (
        spec.get("selector") is not None
        and path == ("spec",)
        and not any(key in _BY_CONTROLLER for key in mapping(value_at(spec, "selector", "matchLabels")))
    )
    if is_chosen and spec.get("manualSelector") is not True:
        yield FieldRefusal((*path, "selector"), "must be set only where manualSelector is true")
    if spec.get("podFailurePolicy") is not None:
        if restart != "Never":
            yield FieldRefusal(
                (*path, "podFailurePolicy"), "must be set only where the restart policy of the pods is Never"
            )
        if spec.get("podReplacementPolicy") not in (None, "Failed"):
            yield FieldRefusal((*path, "podReplacementPolicy"), "must be Failed where podFailurePolicy is set")
        yield from _check_failure(spec, (*path, "podFailurePolicy", "rules"))


def _check_failure(spec: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    """Which ends of pods count, and how."""
    pod = value_at(spec, "template", "spec")
    names = {one.get("name") for part in ("initContainers", "containers") for _, one in numbered(value_at(pod, part))}
    for place, rule in numbered(value_at(spec, "podFailurePolicy", "rules")):
        where, codes = (*path, place), rule.get("onExitCodes")
        if (codes is None) == (not rule.get("onPodConditions")):
            yield FieldRefusal(where, "must have one of onExitCodes and onPodConditions")
        if rule.get("action") == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            yield FieldRefusal((*where, "action"), "must be FailIndex only where backoffLimitPerIndex is set")
        name, values = value_at(codes, "containerName"), value_at(codes, "values")
        if name is not None and name not in names:
            yield FieldRefusal((*where, "onExitCodes", "containerName"), f"names no container: {quoted(name)}")
        numbers = [value for value in values if is_number(value)] if isinstance(values, list) else []
        if values == []:
            yield FieldRefusal((*where, "onExitCodes", "values"), "must not be empty")
        elif numbers != sorted(set(numbers)):
            yield FieldRefusal((*where, "onExitCodes", "values"), "must be in order, and each once")
        elif 0 in numbers and value_at(codes, "operator") == "In":
            yield FieldRefusal((*where, "onExitCodes", "values"), "must not hold 0 where the operator is In")


def _check_completions(spec: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    if spec.get("completionMode") != "Indexed":
        for key in ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"):
            if spec.get(key) is not None:
                yield FieldRefusal((*path, key), "must be set only where the completion mode is Indexed")
    elif spec.get("completions") is None:
        yield FieldRefusal((*path, "completions"), "is missing, and the completion mode is Indexed")
    elif (spec.get("parallelism") or 0) > LARGEST_PARALLELISM:
        yield FieldRefusal((*path, "parallelism"), f"must be at most {LARGEST_PARALLELISM}")


def _check_success(spec: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    """What counts indexes must not ask for more than there are."""
    most, failed = spec.get("completions"), spec.get("maxFailedIndexes")
    if failed is not None and spec.get("backoffLimitPerIndex") is None:
        yield FieldRefusal((*path, "backoffLimitPerIndex"), "is missing, and maxFailedIndexes is set")
    if is_number(failed) and is_number(most) and failed > most:
        yield FieldRefusal((*path, "maxFailedIndexes"), f"must be at most completions, which is {most}")
    policy = spec.get("successPolicy")
    if policy is not None and not value_at(policy, "rules"):
        yield FieldRefusal((*path, "successPolicy", "rules"), "must not be empty")
    for place, rule in numbered(value_at(policy, "rules")):
        where, count = (*path, "successPolicy", "rules", place), rule.get("succeededCount")
        if is_number(count) and is_number(most) and count > most:
            yield FieldRefusal((*where, "succeededCount"), f"must be at most completions, which is {most}")
        indexes = rule.get("succeededIndexes")
        if isinstance(indexes, str) and is_number(most) and not _are_indexes(indexes, most):
            words = f"must be numbers and ranges in order, below {most}, and is {quoted(indexes)}"
            yield FieldRefusal((*where, "succeededIndexes"), words)


def _are_indexes(text: str, most: int) -> bool:
    last = -1
    for part in text.split(",") if text else ():
        first, dash, end = part.partition("-")
        ends = (first, end) if dash else (first,)
        if not all(re.fullmatch(r"[0-9]{1,10}", one) for one in ends):
            return False
        if int(first) <= last or (dash and int(end) < int(first)):
            return False
        last = int(ends[-1])
    return last < most


def _split_template(spec: Mapping[str, Any], without: tuple[str, ...] = ()) -> Any:
    template = mapping(spec.get("template"))
    pod = {key: one for key, one in mapping(template.get("spec")).items() if key not in without}
    meta = mapping(template.get("metadata"))
    labels = {key: one for key, one in mapping(meta.get("labels")).items() if key not in _BY_CONTROLLER}
    return pod, {} if without else {**meta, "labels": labels}


def _without_resources(pod: Mapping[str, Any]) -> dict[str, Any]:
    """While a Job is suspended, these may change, too."""
    rest = dict(pod)
    for part in ("containers", "initContainers"):
        if isinstance(rest.get(part), list):
            rest[part] = [{key: it for key, it in one.items() if key != "resources"} for _, one in numbered(rest[part])]
    return rest


def _check_cron_job(change: Change) -> Iterator[FieldRefusal]:
    spec = change.spec
    schedule, zone = spec.get("schedule"), spec.get("timeZone")
    if isinstance(schedule, str) and schedule and (words := problem_of_schedule(schedule)):
        yield FieldRefusal(("spec", "schedule"), f"{words}: {quoted(schedule)}")
    if isinstance(zone, str) and is_time_zone(zone) is False:
        yield FieldRefusal(("spec", "timeZone"), f"must be a time zone such as Europe/Paris, and is {quoted(zone)}")
    job = mapping(value_at(spec, "jobTemplate", "spec"))
    yield from _check_job_spec(job, ("spec", "jobTemplate", "spec"))
    if job.get("manualSelector") is True:
        yield FieldRefusal(("spec", "jobTemplate", "spec", "manualSelector"), "must not be true in a template")
    meta = mapping(value_at(spec, "jobTemplate", "metadata"))
    yield from metadata.check_labels(meta.get("labels"), ("spec", "jobTemplate", "metadata", "labels"))


def _check_pod(change: Change) -> Iterator[FieldRefusal]:
    yield from pods.refusals(change.spec, ("spec",))
    for part in ("initContainers", "containers"):
        for place, one in numbered(change.spec.get(part)):
            if str(one.get("image") or "") != str(one.get("image") or "").strip():
                yield FieldRefusal(("spec", part, place, "image"), "must not begin or end with spaces")
    if change.old is not None:
        old, new = (_without_free(one) for one in (change.old_spec, change.spec))
        if not alike(old, new):
            yield FieldRefusal(first_difference(old, new, ("spec",)), NEVER, is_of_update=True)


def _without_free(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What of a pod never changes: all but images, the deadline, and what may be added."""
    rest = {
        key: one
        for key, one in spec.items()
        if key not in ("activeDeadlineSeconds", "tolerations", "schedulingGates", "ephemeralContainers")
    }
    for part in ("containers", "initContainers"):
        if isinstance(rest.get(part), list):
            rest[part] = [{key: it for key, it in one.items() if key != "image"} for _, one in numbered(rest[part])]
    return rest


RULES: dict[str, Callable[[Change], Iterator[FieldRefusal]]] = {
    "apps/v1 DaemonSet": _check_daemon_set,
    "apps/v1 Deployment": _check_deployment,
    "apps/v1 ReplicaSet": _check_replica_set,
    "apps/v1 StatefulSet": _check_stateful_set,
    "batch/v1 CronJob": _check_cron_job,
    "batch/v1 Job": _check_job,
    "v1 Pod": _check_pod,
}
