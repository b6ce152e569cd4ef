"""The checks over one change, however often it is looked at: a check runs again only where what it reads differs.

Each check is given what it declares (`Check.reads`) and nothing else of the cluster. So what it finds is made of that
alone, and a look that differs in nothing that it reads finds the same (S09).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from provisioner.review.base.facts import Facts, Reads, RolesNotGiven
from provisioner.review.foreign import bundle_of
from provisioner.review.server_fields import as_wished
from provisioner.values import PlannedAction

_T = TypeVar("_T")


@dataclass(eq=False)
class Looks:
    """What checks found in these facts, by what they were given: objects are told apart by identity, and kept."""

    found: dict[Any, Any] = field(default_factory=dict)
    facts: dict[Any, Facts] = field(default_factory=dict)
    no_roles: RolesNotGiven | None = None
    plain: dict[int, tuple[PlannedAction, PlannedAction]] = field(default_factory=dict)

    def once(self, what: object, given: Facts, work: Callable[[Facts], _T]) -> _T:
        """What `work`, which is named `what`, makes of what it is `given`."""
        key = (what, id(given))
        if key not in self.found:
            self.found[key] = work(given)
        found: _T = self.found[key]
        return found

    def given(self, facts: Facts, reads: frozenset[Reads]) -> Facts:
        """`facts` with that of the cluster which is read; the same object where nothing of it differs."""
        if facts.bundle is None:
            return self.facts.setdefault(id(facts), facts)
        plan = facts.plan
        shown = facts.choices_of if Reads.CHOICES in reads else frozenset()
        if shown is not None:
            bundle = bundle_of(facts)
            kept = (
                one if one.ref.identity in shown else self._as_wished(one, bundle.get(one.ref.identity))
                for one in plan.actions
            )
            plan = replace(plan, actions=tuple(kept))
        live = facts.live if Reads.LIVE in reads else {}
        lists = facts.around.lists if Reads.LIVE in reads else {}
        if self.no_roles is None and facts.live_rbac is not None:
            self.no_roles = RolesNotGiven(facts.salt)
        roles = facts.live_rbac if Reads.ROLES in reads else self.no_roles
        ids: Sequence[object] = (
            *map(id, plan.actions),
            *((key, id(obj)) for key, obj in live.items()),
            *((key, id(listed)) for key, listed in lists.items()),
        )
        key = (facts.hides_old_names, id(facts.previous), id(roles), *ids)
        if key not in self.facts:
            around = replace(facts.around, lists=lists)
            self.facts[key] = replace(facts, plan=plan, live=live, live_rbac=roles, around=around)
        return self.facts[key]

    def _as_wished(self, planned: PlannedAction, wished: PlannedAction | None) -> PlannedAction:
        if id(planned) not in self.plain:
            self.plain[id(planned)] = (planned, as_wished(planned, wished))
        return self.plain[id(planned)][1]
