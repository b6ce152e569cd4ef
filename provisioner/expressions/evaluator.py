"""The one door to CEL that is not ours: expressions of specs, policies, health checks and schemas go through `ask_all`.

CEL's library runs in child processes with limits on memory, time and output. They stay between questions, because an
apply asks its guards before each phase. A hostile expression ends its own child; the other children go on.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import pickle
import threading
import time
from base64 import b64decode
from collections import Counter, OrderedDict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from operator import itemgetter
from typing import Any

from provisioner.expressions.child import Child, Lost
from provisioner.expressions.limits import (
    BATCH_SECONDS,
    FREE_CHILD_SECONDS,
    MAX_CHILDREN,
    MAX_LOST,
    MAX_MESSAGE_QUESTIONS,
    MAX_QUESTION_BYTES,
    MAX_REMEMBERED,
    MESSAGE_BYTES,
    REMEMBERED_SECONDS,
    UNCHARGED_SECONDS,
    WALL_SECONDS,
)
from provisioner.expressions.problems import is_over_budget
from provisioner.expressions.questions import (
    NO_DATA,
    ExpressionAnswer,
    ExpressionOutcome,
    ExpressionQuestion,
    Language,
    Message,
)

TOO_DEEP = NO_DATA - 1
TOO_LONG = f"the values that it reads have more than {MAX_QUESTION_BYTES} bytes"
SHORT_BYTES = 40
PAUSE_SECONDS, MANY = 0.001, 50  # how long answers may gather, where more than so many are to come
BUSY = f"no evaluator was free within {FREE_CHILD_SECONDS:g} s; it is asked again"


def ask(
    language: Language,
    texts: Sequence[str],
    data: Mapping[str, Any] | None = None,
    *,
    seconds: float = BATCH_SECONDS,
    wants_program: bool = False,
) -> list[ExpressionAnswer]:
    """`ask_all` for texts of one language about the same data."""
    return ask_all(
        [ExpressionQuestion(language, text, data) for text in texts], seconds=seconds, wants_program=wants_program
    )


def ask_all(
    questions: Sequence[ExpressionQuestion], *, seconds: float = BATCH_SECONDS, wants_program: bool = False
) -> list[ExpressionAnswer]:
    """The answer to each question, in their order, with as few messages as their size allows.

    Never raises for what an expression does: what passes a limit is ENDED, and says which; the others are answered. A
    text that passed its limits MAX_LOST times, on different data, is not tried again, nor is data on which MAX_LOST
    texts did. `seconds` are for all questions together; those that are left then are ENDED as well. Questions that are
    equal are evaluated once. `wants_program` adds the serialized expression.
    """
    if not questions:
        return []
    allowance = _allowance.get() or _Allowance(seconds)
    return _Batch(questions, wants_program, seconds, allowance).answers()


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Let all that is asked inside take so many seconds of the children's processor time together, beyond the little
    that each quick answer takes; what is asked after that is ENDED at once.
    """
    before = _allowance.get()
    inside = _Allowance(seconds if before is None else min(seconds, before.seconds))
    token = _allowance.set(inside)
    try:
        yield
    finally:
        _allowance.reset(token)
        if before is not None:
            before.charge(inside.taken, answers=inside.answers)


class _Allowance:
    """What one piece of work may still use, and the texts that cost it a child, by how often they did."""

    def __init__(self, seconds: float):
        self._given = seconds
        self.taken = 0.0
        self.answers = 0
        self.lost: Counter[tuple[Language, str]] = Counter()

    @property
    def seconds(self) -> float:
        """What is left. Quick answers are charged for nothing: to gather the values for them takes us longer."""
        return self._given - max(0.0, self.taken - self.answers * UNCHARGED_SECONDS)

    def charge(self, seconds: float, *, answers: int) -> None:
        self.taken += seconds
        self.answers += answers


_allowance: ContextVar[_Allowance | None] = ContextVar("allowance", default=None)
_Key = tuple[int, str, int]  # a question of a batch: place of its language, text, place of its data or NO_DATA


class _Batch:
    """Questions that are asked together, each distinct one once."""

    def __init__(
        self, questions: Sequence[ExpressionQuestion], wants_program: bool, seconds: float, allowance: _Allowance
    ):
        self._allowance = allowance
        self._wants_program = wants_program
        self._seconds = seconds
        self._deadline = time.monotonic() + min(seconds, allowance.seconds)
        self._languages: dict[Language, int] = {}
        self._data: dict[bytes, int] = {}
        languages: dict[int, int] = {}  # by id, which is quicker than by what is in them
        data: dict[int, int] = {}
        keys: list[_Key] = []
        for question in questions:
            language, about = id(question.language), id(question.data)
            if language not in languages:
                languages[language] = self._languages.setdefault(question.language, len(self._languages))
            if about not in data:
                data[about] = self._place_of(question.data)
            keys.append((languages[language], question.text, data[about]))
        self._keys = keys
        self._language_at, self._data_at = list(self._languages), list(self._data)
        self._found: dict[_Key, ExpressionAnswer] = {}
        self._lost: Counter[int] = Counter()  # children, by the data that their questions were about

    def answers(self) -> list[ExpressionAnswer]:
        waiting = deque(sorted(dict.fromkeys(self._keys), key=itemgetter(2)))
        while waiting:
            asked = self._portion(waiting)
            if asked:
                count = self._ask(asked)
                waiting.extendleft(reversed(asked[count:]))
        return [self._found[key] for key in self._keys]

    def _place_of(self, data: Mapping[str, Any] | None) -> int:
        if data is None:
            return NO_DATA
        try:
            return self._data.setdefault(pickle.dumps(data), len(self._data))
        except RecursionError:
            return TOO_DEEP

    def _portion(self, waiting: deque[_Key]) -> list[_Key]:
        """The next questions for one message, taken from those that wait; those that are not to be asked are ended."""
        asked: list[_Key] = []
        size, about = 0, NO_DATA
        while waiting and len(asked) < MAX_MESSAGE_QUESTIONS:
            key = waiting[0]
            if (ended := self._why_not(key)) is not None:
                self._found[key] = ended
                waiting.popleft()
                continue
            size += len(key[1]) + (len(self._data_at[key[2]]) if key[2] != about else 0)
            if asked and size > MESSAGE_BYTES:
                break
            about = key[2]
            asked.append(waiting.popleft())
        return asked

    def _why_not(self, key: _Key) -> ExpressionAnswer | None:
        """The answer to a question that is not asked, None for one that is."""
        _, text, about = key
        if about == TOO_DEEP:
            return _ended("its values are nested too deeply")
        if about != NO_DATA and len(self._data_at[about]) > MAX_QUESTION_BYTES:
            return _ended(TOO_LONG)
        if self._lost[about] >= MAX_LOST:
            return _ended(f"{MAX_LOST} other expressions on the same values passed their limits")
        if self._allowance.lost and self._allowance.lost[self._own(key)] >= MAX_LOST:
            return _ended(f"it passed its limits {MAX_LOST} times on other values")
        if _POOL.remembers(text) and (known := _POOL.how_ended(self._identity(key))):
            return known
        stopped = self._why_stopped()
        return _ended(stopped) if stopped else None

    def _why_stopped(self) -> str:
        if time.monotonic() >= self._deadline or self._allowance.seconds <= 0:
            return f"the expressions before it took longer than {self._seconds:g} s"
        return ""

    def _ask(self, asked: Sequence[_Key]) -> int:
        """How many of them have their answers now: at least one."""
        data = {about: self._data_at[about] for _, _, about in asked if about != NO_DATA}
        message = pickle.dumps(Message(tuple(self._language_at), data, tuple(asked), self._wants_program))
        if len(message) > MAX_QUESTION_BYTES:
            self._found |= dict.fromkeys(asked, _ended(TOO_LONG))
            return len(asked)
        child = None
        try:
            child = _POOL.take(min(self._deadline, time.monotonic() + FREE_CHILD_SECONDS))
            return self._asked(child, message, asked)
        except Lost as exc:
            self._found[asked[0]] = _ended(str(exc))
            self._lost[asked[0][2]] += 1
            return 1
        finally:
            _POOL.give_back(child)

    def _asked(self, child: Child, message: bytes, asked: Sequence[_Key]) -> int:
        began, count = time.monotonic(), 0
        taken = None
        try:
            child.send(message, self._until())
            for key in asked:
                pause = PAUSE_SECONDS if len(asked) - count > MANY else 0.0
                self._found[key], end = _parse_answer(child.receive(self._until(), pause))
                count += 1
                if end is not None:
                    child.is_leaving, taken = end
                    break
        except Lost as exc:
            child.is_leaving = True
            count += 1
            # The time that all share ran out; this expression is not to blame.
            stopped = self._why_stopped()
            self._found[asked[count - 1]] = _ended(stopped) if stopped else _ended(str(exc), exceeds=exc.exceeds)
        self._allowance.charge(time.monotonic() - began if taken is None else taken, answers=count)
        last = asked[count - 1]
        if child.is_leaving and self._found[last].outcome is ExpressionOutcome.ENDED and not self._why_stopped():
            self._lost[last[2]] += 1
            self._allowance.lost[self._own(last)] += 1
            _POOL.remember(self._identity(last), last[1], self._found[last])
        return count

    def _own(self, key: _Key) -> tuple[Language, str]:
        return self._language_at[key[0]], key[1]

    def _identity(self, key: _Key) -> bytes:
        """The same for the same question of another batch."""
        data = b"" if key[2] == NO_DATA else self._data_at[key[2]]
        return hashlib.sha256(pickle.dumps((self._own(key), data, self._wants_program))).digest()

    def _until(self) -> float:
        return min(self._deadline, time.monotonic() + WALL_SECONDS)


class _Pool:
    """The children of this process. They belong to the process that started them: a fork begins with none."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._idle: list[Child] = []
        self._busy: set[Child] = set()
        self._starting = 0
        self._ended: OrderedDict[bytes, tuple[float, str, ExpressionAnswer]] = OrderedDict()
        self._ended_texts: Counter[str] = Counter()

    def take(self, deadline: float) -> Child:
        """A child that nobody else uses; raises Lost where none is free by then."""
        with self._condition:
            while not self._idle and len(self._busy) + self._starting >= MAX_CHILDREN:
                if not self._condition.wait(max(0.0, deadline - time.monotonic())):
                    raise Lost(BUSY)
            if self._idle:
                child = self._idle.pop()
                self._busy.add(child)
                return child
            self._starting += 1
        started: Child | None = None
        try:
            started = Child()
        finally:
            with self._condition:
                self._starting -= 1
                if started is not None:
                    self._busy.add(started)
                self._condition.notify()
        return started

    def give_back(self, child: Child | None) -> None:
        if child is None:
            return
        if child.is_leaving:
            child.end()
        with self._condition:
            self._busy.discard(child)
            if not child.is_leaving:
                self._idle.append(child)
            self._condition.notify()

    def remembers(self, text: str) -> bool:
        """Whether this text ended its child on any data, which is rare."""
        return text in self._ended_texts

    def how_ended(self, identity: bytes) -> ExpressionAnswer | None:
        """The answer to this question where it ended its child a moment ago."""
        with self._condition:
            known = self._ended.get(identity)
            return known[2] if known and time.monotonic() < known[0] else None

    def remember(self, identity: bytes, text: str, answer: ExpressionAnswer) -> None:
        with self._condition:
            self._forget(identity)
            self._ended[identity] = (time.monotonic() + REMEMBERED_SECONDS, text, answer)
            self._ended_texts[text] += 1
            if len(self._ended) > MAX_REMEMBERED:
                self._forget(next(iter(self._ended)))

    def _forget(self, identity: bytes) -> None:
        if identity not in self._ended:
            return
        _, text, _ = self._ended.pop(identity)
        self._ended_texts[text] -= 1
        if not self._ended_texts[text]:
            del self._ended_texts[text]

    def forget_children(self) -> None:
        """After a fork: these are another process's. Our copies of their pipes would keep them alive after it."""
        for child in (*self._idle, *self._busy):
            child.let_go()

    def end(self) -> None:
        with self._condition:
            children, self._idle = self._idle, []
        for child in children:
            child.end()

    def pids(self) -> list[int]:
        """Of the children that are alive, for tests and figures."""
        with self._condition:
            return sorted(child.pid for child in (*self._idle, *self._busy))


def _ended(words: str, *, exceeds: bool = False) -> ExpressionAnswer:
    return ExpressionAnswer(ExpressionOutcome.ENDED, words=words, exceeds=exceeds)


def _parse_answer(body: bytes) -> tuple[ExpressionAnswer, tuple[bool, float] | None]:
    """An answer; with the last one of a message, whether the child leaves, and the seconds that it took."""
    if len(body) <= SHORT_BYTES:
        return _read_short(body)
    return _decoded(body)


def _decoded(body: bytes) -> tuple[ExpressionAnswer, tuple[bool, float] | None]:
    try:
        outcome, value, kind, words, program, *end = json.loads(body)
        found = ExpressionAnswer(
            ExpressionOutcome(outcome),
            value if isinstance(value, bool | str) else None,
            str(kind),
            str(words),
            b64decode(program),
            # A child that can still say that a limit ended it met its own limit of memory or depth.
            exceeds=outcome == ExpressionOutcome.ENDED
            or (outcome == ExpressionOutcome.FAILED and is_over_budget(str(words))),
        )
        if not end:
            return found, None
        is_leaving, seconds = end
        return found, (bool(is_leaving), max(0.0, float(seconds)))
    except (ValueError, TypeError) as exc:
        raise Lost("its evaluator sent an answer that cannot be read") from exc


_read_short = lru_cache(maxsize=64)(_decoded)  # most answers are true or false, and not the last of a message


_POOL = _Pool()


def _begin_anew() -> None:
    global _POOL  # noqa: PLW0603 -- the lock of the old one may be held by a thread that this process does not have
    _POOL.forget_children()
    _POOL = _Pool()


def children() -> list[int]:
    """The process ids of the children that this process keeps."""
    return _POOL.pids()


def end_children() -> None:
    """End those that nobody uses; the next question starts new ones."""
    _POOL.end()


os.register_at_fork(after_in_child=_begin_anew)
atexit.register(end_children)
