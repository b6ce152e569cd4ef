"""What else in the cluster counts on a CRD (LIV-05): autoscalers and disruption budgets on its scale, webhooks
and roles that name it, and what belongs to its objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from provisioner.api_groups import ADMISSION_GROUP
from provisioner.json_values import items, mapping, maps
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
    needs_scale,
    owned,
)
from provisioner.schema.definition.crd import Crd
from provisioner.schema.verdicts import D, SchemaVerdict, U
from provisioner.values import Action, Finding, JsonObject, Note, ObjectRef, Section, Severity

AUTOSCALERS = (
    Listing("autoscaling", "", "HorizontalPodAutoscaler"),
    Listing("keda.sh", "", "ScaledObject"),
)
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
        found = sorted({*_webhooks_on(scene, version, facts), *_targets_of(scene, version, facts)})
        found += budgets(facts, owner)
        if found:
            key, told = [version, found], {"kind": scene.kind, "version": version, **_counted(found)}
            yield _COUNTS_ON_VERSION.finding("names-version", scene.ref, key=key, **told)
        yield from _of_owned(scene.ref, owner, facts)
    if gone:
        yield from _of_gaps(scene.ref, scene.kind, facts)


def of_deleted(facts: Facts) -> Iterator[Finding]:
    """What names a kind whose definition goes: autoscalers, webhooks, roles that stay, and what its objects own."""
    for ref, crd in deleted(facts):
        kind = str(crd.names.get("kind") or "")
        plural = str(crd.names.get("plural") or "")
        owner = OwnerKind(crd.group, kind)
        found = sorted({*_targets(facts, crd.group, kind), *_webhooks(facts, crd.group, plural)})
        found += [*budgets(facts, owner), *sorted(_roles(facts, crd.group, plural))]
        if found:
            yield _COUNTS_ON_VERSION.finding("names-kind", ref, key=found, kind=kind, **_counted(found))
        yield from _of_owned(ref, owner, facts)
        yield from _of_gaps(ref, kind, facts)


def _of_owned(ref: ObjectRef, owner: OwnerKind, facts: Facts) -> Iterator[Finding]:
    found = owned(facts, owner)
    if found:
        variant = "owned-by-version" if owner.version else "owned-by-kind"
        kinds = dict(sorted(Counter(obj.kind for obj in found).items()))
        told: dict[str, Any] = {"kind": owner.kind, "version": owner.version or None, "kinds": kinds}
        told |= _counted([str(obj) for obj in found])
        yield _COUNTS_ON_VERSION.finding(variant, ref, key=["owned", owner.version], **told)


def _counted(names: Sequence[str]) -> dict[str, Any]:
    return {"count": len(names), "objects": names[:MAX_NAMES]}


def _of_gaps(ref: ObjectRef, kind: str, facts: Facts) -> Iterator[Finding]:
    """What could not be looked for, or only in part."""
    for listing in (*AUTOSCALERS, *SEEKERS, BUDGETS):
        listed = facts.around.lists.get(listing)
        if listed is not None and not listed.is_whole:
            why, name = listed.problem or None, listing.kind
            yield _NOT_LOOKED.finding("not-checked", ref, key=name, kind=kind, looked_for=name, problem=why)
    read = {listing: facts.around.lists.get(listing) for listing in OWNED}
    found = sorted((one.kind, it.problem) for one, it in read.items() if it is not None and not it.is_whole)
    if found:
        missing = dict(found)
        variant = "budgets-not-checked" if PODS.kind in missing and _has_budgets(facts) else "owned-not-checked"
        why, key = min(filter(None, missing.values()), default=None), ["owned", list(missing)]
        yield _NOT_LOOKED.finding(variant, ref, key=key, kind=kind, problems=missing, problem=why)


def _has_budgets(facts: Facts) -> bool:
    listed = facts.around.lists.get(BUDGETS)
    return any(needs_scale(obj) for obj in (listed.objects if listed is not None else ()))


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


def _staying(facts: Facts, listings: Iterable[Listing]) -> Iterator[JsonObject]:
    """Those of the lists that are not deleted together with it."""
    gone = {planned.ref.identity for planned in facts.plan.actions if planned.action is Action.DELETE}
    for listing in listings:
        listed = facts.around.lists.get(listing)
        yield from (obj for obj in (listed.objects if listed else ()) if ObjectRef.of(obj).identity not in gone)


def _targets(facts: Facts, group: str, kind: str) -> Iterator[str]:
    for obj in _staying(facts, AUTOSCALERS):
        target = mapping(mapping(obj.get("spec")).get("scaleTargetRef"))
        if target.get("kind") == kind and str(target.get("apiVersion") or "").startswith(f"{group}/"):
            yield said(ObjectRef.of(obj))


def _webhooks(facts: Facts, group: str, plural: str) -> Iterator[str]:
    for obj in _staying(facts, SEEKERS):
        rules = [rule for webhook in maps(obj.get("webhooks")) for rule in maps(webhook.get("rules"))]
        if any(_names_kind(rule, group, plural) for rule in rules):
            yield said(ObjectRef.of(obj))


def _roles(facts: Facts, group: str, plural: str) -> Iterator[str]:
    gone = {planned.ref.identity for planned in facts.plan.actions if planned.action is Action.DELETE}
    own = {manifest.ref.identity for manifest in facts.content.manifests}
    for obj in facts.live_rbac or ():
        ref = ObjectRef.of(obj)
        if ref.identity not in gone | own and any(_names_kind(rule, group, plural) for rule in maps(obj.get("rules"))):
            yield said(ref)


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
    counting = budgets(facts, OwnerKind(scene.old.group, scene.kind))
    found = [*sorted(_targets_of(scene, version, facts)), *counting]
    if found:
        note = Note(OBJECTS, "scaled-by", {"users": found, "kind": scene.kind})
        verdicts = {**finding.verdicts, "writers": Severity.BREAKING}
        evidence = {**finding.evidence, "basis": "objects", "seen": {"objects": found[:MAX_NAMES]}}
        notes = (*finding.notes, note)
        return with_message(
            replace(finding, severity=Severity.BREAKING, verdicts=verdicts, evidence=evidence, notes=notes)
        )
    is_known = all(one is not None and one.is_whole for one in listed)
    note = Note(OBJECTS, "scaled-by-nobody" if is_known else "scaled-unknown")
    evidence = {**finding.evidence, "basis": "objects" if is_known else "schemas"}
    return with_message(replace(finding, evidence=evidence, notes=(*finding.notes, note)))


def _targets_of(scene: CrdObjects, version: str, facts: Facts) -> Iterator[str]:
    for listing in AUTOSCALERS:
        listed = facts.around.lists.get(listing)
        for obj in listed.objects if listed is not None else ():
            target = mapping(mapping(obj.get("spec")).get("scaleTargetRef"))
            if target.get("kind") == scene.kind and target.get("apiVersion") == f"{scene.old.group}/{version}":
                yield said(ObjectRef.of(obj))


def _webhooks_on(scene: CrdObjects, version: str, facts: Facts) -> Iterator[str]:
    """Webhooks that are called for this version only; by matchPolicy Equivalent others are called for any."""
    plural = str(scene.old.names.get("plural") or "")
    for listing in SEEKERS:
        listed = facts.around.lists.get(listing)
        for obj in listed.objects if listed is not None else ():
            if any(
                _names_version(webhook, (scene.old.group, version, plural)) for webhook in maps(obj.get("webhooks"))
            ):
                yield said(ObjectRef.of(obj))


def _names_version(webhook: Mapping[str, Any], wanted: tuple[str, str, str]) -> bool:
    group, version, plural = wanted
    if webhook.get("matchPolicy") != "Exact":
        return False
    return any(
        group in items(rule.get("apiGroups"))
        and items(rule.get("apiVersions")) == [version]
        and bool({plural, "*"} & set(map(str, items(rule.get("resources")))))
        for rule in maps(webhook.get("rules"))
    )
