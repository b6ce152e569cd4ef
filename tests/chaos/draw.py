"""Which harms a run of chaos tries, and what of all that could be tried they cover. PURE."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Scenario(StrEnum):
    """What each of them does to objects is said in scenarios.py."""

    FIRST = "first apply"
    UPDATE = "update"
    ROLLBACK = "rollback"
    RESTORE = "restore"
    DELETION = "deletion"
    OPTIONAL = "optional"


class Kind(StrEnum):
    NOTHING = "nothing"
    KILLED_BEFORE = "killed before"
    KILLED_AFTER = "killed after"
    DATABASE_CUT = "database cut"
    CLUSTER_CRASHED = "cluster crashed"
    CLUSTER_RESTARTED = "cluster restarted"
    STORE_CRASHED = "store crashed"
    CLOCK_FORWARD = "clock forward"
    CLOCK_BACK = "clock back"
    # It stands still (SIGSTOP) until another worker has done all of it, and goes on then: before it hands something to
    # the network, or with the last bytes of it, when nothing asks any more whether it may.
    STOPPED = "stopped"
    STOPPED_SENDING = "stopped sending"
    # Its claim lapses although it lives, and another worker goes on beside it.
    RIVAL = "rival"
    # Two more workers get the same messages, in the other order, again and again until all is settled.
    DOUBLED = "doubled"


KILLS = (Kind.KILLED_BEFORE, Kind.KILLED_AFTER)
# What has to happen at every point. Two that are one thing done in two ways take turns from point to point.
NAMED: dict[str, tuple[Kind, ...]] = {
    "the worker is killed": (Kind.KILLED_BEFORE,),
    "the API server is stopped and started": (Kind.CLUSTER_CRASHED, Kind.CLUSTER_RESTARTED),
    "the database is cut off": (Kind.DATABASE_CUT,),
    "the clock jumps": (Kind.CLOCK_FORWARD, Kind.CLOCK_BACK),
    "the worker is stopped beyond its claim": (Kind.STOPPED,),
    "the worker is stopped when it sends": (Kind.STOPPED_SENDING,),
}
STOPS = frozenset({Kind.STOPPED, Kind.STOPPED_SENDING})
# Whoever dies or stands still is followed by a process of its own, beside which nobody stands: in RESTORE nobody would take
# anything away from it. Before the first write of the bundle there, the same happens to UPDATE.
DEATHS = frozenset({*KILLS, *STOPS})
OF_BUNDLE = "the bundle"
# At so many points of each scenario another worker takes over from one that lives; doubled messages come once.
RIVALS = 4
# What only a real control plane is worth the wait for; a worker's death among them, for comparison.
CLUSTER_HARMS = (
    Kind.CLUSTER_CRASHED,
    Kind.STORE_CRASHED,
    Kind.CLUSTER_RESTARTED,
    Kind.KILLED_BEFORE,
    Kind.STOPPED,
    Kind.STOPPED_SENDING,
)
# How many other workers are at the same request from the beginning.
ACCOMPANIED = {Kind.RIVAL: 1, Kind.DOUBLED: 2}


@dataclass(frozen=True, slots=True)
class Harm:
    scenario: Scenario
    kind: Kind
    event: int

    def __str__(self) -> str:
        return f"{self.scenario}: {self.kind} at event {self.event}"


def begins_of(events: Mapping[Scenario, Sequence[str]]) -> dict[Scenario, int]:
    """From which event on RESTORE can end as it should after a death: that of the first write of the bundle."""
    names = events[Scenario.RESTORE]
    return {Scenario.RESTORE: 1 + next(at for at, name in enumerate(names) if name.endswith(OF_BUNDLE))}


def can_be(harm: Harm, begins: Mapping[Scenario, int]) -> bool:
    return harm.kind not in DEATHS or harm.event >= begins.get(harm.scenario, 0)


def drawn(points: Mapping[Scenario, int], seed: int, *, part: int = 0, parts: int = 1) -> list[Harm]:
    """Everything that NAMED says at every point, then a few of the rest; alike for the same seed.

    `points` is how many events each scenario has; a point lies before each of them, and for kill -9 one after the last.
    Left to chance are which of two that take turns begins, where a rival takes over, and the order. Of `parts`, each
    counts its own events and takes every `parts`-th point, whatever the others have counted.
    """
    chance = random.Random(seed)
    harms = [Harm(scenario, Kind.KILLED_AFTER, last) for scenario, last in points.items()]
    for turns in NAMED.values():
        first = chance.randrange(len(turns))
        harms += [
            Harm(scenario, turns[(first + event) % len(turns)], event)
            for scenario, last in points.items()
            for event in _events(last)
        ]
    for scenario in Scenario:
        # Drawn for a length that is no scenario's, so that parts which counted one event more or less agree.
        places = [chance.random() for _ in range(RIVALS)]
        if scenario in points:
            events = {1 + int(place * points[scenario]) for place in places}
            harms += [Harm(scenario, Kind.RIVAL, event) for event in sorted(events)]
            harms.append(Harm(scenario, Kind.DOUBLED, 1))
    mine = [harm for harm in harms if _point(harm)[1] % parts == part]
    chance.shuffle(mine)
    return mine


def drawn_by_class(
    events: Mapping[Scenario, Sequence[str]],
    kinds: Sequence[Kind],
    count: int,
    seed: int,
    begins: Mapping[Scenario, int] | None = None,
) -> list[Harm]:
    """`count` harms for a cluster on which each takes long: every class of event before any a second time, and so on.

    A class is what an event is called in its scenario; each time it comes up it is met by another kind of harm.
    """
    chance = random.Random(seed)
    places = defaultdict(list)
    for scenario, names in events.items():
        first = (begins or {}).get(scenario, 1)
        for number, name in enumerate(names[first - 1 :], start=first):
            places[scenario, name].append(number)
    classes = sorted(places)
    chance.shuffle(classes)
    harms = []
    for turn in range(-(-count // len(classes))):
        for number, (scenario, name) in enumerate(classes):
            kind = kinds[(number + turn) % len(kinds)]
            harms.append(Harm(scenario, kind, chance.choice(places[scenario, name])))
    return harms[:count]


def unvisited(
    points: Mapping[Scenario, int], happened: Iterable[Harm], begins: Mapping[Scenario, int] | None = None
) -> list[str]:
    """The points at which something that NAMED says did not happen, and could have."""
    visited = {(what, *_point(harm)) for harm in happened for what in _names(harm.kind)}
    every = [
        (what, scenario, point)
        for what, turns in NAMED.items()
        for scenario, last in points.items()
        for point in _events(last + (turns[0] in KILLS))
        if can_be(Harm(scenario, turns[0], point), begins or {})
    ]
    return [
        f"{scenario}: {what} at point {point}"
        for what, scenario, point in every
        if (what, scenario, point) not in visited
    ]


def _names(kind: Kind) -> list[str]:
    alike = Kind.KILLED_BEFORE if kind is Kind.KILLED_AFTER else kind
    return [what for what, turns in NAMED.items() if alike in turns]


def _point(harm: Harm) -> tuple[Scenario, int]:
    return harm.scenario, harm.event + (harm.kind is Kind.KILLED_AFTER)


def _events(last: int) -> range:
    return range(1, last + 1)
