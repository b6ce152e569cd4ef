"""The app's registration; it also loads Celery's app, so that tasks are sent by name from everywhere."""

from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    name = "approvals"
    verbose_name = "Pratique"
    default_auto_field = "django.db.models.BigAutoField"
