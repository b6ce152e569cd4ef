"""Whether a changed CRD still accepts what is stored and written, by comparing what both schemas accept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, items, mapping
from provisioner.review.base.messages import with_message
from provisioner.review.crds.live_findings import compare_crds
from provisioner.review.crds.live_scene import owned_by_others, refused_names, taken_in_cluster, twice_taken
from provisioner.schema import validate_crd
from provisioner.schema.verdicts import GONE_WITH_ALL, NOTHING_KNOWN, REJECTED
from provisioner.sentences import unescaped
from provisioner.values import (
    Action,
    Content,
    Finding,
    GroupKind,
    JsonObject,
    ObjectRef,
    Plan,
    PlannedAction,
    Section,
    Severity,
)

_GONE = ReviewRule("CRD-08", Section.CRDS, Severity.BREAKING, GONE_WITH_ALL.as_mapping())
_INVALID = ReviewRule("CRD-19", Section.CRDS, Severity.BREAKING, REJECTED.as_mapping())
_NOT_COMPARED = ReviewRule("CRD-00", Section.CRDS, Severity.UNKNOWN, NOTHING_KNOWN.as_mapping())

CRD = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")


def _changes(facts: Facts) -> Iterator[Finding]:
    wished = {one.ref.identity: one.body for one in facts.content.manifests if one.ref.group_kind == CRD}
    before = {one.ref.identity: one.body for one in (facts.previous.manifests if facts.previous else ())}
    for planned in facts.plan.actions:
        if planned.ref.group_kind != CRD or planned.action in (Action.NONE, Action.ORPHAN):
            continue
        old = facts.live.get(planned.ref.identity) or (before.get(planned.ref.identity) if facts.is_offline else None)
        if planned.action is Action.DELETE:
            yield deleted(planned.ref, old or before.get(planned.ref.identity))
        else:
            yield from _of_change(planned, old, wished[planned.ref.identity])
            yield from _of_owners(planned, wished[planned.ref.identity], facts)
    yield from twice_taken(wished.values())


def _of_owners(planned: PlannedAction, new: JsonObject, facts: Facts) -> Iterator[Finding]:
    """Whose the CRD and its names are now, as the cluster shows it."""
    live = facts.live.get(planned.ref.identity)
    yield from taken_in_cluster(new, facts.around.kinds or ())
    if live is not None:
        yield from refused_names(live)
        yield from owned_by_others(live, new)


def deleted(ref: ObjectRef, old: JsonObject | None) -> Finding:
    """What goes with a CRD; `old` is what it was, if that is known."""
    spec = mapping((old or {}).get("spec"))
    kind = mapping(spec.get("names")).get("kind")
    stored = [str(one) for one in items(mapping((old or {}).get("status")).get("storedVersions"))]
    return _GONE.finding("deleted", ref, kind=str(kind) if kind else None, storedVersions=stored, live=True)


def created(ref: ObjectRef, new: JsonObject) -> Iterator[Finding]:
    """Why the API server will refuse a CRD that it has not yet."""
    for error in validate_crd(new):
        rule, variant = (_NOT_COMPARED, "may-be-refused") if error.is_unknown else (_INVALID, "will-be-refused")
        key, words = [error.path, error.message], unescaped(error.message)
        yield rule.finding(variant, ref, key=key, path=error.path, words=words)


def _of_change(planned: PlannedAction, old: JsonObject | None, new: JsonObject) -> Iterator[Finding]:
    ref = planned.ref
    if old is None and planned.action is Action.CREATE:
        # What the API server took in the dry-run is not judged again. Why it refused one, only some may read there.
        yield from () if planned.is_proved else created(ref, new)
    elif old is None:
        yield _NOT_COMPARED.finding("not-read", ref)
    elif planned.action is not Action.ADOPT:
        for found in compare_crds(old, new, is_accepted=planned.is_proved):
            yield with_message(replace(found, ref=found.ref or ref))


def _wants(_: Content, plan: Plan) -> list[ObjectRef]:
    return [one.ref for one in plan.actions if one.ref.group_kind == CRD and one.ref.version]


_CRDS = frozenset({CRD})
_CLAIMS = (
    Claim("CRD-01", _CRDS, ("spec.scope",)),
    Claim("CRD-02", _CRDS, ("spec.group",)),
    Claim("CRD-03", _CRDS, ("spec.names",)),
    Claim("CRD-11", _CRDS, ("spec.versions.*.name", "spec.version")),
    Claim("CRD-12", _CRDS, ("spec.versions.*.served",)),
    Claim("CRD-13", _CRDS, ("spec.versions.*.storage",)),
    Claim("CRD-16", _CRDS, ("spec.versions.*.deprecated", "spec.versions.*.deprecationWarning")),
    Claim("CRD-21", _CRDS, ("spec.conversion",)),
    Claim("CRD-27", _CRDS, ("spec.preserveUnknownFields",)),
    Claim("CRD-29", _CRDS, ("spec.versions.*.subresources", "spec.subresources")),
    Claim("CRD-33", _CRDS, ("spec.versions.*.additionalPrinterColumns", "spec.additionalPrinterColumns")),
    Claim("CRD-34", _CRDS, ("spec.versions.*.selectableFields",)),
    Claim("SCH-01", _CRDS, ("spec.versions.*.schema", "spec.validation")),
)

CHECK = Check("crds", claims=_CLAIMS, changes=_changes, wants=_wants)
