"""What a write leaves to others: fields that another controller is there to write, and has written.

An apply that is not forced is refused for such a field whenever it says something else, also where it always has. So
what drift.py does not count as drift is not sent either; what of it is still ours goes on being sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.drift.detection import is_target, left_to_others, to_apply
from provisioner.errors import Forbidden
from provisioner.values import JsonObject, Manifest, ObjectRef

IsScaled = Callable[[ObjectRef], bool]

_AUTOSCALER = ("autoscaling", "", "HorizontalPodAutoscaler")


def without_theirs(cluster: ClusterClient, manifest: Manifest, live: JsonObject, *, manager: str) -> Manifest:
    """What of `manifest` to send onto `live`: all of it, or all but those fields. Read as the identity of `cluster`."""
    is_scaled = has_replicas(manifest) and scaled_by(cluster, [manifest.ref.namespace])(manifest.ref)
    return to_apply(manifest, live, manager=manager, left=left_to_others(manifest, is_scaled=is_scaled))


def scaled_by(cluster: ClusterClient, namespaces: Iterable[str]) -> IsScaled:
    """Tells whether a HorizontalPodAutoscaler that exists targets an object; each namespace is read once.

    Where they may not be read nobody knows, so nothing counts as scaled and a change of replicas is drift.
    """
    resource = cluster.resource_of(*_AUTOSCALER)
    found: list[dict[str, Any]] = []
    for namespace in sorted(set(namespaces)) if resource else []:
        assert resource is not None  # the loop is empty else
        try:
            found.extend(cluster.list(resource, namespace))
        except Forbidden:
            continue
    return lambda ref: any(is_target(one, ref) for one in found)


def has_replicas(manifest: Manifest) -> bool:
    """Whether the content says how many there shall be, so that an autoscaler could disagree."""
    return (manifest.body.get("spec") or {}).get("replicas") is not None
