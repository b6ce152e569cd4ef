"""What the API server would refuse of Kubernetes' own kinds where it was not asked.

Where it was asked, its answer is in the plan, and nothing is said here.
"""

from __future__ import annotations

from collections.abc import Iterator

from provisioner.builtin import FieldRefusal, Judgement, judge, knows
from provisioner.review.base.changes import FieldChange, changed_paths
from provisioner.review.base.facts import SECRET, Check, Facts, ReviewRule, said
from provisioner.review.checks.objects.changed_values import evidence_of
from provisioner.review.checks.objects.immutable import CONSEQUENCES
from provisioner.review.checks.objects.offline import is_untried
from provisioner.sentences import some
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
    unknown: dict[str, list[ObjectRef]] = {}
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
        yield _of_unknown(why, refs)


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
        rule = _UNFIT if one.is_of_schema else _REFUSED
        yield rule.at(
            ref, f"The API server refuses {_said(ref, one)}", path=one.path, evidence={"why": one.words}, key="known"
        )
    if stuck:
        yield _of_stuck(planned, stuck)
    for note in judgement.notes if facts.is_offline else ():
        yield _NOT_COMPILED.at(ref, f"{said(ref)} could not be tried: {note}", key=note)
    if judgement.refused_before:
        fields = some([one.field for one in judgement.refused_before])
        is_whole = any(one.path == ("kind",) for one in judgement.refused_before)
        what = f"is of {ref.api_version}" if is_whole else f"has {fields}"
        verb = "do not serve" if is_whole else "refuse"
        message = f"{said(ref)} {what}, which servers before Kubernetes {judgement.since} {verb}"
        evidence = {"since": judgement.since, "fields": [one.field for one in judgement.refused_before]}
        yield _TOO_NEW.at(ref, message, path=judgement.refused_before[0].path, evidence=evidence, key=judgement.since)


def _said(ref: ObjectRef, refusal: FieldRefusal) -> str:
    """Of a Secret no value is shown: its keys and types are not values."""
    words = refusal.words
    if ref.group_kind == SECRET and refusal.is_of_schema:
        words = words.partition(", and is ")[0]
    return f"{said(ref)}: {refusal.field} {words}"


def _of_stuck(planned: PlannedAction, stuck: list[FieldRefusal]) -> Finding:
    ref = planned.ref
    consequence = CONSEQUENCES.get(ref.group_kind, "it is gone in between")
    fields = some([".".join(map(str, one.path)) for one in stuck])
    remedy = f"it has to be deleted and created again; {consequence}"
    message = f"{said(ref)} changes {fields}, which the API server refuses: {remedy}"
    return _NEVER_CHANGES.at(
        ref, message, path=stuck[0].path, evidence=evidence_of(_changes_at(planned, stuck), planned), key="known"
    )


def _changes_at(planned: PlannedAction, stuck: list[FieldRefusal]) -> list[FieldChange]:
    found = changed_paths(planned.before, planned.after)
    return [one for one in found if any(_is_near(one, it) for it in stuck)]


def _is_near(change: FieldChange, refusal: FieldRefusal) -> bool:
    length = min(len(change.path), len(refusal.path))
    return change.path[:length] == refusal.path[:length]


def _of_unknown(why: str, refs: list[ObjectRef]) -> Finding:
    names = sorted(str(ref) for ref in refs)
    which = names[0] if len(names) == 1 else f"{len(names)} objects"
    message = f"Whether the API server accepts {which} is not known before apply: {why}"
    return _UNKNOWN.at(refs[0] if len(refs) == 1 else None, message, evidence={"objects": names}, key=why)


CHECK = Check("built-in kinds", changes=_changes)
