"""Names that a form offers to pick from: those of objects that the person themselves may list, asked as this person.

Nothing hangs on them: a name that is not offered can be typed, and what it leads to is checked where it is used.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from django.core.cache import cache

from approvals import models
from approvals.access.caller import Caller
from approvals.access.identity import find_identity
from approvals.access.port import kubernetes
from approvals.access.questions import READ_SECONDS
from provisioner.errors import PratiqueError

# A browser shows no more than that in a list to pick from.
MOST = 500


class Kind(StrEnum):
    NAMESPACE = "Namespace"
    ACCOUNT = "ServiceAccount"


@dataclass(frozen=True, slots=True)
class Offer:
    """`names`, sorted; of more than MOST the first ones, and then `has_more`."""

    names: tuple[str, ...] = ()
    has_more: bool = False
    could_list: bool = True


def has_namespace(caller: Caller, cluster: models.Cluster, name: str) -> bool | None:
    """Whether there is such a namespace, by those that the caller may list; None where that does not say it."""
    found = names(caller, cluster, Kind.NAMESPACE)
    if name in found.names:
        return True
    return None if found.has_more or not found.could_list else False


def names(caller: Caller, cluster: models.Cluster, kind: Kind, namespace: str = "") -> Offer:
    """What the caller may list of this kind there; kept as long as other answers about what they may read."""
    identity = find_identity(caller, cluster).identity
    if identity is None:
        return Offer(could_list=False)
    key = "offer:" + hashlib.sha256(repr((cluster.pk, cluster.uid, identity, kind, namespace)).encode()).hexdigest()
    if isinstance(known := cache.get(key), Offer):
        return known
    try:
        found = kubernetes().names_of(cluster, kind, namespace=namespace, most=MOST + 1, as_person=identity)
    except PratiqueError:
        return Offer(could_list=False)
    offer = Offer(tuple(sorted(found[:MOST])), len(found) > MOST)
    cache.set(key, offer, READ_SECONDS)
    return offer
