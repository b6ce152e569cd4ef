"""Which harms a run of chaos tries, and what of all that could be tried they cover. PURE."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Scenario(StrEnum):
    FIRST = "first apply"
    UPDATE = "update"
    RESTORE = "restore"
    DELETION = "deletion"


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
    # Its claim lapses although it lives, and another worker goes on beside it.
    RIVAL = "rival"
    # Two more workers get the same messages, in the other order, again and again until all is settled.
    DOUBLED = "doubled"


KILLS = (Kind.KILLED_BEFORE, Kind.KILLED_AFTER)
# What only a real control plane is worth the wait for; a worker's death among them, for comparison.
CLUSTER_HARMS = (Kind.CLUSTER_CRASHED, Kind.STORE_CRASHED, Kind.CLUSTER_RESTARTED, Kind.KILLED_BEFORE)
# How many other workers are at the same request from the beginning.
ACCOMPANIED = {Kind.RIVAL: 1, Kind.DOUBLED: 2}


@dataclass(frozen=True, slots=True)
class Harm:
    scenario: Scenario
    kind: Kind
    event: int

    def __str__(self) -> str:
        return f"{self.scenario}: {self.kind} at event {self.event}"


def drawn(
    points: Mapping[Scenario, int], kinds: Iterable[Kind], count: int, seed: int, *, part: int = 0, parts: int = 1
) -> list[Harm]:
    """`count` harms, alike for the same seed: kill -9 at every point first, then everything else that can happen.

    `points` is how many events each scenario has; a point lies before each of them, and one after the last. No kind of
    harm meets a scenario twice before every kind has met every scenario once. Of `parts`, each counts its own events
    and gets its share of `count`: the kills at every `parts`-th point, whatever the others have counted.
    """
    chance = random.Random(seed)
    kills = [Harm(scenario, Kind.KILLED_BEFORE, event) for scenario in points for event in _events(points[scenario])]
    kills += [Harm(scenario, Kind.KILLED_AFTER, last) for scenario, last in points.items()]
    known = set(kills)
    kills = [harm for harm in kills if _point(harm)[1] % parts == part]
    chance.shuffle(kills)
    others = [
        Harm(scenario, kind, event)
        for kind in kinds
        for scenario in points
        # Doubled messages come all the time, not at an event.
        for event in (_events(points[scenario]) if kind is not Kind.DOUBLED else [1])
    ]
    chance.shuffle(others)
    turns: dict[tuple[Scenario, Kind], int] = defaultdict(int)
    ordered = []
    for harm in others:
        turns[harm.scenario, harm.kind] += 1
        ordered.append((turns[harm.scenario, harm.kind], harm))
    rest = [harm for _, harm in sorted(ordered, key=lambda it: it[0]) if harm not in known]
    return [*kills, *rest[part::parts]][: len(range(part, count, parts))]


def drawn_by_class(
    events: Mapping[Scenario, Sequence[str]], kinds: Sequence[Kind], count: int, seed: int
) -> list[Harm]:
    """`count` harms for a cluster on which each takes long: every class of event before any a second time, and so on.

    A class is what an event is called in its scenario; each time it comes up it is met by another kind of harm.
    """
    chance = random.Random(seed)
    places = defaultdict(list)
    for scenario, names in events.items():
        for number, name in enumerate(names, start=1):
            places[scenario, name].append(number)
    classes = sorted(places)
    chance.shuffle(classes)
    harms = []
    for turn in range(-(-count // len(classes))):
        for number, (scenario, name) in enumerate(classes):
            kind = kinds[(number + turn) % len(kinds)]
            harms.append(Harm(scenario, kind, chance.choice(places[scenario, name])))
    return harms[:count]


def unvisited(points: Mapping[Scenario, int], died: Iterable[Harm]) -> list[str]:
    """The points at which no worker was killed, of those that `died` there."""
    visited = {_point(harm) for harm in died if harm.kind in KILLS}
    every = [(scenario, point) for scenario, last in points.items() for point in _events(last + 1)]
    return [f"{scenario}: point {point}" for scenario, point in every if (scenario, point) not in visited]


def _point(harm: Harm) -> tuple[Scenario, int]:
    return harm.scenario, harm.event + (harm.kind is Kind.KILLED_AFTER)


def _events(last: int) -> range:
    return range(1, last + 1)
