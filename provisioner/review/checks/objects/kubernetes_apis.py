"""Which APIs the bundle speaks, and what the API server would refuse of Kubernetes' own kinds where it was not asked.

Discovery is the truth about this cluster; the table of removals only says what a version of Kubernetes takes away.
Where the server was asked, its answer is in the plan, and nothing is said of it here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from provisioner.api_groups import ADMISSION_GROUP
from provisioner.builtin import Judgement, WhyUnknown, judge, knows
from provisioner.json_values import items, mapping, maps, value_at
from provisioner.missing_kinds import KUBERNETES_GROUPS, minor_of, removal_of
from provisioner.review.base.difference import changed_paths
from provisioner.review.base.facts import SECRET, Check, Facts, Reads, ReviewRule, StateFacts
from provisioner.review.checks.objects.objects import CRD, evidence_of, find_loss, is_untried, say_of_several
from provisioner.values import Action, Finding, GroupKind, JsonObject, ObjectRef, PlannedAction, Section, Severity

_NOT_SERVED = ReviewRule("API-01", Section.OBJECTS, Severity.BREAKING)
_NOT_KNOWN = ReviewRule("API-01", Section.OBJECTS, Severity.UNKNOWN)
_REMOVED_NEXT = ReviewRule("API-02", Section.OBJECTS, Severity.DANGEROUS)
_REMOVED_LATER = ReviewRule("API-03", Section.OBJECTS, Severity.SAFE)
_NOT_STABLE = ReviewRule("API-04", Section.OBJECTS, Severity.DANGEROUS)
_OLD_INSIDE = ReviewRule("API-05", Section.OBJECTS, Severity.DANGEROUS)
_UNFIT = ReviewRule("OBJ-07", Section.OBJECTS, Severity.BREAKING)
_REFUSED = ReviewRule("OBJ-10", Section.OBJECTS, Severity.BREAKING)
_REFUSED_LATER = ReviewRule("OBJ-10", Section.OBJECTS, Severity.DANGEROUS)
_TOO_NEW = ReviewRule("OBJ-11", Section.OBJECTS, Severity.DANGEROUS)
_UNKNOWN = ReviewRule("OBJ-04", Section.OBJECTS, Severity.UNKNOWN)
_NOT_COMPILED = ReviewRule("OBJ-03", Section.OBJECTS, Severity.NOTABLE)
_NEVER_CHANGES = ReviewRule("IMM-01", Section.OBJECTS, Severity.BREAKING)

_UNSTABLE = re.compile(r"v\d+(alpha|beta)\d+")
_SERVICE = GroupKind("", "Service")
# Of these, SEC-03 says that they would change although they are immutable, and WH-06 what the forms of reviews are.
_SAID_ELSEWHERE = ("sideEffects", "admissionReviewVersions")


def compare_apis(facts: Facts) -> Iterator[Finding]:
    """Find kinds that nobody serves. What the plan met already stands there as its obstacle (PRE-07)."""
    brought = find_brought_kinds(facts.state())
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


def find_brought_kinds(state: StateFacts) -> set[tuple[str, str, str]]:
    """Return (group, version, kind) of what the CRDs of the bundle serve."""
    found = set()
    for ref, obj in state.named:
        if ref.group_kind == CRD:
            spec = mapping(obj.get("spec"))
            kind = str(value_at(spec, "names", "kind") or "")
            served = (version for version in maps(spec.get("versions")) if version.get("served"))
            found |= {(str(spec.get("group")), str(version.get("name")), kind) for version in served}
    return found


def judge_apis(state: StateFacts) -> Iterator[Finding]:
    """Find APIs that Kubernetes removes or may still change, of objects and inside them."""
    minor = minor_of(state.around.version)
    for ref, obj in state.named:
        api, removal = ref.api_version, removal_of(ref.group, ref.version, ref.kind)
        if removal is not None:
            rule = _REMOVED_LATER if minor is not None and removal.minor > minor + 1 else _REMOVED_NEXT
            removed_in = f"1.{removal.minor}"
            yield rule.finding("removed", ref, key=api, api=api, removedIn=removed_in, instead=removal.instead)
        elif ref.group in KUBERNETES_GROUPS and _UNSTABLE.fullmatch(ref.version):
            yield _NOT_STABLE.finding("not-stable", ref, key=api, api=api)
        # Rules of webhooks and targets of autoscalers that name an API which is gone select or find nothing.
        target = mapping(value_at(obj, "spec", "scaleTargetRef"))
        named: list[tuple[tuple[str, ...], str, str]]
        named = [(("spec", "scaleTargetRef"), str(target.get("apiVersion") or ""), str(target.get("kind") or ""))]
        for index, webhook in enumerate(maps(obj.get("webhooks")) if ref.group == ADMISSION_GROUP else []):
            for webhook_rule in maps(webhook.get("rules")):
                groups, versions = items(webhook_rule.get("apiGroups")), items(webhook_rule.get("apiVersions"))
                if len(versions) == 1 and webhook.get("matchPolicy") == "Exact":
                    named += [(("webhooks", str(index), "rules"), f"{group}/{versions[0]}", "") for group in groups]
        for path, api, kind in named:
            group, _, version = api.rpartition("/")
            removal = removal_of(group, version, kind)
            if removal is not None:
                key, removed_in = [*path, api], f"1.{removal.minor}"
                yield _OLD_INSIDE.finding("names-removed", ref, where=path, key=key, api=api, removedIn=removed_in)


def compare_builtin_kinds(facts: Facts) -> Iterator[Finding]:
    bodies = {manifest.ref.identity: manifest.body for manifest in facts.content.manifests}
    previous = facts.previous.manifests if facts.previous else ()
    before = {manifest.ref.identity: manifest.body for manifest in previous}
    unknown: dict[WhyUnknown, list[ObjectRef]] = {}
    version = facts.around.version
    for planned in facts.plan.actions:
        ref, body = planned.ref, bodies.get(planned.ref.identity)
        if body is None:
            continue
        if ref.group_kind == _SERVICE and planned.action is Action.UPDATE:
            yield from _compare_service_types(planned, body, version)
        if not is_untried(planned) or knows(ref.api_version, ref.kind, version) is False:
            continue
        sent, live = before.get(ref.identity), planned.before
        if planned.action is Action.CREATE or (facts.is_offline and sent is not None):
            live = None  # there is none yet, or it is what comes of the content before
        judgement = judge(body, sent=sent, live=live, version=version)
        yield from _say_judgement(facts, planned, judgement)
        if facts.is_offline:  # else the plan has said that the object was not tried
            for why in judgement.unknown:
                unknown.setdefault(why, []).append(ref)
    for why, refs in sorted(unknown.items()):
        yield say_of_several(_UNKNOWN, str(why), refs, str(why))


def _compare_service_types(planned: PlannedAction, body: JsonObject, version: str) -> Iterator[Finding]:
    """Find what the server takes once, and drops, since its former type needed it: the same again is refused."""
    new_type = value_at(body, "spec", "type")
    if value_at(planned.before, "spec", "type") == new_type:
        return
    now, later = (judge(body, sent=sent, version=version).refusals for sent in (planned.before, body))
    for refusal in later if not now else ():
        params = {"field": refusal.field, "type": new_type or "ClusterIP"}
        yield _REFUSED_LATER.finding("refused-later", planned.ref, where=refusal.path, key="later", **params)


def _say_judgement(facts: Facts, planned: PlannedAction, judgement: Judgement) -> Iterator[Finding]:
    ref = planned.ref
    is_published = (ref.group, ref.version, ref.kind) in facts.around.schemas  # then OBJ-07 is said of it already
    for refusal in judgement.refusals:
        is_said = str(refusal.path[-1]) in _SAID_ELSEWHERE or (refusal.is_of_schema and is_published)
        if refusal.is_of_update or is_said:
            continue
        rule, why = _UNFIT if refusal.is_of_schema else _REFUSED, refusal.words
        if ref.group_kind == SECRET and refusal.is_of_schema:  # its keys and types are not values
            why = why.partition(", and is ")[0]
        yield rule.finding("refused", ref, where=refusal.path, key="known", field=refusal.field, why=why)
    if paths := [refusal.path for refusal in judgement.refusals if refusal.is_of_update]:
        found = changed_paths(planned.before, planned.after)
        # What leads to a refused field, or stands below it.
        near = [
            change for change in found if any(change.path[: len(path)] == path[: len(change.path)] for path in paths)
        ]
        params = {"fields": [".".join(map(str, path)) for path in paths], "loss": find_loss(ref.group_kind)}
        params |= evidence_of(near, planned)
        yield _NEVER_CHANGES.finding("refused", ref, where=paths[0], key="known", **params)
    if judgement.has_expressions and facts.is_offline:
        yield _NOT_COMPILED.finding("expressions", ref, key="expressions")
    if before := judgement.refused_before:
        variant = "newer-kind" if any(refusal.path == ("kind",) for refusal in before) else "newer-fields"
        fields, since = [refusal.field for refusal in before], judgement.since
        where = before[0].path
        yield _TOO_NEW.finding(variant, ref, where=where, key=since, since=since, fields=fields, api=ref.api_version)


APIS_CHECK = Check("apis", changes=compare_apis, standing=judge_apis)
BUILTIN_CHECK = Check("built-in kinds", changes=compare_builtin_kinds, reads=frozenset({Reads.CHOICES}))
