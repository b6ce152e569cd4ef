"""What the API server refuses of workloads. Source: pkg/apis/apps/validation and pkg/apis/batch/validation."""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from provisioner.builtin import metadata, pods
from provisioner.builtin.changes import Change, FieldRefusal, ObjectNode, first_difference, is_number, numbered, quoted
from provisioner.builtin.forms import alike, is_domain_path, is_percent
from provisioner.json_values import mapping

_MONTHS = {
    name: month
    for month, name in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1
    )
}
_DAYS = {name: day for day, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])}
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
_MOST_DIGITS = 18
LARGEST_PARALLELISM = 100_000
_BY_CONTROLLER = ("controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")
# While a Job is suspended, these may change in its template, and since this minor the resources of its containers.
_FREE_WHILE_SUSPENDED = ("affinity", "nodeSelector", "tolerations", "schedulingGates")
_RESOURCES_SINCE = 36
# What may change in a Pod, beside the images of its containers.
_FREE_IN_PODS = ("activeDeadlineSeconds", "tolerations", "schedulingGates", "ephemeralContainers")


def problem_of_schedule(text: str) -> str:
    """Return why `text` is no schedule, "" for one."""
    if "TZ" in text:
        return "names a time zone, which belongs to `timeZone`"
    if text.startswith(_EVERY):
        return "" if _DURATION.fullmatch(text.removeprefix(_EVERY)) else "must name a duration after @every"
    if text.startswith("@"):
        return "" if text in _WORDS else f"is no schedule: {text.split(maxsplit=1)[0]} is not known"
    parts = text.split()
    if len(parts) != len(_FIELDS):
        return f"must have 5 fields, and has {len(parts)}"
    for part, field in zip(parts, _FIELDS, strict=True):
        for span in part.split(","):
            if span and (words := _check_range(span, field)):
                return words
    return ""


def _check_range(text: str, field: tuple[str, int, int, dict[str, int]]) -> str:
    name, least, most, names = field
    span, slash, step = text.partition("/")
    ends = ["*"] if span.split("-")[0] in ("*", "?") and span.count("-") < 2 else span.split("-")
    numbers = [least, most] if ends == ["*"] else [_parse_number(end, names) for end in ends]
    if len(numbers) > 2 or None in numbers or "/" in step:
        return f"has {quoted(text)} as {name}, which cannot be read"
    low, high = (numbers[0] or 0), (numbers[-1] or 0)
    if slash and len(numbers) == 1:
        high = most
    if slash and not 0 < (_parse_number(step, {}) or 0) <= _LARGEST:
        return f"has {quoted(text)} as {name}, of which the step cannot be read or is 0"
    if low < least or high > most:
        return f"has {quoted(text)} as {name}, which must be from {least} to {most}"
    return f"has {quoted(text)} as {name}, which begins after its end" if low > high else ""


def _parse_number(text: str, names: dict[str, int]) -> int | None:
    is_number = re.fullmatch(r"\+?[0-9]+", text) is not None and len(text) <= _MOST_DIGITS
    return names.get(text.lower(), int(text) if is_number else None)


def is_time_zone(name: str) -> bool | None:
    """Whether the server knows a zone; None where this machine has no database of zones to look into."""
    if not name or name.lower() == "local" or name.startswith("/") or ".." in name:
        return False
    for zone, is_found in ((name, True), ("Europe/Berlin", False)):
        try:
            zoneinfo.ZoneInfo(zone)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            continue
        return is_found
    return None


def _check_deployment(change: Change) -> Iterator[FieldRefusal]:
    yield from _check_selected_template(change)
    strategy, rolling = change.spec.at("strategy"), change.spec.at("strategy", "rollingUpdate")
    if strategy.get("type") == "Recreate" and strategy.get("rollingUpdate") is not None:
        words = (
            "must not be set where the type is Recreate; what the server filled in earlier stays unless you wrote it"
        )
        yield strategy.refuse(words, "rollingUpdate")
    yield from strategy.check_choice(("RollingUpdate", "Recreate"), "type")
    if strategy.get("type") == "RollingUpdate":
        yield from _check_amounts(rolling)
        if _is_nothing(rolling.get("maxUnavailable")) and _is_nothing(rolling.get("maxSurge")):
            yield rolling.refuse("must not be 0 where maxSurge is 0", "maxUnavailable")
    seconds, least = change.spec.get("progressDeadlineSeconds"), change.spec.get("minReadySeconds") or 0
    if is_number(seconds) and seconds <= least:
        yield change.spec.refuse(f"must be above minReadySeconds, which is {least}", "progressDeadlineSeconds")


def _check_daemon_set(change: Change) -> Iterator[FieldRefusal]:
    yield from _check_selected_template(change)
    strategy, rolling = change.spec.at("updateStrategy"), change.spec.at("updateStrategy", "rollingUpdate")
    yield from strategy.check_choice(("RollingUpdate", "OnDelete"), "type")
    if strategy.get("type") == "RollingUpdate":
        yield from _check_amounts(rolling)
        if not _is_nothing(rolling.get("maxUnavailable")) and not _is_nothing(rolling.get("maxSurge")):
            yield rolling.refuse("must be 0 where maxUnavailable is above 0", "maxSurge")


def _check_stateful_set(change: Change) -> Iterator[FieldRefusal]:
    spec, strategy = change.spec, change.spec.at("updateStrategy")
    claims = list(spec.items("volumeClaimTemplates"))
    yield from _check_selected_template(change, tuple(str(claim.get("metadata", "name") or "") for claim in claims))
    for claim in claims:
        size = ("spec", "resources", "requests", "storage")
        if not claim.get("metadata", "name"):
            yield claim.refuse("is missing", "metadata", "name")
        if change.old is None and claim.get(*size) is None:
            yield claim.refuse("is missing", *size)
    yield from strategy.check_choice(("RollingUpdate", "OnDelete"), "type")
    if strategy.get("type") == "OnDelete" and strategy.get("rollingUpdate") is not None:
        yield strategy.refuse("must not be set where the type is OnDelete", "rollingUpdate")
    yield from spec.check_choice(("OrderedReady", "Parallel"), "podManagementPolicy")


def _check_selected_template(change: Change, claims: tuple[str, ...] = ()) -> Iterator[FieldRefusal]:
    """Check a selector and the template that it selects; `claims` are volumes that the workload makes for each pod."""
    selector, template = change.spec.at("selector"), change.spec.at("template")
    yield from metadata.check_selector(selector)
    yield from pods.check_template(template, claims)
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield change.spec.refuse("must not be empty", "selector")
    elif not metadata.is_selected(selector.value, template.get("metadata", "labels")):
        words = "do not have what the selector asks for: the pods would not be found"
        yield template.refuse(words, "metadata", "labels")
    if template.get("spec", "activeDeadlineSeconds") is not None:
        yield template.refuse("must not be set in pods that run for ever", "spec", "activeDeadlineSeconds")


def _check_amounts(rolling: ObjectNode) -> Iterator[FieldRefusal]:
    for key in ("maxUnavailable", "maxSurge"):
        value = rolling.get(key)
        if isinstance(value, str) and not is_percent(value):
            yield rolling.refuse_value("must be a number or a percentage such as 25%", key)
        elif isinstance(value, str) and key == "maxUnavailable" and int(value[:-1]) > 100:
            yield rolling.refuse_value("must be at most 100%", key)
        yield from rolling.check_least(0, key)


def _is_nothing(value: Any) -> bool:
    return value in (0, None) or (isinstance(value, str) and is_percent(value) and int(value[:-1]) == 0)


def _check_job(change: Change) -> Iterator[FieldRefusal]:
    yield from _check_job_spec(change.spec)
    if change.old is None:
        return
    old, new = change.old_spec, change.spec.value
    completions = new.get("completions")
    if old.get("completions") != completions:
        # Those of an indexed Job may change with its parallelism.
        is_elastic = new.get("completionMode") == "Indexed" and completions == new.get("parallelism")
        if not is_elastic or completions is None:
            yield change.spec.refuse_change("completions")
    for key in ("backoffLimitPerIndex", "manualSelector", "managedBy"):
        if old.get(key) != new.get(key):
            yield change.spec.refuse_change(key)
    before, after = (_split_template(spec) for spec in (old, new))
    if alike(before, after):
        return
    free_fields = () if change.is_before(_RESOURCES_SINCE) else ("resources",)
    rest = [_leave_out(pod, _FREE_WHILE_SUSPENDED, free_fields) for pod, _ in (before, after)]
    if old.get("suspend") is not True or not alike(*rest):
        path = first_difference(old.get("template"), new.get("template"), ("template",))
        yield change.spec.refuse_change(*path)


def _split_template(spec: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the pod of a template, and its metadata without the labels that the controller sets."""
    template = mapping(spec.get("template"))
    meta = mapping(template.get("metadata"))
    labels = {key: value for key, value in mapping(meta.get("labels")).items() if key not in _BY_CONTROLLER}
    return mapping(template.get("spec")), {**meta, "labels": labels}


def _leave_out(pod: Mapping[str, Any], fields: tuple[str, ...], of_containers: tuple[str, ...]) -> dict[str, Any]:
    """Return a pod without these fields of it and of its containers."""
    rest = {key: value for key, value in pod.items() if key not in fields}
    for part in ("containers", "initContainers") if of_containers else ():
        if isinstance(rest.get(part), list):
            rest[part] = [
                {key: value for key, value in container.items() if key not in of_containers}
                for _, container in numbered(rest[part])
            ]
    return rest


def _check_job_spec(spec: ObjectNode) -> Iterator[FieldRefusal]:
    template, is_template = spec.at("template"), spec.path != ("spec",)
    restart = template.get("spec", "restartPolicy")
    yield from pods.check_template(template)
    yield from template.check_choice(("OnFailure", "Never"), "spec", "restartPolicy")
    if spec.get("completionMode") != "Indexed":
        for key in ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"):
            if spec.get(key) is not None:
                yield spec.refuse("must be set only where the completion mode is Indexed", key)
    elif spec.get("completions") is None:
        yield spec.refuse("is missing, and the completion mode is Indexed", "completions")
    elif (spec.get("parallelism") or 0) > LARGEST_PARALLELISM:
        yield spec.refuse(f"must be at most {LARGEST_PARALLELISM}", "parallelism")
    manager = spec.get("managedBy")
    if isinstance(manager, str) and not is_domain_path(manager):
        yield spec.refuse_value("must be a domain, a slash and a path", "managedBy")
    yield from _check_success(spec)
    counts = ("completions", "parallelism", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished")
    yield from spec.check_least(0, *counts)
    is_by_controller = any(key in _BY_CONTROLLER for key in spec.at("selector", "matchLabels").value)
    is_chosen = spec.get("selector") is not None and not is_template and not is_by_controller
    if is_chosen and spec.get("manualSelector") is not True:
        yield spec.refuse("must be set only where manualSelector is true", "selector")
    if spec.get("podFailurePolicy") is not None:
        if restart != "Never":
            yield spec.refuse("must be set only where the restart policy of the pods is Never", "podFailurePolicy")
        if spec.get("podReplacementPolicy") not in (None, "Failed"):
            yield spec.refuse("must be Failed where podFailurePolicy is set", "podReplacementPolicy")
        yield from _check_failure(spec)


def _check_failure(spec: ObjectNode) -> Iterator[FieldRefusal]:
    """Check which ends of pods count, and how."""
    names = {container.get("name") for container in pods.containers_of(spec.at("template", "spec"))}
    for rule in spec.at("podFailurePolicy").items("rules"):
        codes = rule.at("onExitCodes")
        if (rule.get("onExitCodes") is None) == (not rule.get("onPodConditions")):
            yield rule.refuse("must have one of onExitCodes and onPodConditions")
        if rule.get("action") == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            yield rule.refuse("must be FailIndex only where backoffLimitPerIndex is set", "action")
        name, values = codes.get("containerName"), codes.get("values")
        if name is not None and name not in names:
            yield codes.refuse(f"names no container: {quoted(name)}", "containerName")
        numbers = [value for value in values if is_number(value)] if isinstance(values, list) else []
        if values == []:
            yield codes.refuse("must not be empty", "values")
        elif numbers != sorted(set(numbers)):
            yield codes.refuse("must be in order, and each once", "values")
        elif 0 in numbers and codes.get("operator") == "In":
            yield codes.refuse("must not hold 0 where the operator is In", "values")


def _check_success(spec: ObjectNode) -> Iterator[FieldRefusal]:
    """Check that what counts indexes does not ask for more than there are."""
    most, failed = spec.get("completions"), spec.get("maxFailedIndexes")
    too_many = f"must be at most completions, which is {most}"
    if failed is not None and spec.get("backoffLimitPerIndex") is None:
        yield spec.refuse("is missing, and maxFailedIndexes is set", "backoffLimitPerIndex")
    if is_number(failed) and is_number(most) and failed > most:
        yield spec.refuse(too_many, "maxFailedIndexes")
    if spec.get("successPolicy") is not None and not spec.get("successPolicy", "rules"):
        yield spec.refuse("must not be empty", "successPolicy", "rules")
    for rule in spec.at("successPolicy").items("rules"):
        count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
        if is_number(count) and is_number(most) and count > most:
            yield rule.refuse(too_many, "succeededCount")
        if isinstance(indexes, str) and is_number(most) and not _are_indexes(indexes, most):
            yield rule.refuse_value(f"must be numbers and ranges in order, below {most}", "succeededIndexes")


def _are_indexes(text: str, most: int) -> bool:
    last = -1
    for part in text.split(",") if text else ():
        first, dash, end = part.partition("-")
        ends = (first, end) if dash else (first,)
        if not all(re.fullmatch(r"[0-9]{1,10}", number) for number in ends):
            return False
        if int(first) <= last or int(ends[-1]) < int(first):
            return False
        last = int(ends[-1])
    return last < most


def _check_cron_job(change: Change) -> Iterator[FieldRefusal]:
    spec, template = change.spec, change.spec.at("jobTemplate")
    schedule, zone = spec.get("schedule"), spec.get("timeZone")
    if isinstance(schedule, str) and schedule and (words := problem_of_schedule(schedule)):
        yield spec.refuse(f"{words}: {quoted(schedule)}", "schedule")
    if isinstance(zone, str) and is_time_zone(zone) is False:
        yield spec.refuse_value("must be a time zone such as Europe/Paris", "timeZone")
    yield from _check_job_spec(template.at("spec"))
    if template.get("spec", "manualSelector") is True:
        yield template.refuse("must not be true in a template", "spec", "manualSelector")
    yield from metadata.check_labels(template, "metadata", "labels")


def _check_pod(change: Change) -> Iterator[FieldRefusal]:
    yield from pods.check_pod(change.spec)
    for container in pods.containers_of(change.spec):
        image = str(container.get("image") or "")
        if image != image.strip():
            yield container.refuse("must not begin or end with spaces", "image")
    if change.old is not None:
        old, new = (_leave_out(spec, _FREE_IN_PODS, ("image",)) for spec in (change.old_spec, change.spec.value))
        if not alike(old, new):
            yield change.spec.refuse_change(*first_difference(old, new, ()))


RULES: dict[str, Callable[[Change], Iterator[FieldRefusal]]] = {
    "apps/v1 DaemonSet": _check_daemon_set,
    "apps/v1 Deployment": _check_deployment,
    "apps/v1 ReplicaSet": _check_selected_template,
    "apps/v1 StatefulSet": _check_stateful_set,
    "batch/v1 CronJob": _check_cron_job,
    "batch/v1 Job": _check_job,
    "v1 Pod": _check_pod,
}
