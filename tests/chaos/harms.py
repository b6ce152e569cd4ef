"""What can happen to a worker between any two of its steps, counted in events and done for real.

An event is one thing that a worker does to the world while it applies: a write to the cluster, or a short transaction.
A worker is a forked process: it is hurt inside itself, at the event that it is told, and nobody has to hit the moment.
"""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

import psycopg
import time_machine
from django.db import connection

from approvals.models import Request
from approvals.steps import deploy, inventory, notes
from provisioner.cluster.api import Cluster
from provisioner.errors import Unreachable

DOWN_FOR_CALLS = 3
RESTART_SECONDS = 20.0


class Kind(StrEnum):
    NOTHING = "nothing"
    KILLED_BEFORE = "killed before"
    KILLED_AFTER = "killed after"
    DATABASE_CUT = "database cut"
    CLUSTER_DOWN = "cluster down"
    CLUSTER_RESTARTED = "cluster restarted"
    CLOCK_FORWARD = "clock forward"
    CLOCK_BACK = "clock back"
    RIVAL = "rival"


@dataclass(frozen=True, slots=True)
class Harm:
    kind: Kind
    event: int

    def __str__(self) -> str:
        return f"{self.kind} at event {self.event}"


@dataclass
class Hurting:
    """Installed in one worker process; `log` gets a line for every event, so that a first run can count them."""

    harm: Harm
    request_id: int
    database_url: str
    log: Path
    restart: Callable[[], None]
    down: int = 0

    def install(self) -> None:
        self._numbers = itertools.count(1)
        for name in ("apply", "delete"):
            setattr(Cluster, name, self._write(getattr(Cluster, name), name))
        for owner, name in (
            (inventory.DatabaseInventory, "intend_many"),
            (inventory.DatabaseInventory, "confirm_many"),
            (inventory.DatabaseInventory, "forget"),
            (notes.Notes, "write"),
            (deploy, "_start"),
            (deploy, "_finish"),
        ):
            setattr(owner, name, self._transaction(getattr(owner, name), name))

    def _write(self, original: Callable[..., Any], name: str) -> Callable[..., Any]:
        def write(*words: Any, **named: Any) -> Any:
            if self.down:
                self.down -= 1
                raise Unreachable("the API server did not answer")
            if named.get("dry_run"):
                return original(*words, **named)
            number = self._next(name)
            self._before(number)
            answer = original(*words, **named)
            self._after(number)
            return answer

        return write

    def _transaction(self, original: Callable[..., Any], name: str) -> Callable[..., Any]:
        def transaction(*words: Any, **named: Any) -> Any:
            number = self._next(name)
            if number >= self.harm.event:
                self._in_transaction()
            self._before(number)
            answer = original(*words, **named)
            self._after(number)
            return answer

        return transaction

    def _next(self, name: str) -> int:
        number = next(self._numbers)
        with self.log.open("a") as log:
            log.write(f"{number} {name}\n")
        return number

    def _before(self, number: int) -> None:
        if number != self.harm.event:
            return
        if self.harm.kind is Kind.KILLED_BEFORE:
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.harm.kind is Kind.CLUSTER_DOWN:
            self.down = DOWN_FOR_CALLS
        elif self.harm.kind is Kind.CLUSTER_RESTARTED:
            self.restart()
        elif self.harm.kind in (Kind.CLOCK_FORWARD, Kind.CLOCK_BACK):
            hours = 10 if self.harm.kind is Kind.CLOCK_FORWARD else -10
            time_machine.travel(datetime.now(UTC) + timedelta(hours=hours), tick=True).start()

    def _after(self, number: int) -> None:
        if number == self.harm.event and self.harm.kind is Kind.KILLED_AFTER:
            os.kill(os.getpid(), signal.SIGKILL)

    def _in_transaction(self) -> None:
        """Only where the worker's own connection is at hand: at the first transaction from the event on, once."""
        kind, self.harm = self.harm.kind, self.harm if self.harm.kind not in ONCE else Harm(Kind.NOTHING, 0)
        if kind is Kind.DATABASE_CUT:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                backend = cursor.fetchone()[0]
            with psycopg.connect(self.database_url, autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s)", [backend])
        elif kind is Kind.RIVAL:
            # As if this worker had stood still for longer than its claim lasts: another one may take the request.
            Request.objects.filter(pk=self.request_id).update(claimed_until=datetime(2020, 1, 1, tzinfo=UTC))
            time.sleep(0.3)


ONCE = frozenset({Kind.DATABASE_CUT, Kind.RIVAL})
