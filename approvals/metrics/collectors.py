"""What the database says: requests, claims, deployments, drift, clusters, chat deliveries."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import Protocol

import redis
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection, transaction
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from approvals.clock import database_now
from approvals.encryption.files import content_files
from approvals.errors import StoreUnavailable
from approvals.instruments import OTHER, code_label
from approvals.lifecycle import OPEN, SETTLED, State
from approvals.selectors import figures
from approvals.wake import AFTER_REQUESTS
from provisioner.values import HealthState

logger = logging.getLogger(__name__)
KEPT_SECONDS = 5.0


TIMEOUT_MILLISECONDS = 2_000
# Of these there is a figure even where it is zero: an alert can tell "none" from "not asked".
NOT_LOOKED_AT = "not_looked_at"
HEALTH = frozenset(HealthState)
PATIENCE_SECONDS = 2
# The names that Celery and kombu give them in Redis.
QUEUE, UNACKED, UNACKED_INDEX = "celery", "unacked", "unacked_index"
QUEUE_AFTER = f"{QUEUE}\x06\x16{AFTER_REQUESTS}"


class SourceAway(Exception):
    """The source did not answer, or not in time."""


class Source(Protocol):
    def read(self) -> list[Metric]:
        """All that the source says now; raises SourceAway."""
        ...


@dataclass(eq=False)
class Kept:
    """A source as Prometheus' client collects it: one reader at a time, at most one reading in KEPT_SECONDS."""

    name: str
    source: Source
    _lock: Lock = field(default_factory=Lock)
    _read_at: float = -KEPT_SECONDS
    _found: list[Metric] = field(default_factory=list)
    _is_up: bool = False

    def describe(self) -> list[Metric]:
        """Nothing: registering must not read."""
        return []

    def collect(self) -> Iterator[Metric]:
        with self._lock:
            if time.monotonic() - self._read_at >= KEPT_SECONDS:
                try:
                    self._found, self._is_up = self.source.read(), True
                except SourceAway as exc:
                    self._found, self._is_up = [], False
                    logger.warning("a source of metrics is away", extra={"source": self.name, "error": str(exc)})
                self._read_at = time.monotonic()
            found, is_up = self._found, self._is_up
        up = GaugeMetricFamily(
            f"pratique_{self.name}_up", f"Whether the {self.name.replace('_', ' ')} answered the last scrape."
        )
        up.add_metric([], float(is_up))
        yield up
        yield from found

    def forget(self) -> None:
        """Have the next scrape read anew."""
        with self._lock:
            self._read_at = -KEPT_SECONDS


class RecordsCollector:
    """Seven queries in one transaction (PostgreSQL), each bounded in time."""

    def read(self) -> list[Metric]:
        now = database_now()
        try:
            with _reading():
                return [metric for family in FAMILIES for metric in family(now)]
        except (DatabaseError, InterfaceError) as exc:
            raise SourceAway(type(exc).__name__) from exc


@contextmanager
def _reading() -> Iterator[None]:
    # In SQLite a transaction would hold up those who write, and wait for them.
    if connection.vendor != "postgresql":
        yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {TIMEOUT_MILLISECONDS}")
        yield


def _requests(now: datetime) -> Iterator[Metric]:
    found = figures.open_requests(now)
    names = sorted({figure.cluster for figure in found})
    count = _gauge("pratique_requests", "Open requests, by cluster and state.", "cluster", "state")
    by_state = Counter[tuple[str, str]]()
    by_code = Counter[str]()
    for figure in found:
        by_state[figure.cluster, figure.state] += figure.count
        if figure.code:
            by_code[code_label(figure.code)] += figure.count
    for cluster in names:
        for state in sorted(OPEN):
            count.add_metric([cluster, state], by_state[cluster, state])
    yield count
    oldest = _gauge("pratique_oldest_request_seconds", "Age of the oldest open request, by state.", "state")
    idle = _gauge(
        "pratique_idlest_request_seconds", "Time since the longest unchanged open request changed, by state.", "state"
    )
    for state in sorted(OPEN):
        of_state = [figure for figure in found if figure.state == state]
        oldest.add_metric([state], _age(min((figure.oldest for figure in of_state), default=now), now))
        idle.add_metric([state], _age(min((figure.idle for figure in of_state), default=now), now))
    yield oldest
    yield idle
    waiting = _gauge("pratique_waiting_requests", "Open requests that are waiting, by problem code.", "code")
    for code, number in sorted(by_code.items()):
        waiting.add_metric([code], number)
    yield waiting
    # In review nobody takes over a claim before somebody reviews: nothing is undone there.
    lapsed = sum(figure.lapsed for figure in found if figure.state != State.IN_REVIEW)
    yield from _claims("request", sum(figure.held for figure in found), lapsed)
    yield GaugeMetricFamily(
        "pratique_request_worker_deaths",
        "Worker processes that died while processing open requests, since their last progress.",
        sum(figure.deaths for figure in found),
    )
    listed = settings.PRATIQUE["GITOPS_FILE"].listed
    yield GaugeMetricFamily(
        "pratique_max_open_requests",
        "Open requests that one cluster may have: PRATIQUE_MAX_OPEN_REQUESTS, and those of listed GitOps accounts.",
        settings.PRATIQUE["MAX_OPEN_REQUESTS"]
        + settings.PRATIQUE["MAX_OPEN_REQUESTS_OF_CONTROLLER"] * len({controller.account for controller in listed}),
    )


def _settled(now: datetime) -> Iterator[Metric]:
    found = figures.settled_requests(now)
    by_state = Counter[str]()
    by_code = Counter[str]()
    for figure in found:
        by_state[figure.state] += figure.count
        if figure.state == "failed":
            by_code[code_label(figure.code)] += figure.count
    settled = _gauge("pratique_settled_requests", "Requests settled in the last 24 hours, by state.", "state")
    for state in sorted(SETTLED):
        settled.add_metric([state], by_state[state])
    yield settled
    failed = _gauge("pratique_failed_requests", "Requests that failed in the last 24 hours, by problem code.", "code")
    for code, number in sorted(by_code.items()):
        failed.add_metric([code], number)
    yield failed


def _deployments(now: datetime) -> Iterator[Metric]:
    found = figures.deployments(now)
    count = _gauge("pratique_deployments", "Deployments, by cluster and health.", "cluster", "health")
    by_health = Counter[tuple[str, str]]()
    for figure in found:
        by_health[figure.cluster, _health_label(figure.health)] += figure.count
    for (cluster, health), number in sorted(by_health.items()):
        count.add_metric([cluster, health], number)
    yield count
    yield from _claims("deployment", sum(figure.held for figure in found), sum(figure.lapsed for figure in found))


def _clusters(now: datetime) -> Iterator[Metric]:
    contact = _gauge("pratique_cluster_contact_seconds", "Time since the watch last reached the cluster.", "cluster")
    watched = _gauge("pratique_cluster_watched", "Whether a process holds the watch of the cluster.", "cluster")
    trouble = _gauge("pratique_cluster_trouble", "Whether the cluster's page shows a problem.", "cluster")
    left = _gauge(
        "pratique_cluster_credentials_left_seconds", "Time until the registered credentials end, if they do.", "cluster"
    )
    for figure in figures.clusters(now):
        if figure.reached_at:
            contact.add_metric([figure.name], _age(figure.reached_at, now))
        watched.add_metric([figure.name], float(figure.watched_until is not None and figure.watched_until >= now))
        trouble.add_metric([figure.name], float(figure.has_problem))
        if figure.credentials_end:
            left.add_metric([figure.name], (figure.credentials_end - now).total_seconds())
    yield from (contact, watched, trouble, left)


def _drifts(now: datetime) -> Iterator[Metric]:
    drifts = _gauge("pratique_open_drifts", "Objects that differ from what was approved, by cluster.", "cluster")
    fights = _gauge(
        "pratique_drift_fights",
        "Drifted objects that another manager keeps changing after they were corrected.",
        "cluster",
    )
    for figure in figures.open_drifts():
        drifts.add_metric([figure.cluster], figure.open)
        fights.add_metric([figure.cluster], figure.fights)
    yield from (drifts, fights)


def _deliveries(now: datetime) -> Iterator[Metric]:
    found = figures.open_deliveries()
    yield GaugeMetricFamily("pratique_open_chat_deliveries", "Chat decisions not processed yet.", found.count)
    yield GaugeMetricFamily(
        "pratique_oldest_chat_delivery_seconds",
        "Age of the oldest unprocessed chat decision; 0 for none.",
        _age(found.oldest or now, now),
    )


def _break_glass(now: datetime) -> Iterator[Metric]:
    found = figures.break_glass(now)
    yield CounterMetricFamily("pratique_break_glass", "Requests that somebody let go by break-glass.", found.total)
    yield GaugeMetricFamily("pratique_reviews_owed", "Break-glass that nobody has reviewed afterwards.", found.owed)
    yield GaugeMetricFamily(
        "pratique_reviews_overdue",
        "Break-glass that nobody has reviewed within PRATIQUE_REVIEW_OWED_HOURS.",
        found.overdue,
    )


# A further figure of the records is one function and one line here.
FAMILIES: tuple[Callable[[datetime], Iterator[Metric]], ...] = (
    _requests,
    _settled,
    _deployments,
    _clusters,
    _drifts,
    _deliveries,
    _break_glass,
)


def _claims(kind: str, held: int, lapsed: int) -> Iterator[Metric]:
    claims = _gauge(
        f"pratique_{kind}_claims",
        f"Claims of workers on {kind}s, by state: held, or lapsed because the worker stopped.",
        "state",
    )
    claims.add_metric(["held"], held)
    claims.add_metric(["lapsed"], lapsed)
    yield claims


def _health_label(health: str) -> str:
    if not health:
        return NOT_LOOKED_AT
    return health if health in HEALTH else OTHER


def _gauge(name: str, help_text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, help_text, labels=labels)


def _age(since: datetime, now: datetime) -> float:
    return max(0.0, (now - since).total_seconds())


class ContentStoreCollector:
    def read(self) -> list[Metric]:
        files = content_files()
        try:
            files.look()
            room = files.room()
        except (StoreUnavailable, OSError) as exc:
            raise SourceAway(type(exc).__name__) from exc
        if room is None:
            return []
        return [
            GaugeMetricFamily(
                "pratique_content_store_free_bytes", "Free space of the content store's folder.", room.free_bytes
            ),
            GaugeMetricFamily(
                "pratique_content_store_size_bytes", "Size of the content store's volume.", room.size_bytes
            ),
        ]


class QueueCollector:
    def read(self) -> list[Metric]:
        url = settings.PRATIQUE["REDIS_URL"]
        try:
            with redis.Redis.from_url(
                url, socket_timeout=PATIENCE_SECONDS, socket_connect_timeout=PATIENCE_SECONDS
            ) as client:
                asked = client.pipeline(transaction=False)
                asked.llen(QUEUE).llen(QUEUE_AFTER).hlen(UNACKED).zrange(UNACKED_INDEX, 0, 0, withscores=True)
                first, after, unacked, oldest = asked.execute()
        except (redis.RedisError, OSError, ValueError) as exc:
            raise SourceAway(type(exc).__name__) from exc
        age = max(0.0, time.time() - oldest[0][1]) if oldest else 0.0
        return [
            GaugeMetricFamily("pratique_queue_messages", "Messages waiting in the queue.", first + after),
            GaugeMetricFamily("pratique_queue_unacked_messages", "Messages being processed by workers.", unacked),
            GaugeMetricFamily(
                "pratique_queue_oldest_unacked_seconds", "Age of the oldest message being processed; 0 for none.", age
            ),
        ]
