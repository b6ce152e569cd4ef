"""What waits in Celery's queue, and what workers took from it and have not finished."""

from __future__ import annotations

import time

import redis
from django.conf import settings
from prometheus_client.core import GaugeMetricFamily, Metric

from approvals.metrics.sources import SourceAway
from approvals.wake import AFTER_REQUESTS

PATIENCE_SECONDS = 2
# The names that Celery and kombu give them in Redis.
QUEUE, UNACKED, UNACKED_INDEX = "celery", "unacked", "unacked_index"
QUEUE_AFTER = f"{QUEUE}\x06\x16{AFTER_REQUESTS}"


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
