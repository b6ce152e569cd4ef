"""The app's registration."""

from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    name = "approvals"
    verbose_name = "Pratique"
    default_auto_field = "django.db.models.BigAutoField"
