"""Does anything answer behind the webhooks of an admission configuration?"""

from __future__ import annotations

from collections.abc import Iterator

from provisioner.api_groups import ADMISSION_GROUP
from provisioner.cluster.client.api import ClusterClient
from provisioner.errors import ClusterError
from provisioner.values import Health, HealthState, JsonObject, ObjectRef

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
    return [_health(cluster, *place) for place in dict.fromkeys(_services(obj))]


def _services(obj: JsonObject) -> Iterator[tuple[str, str]]:
    for webhook in obj.get("webhooks") or []:
        service = (webhook.get("clientConfig") or {}).get("service") or {}
        if service:
            yield str(service.get("namespace")), str(service.get("name"))


def _health(cluster: ClusterClient, namespace: str, name: str) -> Health:
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
    if any(_is_ready(endpoint) for one in slices.objects for endpoint in one.get("endpoints") or []):
        return Health(HealthState.CURRENT)
    return Health(HealthState.IN_PROGRESS, "the Service behind it has no ready endpoint", f"{namespace}/{name}")


def _is_ready(endpoint: JsonObject) -> bool:
    """Without the condition, it counts as ready (its own documentation)."""
    return (endpoint.get("conditions") or {}).get("ready") is not False
