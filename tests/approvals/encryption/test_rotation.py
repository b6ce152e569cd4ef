"""New keys for what was encrypted with old ones: all of it, beside those who read it, and after a kill (S30)."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import storages
from django.core.management import CommandError, call_command

from approvals import store
from approvals.encryption import envelope, files
from approvals.encryption.envelope import StoredPlace
from approvals.errors import Undecipherable
from approvals.models import AuditEntry, Cluster, Report
from approvals.models import Content as StoredContent
from provisioner import render
from tests.support.approvals.fixtures import World
from tests.support.patience import wait_for
from tests.support.secrets import KUBECONFIG, NEW, OLD, TOKEN, keep, raw, reported, secret, with_keys
from tests.support.stores import BOTH_STORES


@pytest.fixture
def filled(env: World, folder: Path, settings: Any) -> list[StoredContent]:
    """Everything that is encrypted, by the old key; then the new one comes first."""
    with_keys(settings, OLD)
    env.cluster.kubeconfig = KUBECONFIG
    env.cluster.save()
    reported(env)
    contents = [keep(str(number)) for number in range(6)]
    with_keys(settings, NEW, OLD)
    return contents


def rotate(**options: Any) -> str:
    said = StringIO()
    call_command("rotate_encryption_keys", stdout=said, **options)
    return said.getvalue()


def heads(folder: Path) -> set[bytes | None]:
    of_files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return {envelope.key_id(data) for data in [*of_files, *raw(Cluster, "kubeconfig"), *raw(Report, "body")]}


@BOTH_STORES
def test_S30_rotating_the_keys_leaves_nothing_to_the_old_one(
    filled: list[StoredContent], folder: Path, settings: Any
) -> None:
    with pytest.raises(CommandError, match=r"values still need an older key"):
        rotate(check=True)
    said = rotate()
    assert heads(folder) == {NEW.id}
    assert f"These keys are no longer needed: {OLD.name}" in said
    assert AuditEntry.objects.get(verb="keys.rotated").facts["key"] == NEW.name
    with_keys(settings, NEW)
    assert f"key {NEW.name} (the first) encrypts" in rotate(check=True)
    assert [store.get(row).digest for row in filled] == [row.digest for row in filled]
    assert TOKEN in Cluster.objects.get().kubeconfig
    assert Report.objects.get().body["plan"]["digest"] == "sha256:p"
    assert "0 values were re-encrypted" in rotate()


@pytest.mark.parametrize("after", range(8))
def test_S30_a_rotation_that_is_killed_goes_on_where_it_was(
    filled: list[StoredContent], folder: Path, settings: Any, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """Killed between two writes, and in the middle of one: every value can be read, and the next run ends it."""
    counted, real = itertools.count(), envelope.encrypted_parts

    def dying(data: bytes, *, place: StoredPlace) -> Iterator[bytes]:
        parts = list(real(data, place=place))
        yield parts[0]
        if next(counted) == after:
            raise KeyboardInterrupt
        yield from parts[1:]

    for module in ("approvals.encryption.envelope", "approvals.services.encryption"):
        monkeypatch.setattr(f"{module}.encrypted_parts", dying)
    with pytest.raises(KeyboardInterrupt):
        rotate()
    monkeypatch.undo()
    with_keys(settings, NEW, OLD)
    storages._storages.clear()
    assert [store.get(row).digest for row in filled] == [row.digest for row in filled]
    assert TOKEN in Cluster.objects.get().kubeconfig
    rotate()
    assert heads(folder) == {NEW.id}


@BOTH_STORES
def test_S30_a_rotation_beside_readers_disturbs_none(filled: list[StoredContent], folder: Path, settings: Any) -> None:
    paths = [(row.digest, folder / store.path_of(row.digest)) for row in filled]
    stop, read, rotations, troubles = threading.Event(), itertools.count(), itertools.count(1), []
    keys = itertools.cycle([(OLD, NEW), (NEW, OLD)])

    def reading() -> None:
        while not stop.is_set():
            for digest, path in paths:
                try:
                    with path.open("rb") as file:
                        envelope.decrypt_file(file, place=store.place_of(digest))
                    next(read)
                except Exception as exc:  # noqa: BLE001 -- whatever it is, it is the finding
                    troubles.append(exc)

    threads = [threading.Thread(target=reading) for _ in range(2)]
    for thread in threads:
        thread.start()

    def rotated() -> bool:
        with_keys(settings, *next(keys))
        rotate()
        return next(rotations) >= 6 and next(read) > 20

    try:
        wait_for(rotated, "they read beside it", every=0.0)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert troubles == []


@BOTH_STORES
def test_S30_what_cannot_be_decrypted_is_named_and_no_key_is_given_up(
    filled: list[StoredContent], folder: Path, settings: Any
) -> None:
    path = folder / store.path_of(filled[0].digest)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CommandError, match=rf"Keep every key you have.\n  the content {filled[0].digest}"):
        rotate()
    path.unlink()
    with_keys(settings, NEW, OLD)
    assert OLD.name in rotate()


@BOTH_STORES
def test_S30_a_content_from_before_the_keys_is_encrypted_if_it_is_the_one_named(
    db: None, folder: Path, settings: Any
) -> None:
    right, wrong = keep("one"), keep("two")
    (folder / store.path_of(right.digest)).write_bytes(render.serialise(secret("one").manifests))
    (folder / store.path_of(wrong.digest)).write_bytes(render.serialise(secret("forged").manifests))
    with pytest.raises(CommandError, match=f"{wrong.digest} was changed in the content store"):
        rotate()
    assert store.get(right).digest == right.digest
    with pytest.raises(Undecipherable):
        store.get(wrong)


def test_S30_what_a_crash_left_in_the_store_is_deleted_when_it_is_old(db: None, folder: Path) -> None:
    kept = keep("one")
    left = [f"sha256/aa/{'a' * 64}", f"sha256/bb/{'b' * 64}.0123456789abcdef{files.UNFINISHED}"]
    for name in left:
        files.content_files().replace(name, [b"plain, from before"])
    rotate()
    assert {one.name for one in files.content_files().stored()} == {*left, store.path_of(kept.digest)}
    for name in left:
        os.utime(folder / name, (0, 0))
    rotate()
    assert {one.name for one in files.content_files().stored()} == {store.path_of(kept.digest)}


@BOTH_STORES
def test_S30_a_content_that_goes_while_the_keys_rotate_is_passed_over(
    filled: list[StoredContent], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listed, and not there any more when its turn comes."""
    last = max(folder.rglob("*"), key=lambda path: path.name if path.is_file() else "")
    real = envelope.encrypted_parts

    def removing(data: bytes, *, place: StoredPlace) -> Iterator[bytes]:
        last.unlink(missing_ok=True)
        yield from real(data, place=place)

    monkeypatch.setattr("approvals.services.encryption.encrypted_parts", removing)
    rotate()
    assert heads(folder) == {NEW.id}
    assert not last.exists()
