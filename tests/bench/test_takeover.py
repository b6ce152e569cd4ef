"""How long an apply stands still after the worker at it was killed (-9): until another one writes down what it did.

Run by `make bench`, with two workers and beat as they are shipped, on SQLite and on PostgreSQL.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import statistics
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.bench.service import environment, migrate
from tests.support.journeys import people
from tests.support.journeys.machine import Machine
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.servers.downloads import archive, served
from tests.support.servers.postgresql import Postgres

APPLIES = 3
KILLS = 3
READY = " ready."
WARM_SECONDS = 10.0
# What people are promised (docs/architecture/workers.md).
GOES_ON_SECONDS = 15.0
PATIENCE_SECONDS = 120.0


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'bench.sqlite3'}"
    postgres: Postgres = request.getfixturevalue("postgres")
    return postgres.fresh_database()


@pytest.fixture
def workers(database: str, redis: str, tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path, environment(tmp_path, database=database, queue=redis))
    migrate(made.environment)
    yield made
    made.stop()


def rows(database: str, query: str) -> list[tuple[Any, ...]]:
    if database.startswith("sqlite"):
        with closing(sqlite3.connect(database.removeprefix("sqlite:///"), timeout=20)) as local:
            return local.execute(query).fetchall()
    with psycopg.connect(database, autocommit=True) as server:
        return server.execute(query).fetchall()


def at(value: object) -> datetime:
    return value if isinstance(value, datetime) else datetime.fromisoformat(str(value)).replace(tzinfo=UTC)


def until(is_so: Callable[[], bool], machine: Machine) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < end, machine.log()
        time.sleep(0.1)


def holders(database: str) -> dict[int, int]:
    """The process that holds each request which is being applied."""
    held = rows(database, "SELECT id, claimed_by FROM approvals_request WHERE state = 'applying' AND claimed_by <> ''")
    return {key: int(name.split(":")[1]) for key, name in held}


def noted(database: str) -> dict[int, datetime]:
    """When it was last written down what an apply did."""
    return {key: at(when) for key, when in rows(database, LAST)}


def started(machine: Machine) -> subprocess.Popen[bytes]:
    """A worker that is ready, and so is what it forks processes of their own from."""
    before = (machine.folder / "log").read_text().count(READY)
    worker = machine.celery("worker", "--pool", "threads", "--concurrency", 4)
    until(lambda: (machine.folder / "log").read_text().count(READY) > before, machine)
    time.sleep(WARM_SECONDS)
    return worker


LAST = "SELECT request_id, max(at) FROM approvals_outcome GROUP BY request_id"


def test_figures_of_taking_over(
    workers: Machine, database: str, own_sandbox: Endpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    namespace, kubeconfig = f"stuck-{uuid.uuid4().hex[:8]}", tmp_path / "kubeconfig"
    own_sandbox.write(kubeconfig)
    names = [f"{namespace}-{number}" for number in range(1, APPLIES + 2)]
    files = [archive(people.two_phases(name, namespace), name, tmp_path, tmp_path / "bundles") for name in names]
    with served(tmp_path / "bundles") as address:
        urls = [f"{address}/{file}" for file in files]
        workers.have_people("approve-all", kubeconfig, namespace, *urls)
    workers.celery("beat", "--schedule", tmp_path / "beat")
    running = [started(workers) for _ in range(2)]
    taken: list[float] = []
    for _ in range(KILLS):
        until(lambda: len(holders(database)) == APPLIES and len(noted(database)) > APPLIES, workers)
        held = holders(database)
        victim = next(one for one in running if one.pid in held.values())
        killed_at = datetime.now(UTC)
        os.killpg(victim.pid, signal.SIGKILL)
        victim.wait()
        orphans = [key for key, pid in held.items() if pid == victim.pid]
        until(lambda at=killed_at, of=orphans: all(noted(database)[one] > at for one in of), workers)
        taken += [(noted(database)[one] - killed_at).total_seconds() for one in orphans]
        running.remove(victim)
        running.append(started(workers))
    with capsys.disabled():
        print(
            f"\nafter kill -9 of its worker an apply goes on after {statistics.median(taken):.1f} s on"
            f" {database.split(':', maxsplit=1)[0]} (median of {len(taken)}, max {max(taken):.1f})"
        )
    assert max(taken) <= GOES_ON_SECONDS
