"""The app's registration."""

from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.db.backends.signals import connection_created

from approvals import clock
from provisioner import confinement

# No transaction here waits for anything but the database. Of a process that was stopped in one, the locks go then.
IDLE_IN_TRANSACTION = "30s"


def begin_connection(connection: Any, **_: object) -> None:
    """Have its idle transactions end, and learn the database's clock."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            limit = "set_config('idle_in_transaction_session_timeout', %s, false)"
            cursor.execute(f"SELECT {limit}, clock_timestamp()", [IDLE_IN_TRANSACTION])
            clock.learn(cursor.fetchone()[1])


def check_confinement(**_: object) -> list[checks.CheckMessage]:
    words = confinement.weakness()
    return [checks.Warning(words, id="approvals.W001")] if words else []


class ApprovalsConfig(AppConfig):
    name = "approvals"
    verbose_name = "Pratique"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        checks.register(check_confinement)
        connection_created.connect(begin_connection, dispatch_uid="begin a connection")
