"""`pratique-manage check_content_store`: whether this process may do all that it needs, and whether all is there."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from approvals import store
from approvals.management.operator_command import OperatorCommand

# docs/operating/content-store.md has the policy.
RIGHTS = {
    "list": "s3:ListBucket",
    "write": "s3:PutObject",
    "read": "s3:GetObject",
    "delete": "s3:DeleteObject",
    "delete unfinished uploads": "s3:ListBucketMultipartUploads and s3:AbortMultipartUpload",
}


class Command(OperatorCommand):
    help = (
        "Test everything that processes do with the content store, and report missing settings, rights and contents. "
        "It writes one small file and deletes it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--read", action="store_true", help="also read every content and check its digest")

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"content store: {settings.BUCKET or settings.PRATIQUE['CONTENT_DIR']}")
        failed = 0
        for tried in store.try_store():
            right = f" (right: {RIGHTS[tried.what]})" if tried.is_refused else ""
            self.stdout.write(f"{tried.what}: {tried.problem or 'ok'}{right}")
            failed += bool(tried.problem)
        if failed:
            raise CommandError(f"{failed} of the things that Pratique does with the content store failed: see above")
        found = store.verify_contents(self.stdout.write, is_read=options["read"])
        said = "were read, and have the right digests" if options["read"] else "are there"
        self.stdout.write(f"{found.contents - len(found.problems)} of {found.contents} contents {said}")
        if found.problems:
            raise CommandError(found.problems_in_words)
