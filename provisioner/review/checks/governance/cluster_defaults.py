"""Classes that become the default of the whole cluster, or no longer are: what names no class goes by them (SYS-02)."""

from __future__ import annotations

from collections.abc import Iterator

from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, FieldPath, ReviewRule, mapping
from provisioner.values import Action, Finding, GroupKind, JsonObject, Section, Severity

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
_ACTIONS = frozenset({Action.CREATE, Action.UPDATE, Action.REPLACE, Action.RERUN, Action.ADOPT, Action.DELETE})


def _changes(facts: Facts) -> Iterator[Finding]:
    for planned in facts.plan.actions:
        kind, goes = planned.ref.group_kind, planned.action is Action.DELETE
        if planned.action not in _ACTIONS or (planned.after is None and not goes):
            continue
        was, shall = _default_by(kind, planned.before), () if goes else _default_by(kind, planned.after)
        if bool(was) != bool(shall):
            variant, told = ("becomes", {"kind": kind.kind}) if shall else ("ends", {"without": kind.kind})
            yield _DEFAULT.finding(variant, planned.ref, where=was or shall, key=kind.kind, **told)


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
CHECK = Check("defaults of the cluster", changes=_changes, claims=_CLAIMS)
