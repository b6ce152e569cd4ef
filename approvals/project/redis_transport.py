"""Kombu's transport for Redis, whose channels still reach Redis after their connection was closed."""

from __future__ import annotations

from typing import Any

from kombu.transport import redis


class RedisTransport(redis.Transport):
    """Keeps what its connection knows (host, password, options) beyond that connection's end.

    When a worker loses Redis during a task, Celery closes the connection, and kombu sets the transport's `client` to
    None. The channel that holds the task's message then connects anew, to put the message back or to acknowledge it.
    That fails with an AttributeError, which ends the worker (kombu 5.7.0;
    https://github.com/celery/kombu/issues/582).
    """

    @property
    def client(self) -> Any:
        return self._client

    @client.setter
    def client(self, client: Any) -> None:
        if client is not None:
            self._client = client
