"""Objects whose record of who set which field names a version that their kind is not served in any more.

The API server cannot read such a record of a custom resource and then refuses every server-side apply of the object, a
dry-run included (seen on 1.36.3). It comes about wherever a CRD drops a version. The fields themselves mean the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.compare import uid_of, version_of
from provisioner.errors import ClusterError
from provisioner.values import JsonObject, ObjectRef

WORDS = "who set which of its fields is recorded in a version that is not served any more; that is rewritten first"
_REFUSAL = "request to convert CR to an invalid group/version"
# What tells one entry of managedFields from another.
_KEYS = ("manager", "operation", "apiVersion", "subresource")


def is_of_old_version(error: ClusterError) -> bool:
    return _REFUSAL in error.server_words


def rewrite(cluster: ClusterClient, ref: ObjectRef, *, uid: str, field_manager: str) -> None:
    """Say in the version of `ref` what the object with this `uid` records in versions that are not served.

    Nothing else of it changes. Raises PreconditionFailed where it is another object, or changes meanwhile.
    """
    live = cluster.get(ref) or {}
    entries = _merged(_renamed(cluster, ref, one) for one in (live.get("metadata") or {}).get("managedFields") or [])
    meta = {"name": ref.name, "uid": uid, "resourceVersion": version_of(live), "managedFields": entries}
    meta |= {"namespace": ref.namespace} if ref.namespace else {}
    if live and uid_of(live) == uid:
        body = {"apiVersion": ref.api_version, "kind": ref.kind, "metadata": meta}
        cluster.merge(body, field_manager=field_manager)


def _renamed(cluster: ClusterClient, ref: ObjectRef, entry: Mapping[str, Any]) -> dict[str, Any]:
    group, _, version = str(entry.get("apiVersion") or "").rpartition("/")
    is_old = group == ref.group and cluster.resource_of(group, version, ref.kind) is None
    return {**entry, "apiVersion": ref.api_version} if is_old else {**entry}


def _merged(entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry of those that are told apart by their version alone, with the fields of all."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for entry in entries:
        key = tuple(entry.get(one) for one in _KEYS)
        known = found.get(key)
        fields = _union(known.get("fieldsV1") if known else None, entry.get("fieldsV1"))
        found[key] = {**entry, "fieldsV1": fields}
    return list(found.values())


def _union(first: JsonObject | None, second: JsonObject | None) -> dict[str, Any]:
    one, other = first or {}, second or {}
    return {key: _union(one.get(key), other.get(key)) for key in sorted(one.keys() | other.keys())}
