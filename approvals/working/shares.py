"""What each process of its own may have of the processor and of the memory. PURE."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

# From so many seconds of processor time on, a process gives way by so many steps of priority (nice) more.
USED = ((2.0, 12), (0.6, 8), (0.2, 4))
# And by so many for each that began after it, so that what has just begun goes first.
NEWER = 6
LOWEST = 19
# Of the processor time of a group half is forgotten after so many seconds.
FORGOTTEN_SECONDS = 60.0
# A group is heavier than another that has used less than half of its processor time, but for so many seconds.
ABOUT_AS_MUCH = 1.0
# Of the limit: what is near it grows past it while the warden looks.
NEAR = 0.9


@dataclass(frozen=True, slots=True)
class Weight:
    """What a process of its own holds, with those that it started; `is_suspect` where its row has killed before."""

    key: Hashable
    mib: float
    is_suspect: bool = False


def niceness(cpu_seconds: float, newer: int) -> int:
    """Of a process that has used so much of the processor, while so many that go first are at work.

    Most are done within the first step. Nobody knows beforehand who is not; those that came first have had their time.
    """
    used = next((steps for seconds, steps in USED if cpu_seconds >= seconds), 0)
    return min(LOWEST, used + NEWER * newer)


def goes_first(is_later: bool, used: float, other_used: float) -> bool:
    """Whether a process goes before another: that of the lighter group, among equal groups the one that began later.

    `used` are the seconds of processor time of each one's group lately. Else a stream of new ones would hold up for
    ever what takes longer than they do.
    """
    if used > 2 * other_used + ABOUT_AS_MUCH:
        return False
    return is_later or other_used > 2 * used + ABOUT_AS_MUCH


def remembered(used: float, seconds: float) -> float:
    """What still counts, so many seconds later, of processor time that was used."""
    return float(used * 0.5 ** (seconds / FORGOTTEN_SECONDS))


def is_near(mib: float, most_mib: float) -> bool:
    return mib > most_mib * NEAR


def to_end(weights: Sequence[Weight], own_mib: float, most_mib: float, room_mib: float) -> Hashable | None:
    """Which process has to end so that the worker lives; None where all have room.

    A suspect has a room of its own, `room_mib` or half of what there is for all: within that, others make room for it.
    """
    if not is_near(own_mib + sum(one.mib for one in weights), most_mib):
        return None
    room = min(room_mib, max(0.0, most_mib * NEAR - own_mib) / 2)
    candidates = [one for one in weights if not (one.is_suspect and one.mib <= room)] or list(weights)
    return max(candidates, key=lambda one: one.mib).key if candidates else None
