"""The WSGI entry point, for gunicorn. Celery's app comes with it: wakes are sent from here."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "approvals.project.settings")
application = get_wsgi_application()

from approvals.project import celery  # noqa: E402, F401 - needs the settings above; sets the default app
