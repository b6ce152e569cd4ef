"""Work that waits gives back the thread of the worker that it was given, and goes on in one of its own.

A worker has a few threads for all that it is told, and what is applied may wait for minutes until something is ready.
Such work begins in a thread of its own. Who gave it the order waits beside it until it has ended or rests; from then on
the worker's thread is free for others. What else it has taken while it works, it leaves when it rests (`Turn.leave`).
"""

from __future__ import annotations

import contextvars
import logging
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.db import close_old_connections, connections

logger = logging.getLogger(__name__)

# Each holds what it applies in memory, and a connection to the database. Who comes after so many keeps the thread of
# the worker: as many as it has by itself, as shipped.
MOST_RESTING = 24
REST_APART_SECONDS = 0.4
# A thread without work is kept for so long, with its connection to the database.
IDLE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Pledge:
    """What work has taken for as long as it works: `leave` when it rests, `come_back` when it continues."""

    leave: Callable[[], None]
    come_back: Callable[[], None] = lambda: None


@dataclass(eq=False)
class Turn:
    """One piece of work; `may_go` is done when whoever ordered it need not wait for it any more.

    What takes no longer than `rest_after_seconds` keeps what it has: most of what is waited for is ready by then.
    """

    rest_after_seconds: float = 2.0
    may_go: Future[None] = field(default_factory=Future)
    pledges: list[Pledge] = field(default_factory=list)
    is_resting: bool = False


_turn: contextvars.ContextVar[Turn | None] = contextvars.ContextVar("turn", default=None)
_lock = threading.Lock()
_resting: set[Turn] = set()


def run_aside(work: Callable[[], None]) -> None:
    """Do `work` in a thread of its own; returns when it has ended, raising what it raised, or when it rests.

    What it raises after that is logged.
    """
    turn, ended, context = Turn(), Future[None](), contextvars.copy_context()
    _THREADS.begin(lambda: context.run(_do, work, turn, ended))
    wait([ended, turn.may_go], return_when=FIRST_COMPLETED)
    if ended.done():
        ended.result()


def _do(work: Callable[[], None], turn: Turn, ended: Future[None]) -> None:
    _turn.set(turn)
    close_old_connections()
    try:
        work()
    except BaseException as exc:  # raised in the thread that gave the order
        if turn.may_go.done():
            logger.exception("resumed work failed with an unexpected error")
        ended.set_exception(exc)
    else:
        ended.set_result(None)
    finally:
        with _lock:
            _resting.discard(turn)
        close_old_connections()


class Threads:
    """As many as are needed, and each used again for a while. They end with the process, whatever they are at."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[queue.SimpleQueue[Callable[[], None]]] = []

    def begin(self, work: Callable[[], None]) -> None:
        with self._lock:
            orders = self._idle.pop() if self._idle else None
        if orders is None:
            orders = queue.SimpleQueue()
            threading.Thread(target=self._run, args=(orders,), daemon=True, name="aside").start()
        orders.put(work)

    def _run(self, orders: queue.SimpleQueue[Callable[[], None]]) -> None:
        try:
            while (work := self._next(orders)) is not None:
                work()
                with self._lock:
                    self._idle.append(orders)
        finally:
            connections.close_all()

    def _next(self, orders: queue.SimpleQueue[Callable[[], None]]) -> Callable[[], None] | None:
        try:
            return orders.get(timeout=IDLE_SECONDS)
        except queue.Empty:
            with self._lock:
                if orders in self._idle:
                    self._idle.remove(orders)
                    return None
            return orders.get()  # given in this very moment


_THREADS = Threads()


def rest(waited_seconds: float) -> None:
    """Called again and again by work that waits, with how long it has; it rests once that is long enough."""
    turn = _turn.get()
    if turn is None or turn.is_resting or waited_seconds < turn.rest_after_seconds:
        return
    with _lock:
        if len(_resting) >= MOST_RESTING:
            return
        _resting.add(turn)
    turn.is_resting = True
    for pledge in turn.pledges:
        pledge.leave()
    if not turn.may_go.done():
        turn.may_go.set_result(None)


def go_on() -> None:
    """Called by work that has something to do again: returns when it has back what it left."""
    turn = _turn.get()
    if turn is None or not turn.is_resting:
        return
    for pledge in turn.pledges:
        pledge.come_back()
    turn.is_resting = False
    with _lock:
        _resting.discard(turn)


@contextmanager
def resting() -> Iterator[None]:
    """While something is asked that may take a minute and says nothing meanwhile: the work rests as if it waited.

    Returns when it has back what it left.
    """
    turn = _turn.get()
    if turn is None:
        yield
        return
    alarm = threading.Timer(turn.rest_after_seconds, contextvars.copy_context().run, (rest, turn.rest_after_seconds))
    alarm.daemon = True
    alarm.start()
    try:
        yield
    finally:
        alarm.cancel()
        alarm.join()
        go_on()


@contextmanager
def pledged(pledge: Pledge) -> Iterator[None]:
    """While the work of this thread has taken something that it leaves when it rests."""
    turn = _turn.get()
    if turn is None:
        yield
        return
    turn.pledges.append(pledge)
    try:
        yield
    finally:
        turn.pledges.remove(pledge)


@contextmanager
def telling(leave: Callable[[], None]) -> Iterator[None]:
    """In a process of its own: its work has one turn, and `leave` tells the worker that it rests.

    Soon, as others may be waiting for its place whose worker died as well.
    """
    token = _turn.set(Turn(REST_APART_SECONDS, pledges=[Pledge(leave)]))
    try:
        yield
    finally:
        _turn.reset(token)
