"""What can happen to a worker between any two of its writes, counted in events and done for real.

An event is one thing that a worker does to the world: a write to the cluster, the commit of a transaction that wrote,
or a write outside of one. A worker is a forked process: it is hurt inside itself, at the event that it is told, and
nobody has to hit the moment.
"""

from __future__ import annotations

import itertools
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import time_machine
from django.conf import settings
from django.db import connection

from approvals import apps
from approvals.ledger import claims
from approvals.steps.records import notes
from approvals.working import Heartbeat
from provisioner.cluster.client.api import ClusterClient
from provisioner.values import ObjectRef
from tests.chaos.draw import OF_BUNDLE, STOPS, Harm, Kind
from tests.chaos.keeper import Keeper

LOCK_MILLISECONDS = 200
# Of a worker that is stopped: whoever goes on is done after that.
STOPPED_CLAIM_SECONDS = 1
IDLE_IN_TRANSACTION = "1s"
HANDOVER_SECONDS = 3.0
BESIDE_SECONDS = 0.1
WRITTEN = re.compile(r'\s*(?:INSERT INTO|UPDATE|DELETE FROM) "(?:approvals_)?(\w+)"')


@dataclass(frozen=True, slots=True)
class Claim:
    """The row that whoever works holds: a request's, or a deployment's at drift's door."""

    table: str
    key: int


@dataclass
class Hurting:
    """Installed in one worker process; `log` gets a line for every event, and the file `happened` is there once it was.

    `takes` is what somebody else does to the cluster just before this worker's first write of the bundle there. What
    it mirrors of its own objects before that, such as why it tries later, is none: the plan would be found stale.
    """

    harm: Harm
    claim: Claim
    database_url: str
    log: Path
    keeper: Keeper
    takes: Callable[[], None]

    @property
    def happened(self) -> Path:
        return self.log.with_suffix(".happened")

    def install(self) -> None:
        self._numbers = itertools.count(1)
        self._is_taken, self._taking = False, threading.Lock()
        self._unsaved: set[str] = set()
        self._is_to_stop = False
        if self.harm.kind in STOPS:
            self._hold_briefly()
        # Each outcome by itself: batches of a second are as many as the machine is slow.
        notes.SECONDS = 0.0
        for name in ("apply", "create", "replace", "delete"):
            setattr(ClusterClient, name, self._write(getattr(ClusterClient, name), name))
        connection.execute_wrappers.append(self._statement)
        connection.commit = self._end(connection.commit, is_commit=True)
        connection.rollback = self._end(connection.rollback, is_commit=False)

    def _hold_briefly(self) -> None:
        """A claim of a second, that a heartbeat renews as ever, and no lock that outlives it for long."""
        settings.PRATIQUE = {**settings.PRATIQUE, "CLAIM_SECONDS": STOPPED_CLAIM_SECONDS}
        apps.IDLE_IN_TRANSACTION = IDLE_IN_TRANSACTION
        check_sure = claims._check_sure

        def check(worker: str) -> None:
            check_sure(worker)
            if self._is_to_stop:
                self._is_to_stop = False
                self._stop()

        claims._check_sure = check
        Heartbeat(on_still=lambda _: None).start()

    def _stop(self) -> None:
        os.kill(os.getpid(), signal.SIGSTOP)

    def _stop_at_next_send(self) -> None:
        self._is_to_stop = True

    def _write(self, original: Callable[..., Any], name: str) -> Callable[..., Any]:
        def write(*words: Any, **named: Any) -> Any:
            if named.get("dry_run"):
                return original(*words, **named)
            if not is_own(words[1]):
                with self._taking:  # whoever writes beside this one, and is stopped there, would stop the taking too
                    if not self._is_taken:
                        self.takes()
                        self._is_taken = True
            where = "the cluster" if is_own(words[1]) else OF_BUNDLE
            return self._event(f"{name} in {where}", lambda: original(*words, **named))

        return write

    def _statement(self, execute: Callable[..., Any], sql: str, words: Any, many: bool, context: Any) -> Any:
        written = WRITTEN.match(sql)
        if written is None:
            return execute(sql, words, many, context)
        if context["connection"].in_atomic_block:
            self._unsaved.add(written[1])
            return execute(sql, words, many, context)
        return self._event(f"write {written[1]}", lambda: execute(sql, words, many, context))

    def _end(self, original: Callable[[], None], *, is_commit: bool) -> Callable[[], None]:
        def end() -> None:
            written, self._unsaved = sorted(self._unsaved), set()
            if is_commit and written:
                self._event(f"commit {', '.join(written)}", original)
            else:
                original()

        return end

    def _event(self, name: str, do: Callable[[], Any]) -> Any:
        number = next(self._numbers)
        with self.log.open("a") as log:
            log.write(f"{name}\n")
        kind = self.harm.kind if number == self.harm.event else Kind.NOTHING
        if kind in self._harms:
            self.happened.touch()
            self._harms[kind]()
        answer = do()
        if kind is Kind.KILLED_AFTER:
            _die()
        return answer

    @property
    def _harms(self) -> Mapping[Kind, Callable[[], object]]:
        """What is done just before the event."""
        return {
            Kind.KILLED_BEFORE: _die,
            Kind.DATABASE_CUT: self._cut,
            Kind.CLUSTER_CRASHED: lambda: self.keeper.ask("crash"),
            Kind.CLUSTER_RESTARTED: lambda: self.keeper.ask("restart"),
            Kind.STORE_CRASHED: lambda: self.keeper.ask("crash store"),
            Kind.CLOCK_FORWARD: lambda: _jump(hours=10),
            Kind.CLOCK_BACK: lambda: _jump(hours=-10),
            Kind.RIVAL: self._lose_claim,
            Kind.STOPPED: self._stop,
            Kind.STOPPED_SENDING: self._stop_at_next_send,
        }

    def _cut(self) -> None:
        with psycopg.connect(self.database_url, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )

    def _lose_claim(self) -> None:
        """As when a worker is told to stop and goes on for a moment: its claim is given back, and another one has it.

        Given back, not lapsed: who takes over a lapsed claim works in a process that has yet to start, and would not be
        beside this worker at all.
        """
        with psycopg.connect(self.database_url, autocommit=True) as other:
            other.execute(f"SET lock_timeout = {LOCK_MILLISECONDS}")
            table = self.claim.table
            given_back = f"UPDATE {table} SET claimed_by = '', claimed_until = NULL WHERE id = %s"
            try:
                other.execute(given_back, [self.claim.key])
            except psycopg.errors.LockNotAvailable:
                # This worker itself holds the row in an open transaction: nobody takes it from there.
                self.harm = replace(self.harm, event=self.harm.event + 1)
                return
            end = time.monotonic() + HANDOVER_SECONDS
            asked = f"SELECT claimed_by FROM {table} WHERE id = %s"
            while other.execute(asked, [self.claim.key]).fetchone() == ("",) and time.monotonic() < end:
                time.sleep(0.02)
        time.sleep(BESIDE_SECONDS)


def is_own(written: ObjectRef | dict[str, Any]) -> bool:
    ref = written if isinstance(written, ObjectRef) else ObjectRef.of(written)
    return ref.group in ("core.rukpak.io", "events.k8s.io")


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _jump(*, hours: int) -> None:
    time_machine.travel(datetime.now(UTC) + timedelta(hours=hours), tick=True).start()
