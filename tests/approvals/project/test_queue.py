"""The queue goes and comes back while workers are at work."""

from __future__ import annotations

import contextlib

from kombu import Connection, Consumer, Exchange, Message, Queue

from approvals.project import celery
from tests.support.servers.valkey import Valkey


def test_a_task_that_ends_after_a_restart_of_redis_is_acknowledged(own_redis: Valkey) -> None:
    """Celery's consumer does these steps when it loses the queue: an error here ends the worker."""
    assert celery.app  # has had its transport registered
    queue, taken = Queue("celery"), list[Message]()
    with Connection(own_redis.url) as producing:
        producing.Producer().publish({}, routing_key="celery", declare=[queue])
    connection = Connection(own_redis.url)
    consumer = Consumer(connection, queue, callbacks=[lambda _, message: taken.append(message)], accept=["json"])
    consumer.consume()
    commands = Queue(
        "commands", Exchange("commands", "fanout"), auto_delete=True
    )  # a worker listens to such a queue as well
    Consumer(connection.channel(), commands, callbacks=[print]).consume()
    connection.drain_events(timeout=5)
    with contextlib.suppress(TimeoutError):  # it waits for the next message when the queue goes
        while True:
            connection.drain_events(timeout=0.1)
    own_redis.stop(hard=True)
    connection.collect()
    connection.close()

    own_redis.start()
    taken[0].ack()
    assert own_redis.client.hlen("unacked") == 0
