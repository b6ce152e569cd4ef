"""How long clusters take to answer us, and how they answer."""

from __future__ import annotations

from approvals import instruments
from provisioner.cluster.exchanges import Exchange, Observer

_OUTCOMES = {401: "refused", 403: "refused", 404: "not_found", 409: "conflict", 410: "gone", 429: "throttled"}


def observer_of(cluster: str) -> Observer:
    """What counts and times the calls to the cluster of this name."""

    def observe(exchange: Exchange) -> None:
        instruments.api_seconds.labels(cluster, exchange.verb).observe(exchange.seconds)
        instruments.api_calls.labels(cluster, exchange.verb, outcome_of(exchange.status)).inc()

    return observe


def outcome_of(status: int) -> str:
    """An HTTP status as one of few words."""
    if status == 0:
        return "no_answer"
    if status < 400:
        return "ok"
    return _OUTCOMES.get(status, "server_error" if status >= 500 else "invalid")
