"""S30: whoever has the database, the content store or a backup, but not the keys, has no credential and no value."""

from __future__ import annotations

import base64
import itertools
import json
import os
import sqlite3
import stat
import threading
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.files.storage import storages
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from approvals import services, store
from approvals.access import port
from approvals.audit import Actor
from approvals.encryption import envelope, files
from approvals.encryption.envelope import CHUNK_BYTES, HEADER_BYTES, StoredPlace
from approvals.encryption.fields import Encrypted
from approvals.encryption.keys import Key, key_of, new_key, parse_keys
from approvals.errors import KeyMissing, Undecipherable
from approvals.health_endpoints import checks
from approvals.management.demo import supervisor
from approvals.models import AuditEntry, Cluster, Report, Request
from approvals.models import Content as StoredContent
from approvals.project import privacy
from provisioner import render
from provisioner.render import content_digest
from provisioner.values import Content, Manifest
from tests.approvals import world
from tests.approvals.conftest import World
from tests.approvals.world import enter

HERE = StoredPlace("kubeconfig of cluster", ("prod",))
OLD, NEW = (key_of(os.urandom(32)) for _ in range(2))
TOKEN = "c4nary-of-a-kubeconfig"
KUBECONFIG = f"""
current-context: a
contexts: [{{name: a, context: {{cluster: a, user: a}}}}]
clusters: [{{name: a, cluster: {{server: "https://cluster.example:6443"}}}}]
users: [{{name: a, user: {{token: {TOKEN}}}}}]
"""
BY = Actor("test", "shell")


def reported(here: World) -> Request:
    wish = world.wish(here.cluster, world.seen("quay", world.spec()), by=here.rita)
    return world.in_review(wish.requests.get())


def with_keys(settings: Any, *keys: Key) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "ENCRYPTION_KEYS": keys}


@pytest.fixture
def folder(tmp_path: Path, settings: Any) -> Path:
    """A content store of the test's own."""
    backend = {"BACKEND": "approvals.encryption.files.PrivateFiles", "OPTIONS": {"location": tmp_path / "content"}}
    settings.STORAGES = {**settings.STORAGES, "content": backend}
    return tmp_path / "content"


def secret(value: str) -> Content:
    data = base64.b64encode(value.encode()).decode()
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"password": data}}
    manifests = (Manifest(body),)
    digest = content_digest(manifests, install_namespace="harbour", service_account="installer")
    return Content(manifests, "harbour", "installer", (), digest)


def keep(value: str) -> StoredContent:
    return store.put(secret(value), format_name="plain")


# The envelope


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES, 3_000_000])
def test_what_was_encrypted_is_decrypted(size: int) -> None:
    data = os.urandom(size)
    assert envelope.decrypt(envelope.encrypt(data, place=HERE), place=HERE) == data


def test_S30_equal_values_are_not_equal_when_encrypted() -> None:
    assert envelope.encrypt(b"a", place=HERE) != envelope.encrypt(b"a", place=HERE)


@pytest.mark.parametrize("at", [0, 3, 13, HEADER_BYTES - 1, HEADER_BYTES, HEADER_BYTES + 5, -1])
def test_S30_a_changed_byte_is_noticed(at: int) -> None:
    changed = bytearray(envelope.encrypt(b"a value", place=HERE))
    changed[at] ^= 1
    with pytest.raises((Undecipherable, KeyMissing)):
        envelope.decrypt(bytes(changed), place=HERE)


def test_S30_chunks_are_not_lost_doubled_moved_or_taken_from_elsewhere() -> None:
    data = os.urandom(3 * CHUNK_BYTES)
    whole, other = (list(envelope.encrypted_parts(data, place=HERE)) for _ in range(2))
    header, first, second, last = whole
    for parts in (
        [header, first, second],
        [header, first, last],
        [header, last],
        [header, second, first, last],
        [header, first, first, second, last],
        [header, first, second, last, last],
        [header, other[1], second, last],
        [other[0], first, second, last],
        [header],
        [header[:20]],
        [],
        [*whole, b"more"],
    ):
        with pytest.raises(Undecipherable):
            envelope.decrypt(b"".join(parts), place=HERE)


@pytest.mark.parametrize(
    "elsewhere",
    [
        StoredPlace("kubeconfig of cluster", ("staging",)),
        StoredPlace("report of request", ("prod",)),
        StoredPlace("kubeconfig of cluster", ("pro", "d")),
        StoredPlace("kubeconfig of clusterprod", ()),
    ],
)
def test_S30_what_was_encrypted_for_one_place_is_nothing_in_another(elsewhere: StoredPlace) -> None:
    with pytest.raises(Undecipherable, match="belongs to another record"):
        envelope.decrypt(envelope.encrypt(b"a", place=HERE), place=elsewhere)


def test_S30_plain_text_is_not_taken_for_what_was_encrypted() -> None:
    with pytest.raises(Undecipherable, match="kubeconfig of cluster prod is not encrypted"):
        envelope.decrypt(KUBECONFIG.encode(), place=HERE)


def test_S30_a_key_that_is_not_here_is_asked_for_by_its_name(settings: Any) -> None:
    with_keys(settings, OLD)
    encrypted = envelope.encrypt(b"a", place=HERE)
    with_keys(settings, NEW)
    with pytest.raises(KeyMissing, match=rf"key {OLD.name}, which PRATIQUE_ENCRYPTION_KEYS does not have; nothing is"):
        envelope.decrypt(encrypted, place=HERE)
    with_keys(settings, NEW, OLD)
    assert envelope.decrypt(encrypted, place=HERE) == b"a"


# The keys


def test_a_new_key_is_taken_and_shown_to_nobody() -> None:
    text = new_key()
    (key,) = parse_keys(f" {text} ,")
    assert text not in repr(key)
    assert repr(key.secret) not in repr({"ENCRYPTION_KEYS": (key,)})
    assert parse_keys(text.translate(str.maketrans("-_", "+/"))) == (key,)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("c2hvcnQ=", "key 1 has 5 bytes"),
        (f"{base64.b64encode(bytes(range(32))).decode()},hunter2!", "key 2 is not base64"),
        (base64.b64encode(bytes(32)).decode(), "key 1 is not random"),
        (",".join([base64.b64encode(bytes(range(32))).decode()] * 2), "twice"),
    ],
    ids=["too short", "no base64", "not random", "twice"],
)
def test_a_bad_key_is_said_in_words_that_do_not_hold_it(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        parse_keys(text)
    assert not any(part in str(caught.value) for part in text.split(","))


# Columns


@pytest.fixture
def cluster(db: None) -> Cluster:
    return services.register_cluster(name="prod", kubeconfig=KUBECONFIG, by=BY)


def raw(model: Any, column: str) -> list[bytes]:
    return [value.envelope for value in model.objects.order_by("pk").values_list(column, flat=True)]


def test_S30_a_kubeconfig_moved_to_another_cluster_is_refused(cluster: Cluster) -> None:
    other = services.register_cluster(name="staging", kubeconfig=KUBECONFIG.replace(TOKEN, "other"), by=BY)
    (of_prod, _) = raw(Cluster, "kubeconfig")
    Cluster.objects.filter(pk=other.pk).update(kubeconfig=Encrypted(of_prod))
    with pytest.raises(Undecipherable, match="kubeconfig of cluster staging"):
        port.connect(Cluster.objects.get(name="staging"))


def test_S30_a_plain_kubeconfig_in_the_database_is_refused(cluster: Cluster) -> None:
    Cluster.objects.update(kubeconfig=Encrypted(KUBECONFIG.encode()))
    with pytest.raises(Undecipherable, match="is not encrypted"):
        port.connect(Cluster.objects.get())
    Cluster.objects.update(kubeconfig=Encrypted(b""))  # "" in plain would be the cluster that Pratique runs in
    with pytest.raises(Undecipherable, match="is not encrypted"):
        port.connect(Cluster.objects.get())


def test_S30_a_column_is_never_written_or_looked_up_in_plain(cluster: Cluster) -> None:
    with pytest.raises(TypeError, match="save the row"):
        Cluster.objects.update(kubeconfig=KUBECONFIG)
    with pytest.raises(TypeError, match="save the row"):
        Cluster.objects.filter(kubeconfig=KUBECONFIG).exists()


def test_an_encrypted_column_reads_writes_defers_and_keeps_what_nobody_looked_at(cluster: Cluster) -> None:
    before = raw(Cluster, "kubeconfig")
    row = Cluster.objects.get()
    row.version = "v1.36.3"
    row.save()
    assert raw(Cluster, "kubeconfig") == before
    assert TOKEN in Cluster.objects.defer("kubeconfig").get().kubeconfig
    row.kubeconfig = row.kubeconfig.replace(TOKEN, "another")
    row.save(update_fields=["kubeconfig"])
    row.refresh_from_db()
    assert "another" in row.kubeconfig
    assert raw(Cluster, "kubeconfig") != before
    assert Cluster.objects.create(name="own", created_at=timezone.now()).kubeconfig == ""
    assert Cluster.objects.get(name="own").kubeconfig == ""


def test_S30_a_dump_of_the_rows_holds_nothing_plain(cluster: Cluster, tmp_path: Path) -> None:
    dump = tmp_path / "dump.json"
    call_command("dumpdata", "approvals.cluster", output=str(dump))
    assert TOKEN not in dump.read_text()
    assert "prod" in dump.read_text()


def said_by_probe() -> dict[str, str]:
    """What the operator's own listener answers, asked anew."""
    checks._kept.forget()
    found: dict[str, str] = json.loads(checks.readyz({}).body)["checks"]
    return found


def test_S30_without_the_key_pages_say_so_and_nothing_is_lost(here: World, settings: Any, client: Client) -> None:
    with_keys(settings, OLD)
    request = reported(here)
    here.cluster.kubeconfig = KUBECONFIG
    here.cluster.save()
    with_keys(settings, NEW)
    enter(client, here.ada)
    client.raise_request_exception = False
    page = client.get(f"/requests/{request.uid}")
    told = client.get(f"/api/v1/requests/{request.uid}/report")
    assert (page.status_code, told.status_code) == (503, 503)
    assert b"A key is missing" in page.content
    assert told.json()["code"] == "key-missing"
    assert client.get("/clusters").status_code == 200
    assert client.get("/readyz").status_code == 503
    assert said_by_probe()["keys"] == "a key that encrypted stored data is missing: see PRATIQUE_ENCRYPTION_KEYS"
    with_keys(settings, NEW, OLD)
    assert client.get(f"/requests/{request.uid}").status_code == 200
    assert said_by_probe()["keys"] == "ok"


# The content store


def test_S30_a_content_moved_to_another_path_is_refused(db: None, folder: Path) -> None:
    one, two = keep("one"), keep("two")
    (folder / store.path_of(two.digest)).write_bytes((folder / store.path_of(one.digest)).read_bytes())
    with pytest.raises(Undecipherable, match=two.digest):
        store.get(two)
    assert keep("two") == two  # putting the same content again mends it
    assert store.get(two).digest == two.digest


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


def test_a_write_that_breaks_off_leaves_the_old_bytes(folder: Path) -> None:
    storage = storages["content"]
    files.replace(storage, "sha256/aa/b", [b"old"])

    def broken() -> Iterator[bytes]:
        yield b"new"
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space"):
        files.replace(storage, "sha256/aa/b", broken())
    assert list(files.names(storage)) == ["sha256/aa/b"]
    assert (folder / "sha256/aa/b").read_bytes() == b"old"


# Rotation


@pytest.fixture
def filled(here: World, folder: Path, settings: Any) -> list[StoredContent]:
    """Everything that is encrypted, by the old key; then the new one comes first."""
    with_keys(settings, OLD)
    here.cluster.kubeconfig = KUBECONFIG
    here.cluster.save()
    reported(here)
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


def test_S30_a_rotation_beside_readers_disturbs_none(filled: list[StoredContent], folder: Path, settings: Any) -> None:
    paths = [(row.digest, folder / store.path_of(row.digest)) for row in filled]
    stop, read, troubles = threading.Event(), itertools.count(), []

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
    for first, second in itertools.islice(itertools.cycle([(OLD, NEW), (NEW, OLD)]), 6):
        with_keys(settings, first, second)
        rotate()
    stop.set()
    for thread in threads:
        thread.join()
    assert next(read) > 20
    assert troubles == []


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
    left = [f"sha256/aa/{'a' * 64}", f"sha256/aa/{'b' * 64}.0123456789abcdef{files.UNFINISHED}"]
    for name in left:
        files.replace(storages["content"], name, [b"plain, from before"])
    rotate()
    assert set(files.names(storages["content"])) == {*left, store.path_of(kept.digest)}
    for name in left:
        os.utime(folder / name, (0, 0))
    rotate()
    assert set(files.names(storages["content"])) == {store.path_of(kept.digest)}


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


def test_S30_the_demo_makes_its_own_key_and_keeps_it_also_where_it_ran_before(tmp_path: Path) -> None:
    path = tmp_path / "state" / "remembered.json"
    first = supervisor.remembered(path)
    assert parse_keys(first["encryption_key"])
    assert supervisor.remembered(path) == first
    path.write_text(json.dumps({**first, "encryption_key": ""}).replace('"encryption_key": ""', '"other": "1"'))
    path.chmod(0o644)
    older = supervisor.remembered(path)
    assert (older["password"], len(parse_keys(older["encryption_key"]))) == (first["password"], 1)
    assert supervisor.remembered(path) == older
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
