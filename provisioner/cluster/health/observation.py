"""The health of everything that a revision owns, by a few lists where those are cheaper than reading one by one.

Health checks in CEL are asked of the evaluator: each object on its own, within limits on size and time.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from provisioner import health_checks
from provisioner.api_groups import RBAC_GROUP
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.client.discovery import ServedResource
from provisioner.cluster.client.failures import is_of_webhook
from provisioner.cluster.health.kstatus import health_of
from provisioner.cluster.health.reasons import health_of_backends, reasons
from provisioner.errors import ClusterError, TryLater, UnknownKind, Unreachable
from provisioner.expressions.evaluator import ask
from provisioner.health_checks import LANGUAGE, MAX_OBJECT_BYTES, HealthCheck
from provisioner.values import WORST_FIRST, Health, HealthState, JsonObject, ObjectRef

TIMEOUT_SECONDS = 10.0


def check_spec(spec: Mapping[str, Any]) -> None:
    """Raises BadHealthCheck where the health part of a BundleDeployment's spec cannot be read, or does not compile."""
    checks = health_checks.check_spec(spec)
    texts = sorted({text for check in checks for text in check.expressions})
    health_checks.check_compiled(checks, dict(zip(texts, ask(LANGUAGE, texts), strict=True)))


def cel_answers(
    questions: Sequence[tuple[HealthCheck, JsonObject]], *, timeout_seconds: float = TIMEOUT_SECONDS
) -> list[Health]:
    """The answer to each (check, live object), in their order; what has no answer is Unknown, in words."""
    deadline, answers = time.monotonic() + timeout_seconds, []
    for check, live in questions:
        # Who wrote which field is no state, and often half of an object.
        meta = {key: value for key, value in (live.get("metadata") or {}).items() if key != "managedFields"}
        obj = {**live, "metadata": meta}
        size, left = len(json.dumps(obj)), deadline - time.monotonic()
        if size > MAX_OBJECT_BYTES:
            words = f"the object has {size} bytes; CEL checks are for at most {MAX_OBJECT_BYTES}"
            answers.append(Health(HealthState.UNKNOWN, f"not evaluated: {words}"))
        elif left <= 0:
            words = f"the CEL checks took longer than {timeout_seconds:g} s"
            answers.append(Health(HealthState.UNKNOWN, f"not evaluated: {words}"))
        else:
            found = ask(LANGUAGE, check.expressions, health_checks.facts_of(obj), seconds=left)
            answers.append(check.judge(obj, found))
    return answers


PARALLEL = 8
# So many objects of one kind and place are worth a list; it may hold so many others for each of ours.
LIST_FROM = 3
MAX_OTHERS = 4
PAGE = 500
MAX_EXPLAINED = 10
MAX_MESSAGE = 2000
MAX_PAUSE_SECONDS = 5.0
# Kinds that have no state: that they exist says it all, so their content (of Secrets above all) is not read.
_STATELESS = frozenset(
    {
        ("", "ConfigMap"),
        ("", "LimitRange"),
        ("", "Secret"),
        ("", "ServiceAccount"),
        ("networking.k8s.io", "NetworkPolicy"),
        ("node.k8s.io", "RuntimeClass"),
        (RBAC_GROUP, "ClusterRole"),
        (RBAC_GROUP, "ClusterRoleBinding"),
        (RBAC_GROUP, "Role"),
        (RBAC_GROUP, "RoleBinding"),
        ("scheduling.k8s.io", "PriorityClass"),
        ("storage.k8s.io", "StorageClass"),
    }
)


@dataclass(frozen=True, slots=True)
class _Found:
    """What was read: objects by reference, None for those that are not there; problems where none could be read."""

    objects: dict[ObjectRef, JsonObject | None] = field(default_factory=dict)
    problems: dict[ObjectRef, Health] = field(default_factory=dict)


def observe(
    cluster: ClusterClient, refs: Iterable[ObjectRef], *, now: datetime, checks: Sequence[HealthCheck] = ()
) -> dict[ObjectRef, Health]:
    """The health of each object, read once as the identity of `cluster`, with the reasons where it is not well.

    Each of `checks` is asked too of what it selects; the worst answer counts. What may not be read is Unknown, or what
    a webhook, or a server behind the API server, keeps from being read. Raises TryLater if nobody answers.
    """
    wished = list(dict.fromkeys(refs))
    found = _read_all(cluster, wished, checks)
    health = dict(found.problems)
    for ref, obj in found.objects.items():
        health[ref] = worst([health_of(obj, now=now), *health_of_backends(cluster, obj)])
    # The deployment's own checks; an object that is not there needs none.
    asked = []
    for check in checks:
        asked += [(ref, check, obj) for ref, obj in found.objects.items() if obj is not None and check.selects(ref)]
    for ref, check, obj in asked:
        if not check.expressions:
            health[ref] = worst([health[ref], check.judge(obj)])
    expressions = [question for question in asked if question[1].expressions]
    answers = cel_answers([(check, obj) for _, check, obj in expressions])
    for (ref, _, _), answer in zip(expressions, answers, strict=True):
        health[ref] = worst([health[ref], answer])
    return _explained(cluster, {ref: health[ref] for ref in wished}, found)


def until_sound(
    cluster: ClusterClient,
    refs: Iterable[ObjectRef],
    checks: Sequence[HealthCheck],
    *,
    timeout_seconds: float,
    while_waiting: Callable[[], None],
) -> dict[ObjectRef, Health]:
    """The health of each object once all are Current or one has Failed, or when the time is over.

    Looked at again and again, as what a check asks for may depend on time alone; `while_waiting` is called in between,
    and ends the wait by raising.
    """
    end, pause, wished = time.monotonic() + timeout_seconds, 0.5, list(refs)
    while wished:
        try:
            health = observe(cluster, wished, now=datetime.now(UTC), checks=checks)
        except TryLater as exc:  # who does not answer now may do so in a moment
            health = dict.fromkeys(wished, Health(HealthState.UNKNOWN, str(exc), exc.server_words))
        states = {found_health.state for found_health in health.values()}
        if states == {HealthState.CURRENT} or HealthState.FAILED in states or time.monotonic() >= end:
            return health
        while_waiting()
        time.sleep(max(min(pause, end - time.monotonic()), 0.0))
        pause = min(pause * 1.5, MAX_PAUSE_SECONDS)
    return {}


def worst(healths: Sequence[Health]) -> Health:
    """The first of the worst."""
    return min(healths, key=lambda health: WORST_FIRST.index(health.state))


def _read_all(cluster: ClusterClient, wished: Sequence[ObjectRef], checks: Sequence[HealthCheck]) -> _Found:
    found = _Found()
    groups: dict[tuple[ServedResource, str], list[ObjectRef]] = defaultdict(list)
    nobody: Unreachable | None = None
    for ref in wished:
        try:
            resource = cluster.resource_of(ref.group, ref.version, ref.kind)
        except Unreachable as exc:
            found.problems[ref], nobody = Health(HealthState.UNKNOWN, str(exc), exc.server_words), exc
            continue
        if resource is None:
            words = f"the cluster serves no {ref.kind} in {ref.api_version}"
            found.problems[ref] = Health(HealthState.NOT_FOUND, words)
        else:
            groups[resource, ref.namespace].append(ref)
    if nobody and not groups:
        raise nobody
    with ThreadPoolExecutor(max_workers=PARALLEL) as pool:
        jobs = []
        for (resource, _), refs in groups.items():
            is_read = any(check.selects(ref) for check in checks for ref in refs)
            is_light = (resource.group, resource.kind) in _STATELESS and not is_read
            jobs.append(pool.submit(_read_group, cluster, resource, refs, is_light))
        listed = [job.result() for job in jobs]
        rest = [(ref, is_light) for _, missing, is_light in listed for ref in missing]
        single = list(pool.map(partial(_read_one, cluster), *zip(*rest, strict=True))) if rest else []
    for objects, _, _ in listed:
        found.objects.update(objects)
    for (ref, _), answer in zip(rest, single, strict=True):
        if isinstance(answer, Health):
            found.problems[ref] = answer
        else:
            found.objects[ref] = answer
    return found


def _read_group(
    cluster: ClusterClient, resource: ServedResource, refs: list[ObjectRef], is_light: bool
) -> tuple[dict[ObjectRef, JsonObject | None], list[ObjectRef], bool]:
    """What a list gave, and what is still to be read one by one: all of it where a list is dearer or not allowed."""
    if len(refs) < LIST_FROM:
        return {}, refs, is_light
    by_name = {ref.name: ref for ref in refs}
    most = len(refs) * (1 + MAX_OTHERS)
    found: dict[ObjectRef, JsonObject | None] = {}
    listed = cluster.list(resource, refs[0].namespace, page=min(PAGE, most), metadata_only=is_light)
    try:
        for seen, obj in enumerate(listed, start=1):
            if (ref := by_name.get(ObjectRef.of(obj).name)) is not None:
                found[ref] = obj
            if len(found) == len(by_name) or seen >= most:
                return found, [ref for ref in refs if ref not in found], is_light
    except ClusterError:
        return {}, refs, is_light
    except Unreachable as exc:
        if is_of_webhook(exc):
            return {}, refs, is_light
        raise
    return {ref: found.get(ref) for ref in refs}, [], is_light


def _read_one(cluster: ClusterClient, ref: ObjectRef, is_light: bool) -> JsonObject | Health | None:
    try:
        return cluster.get(ref, metadata_only=is_light)
    except UnknownKind as exc:
        return Health(HealthState.NOT_FOUND, str(exc), exc.server_words)
    except ClusterError as exc:
        return Health(HealthState.UNKNOWN, str(exc), exc.server_words)
    except Unreachable as exc:
        if is_of_webhook(exc):
            return Health(HealthState.UNKNOWN, str(exc), exc.server_words)
        raise


def _explained(cluster: ClusterClient, health: dict[ObjectRef, Health], found: _Found) -> dict[ObjectRef, Health]:
    """With the reasons of the worst few added, in the cluster's words."""
    ill = [ref for ref, state in health.items() if state.state in (HealthState.FAILED, HealthState.IN_PROGRESS)]
    ill.sort(key=lambda ref: (WORST_FIRST.index(health[ref].state), str(ref)))
    for ref in ill[:MAX_EXPLAINED]:
        obj = found.objects.get(ref)
        words = reasons(cluster, obj) if obj is not None else []
        known = health[ref].server_words
        said = "; ".join(filter(None, [known, *(word for word in words if word not in known)]))
        health[ref] = replace(health[ref], server_words=said[:MAX_MESSAGE])
    return health
