"""`pratique-manage rotate_encryption_keys`: encrypt all that is stored with the first of PRATIQUE_ENCRYPTION_KEYS."""

from __future__ import annotations

import getpass
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from approvals import services
from approvals.audit import Actor
from approvals.encryption.keys import keyring
from provisioner.sentences import and_more

PROBLEMS_SHOWN = 20


class Command(BaseCommand):
    requires_system_checks = []  # they load every page, which takes seconds
    help = (
        "Encrypt everything stored with the first key of PRATIQUE_ENCRYPTION_KEYS. Safe while other processes"
        " run. If it is interrupted, run it again."
    )

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--check", action="store_true", help="change nothing; show which keys are in use")

    def handle(self, *args: Any, **options: Any) -> None:
        is_check = options["check"]
        done = services.rotate_keys(by=Actor(getpass.getuser(), "shell"), tell=self.stdout.write, is_trial=is_check)
        first = keyring()[0].name
        for name, count in sorted(done.used.items()):
            self.stdout.write(f"key {name} ({_role(name)}) encrypts {count} values")
        if done.problems:
            raise CommandError(_in_words(done.problems))
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


def _in_words(problems: list[str]) -> str:
    more = and_more(len(problems) - PROBLEMS_SHOWN)
    shown = "\n".join(f"  {line}" for line in [*problems[:PROBLEMS_SHOWN], *([more] if more else [])])
    return f"{len(problems)} values are not encrypted with the first key. Keep every key you have.\n{shown}"
