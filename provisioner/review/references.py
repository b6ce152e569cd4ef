"""What else in the cluster counts on a CRD: autoscalers on its scale, webhooks and roles that name it (LIV-05)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from provisioner.review.counting import some, verb
from provisioner.review.facts import Facts, Listing, Rule, items, mapping, maps, said
from provisioner.review.live_scene import CRD, Scene
from provisioner.schema.crd import Crd
from provisioner.values import Action, Finding, JsonObject, ObjectRef, Section, Severity

_ADMISSION = "admissionregistration.k8s.io"
AUTOSCALERS = (
    Listing("autoscaling", "", "HorizontalPodAutoscaler"),
    Listing("keda.sh", "", "ScaledObject"),
)
SEEKERS = (
    Listing(_ADMISSION, "", "MutatingWebhookConfiguration"),
    Listing(_ADMISSION, "", "ValidatingWebhookConfiguration"),
)
MAX_NAMES = 20

_COUNTS_ON_VERSION = Rule("LIV-05", Section.CRDS, Severity.DANGEROUS)
_NOT_LOOKED = Rule("LIV-05", Section.CRDS, Severity.UNKNOWN)


def of_references(scene: Scene, facts: Facts) -> Iterator[Finding]:
    """What names a version that will no longer be served."""
    gone = sorted({one.name for one in scene.old.served_versions} - {one.name for one in scene.new.served_versions})
    for version in gone:
        found = sorted({*_webhooks_on(scene, version, facts), *_targets_of(scene, version, facts)})
        if found:
            message = f"{some(found)} {verb(len(found), 'count')} on {scene.kind} as {version}, which goes"
            evidence = {"version": version, "objects": found[:MAX_NAMES]}
            yield _COUNTS_ON_VERSION.at(scene.ref, message, evidence=evidence, key=[version, found])
    if gone:
        for listing in (*AUTOSCALERS, *SEEKERS):
            listed = facts.around.lists.get(listing)
            if listed is not None and not listed.is_whole:
                message = f"Whether a {listing.kind} counts on {scene.kind} was not fully checked: {listed.problem}"
                yield _NOT_LOOKED.at(scene.ref, message.rstrip(": "), key=listing.kind)


def of_deleted(facts: Facts) -> Iterator[Finding]:
    """What names a kind whose definition goes: autoscalers, webhooks, and roles that stay."""
    for ref, crd in deleted(facts):
        kind = str(crd.names.get("kind") or "")
        plural = str(crd.names.get("plural") or "")
        found = sorted({*_targets(facts, crd.group, kind), *_webhooks(facts, crd.group, plural)})
        found += sorted(_roles(facts, crd.group, plural))
        if found:
            message = f"{some(found)} {verb(len(found), 'name')} {kind}, whose definition goes"
            yield _COUNTS_ON_VERSION.at(ref, message, evidence={"objects": found[:MAX_NAMES]}, key=found)
        for listing in (*AUTOSCALERS, *SEEKERS):
            listed = facts.around.lists.get(listing)
            if listed is not None and not listed.is_whole:
                message = f"Whether a {listing.kind} counts on {kind} was not fully checked: {listed.problem}"
                yield _NOT_LOOKED.at(ref, message.rstrip(": "), key=listing.kind)


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
    gone = {one.ref.identity for one in facts.plan.actions if one.action is Action.DELETE}
    for listing in listings:
        listed = facts.around.lists.get(listing)
        yield from (one for one in (listed.objects if listed else ()) if ObjectRef.of(one).identity not in gone)


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
    gone = {one.ref.identity for one in facts.plan.actions if one.action is Action.DELETE}
    own = {one.ref.identity for one in facts.content.manifests}
    for obj in facts.live_rbac or ():
        ref = ObjectRef.of(obj)
        if ref.identity not in gone | own and any(_names_kind(one, group, plural) for one in maps(obj.get("rules"))):
            yield said(ref)


def _names_kind(rule: Mapping[str, Any], group: str, plural: str) -> bool:
    """By its own name: a rule over everything counts on nothing in particular."""
    resources = {str(one).partition("/")[0] for one in items(rule.get("resources"))}
    return group in items(rule.get("apiGroups")) and plural in resources


def scaled(finding: Finding, scene: Scene, facts: Facts) -> Finding:
    """CRD-31, the scale that goes, by the autoscalers that are there."""
    version = str(finding.evidence.get("version") or "")
    listed = [facts.around.lists.get(listing) for listing in AUTOSCALERS]
    found = sorted(_targets_of(scene, version, facts))
    if found:
        words = f"{some(found)} {verb(len(found), 'scale')} {scene.kind} objects by it"
        verdicts = {**finding.verdicts, "writers": Severity.BREAKING}
        evidence = {**finding.evidence, "basis": "objects", "seen": {"objects": found[:MAX_NAMES]}}
        message = f"{finding.message}; {words}"
        return replace(finding, severity=Severity.BREAKING, verdicts=verdicts, evidence=evidence, message=message)
    is_known = all(one is not None and one.is_whole for one in listed)
    words = "no autoscaler uses it" if is_known else "whether an autoscaler uses it is not known"
    evidence = {**finding.evidence, "basis": "objects" if is_known else "schemas"}
    return replace(finding, evidence=evidence, message=f"{finding.message}; {words}")


def _targets_of(scene: Scene, version: str, facts: Facts) -> Iterator[str]:
    for listing in AUTOSCALERS:
        listed = facts.around.lists.get(listing)
        for obj in listed.objects if listed is not None else ():
            target = mapping(mapping(obj.get("spec")).get("scaleTargetRef"))
            if target.get("kind") == scene.kind and target.get("apiVersion") == f"{scene.old.group}/{version}":
                yield said(ObjectRef.of(obj))


def _webhooks_on(scene: Scene, version: str, facts: Facts) -> Iterator[str]:
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
