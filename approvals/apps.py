"""The app's registration."""

from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.db.backends.signals import connection_created

from provisioner import confinement

# No transaction here waits for anything but the database. Of a process that was stopped in one, the locks go then.
IDLE_IN_TRANSACTION = "30s"


def end_idle_transactions(connection: Any, **_: object) -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('idle_in_transaction_session_timeout', %s, false)", [IDLE_IN_TRANSACTION])


def check_confinement(**_: object) -> list[checks.CheckMessage]:
    words = confinement.weakness()
    return [checks.Warning(words, id="approvals.W001")] if words else []


class ApprovalsConfig(AppConfig):
    name = "approvals"
    verbose_name = "Pratique"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        checks.register(check_confinement)
        connection_created.connect(end_idle_transactions, dispatch_uid="end idle transactions")
