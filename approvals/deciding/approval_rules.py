"""ApprovalRule: who has to approve the requests that it selects, beside PRATIQUE_APPROVALS_NEEDED. PURE."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import combinations
from typing import Any, ClassVar, Self

from approvals.deciding.kinds import DecidingKind, FormField
from approvals.deciding.selector import Selector
from approvals.deciding.spec_fields import LONGEST_TEXT, SpecFields
from approvals.policy.expression import MAX_EXPRESSION

# These bound what `list_missing` may have to try: at most some thousand combinations of what is missing.
MOST_PARTS, MOST_OF_A_PART, MOST_TOGETHER = 6, 10, 20
MOST_HOURS = 720
Missing = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Voter:
    """One who approves, as they are known on the cluster. A policy has its name in `policy`, and no groups."""

    username: str
    groups: frozenset[str] = frozenset()
    cluster_roles: frozenset[str] = frozenset()
    policy: str = ""
    is_machine: bool = False


@dataclass(frozen=True, slots=True)
class RulePart:
    """So many of these people. Where nobody is listed, everybody who may approve; a machine only where it is listed.

    Whoever counts for one of `distinct_from` does not count here, and the other way round. Members of `escalate_to`
    count as well once the request has waited `escalate_after` hours: then the part `is_escalated`.
    """

    name: str
    count: int = 1
    groups: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    cluster_roles: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    distinct_from: tuple[str, ...] = ()
    escalate_after: int = 0
    escalate_to: tuple[str, ...] = ()
    is_escalated: bool = False

    @classmethod
    def read(cls, fields: SpecFields) -> RulePart:
        found = cls(
            name=fields.text("name"),
            count=fields.number("count", default=1, least=1, most=MOST_OF_A_PART),
            groups=fields.texts("groups"),
            users=fields.texts("users"),
            cluster_roles=fields.texts("clusterRoles"),
            policies=fields.texts("policies"),
            distinct_from=fields.texts("distinctFrom", most=MOST_PARTS),
            escalate_after=fields.number("escalateAfterHours", default=0, least=0, most=MOST_HOURS),
            escalate_to=fields.texts("escalateTo"),
        )
        fields.end()
        if bool(found.escalate_after) != bool(found.escalate_to):
            raise fields.refuse("escalateTo", "and escalateAfterHours are given together: who counts, and from when on")
        if found.escalate_to and found.is_open:
            raise fields.refuse(
                "escalateTo", "needs groups, users, clusterRoles or policies: without, everybody counts"
            )
        return found

    @property
    def is_open(self) -> bool:
        """Whether everybody counts who may approve."""
        return not (self.groups or self.users or self.cluster_roles or self.policies)

    def takes(self, voter: Voter) -> bool:
        if voter.policy:
            return voter.policy in self.policies
        if voter.is_machine or voter.username in self.users:
            return voter.username in self.users
        groups = {*self.groups, *(self.escalate_to if self.is_escalated else ())}
        return self.is_open or bool(voter.groups & groups or voter.cluster_roles & {*self.cluster_roles})

    def needs(self, count: int) -> str:
        """`1 of group security`. Users are counted, not named: everybody reads it who reads the request."""
        listed = [
            *_list("group", [*self.groups, *(self.escalate_to if self.is_escalated else ())]),
            *_list("ClusterRole", self.cluster_roles),
            *_list("policy", self.policies, "policies"),
            *([f"{len(self.users)} listed {'user' if len(self.users) == 1 else 'users'}"] if self.users else []),
        ]
        who = " or ".join(listed) or "all who may approve"
        other = f", not the same people as for {' or '.join(self.distinct_from)}" if self.distinct_from else ""
        waits = self.escalate_to and not self.is_escalated
        later = f"; after {self.escalate_after} hours {' or '.join(self.escalate_to)} as well" if waits else ""
        return f"{count} of {who}{other}{later}"


def _list(word: str, names: Sequence[str], plural: str = "") -> list[str]:
    return [f"{word if len(names) == 1 else plural or f'{word}s'} {', '.join(names)}"] if names else []


@dataclass(frozen=True, slots=True)
class ApprovalRule(DecidingKind):
    """All parts of `require` have to be satisfied. `when` is CEL over the documented facts; "" is always true.

    `carry_over`: approvals of the same risk count again (decision 0100).
    """

    kind: ClassVar[str] = "ApprovalRule"
    plural: ClassVar[str] = "approvalrules"
    slug: ClassVar[str] = "approval-rules"
    words: ClassVar[str] = "approval rule"
    about: ClassVar[str] = (
        "An approval rule says who must approve a request, in addition to the number of approvals that every request "
        "needs."
    )
    after_deletion: ClassVar[str] = (
        "This approves no open request: each request that the rule holds needs one more approval after the deletion."
    )
    form: ClassVar[tuple[FormField, ...]] = (
        FormField(
            "require",
            "Required approvals",
            "YAML: a list of parts, each with a name, a count, and groups, users, clusterRoles or policies. "
            "distinctFrom names the parts that need other people; escalateTo are groups that count as well after "
            "escalateAfterHours.",
            rows=10,
            is_yaml=True,
            is_required=True,
        ),
        FormField(
            "carryOver",
            "Carry approvals over",
            "A new round or request that brings nothing new keeps the approvals of the one before, where every rule "
            "that selects it says so.",
            is_flag=True,
        ),
    )

    description: str
    selector: Selector
    when: str
    require: tuple[RulePart, ...]
    carry_over: bool = False

    @classmethod
    def parse(cls, spec: Mapping[str, Any]) -> Self:
        fields = SpecFields(spec)
        found = cls(
            description=fields.text("description", default="", longest=1000),
            selector=Selector.read(fields.inner("selector")),
            when=fields.text("when", default="", longest=MAX_EXPRESSION),
            require=fields.each("require", RulePart.read, most=MOST_PARTS),
            carry_over=fields.flag("carryOver"),
        )
        fields.end()
        names = [part.name for part in found.require]
        if not names:
            raise fields.refuse("require", "is empty; expected at least one part")
        if len({*names}) != len(names):
            raise fields.refuse("require", "has two parts of one name; expected a name of its own for each")
        for part in found.require:
            if wrong := [other for other in part.distinct_from if other not in names or other == part.name]:
                where = f"of part {part.name} has distinctFrom {wrong[0]!r:.{LONGEST_TEXT}}"
                raise fields.refuse("require", f"{where}; expected the name of another part")
        if (total := sum(part.count for part in found.require)) > MOST_TOGETHER:
            raise fields.refuse("require", f"needs {total} approvals; expected at most {MOST_TOGETHER} together")
        return found

    @property
    def summary(self) -> str:
        return "; ".join(part.needs(part.count) for part in self.require)

    def after(self, waited: timedelta) -> Self:
        """As it is judged of a request that has waited so long for approvals."""
        parts = [
            replace(one, is_escalated=bool(one.escalate_to) and waited >= timedelta(hours=one.escalate_after))
            for one in self.require
        ]
        return replace(self, require=tuple(parts))

    @property
    def escalated_to(self) -> list[str]:
        """The groups of which members count by now, because the request has waited."""
        return sorted({group for part in self.require if part.is_escalated for group in part.escalate_to})

    def list_missing(self, voters: Iterable[Voter]) -> list[str]:
        """What is still needed, in words, when as much is satisfied as can be; [] where all of it is.

        Exact: each voter counts for any of their parts that may have the same people. `open_needs` are all that can be
        left: some thousand at most, by the bounds above.
        """
        open_needs: set[Missing] = {tuple(part.count for part in self.require)}
        for choices in map(self._list_options, voters):
            open_needs |= {_count_for(needs, choice) for needs in open_needs for choice in choices}
        left = min(open_needs, key=lambda needs: (sum(needs), needs))
        return [part.needs(count) for part, count in zip(self.require, left, strict=True) if count]

    def _list_options(self, voter: Voter) -> list[frozenset[int]]:
        """The largest sets of parts, by position, for which a voter may count at the same time."""
        own = [position for position, part in enumerate(self.require) if part.takes(voter)]
        found: list[frozenset[int]] = []
        for size in range(len(own), 0, -1):
            for chosen in map(frozenset, combinations(own, size)):
                if not any(chosen <= larger for larger in found) and not self._conflicts(chosen):
                    found.append(chosen)
        return found

    def _conflicts(self, chosen: Iterable[int]) -> bool:
        pairs = combinations([self.require[position] for position in chosen], 2)
        return any(one.name in other.distinct_from or other.name in one.distinct_from for one, other in pairs)


def _count_for(needs: Missing, parts: frozenset[int]) -> Missing:
    return tuple(max(count - (position in parts), 0) for position, count in enumerate(needs))
