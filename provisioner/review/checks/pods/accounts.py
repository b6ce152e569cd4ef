"""The accounts that pods run as: another one than before, or a strong one of somebody else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from provisioner.rbac import RbacSubject
from provisioner.review.base.claims import PODS, Claim
from provisioner.review.base.facts import STATED, Check, Facts, Reads, ReviewRule
from provisioner.review.rights.accounts import AccountPowers, Gain, account_of
from provisioner.review.rights.permission_words import rules_record, words_of
from provisioner.review.rules import Phrase
from provisioner.review.workloads.pod_specs import PodSpec, pod_specs
from provisioner.review.workloads.workload_changes import PodChange, pod_changes
from provisioner.values import Action, Finding, GroupKind, Section, Severity

_MOVED = ReviewRule("POD-32", Section.PODS, Severity.NOTABLE)
_GAINING = ReviewRule("POD-32", Section.PODS, Severity.DANGEROUS)
_GAINING_CRITICAL = ReviewRule("POD-32", Section.PODS, Severity.CRITICAL)
_UNKNOWN = ReviewRule("POD-32", Section.PODS, Severity.UNKNOWN)

_ACCOUNT = GroupKind("", "ServiceAccount")


def _changes(facts: Facts) -> Iterator[Finding]:
    place = facts.content.install_namespace
    changes = pod_changes(facts.plan)
    moved = [one for one in changes if account_of(one.before, place) != account_of(one.after, place)]
    created = list(_created_as_others(facts))
    if not (moved or created):
        return
    powers = AccountPowers.of(facts)
    for one in moved:
        yield _of_move(one, account_of(one.before, place), account_of(one.after, place), powers)
    for pod in created:
        yield from _of_created(pod, account_of(pod, place), powers)


def _of_move(change: PodChange, old: RbacSubject, new: RbacSubject, powers: AccountPowers) -> Finding:
    gain = powers.gained(old, new)
    rule, variant = _judged(gain)
    params: dict[str, Any] = {"before": str(old), "after": str(new), "account": new.name, "old_account": old.name}
    stated = {STATED: Phrase.of(_MOVED.id, "stated.moved", subject=change.ref, **params)}
    key = [str(old), str(new), gain.sense]
    where = (*change.after.path, "serviceAccountName")
    return rule.finding(variant, change.ref, where=where, key=key, **params, **stated, **_params(gain))


def _judged(gain: Gain) -> tuple[ReviewRule, str]:
    if gain.risks:
        return _of_risks(gain), "gains"
    if gain.unknown:
        return _UNKNOWN, "unknown"
    return _MOVED, "may-do-more" if gain.added else "may-do-no-more"


def _of_risks(gain: Gain) -> ReviewRule:
    """As bad as what is gained: to run as an account is to have its rights."""
    return _GAINING_CRITICAL if any(risk.severity is Severity.CRITICAL for risk in gain.risks) else _GAINING


def _params(gain: Gain) -> dict[str, Any]:
    params = {"powers": gain.powers, "added": rules_record(gain.added), "rights": words_of(gain.added) or None}
    return {**params, "unknown": list(gain.unknown) or None}


def _created_as_others(facts: Facts) -> Iterator[PodSpec]:
    """New objects whose pods run as accounts that the bundle neither brings nor used before."""
    place = facts.content.install_namespace
    new = {one.ref.identity for one in facts.plan.actions if one.action is Action.CREATE}
    used = {account_of(pod, place) for pod in pod_specs(facts.previous_state().objects)}
    own = (ref for ref, _ in facts.state().named if ref.group_kind == _ACCOUNT)
    used |= {RbacSubject("ServiceAccount", ref.name, ref.namespace or place) for ref in own}
    for pod in pod_specs(facts.state().objects):
        if pod.ref.identity in new and account_of(pod, place) not in used:
            yield pod


def _of_created(pod: PodSpec, account: RbacSubject, powers: AccountPowers) -> Iterator[Finding]:
    """What is not known here is said where the account is looked for (SEC-04) or roles could not be read."""
    gain = powers.gained(None, account)
    if gain.risks:
        params: dict[str, Any] = {"after": str(account), "account": account.name}
        stated = {STATED: Phrase.of(_MOVED.id, "stated.new", subject=pod.ref, **params)}
        where, key = (*pod.path, "serviceAccountName"), [str(account), gain.sense]
        rule = _of_risks(gain)
        yield rule.finding("new-with-powers", pod.ref, where=where, key=key, **params, **stated, **_params(gain))


_CLAIMS = (Claim("POD-32", PODS, ("{pod}.serviceAccountName", "{pod}.serviceAccount")),)
CHECK = Check("accounts", changes=_changes, claims=_CLAIMS, reads=frozenset({Reads.ROLES}))
