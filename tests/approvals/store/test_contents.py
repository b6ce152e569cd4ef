"""Keeping a content: its record comes first, and no transaction waits until the bytes are safe."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any, cast

import pytest
from django.core.management import call_command
from django.db import connection

from approvals import store
from approvals.encryption.files import PrivateFiles, content_files
from approvals.models import Content
from provisioner import pipeline
from provisioner.errors import DigestMismatch
from provisioner.values import Plan
from tests.support.secrets import keep, secret


@pytest.mark.django_db(transaction=True)
def test_no_transaction_is_open_while_the_bytes_travel(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL ends one that waits for something else for half a minute (apps.IDLE_IN_TRANSACTION)."""
    real, seen = PrivateFiles.replace, []

    def watched(self: PrivateFiles, name: str, parts: Iterable[bytes]) -> None:
        used = Content.objects.get(pk=store.digest_of(name)).used_at
        seen.append((connection.in_atomic_block, used is not None))
        real(self, name, parts)

    monkeypatch.setattr(PrivateFiles, "replace", watched)
    row = keep("one")
    assert seen == [(False, True)]
    assert store.get(row).digest == row.digest


@pytest.mark.django_db
def test_a_record_whose_bytes_never_came_gets_them_when_it_is_kept_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dying(self: PrivateFiles, name: str, parts: Iterable[bytes]) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(PrivateFiles, "replace", dying)
        with pytest.raises(KeyboardInterrupt):
            keep("one")
    row = keep("one")
    assert store.get(row).digest == row.digest == secret("one").digest


@pytest.mark.django_db
def test_a_folder_is_checked_as_well_and_the_trial_leaves_nothing(folder: Path) -> None:
    row, said = keep("one"), StringIO()
    call_command("check_content_store", "--read", stdout=said)
    assert said.getvalue().splitlines()[1:] == [
        *(f"{what}: ok" for what in ("list", "write", "read", "delete", "delete unfinished uploads")),
        "1 of 1 contents were read, and have the right digests",
    ]
    assert [one.name for one in content_files().stored()] == [store.path_of(row.digest)]


@pytest.mark.parametrize(
    "name",
    ["sha256/aa/b", f"sha256/ab/{'c' * 64}", f"sha256/cc/{'c' * 64}.unfinished", f"SHA256/cc/{'c' * 64}", "trial-1"],
)
def test_only_paths_of_contents_are_taken_for_some(name: str) -> None:
    assert store.digest_of(name) is None
    assert store.digest_of(store.path_of(f"sha256:{'c' * 64}")) == f"sha256:{'c' * 64}"


@pytest.mark.django_db
def test_S51_two_contents_are_the_same_by_their_bytes_and_their_place(folder: Path) -> None:
    one, again, other = (store.put(store.salted(secret(it)), format_name="plain") for it in ("one", "one", "two"))
    assert one.digest != again.digest
    assert [store.is_same(one, it) for it in (one, again, other)] == [True, True, False]
    again.service_account = "another"
    assert not store.is_same(one, again)
    path = Path(folder) / store.path_of(other.digest)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DigestMismatch):
        store.is_same(other, one)


@pytest.mark.django_db
def test_S09_S38_nobody_can_try_values_on_the_digest_of_a_content(folder: Path) -> None:
    """Nor tell by two digests whether two requests have the same values."""
    plain = secret("one")
    first, second = store.salted(plain), store.salted(plain)
    assert len({plain.digest, first.digest, second.digest}) == 3
    row = store.put(first, format_name="plain")
    kept = store.get(row)
    assert (kept.digest, kept.salt, kept.manifests) == (first.digest, first.salt, plain.manifests)
    assert "salt" not in repr(kept)
    assert store.salted(replace(plain, manifests=())).salt, "a chart writes spec.config into other objects, too"
    assert (row.public_digest, store.put(plain, format_name="plain").public_digest) == (row.digest, "")
    with pytest.raises(DigestMismatch):
        next(pipeline.deploy(cast(Any, None), replace(kept, salt=second.salt), Plan((), ""), inventory=cast(Any, None)))


@pytest.mark.django_db
@pytest.mark.parametrize("is_of_before", [True, False])
def test_S38_what_is_lost_of_the_running_content_is_found_again_by_its_digest(folder: Path, is_of_before: bool) -> None:
    """As a lost key is recovered from, also for what was stored before digests had a salt."""
    running = store.put(secret("one") if is_of_before else store.salted(secret("one")), format_name="plain")
    assert store.salted(secret("one"), running).digest != running.digest, "what can be read tells nothing"
    content_files().delete(store.path_of(running.digest))
    assert store.salted(secret("two"), running).digest != running.digest
    again = store.put(store.salted(secret("one"), running), format_name="plain")
    assert (again.pk, store.get(running).digest) == (running.pk, running.digest)
