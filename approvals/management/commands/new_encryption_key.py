"""`pratique-manage new_encryption_key`: a key for PRATIQUE_ENCRYPTION_KEYS."""

from __future__ import annotations

from typing import Any

from approvals.encryption.keys import new_key
from approvals.management.operator_command import OperatorCommand


class Command(OperatorCommand):
    help = "Print a new key for PRATIQUE_ENCRYPTION_KEYS: 32 random bytes in base64. It is not stored."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(new_key())
