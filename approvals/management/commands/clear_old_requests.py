"""`pratique-manage clear_old_requests`: remove now what PRATIQUE_KEEP_DAYS does not keep."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from approvals import retention
from approvals.clock import database_now
from approvals.management.operator_command import OperatorCommand


class Command(OperatorCommand):
    help = (
        "Remove the reports and other details of requests that were settled more than PRATIQUE_KEEP_DAYS days ago, and "
        "stored content that nothing needs. Workers do the same every hour. Reviews, verdicts and the audit stay."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="only print how many requests would be cleared")

    def handle(self, *args: Any, **options: Any) -> None:
        days = settings.PRATIQUE["KEEP_DAYS"]
        if not days:
            raise CommandError("PRATIQUE_KEEP_DAYS is 0, so everything is kept: set it to a number of days")
        now = database_now()
        if options["dry_run"]:
            self.stdout.write(f"{retention.outlived(now, keep_days=days)} requests would lose their details")
            return
        done = retention.clear(now, keep_days=days)
        self.stdout.write(
            f"{done.requests} requests lost their details; {done.contents} stored contents "
            f"({done.byte_count} bytes) were removed; {done.leftovers} leftovers of killed workers were removed"
        )
        if done.failures:
            raise CommandError(
                f"{len(done.failures)} deletions failed, the first one because {done.failures[0]}; "
                "they are tried again with every run"
            )
