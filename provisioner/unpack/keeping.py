"""Where the contents of an archive go while it is read: into memory, or into files of a folder of ours."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol, TypeVar

T_co = TypeVar("T_co", covariant=True)


class Keeper(Protocol[T_co]):
    def wants(self, name: str) -> bool:
        """Whether an entry of this name is kept; the others are passed over."""

    def keep(self, path: str, pieces: Iterable[bytes]) -> T_co:
        """Keep the contents of a file."""


class InMemory:
    """Keeps everything, as bytes."""

    def wants(self, name: str) -> bool:
        return True

    def keep(self, path: str, pieces: Iterable[bytes]) -> bytes:
        return b"".join(pieces)


class OnDisk:
    """Keeps what is `wanted` as files of a folder, whose names are ours: nothing of the archive's reaches the disk."""

    def __init__(self, folder: Path, wanted: Callable[[str], bool]):
        self._folder = folder
        self._wanted = wanted
        self._numbers = itertools.count()

    def wants(self, name: str) -> bool:
        return self._wanted(name)

    def keep(self, path: str, pieces: Iterable[bytes]) -> Path:
        place = self._folder / str(next(self._numbers))
        with place.open("xb") as file:
            file.writelines(pieces)
        return place
