"""Taking over what a Helm release holds: which fields change hands, and what becomes of the record of the release.

Helm marks each object with the name of its release, and its manager owns that mark (`managedFields`). Of what this
manager owns exactly the approved fields are handed over, so that nobody's fields are forced, and a field that a later
revision drops is dropped in the cluster. Then the marks go, and with the record of the release `helm upgrade` and
`helm uninstall` have nothing left to act on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from provisioner.builtin.facts import defaulted
from provisioner.cluster.annotations import nonce_of
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.compare import hidden, version_of
from provisioner.cluster.field_owners import FieldPath, field_value, is_below, leaf_paths
from provisioner.json_values import uid_of
from provisioner.values import Action, HelmRelease, JsonObject, ObjectRef, PlannedAction

NAME, NAMESPACE = "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"
_HOOK = "helm.sh/hook"
LABEL, IS_HELM = "app.kubernetes.io/managed-by", "Helm"
_OWNED_MARK = f"f:{NAME}"
# What tells the releases of one name apart; Helm keeps a Secret for each of the last ten.
_SELECTOR = "owner=helm,name={name}"
MAX_RECORDS = 100


def is_held_by(live: JsonObject, release: HelmRelease | None) -> bool:
    """Whether an object says of itself that it is of this release, and of nobody else's controller."""
    if release is None:
        return False
    meta = live.get("metadata") or {}
    marks: Mapping[str, Any] = meta.get("annotations") or {}
    is_controlled = any(owner.get("controller") is True for owner in meta.get("ownerReferences") or [])
    return (marks.get(NAME), marks.get(NAMESPACE)) == (release.name, release.namespace) and not is_controlled


def is_left_by_hook(live: JsonObject, release: HelmRelease | None) -> bool:
    """Whether a hook of Helm's may have left an object: it says so, in the namespace of the release, of no release.

    Helm marks nothing that its hooks make. So this proves little, and what it says is only ever shown to reviewers.
    """
    meta = live.get("metadata") or {}
    annotations: Mapping[str, Any] = meta.get("annotations") or {}
    is_controlled = any(owner.get("controller") is True for owner in meta.get("ownerReferences") or [])
    is_hook = _HOOK in annotations and NAME not in annotations and not nonce_of(live)
    return release is not None and is_hook and not is_controlled and meta.get("namespace") == release.namespace


def without_marks(forced: JsonObject, manager: str) -> dict[str, Any]:
    """What a forced dry-run of `manager` made of an object, as it is once Helm's marks are gone."""
    meta = dict(forced.get("metadata") or {})
    for part, names in _marks(forced, manager).items():
        kept = {key: value for key, value in (meta.pop(part, None) or {}).items() if key not in names}
        meta |= {part: kept} if kept else {}
    return {**forced, "metadata": meta}


def _marks(forced: JsonObject, manager: str) -> dict[str, tuple[str, ...]]:
    """The marks that go. A label that the approved content has as well, as most charts do, stays."""
    approved = _approved(forced, manager)
    is_ours = f"f:{LABEL}" in ((approved.get("f:metadata") or {}).get("f:labels") or {})
    return {"annotations": (NAME, NAMESPACE), "labels": () if is_ours else (LABEL,)}


def _approved(forced: JsonObject, manager: str) -> Mapping[str, Any]:
    return _fields_by_manager(forced).get((manager, "Apply", ""), {})


def managers_losing_fields(live: JsonObject, forced: JsonObject, manager: str) -> list[str]:
    """The managers beside the release's that would lose fields: `forced` is what a forced dry-run made of `live`."""
    held, left = _fields_by_manager(live), _fields_by_manager(forced)
    keepers = held.keys() - {key for key, fields in held.items() if _has_mark(fields) or key[0] == manager}
    return sorted({key[0] for key in keepers if _minus(held[key], left.get(key, {}))})


def fields_left(live: JsonObject, forced: JsonObject, manager: str, wished: JsonObject) -> list[FieldPath]:
    """The fields that the release wrote and `wished` does not have: they stay as they are, and are nobody's.

    Of what Helm did not apply server-side, its manager owns what the API server filled in, too, which `wished` gets as
    well.
    """
    fields: dict[str, Any] = {}
    for entry in (live.get("metadata") or {}).get("managedFields") or []:
        if not entry.get("subresource") and _has_mark(entry.get("fieldsV1") or {}):
            fields = _union(fields, _fields_kept(entry["fieldsV1"], forced, manager))
    filled = defaulted(wished)
    found: list[FieldPath] = []
    for path in sorted(leaf_paths(fields)):
        value = field_value(live, path)
        is_there = value is not None and value != field_value(filled, path)
        if is_there and not any(is_below(path, above) for above in found):
            found.append(path)
    return found


def _fields_kept(fields: Mapping[str, Any], forced: JsonObject, manager: str) -> dict[str, Any]:
    """Those of the release's fields that are neither handed over nor its marks."""
    marks = _marks(forced, manager).items()
    named: dict[str, Any] = {"f:metadata": {f"f:{part}": {f"f:{name}": {} for name in names} for part, names in marks}}
    return _minus(_minus(fields, _approved(forced, manager)), named)


def handover_patch(live: JsonObject, forced: JsonObject, manager: str) -> dict[str, Any]:
    """The merge patch after which `manager` owns the approved fields that the release's manager owned, and Helm's marks
    are gone.

    It is bound to the uid and resourceVersion of `live`; `forced` is what a forced dry-run made of it.
    """
    ref, approved, marks = ObjectRef.of(live), _approved(forced, manager), _marks(forced, manager)
    entries: list[dict[str, Any]] = []
    ours: dict[str, Any] = {}
    for entry in (live.get("metadata") or {}).get("managedFields") or []:
        fields = entry.get("fieldsV1") or {}
        if entry.get("subresource") or not _has_mark(fields):
            entries.append(dict(entry))
            continue
        ours = _union(ours, _common(fields, approved))
        if left := _fields_kept(fields, forced, manager):
            entries.append({**entry, "fieldsV1": left})
    if ours:
        form = {"apiVersion": live["apiVersion"], "fieldsType": "FieldsV1"}
        entries.append({"manager": manager, "operation": "Apply", **form, "fieldsV1": ours})
    meta: dict[str, Any] = {"name": ref.name, "uid": uid_of(live), "resourceVersion": version_of(live)}
    meta |= {"namespace": ref.namespace} if ref.namespace else {}
    meta |= {part: dict.fromkeys(names) for part, names in marks.items() if names}
    return {"apiVersion": live["apiVersion"], "kind": ref.kind, "metadata": {**meta, "managedFields": entries}}


def plan_record_deletions(cluster: ClusterClient, release: HelmRelease) -> list[PlannedAction]:
    """The deletion of the Secrets in which Helm keeps the release; none where there are none (any more).

    Raises Forbidden where the identity of `cluster` may not list Secrets: nobody knows then what is left of it.
    """
    resource = cluster.resource_of("", "v1", "Secret")
    if resource is None:
        return []
    selector = _SELECTOR.format(name=release.name)
    found = cluster.excerpt(
        resource, namespace=release.namespace, at_most=MAX_RECORDS, metadata_only=True, label_selector=selector
    )
    prefix = f"sh.helm.release.v1.{release.name}.v"
    words = f"it is the record of the Helm release {release.name}, which is taken over: helm forgets the release"
    return [
        PlannedAction(
            ObjectRef("", "v1", "Secret", release.namespace, ObjectRef.of(record).name),
            Action.DELETE,
            uid_of(record),
            version_of(record),
            before=hidden(record),
            notes=(words,),
        )
        for record in found.objects
        if ObjectRef.of(record).name.startswith(prefix)
    ]


def _fields_by_manager(obj: JsonObject) -> dict[tuple[str, str, str], Mapping[str, Any]]:
    """What each manager owns, by its name, operation and subresource."""
    entries = (obj.get("metadata") or {}).get("managedFields") or []
    found: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    for entry in entries:
        key = (str(entry.get("manager") or ""), str(entry.get("operation") or ""), str(entry.get("subresource") or ""))
        found[key] = entry.get("fieldsV1") or {}
    return found


def _has_mark(fields: Mapping[str, Any]) -> bool:
    return _OWNED_MARK in ((fields.get("f:metadata") or {}).get("f:annotations") or {})


# fieldsV1 is a tree: {} is a field without parts, and `.` the map or item itself.


def _minus(fields: Mapping[str, Any], taken: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are not taken. A map of which nothing else is left goes with its parts."""
    left: dict[str, Any] = {}
    for key, inner in fields.items():
        if key not in taken:
            left[key] = inner
        elif (rest := _minus(inner, taken[key])) and rest.keys() != {"."}:
            left[key] = rest
    return left


def _common(fields: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that both have."""
    both = fields.keys() & others.keys()
    found = {key: _common(fields[key], others[key]) for key in sorted(both)}
    return {key: inner for key, inner in found.items() if inner or not (fields[key] and others[key])}


def _union(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _union(first.get(key) or {}, second.get(key) or {}) for key in sorted({*first, *second})}
