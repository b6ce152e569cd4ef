"""`pratique-manage copy_contents`: move the content store from a folder into a bucket, or back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from approvals import store
from approvals.encryption.files import PrivateFiles, content_files
from approvals.errors import StoreUnavailable
from approvals.management.operator_command import OperatorCommand


class Command(OperatorCommand):
    help = (
        "Copy all contents between a folder and the content store of the settings. Safe while other processes run. If "
        "it is interrupted, run it again: contents that were copied are checked, not copied again. Nothing is deleted."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument(
            "--from", dest="source", metavar="FOLDER", help="copy from this folder into the content store"
        )
        which.add_argument("--to", dest="target", metavar="FOLDER", help="copy from the content store into this folder")

    def handle(self, *args: Any, **options: Any) -> None:
        folder = Path(options["source"] or options["target"])
        if options["source"] and not folder.is_dir():
            raise CommandError(f"{folder} is not a folder: expected the PRATIQUE_CONTENT_DIR of before")
        other, own = PrivateFiles(location=folder), content_files()
        if isinstance(own, PrivateFiles) and Path(own.location).resolve() == folder.resolve():
            raise CommandError(
                f"{folder} is the content store itself: set PRATIQUE_CONTENT_S3_BUCKET, or name another folder"
            )
        here = f"the folder {folder}"
        there = f"the content store ({settings.BUCKET or settings.PRATIQUE['CONTENT_DIR']})"
        ways = (other, own, here, there) if options["source"] else (own, other, there, here)
        source, target, of, into = ways
        self.stdout.write(f"copying from {of} to {into}")
        try:
            found = store.copy_contents(source, target, self.stdout.write)
        except (StoreUnavailable, OSError) as exc:
            raise CommandError(f"it stopped: {exc}. What was copied stays; run it again") from exc
        were_there = found.contents - found.copied - len(found.problems)
        self.stdout.write(
            f"{found.copied} contents were copied ({found.byte_count} bytes), {were_there} were there already; "
            "each was read and has the right digest"
        )
        if found.problems:
            raise CommandError(found.problems_in_words)
