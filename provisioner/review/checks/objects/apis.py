"""Which APIs the bundle speaks: whether this cluster serves them, and for how long Kubernetes will.

Discovery is the truth about this cluster; the table of removals only says what a version of Kubernetes takes away.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from provisioner.api_groups import ADMISSION_GROUP
from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts, items, mapping, maps
from provisioner.unserved import KUBERNETES_GROUPS, minor_of, removal_of
from provisioner.values import Action, Finding, GroupKind, JsonObject, ObjectRef, Section, Severity

_NOT_SERVED = ReviewRule("API-01", Section.OBJECTS, Severity.BREAKING)
_NOT_KNOWN = ReviewRule("API-01", Section.OBJECTS, Severity.UNKNOWN)
_REMOVED_NEXT = ReviewRule("API-02", Section.OBJECTS, Severity.DANGEROUS)
_REMOVED_LATER = ReviewRule("API-03", Section.OBJECTS, Severity.SAFE)
_NOT_STABLE = ReviewRule("API-04", Section.OBJECTS, Severity.DANGEROUS)
_OLD_INSIDE = ReviewRule("API-05", Section.OBJECTS, Severity.DANGEROUS)

_CRD = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
_UNSTABLE = re.compile(r"v\d+(alpha|beta)\d+")


def _changes(facts: Facts) -> Iterator[Finding]:
    """Kinds that nobody serves. What the plan met already stands there as its obstacle (PRE-07)."""
    brought = brought_kinds(facts.state())
    for planned in facts.plan.actions:
        ref = planned.ref
        if planned.problem or planned.action in {Action.DELETE, Action.ORPHAN, Action.NONE} or facts.is_offline:
            continue
        if (ref.group, ref.version, ref.kind) in brought:
            continue
        api, served = ref.api_version, facts.around.serves(ref.group, ref.version, ref.kind)
        if served is False:
            why = facts.around.absence_of(ref.group, ref.version, ref.kind)
            yield _NOT_SERVED.finding(
                str(why.lack),
                ref,
                key=api,
                api=api,
                kind=ref.kind,
                servedIn=list(why.served) or None,
                removedIn=why.removed_in or None,
                instead=why.instead or None,
            )
        elif served is None and facts.around.kinds is not None:
            yield _NOT_KNOWN.finding("no-answer", ref, key=api, api=api)


def brought_kinds(state: StateFacts) -> set[tuple[str, str, str]]:
    """(group, version, kind) of what the CRDs of the bundle serve."""
    found = set()
    for ref, obj in state.named:
        if ref.group_kind == _CRD:
            spec = mapping(obj.get("spec"))
            kind = str(mapping(spec.get("names")).get("kind") or "")
            served = (one for one in maps(spec.get("versions")) if one.get("served"))
            found |= {(str(spec.get("group")), str(one.get("name")), kind) for one in served}
    return found


def _standing(state: StateFacts) -> Iterator[Finding]:
    minor = minor_of(state.around.version)
    for ref, obj in state.named:
        yield from _of_age(ref, minor)
        yield from _of_mentions(ref, obj)


def _of_age(ref: ObjectRef, minor: int | None) -> Iterator[Finding]:
    api, removal = ref.api_version, removal_of(ref.group, ref.version, ref.kind)
    if removal is not None:
        rule = _REMOVED_LATER if minor is not None and removal.minor > minor + 1 else _REMOVED_NEXT
        yield rule.finding("removed", ref, key=api, api=api, removedIn=f"1.{removal.minor}", instead=removal.instead)
    elif ref.group in KUBERNETES_GROUPS and _UNSTABLE.fullmatch(ref.version):
        yield _NOT_STABLE.finding("not-stable", ref, key=api, api=api)


def _of_mentions(ref: ObjectRef, obj: JsonObject) -> Iterator[Finding]:
    """APIs that are gone, inside rules of webhooks and targets of autoscalers: they select or find nothing."""
    spec = mapping(obj.get("spec"))
    target = mapping(spec.get("scaleTargetRef"))
    named: list[tuple[tuple[str, ...], str, str]]
    named = [(("spec", "scaleTargetRef"), str(target.get("apiVersion") or ""), str(target.get("kind") or ""))]
    for index, webhook in enumerate(maps(obj.get("webhooks")) if ref.group == ADMISSION_GROUP else []):
        for rule in maps(webhook.get("rules")):
            groups, versions = items(rule.get("apiGroups")), items(rule.get("apiVersions"))
            if len(versions) == 1 and webhook.get("matchPolicy") == "Exact":
                named += [(("webhooks", str(index), "rules"), f"{group}/{versions[0]}", "") for group in groups]
    for path, api_version, kind in named:
        group, _, version = api_version.rpartition("/")
        removal = removal_of(group, version, kind)
        if removal is not None:
            told = {"api": api_version, "removedIn": f"1.{removal.minor}"}
            yield _OLD_INSIDE.finding("names-removed", ref, where=path, key=[*path, api_version], **told)


CHECK = Check("apis", changes=_changes, standing=_standing)
