"""The WSGI entry point, for gunicorn. Celery's app comes with it: wakes are sent from here."""

import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "approvals.project.settings")

from approvals.project import celery, privacy  # noqa: F401 - needs the settings above; sets the default app

privacy.keep_files_private()

if settings.PRATIQUE["OTLP_ENDPOINT"]:
    from approvals.project import tracing

    tracing.start("web")

application = get_wsgi_application()
