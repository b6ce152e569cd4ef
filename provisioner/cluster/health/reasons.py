"""Why an object is not well, in the cluster's own words: its pods, the events of it and of them, its Services.

Bounded: so many pods, so many events, one short line each. Only events whose words Kubernetes itself wrote are told: a
failed probe or hook quotes what the container printed, which may be anything (security-rules.md S09).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from provisioner.api_groups import ADMISSION_GROUP
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.health.kstatus import (
    condition_of,
    join_reason,
    meta_of,
    shorten_message,
    spec_of,
    words_of_pod,
)
from provisioner.errors import ClusterError, TryLater
from provisioner.values import Health, HealthState, JsonObject, ObjectRef

MAX_PODS_READ = 50
MAX_REASONS = 5
_MAX_EVENTS_READ = 50
_WORKLOADS = frozenset(
    {("apps", "Deployment"), ("apps", "StatefulSet"), ("apps", "DaemonSet"), ("apps", "ReplicaSet"), ("batch", "Job")}
)
_TOLD = frozenset({
    "BackoffLimitExceeded", "DeadlineExceeded", "ExternalProvisioning", "FailedAttachVolume", "FailedBinding",
    "FailedCreate", "FailedCreatePodSandBox", "FailedMount", "FailedScheduling", "ProvisioningFailed",
    "WaitForFirstConsumer",
})  # fmt: skip


def reasons(cluster: ClusterClient, obj: JsonObject) -> list[str]:
    """At most MAX_REASONS sentences, each once, as the identity of `cluster`; [] where nothing can be found out."""
    try:
        return list(dict.fromkeys(islice(_reasons(cluster, obj), MAX_REASONS)))
    except (ClusterError, TryLater):
        return []  # only the why is missing; that it is not well has been said


def failing_pods(cluster: ClusterClient, workload: JsonObject) -> list[str]:
    """Why the pods of a Deployment, StatefulSet, DaemonSet, ReplicaSet or Job do not get on, in sentences."""
    return list(islice(_of_pods(pods_of(cluster, workload)), MAX_REASONS))


def pods_of(cluster: ClusterClient, workload: JsonObject) -> list[JsonObject]:
    """The pods that a workload's selector selects, at most MAX_PODS_READ; raises what a list raises."""
    selector: Mapping[str, Any] = spec_of(workload).get("selector") or {}
    words = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for requirement in selector.get("matchExpressions") or []:
        key, values = requirement["key"], ",".join(requirement.get("values") or [])
        operators = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
        words.append({**operators, "DoesNotExist": f"!{key}"}[requirement["operator"]])
    resource = cluster.resource_of("", "v1", "Pod")
    if not words or resource is None:
        return []
    namespace = ObjectRef.of(workload).namespace
    found = cluster.excerpt(resource, namespace=namespace, at_most=MAX_PODS_READ, label_selector=",".join(words))
    return list(found.objects)


def _reasons(cluster: ClusterClient, obj: JsonObject) -> Iterator[str]:
    ref = ObjectRef.of(obj)
    if (ref.group, ref.kind) not in _WORKLOADS:
        yield from _events_of(cluster, obj)
        return
    pods = pods_of(cluster, obj)
    yield from _of_pods(pods)
    silent = [pod for pod in pods if condition_of(pod, "Ready").get("status") != "True" and not words_of_pod(pod)]
    for pod in silent[:MAX_REASONS]:
        yield from (f"pod {ObjectRef.of(pod).name}: {words}" for words in _events_of(cluster, pod))
    if not pods:
        yield from _events_of(cluster, obj)


def _of_pods(pods: Iterable[JsonObject]) -> Iterator[str]:
    for pod in pods:
        yield from (f"pod {ObjectRef.of(pod).name}: {words}" for words in words_of_pod(pod))


def _events_of(cluster: ClusterClient, obj: JsonObject) -> Iterator[str]:
    """The newest event of each reason that is told."""
    resource, uid = cluster.resource_of("", "v1", "Event"), meta_of(obj).get("uid")
    if resource is None or not uid:
        return
    found = cluster.excerpt(
        resource,
        namespace=ObjectRef.of(obj).namespace or "default",
        at_most=_MAX_EVENTS_READ,
        field_selector=f"involvedObject.uid={uid}",
    )

    def last_seen(event: JsonObject) -> str:
        times = (
            (event.get("series") or {}).get("lastObservedTime"),
            event.get("lastTimestamp"),
            event.get("eventTime"),
        )
        return next((str(time) for time in times if time), "")

    told: dict[str, str] = {}
    for event in sorted(found.objects, key=last_seen, reverse=True):
        if event.get("reason") in _TOLD:
            told.setdefault(str(event["reason"]), shorten_message(event.get("message")))
    yield from (join_reason(reason, message) for reason, message in told.items())


_KINDS = frozenset({"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"})
_SERVICE_LABEL = "kubernetes.io/service-name"
_MAX_SLICES = 20


def health_of_backends(cluster: ClusterClient, obj: JsonObject | None) -> list[Health]:
    """The health of each Service that the webhooks of `obj` call; [] for every other kind of object.

    A Service whose endpoints may not be read is Unknown. Raises TryLater if nobody answers.
    """
    ref = ObjectRef.of(obj or {})
    if obj is None or ref.group != ADMISSION_GROUP or ref.kind not in _KINDS:
        return []
    clients = (webhook.get("clientConfig") or {} for webhook in obj.get("webhooks") or [])
    services = [client["service"] for client in clients if client.get("service")]
    places = dict.fromkeys((str(service.get("namespace")), str(service.get("name"))) for service in services)
    return [_health_of_service(cluster, *place) for place in places]


def _health_of_service(cluster: ClusterClient, namespace: str, name: str) -> Health:
    resource = cluster.resource_of("discovery.k8s.io", "v1", "EndpointSlice")
    if resource is None:
        return Health(HealthState.UNKNOWN, "the cluster serves no EndpointSlice, so nobody can tell what answers")
    try:
        slices = cluster.excerpt(
            resource, namespace=namespace, at_most=_MAX_SLICES, label_selector=f"{_SERVICE_LABEL}={name}"
        )
    except ClusterError as exc:
        words = "whether the Service behind it answers could not be seen"
        return Health(HealthState.UNKNOWN, words, f"{namespace}/{name}: {exc.in_full}")
    for endpoint_slice in slices.objects:
        for endpoint in endpoint_slice.get("endpoints") or []:
            if (endpoint.get("conditions") or {}).get("ready") is not False:
                return Health(HealthState.CURRENT)
    return Health(HealthState.IN_PROGRESS, "the Service behind it has no ready endpoint", f"{namespace}/{name}")
