"""Whether every text that one regular expression finds is found by another one, and how much work proofs may take."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache

from provisioner.schema.inclusion.regular_expressions import (
    AT_END,
    AT_START,
    LAST,
    SURROGATES,
    Automaton,
    Ranges,
    UnreadableExpression,
    automaton,
    holds,
)

MAX_PROOF_WORK = 8_000_000  # steps of states, some six seconds; large CRDs that people wrote take a hundredth


class Exhausted(Exception):
    """Nothing is left; what is asked now stays undecided."""


_left: ContextVar[list[int] | None] = ContextVar("left", default=None)


@contextmanager
def limited(work: int = MAX_PROOF_WORK) -> Iterator[None]:
    """Let all that is proved inside take so much work together."""
    token = _left.set([work])
    try:
        yield
    finally:
        _left.reset(token)


def spend(work: int) -> None:
    """Note work that was done; raises Exhausted once it is more than there was. Outside of `limited` nothing is."""
    left = _left.get()
    if left is None:
        return
    left[0] -= work
    if left[0] < 0:
        raise Exhausted


MAX_WORK = 1_500_000  # steps of states; about 200 ms
LONGEST_COUNTED = 300
PLAIN = "axAX0159-_. /"


@dataclass(frozen=True, slots=True)
class Inclusion:
    """`holds` is None where the search was given up; False comes with the shortest text that shows it."""

    holds: bool | None
    counterexample: str | None = None


GIVEN_UP = Inclusion(None)


def inclusion(inner: str, outer: str, shortest: int = 0, longest: float = math.inf) -> Inclusion:
    """Whether each text of `shortest` to `longest` characters that matches `inner` matches `outer`.

    Both are RE2's syntax, not anchored, as in a schema's `pattern`. The search ends after a fixed amount of work.
    """
    try:
        return _inclusion(inner, outer, shortest, longest)
    except Exhausted:
        return GIVEN_UP


@lru_cache(maxsize=2_048)
def _inclusion(inner: str, outer: str, shortest: int, longest: float) -> Inclusion:
    try:
        sides = automaton(inner), automaton(outer)
    except UnreadableExpression:
        return GIVEN_UP
    if shortest > LONGEST_COUNTED:
        return GIVEN_UP
    budget = _Budget()
    runs = tuple(_Run(side, budget) for side in sides)
    letters = _letters(step for side in sides for steps in side.reads for step, _ in steps)
    try:
        found = _search((runs[0], runs[1]), letters, shortest, longest)
    except Undecided:
        return GIVEN_UP
    return Inclusion(True) if found is None else Inclusion(False, found)


class Undecided(Exception):
    """It would take too long, or an expression is not readable here."""


@dataclass(slots=True)
class _Budget:
    left: int = MAX_WORK

    def spend(self, work: int) -> None:
        spend(work)
        self.left -= work
        if self.left < 0:
            raise Undecided


States = frozenset[int]


@dataclass(slots=True)
class _Run:
    """An automaton followed in all its states at once. A text that was accepted stays so, whatever comes after."""

    side: Automaton
    budget: _Budget
    moves: dict[tuple[States, str], States] = field(default_factory=dict)
    ends: dict[tuple[States, bool], bool] = field(default_factory=dict)

    def begin(self) -> States:
        return self._closed({self.side.start}, {AT_START})

    def move(self, states: States, letter: str) -> States:
        key = states, letter
        if key not in self.moves:
            point = ord(letter)
            reached = {target for state in states for step, target in self.side.reads[state] if holds(step, point)}
            self.moves[key] = self._closed(reached, set())
        return self.moves[key]

    def accepts(self, states: States, *, is_start: bool) -> bool:
        key = states, is_start
        if key not in self.ends:
            allowed = {AT_START, AT_END} if is_start else {AT_END}
            self.ends[key] = self.side.end in self._closed(states, allowed)
        return self.ends[key]

    def _closed(self, states: Iterable[int], allowed: set[str]) -> States:
        found, waiting = set(states), list(states)
        while waiting:
            for condition, target in self.side.jumps[waiting.pop()]:
                if target not in found and (not condition or condition in allowed):
                    found.add(target)
                    waiting.append(target)
        self.budget.spend(len(found) + 1)
        return frozenset((self.side.end,)) if self.side.end in found else frozenset(found)


def _search(runs: tuple[_Run, _Run], letters: str, shortest: int, longest: float) -> str | None:
    """The shortest text that the first run accepts and the second does not, breadth first."""
    inner, outer = runs
    start = (inner.begin(), outer.begin(), 0)
    came: dict[tuple[States, States, int], tuple[tuple[States, States, int], str] | None] = {start: None}
    waiting = deque([(start, 0)])
    while waiting:
        state, length = waiting.popleft()
        is_start = length == 0
        if (
            length >= shortest
            and inner.accepts(state[0], is_start=is_start)
            and not outer.accepts(state[1], is_start=is_start)
        ):
            found = ""
            while (step := came[state]) is not None:
                state, letter = step
                found = letter + found
            return found
        if length >= longest or state[1] == frozenset((outer.side.end,)):
            continue
        for letter in letters:
            target = (inner.move(state[0], letter), outer.move(state[1], letter), min(length + 1, shortest))
            inner.budget.spend(1)
            if target not in came:
                came[target] = (state, letter)
                waiting.append((target, length + 1))
    return None


def _letters(steps: Iterator[Ranges]) -> str:
    """One character of each kind that the steps tell apart, plain ones where there are any."""
    classes = sorted(set(steps))
    points = {0, SURROGATES[1] + 1} | {ord(char) for char in PLAIN}
    points |= {bound for ranges in classes for low, high in ranges for bound in (low, high + 1) if bound <= LAST}
    kinds: dict[tuple[bool, ...], int] = {}
    plain = [ord(char) for char in PLAIN]
    for point in [*plain, *sorted(points, key=lambda it: (not 0x20 < it < 0x7F, it))]:
        if not SURROGATES[0] <= point <= SURROGATES[1]:
            kinds.setdefault(tuple(holds(ranges, point) for ranges in classes), point)
    return "".join(map(chr, kinds.values()))
