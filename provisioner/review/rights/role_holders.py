"""What everybody with a role gains and loses who has it by bindings that are not the bundle's: said once for all.

What an account gets only together with what it holds beside the role is not seen in the role: those are named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from provisioner import rbac
from provisioner.errors import TooManyRights
from provisioner.rbac import CLUSTER, Comparisons, PermissionDiff, RbacSubject, Risk, ScopedRule
from provisioner.review.base.facts import ReviewRule
from provisioner.review.rights.altered import RoleChange, holders_alike
from provisioner.review.rights.permission_words import (
    MAX_RULES,
    UNDECIDED,
    counted,
    ref_of,
    rules_record,
    who,
    words_of,
)
from provisioner.review.rights.rbac_before_after import RbacBeforeAfter
from provisioner.sentences import some
from provisioner.values import Finding, ObjectIdentity, ObjectRef, Section, Severity

MAX_NAMED = 3
_WIDENS = ReviewRule("RB-09", Section.PERMISSIONS, Severity.DANGEROUS)
_GAINED = ReviewRule("RB-DIFF", Section.PERMISSIONS, Severity.NOTABLE)
_LOST = ReviewRule("RB-LESS", Section.PERMISSIONS, Severity.SAFE)
_UNREADABLE = ReviewRule("RB-00", Section.PERMISSIONS, Severity.UNKNOWN)
_REACH = re.compile(r" in (the whole cluster|namespace \S+)$")
# Of what somebody is bound to, not of what that grants; and rules that grant nothing.
_OF_BINDINGS = frozenset({"RB-03", "RB-40", "RB-41", "RB-42", "RB-43", "RB-47"})
_WHEREVER = "wherever they have it"


@dataclass(frozen=True, slots=True)
class RoleEffect:
    """Roles that change alike: what all who have one of them gain and lose (None: too many rights), and newly risk."""

    roles: tuple[RoleChange, ...]
    delta: PermissionDiff | None
    risks: tuple[Risk, ...]
    problem: str = ""

    @property
    def names(self) -> str:
        """`the role edit`, `the roles admin, edit or view`, `the Role shop/reader`."""
        first = self.roles[0]
        if not first.is_built_in:
            return f"the {first.ref.kind} {first.ref.place}"
        names = [one.ref.name for one in self.roles]
        return f"the role {names[0]}" if len(names) == 1 else f"the roles {', '.join(names[:-1])} or {names[-1]}"

    @property
    def who(self) -> str:
        return f"everybody with {self.names}"

    @property
    def is_empty(self) -> bool:
        return not self.problem and self.delta == PermissionDiff() and not self.risks


def effects(changes: Iterable[RoleChange], sensitive: Iterable[str]) -> list[RoleEffect]:
    """What each of these roles does to those who have it, built-in roles that change alike together."""
    comparisons, places = Comparisons(), tuple(sensitive)
    found: dict[object, RoleEffect] = {}
    for change in changes:
        one = _effect(change, comparisons, places)
        alike = (one.delta, [(it.id, it.severity, it.sentence) for it in one.risks], one.problem)
        key = str(alike) if change.is_built_in else change.ref.identity
        known = found.get(key)
        found[key] = replace(known, roles=(*known.roles, change)) if known else one
    return [one for one in found.values() if not one.is_empty]


def _effect(change: RoleChange, comparisons: Comparisons, sensitive: tuple[str, ...]) -> RoleEffect:
    risks = tuple(_new_risks(change, sensitive))
    try:
        return RoleEffect((change,), comparisons.diff(*change.held(change.home)), risks)
    except TooManyRights as exc:
        return RoleEffect((change,), None, risks, str(exc))


def _new_risks(change: RoleChange, sensitive: tuple[str, ...]) -> Iterator[Risk]:
    """The risks that are new where the role is held, each as bad as it is anywhere; one place stands for all alike."""
    worst: dict[tuple[str, str], Risk] = {}
    special = {*rbac.SENSITIVE_NAMESPACES, *sensitive}
    plain = [one for one in change.scopes if one not in special]
    scopes = [CLUSTER] if CLUSTER in change.scopes else [*plain[:1], *(one for one in change.scopes if one in special)]
    for scope in scopes:
        old, new = (rbac.risks(side, sensitive=sensitive) for side in change.held(scope))
        known = {(one.id, one.sentence) for one in old}
        for one in new:
            if one.implied_by or one.id in _OF_BINDINGS or (one.id, one.sentence) in known:
                continue
            said = replace(one, sentence=_REACH.sub("", one.sentence))
            kept = worst.setdefault((said.id, said.sentence), said)
            if said.severity.rank < kept.severity.rank:
                worst[said.id, said.sentence] = said
    yield from sorted(worst.values(), key=lambda it: (it.severity.rank, it.id, it.sentence))


def of_everybody(found: Iterable[RoleEffect], files: Mapping[ObjectIdentity, str]) -> Iterator[Finding]:
    """The findings on roles: what all who have one gain, lose and newly risk."""
    for effect in found:
        yield from _of_risks(effect, files)
        yield from _of_difference(effect)


def _of_difference(effect: RoleEffect) -> Iterator[Finding]:
    change, evidence = effect.roles[-1], {"subject": effect.who}
    if effect.delta is None:
        message = f"{_begun(effect.who)}: {UNDECIDED}: {effect.problem}"
        yield _UNREADABLE.at(change.ref, message, key=effect.problem)
        return
    added, removed = (rules_record(rules) for rules in (effect.delta.added, effect.delta.removed))
    if added and change.is_built_in:
        power = f"{words_of(effect.delta.added)} in every namespace where they have it"
        message = f"{_begun(effect.who)} will newly be able to {power}"
        yield _WIDENS.at(change.ref, message, evidence={**evidence, "power": power, "added": added}, key=added)
    elif added:
        message = _gain(effect, "gains", effect.delta.added)
        yield _GAINED.at(change.ref, message, evidence={**evidence, "added": added}, key=added)
    if removed:
        message = _gain(effect, "loses", effect.delta.removed)
        yield _LOST.at(change.ref, message, evidence={**evidence, "removed": removed}, key=removed)


def _gain(effect: RoleEffect, verb: str, rules: Sequence[ScopedRule]) -> str:
    return f"{_begun(effect.who)} {verb} {counted(rules)}, {_WHEREVER}: {words_of(rules)}"


def _begun(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}"


def _of_risks(effect: RoleEffect, files: Mapping[ObjectIdentity, str]) -> Iterator[Finding]:
    for risk in effect.risks:
        power = f"{risk.sentence.removeprefix('can ')}, {_WHEREVER}"
        can = "will newly be able to" if risk.sentence.startswith("can ") else "newly"
        evidence = {"subject": effect.who, "power": power, "by": _rules_behind(risk, files)}
        rule = ReviewRule(risk.id, Section.PERMISSIONS, risk.severity)
        message = f"{_begun(effect.who)} {can} {power}"
        yield rule.at(effect.roles[-1].ref, message, evidence=evidence, key=[risk.sentence, effect.names])


def _rules_behind(risk: Risk, files: Mapping[ObjectIdentity, str]) -> list[dict[str, Any]]:
    """By which rules of which roles a risk comes, each once."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for grant in risk.evidence:
        origin, file = str(grant.origin), files.get(grant.origin.identity, "")
        way = {"role": str(grant.role), "origin": origin, "rule": grant.rule_index}
        found[origin, grant.rule_index] = {**way, "file": file} if file else way
    return [found[key] for key in sorted(found)][:MAX_RULES]


def of_combinations(
    states: RbacBeforeAfter, found: Iterable[RoleEffect], sensitive: Iterable[str]
) -> Iterator[Finding]:
    """What holders of a role newly can by it and by what they hold beside it, for which the role alone does not do.

    Those who can the same are named together, all of them, in whichever namespaces; the sensitive ones are told apart.
    """
    places, special = tuple(sensitive), {CLUSTER, *rbac.SENSITIVE_NAMESPACES, *sensitive}
    told: dict[RbacSubject, list[RoleEffect]] = {}
    for effect in found:
        for subject in (holder for change in effect.roles for holder in change.holders):
            told.setdefault(subject, []).append(effect)
    groups: dict[tuple[str, Severity, str, ObjectRef], dict[RbacSubject, str]] = {}
    for alike in holders_alike(states, told, special):
        if _untold(states, alike[0], told[alike[0]], places):
            for subject in alike:
                for risk in _untold(states, subject, told[subject], places):
                    ref = told[subject][0].roles[-1].ref
                    words = risk.sentence if risk.scope in special else _REACH.sub("", risk.sentence)
                    groups.setdefault((risk.id, risk.severity, words, ref), {})[subject] = risk.sentence
    for (rule_id, severity, words, ref), sentences in groups.items():
        rule = ReviewRule(rule_id, Section.PERMISSIONS, severity)
        yield _of_combination(rule, words if len(sentences) > 1 else next(iter(sentences.values())), ref, [*sentences])


def _untold(
    states: RbacBeforeAfter, subject: RbacSubject, told: list[RoleEffect], sensitive: tuple[str, ...]
) -> list[Risk]:
    """The new risks of an account that no role with which it is told says as badly."""
    said = {(one.id, one.severity) for effect in told for one in effect.risks}
    old, new = (
        rbac.risks(rbac.effective_rules(subject.identity, side), sensitive=sensitive)
        for side in (states.before, states.after)
    )
    known = {(one.id, one.scope, one.sentence) for one in old}
    fresh = (one for one in new if not any((one.id, at, one.sentence) in known for at in (one.scope, CLUSTER)))
    return [
        one
        for one in fresh
        if not one.implied_by
        and one.severity is not Severity.SAFE
        and not any(rule == one.id and severity.rank <= one.severity.rank for rule, severity in said)
    ]


def _of_combination(rule: ReviewRule, sentence: str, ref: ObjectRef, subjects: list[RbacSubject]) -> Finding:
    names = [str(one) for one in subjects]
    shown = some(list(map(who, subjects)), MAX_NAMED)
    power = sentence.removeprefix("can ")
    can = "will newly be able to" if power != sentence else "newly"
    because = (
        f"by what {'they hold' if len(subjects) > 1 else 'it holds'} already and what {ref.kind} {ref.place} gains"
    )
    message = f"{shown} {can} {power}, {because}"
    only = subjects[0] if len(subjects) == 1 else None
    evidence = {"accounts": names} | ({"subject": names[0]} if only else {})
    return rule.at(ref_of(only) if only else ref, message, evidence=evidence, key=[sentence, names])
