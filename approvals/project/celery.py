"""Celery's app. Tasks are found in approvals.tasks, what a worker does besides in approvals.project.worker."""

import gc
import os
import time
from typing import Any

import structlog
from celery import Celery
from celery.signals import (
    beat_init,
    before_task_publish,
    celeryd_init,
    setup_logging,
    task_postrun,
    task_prerun,
    worker_init,
    worker_ready,
)
from django.conf import settings
from kombu.transport import TRANSPORT_ALIASES, redis

from approvals import instruments, logs
from approvals.project import privacy

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "approvals.project.settings")
TRANSPORT_ALIASES.update(dict.fromkeys(("redis", "rediss"), "approvals.project.celery:RedisTransport"))
app = Celery("pratique")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.set_default()
app.autodiscover_tasks(["approvals"])
app.autodiscover_tasks(["approvals.project"], related_name="worker")

if settings.PRATIQUE["OTLP_ENDPOINT"]:
    from approvals.project import tracing

    worker_init.connect(tracing.start_worker)


@setup_logging.connect
def leave_logging_alone(**_: object) -> None:
    """With a receiver of this signal Celery adds no handlers of its own."""


@celeryd_init.connect
def say_in_lines(instance: Any, **_: object) -> None:
    """What the worker says at its start and in its handlers of signals goes past `sys.stdout`."""
    instance.quiet = True
    from celery.apps import worker  # noqa: PLC0415 - only the worker has it

    worker.safe_say = lambda words, *_: logs.say(words)  # type: ignore[attr-defined]  # the stubs leave it out


@worker_init.connect
@beat_init.connect
def keep_files_private(**_: object) -> None:
    privacy.keep_files_private()


@worker_ready.connect
def keep_what_is_loaded(**_: object) -> None:
    """Freeze loaded modules so that the garbage collector skips them: a scan took as long as planning 500 objects."""
    gc.collect()
    gc.freeze()


@worker_init.connect
def serve_worker_metrics(**_: object) -> None:
    from approvals import metrics  # noqa: PLC0415 - needs the apps, which are loaded now

    metrics.serve("worker")


@beat_init.connect
def serve_beat_metrics(**_: object) -> None:
    from approvals import metrics  # noqa: PLC0415 - needs the apps, which are loaded now

    metrics.serve("beat")
    before_task_publish.connect(note_turn)


def note_turn(**_: object) -> None:
    """Beat publishes every two seconds, or tries to."""
    from approvals.health_endpoints import checks  # noqa: PLC0415 - needs the apps, which are loaded now

    checks.note_turn()


@task_prerun.connect
def begin_task(task: Any, task_id: str, **_: object) -> None:
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(task=task.name, task_id=task_id)
    task.request.began = time.perf_counter()


@task_postrun.connect
def count_task(task: Any, state: str | None = None, **_: object) -> None:
    began = getattr(task.request, "began", None)
    if began is not None:
        instruments.task_seconds.labels(task.name).observe(time.perf_counter() - began)
    instruments.tasks.labels(task.name, "done" if state == "SUCCESS" else "crashed").inc()
    structlog.contextvars.clear_contextvars()


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
