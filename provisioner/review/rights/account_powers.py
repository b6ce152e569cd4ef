"""What one account may do that another may not: what pods gain by running as it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from provisioner import rbac
from provisioner.errors import TooManyRights
from provisioner.rbac import EffectiveRules, RbacSubject, Risk, RoleProblem, ScopedRule
from provisioner.review.base.facts import Facts
from provisioner.review.rights.rbac_before_after import RbacBeforeAfter, rbac_before_after_of
from provisioner.review.rules import Phrase
from provisioner.review.rules.risk_words import sentence_of
from provisioner.review.workloads.pod_specs import PodSpec
from provisioner.values import GroupKind, Severity

_ACCOUNT = GroupKind("", "ServiceAccount")


@dataclass(frozen=True, slots=True)
class Gain:
    """`risks` are the dangerous ones, `added` all rights that are more; `unknown` why nobody knows, as POD-32 names the
    reasons."""

    risks: tuple[Risk, ...] = ()
    added: tuple[ScopedRule, ...] = ()
    unknown: tuple[str | Mapping[str, RoleProblem], ...] = ()

    @property
    def powers(self) -> list[Phrase]:
        """The risks as sentences of the account."""
        return list(map(sentence_of, self.risks))

    @property
    def sense(self) -> list[tuple[object, ...]]:
        """The risks as what makes a finding of them this one."""
        return [(risk.id, risk.scope, *risk.sense) for risk in self.risks]


def account_of(pod: PodSpec, install_namespace: str) -> RbacSubject:
    """The account that a pod runs as."""
    return RbacSubject("ServiceAccount", pod.account, pod.ref.namespace or install_namespace)


@dataclass(frozen=True, slots=True)
class AccountPowers:
    """The powers of accounts before and after a change, as far as roles and bindings are known."""

    states: RbacBeforeAfter
    brought: frozenset[RbacSubject]
    install_namespace: str
    is_unread: bool

    @classmethod
    def of(cls, facts: Facts) -> AccountPowers:
        states = rbac_before_after_of(facts)
        refs = (ref for ref, _ in facts.state().named if ref.group_kind == _ACCOUNT)
        place = facts.content.install_namespace
        brought = frozenset(RbacSubject("ServiceAccount", ref.name, ref.namespace or place) for ref in refs)
        return cls(states, brought, place, facts.live_rbac is None and not facts.is_offline)

    def gained(self, old: RbacSubject | None, new: RbacSubject) -> Gain:
        """What `new` may do after the change that `old` may not before it; without `old`, all that it may do."""
        before = rbac.effective_rules(old.identity, self.states.before) if old else EffectiveRules(new.identity)
        after = rbac.effective_rules(new.identity, self.states.after)
        known = {(risk.id, risk.scope, risk.sense) for risk in self._risks(before)}
        gained = tuple(
            risk
            for risk in self._risks(after)
            if risk.severity.is_at_least(Severity.DANGEROUS) and not risk.is_among(known)
        )
        try:
            added = rbac.diff(before, after).added
        except TooManyRights:
            return Gain(gained, unknown=("too-many",))
        return Gain(gained, added, tuple(self._unknown(new, after)))

    def _risks(self, held: EffectiveRules) -> list[Risk]:
        return [one for one in rbac.risks(held, sensitive=[self.install_namespace]) if not one.implied_by]

    def _unknown(self, account: RbacSubject, held: EffectiveRules) -> Iterator[str | Mapping[str, RoleProblem]]:
        """Without the roles of the cluster, only what a bundle brings is known, and what it binds."""
        if self.is_unread:
            yield "unread"
        elif not self.states.is_whole and account not in self.brought:
            yield "not-of-bundle"
        found = (one for one in held.problems if not (self.states.is_whole and one.is_missing))
        yield from ({"words": one} for one in found)
