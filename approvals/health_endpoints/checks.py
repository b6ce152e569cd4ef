"""`/healthz`: the process lives. `/readyz`: it can work, or in words why not."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Mapping

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from approvals.encryption.files import content_files
from approvals.errors import KeyMissing, StoreUnavailable, Undecipherable
from approvals.health_endpoints import startup_checks
from approvals.health_endpoints.listener import PlainResponse, Responder
from approvals.rate_limits import clients

# A turn takes seconds at most, also where database or queue are away: a restart would not bring them back.
STILL_SECONDS = 60.0
_turned_at: list[float] = []


PATIENCE_SECONDS = 2
KEPT_SECONDS = 1.0


def note_turn() -> None:
    _turned_at[:] = [time.monotonic()]


def still_seconds() -> float:
    """For how long it has not turned, 0.0 for a process without such a loop or before its first turn."""
    return time.monotonic() - _turned_at[0] if _turned_at else 0.0


class NotReady(Exception):
    """The message says what is missing, for the operator."""


def healthz(headers: Mapping[str, str]) -> PlainResponse:
    if (seconds := still_seconds()) > STILL_SECONDS:
        return PlainResponse.of({"status": f"the main loop has stood still for {seconds:.0f} s"}, 503)
    return PlainResponse.of({"status": "ok"})


def readyz(headers: Mapping[str, str]) -> PlainResponse:
    """Every check by name; 503 if one of them failed. Messages name what is missing, never an address or a password.

    `notes` are there if an operator should mend something with which the process can work: how it is reached, and
    rights that it lacks.
    """
    answers = _kept.answers()
    status = "ok" if _are_well(answers) else "not ready"
    told = {**startup_checks.all_notes(), **({"addresses": clients.found()} if clients.found() else {})}
    facts = {"status": status, "checks": answers, **({"notes": told} if told else {})}
    return PlainResponse.of(facts, 200 if status == "ok" else 503)


def is_ready() -> bool:
    """For strangers, who are not told what is missing."""
    return _are_well(_kept.answers())


class _Kept:
    """The answers of the last second, so that who asks often does not keep the database busy."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at = -math.inf
        self._answers: dict[str, str] = {}

    def answers(self) -> dict[str, str]:
        with self._lock:
            if time.monotonic() - self._at > KEPT_SECONDS:
                self._answers = {name: _answer(check) for name, check in CHECKS.items()}
                self._at = time.monotonic()
            return self._answers

    def forget(self) -> None:
        self._at = -math.inf


_kept = _Kept()


def _are_well(answers: Mapping[str, str]) -> bool:
    return all(answer == "ok" for answer in answers.values())


def _answer(check: Callable[[], None]) -> str:
    try:
        check()
    except NotReady as exc:
        return str(exc)
    return "ok"


def check_database() -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as exc:
        raise NotReady("the database is not responding: see PRATIQUE_DATABASE_URL") from exc


def check_migrations() -> None:
    try:
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError as exc:
        raise NotReady("the applied migrations could not be read from the database") from exc
    if missing:
        raise NotReady(f"{len(missing)} migrations are not applied: run pratique-manage migrate")


def check_queue() -> None:
    url = settings.PRATIQUE["REDIS_URL"]
    try:
        with redis.Redis.from_url(
            url, socket_timeout=PATIENCE_SECONDS, socket_connect_timeout=PATIENCE_SECONDS
        ) as client:
            client.ping()
    except (redis.RedisError, OSError) as exc:
        raise NotReady("Redis is not responding: see PRATIQUE_REDIS_URL") from exc


def check_content() -> None:
    try:
        content_files().look()
    except StoreUnavailable as exc:
        raise NotReady(str(exc)) from exc
    except OSError as exc:
        raise NotReady("the content store cannot be used: see PRATIQUE_CONTENT_DIR") from exc


def check_keys() -> None:
    """Whether this process has the keys of what it needs first; which is missing, the pages and the log say."""
    from approvals.models import Cluster  # noqa: PLC0415 - gunicorn's master opens the socket without Django's apps

    try:
        for cluster in Cluster.objects.only("name", "kubeconfig"):
            with contextlib.suppress(Undecipherable):  # that one cluster's trouble, which its page tells
                _ = cluster.kubeconfig
    except KeyMissing as exc:
        raise NotReady("a key that encrypted stored data is missing: see PRATIQUE_ENCRYPTION_KEYS") from exc
    except DatabaseError as exc:
        raise NotReady("encrypted data could not be read from the database") from exc


CHECKS: dict[str, Callable[[], None]] = {
    "database": check_database,
    "migrations": check_migrations,
    "redis": check_queue,
    "content": check_content,
    "keys": check_keys,
}
# What is answered apart from the pages, by path.
PROBES: dict[str, Responder] = {"/healthz": healthz, "/readyz": readyz}
