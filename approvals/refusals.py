"""A cluster that refuses a process, or does not answer it, is marked in the database: all pages and metrics tell of it.

A watch that is open goes on for minutes after credentials were revoked, or the name no longer resolves: the watching
process alone would not know.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections import Counter
from datetime import datetime, timedelta

from django.db import Error
from django.db.models import Q

from approvals import logs
from approvals.clock import database_now
from approvals.models import Cluster

logger = logging.getLogger(__name__)
# One call that is not answered in time is only slow.
SILENCES = 2
NOTED_AGAIN_SECONDS = 30.0
# Who marked it may have ended: then nobody clears the mark.
COUNTS_FOR = timedelta(minutes=5)
WARN_BEFORE = timedelta(days=7)

_silences = Counter[str]()
_noted_at: dict[str, float] = {}


def note_answer(cluster: str, status: int) -> None:
    """Mark the cluster of this name where it refuses our credentials (401) or is silent, until it answers this process.

    `status` is the HTTP status, 0 for none. Never raises: whoever called the cluster goes on.
    """
    _silences[cluster] = _silences[cluster] + 1 if status == 0 else 0
    words = ""
    if status == 401:
        words = (
            "the API server refuses its credentials (401): renew them with pratique-manage register_cluster --replace"
        )
    elif _silences[cluster] >= SILENCES:
        words = "the API server does not answer it: check its name, the network and the log of this process"
    elif status == 0:
        return
    known_at = _noted_at.get(cluster)
    is_known = known_at is not None and time.monotonic() - known_at < NOTED_AGAIN_SECONDS
    if is_known if words else known_at is None:
        return
    try:
        _note(cluster, words)
    except Error as exc:
        logger.warning("a cluster could not be marked", extra={"cluster": cluster, "error": type(exc).__name__})


def _note(cluster: str, words: str) -> None:
    own = f"{logs.process_name() or 'command'} {socket.gethostname()[:60]}:{os.getpid()}"
    if words:
        _noted_at[cluster] = time.monotonic()
        Cluster.objects.filter(name=cluster).update(
            refusal=f"{own}: {words}", refused_by=own, refused_at=database_now()
        )
    else:
        if _noted_at.pop(cluster, None) is None:
            return  # another thread of this process was answered as well
        Cluster.objects.filter(name=cluster, refused_by=own).update(refusal="", refused_by="", refused_at=None)


def problem_of(cluster: Cluster, now: datetime) -> str:
    """What is wrong with the cluster, as the watch or any other process knows it; "" for nothing."""
    is_refused = cluster.refused_at is not None and now - cluster.refused_at < COUNTS_FOR
    return "\n".join(words for words in (cluster.problem, cluster.refusal if is_refused else "") if words)


def has_problem(now: datetime) -> Q:
    """`problem_of`, as a condition on clusters."""
    return ~Q(problem="") | ~Q(refusal="") & Q(refused_at__gt=now - COUNTS_FOR)


def end_of_credentials(cluster: Cluster, now: datetime) -> str:
    """A warning that the registered credentials end soon, or have ended; "" for neither."""
    end = cluster.credentials_end
    if end is None or end - now > WARN_BEFORE:
        return ""
    ends = "end" if end > now else "ended"
    todo = f"pratique-manage register_cluster {cluster.name} --kubeconfig FILE --replace"
    return f"its credentials {ends} at {end:%Y-%m-%d %H:%M} UTC: renew them with {todo}"
