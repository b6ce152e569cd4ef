"""The live state of many objects by few calls: a list where several are of one kind and place, else nothing.

Lists are a shortcut only. What is not found out here, because a list is too long or not allowed, is left out of the
answer, and whoever needs it asks for the one object.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.client.discovery import ServedResource
from provisioner.cluster.client.failures import is_of_webhook
from provisioner.errors import ClusterError, Unreachable
from provisioner.values import ObjectIdentity, ObjectRef

PARALLEL = 8
# Fewer objects than this are asked for one by one.
WORTH_A_LIST = 4
# How much of other people's objects a list may hold before asking one by one is cheaper.
MAX_STRANGERS = 500

Live = dict[ObjectIdentity, dict[str, Any] | None]


def read_many(cluster: ClusterClient, refs: Iterable[ObjectRef]) -> Live:
    """The live objects by identity, None for one that does not exist; see above for what is missing.

    Raises TryLater where the API server does not answer.
    """
    groups: dict[tuple[ServedResource, str], list[ObjectRef]] = {}
    for ref in refs:
        try:
            resource = cluster.resource_of(ref.group, ref.version, ref.kind) if ref.version else None
        except Unreachable:  # perhaps only the server behind this API
            continue
        if resource is not None and resource.is_namespaced == bool(ref.namespace):
            groups.setdefault((resource, ref.namespace), []).append(ref)
    wanted = [(resource, place, group) for (resource, place), group in groups.items() if len(group) >= WORTH_A_LIST]
    found: Live = {}
    with ThreadPoolExecutor(max_workers=PARALLEL) as pool:
        for part in pool.map(lambda one: _listed(cluster, *one), wanted):
            found |= part
    return found


def _listed(cluster: ClusterClient, resource: ServedResource, namespace: str, refs: list[ObjectRef]) -> Live:
    """Nothing but what was asked for is kept, so that a long list costs time and no memory."""
    found: Live = {ref.identity: None for ref in refs}
    seen: Live = {}
    try:
        for number, obj in enumerate(cluster.list(resource, namespace)):
            if number > len(refs) + MAX_STRANGERS:
                return seen
            identity = ObjectRef.of(obj).identity
            if identity in found:
                seen[identity] = obj
    except ClusterError:
        return {}
    except Unreachable as exc:
        if is_of_webhook(exc):
            return {}
        raise
    return found | seen
