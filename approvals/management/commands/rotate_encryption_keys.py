"""`pratique-manage rotate_encryption_keys`: re-encrypt stored data with the first key."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from approvals import services
from approvals.encryption.keys import keyring
from approvals.management.operator_command import OperatorCommand
from provisioner.sentences import and_more

PROBLEMS_SHOWN = 20


class Command(OperatorCommand):
    help = (
        "Encrypt everything stored with the first key of PRATIQUE_ENCRYPTION_KEYS. Safe while other processes"
        " run. If it is interrupted, run it again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="change nothing; show which keys are in use")

    def handle(self, *args: Any, **options: Any) -> None:
        is_check = options["check"]
        done = services.rotate_keys(by=self.actor, tell=self.stdout.write, is_trial=is_check)
        first = keyring()[0].name
        for name, count in sorted(done.used.items()):
            self.stdout.write(f"key {name} ({_role(name)}) encrypts {count} values")
        if done.problems:
            more = and_more(len(done.problems) - PROBLEMS_SHOWN)
            shown = [*done.problems[:PROBLEMS_SHOWN], *([more] if more else [])]
            raise CommandError(
                f"{len(done.problems)} values are not encrypted with the first key. Keep every key you have.\n"
                + "\n".join(f"  {line}" for line in shown)
            )
        if is_check:
            old = sum(count for name, count in done.used.items() if name != first)
            if old:
                raise CommandError(f"{old} values still need an older key: run pratique-manage rotate_encryption_keys")
        else:
            self.stdout.write(f"{done.changed} values were re-encrypted with the key {first}")
        if done.spare_keys:
            self.stdout.write(
                f"These keys are no longer needed: {', '.join(done.spare_keys)}. Once every process runs with {first}"
                " as its first key, run this again; if it says so again, remove them from PRATIQUE_ENCRYPTION_KEYS."
                " Older backups still need them."
            )


def _role(name: str) -> str:
    known = [key.name for key in keyring()]
    if name not in known:
        return "missing from PRATIQUE_ENCRYPTION_KEYS"
    return "the first" if name == known[0] else "an older one"
