"""What goes along with objects that are deleted: what names one of them as its owner, and the tokens of accounts.

The API server's garbage collector takes it, whoever made it, and no plan names it. Only the kinds that keep what people
and programs put there are looked at, in the namespaces of what goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.evidence import Query, samples
from provisioner.values import GroupKind, JsonObject, ObjectRef

_KEEPING = ("ConfigMap", "PersistentVolumeClaim", "Secret")
_ACCOUNT = GroupKind("", "ServiceAccount")
_SERVED_ACCOUNT = "kubernetes.io/service-account.name"


def dependents(readers: Sequence[ClusterClient], going: Iterable[tuple[ObjectRef, str]]) -> list[str]:
    """In words, what goes along with `going`, objects and their uids, and is none of them; and what nobody could see.

    Each list is read, without values, as the first of `readers` who may. Raises Unreachable.
    """
    uids = {uid: ref for ref, uid in going}
    known = {ref.identity for ref in uids.values()}
    places = {ref.namespace for ref in uids.values()} - {""}
    queries = [Query("", "v1", kind, place, metadata_only=True) for place in sorted(places) for kind in _KEEPING]
    words = []
    for query, found in samples(readers, queries).items():
        if found.problem or found.total != len(found.objects):
            words.append(f"whether a {query.kind} of {query.namespace} goes along: {found.problem or 'too many'}")
        for one in found.objects:
            ref = ObjectRef("", "v1", query.kind, query.namespace, str(one["metadata"]["name"]))
            if ref.identity not in known:
                words += [f"{ref} goes along with {owner}" for owner in _owners(one, uids)]
    return words


def _owners(obj: JsonObject, uids: dict[str, ObjectRef]) -> Iterator[ObjectRef]:
    meta: dict[str, Any] = dict(obj["metadata"])
    for owner in meta.get("ownerReferences") or []:
        if owner.get("uid") in uids:
            yield uids[owner["uid"]]
    account = (meta.get("annotations") or {}).get(_SERVED_ACCOUNT)
    for ref in uids.values():
        if ref.group_kind == _ACCOUNT and (ref.namespace, ref.name) == (meta.get("namespace"), account):
            yield ref
