"""Classes that become the default of the whole cluster, or no longer are: what names no class goes by them (SYS-02)."""

from __future__ import annotations

from collections.abc import Iterator

from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, FieldPath, Listing, ReviewRule, mapping
from provisioner.values import Action, Finding, GroupKind, JsonObject, ObjectRef, PlannedAction, Section, Severity

_DEFAULT = ReviewRule("SYS-02", Section.OBJECTS, Severity.DANGEROUS)
_PRIORITY_CLASS = GroupKind("scheduling.k8s.io", "PriorityClass")
_ANNOTATIONS = {
    GroupKind("storage.k8s.io", "StorageClass"): (
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ),
    GroupKind("networking.k8s.io", "IngressClass"): ("ingressclass.kubernetes.io/is-default-class",),
    GroupKind("snapshot.storage.k8s.io", "VolumeSnapshotClass"): (
        "snapshot.storage.kubernetes.io/is-default-class",
        "snapshot.storage.beta.kubernetes.io/is-default-class",
    ),
}
# Only a PriorityClass says it in a field of its own.
_LISTINGS = {
    kind: Listing(kind.group, "v1", kind.kind, metadata_only=kind != _PRIORITY_CLASS)
    for kind in (_PRIORITY_CLASS, *_ANNOTATIONS)
}
_ACTIONS = frozenset({Action.CREATE, Action.UPDATE, Action.REPLACE, Action.RERUN, Action.ADOPT, Action.DELETE})


def _changes(facts: Facts) -> Iterator[Finding]:
    for planned, was, shall in _changed_defaults(facts):
        kind = planned.ref.group_kind
        if shall:
            instead = _defaults_beside(kind, facts) or None
            told = {"kind": kind.kind, "instead": instead}
            yield _DEFAULT.finding("becomes", planned.ref, where=shall, key=kind.kind, **told)
        else:
            yield _DEFAULT.finding("ends", planned.ref, where=was, key=kind.kind, without=kind.kind)


def _changed_defaults(facts: Facts) -> Iterator[tuple[PlannedAction, FieldPath, FieldPath]]:
    """What becomes a default, or is it no longer, with the field that says so before and after."""
    for planned in facts.plan.actions:
        kind, goes = planned.ref.group_kind, planned.action is Action.DELETE
        if planned.action not in _ACTIONS or (planned.after is None and not goes):
            continue
        was, shall = _default_by(kind, planned.before), () if goes else _default_by(kind, planned.after)
        if bool(was) != bool(shall):
            yield planned, was, shall


def _defaults_beside(kind: GroupKind, facts: Facts) -> list[ObjectRef]:
    """The defaults of the cluster that this change leaves as they are."""
    listed = facts.around.lists.get(_LISTINGS[kind])
    changed = {planned.ref.identity for planned in facts.plan.actions}
    refs = [ObjectRef.of(obj) for obj in (listed.objects if listed else ()) if _default_by(kind, obj)]
    return sorted(ref for ref in refs if ref.identity not in changed)


def _lists(facts: Facts) -> Iterator[Listing]:
    return (_LISTINGS[planned.ref.group_kind] for planned, _, shall in _changed_defaults(facts) if shall)


def _default_by(kind: GroupKind, obj: JsonObject | None) -> FieldPath:
    """The field that makes an object the default of its kind; nothing where none does."""
    obj = obj or {}
    if kind == _PRIORITY_CLASS:
        return ("globalDefault",) if obj.get("globalDefault") is True else ()
    annotations = mapping(mapping(obj.get("metadata")).get("annotations"))
    found = (name for name in _ANNOTATIONS.get(kind, ()) if str(annotations.get(name)) == "true")
    return next((("metadata", "annotations", name) for name in found), ())


_CLAIMS = (
    *(
        Claim("SYS-02", frozenset({kind}), tuple(f"metadata.annotations.[{name}]" for name in names))
        for kind, names in _ANNOTATIONS.items()
    ),
    Claim("SYS-02", frozenset({_PRIORITY_CLASS}), ("globalDefault",)),
)
CHECK = Check("defaults of the cluster", changes=_changes, claims=_CLAIMS, lists=_lists)
