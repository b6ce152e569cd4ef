"""Files that only the service reads, written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, Storage

FILE_MODE = 0o600
FOLDER_MODE = 0o700
# What a killed process was writing; nobody writes one file for longer.
UNFINISHED = ".unfinished"
UNFINISHED_AGE = timedelta(hours=1)


class PrivateFiles(FileSystemStorage):
    """Files of mode 0600 in folders of mode 0700. `replace` is safe beside readers and other writers of the file."""

    def __init__(self, **options: object):
        modes = {"file_permissions_mode": FILE_MODE, "directory_permissions_mode": FOLDER_MODE}
        super().__init__(**{**modes, **options})  # type: ignore[arg-type]  # the options of Django's class

    def replace(self, name: str, parts: Iterable[bytes]) -> None:
        """Have `name` hold these bytes, after a crash as well: the old ones stay until the new ones are on the disk."""
        target = Path(self.path(name))
        self._make_folder(target.parent)
        scratch = target.with_name(f"{target.name}.{secrets.token_hex(8)}{UNFINISHED}")
        try:
            with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE), "wb") as file:
                file.writelines(parts)
                file.flush()
                os.fsync(file.fileno())
            scratch.replace(target)
        except BaseException:
            scratch.unlink(missing_ok=True)
            raise
        _sync(target.parent)

    def make_private(self, name: str) -> None:
        """Take from others what an older version let them read: the file and the folders above it."""
        path, root = Path(self.path(name)), Path(self.location)
        path.chmod(FILE_MODE)
        for folder in (path.parent, *path.parent.parents):
            if folder == root or root in folder.parents:
                folder.chmod(FOLDER_MODE)

    def _make_folder(self, folder: Path) -> None:
        """Every missing folder with its mode: `makedirs` gives the mode to the last one only."""
        missing = [one for one in (folder, *folder.parents) if not one.exists()]
        for one in reversed(missing):
            with contextlib.suppress(FileExistsError):
                one.mkdir(mode=FOLDER_MODE)


def replace(storage: Storage, name: str, parts: Iterable[bytes]) -> None:
    """`PrivateFiles.replace`, or what comes nearest to it on another storage."""
    if isinstance(storage, PrivateFiles):
        storage.replace(name, parts)
        return
    whole = b"".join(parts)
    storage.delete(name)
    storage.save(name, ContentFile(whole))


def names(storage: Storage, folder: str = "") -> Iterator[str]:
    """Every file below `folder`, sorted."""
    try:
        folders, files = storage.listdir(folder)
    except FileNotFoundError:
        return
    for file in sorted(files):
        yield f"{folder}/{file}" if folder else file
    for inner in sorted(folders):
        yield from names(storage, f"{folder}/{inner}" if folder else inner)


def is_unfinished(name: str) -> bool:
    return name.endswith(UNFINISHED)


def is_old(storage: Storage, name: str) -> bool:
    """Whether nobody can be writing it any more."""
    modified: datetime = storage.get_modified_time(name)
    return time.time() - modified.timestamp() > UNFINISHED_AGE.total_seconds()


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
