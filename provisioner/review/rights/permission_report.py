"""What a bundle does to everybody's rights, account by account, for `pratique rbac`. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from provisioner import rbac
from provisioner.errors import TooManyRights
from provisioner.rbac import HELD, EffectiveRules, Grant, PermissionDiff, PolicyRule, RbacSubject, Risk, ScopedRule
from provisioner.review.base.facts import Facts
from provisioner.review.rights.permission_words import (
    UNDECIDED,
    WHOLE_CLUSTER,
    Ways,
    capability,
    counted,
    ref_of,
    who,
    words_of,
)
from provisioner.review.rights.renamed_roles import rbac_before_after_of
from provisioner.review.rights.role_holders import RoleEffect, altered_by, effects
from provisioner.review.rules.files import power_of
from provisioner.review.workloads.pod_specs import pod_specs
from provisioner.sentences import some_phrases
from provisioner.values import JsonObject, ObjectRef, Severity

GAINED, LOST, BOTH, KEPT = "+", "−", "±", "="
CAPABILITIES = ("Everything", "Read", "Write", "Delete", "Special")
MAX_POWERS = 3
# A group and a resource in it.
GroupResource = tuple[str, str]


@dataclass(frozen=True, slots=True)
class RightChange:
    """One right gained or lost: the grants by which it comes, and those grants' rules as they were before."""

    right: ScopedRule
    grants: tuple[Grant, ...]
    before: tuple[PolicyRule, ...] = ()


@dataclass(frozen=True, slots=True)
class AccountReport:
    """What happens to one subject.

    `reach` says for a capability and a place whether rights are gained, lost or kept. `wider` are sentences on rights
    that were there and now reach further. `known` are the risks that it had before as well. `used_by` are the objects
    of the bundle whose pods run as it; `is_own` says whether the account comes with the bundle. Where `is_undecided`,
    its rights were too many to compare: `reach`, `added` and `removed` say nothing.
    """

    subject: RbacSubject
    sentence: str
    reach: dict[str, dict[str, str]]
    wider: tuple[str, ...]
    added: tuple[RightChange, ...]
    removed: tuple[RightChange, ...]
    new: tuple[Risk, ...]
    known: tuple[Risk, ...]
    used_by: tuple[ObjectRef, ...] = ()
    is_own: bool = False
    is_undecided: bool = False

    @property
    def is_changed(self) -> bool:
        """Whether anything changes, or may."""
        return self.is_undecided or bool(self.added or self.removed or self.new)


@dataclass(frozen=True, slots=True)
class PermissionReport:
    """`everybody` says what all gain and lose who have a role by bindings of others; `problems` what could not be
    told."""

    accounts: tuple[AccountReport, ...]
    everybody: tuple[RoleEffect, ...]
    problems: tuple[str, ...]

    @property
    def worst(self) -> Severity:
        """The worst of what is new."""
        found = [risk.severity for account in self.accounts for risk in account.new]
        for effect in self.everybody:
            found += [risk.severity for risk in effect.risks]
            if effect.delta is not None and effect.delta.added:
                found.append(Severity.DANGEROUS if effect.roles[0].is_built_in else Severity.NOTABLE)
        found += [Severity.UNKNOWN for _ in self.problems]
        found += [Severity.NOTABLE for account in self.accounts if account.added]
        return min(found, key=lambda severity: severity.rank, default=Severity.SAFE)


def permission_report(facts: Facts, *, nowhere: frozenset[GroupResource] = frozenset()) -> PermissionReport:
    """Everybody whose rights the bundle alters, who gains the worst first.

    What is `nowhere` in a namespace is not gained there.
    """
    states = rbac_before_after_of(facts)
    who_changes = altered_by(facts)
    found, problems, comparisons = [], [], rbac.Comparisons()
    for subject in who_changes.accounts:
        effective = (rbac.effective_rules(subject.identity, side) for side in (states.before, states.after))
        old, new = (_in_force(side, nowhere) for side in effective)
        try:
            delta = comparisons.diff(old, new)
            found.append(_account(facts, subject, (old, new), delta))
        except TooManyRights as exc:
            # Its risks are told without a comparison.
            account = _account(facts, subject, (old, new), PermissionDiff())
            name = who(subject)
            sentence = f"{account.sentence}; beyond that it {UNDECIDED}" if account.new else f"{name}: {UNDECIDED}"
            found.append(replace(account, sentence=sentence, reach={}, is_undecided=True))
            problems.append(f"{who(subject)}: {UNDECIDED}: {exc}")
        problems += [
            f"{who(subject)}: {problem}" for problem in new.problems if not (states.is_whole and problem.is_missing)
        ]
    accounts = tuple(sorted(found, key=_account_order))
    everybody = tuple(effects(who_changes.roles, [facts.content.install_namespace]))
    problems += [f"{effect.who}: {UNDECIDED}: {effect.problem}" for effect in everybody if effect.problem]
    return PermissionReport(accounts, everybody, tuple(dict.fromkeys(problems)))


def _in_force(side: EffectiveRules, nowhere: frozenset[GroupResource]) -> EffectiveRules:
    """Without rights in a namespace to what is in none: the API server never asks for them there."""
    if not nowhere:
        return side
    found = []
    for grant in side.grants:
        rule = grant.rule
        if grant.scope:
            # Without resources that none of the rule's groups has in a namespace.
            left = (
                resource
                for resource in rule.resources
                if any((group, resource.partition("/")[0]) not in nowhere for group in rule.api_groups)
            )
            rule = replace(rule, resources=tuple(left))
        if rule.resources or rule.non_resource_urls:
            found.append(replace(grant, rule=rule))
    return replace(side, grants=tuple(found))


def _account(
    facts: Facts, subject: RbacSubject, states: tuple[EffectiveRules, EffectiveRules], delta: PermissionDiff
) -> AccountReport:
    old, new = states
    before_ways, after_ways = Ways(old), Ways(new)
    risks, known = (
        [risk for risk in rbac.risks(side, sensitive=[facts.content.install_namespace]) if not risk.implied_by]
        for side in (new, old)
    )
    familiar = {(risk.id, risk.scope, risk.sense) for risk in known}
    fresh = tuple(risk for risk in risks if not risk.is_among(familiar))
    before, after = (_by_place(side) for side in states)
    objects: tuple[JsonObject, ...] = facts.state().objects
    own = {ObjectRef.of(obj).identity for obj in objects}
    place = (subject.namespace, subject.name)
    pods = pod_specs(objects) if subject.kind == "ServiceAccount" else ()
    return AccountReport(
        subject,
        _sentence(subject, delta, fresh, states),
        _reach(delta, new),
        tuple(dict.fromkeys(words for right in delta.added for words in _wider(old, before_ways, right))),
        tuple(_change(right, after_ways, before) for right in delta.added),
        tuple(_change(right, before_ways, after) for right in delta.removed),
        fresh,
        tuple(risk for risk in risks if risk not in fresh),
        tuple(pod.ref for pod in pods if (pod.ref.namespace, pod.account) == place),
        ref_of(subject).identity in own,
    )


def _account_order(account: AccountReport) -> tuple[object, ...]:
    rank = min((risk.severity.rank for risk in account.new), default=len(Severity))
    subject = account.subject
    return (rank, not account.added, not account.removed, subject.kind, subject.namespace, subject.name)


def _sentence(
    subject: RbacSubject, delta: PermissionDiff, fresh: tuple[Risk, ...], states: tuple[EffectiveRules, EffectiveRules]
) -> str:
    """One sentence for one account: its worst new powers, else what it gains or loses, else that nothing changes."""
    powers = [power_of(risk) for risk in fresh if risk.what != HELD]
    if powers:
        return f"{who(subject)} can now {some_phrases(powers, MAX_POWERS)}"
    if fresh:
        return f"{who(subject)} now {power_of(fresh[0])}"
    parts = [f"gains {counted(delta.added)}: {words_of(delta.added)}"] if delta.added else []
    parts += [f"loses {counted(delta.removed)}: {words_of(delta.removed)}"] if delta.removed else []
    if parts:
        return f"{who(subject)} {' and '.join(parts)}"
    was, now = (sorted({str(grant.origin) for grant in side.grants}) for side in states)
    moved = f" (moved from {', '.join(was) or 'nothing'} to {', '.join(now) or 'nothing'})" if was != now else ""
    return f"{who(subject)} can do the same as before: no effective change{moved}"


def _reach(delta: PermissionDiff, new: EffectiveRules) -> dict[str, dict[str, str]]:
    """Capability by place: gained, lost, both or kept."""
    cells: dict[tuple[str, str], set[str]] = {}
    kept = [ScopedRule(grant.scope, grant.rule) for grant in new.grants]
    for sign, rights in ((KEPT, kept), (GAINED, delta.added), (LOST, delta.removed)):
        for right in rights:
            for verb in right.rule.verbs:
                cells.setdefault((capability(verb), right.scope), set()).add(sign)
    reach: dict[str, dict[str, str]] = {name: {} for name in CAPABILITIES}
    for (name, scope), signs in sorted(cells.items(), key=lambda cell: cell[0]):
        changes = signs - {KEPT}
        reach[name][scope or WHOLE_CLUSTER] = BOTH if len(changes) == 2 else next(iter(changes), KEPT)
    return {name: row for name, row in reach.items() if row}


def _wider(old: EffectiveRules, ways: Ways, right: ScopedRule) -> Iterator[str]:
    """In which ways a right that was there before reaches further now."""
    rule = right.rule
    narrower = [scope for scope in old.scopes if scope and not right.scope and ways.at(scope, rule)]
    if narrower:
        yield f"{words_of([right])}: in the whole cluster, until now in {', '.join(narrower)} only"
    names = [] if rule.resource_names else ways.names(right)
    if names:
        yield f"{words_of([right])}: all of them, until now only {', '.join(names)}"
    is_wildcard = any("*" in values for values in (rule.verbs, rule.api_groups, rule.resources))
    if is_wildcard and any(rbac.size(grant.rule) and rbac.holds([rule], [grant.rule]) for grant in old.grants):
        yield f"{words_of([right])}: a wildcard, which also holds what is added later"


def _by_place(side: EffectiveRules) -> dict[tuple[ObjectRef, int], list[PolicyRule]]:
    found: dict[tuple[ObjectRef, int], list[PolicyRule]] = {}
    for grant in side.grants:
        found.setdefault((grant.origin, grant.rule_index), []).append(grant.rule)
    return found


def _change(right: ScopedRule, ways: Ways, other: dict[tuple[ObjectRef, int], list[PolicyRule]]) -> RightChange:
    grants = tuple(ways.to(right))
    places = dict.fromkeys((grant.origin, grant.rule_index) for grant in grants)
    before = [rule for place in places for rule in other.get(place, ())]
    return RightChange(right, grants, tuple(dict.fromkeys(before)))
