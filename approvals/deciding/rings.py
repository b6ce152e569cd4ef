"""Rings: in which order the members of a change set are applied, and what each of them waits for. PURE.

Clusters are sorted into rings. A ring begins when every ring before it is through: its members are healthy, have been
so for its soak time, and somebody has approved what follows where the ring asks for that. On one cluster it is all or
nothing: no member is applied before all of them are approved, and where one fails, is paused or deleted, no other one
begins.
"""

from __future__ import annotations

import fnmatch
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from approvals.deciding.spec_fields import SpecFields
from provisioner.sentences import number, some

MOST_RINGS = 20
MOST_SOAK_MINUTES = 14 * 24 * 60
NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
SHOWN = 3


class OnFailure(StrEnum):
    """What becomes of the other members on the cluster of one that fails."""

    STOP = "Stop"
    PUT_BACK = "PutBack"


class SkipReason(StrEnum):
    """Why nobody waits for a member that nothing was written of, in words."""

    DELETED = "it is deleted"
    PAUSED = "it is paused"
    SILENT = "its cluster does not answer"


class MemberState(StrEnum):
    """How far a member is, in words. Nothing was written of one that is SKIPPED, unless it is deleted."""

    UNDECIDED = "not approved"
    APPROVED = "approved"
    AT_WORK = "being applied"
    SETTLING = "not healthy"
    HEALTHY = "healthy"
    RESTORING = "failed, and being restored"
    FAILED = "failed"
    ENDED = "ended without being applied"
    SKIPPED = "skipped"


FAILED = (MemberState.RESTORING, MemberState.FAILED)
_UNREADY = (MemberState.UNDECIDED, MemberState.ENDED)
# What somebody did who may not let the set go on.
_BY_PEOPLE = (SkipReason.DELETED, SkipReason.PAUSED)


@dataclass(frozen=True, slots=True)
class Ring:
    """`clusters` are names or globs; with `labels` both have to fit. A ring with neither takes every cluster that is
    left. `soak` and `needs_approval` are about what follows it."""

    name: str
    clusters: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    soak: timedelta = timedelta()
    needs_approval: bool = False

    @classmethod
    def read(cls, fields: SpecFields) -> Ring:
        name = fields.text("name", longest=63)
        if not NAME.fullmatch(name):
            raise fields.refuse("name", f"is {name!r}; expected lowercase letters, digits and dashes")
        found = cls(
            name=name,
            clusters=fields.texts("clusters"),
            labels=tuple(sorted(fields.labels("matchLabels").items())),
            soak=timedelta(minutes=fields.number("soakMinutes", default=0, least=0, most=MOST_SOAK_MINUTES)),
            needs_approval=fields.flag("requiresApproval"),
        )
        fields.end()
        if any("\0" in text for text in (*found.clusters, *(text for pair in found.labels for text in pair))):
            raise fields.refuse("clusters", "or matchLabels has a NUL character; expected none")
        return found

    def record(self) -> dict[str, Any]:
        """As `read` reads it."""
        return {
            "name": self.name,
            "clusters": list(self.clusters),
            "matchLabels": dict(self.labels),
            "soakMinutes": int(self.soak.total_seconds() // 60),
            "requiresApproval": self.needs_approval,
        }

    def takes(self, cluster: str, labels: Mapping[str, str]) -> bool:
        is_named = not self.clusters or any(fnmatch.fnmatchcase(cluster, glob) for glob in self.clusters)
        return is_named and all(labels.get(key) == value for key, value in self.labels)


def parse_rings(found: object) -> tuple[Ring, ...]:
    """Raises UnreadableObject with the place of what is wrong."""
    fields = SpecFields({"rings": found}, "order")
    rings = fields.each("rings", Ring.read, most=MOST_RINGS)
    if not rings:
        raise fields.refuse("rings", "is empty; expected at least one ring")
    if twice := [name for name, count in Counter(ring.name for ring in rings).items() if count > 1]:
        raise fields.refuse("rings", f"has two rings of the name {twice[0]}; expected a name for each")
    return rings


@dataclass(frozen=True, slots=True)
class RolloutMember:
    """One deployment of the set, by its newest request since the set has its order; `number` is 0 without one.

    `ring` is the position of its ring. `since` is when its state began, as far as is known. `why` says why it is
    skipped, or what else people should know; `skipped` is set where its state is SKIPPED.
    """

    cluster: str
    name: str
    ring: int
    state: MemberState
    number: int = 0
    since: datetime | None = None
    why: str = ""
    skipped: SkipReason | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether nothing of it was applied, and it may be yet."""
        return self.state in (MemberState.UNDECIDED, MemberState.APPROVED, MemberState.ENDED, MemberState.SKIPPED)

    @property
    def is_dropped(self) -> bool:
        return self.skipped in _BY_PEOPLE

    @property
    def seen(self) -> int | str | None:
        """What somebody goes by who approves what follows its ring: the request that is healthy, or why nobody waits
        for which one; None of all others."""
        if self.state is MemberState.HEALTHY:
            return self.number
        return f"{self.number}: {self.skipped}" if self.is_dropped else None

    def is_as_seen(self, seen: int | str | None) -> bool:
        """Whether it is no other one, and nothing is healthy or left out that was not `seen`."""
        return seen == self.seen or (self.seen is None and seen in (None, self.number))


@dataclass(frozen=True, slots=True)
class RingHold:
    """Why a member is not applied now; `due_at` is when that is over by the clock, None where that says nothing."""

    words: str
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class RingProgress:
    """A ring and what follows it waits for: nothing where `waits` is empty. `since` is how long it has.

    `is_approvable` also says that every ring before it is through.
    """

    ring: Ring
    members: tuple[RolloutMember, ...]
    waits: tuple[str, ...]
    since: datetime | None
    due_at: datetime | None
    is_approvable: bool

    @property
    def is_through(self) -> bool:
        return not self.waits

    @property
    def words(self) -> str:
        return "; ".join(self.waits)


@dataclass(frozen=True, slots=True)
class Rollout:
    """A set with its order. `approved` are the positions of rings after which somebody has approved what follows."""

    name: str
    rings: tuple[Ring, ...]
    members: tuple[RolloutMember, ...]
    approved: frozenset[int] = frozenset()
    on_failure: OnFailure = OnFailure.STOP

    @property
    def is_done(self) -> bool:
        """Whether nobody waits for anything more of it: what is deleted does not become healthy."""
        left = [member for member in self.members if member.skipped is not SkipReason.DELETED]
        return all(member.state is MemberState.HEALTHY for member in left)

    def progress(self, now: datetime) -> Iterator[RingProgress]:
        has_begun = True
        for position, ring in enumerate(self.rings):
            members = tuple(member for member in self.members if member.ring == position)
            found = _progress(ring, members, is_approved=position in self.approved, now=now)
            yield found if has_begun else replace(found, is_approvable=False)
            has_begun = has_begun and found.is_through

    def hold_of(self, cluster: str, name: str, now: datetime) -> RingHold | None:
        """Why this member may not begin now; None where nothing of the set is against it."""
        return self.holds(now).get((cluster, name))

    def holds(self, now: datetime) -> dict[tuple[str, str], RingHold]:
        """Why members may not begin now, by cluster and name: of all that something of the set is against.

        Members on other clusters are counted, not named: who reads this may not read those.
        """
        beside = defaultdict[str, list[RolloutMember]](list)
        for member in self.members:
            if member.state in (*FAILED, *_UNREADY) or member.is_dropped:
                beside[member.cluster].append(member)
        before: RingProgress | None = None  # the first ring that is not through
        found = {}
        for progress in self.progress(now):
            for member in progress.members:
                others = [one for one in beside[member.cluster] if one is not member]
                failed = [one.name for one in others if one.state in FAILED]
                unready = [f"{one.name} ({one.skipped or one.state})" for one in others if one.state not in FAILED]
                if failed:
                    words = f"{some(failed, SHOWN)} of set {self.name} failed on this cluster, so the others stop here"
                    found[member.cluster, member.name] = RingHold(words)
                elif before:
                    words = f"ring {progress.ring.name} of set {self.name} waits for ring {before.ring.name}"
                    found[member.cluster, member.name] = RingHold(f"{words}: {before.words}", before.due_at)
                elif unready:
                    words = f"on one cluster, set {self.name} is applied when all its members are approved"
                    words += f"; waiting for {some(unready, SHOWN)}"
                    if any(one.is_dropped for one in others):
                        words += ". What is paused or deleted can be removed from the order"
                    found[member.cluster, member.name] = RingHold(words)
            before = before or (None if progress.is_through else progress)
        return found

    def to_put_back(self) -> list[RolloutMember]:
        """What was applied on a cluster where another member failed, if the set asks for that."""
        if self.on_failure is not OnFailure.PUT_BACK:
            return []
        stopped = {member.cluster for member in self.members if member.state is MemberState.FAILED}
        applied = (MemberState.SETTLING, MemberState.HEALTHY)
        return [member for member in self.members if member.cluster in stopped and member.state in applied]


def _progress(ring: Ring, members: tuple[RolloutMember, ...], *, is_approved: bool, now: datetime) -> RingProgress:
    healthy = [member for member in members if member.state is MemberState.HEALTHY]
    left = [member for member in members if member.state not in (MemberState.HEALTHY, MemberState.SKIPPED)]
    # From the last one that became healthy; where nobody knows since when one is, it is taken for now.
    last = max((member.since or now for member in healthy), default=None)
    due_at = last + ring.soak if last and last + ring.soak > now else None
    dropped = [member for member in members if member.is_dropped]
    waits, needs_approval = [], bool(ring.needs_approval or dropped or not (healthy or left))
    if left:
        counts = sorted(Counter(str(member.state) for member in left).items())
        told = ", ".join(f"{count} {state}" for state, count in counts)
        waits.append(f"{len(healthy)} of {number(len(members), 'member')} healthy, {told}")
    if due_at:
        waits.append(f"its soak time ends at {due_at:%Y-%m-%d %H:%M} UTC")
    if needs_approval and not is_approved:
        why = "someone must approve the next ring"
        if not (healthy or left):
            why = f"none of its members has become healthy, so {why}"
        elif dropped and not ring.needs_approval:
            why = f"{number(len(dropped), 'member')} paused or deleted, so {why}"
        waits.append(why)
    return RingProgress(
        ring,
        members,
        tuple(waits),
        since=max(filter(None, (member.since for member in left)), default=last),
        due_at=due_at if len(waits) == 1 else None,
        is_approvable=not left and needs_approval and not is_approved,
    )
