"""How long clusters take to answer us, and how they answer: for Prometheus, and of late for the page of clusters."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from approvals import instruments
from approvals.clock import database_now
from approvals.refusals import note_answer
from provisioner.cluster.client.transport import Exchange, Observer

_OUTCOMES = {401: "refused", 403: "refused", 404: "not_found", 409: "conflict", 410: "gone", 429: "throttled"}
# So many answers of a cluster make its latency.
KEPT = 20


@dataclass(frozen=True, slots=True)
class Answers:
    """What this process saw of a cluster's API server: its last answer, how long the last ones took, the last silence.

    `median_ms` is that of `count` answers, at most KEPT; None before the first.
    """

    answered_at: datetime | None
    median_ms: float | None
    count: int
    silent_at: datetime | None

    @property
    def is_silent(self) -> bool:
        """Whether the last call was not answered."""
        return self.silent_at is not None and (self.answered_at is None or self.silent_at > self.answered_at)


_answers: defaultdict[str, deque[tuple[datetime, float]]] = defaultdict(lambda: deque(maxlen=KEPT))
_silences: dict[str, datetime] = {}


def observer_of(cluster: str) -> Observer:
    """What counts and times the calls to the cluster of this name."""

    def observe(exchange: Exchange) -> None:
        instruments.api_seconds.labels(cluster, exchange.verb).observe(exchange.seconds)
        instruments.api_calls.labels(cluster, exchange.verb, outcome_of(exchange.status)).inc()
        if exchange.status:
            _answers[cluster].append((database_now(), exchange.seconds))
        else:
            _silences[cluster] = database_now()
        if exchange.verb != "watch":  # which breaks off without harm, and is answered once
            note_answer(cluster, exchange.status)

    return observe


def answers_of(cluster: str) -> Answers:
    """Read from memory: nothing is asked."""
    kept = list(_answers[cluster]) if cluster in _answers else []
    last = kept[-1][0] if kept else None
    typical = median(seconds for _, seconds in kept) * 1000 if kept else None
    return Answers(last, typical, len(kept), _silences.get(cluster))


def outcome_of(status: int) -> str:
    """An HTTP status as one of few words."""
    if status == 0:
        return "no_answer"
    if status < 400:
        return "ok"
    return _OUTCOMES.get(status, "server_error" if status >= 500 else "invalid")
