"""Celery's app. Tasks are found in approvals.tasks."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "approvals.project.settings")
app = Celery("pratique")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.set_default()
app.autodiscover_tasks(["approvals"])
