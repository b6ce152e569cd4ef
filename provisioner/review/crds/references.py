"""What else in the cluster counts on a CRD (LIV-05): autoscalers and disruption budgets on its scale, webhooks
and roles that name it, and what belongs to its objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from provisioner.api_groups import ADMISSION_GROUP
from provisioner.json_values import items, mapping, maps, value_at
from provisioner.review.base.facts import Facts, Listing, ReviewRule, said
from provisioner.review.base.messages import with_message
from provisioner.review.crds.live_findings import OBJECTS
from provisioner.review.crds.live_scene import (
    BUDGETS,
    CRD,
    OWNED,
    PODS,
    CrdObjects,
    OwnerKind,
    budgets,
    list_objects,
    needs_scale,
    owned,
)
from provisioner.schema.definition.crd import Crd
from provisioner.schema.verdicts import D, SchemaVerdict, U
from provisioner.values import Action, Finding, JsonObject, Note, ObjectRef, Section, Severity

AUTOSCALERS = (Listing("autoscaling", "", "HorizontalPodAutoscaler"), Listing("keda.sh", "", "ScaledObject"))
SEEKERS = (
    Listing(ADMISSION_GROUP, "", "MutatingWebhookConfiguration"),
    Listing(ADMISSION_GROUP, "", "ValidatingWebhookConfiguration"),
)
# What is read where a version, a scale or the whole definition goes.
DEPENDENTS = (*AUTOSCALERS, *SEEKERS, BUDGETS, *OWNED)
MAX_NAMES = 20

_COUNTS_ON_VERSION = ReviewRule(
    "LIV-05", Section.CRDS, Severity.DANGEROUS, SchemaVerdict(writers=D, readers=D).as_mapping()
)
_NOT_LOOKED = ReviewRule("LIV-05", Section.CRDS, Severity.UNKNOWN, SchemaVerdict(writers=U, readers=U).as_mapping())


def of_references(scene: CrdObjects, facts: Facts) -> Iterator[Finding]:
    """What names a version that will no longer be served."""
    gone = goes(scene.old, scene.new)
    for version in gone:
        owner = OwnerKind(scene.old.group, scene.kind, version)
        scalers = _find_scalers(list_objects(facts, *AUTOSCALERS), owner)
        found = sorted(scalers | _find_webhooks_of_version(scene, version, facts))
        found += budgets(facts, owner)
        if found:
            key, told = [version, found], {"kind": scene.kind, "version": version, **_count_names(found)}
            yield _COUNTS_ON_VERSION.finding("names-version", scene.ref, key=key, **told)
        yield from _judge_owned(scene.ref, owner, facts)
    if gone:
        yield from _judge_gaps(scene.ref, scene.kind, facts)


def of_deleted(facts: Facts) -> Iterator[Finding]:
    """What names a kind whose definition goes: autoscalers, webhooks, roles that stay, and what its objects own."""
    gone = {planned.ref.identity for planned in facts.plan.actions if planned.action is Action.DELETE}
    for ref, crd in deleted(facts):
        kind, plural = (str(crd.names.get(name) or "") for name in ("kind", "plural"))
        owner = OwnerKind(crd.group, kind)
        staying = [obj for obj in list_objects(facts, *AUTOSCALERS, *SEEKERS) if ObjectRef.of(obj).identity not in gone]
        webhooks = ((obj, webhook) for obj in staying for webhook in maps(obj.get("webhooks")))
        calling = {
            said(ObjectRef.of(obj))
            for obj, webhook in webhooks
            if any(_names_kind(rule, crd.group, plural) for rule in maps(webhook.get("rules")))
        }
        found = sorted(calling | _find_scalers(staying, owner))
        found += [*budgets(facts, owner), *sorted(_find_roles(facts, crd.group, plural))]
        if found:
            yield _COUNTS_ON_VERSION.finding("names-kind", ref, key=found, kind=kind, **_count_names(found))
        yield from _judge_owned(ref, owner, facts)
        yield from _judge_gaps(ref, kind, facts)


def _judge_owned(ref: ObjectRef, owner: OwnerKind, facts: Facts) -> Iterator[Finding]:
    found = owned(facts, owner)
    if found:
        variant = "owned-by-version" if owner.version else "owned-by-kind"
        kinds = dict(sorted(Counter(obj.kind for obj in found).items()))
        told: dict[str, Any] = {"kind": owner.kind, "version": owner.version or None, "kinds": kinds}
        told |= _count_names([str(obj) for obj in found])
        yield _COUNTS_ON_VERSION.finding(variant, ref, key=["owned", owner.version], **told)


def _count_names(names: Sequence[str]) -> dict[str, Any]:
    return {"count": len(names), "objects": names[:MAX_NAMES]}


def _judge_gaps(ref: ObjectRef, kind: str, facts: Facts) -> Iterator[Finding]:
    """What could not be looked for, or only in part."""
    for listing in (*AUTOSCALERS, *SEEKERS, BUDGETS):
        listed = facts.around.lists.get(listing)
        if listed is not None and not listed.is_whole:
            why, name = listed.problem or None, listing.kind
            yield _NOT_LOOKED.finding("not-checked", ref, key=name, kind=kind, looked_for=name, problem=why)
    read = {listing: facts.around.lists.get(listing) for listing in OWNED}
    found = sorted(
        (listing.kind, listed.problem) for listing, listed in read.items() if listed is not None and not listed.is_whole
    )
    if found:
        missing = dict(found)
        variant = "budgets-not-checked" if PODS.kind in missing and _has_budgets(facts) else "owned-not-checked"
        why, key = min(filter(None, missing.values()), default=None), ["owned", list(missing)]
        yield _NOT_LOOKED.finding(variant, ref, key=key, kind=kind, problems=missing, problem=why)


def _has_budgets(facts: Facts) -> bool:
    return any(map(needs_scale, list_objects(facts, BUDGETS)))


def goes(old: Crd, new: Crd) -> list[str]:
    """The versions that were served, and no longer are."""
    return sorted({version.name for version in old.served_versions} - {version.name for version in new.served_versions})


def deleted(facts: Facts) -> Iterator[tuple[ObjectRef, Crd]]:
    """The definitions that go, as they are now."""
    if facts.is_offline:
        return
    for planned in facts.plan.actions:
        live = facts.live.get(planned.ref.identity)
        if planned.ref.group_kind == CRD and planned.action is Action.DELETE and live is not None:
            yield planned.ref, Crd(live)


def _find_scalers(objects: Iterable[JsonObject], owner: OwnerKind) -> set[str]:
    """Return the autoscalers whose target is of a kind."""
    found = (obj for obj in objects if owner.is_named(mapping(value_at(obj, "spec", "scaleTargetRef"))))
    return {said(ObjectRef.of(obj)) for obj in found}


def _find_roles(facts: Facts, group: str, plural: str) -> set[str]:
    gone = {planned.ref.identity for planned in facts.plan.actions if planned.action is Action.DELETE}
    own = {manifest.ref.identity for manifest in facts.content.manifests}
    found = (obj for obj in facts.live_rbac or () if ObjectRef.of(obj).identity not in gone | own)
    return {
        said(ObjectRef.of(obj))
        for obj in found
        if any(_names_kind(rule, group, plural) for rule in maps(obj.get("rules")))
    }


def _names_kind(rule: Mapping[str, Any], group: str, plural: str) -> bool:
    """By its own name: a rule over everything counts on nothing in particular."""
    resources = {str(resource).partition("/")[0] for resource in items(rule.get("resources"))}
    return group in items(rule.get("apiGroups")) and plural in resources


def scaled(finding: Finding, scene: CrdObjects, facts: Facts) -> Finding:
    """CRD-31, the scale that goes, by the autoscalers and the disruption budgets that are there."""
    version = str(finding.evidence.get("version") or "")
    listed = [facts.around.lists.get(listing) for listing in (*AUTOSCALERS, BUDGETS)]
    if _has_budgets(facts):
        listed.append(facts.around.lists.get(PODS))
    scalers = _find_scalers(list_objects(facts, *AUTOSCALERS), OwnerKind(scene.old.group, scene.kind, version))
    found = [*sorted(scalers), *budgets(facts, OwnerKind(scene.old.group, scene.kind))]
    if found:
        note = Note(OBJECTS, "scaled-by", {"users": found, "kind": scene.kind})
        verdicts = {**finding.verdicts, "writers": Severity.BREAKING}
        evidence = {**finding.evidence, "basis": "objects", "seen": {"objects": found[:MAX_NAMES]}}
        notes = (*finding.notes, note)
        return with_message(
            replace(finding, severity=Severity.BREAKING, verdicts=verdicts, evidence=evidence, notes=notes)
        )
    is_known = all(read is not None and read.is_whole for read in listed)
    note = Note(OBJECTS, "scaled-by-nobody" if is_known else "scaled-unknown")
    evidence = {**finding.evidence, "basis": "objects" if is_known else "schemas"}
    return with_message(replace(finding, evidence=evidence, notes=(*finding.notes, note)))


def _find_webhooks_of_version(scene: CrdObjects, version: str, facts: Facts) -> set[str]:
    """Return webhooks that are called for this version only; by matchPolicy Equivalent others are called for any."""
    names = {str(scene.old.names.get("plural") or ""), "*"}
    found = set()
    for obj in list_objects(facts, *SEEKERS):
        exact = (webhook for webhook in maps(obj.get("webhooks")) if webhook.get("matchPolicy") == "Exact")
        for rule in (rule for webhook in exact for rule in maps(webhook.get("rules"))):
            is_of_version = items(rule.get("apiVersions")) == [version] and scene.old.group in items(
                rule.get("apiGroups")
            )
            if is_of_version and names & set(map(str, items(rule.get("resources")))):
                found.add(said(ObjectRef.of(obj)))
    return found
