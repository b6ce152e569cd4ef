"""S30: whoever has the content store, but not the keys, has no content."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from approvals import store
from approvals.encryption import files
from approvals.errors import StoreUnavailable, Undecipherable
from approvals.health_endpoints import checks
from approvals.metrics.exposition import SOURCES
from approvals.project import privacy
from provisioner import render
from tests.support.secrets import keep, secret
from tests.support.stores import BOTH_STORES


@BOTH_STORES
def test_S30_a_content_moved_to_another_path_is_refused(db: None, folder: Path) -> None:
    one, two = keep("one"), keep("two")
    (folder / store.path_of(two.digest)).write_bytes((folder / store.path_of(one.digest)).read_bytes())
    with pytest.raises(Undecipherable, match=two.digest):
        store.get(two)
    assert keep("two") == two  # putting the same content again mends it
    assert store.get(two).digest == two.digest


@BOTH_STORES
def test_S30_a_plain_content_is_refused_though_its_digest_is_right(db: None, folder: Path) -> None:
    row = keep("one")
    (folder / store.path_of(row.digest)).write_bytes(render.serialise(secret("one").manifests))
    with pytest.raises(Undecipherable, match="is not encrypted"):
        store.get(row)


def test_S30_files_and_folders_of_the_store_are_the_services_alone(db: None, folder: Path) -> None:
    before = os.umask(0o000)
    try:
        keep("one")
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in [folder, *folder.rglob("*")] if path.is_dir()}
    assert modes == {0o700}
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()} == {0o600}


@BOTH_STORES
def test_a_write_that_breaks_off_leaves_the_old_bytes(folder: Path) -> None:
    storage = files.content_files()
    storage.replace("sha256/aa/b", [b"old"])

    def broken() -> Iterator[bytes]:
        yield b"new"
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space"):
        storage.replace("sha256/aa/b", broken())
    assert [one.name for one in storage.stored()] == ["sha256/aa/b"]
    assert (folder / "sha256/aa/b").read_bytes() == b"old"


def test_a_full_folder_is_unavailable_in_words_in_probes_and_in_metrics(
    db: None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content_store = next(source for source in SOURCES if source.name == "content_store")
    assert keep("one")
    checks._kept.forget()
    assert checks._kept.answers()["content"] == "ok"

    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files, "PROBE_SECONDS", 0)  # the last look was long ago
    monkeypatch.setattr(os, "fsync", fail)
    # Others write to this disk between the two sentences.
    disk = shutil.disk_usage(folder)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: disk)
    with pytest.raises(
        StoreUnavailable, match=r"No space left on device; [\d,]+ of [\d,]+ MiB are free; make room"
    ) as told:
        keep("two")
    checks._kept.forget()
    assert checks._kept.answers()["content"] == str(told.value)
    content_store.forget()
    assert {family.name: family.samples[0].value for family in content_store.collect()} == {
        "pratique_content_store_up": 0
    }

    monkeypatch.undo()
    content_store.forget()
    found = {family.name: family.samples[0].value for family in content_store.collect()}
    assert found["pratique_content_store_up"] == 1
    assert 0 < found["pratique_content_store_free_bytes"] < found["pratique_content_store_size_bytes"]
    assert {one.name.partition("/")[0] for one in files.content_files().stored()} == {"sha256"}, (
        "nothing is left behind"
    )


def test_S30_an_sqlite_database_and_what_lies_beside_it_are_the_services_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    path = tmp_path / "old.sqlite3"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    for beside in tmp_path.iterdir():
        beside.chmod(0o644)
    databases = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": path}}
    monkeypatch.setattr(privacy, "settings", SimpleNamespace(DATABASES=databases))
    before = os.umask(0o022)
    try:
        privacy.keep_files_private()
        (tmp_path / "new").touch()
    finally:
        os.umask(before)
    assert {one.name: stat.S_IMODE(one.stat().st_mode) for one in tmp_path.iterdir()} == dict.fromkeys(
        ("old.sqlite3", "old.sqlite3-wal", "old.sqlite3-shm", "new"), 384
    )
    connection.close()
