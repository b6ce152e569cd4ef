"""Celery's app. Tasks are found in approvals.tasks."""

import gc
import os

from celery import Celery
from celery.signals import worker_init, worker_ready
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "approvals.project.settings")
app = Celery("pratique")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.set_default()
app.autodiscover_tasks(["approvals"])

if settings.PRATIQUE["OTLP_ENDPOINT"]:
    from approvals.project import tracing

    worker_init.connect(tracing.start_worker)


@worker_ready.connect
def keep_what_is_loaded(**_: object) -> None:
    """Have the collector of garbage pass over the code: looking through that took as long as planning 500 objects."""
    gc.collect()
    gc.freeze()
