"""Whom a bundle gives power over Pratique: one sentence for each of them, and for roles that nothing binds yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from provisioner import rbac
from provisioner.api_groups import RBAC_GROUP
from provisioner.errors import InvalidManifest
from provisioner.json_values import mapping, value_at
from provisioner.rbac import (
    BypassPower,
    EffectiveRules,
    Grant,
    Means,
    Ours,
    PowerJudge,
    RbacObjects,
    RbacSubject,
    RoleProblem,
)
from provisioner.review.base.facts import Check, Facts, FieldPath, Reads, ReviewRule
from provisioner.review.rights.permission_words import about, files_of, ref_of, ways_of
from provisioner.review.rights.renamed_roles import RbacBeforeAfter, rbac_before_after_of
from provisioner.review.rights.role_holders import RoleChange, altered_by, holders_alike, is_given_by_bundle
from provisioner.review.rules import Phrase
from provisioner.values import Finding, GroupKind, JsonObject, ObjectIdentity, ObjectRef, Section, Severity

_POWER = ReviewRule("OWN-PRATIQUE-03", Section.PERMISSIONS, Severity.CRITICAL)
_UNREADABLE = ReviewRule("RB-00", Section.PERMISSIONS, Severity.UNKNOWN)
_ROLES = frozenset({GroupKind(RBAC_GROUP, "Role"), GroupKind(RBAC_GROUP, "ClusterRole")})
_BINDINGS = frozenset({GroupKind(RBAC_GROUP, "RoleBinding"), GroupKind(RBAC_GROUP, "ClusterRoleBinding")})
_EVERY_ROLE = BypassPower(Means.EVERYTHING, "hold-every-role")
# In the evidence of a finding: what to do about power over Pratique, once for all findings that say the same.
ADVICE = "advice"


def advice_of(rule: ReviewRule) -> Phrase:
    """Return what the file of `rule` advises."""
    return Phrase.of(rule.id, "advice.do")


@dataclass(frozen=True, slots=True)
class Judge:
    """What powers are judged by: what is Pratique's, and the roles before and after."""

    ours: Ours
    states: RbacBeforeAfter
    files: Mapping[ObjectIdentity, str]
    old: PowerJudge
    new: PowerJudge

    @classmethod
    def of(cls, ours: Ours, states: RbacBeforeAfter, files: Mapping[ObjectIdentity, str]) -> Judge:
        return cls(ours, states, files, PowerJudge(ours, states.before), PowerJudge(ours, states.after))

    def before(self, grants: Iterable[Grant]) -> list[BypassPower]:
        return self.old.powers_of(grants)

    def after(self, grants: Iterable[Grant]) -> list[BypassPower]:
        return self.new.powers_of(grants)

    def held(self, subject: RbacSubject) -> tuple[list[Grant], list[BypassPower], list[RoleProblem]]:
        """What `subject` holds by roles and bindings that are not the bundle's: the grants behind its powers, the
        powers, and what could not be read."""
        found = rbac.effective_rules(subject.identity, self.states.after)
        others = [grant for grant in found.grants if not is_given_by_bundle(grant, self.states)]
        strong = [grant for grant in others if self.after([grant])]
        unread = [problem for problem in found.problems if not problem.is_missing]
        return strong, self.after(others), unread


def find_judge(facts: Facts) -> Judge:
    """Return the judge of these facts. Where nobody could read what installers hold, each counts as strong."""
    installers, states = facts.state().installers, rbac_before_after_of(facts)
    ours = Ours(facts.around.own_namespace, installers)
    is_unknown = facts.live_rbac is None and not facts.is_offline
    strong = installers if is_unknown else _find_strong(ours, states.after)
    return Judge.of(replace(ours, strong=strong), states, files_of(facts.content))


def _find_strong(ours: Ours, known: RbacObjects) -> frozenset[tuple[str, str]]:
    """Return the installers with power over Pratique; those who can be one of them have it, too."""
    subjects = {
        (namespace, name): RbacSubject("ServiceAccount", name, namespace) for namespace, name in ours.installers
    }
    grants = {account: rbac.effective_rules(subject.identity, known).grants for account, subject in subjects.items()}
    found: frozenset[tuple[str, str]] = frozenset()
    while True:
        judge = PowerJudge(Ours(ours.namespace, found, found), known)
        more = {
            account
            for account in grants.keys() - found
            if any(power.means is not Means.DESTROY for power in judge.powers_of(grants[account]))
        }
        if not more:
            return found
        found |= more


def judge_powers(facts: Facts) -> Iterator[Finding]:
    """Yield a finding for each subject, and each unbound role, to which the bundle gives power over Pratique."""
    if not any(planned.ref.group == RBAC_GROUP for planned in facts.plan.actions):
        return
    judge, altered = find_judge(facts), altered_by(facts)
    for subject in altered.accounts:
        yield from _judge_subject(judge, subject)
    for change in altered.roles:
        yield from _judge_holders(judge, change)
    for ref, obj in facts.state().named:
        if ref.group_kind in _ROLES:
            yield from _judge_role(judge, ref, obj)
        if ref.group_kind in _BINDINGS and judge.states.after.role_of(obj) is None:
            # A role of Kubernetes or Pratique that is known by its name only: nobody was asked, or it is not there.
            wanted = mapping(obj.get("roleRef"))
            name = str(wanted.get("name") or "")
            is_wide = ref.kind == "ClusterRoleBinding" or ref.namespace in judge.ours.places
            if wanted.get("kind") == "ClusterRole" and is_wide and rbac.is_strong_name(name):
                found = _POWER.finding("binding", ref, where=("roleRef",), key=name, role=name)
                is_new = judge.states.before.bindings.get((ref.kind, ref.namespace, ref.name)) is None
                yield replace(found, is_new=is_new)


def _judge_subject(judge: Judge, subject: RbacSubject) -> Iterator[Finding]:
    """Judge what the bundle gives; what somebody holds by the roles and bindings of others is not the bundle's."""
    old, new = _find_rules(judge, subject)
    known = {(grant.rule, grant.scope) for grant in old.grants}
    given = [
        grant
        for grant in new.grants
        if is_given_by_bundle(grant, judge.states) or (grant.rule, grant.scope) not in known
    ]
    if powers := judge.after(given):
        is_new = bool(set(powers) - set(judge.before(old.grants)))
        reason = [grant for grant in given if judge.after([grant])]
        variant = "account-newly" if is_new else "account"
        made = _say_powers(variant, ref_of(subject), powers, by=ways_of(reason, judge.files))
        yield replace(about(made, subject), is_new=is_new)


def _judge_holders(judge: Judge, change: RoleChange) -> Iterator[Finding]:
    """Judge who gets power by a role that changes and is not the bundle's: all who have it, and those to whom it gives
    more together with what they hold beside it. Of a built-in role the role of the bundle tells that it collects."""
    by_role = _find_gained(judge, change.held(change.home))
    if by_role and not change.is_built_in and change.ref.identity not in judge.states.own:
        yield _say_powers("everybody", change.ref, by_role, where=("rules",), role=str(change.ref))
    groups: dict[tuple[BypassPower, ...], list[RbacSubject]] = {}
    places = {rbac.CLUSTER, *judge.ours.places, *judge.ours.homes}
    # The lower the rank, the worse; nothing is the least.
    limit = weigh(by_role).rank if by_role else len(Severity)
    for alike in holders_alike(judge.states, change.holders, places):
        powers = _find_gained(judge, _find_rules(judge, alike[0]))
        if powers and weigh(powers).rank < limit:
            groups.setdefault(tuple(powers), []).extend(alike)
    for powers_alike, subjects in groups.items():
        yield _say_powers("together", change.ref, powers_alike, where=("rules",), accounts=subjects)


def _find_rules(judge: Judge, subject: RbacSubject) -> tuple[EffectiveRules, EffectiveRules]:
    old, new = (rbac.effective_rules(subject.identity, side) for side in (judge.states.before, judge.states.after))
    return old, new


def _find_gained(judge: Judge, sides: tuple[EffectiveRules, EffectiveRules]) -> list[BypassPower]:
    known = set(judge.before(sides[0].grants))
    return [power for power in judge.after(sides[1].grants) if power not in known]


def weigh(powers: Iterable[BypassPower]) -> Severity:
    """To destroy is not to decide: what only destroys weighs one step less."""
    return Severity.DANGEROUS if all(power.means is Means.DESTROY for power in powers) else Severity.CRITICAL


def _judge_role(judge: Judge, ref: ObjectRef, role: JsonObject) -> Iterator[Finding]:
    """Judge a role that nothing binds as if it were bound as widely as it can be; so is one that others collect."""
    if _is_told_with_accounts(judge.states, ref, role):
        return
    scope = "" if ref.kind == "ClusterRole" else ref.namespace
    try:
        rules = rbac.role_rules(judge.states.after, role)
    except InvalidManifest as exc:
        yield _UNREADABLE.finding("unreadable", ref, key=str(exc), problem=str(exc))
        return
    powers = judge.new.powers((rule, scope) for rule in rules)
    if _collects_everything(role):
        powers = [_EVERY_ROLE]
    if powers:
        is_new = bool(set(powers) - _find_powers_before(judge, scope, ref.name))
        yield replace(_say_powers("role", ref, powers, where=("rules",), role=str(ref)), is_new=is_new)


def _is_told_with_accounts(
    states: RbacBeforeAfter, ref: ObjectRef, role: JsonObject, seen: frozenset[str] = frozenset()
) -> bool:
    """Whether all who hold what a role grants are accounts that bindings name, and are judged themselves.

    So it is where it is bound, or where only roles of the bundle collect it of which the same is true.
    """
    labels = mapping(value_at(role, "metadata", "labels"))
    collectors: list[JsonObject] = []
    if ref.kind == "ClusterRole" and labels:
        if any(str(label).startswith(f"{RBAC_GROUP}/aggregate-to-") for label in labels):
            return False  # Kubernetes' own roles take its rules, which people hold
        collecting = (other for other in states.after.roles.values() if rbac.collects(other, role))
        collectors = [other for other in collecting if ObjectRef.of(other).identity != ref.identity]
    for other in collectors:
        named = ObjectRef.of(other)
        is_own = named.identity in states.own and named.name not in seen
        if not is_own or not _is_told_with_accounts(states, named, other, seen | {ref.name}):
            return False
    # Bound by the bundle alone: those whom others bind are not told one by one.
    bindings = states.after.bindings_to(rbac.role_key_of(ref))
    return bool(collectors) or (bool(bindings) and states.touched_bindings.issuperset(bindings))


def _collects_everything(role: JsonObject) -> bool:
    selectors = value_at(role, "aggregationRule", "clusterRoleSelectors")
    for selector in map(mapping, selectors if isinstance(selectors, list) else []):
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            return True
    return False


def _find_powers_before(judge: Judge, scope: str, name: str) -> set[BypassPower]:
    """Return what the role let its holders do before; nothing where there was none, or nobody can read it."""
    old = judge.states.before.roles.get((scope, name))
    if old is None:
        return set()
    if _collects_everything(old):
        return {_EVERY_ROLE}
    try:
        rules = rbac.role_rules(judge.states.before, old)
    except InvalidManifest:
        return set()
    return set(judge.old.powers((rule, scope) for rule in rules))


def describe_powers(powers: Sequence[BypassPower]) -> dict[str, Any]:
    """Return powers for a message, the worst means first; who may do everything may do all the rest."""
    phrases = []
    for power in powers:
        params: dict[str, Any] = {"what": power.what, "place": power.place, "scope": power.scope, "names": power.names}
        if power.installers is not None:
            params |= {"home": "named" if power.installers else "unnamed", "installers": power.installers}
        phrases.append(Phrase.of(_POWER.id, "powers.power", **params))
    return {"told": "everything" if powers[0].what == "do-everything" else "all", "powers": phrases}


def _say_powers(
    variant: str,
    ref: ObjectRef,
    powers: Sequence[BypassPower],
    *,
    where: FieldPath = (),
    accounts: Sequence[RbacSubject] = (),
    **params: Any,
) -> Finding:
    key = [*(power.key for power in powers), *map(str, accounts)]
    params |= {"accounts": accounts} if accounts else {}
    params |= {"advice": advice_of(_POWER), **describe_powers(powers)}
    return replace(_POWER.finding(variant, ref, where=where, key=key, **params), severity=weigh(powers))


CHECK = Check("power over Pratique", changes=judge_powers, reads=frozenset({Reads.ROLES}))
