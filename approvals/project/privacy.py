"""What a process writes, only its own account reads (security-rules.md S30)."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from pathlib import Path

from django.conf import settings

logger = logging.getLogger(__name__)

UMASK = 0o077
FILE_MODE = 0o600
# Commands whose files others are to read: the image's static files, source code.
FOR_OTHERS = {"collectstatic", "makemigrations", "spectacular"}
# What SQLite keeps beside a database gets the database's own mode.
BESIDE = ("", "-wal", "-shm", "-journal")


def keep_files_private() -> None:
    """New files are this account's alone; so is, from now on, an SQLite database that others could read."""
    if FOR_OTHERS & set(sys.argv):
        return
    os.umask(UMASK)
    database = settings.DATABASES["default"]
    if database["ENGINE"].endswith("sqlite3"):
        for suffix in BESIDE:
            path = Path(f"{database['NAME']}{suffix}")
            with contextlib.suppress(FileNotFoundError):
                try:
                    if path.stat().st_mode & UMASK:
                        path.chmod(FILE_MODE)
                except PermissionError:
                    logger.warning(
                        "a file that belongs to another account is readable by others", extra={"path": str(path)}
                    )
