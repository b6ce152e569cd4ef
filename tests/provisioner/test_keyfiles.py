"""Private keys for libraries that read files: nothing of them is left."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from provisioner.keyfiles import as_file


@pytest.fixture(params=[True, False], ids=["in memory", "on disk"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files are, on a system with and one without files in memory."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    if not request.param:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    return tmp_path


def identity(path: str) -> tuple[int, int] | None:
    """Which file it is; None where it is closed: other threads open and close files meanwhile."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def test_a_key_is_read_by_nobody_else_and_gone_afterwards(folder: Path) -> None:
    with as_file(b"key") as path:
        key = identity(path)
        assert Path(path).read_bytes() == b"key"
        assert all(file.stat().st_mode & 0o777 == 0o600 for file in folder.iterdir())
    assert list(folder.iterdir()) == []
    assert key not in {identity(f"/proc/self/fd/{one}") for one in os.listdir("/proc/self/fd")}


def test_a_key_is_gone_where_its_reader_failed(folder: Path) -> None:
    with pytest.raises(ValueError, match="no key"), as_file(b"key"):
        raise ValueError("no key")
    assert list(folder.iterdir()) == []
