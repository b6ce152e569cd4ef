"""What each preparation asks of a cluster, asked once by the worker for all of them that its processes make at a time.

A request takes only answers that were asked for after it was made, so that it never misses what its author wrote
before it, and none that are older than KEPT_SECONDS. What has waited asks by itself: it may be there now.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from django.db.models import Max

from approvals.access.port import asking_through, connect
from approvals.gate import live_spec, rights
from approvals.lifecycle import State
from approvals.models import Cluster, Request
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import ClusterError, PratiqueError
from provisioner.live_reads import ask_of_cluster, ask_of_namespace

KEPT_SECONDS = 5.0
# For all questions together.
ASK_SECONDS = 10.0
# Where roles and bindings of a cluster are more than that, each preparation reads them; later it is tried again.
MOST_BYTES = 4 * 1024 * 1024
TOO_MUCH_SECONDS = 300.0


@dataclass(slots=True)
class _Asked:
    """`newest` is the key of the last request that there was when the questions went out, at `at` (time.monotonic)."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    answers: dict[str, bytes] = field(default_factory=dict)
    newest: int = 0
    at: float = field(default_factory=time.monotonic)
    rests_until: float = -math.inf


_asked: dict[tuple[int | str, ...], _Asked] = {}
# In a process of its own: what its worker has asked.
_handed_over: dict[int, Mapping[str, bytes]] = {}


def answers_for(request: Request) -> Mapping[str, bytes]:
    """What the API server of its cluster said, for a process that prepares this request; nothing where it did not."""
    if request.state != State.PREPARING or request.attempts:
        return {}
    account = request.bundle_spec.account

    def ask_of_account(api: Api) -> None:
        live_spec.account_of(request, api)
        live_spec.own_right(request, api)
        ask_of_namespace(api, account[0])

    def ask_of_requesters(api: Api) -> None:
        with asking_through(cluster, api):
            rights.requesters_of(request, ())

    cluster, people = request.deployment.cluster, sorted(one["username"] for one in request.requesters)
    answers = dict(_answers(cluster, (), request.pk, ask_of_cluster))
    if answers:
        answers |= _answers(cluster, account, request.pk, ask_of_account)
        answers |= _answers(cluster, (*account, *people), request.pk, ask_of_requesters)
    return answers


def hand_over(answers: Mapping[str, bytes], cluster: Cluster) -> None:
    """Answers of another process, for the preparation that this one is for."""
    _handed_over[cluster.pk] = answers


def connected(cluster: Cluster) -> Api:
    """The cluster, which is not asked what this process was handed over."""
    return connect(cluster).knowing(_handed_over.get(cluster.pk, {}))


def _answers(
    cluster: Cluster, about: tuple[str, ...], request_id: int, ask: Callable[[Api], None]
) -> Mapping[str, bytes]:
    now = time.monotonic()
    for key in [key for key, kept in list(_asked.items()) if now - kept.at > TOO_MUCH_SECONDS]:
        _asked.pop(key, None)
    kept = _asked.setdefault((cluster.pk, *about), _Asked())
    with kept.lock:
        now = time.monotonic()
        if now < kept.rests_until or (request_id <= kept.newest and now - kept.at <= KEPT_SECONDS):
            return kept.answers
        # A row that comes later was not there when its questions went out, whatever the clocks of both processes say.
        newest = Request.objects.aggregate(newest=Max("pk"))["newest"] or 0
        answers: dict[str, bytes] = {}
        kept.answers, kept.newest, kept.at = {}, newest, now
        try:
            # What it serves is handed over as well, and would soon be too old; the rest is asked right after that.
            api = connect(cluster).within(KEPT_SECONDS if about else 1.0).until(now + ASK_SECONDS)
            ask(api.noting(answers, most_bytes=MOST_BYTES))
        except ClusterError:
            kept.rests_until = now + TOO_MUCH_SECONDS
        except PratiqueError:  # whoever prepares finds out, and says so; others wait here no longer
            kept.rests_until = time.monotonic() + KEPT_SECONDS
        else:
            kept.answers = answers
        return kept.answers
