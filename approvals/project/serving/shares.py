"""Who holds how much of one worker. What is counted as one client, `approvals.limits.addresses` says."""

from __future__ import annotations

from collections import Counter

from approvals.limits.addresses import counted_as
from approvals.networks import Proxies

CONNECTIONS_OF_ONE_CLIENT = 100
# Of all unfinished requests of one worker.
MAX_GATHERED = 64 * 1024 * 1024


class Shares:
    """Connections, and bytes of unfinished requests, by client."""

    def __init__(self, trusted: Proxies) -> None:
        self._trusted = trusted
        self._connections: Counter[str] = Counter()
        self._gathered: Counter[str] = Counter()

    def enter(self, peer: str) -> bool:
        """Count one more connection of `peer`, until `leave`; whether it may stay. A trusted proxy has any number."""
        client = counted_as(peer)
        self._connections[client] += 1
        return self._connections[client] <= CONNECTIONS_OF_ONE_CLIENT or peer in self._trusted

    def leave(self, peer: str) -> None:
        _add(self._connections, counted_as(peer), -1)

    def gather(self, peer: str, count: int) -> None:
        """Count so many bytes more; less where `count` is negative."""
        _add(self._gathered, counted_as(peer), count)

    def too_much(self) -> str | None:
        """Who holds most of the unfinished bytes, where all together are too many."""
        return self._gathered.most_common(1)[0][0] if self._gathered.total() > MAX_GATHERED else None

    def greediest(self) -> str | None:
        """Who has most connections."""
        return self._connections.most_common(1)[0][0] if self._connections else None


def _add(counter: Counter[str], key: str, count: int) -> None:
    counter[key] += count
    if not counter[key]:
        del counter[key]
