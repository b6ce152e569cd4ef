"""What this process counts and times, for Prometheus. Every label is of a closed set, or the name of a cluster.

No label holds what a tenant or a stranger chose: no name of a deployment, an object or a person, no words of a server.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics

OTHER = "other"
_CODE = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no types for it
registry = CollectorRegistry()
# The name of an instrument, its labels, and how much was counted: of a histogram the sum and each bucket.
Counted = tuple[str, list[str], list[float]]

_QUICK = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_SLOW = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900)

http_requests = Counter(
    "pratique_http_requests",
    "HTTP requests answered, by view, method and status.",
    ["view", "method", "status"],
    registry=registry,
)
http_seconds = Histogram(
    "pratique_http_request_seconds",
    "Time to answer an HTTP request, by view.",
    ["view"],
    buckets=_QUICK,
    registry=registry,
)
refused_sign_ins = Counter(
    "pratique_refused_sign_ins",
    "Refused sign-ins, by credential: password, cluster_token, api_token, id_token, command_line, proxy, "
    "metrics_token.",
    ["door"],
    registry=registry,
)
refused_callbacks = Counter(
    "pratique_refused_callbacks",
    "Refused chat callbacks, by tool and reason: unverified, unreadable.",
    ["tool", "reason"],
    registry=registry,
)
api_calls = Counter(
    "pratique_api_calls",
    "Kubernetes API calls, by cluster, verb and outcome.",
    ["cluster", "verb", "outcome"],
    registry=registry,
)
api_seconds = Histogram(
    "pratique_api_call_seconds",
    "Duration of Kubernetes API calls, by cluster and verb; for a watch, the time until it starts.",
    ["cluster", "verb"],
    buckets=_QUICK,
    registry=registry,
)
steps = Counter(
    "pratique_steps",
    "Steps of requests run by a worker, by step and outcome: done, failed, waiting, lost_claim, crashed.",
    ["step", "outcome"],
    registry=registry,
)
step_seconds = Histogram(
    "pratique_step_seconds",
    "Duration of completed or failed steps, by step: prepare, evaluate, apply, restore.",
    ["step"],
    buckets=_SLOW,
    registry=registry,
)
source_polls = Counter(
    "pratique_source_polls",
    "Checks of branches, tags and URLs for changes, by kind of source and outcome: unchanged, moved, unavailable, "
    "refused, postponed.",
    ["kind", "outcome"],
    registry=registry,
)
source_poll_seconds = Histogram(
    "pratique_source_poll_seconds",
    "Duration of checks of sources for changes, by kind of source.",
    ["kind"],
    buckets=_QUICK,
    registry=registry,
)
tasks = Counter(
    "pratique_tasks",
    "Tasks run by a worker, by task and outcome: done, crashed.",
    ["task", "outcome"],
    registry=registry,
)
task_seconds = Histogram(
    "pratique_task_seconds", "Duration of tasks, by task.", ["task"], buckets=_SLOW, registry=registry
)
lost_claims = Counter(
    "pratique_lost_claims",
    "Claims taken over by another process during work, by kind: request, deployment.",
    ["kind"],
    registry=registry,
)
unsent_wakes = Counter(
    "pratique_unsent_wakes", "Messages that could not be queued; the sweep picks up their work.", registry=registry
)
crashes = Counter(
    "pratique_uncaught_exceptions", "Uncaught exceptions, by place: main, thread.", ["where"], registry=registry
)
watch_events = Counter(
    "pratique_watch_events", "Events received by the watch, by cluster.", ["cluster"], registry=registry
)
watch_lag = Histogram(
    "pratique_watch_lag_seconds",
    "Time from a change of an object to its watch event, by cluster (compares two clocks).",
    ["cluster"],
    buckets=(0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600),
    registry=registry,
)
watch_breaks = Counter(
    "pratique_watch_breaks", "Watches that were interrupted and retried, by cluster.", ["cluster"], registry=registry
)

# A counter that appears with its first failure hides that failure from rate() and increase().
for _door in ("password", "cluster_token", "api_token", "id_token", "command_line", "proxy", "metrics_token"):
    refused_sign_ins.labels(_door)
for _step in ("prepare", "evaluate", "apply", "restore"):
    for _outcome in ("done", "failed", "waiting", "lost_claim", "crashed"):
        steps.labels(_step, _outcome)
for _kind in ("request", "deployment"):
    lost_claims.labels(_kind)
for _where in ("main", "thread"):
    crashes.labels(_where)


_OWN: dict[str, Counter | Histogram] = {
    name: one for name, one in list(globals().items()) if isinstance(one, Counter | Histogram)
}


def counted() -> list[Counted]:
    """All that this process has counted, for `count` in another one."""
    found = []
    for name, one in _OWN.items():
        parts = one._metrics.items() if one._labelnames else [((), one)]
        for labels, part in list(parts):
            if any(numbers := [value.get() for value in _counted_values(part)]):
                found.append((name, list(labels), numbers))
    return found


def count(counted: Iterable[Counted]) -> None:
    """Add what another process has counted to what this one did."""
    for name, labels, numbers in counted:
        part = _OWN[name].labels(*labels) if labels else _OWN[name]
        for value, number in zip(_counted_values(part), numbers, strict=True):
            value.inc(number)


def _counted_values(part: Any) -> list[Any]:
    """The library shows a histogram only summed up over its buckets, so these are its own."""
    return [part._value] if isinstance(part, Counter) else [part._sum, *part._buckets]


def code_label(text: str) -> str:
    """A problem code or a view's name as a label: ours are short and plain, anything else is "other"."""
    return text if _CODE.fullmatch(text) else OTHER


def method_label(method: str | None) -> str:
    return method if method in _METHODS else OTHER
