"""Files that only the service reads, written whole or not at all.

`PrivateFiles` is the content store in a folder; `approvals.buckets` is the other one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast

from django.core.files.storage import FileSystemStorage, storages

from approvals.errors import StoreUnavailable

FILE_MODE = 0o600
FOLDER_MODE = 0o700
# What a killed process was writing; nobody writes one file for longer.
UNFINISHED = ".unfinished"
UNFINISHED_AGE = timedelta(hours=1)
# A look writes so much, and a success counts for so long: probes and scrapes ask every few seconds.
PROBE_BYTES = 64 * 1024
PROBE_SECONDS = 30.0
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class StoredFile:
    name: str
    modified: datetime
    byte_count: int

    @property
    def is_unfinished(self) -> bool:
        return self.name.endswith(UNFINISHED)

    @property
    def finished_name(self) -> str:
        """Of an unfinished one, the name that it was to get."""
        return self.name.removesuffix(UNFINISHED).rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class Room:
    free_bytes: int
    size_bytes: int


class ContentFiles(Protocol):
    """What both stores can do. Names are relative, with slashes."""

    def open(self, name: str, mode: str = "rb") -> Any:
        """Its bytes, read once from the beginning; FileNotFoundError where it is missing."""

    def exists(self, name: str) -> bool: ...

    def delete(self, name: str) -> None:
        """No error where it is gone."""

    def replace(self, name: str, parts: Iterable[bytes]) -> None:
        """Have `name` hold these bytes: the old ones stay until all of the new ones are safe. Readers see either."""

    def stored(self) -> Iterator[StoredFile]:
        """Every file, and what nobody has finished where that can be seen as one."""

    def collect_unfinished(self, before: datetime, is_ours: Callable[[str], bool]) -> int:
        """Delete what killed processes have left of files of our names that they began to write before then; how many.

        One that cannot be deleted leaves the others alone, and is raised at the end.
        """

    def look(self) -> None:
        """Raises OSError or StoreUnavailable where it cannot be used now; answers within seconds."""

    def room(self) -> Room | None:
        """None where the store has no end. Raises OSError."""


def each_or_raise(acts: Iterable[Callable[[], int]]) -> int:
    """Do all of them, also after one that fails, and return their sum; then raise the first failure."""
    count, failure = 0, None
    for act in acts:
        try:
            count += act()
        except (OSError, StoreUnavailable) as exc:
            failure = failure or exc
    if failure:
        raise failure
    return count


def content_files() -> ContentFiles:
    """The content store of this process."""
    return cast(ContentFiles, storages["content"])


class PrivateFiles(FileSystemStorage):
    """Files of mode 0600 in folders of mode 0700. `replace` is safe beside readers and other writers of the file."""

    def __init__(self, **options: object):
        modes = {"file_permissions_mode": FILE_MODE, "directory_permissions_mode": FOLDER_MODE}
        super().__init__(**{**modes, **options})  # type: ignore[arg-type]  # the options of Django's class
        self._written_at = -PROBE_SECONDS

    def open(self, name: str, mode: str = "rb") -> Any:
        with self._as_unavailable("read"):
            return super().open(name, mode)

    def replace(self, name: str, parts: Iterable[bytes]) -> None:
        """Have `name` hold these bytes, after a crash as well: the old ones stay until the new ones are on the disk."""
        with self._as_unavailable("written"):
            self._replace(Path(self.path(name)), parts)

    def _replace(self, target: Path, parts: Iterable[bytes]) -> None:
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

    def stored(self) -> Iterator[StoredFile]:
        for name in self._names(""):
            with contextlib.suppress(FileNotFoundError):  # deleted since it was listed
                found = Path(self.path(name)).stat()
                yield StoredFile(name, datetime.fromtimestamp(found.st_mtime, UTC), found.st_size)

    def collect_unfinished(self, before: datetime, is_ours: Callable[[str], bool]) -> int:
        left = [one for one in self.stored() if one.is_unfinished and one.modified < before]
        return each_or_raise(partial(self._gone, one.name) for one in left if is_ours(one.finished_name))

    def _gone(self, name: str) -> int:
        self.delete(name)
        return 1

    def look(self) -> None:
        """Write something: a full or read-only folder can be read all the same."""
        if time.monotonic() - self._written_at < PROBE_SECONDS:
            return
        name = f"probe-{secrets.token_hex(8)}"
        self.replace(name, [bytes(PROBE_BYTES)])
        self.delete(name)
        self._written_at = time.monotonic()

    def room(self) -> Room:
        disk = shutil.disk_usage(self.location)
        return Room(disk.free, disk.total)

    @contextlib.contextmanager
    def _as_unavailable(self, done: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as exc:
            if exc.errno is None:  # not the system's: of whoever gives the parts
                raise
            is_full = exc.errno in (errno.ENOSPC, errno.EDQUOT)
            todo = "make room or enlarge the volume" if is_full else "check the folder"
            why = f"the content store cannot be {done}: {exc.strerror or type(exc).__name__}"
            raise StoreUnavailable(f"{why}; {self._room_words()}; {todo} (PRATIQUE_CONTENT_DIR)") from exc

    def _room_words(self) -> str:
        try:
            room = self.room()
        except OSError:
            return "how much is free cannot be found out"
        return f"{room.free_bytes // MIB:,} of {room.size_bytes // MIB:,} MiB are free"

    def make_private(self, name: str) -> None:
        """Take from others what an older version let them read: the file and the folders above it."""
        path, root = Path(self.path(name)), Path(self.location)
        path.chmod(FILE_MODE)
        for folder in (path.parent, *path.parent.parents):
            if folder == root or root in folder.parents:
                folder.chmod(FOLDER_MODE)

    def _names(self, folder: str) -> Iterator[str]:
        try:
            folders, found = self.listdir(folder)
        except FileNotFoundError:
            return
        yield from (f"{folder}{name}" for name in sorted(found))
        for inner in sorted(folders):
            yield from self._names(f"{folder}{inner}/")

    def _make_folder(self, folder: Path) -> None:
        """Every missing folder with its mode: `makedirs` gives the mode to the last one only."""
        missing = [one for one in (folder, *folder.parents) if not one.exists()]
        for one in reversed(missing):
            with contextlib.suppress(FileExistsError):
                one.mkdir(mode=FOLDER_MODE)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
