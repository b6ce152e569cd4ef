"""What objects that somebody gives say of a changed or a deleted CRD, where no cluster is asked."""

from __future__ import annotations

from dataclasses import replace

from provisioner.review.base.facts import ReviewRule, Stored
from provisioner.review.base.messages import with_message
from provisioner.schema.definition.crd import Crd
from provisioner.schema.verdicts import GONE_UNUSED, HARMLESS
from provisioner.values import Finding, GroupKind, JsonObject, Note, ObjectRef, Section, Severity

# The file with what goes along with an object that is deleted.
GOING = "shared/going"
# The severities of the schemas stand, as without objects.
_NOTHING_SAID = ReviewRule("LIV-07", Section.CRDS, Severity.NOTABLE, HARMLESS.as_mapping())


def kind_of(crd: JsonObject) -> GroupKind:
    """The kind that a CRD defines."""
    described = Crd(crd)
    return GroupKind(described.group, str(described.names.get("kind") or ""))


def unused(finding: Finding) -> Finding:
    """A finding about a CRD that goes, where no object of it exists: no data goes along."""
    return replace(finding, severity=GONE_UNUSED.severity, verdicts=GONE_UNUSED.as_mapping())


def counted(finding: Finding, kind: GroupKind, stored: Stored) -> Finding:
    """A finding about a CRD that goes, with how many objects of its `kind` go with it."""
    count = len({ref.identity for ref in map(ObjectRef.of, stored.objects) if ref.group_kind == kind})
    note = Note(GOING, "stored", {"count": count, "kind": kind.kind}) if count else Note(GOING, "none-stored")
    evidence = {**finding.evidence, "counts": {kind.kind: count}, "basis": "objects"}
    told = with_message(replace(finding, notes=(*finding.notes, note), evidence=evidence))
    return told if count else unused(told)


def nothing_said(old: JsonObject, new: JsonObject) -> Finding:
    """That the objects which were given say nothing of a CRD: none is of its kind, and no empty list is."""
    return _NOTHING_SAID.finding("not-given", ObjectRef.of(new), kind=str(kind_of(old)), checked=0)
