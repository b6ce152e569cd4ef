"""What a subject may do that it could not do before, whatever the roles are called and however they are cut."""

from __future__ import annotations

from dataclasses import dataclass

from provisioner.rbac.effective import CLUSTER, EffectiveRules
from provisioner.rbac.rules import PolicyRule, compact, covers


@dataclass(frozen=True, slots=True)
class ScopedRule:
    """A rule and where it counts: `scope` is "" for the whole cluster, else a namespace."""

    scope: str
    rule: PolicyRule


@dataclass(frozen=True, slots=True)
class PermissionDiff:
    added: tuple[ScopedRule, ...] = ()
    removed: tuple[ScopedRule, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True where roles may have been split, merged or renamed, but nobody can do anything else."""
        return not self.added and not self.removed


def diff(old: EffectiveRules, new: EffectiveRules) -> PermissionDiff:
    """The rights gained and lost between `old` and `new`, compared by covering, in minimal rules.

    A right that is gained for the whole cluster is not listed again for a namespace.
    """
    return PermissionDiff(added=tuple(_beyond(old, new)), removed=tuple(_beyond(new, old)))


def _beyond(known: EffectiveRules, other: EffectiveRules) -> list[ScopedRule]:
    """The rights of `other` that `known` does not hold."""
    found = []
    for scope in other.scopes:
        held = known.rules_in(scope) if scope == CLUSTER else [*known.rules_in(scope), *other.at(CLUSTER)]
        granted = other.at(scope) if scope == CLUSTER else _resource_rules(other.at(scope))
        found += [ScopedRule(scope, rule) for rule in compact(covers(held, granted).missing)]
    return found


def _resource_rules(rules: list[PolicyRule]) -> list[PolicyRule]:
    """Rules as a namespace sees them: URLs are no part of any namespace and grant nothing there."""
    return [PolicyRule(rule.verbs, rule.api_groups, rule.resources, rule.resource_names) for rule in rules]
