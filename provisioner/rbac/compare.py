"""What a subject may do that it could not do before, whatever the roles are called and however they are cut."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from provisioner.errors import TooManyRights
from provisioner.rbac.effective import EffectiveRules
from provisioner.rbac.objects import CLUSTER
from provisioner.rbac.rules import MAX_ATOMS, PolicyRule, compact, covers, size
from provisioner.values import ObjectRef

# Three comparisons as large as one may be: some seconds in all, however many accounts a bundle binds.
MAX_ATOMS_OF_BUNDLE = 3 * MAX_ATOMS


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


@dataclass(slots=True)
class Comparisons:
    """The comparisons of one bundle, which may break down no more than `left` atoms in all."""

    left: int = MAX_ATOMS_OF_BUNDLE

    def diff(self, old: EffectiveRules, new: EffectiveRules) -> PermissionDiff:
        """What `diff` says; raises TooManyRights, too, once the atoms of the bundle are used up."""
        if not self.left:
            raise TooManyRights(
                f"{_largest((old, new))}: more than {MAX_ATOMS_OF_BUNDLE} single rights were compared before, "
                f"allowed are {MAX_ATOMS_OF_BUNDLE} for one bundle: look at it in smaller parts",
                found=MAX_ATOMS_OF_BUNDLE,
            )
        try:
            found, atoms = _diff(old, new)
        except TooManyRights:
            self.left = max(0, self.left - MAX_ATOMS)
            raise
        self.left = max(0, self.left - atoms)
        return found


def diff(old: EffectiveRules, new: EffectiveRules) -> PermissionDiff:
    """The rights gained and lost between `old` and `new`, compared by covering, in minimal rules.

    A right that is gained for the whole cluster is not listed again for a namespace. Raises TooManyRights, which names
    the role that grants most, past MAX_ATOMS on either side.
    """
    return _diff(old, new)[0]


def _diff(old: EffectiveRules, new: EffectiveRules) -> tuple[PermissionDiff, int]:
    """The difference, and how many atoms it took."""
    added, gained = _beyond(old, new)
    removed, lost = _beyond(new, old)
    return PermissionDiff(added=tuple(added), removed=tuple(removed)), gained + lost


def _beyond(known: EffectiveRules, other: EffectiveRules) -> tuple[list[ScopedRule], int]:
    """The rights of `other` that `known` does not hold, and how many atoms were broken down for them."""
    left: dict[str, list[PolicyRule]] = {}
    for scope in other.scopes:
        held = known.rules_in(scope) if scope == CLUSTER else [*known.rules_in(scope), *other.at(CLUSTER)]
        granted = other.at(scope)
        if scope != CLUSTER:  # URLs are no part of any namespace and grant nothing there
            granted = [PolicyRule(rule.verbs, rule.api_groups, rule.resources, rule.resource_names) for rule in granted]
        if set(granted) <= set(held):
            continue
        try:
            left[scope] = compact(covers(held, granted).missing)
        except TooManyRights as exc:
            raise TooManyRights(f"{_largest([other])}: {exc}", found=exc.found) from exc
        atoms = sum(size(rule) for rules in left.values() for rule in rules)
        if atoms > MAX_ATOMS:
            raise TooManyRights(
                f"{_largest([other])}: found {atoms} single rights in {len(left)} places, "
                f"allowed are {MAX_ATOMS}: grant fewer in one rule, or in fewer places",
                found=atoms,
            )
    found = [ScopedRule(scope, rule) for scope, rules in left.items() for rule in rules]
    return found, sum(size(one.rule) for one in found)


def _largest(sides: Iterable[EffectiveRules]) -> str:
    """The role that grants most, with how much."""
    total: dict[ObjectRef, int] = {}
    for side in sides:
        by_role: dict[ObjectRef, dict[int, PolicyRule]] = {}
        for grant in side.grants:
            by_role.setdefault(grant.origin, {})[grant.rule_index] = grant.rule
        for role, rules in by_role.items():
            total[role] = max(total.get(role, 0), sum(map(size, rules.values())))
    if not total:
        return "no role grants 0 single rights"
    largest = max(sorted(total), key=lambda it: total[it])
    return f"{largest} grants {total[largest]} single rights"
