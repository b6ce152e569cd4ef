"""The clients of one process, and how long each waits for an S3 server."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import Any

from approvals.buckets.location import Location

# Of one call, which is tried as often as this in all. A server that sends nothing for so long is away.
CONNECT_SECONDS, READ_SECONDS, ATTEMPTS = 5, 30, 3
# For probes, and for deletions, of which there may be many in a row.
QUICK_SECONDS, QUICK_ATTEMPTS = 2, 1
# As many as a worker has threads: a connection that no thread gives back in time is opened anew.
POOL_CONNECTIONS = 32


def load() -> None:
    """Import now what the first call would import: for those who are forked later (half a second each)."""
    import boto3.s3.transfer  # noqa: PLC0415 - loaded where a bucket is used: it takes long
    import boto3.session  # noqa: PLC0415, F401 - takes long; wanted for what the import leaves loaded


@dataclass(frozen=True, slots=True)
class _Clients:
    """boto3's clients may be used by several threads; not by a process that was forked from theirs."""

    process: int
    patient: Any
    quick: Any


class BucketClients:
    """Makes the clients when they are needed first, once for all threads: each takes 15 MB."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._lock = threading.Lock()
        self._clients: _Clients | None = None

    def client(self, *, is_quick: bool = False) -> Any:
        with self._lock:
            if self._clients is None or self._clients.process != os.getpid():
                self._clients = self._made()
            return self._clients.quick if is_quick else self._clients.patient

    def forget(self) -> None:
        """Read credentials again for the next call: a file or a token may have been replaced."""
        with self._lock:
            self._clients = None

    def _made(self) -> _Clients:
        from boto3.session import Session  # noqa: PLC0415 - loaded where a bucket is used: it takes long

        session = Session()
        return _Clients(
            os.getpid(),
            self._client(session, CONNECT_SECONDS, READ_SECONDS, ATTEMPTS),
            self._client(session, QUICK_SECONDS, QUICK_SECONDS, QUICK_ATTEMPTS),
        )

    def _client(self, session: Any, connect_seconds: int, read_seconds: int, attempts: int) -> Any:
        from botocore.config import Config  # noqa: PLC0415 - loaded where a bucket is used: it takes long

        config = Config(
            connect_timeout=connect_seconds,
            read_timeout=read_seconds,
            retries={"mode": "standard", "total_max_attempts": attempts},
            max_pool_connections=POOL_CONNECTIONS,
            tcp_keepalive=True,
            # Every chunk is authenticated when it is decrypted (encryption.envelope).
            response_checksum_validation="when_required",
            s3={"addressing_style": "path" if self._location.is_path_style else "auto"},
            user_agent_extra="pratique",
        )
        return session.client(
            "s3",
            endpoint_url=self._location.endpoint or None,
            region_name=self._location.region or None,
            verify=self._location.ca_file or None,
            config=config,
        )
