"""What the API server would refuse of Kubernetes' own kinds where it was not asked.

Where it was asked, its answer is in the plan, and nothing is said here.
"""

from __future__ import annotations

from collections.abc import Iterator

from provisioner.builtin import FieldRefusal, Judgement, Unknown, judge, knows
from provisioner.review.base.changes import FieldChange, changed_paths
from provisioner.review.base.facts import SECRET, Check, Facts, ReviewRule
from provisioner.review.checks.objects.changed_values import evidence_of
from provisioner.review.checks.objects.immutable import LOSS, LOSSES
from provisioner.review.checks.objects.offline import is_untried, of_several
from provisioner.values import Action, Finding, JsonObject, ObjectRef, PlannedAction, Section, Severity

_UNFIT = ReviewRule("OBJ-07", Section.OBJECTS, Severity.BREAKING)
_REFUSED = ReviewRule("OBJ-10", Section.OBJECTS, Severity.BREAKING)
_TOO_NEW = ReviewRule("OBJ-11", Section.OBJECTS, Severity.DANGEROUS)
_UNKNOWN = ReviewRule("OBJ-04", Section.OBJECTS, Severity.UNKNOWN)
_NOT_COMPILED = ReviewRule("OBJ-03", Section.OBJECTS, Severity.NOTABLE)
_NEVER_CHANGES = ReviewRule("IMM-01", Section.OBJECTS, Severity.BREAKING)
MAX_CHANGES = 20
# Of these, SEC-03 says that they would change although they are immutable, and WH-06 what the forms of reviews are.
_SAID_ELSEWHERE = ("sideEffects", "admissionReviewVersions")


def _changes(facts: Facts) -> Iterator[Finding]:
    bodies = {one.ref.identity: one.body for one in facts.content.manifests}
    before = {one.ref.identity: one.body for one in (facts.previous.manifests if facts.previous else ())}
    unknown: dict[Unknown, list[ObjectRef]] = {}
    for planned in facts.plan.actions:
        ref = planned.ref
        if not is_untried(planned) or ref.identity not in bodies:
            continue
        version = facts.around.version
        if knows(ref.api_version, ref.kind, version) is False:
            continue
        judgement = judge(
            bodies[ref.identity],
            sent=before.get(ref.identity),
            live=_live(planned, is_offline=facts.is_offline and ref.identity in before),
            version=version,
        )
        yield from _of_judgement(facts, planned, judgement)
        if facts.is_offline:  # else the plan has said that the object was not tried
            for why in judgement.unknown:
                unknown.setdefault(why, []).append(ref)
    for why, refs in sorted(unknown.items()):
        yield of_several(_UNKNOWN, str(why), refs, str(why))


def _live(planned: PlannedAction, *, is_offline: bool) -> JsonObject | None:
    """The object as it stands; None for a new one, and offline, where it is what comes of the content before."""
    return None if is_offline or planned.action is Action.CREATE else planned.before


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
        fields, loss = [".".join(map(str, one.path)) for one in stuck], LOSSES.get(ref.group_kind, LOSS)
        evidence = evidence_of(_changes_at(planned, stuck), planned)
        where = stuck[0].path
        yield _NEVER_CHANGES.finding("refused", ref, where=where, key="known", fields=fields, loss=loss, **evidence)
    if judgement.has_expressions and facts.is_offline:
        yield _NOT_COMPILED.finding("expressions", ref, key="expressions")
    if before := judgement.refused_before:
        variant = "newer-kind" if any(one.path == ("kind",) for one in before) else "newer-fields"
        told = {"since": judgement.since, "fields": [one.field for one in before], "api": ref.api_version}
        yield _TOO_NEW.finding(variant, ref, where=before[0].path, key=judgement.since, **told)


def _changes_at(planned: PlannedAction, stuck: list[FieldRefusal]) -> list[FieldChange]:
    found = changed_paths(planned.before, planned.after)
    return [one for one in found if any(_is_near(one, it) for it in stuck)]


def _is_near(change: FieldChange, refusal: FieldRefusal) -> bool:
    length = min(len(change.path), len(refusal.path))
    return change.path[:length] == refusal.path[:length]


CHECK = Check("built-in kinds", changes=_changes)
