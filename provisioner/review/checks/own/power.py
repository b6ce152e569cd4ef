"""Whom a bundle gives power over Pratique: one sentence for each of them, and for roles that nothing binds yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from provisioner import rbac
from provisioner.api_groups import RBAC_GROUP
from provisioner.errors import InvalidManifest
from provisioner.rbac import (
    BypassPower,
    EffectiveRules,
    Grant,
    Means,
    Ours,
    PolicyRule,
    PowerJudge,
    RbacObjects,
    RbacSubject,
    RoleProblem,
)
from provisioner.review.base.facts import Facts, ReviewRule, mapping
from provisioner.review.checks.own.advice import advice_of
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
        others = [one for one in found.grants if not is_given_by_bundle(one, self.states)]
        strong = [one for one in others if self.after([one])]
        unread = [one for one in found.problems if not one.is_missing]
        return strong, self.after(others), unread


def judge_of(facts: Facts) -> Judge:
    """The judge of these facts. Where nobody could read what installers hold, each counts as strong."""
    installers, states = facts.state().installers, rbac_before_after_of(facts)
    ours = Ours(facts.around.own_namespace, installers)
    is_unknown = facts.live_rbac is None and not facts.is_offline
    strong = installers if is_unknown else _strong(ours, states.after)
    return Judge.of(replace(ours, strong=strong), states, files_of(facts.content))


def _strong(ours: Ours, known: RbacObjects) -> frozenset[tuple[str, str]]:
    """The installers with power over Pratique; those who can be one of them have it, too."""
    accounts = {one: RbacSubject("ServiceAccount", one[1], one[0]).identity for one in ours.installers}
    grants = {one: rbac.effective_rules(identity, known).grants for one, identity in accounts.items()}
    found: frozenset[tuple[str, str]] = frozenset()
    while True:
        judge = PowerJudge(Ours(ours.namespace, found, found), known)
        more = frozenset(one for one in grants if one not in found and _has_power(judge, grants[one]))
        if not more:
            return found
        found |= more


def _has_power(judge: PowerJudge, grants: Iterable[Grant]) -> bool:
    return any(one.means is not Means.DESTROY for one in judge.powers_of(grants))


def of_power(facts: Facts) -> Iterator[Finding]:
    """A finding for each subject, and each unbound role, to which the bundle gives power over Pratique."""
    if not any(one.ref.group == RBAC_GROUP for one in facts.plan.actions):
        return
    judge = judge_of(facts)
    found = altered_by(facts)
    for subject in found.accounts:
        yield from _of_subject(judge, subject)
    for change in found.roles:
        yield from _of_holders(judge, change)
    for ref, obj in facts.state().named:
        if ref.group_kind in _ROLES:
            yield from _of_role(judge, ref, obj)
        if ref.group_kind in _BINDINGS:
            yield from _of_unknown_role(judge, ref, obj)


def _of_subject(judge: Judge, subject: RbacSubject) -> Iterator[Finding]:
    """What the bundle itself gives; what somebody holds by the roles and bindings of others is not the bundle's."""
    old, new = _held(judge, subject)
    known = {(grant.rule, grant.scope) for grant in old.grants}
    given = [one for one in new.grants if is_given_by_bundle(one, judge.states) or (one.rule, one.scope) not in known]
    found = judge.after(given)
    if found:
        is_new = bool(set(found) - set(judge.before(old.grants)))
        reason = [grant for grant in given if judge.after([grant])]
        variant = "account-newly" if is_new else "account"
        made = _finding(variant, ref_of(subject), found, by=ways_of(reason, judge.files))
        yield replace(about(made, subject), is_new=is_new)


def _of_holders(judge: Judge, change: RoleChange) -> Iterator[Finding]:
    """Who gets power by a role that changes and is not the bundle's: all who have it, and those to whom it gives more
    together with what they hold beside it. Of a built-in role the role of the bundle tells that it collects."""
    by_role = _gained(judge, change.held(change.home))
    if by_role and not change.is_built_in and change.ref.identity not in judge.states.own:
        yield _finding("everybody", change.ref, by_role, where=("rules",), role=str(change.ref))
    groups: dict[tuple[BypassPower, ...], list[RbacSubject]] = {}
    places = {rbac.CLUSTER, *judge.ours.places, *judge.ours.homes}
    for alike in holders_alike(judge.states, change.holders, places):
        found = _gained(judge, _held(judge, alike[0]))
        if _worst(found) < _worst(by_role):
            groups.setdefault(tuple(found), []).extend(alike)
    for powers, subjects in groups.items():
        yield _finding("together", change.ref, powers, where=("rules",), accounts=subjects)


def _held(judge: Judge, subject: RbacSubject) -> tuple[EffectiveRules, EffectiveRules]:
    old, new = (rbac.effective_rules(subject.identity, side) for side in (judge.states.before, judge.states.after))
    return old, new


def _gained(judge: Judge, states: tuple[EffectiveRules, EffectiveRules]) -> list[BypassPower]:
    known = set(judge.before(states[0].grants))
    return [one for one in judge.after(states[1].grants) if one not in known]


def _worst(found: Sequence[BypassPower]) -> int:
    """The less, the worse."""
    return _weight(found).rank if found else len(Severity)


def _weight(found: Iterable[BypassPower]) -> Severity:
    """To destroy is not to decide: what only destroys weighs one step less."""
    return Severity.DANGEROUS if all(one.means is Means.DESTROY for one in found) else Severity.CRITICAL


def _of_role(judge: Judge, ref: ObjectRef, role: JsonObject) -> Iterator[Finding]:
    """A role that nothing binds, judged as if it were bound as widely as it can be; so is one that others collect."""
    if _is_told_with_accounts(judge.states, ref, role):
        return
    scope = "" if ref.kind == "ClusterRole" else ref.namespace
    try:
        rules = rbac.role_rules(judge.states.after, role)
    except InvalidManifest as exc:
        yield _UNREADABLE.finding("unreadable", ref, key=str(exc), problem=str(exc))
        return
    found = judge.new.powers((rule, scope) for rule in rules)
    if _collects_everything(role):
        found = [_EVERY_ROLE]
    if found:
        is_new = bool(set(found) - _before(judge, scope, ref.name))
        yield replace(_finding("role", ref, found, where=("rules",), role=str(ref)), is_new=is_new)


def _of_unknown_role(judge: Judge, ref: ObjectRef, binding: JsonObject) -> Iterator[Finding]:
    """A role of Kubernetes or Pratique that is known by its name only: no cluster was asked, or it is not there."""
    if judge.states.after.role_of(binding) is not None:
        return
    wanted = mapping(binding.get("roleRef"))
    name = str(wanted.get("name") or "")
    is_wide = ref.kind == "ClusterRoleBinding" or ref.namespace in judge.ours.places
    if wanted.get("kind") == "ClusterRole" and is_wide and rbac.is_strong_name(name):
        found = _POWER.finding("binding", ref, where=("roleRef",), key=name, role=name)
        yield replace(found, is_new=judge.states.before.bindings.get((ref.kind, ref.namespace, ref.name)) is None)


def _is_bound(states: RbacBeforeAfter, ref: ObjectRef) -> bool:
    """Whether it is bound, and by the bundle alone: those whom others bind are not told one by one."""
    bindings = states.after.bindings_to(rbac.role_key_of(ref))
    return bool(bindings) and states.touched_bindings.issuperset(bindings)


def _is_told_with_accounts(
    states: RbacBeforeAfter, ref: ObjectRef, role: JsonObject, seen: frozenset[str] = frozenset()
) -> bool:
    """Whether all who hold what a role grants are accounts that bindings name, and are judged themselves.

    So it is where it is bound, or where only roles of the bundle collect it of which the same is true.
    """
    collectors = _collectors(states.after, ref, role)
    if collectors is None:
        return False
    for other in collectors:
        named = ObjectRef.of(other)
        is_own = named.identity in states.own and named.name not in seen
        if not is_own or not _is_told_with_accounts(states, named, other, seen | {ref.name}):
            return False
    return bool(collectors) or _is_bound(states, ref)


def _collectors(known: RbacObjects, ref: ObjectRef, role: JsonObject) -> list[JsonObject] | None:
    """The other roles that take this one's rules; None where Kubernetes' own do, which people hold."""
    labels = mapping(mapping(role.get("metadata")).get("labels"))
    if ref.kind != "ClusterRole" or not labels:
        return []
    if any(str(label).startswith(f"{RBAC_GROUP}/aggregate-to-") for label in labels):
        return None
    collecting = (one for one in known.roles.values() if rbac.collects(one, role))
    return [one for one in collecting if ObjectRef.of(one).identity != ref.identity]


def _collects_everything(role: JsonObject) -> bool:
    selectors = mapping(role.get("aggregationRule")).get("clusterRoleSelectors")
    listed = selectors if isinstance(selectors, list) else []
    return any(not mapping(one).get("matchLabels") and not mapping(one).get("matchExpressions") for one in listed)


def _before(judge: Judge, scope: str, name: str) -> set[BypassPower]:
    """What the role let its holders do before; nothing where there was none, or nobody can read it."""
    old = judge.states.before.roles.get((scope, name))
    rules = (_readable(judge.states.before, old) or []) if old is not None else []
    if old is not None and _collects_everything(old):
        return {_EVERY_ROLE}
    return set(judge.old.powers((rule, scope) for rule in rules))


def _readable(known: RbacObjects, role: JsonObject) -> list[PolicyRule] | None:
    try:
        return rbac.role_rules(known, role)
    except InvalidManifest:
        return None


def told(found: Sequence[BypassPower]) -> dict[str, Any]:
    """Powers for a message, the worst means first; who may do everything may do all the rest."""
    is_all = found[0].what == "do-everything"
    return {"told": "everything" if is_all else "all", "powers": list(map(_phrase_of, found))}


def _phrase_of(power: BypassPower) -> Phrase:
    shown: dict[str, Any] = {"what": power.what, "place": power.place, "scope": power.scope, "names": power.names}
    if power.installers is not None:
        shown |= {"home": "named" if power.installers else "unnamed", "installers": power.installers}
    return Phrase.of(_POWER.id, "powers.power", **shown)


def _finding(
    variant: str,
    ref: ObjectRef,
    found: Sequence[BypassPower],
    *,
    where: tuple[str | int, ...] = (),
    accounts: Sequence[RbacSubject] = (),
    **params: Any,
) -> Finding:
    key = [*(power.key for power in found), *map(str, accounts)]
    params |= {"accounts": accounts} if accounts else {}
    made = _POWER.finding(variant, ref, where=where, key=key, advice=advice_of(_POWER), **told(found), **params)
    return replace(made, severity=_weight(found))
