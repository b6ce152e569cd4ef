"""Who may do what afterwards that they could not do before, whatever roles are called and however they are cut; whether
everybody may; and whether the installing account may do all that the content needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from provisioner import rbac
from provisioner.api_groups import RBAC_GROUP
from provisioner.errors import TooManyRights
from provisioner.json_values import mapping
from provisioner.rbac import PUBLIC_ROLES_OF_KUBERNETES, WIDE_SUBJECTS, EffectiveRules, PermissionDiff, RbacSubject
from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, Reads, ReviewRule, StateFacts
from provisioner.review.preflight.findings import namespaces, preflight_findings
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
    JsonObject,
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
_NO_ROLE = ReviewRule("RB-45", Section.PERMISSIONS, Severity.NOTABLE)
_ROLE_UNKNOWN = ReviewRule("RB-45", Section.PERMISSIONS, Severity.UNKNOWN)
_UNREADABLE = ReviewRule("RB-00", Section.PERMISSIONS, Severity.UNKNOWN)
_EVERY_ACCOUNT = ReviewRule("RB-43", Section.PERMISSIONS, Severity.DANGEROUS)
_OF_A_NAMESPACE = "system:serviceaccounts:"


@dataclass(frozen=True, slots=True)
class _Account:
    """What somebody holds on both sides."""

    subject: RbacSubject
    old: EffectiveRules
    new: EffectiveRules

    @classmethod
    def of(cls, subject: RbacSubject, states: RbacBeforeAfter) -> _Account:
        return cls(subject, *(rbac.effective_rules(subject.identity, side) for side in (states.before, states.after)))


def compare_permissions(facts: Facts) -> Iterator[Finding]:
    yield from moved_bindings(facts)
    if any(runs_pods(planned.ref.group_kind) for planned in facts.plan.actions):
        roles = rbac_before_after_of(facts)
        known = {finding.fingerprint for finding in exposed_accounts(facts.previous_state(), roles.before)}
        for finding in exposed_accounts(facts.state(), roles.after):
            yield replace(finding, is_new=finding.fingerprint not in known)
    changed = [planned for planned in facts.plan.actions if planned.ref.group == RBAC_GROUP]
    if not changed:
        return
    states, files = rbac_before_after_of(facts), files_of(facts.content)
    altered, sensitive = altered_by(facts), facts.content.install_namespace
    found = effects(altered.roles, [sensitive])
    once = [
        *_find_missing_roles(facts, states),
        *of_everybody(found, files),
        *of_combinations(states, found, [sensitive]),
    ]
    yield from once
    differs, comparisons = bool(once), rbac.Comparisons()
    for subject in altered.accounts:
        account = _Account.of(subject, states)
        try:
            delta = comparisons.diff(account.old, account.new)
        except TooManyRights as exc:
            differs = True
            yield from _find_risks(account, sensitive, files)
            yield _UNREADABLE.finding("undecided", ref_of(subject), key=str(exc), problem=str(exc))
        else:
            differs = differs or not delta.is_empty or bool(account.new.problems)
            is_told_whole = subject in states.accounts or not delta.is_empty
            yield from _find_risks(account, sensitive, files, only_of=None if is_told_whole else states)
            yield from _compare_account(account, delta, facts, files)
        for problem in account.new.problems:
            if not problem.is_missing:
                key = [str(problem.ref), problem.index]
                yield _UNREADABLE.finding("partly-known", ref_of(subject), key=key, account=subject, problem=problem)
    if not differs and any(planned.action is not Action.NONE for planned in changed):
        yield _SAME.finding("same", None)


def want_accounts(content: Content, _: Plan) -> Iterator[ObjectRef]:
    bodies = tuple(manifest.body for manifest in content.manifests)
    own = {ObjectRef.of(body) for body in bodies}
    yield from sorted({account_ref(subject) for _, subject in bound_accounts(bodies)} - own)


def _compare_account(
    account: _Account, delta: PermissionDiff, facts: Facts, files: Mapping[ObjectIdentity, str]
) -> Iterator[Finding]:
    """Find all rights gained and lost, in minimal rules; the risky ones among them have findings of their own."""
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


def _find_missing_roles(facts: Facts, states: RbacBeforeAfter) -> Iterator[Finding]:
    """Find bindings that stay, to roles that nobody has, or that nobody could look up."""
    before = {ref.identity: binding for ref, binding in facts.previous_state().named}
    orphaned = [planned.ref for planned in facts.plan.actions if planned.action is Action.ORPHAN]
    kept = [(ref, before[ref.identity]) for ref in orphaned if ref.identity in before]
    for ref, binding in (*facts.state().named, *kept):
        if ref.group_kind not in BINDINGS or states.after.role_of(binding) is not None:
            continue
        role = " ".join(_role_of(binding))
        is_lost = states.before.role_of(binding) is not None
        if is_lost:
            rule, variant = _NO_ROLE, "deleted"
        else:
            rule, variant = (_NO_ROLE, "absent") if states.is_whole else (_ROLE_UNKNOWN, "not-in-bundle")
        is_new = ref.identity not in before or is_lost
        yield replace(rule.finding(variant, ref, where=("roleRef",), key=role, role=role), is_new=is_new)


def _role_of(binding: JsonObject) -> tuple[str, str]:
    wanted = mapping(binding.get("roleRef"))
    return str(wanted.get("kind")), str(wanted.get("name"))


def _find_risks(
    account: _Account, sensitive: str, files: Mapping[ObjectIdentity, str], only_of: RbacBeforeAfter | None = None
) -> Iterator[Finding]:
    """Yield a sentence for each risky power; what everything implies stands under the power over everything.

    `only_of` leaves out what has nothing to do with the bundle: what somebody holds anyway whose rights stay the same.
    """
    subject = account.subject
    known = {(risk.id, risk.scope, risk.sense) for risk in rbac.risks(account.old, sensitive=[sensitive])}
    found = rbac.risks(account.new, sensitive=[sensitive])
    for risk in found:
        if risk.implied_by or (only_of and not any(is_given_by_bundle(grant, only_of) for grant in risk.evidence)):
            continue
        is_known = risk.is_among(known)
        implied = {
            Phrase.of(other.id, "power.implied", rule=other.id, power=power_of(other))
            for other in found
            if other.implied_by == risk.id
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


def compare_wide_bindings(facts: Facts) -> Iterator[Finding]:
    """Find bindings for groups that everybody is in, whatever the role holds: also one that nobody can look up.

    What a known role gives them is said where rights are compared. This is the rest (RB-40 to 43): a role that is not
    in the bundle and not known, that does not exist, or that holds nothing yet.
    """
    bound = list(_find_wide_bindings(facts.state()))
    if not bound:
        return
    states = rbac_before_after_of(facts)
    known = {(ref, subject, _role_of(body)) for ref, body, subject, _, _ in _find_wide_bindings(facts.previous_state())}
    for ref, body, subject, rule, whose in bound:
        kind, role = _role_of(body)
        if states.after.role_of(body) is None:
            # Of Kubernetes itself, and made anew by it as they should be.
            is_said = kind == "ClusterRole" and role in PUBLIC_ROLES_OF_KUBERNETES
        else:
            held = rbac.effective_rules(subject.identity, states.after).grants
            is_said = any(grant.binding.identity == ref.identity for grant in held)
        if is_said:
            continue
        is_known = (ref, subject, (kind, role)) in known
        found = rule.finding(
            "bound" if is_known else "bound-newly",
            ref_of(subject),
            key=[str(ref), kind, role],
            kind=kind,
            role=role,
            binding=ref,
            whose=whose,
            namespace=subject.name.removeprefix(_OF_A_NAMESPACE) if whose == "namespace" else None,
        )
        yield replace(about(found, subject), is_new=not is_known)


def _find_wide_bindings(state: StateFacts) -> Iterator[tuple[ObjectRef, JsonObject, RbacSubject, ReviewRule, str]]:
    """Yield each binding of a wide subject, with the rule about it and whom it stands for."""
    for ref, body in state.named:
        for subject in dict.fromkeys(rbac.binding_subjects(body)) if ref.group_kind in BINDINGS else ():
            if found := WIDE_SUBJECTS.get((subject.kind, subject.name)):
                rule, _, severity, whose = found
                yield ref, body, subject, ReviewRule(rule, Section.PERMISSIONS, severity), whose
            elif subject.kind == "Group" and subject.name.startswith(_OF_A_NAMESPACE):
                yield ref, body, subject, _EVERY_ACCOUNT, "namespace"


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
_READS = frozenset({Reads.ROLES})

PERMISSIONS_CHECK = Check(
    "permissions", claims=_CLAIMS, changes=compare_permissions, standing=of_accounts, wants=want_accounts, reads=_READS
)
EVERYBODY_CHECK = Check("groups that everybody is in", changes=compare_wide_bindings, reads=_READS)
# May the installing account do all that the content needs, and what exactly is it lacking (PRE-01 to PRE-12).
PREFLIGHT_CHECK = Check("preflight", changes=preflight_findings, mentions=namespaces, reads=_READS)
