"""What everybody with a role gains and loses who has it by bindings that are not the bundle's: said once for all.

What an account gets only together with what it holds beside the role is not seen in the role: those are named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from provisioner import rbac
from provisioner.errors import TooManyRights
from provisioner.rbac import CLUSTER, HELD, Comparisons, PermissionDiff, RbacSubject, Risk
from provisioner.review.base.facts import ReviewRule
from provisioner.review.rights.altered import RoleChange, holders_alike
from provisioner.review.rights.permission_words import MAX_RULES, about, ref_of, rights_in, rules_record, words_of
from provisioner.review.rights.rbac_before_after import RbacBeforeAfter
from provisioner.review.rules import Phrase
from provisioner.review.rules.risk_words import power_of
from provisioner.values import Finding, ObjectIdentity, ObjectRef, Section, Severity

_WIDENS = ReviewRule("RB-09", Section.PERMISSIONS, Severity.DANGEROUS)
_GAINED = ReviewRule("RB-DIFF", Section.PERMISSIONS, Severity.NOTABLE)
_LOST = ReviewRule("RB-LESS", Section.PERMISSIONS, Severity.SAFE)
_UNREADABLE = ReviewRule("RB-00", Section.PERMISSIONS, Severity.UNKNOWN)


@dataclass(frozen=True, slots=True)
class RoleEffect:
    """Roles that change alike: what all who have one of them gain and lose (None: too many rights), and newly risk."""

    roles: tuple[RoleChange, ...]
    delta: PermissionDiff | None
    risks: tuple[Risk, ...]
    problem: str = ""

    @property
    def holders(self) -> dict[str, Any]:
        """For messages: the built-in roles that change alike, or the one role."""
        if self.roles[0].is_built_in:
            return {"holders": "built-in", "roles": [one.ref.name for one in self.roles]}
        return {"holders": "bound", "role": self.roles[0].ref}

    @property
    def who(self) -> Phrase:
        return Phrase.of(_GAINED.id, "holders.subject", **self.holders)

    @property
    def is_empty(self) -> bool:
        return not self.problem and self.delta == PermissionDiff() and not self.risks


def effects(changes: Iterable[RoleChange], sensitive: Iterable[str]) -> list[RoleEffect]:
    """What each of these roles does to those who have it, built-in roles that change alike together."""
    comparisons, places = Comparisons(), tuple(sensitive)
    found: dict[object, RoleEffect] = {}
    for change in changes:
        one = _effect(change, comparisons, places)
        alike = (one.delta, [(it.id, it.severity, it.sense) for it in one.risks], one.problem)
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
    worst: dict[tuple[object, ...], Risk] = {}
    special = {*rbac.SENSITIVE_NAMESPACES, *sensitive}
    plain = [one for one in change.scopes if one not in special]
    scopes = [CLUSTER] if CLUSTER in change.scopes else [*plain[:1], *(one for one in change.scopes if one in special)]
    for scope in scopes:
        old, new = (rbac.risks(side, sensitive=sensitive) for side in change.held(scope))
        known = {(one.id, one.sense) for one in old}
        for one in new:
            if one.implied_by or one.what == HELD or (one.id, one.sense) in known:
                continue
            anywhere = replace(one, place=None)
            kept = worst.setdefault((anywhere.id, anywhere.sense), anywhere)
            if anywhere.severity.rank < kept.severity.rank:
                worst[anywhere.id, anywhere.sense] = anywhere
    yield from sorted(worst.values(), key=lambda it: (it.severity.rank, it.id, it.what, str(it.details)))


def of_everybody(found: Iterable[RoleEffect], files: Mapping[ObjectIdentity, str]) -> Iterator[Finding]:
    """The findings on roles: what all who have one gain, lose and newly risk."""
    for effect in found:
        yield from _of_risks(effect, files)
        yield from _of_difference(effect)


def _of_difference(effect: RoleEffect) -> Iterator[Finding]:
    change, problem = effect.roles[-1], effect.problem
    if effect.delta is None:
        found = _UNREADABLE.finding("everybody-undecided", change.ref, key=problem, problem=problem, **effect.holders)
        yield about(found, effect.who)
        return
    for name, rules in (("added", effect.delta.added), ("removed", effect.delta.removed)):
        if not rules:
            continue
        record, words = rules_record(rules), words_of(rules)
        rule = _LOST if name == "removed" else _GAINED
        shown: dict[str, Any] = {name: record, "rights": rights_in(rules), "rules": words}
        if name == "added" and change.is_built_in:
            rule = _WIDENS
            shown = {name: record, "power": Phrase.of(rule.id, "power.every-namespace", rules=words)}
        found = rule.finding("everybody", change.ref, key=record, **shown, **effect.holders)
        yield about(found, effect.who)


def _of_risks(effect: RoleEffect, files: Mapping[ObjectIdentity, str]) -> Iterator[Finding]:
    for risk in effect.risks:
        found = ReviewRule(risk.id, Section.PERMISSIONS, risk.severity).finding(
            "everybody-can",
            effect.roles[-1].ref,
            key=[*risk.sense, *(str(role.ref) for role in effect.roles)],
            power=power_of(risk, "wherever"),
            by=_rules_behind(risk, files),
            **effect.holders,
        )
        yield about(found, effect.who)


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
    groups: dict[tuple[Risk, ObjectRef], dict[RbacSubject, Risk]] = {}
    for alike in holders_alike(states, told, special):
        if _untold(states, alike[0], told[alike[0]], places):
            for subject in alike:
                for risk in _untold(states, subject, told[subject], places):
                    ref = told[subject][0].roles[-1].ref
                    alone = replace(risk, scope="", evidence=())  # the same for all in whichever namespaces
                    common = alone if risk.scope in special else replace(alone, place=None)
                    groups.setdefault((common, ref), {})[subject] = alone
    for (common, ref), those in groups.items():
        yield _of_combination(common if len(those) > 1 else next(iter(those.values())), ref, [*those])


def _untold(
    states: RbacBeforeAfter, subject: RbacSubject, told: list[RoleEffect], sensitive: tuple[str, ...]
) -> list[Risk]:
    """The new risks of an account that no role with which it is told says as badly."""
    said = {(one.id, one.severity) for effect in told for one in effect.risks}
    old, new = (
        rbac.risks(rbac.effective_rules(subject.identity, side), sensitive=sensitive)
        for side in (states.before, states.after)
    )
    known = {(one.id, one.scope, one.sense) for one in old}
    fresh = (one for one in new if not one.is_among(known))
    return [
        one
        for one in fresh
        if not one.implied_by
        and one.severity is not Severity.SAFE
        and not any(rule == one.id and severity.rank <= one.severity.rank for rule, severity in said)
    ]


def _of_combination(risk: Risk, ref: ObjectRef, subjects: list[RbacSubject]) -> Finding:
    only = subjects[0] if len(subjects) == 1 else None
    found = ReviewRule(risk.id, Section.PERMISSIONS, risk.severity).finding(
        "together-hold" if risk.what == HELD else "together-can",
        ref_of(only) if only else ref,
        key=[*risk.sense, *map(str, subjects)],
        accounts=subjects,
        gained=power_of(risk),
        role=ref,
    )
    return about(found, only) if only else found
