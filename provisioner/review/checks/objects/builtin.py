"""What the API server would refuse of Kubernetes' own kinds where it was not asked.

Where it was asked, its answer is in the plan, and nothing is said here.
"""

from __future__ import annotations

from collections.abc import Iterator

from provisioner.builtin import Judgement, WhyUnknown, judge, knows
from provisioner.review.base.difference import changed_paths
from provisioner.review.base.facts import SECRET, Check, Facts, Reads, ReviewRule, mapping
from provisioner.review.checks.objects.changed_values import evidence_of
from provisioner.review.checks.objects.immutable import loss_of
from provisioner.review.checks.objects.offline import is_untried, of_several
from provisioner.values import Action, Finding, GroupKind, JsonObject, ObjectRef, PlannedAction, Section, Severity

_UNFIT = ReviewRule("OBJ-07", Section.OBJECTS, Severity.BREAKING)
_REFUSED = ReviewRule("OBJ-10", Section.OBJECTS, Severity.BREAKING)
_REFUSED_LATER = ReviewRule("OBJ-10", Section.OBJECTS, Severity.DANGEROUS)
_TOO_NEW = ReviewRule("OBJ-11", Section.OBJECTS, Severity.DANGEROUS)
_UNKNOWN = ReviewRule("OBJ-04", Section.OBJECTS, Severity.UNKNOWN)
_NOT_COMPILED = ReviewRule("OBJ-03", Section.OBJECTS, Severity.NOTABLE)
_NEVER_CHANGES = ReviewRule("IMM-01", Section.OBJECTS, Severity.BREAKING)
_SERVICE = GroupKind("", "Service")
# Of these, SEC-03 says that they would change although they are immutable, and WH-06 what the forms of reviews are.
_SAID_ELSEWHERE = ("sideEffects", "admissionReviewVersions")


def _changes(facts: Facts) -> Iterator[Finding]:
    bodies = {one.ref.identity: one.body for one in facts.content.manifests}
    before = {one.ref.identity: one.body for one in (facts.previous.manifests if facts.previous else ())}
    unknown: dict[WhyUnknown, list[ObjectRef]] = {}
    for planned in facts.plan.actions:
        ref = planned.ref
        if ref.group_kind == _SERVICE and planned.action is Action.UPDATE and ref.identity in bodies:
            yield from _of_dropped(planned, bodies[ref.identity], facts.around.version)
        if not is_untried(planned) or ref.identity not in bodies:
            continue
        version = facts.around.version
        if knows(ref.api_version, ref.kind, version) is False:
            continue
        sent, live = before.get(ref.identity), planned.before
        if planned.action is Action.CREATE or (facts.is_offline and sent is not None):
            live = None  # there is none yet, or it is what comes of the content before
        judgement = judge(bodies[ref.identity], sent=sent, live=live, version=version)
        yield from _of_judgement(facts, planned, judgement)
        if facts.is_offline:  # else the plan has said that the object was not tried
            for why in judgement.unknown:
                unknown.setdefault(why, []).append(ref)
    for why, refs in sorted(unknown.items()):
        yield of_several(_UNKNOWN, str(why), refs, str(why))


def _of_dropped(planned: PlannedAction, body: JsonObject, version: str) -> Iterator[Finding]:
    """What the server takes once, and drops, since its former type needed it: the same again is refused."""
    if mapping((planned.before or {}).get("spec")).get("type") == mapping(body.get("spec")).get("type"):
        return
    now, later = (judge(body, sent=sent, version=version).refusals for sent in (planned.before, body))
    for one in later if not now else ():
        told = {"field": one.field, "type": mapping(body.get("spec")).get("type") or "ClusterIP"}
        yield _REFUSED_LATER.finding("refused-later", planned.ref, where=one.path, key="later", **told)


def _of_judgement(facts: Facts, planned: PlannedAction, judgement: Judgement) -> Iterator[Finding]:
    ref = planned.ref
    is_published = (ref.group, ref.version, ref.kind) in facts.around.schemas  # then OBJ-07 is said of it already
    stuck = [one for one in judgement.refusals if one.is_of_update]
    for one in judgement.refusals:
        if one.is_of_update or str(one.path[-1]) in _SAID_ELSEWHERE or (one.is_of_schema and is_published):
            continue
        rule, why = _UNFIT if one.is_of_schema else _REFUSED, one.words
        if ref.group_kind == SECRET and one.is_of_schema:  # its keys and types are not values
            why = why.partition(", and is ")[0]
        yield rule.finding("refused", ref, where=one.path, key="known", field=one.field, why=why)
    if stuck:
        paths, found = [one.path for one in stuck], changed_paths(planned.before, planned.after)
        near = [one for one in found if any(one.path[: len(it)] == it[: len(one.path)] for it in paths)]
        told = {"fields": [".".join(map(str, one)) for one in paths], "loss": loss_of(ref.group_kind)}
        evidence = told | evidence_of(near, planned)
        yield _NEVER_CHANGES.finding("refused", ref, where=paths[0], key="known", **evidence)
    if judgement.has_expressions and facts.is_offline:
        yield _NOT_COMPILED.finding("expressions", ref, key="expressions")
    if before := judgement.refused_before:
        variant = "newer-kind" if any(one.path == ("kind",) for one in before) else "newer-fields"
        told = {"since": judgement.since, "fields": [one.field for one in before], "api": ref.api_version}
        yield _TOO_NEW.finding(variant, ref, where=before[0].path, key=judgement.since, **told)


CHECK = Check("built-in kinds", changes=_changes, reads=frozenset({Reads.CHOICES}))
