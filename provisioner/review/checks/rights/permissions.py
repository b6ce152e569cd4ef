"""Who may do what afterwards that they could not do before, whatever roles are called and however they are cut."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from provisioner import rbac
from provisioner.api_groups import RBAC_GROUP
from provisioner.errors import TooManyRights
from provisioner.rbac import EffectiveRules, PermissionDiff, RbacSubject
from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, Reads, ReviewRule, mapping
from provisioner.review.rights.accounts import (
    BINDINGS,
    CLOUD_IDENTITIES,
    account_ref,
    bound_accounts,
    exposed_accounts,
    moved_bindings,
    of_accounts,
)
from provisioner.review.rights.permission_words import (
    about,
    files_of,
    ref_of,
    rights_in,
    rules_record,
    table,
    ways,
    ways_of,
    words_of,
)
from provisioner.review.rights.renamed_roles import RbacBeforeAfter, rbac_before_after_of
from provisioner.review.rights.role_holders import (
    altered_by,
    effects,
    is_given_by_bundle,
    lost_though_used,
    of_combinations,
    of_everybody,
    pods_of,
)
from provisioner.review.rules import Phrase
from provisioner.review.rules.files import power_of
from provisioner.review.workloads.pod_specs import runs_pods
from provisioner.values import (
    Action,
    Content,
    Finding,
    GroupKind,
    ObjectIdentity,
    ObjectRef,
    Plan,
    Section,
    Severity,
)

_GAINED = ReviewRule("RB-DIFF", Section.PERMISSIONS, Severity.NOTABLE)
_LOST = ReviewRule("RB-LESS", Section.PERMISSIONS, Severity.SAFE)
_LOST_BY_PODS = ReviewRule("RB-LESS", Section.PERMISSIONS, Severity.NOTABLE)
_LOST_THOUGH_USED = ReviewRule("RB-LESS", Section.PERMISSIONS, Severity.DANGEROUS)
_SAME = ReviewRule("RB-SAME", Section.PERMISSIONS, Severity.SAFE)
_WIDENS = ReviewRule("RB-09", Section.PERMISSIONS, Severity.DANGEROUS)
_NO_ROLE = ReviewRule("RB-45", Section.PERMISSIONS, Severity.NOTABLE)
_ROLE_UNKNOWN = ReviewRule("RB-45", Section.PERMISSIONS, Severity.UNKNOWN)
_UNREADABLE = ReviewRule("RB-00", Section.PERMISSIONS, Severity.UNKNOWN)


@dataclass(frozen=True, slots=True)
class _Account:
    """What somebody holds on both sides."""

    subject: RbacSubject
    old: EffectiveRules
    new: EffectiveRules

    @classmethod
    def of(cls, subject: RbacSubject, states: RbacBeforeAfter) -> _Account:
        return cls(subject, *(rbac.effective_rules(subject.identity, side) for side in (states.before, states.after)))


def _changes(facts: Facts) -> Iterator[Finding]:
    yield from moved_bindings(facts)
    yield from _of_exposed_accounts(facts)
    if not _is_concerned(facts):
        return
    states, files = rbac_before_after_of(facts), files_of(facts.content)
    who_changes, sensitive = altered_by(facts), facts.content.install_namespace
    found = effects(who_changes.roles, [sensitive])
    once = [
        *_of_missing_roles(facts, states),
        *of_everybody(found, files),
        *of_combinations(states, found, [sensitive]),
    ]
    yield from once
    differs, comparisons = bool(once), rbac.Comparisons()
    for subject in who_changes.accounts:
        account = _Account.of(subject, states)
        try:
            delta = comparisons.diff(account.old, account.new)
        except TooManyRights as exc:
            differs = True
            yield from _of_risks(account, sensitive, files)
            yield _UNREADABLE.finding("undecided", ref_of(subject), key=str(exc), problem=str(exc))
        else:
            differs = differs or not delta.is_empty or bool(account.new.problems)
            is_told_whole = subject in states.accounts or not delta.is_empty
            yield from _of_risks(account, sensitive, files, only_of=None if is_told_whole else states)
            yield from _of_difference(account, delta, facts, files)
        yield from _of_problems(subject, account.new)
    if not differs and _touches_roles(facts):
        yield _SAME.finding("same", None)


def _of_exposed_accounts(facts: Facts) -> Iterator[Finding]:
    if not any(runs_pods(one.ref.group_kind) for one in facts.plan.actions):
        return
    states = rbac_before_after_of(facts)
    known = {one.fingerprint for one in exposed_accounts(facts.previous_state(), states.before)}
    for one in exposed_accounts(facts.state(), states.after):
        yield replace(one, is_new=one.fingerprint not in known)


def _wants(content: Content, _: Plan) -> Iterator[ObjectRef]:
    bodies = tuple(one.body for one in content.manifests)
    own = {ObjectRef.of(body) for body in bodies}
    yield from sorted({account_ref(subject) for _, subject in bound_accounts(bodies)} - own)


def _is_concerned(facts: Facts) -> bool:
    refs = [one.ref for one in facts.plan.actions]
    return any(ref.group == RBAC_GROUP for ref in refs)


def _touches_roles(facts: Facts) -> bool:
    return any(one.ref.group == RBAC_GROUP and one.action is not Action.NONE for one in facts.plan.actions)


def _of_difference(
    account: _Account, delta: PermissionDiff, facts: Facts, files: Mapping[ObjectIdentity, str]
) -> Iterator[Finding]:
    """All rights gained and lost, in minimal rules; the risky ones among them have findings of their own."""
    subject = account.subject
    told, ref = table(delta), ref_of(subject)
    if delta.added:
        gained, by = rules_record(delta.added), ways(account.new, delta.added, files)
        rights, words = rights_in(delta.added), words_of(delta.added)
        made = _GAINED.finding("gains", ref, key=gained, table=told, added=gained, by=by, rights=rights, rules=words)
        yield about(made, subject)
    if delta.removed:
        lost, rights, words = rules_record(delta.removed), rights_in(delta.removed), words_of(delta.removed)
        rule, variant, used = _LOST, "loses", dict[str, Any]()
        if pods := pods_of(facts, subject):
            rule, variant, used = _LOST_BY_PODS, "loses-while-pods-run", {"pods": sorted({pod.ref for pod in pods})}
            if needs := lost_though_used(facts, subject, account.old, account.new):
                rule, variant, used["needs"] = _LOST_THOUGH_USED, "loses-what-pods-use", needs
        yield about(
            rule.finding(variant, ref, key=lost, table=told, removed=lost, rights=rights, rules=words, **used), subject
        )


def _of_problems(subject: RbacSubject, new: EffectiveRules) -> Iterator[Finding]:
    for problem in new.problems:
        if not problem.is_missing:
            key = [str(problem.ref), problem.index]
            yield _UNREADABLE.finding("partly-known", ref_of(subject), key=key, account=subject, problem=problem)


def _of_missing_roles(facts: Facts, states: RbacBeforeAfter) -> Iterator[Finding]:
    """Bindings that stay, to roles that nobody has, or that nobody could look up."""
    before = {ref.identity: binding for ref, binding in facts.previous_state().named}
    kept = [one.ref for one in facts.plan.actions if one.action is Action.ORPHAN and one.ref.identity in before]
    for ref, binding in (*facts.state().named, *((ref, before[ref.identity]) for ref in kept)):
        if ref.group_kind not in BINDINGS or states.after.role_of(binding) is not None:
            continue
        wanted = mapping(binding.get("roleRef"))
        role = f"{wanted.get('kind')} {wanted.get('name')}"
        is_lost = states.before.role_of(binding) is not None
        if is_lost:
            rule, variant = _NO_ROLE, "deleted"
        else:
            rule, variant = (_NO_ROLE, "absent") if states.is_whole else (_ROLE_UNKNOWN, "not-in-bundle")
        is_new = ref.identity not in before or is_lost
        yield replace(rule.finding(variant, ref, where=("roleRef",), key=role, role=role), is_new=is_new)


def _of_risks(
    account: _Account, sensitive: str, files: Mapping[ObjectIdentity, str], only_of: RbacBeforeAfter | None = None
) -> Iterator[Finding]:
    """A sentence for each risky power; what everything implies stands under the power over everything.

    `only_of` leaves out what has nothing to do with the bundle: what somebody holds anyway whose rights stay the same.
    """
    subject = account.subject
    known = {(risk.id, risk.scope, risk.sense) for risk in rbac.risks(account.old, sensitive=[sensitive])}
    found = rbac.risks(account.new, sensitive=[sensitive])
    for risk in found:
        if risk.implied_by or (only_of and not any(is_given_by_bundle(one, only_of) for one in risk.evidence)):
            continue
        is_known = risk.is_among(known)
        implied = {
            Phrase.of(one.id, "power.implied", rule=one.id, power=power_of(one))
            for one in found
            if one.implied_by == risk.id
        }
        variant, name = ("holds", "held") if risk.what == rbac.HELD else ("can", "power")
        shown: dict[str, Any] = {name: power_of(risk), "implies": sorted(implied), "scope": risk.scope}
        made = ReviewRule(risk.id, Section.PERMISSIONS, risk.severity).finding(
            variant if is_known else f"{variant}-newly",
            ref_of(subject),
            key=[risk.scope, *risk.sense],
            by=ways_of(risk.evidence, files),
            **shown,
        )
        yield replace(about(made, subject), is_new=not is_known)


_ROLES = frozenset(GroupKind(RBAC_GROUP, kind) for kind in ("ClusterRole", "Role"))
_NO_EFFECT = (
    "What roles and bindings allow together is compared: a change that gives and takes no right is none (RB-SAME)"
)
_CLAIMS = (
    Claim("RB-DIFF", _ROLES, ("rules", "aggregationRule"), harmless=_NO_EFFECT),
    Claim("RB-DIFF", frozenset(BINDINGS), ("subjects", "roleRef"), harmless=_NO_EFFECT),
    Claim(
        "RB-09",
        frozenset({GroupKind(RBAC_GROUP, "ClusterRole")}),
        ("metadata.labels.[rbac.authorization.k8s.io/aggregate-to-*]",),
        harmless=_NO_EFFECT,
    ),
    Claim(
        "RB-51",
        frozenset({GroupKind("", "ServiceAccount")}),
        tuple(f"metadata.annotations.[{key}]" for key in sorted(CLOUD_IDENTITIES)),
        is_of_new=True,
    ),
)

CHECK = Check(
    "permissions", claims=_CLAIMS, changes=_changes, standing=of_accounts, wants=_wants, reads=frozenset({Reads.ROLES})
)
