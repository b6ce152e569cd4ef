"""Contents in a bucket of a real S3 server: only encrypted, whole or not at all, in little memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from approvals import store
from approvals.buckets.bucket import PART_BYTES, Bucket
from approvals.buckets.location import Location
from approvals.encryption.files import content_files
from approvals.errors import StoreUnavailable, Undecipherable
from tests.support.folders import ROOT
from tests.support.secrets import keep, secret
from tests.support.servers.s3 import AWS, S3Server, Wire, wait_until_held
from tests.support.stores import use_bucket

MIB = 1024 * 1024
NAME = f"sha256/aa/{'a' * 64}"


def parts(count: int) -> Iterator[bytes]:
    """So many MiB that are not in memory at once."""
    return (os.urandom(MIB) for _ in range(count))


@pytest.mark.django_db
def test_S30_no_byte_of_a_secret_reaches_the_server_in_plain_text(
    s3: S3Server, location: Location, wire: Wire, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_bucket(settings, monkeypatch, replace(location, endpoint=wire.url))
    value = "a password that nobody else has"
    row = keep(value)
    data = secret(value).manifests[0].body["data"]["password"]
    assert store.get(row).digest == row.digest
    assert b"PRQ1" in wire.sent, "the wire was listened to"
    for seen in (bytes(wire.sent), s3.everything()):
        assert value.encode() not in seen
        assert data.encode() not in seen
        assert b"harbour" not in seen


@pytest.mark.django_db
def test_the_same_content_is_sent_once(
    location: Location, wire: Wire, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_bucket(settings, monkeypatch, replace(location, endpoint=wire.url))
    for _ in range(2):
        keep("twice")
    assert bytes(wire.sent).count(b"PUT /") == 1


def test_large_contents_are_streamed_both_ways(location: Location) -> None:
    bucket, count = Bucket(location), 6 * PART_BYTES // MIB
    bucket.look()  # with which boto3 is loaded
    tracemalloc.start()
    try:
        bucket.replace(NAME, parts(count))
        sending = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        with bucket.open(NAME) as file:
            read = sum(len(piece) for piece in iter(lambda: file.read(MIB), b""))
        reading = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert read == count * MIB
    assert sending < 4 * PART_BYTES
    assert reading < PART_BYTES


UPLOAD = """
import os, sys
from approvals.buckets.bucket import Bucket
from approvals.buckets.location import Location
where = Location(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], True)
Bucket(where).replace(sys.argv[5], (os.urandom(1024 * 1024) for _ in range(40)))
"""


@pytest.mark.parametrize("held_after", [MIB, 2 * PART_BYTES], ids=["one piece", "several parts"])
def test_kill_9_in_the_middle_of_an_upload_leaves_nothing_that_counts(
    s3: S3Server, location: Location, wire: Wire, held_after: int
) -> None:
    wire.hold_up = held_after
    words = [location.bucket, location.prefix, wire.url, location.region, NAME]
    environment = {
        **os.environ,
        **AWS,
        "DJANGO_SETTINGS_MODULE": "approvals.project.settings",
        "PRATIQUE_DEBUG": "true",
    }
    child = subprocess.Popen([sys.executable, "-c", UPLOAD, *words], cwd=ROOT, env=environment)
    try:
        wait_until_held(wire)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    bucket, now = Bucket(location), timezone.now()
    assert not bucket.exists(NAME)
    assert list(bucket.stored()) == []
    left = s3.uploads(location)
    assert left == [location.prefix + NAME]
    assert bucket.collect_unfinished(now - timedelta(hours=1), store.is_ours) == 0, "it may still be at work"
    assert s3.uploads(location) == left
    assert bucket.collect_unfinished(now + timedelta(hours=1), store.is_ours) == 1
    assert s3.uploads(location) == []


def test_an_upload_that_fails_is_given_up_at_once_and_the_old_bytes_stay(s3: S3Server, location: Location) -> None:
    bucket = Bucket(location)
    bucket.replace(NAME, [b"old"])

    def broken() -> Iterator[bytes]:
        yield from parts(2 * PART_BYTES // MIB)
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space"):
        bucket.replace(NAME, broken())
    assert bucket.open(NAME).read() == b"old"
    assert s3.uploads(location) == []


@pytest.mark.django_db
def test_a_connection_that_ends_early_is_tried_later_and_a_truncated_object_is_not(
    s3: S3Server, location: Location, wire: Wire, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = keep("x" * 200_000)
    wire.cut_down = 100_000
    use_bucket(settings, monkeypatch, replace(location, endpoint=wire.url))
    with pytest.raises(StoreUnavailable, match="closed the connection before the object had come whole"):
        store.get(row)
    file = s3.files_of(location) / store.path_of(row.digest)
    file.write_bytes(file.read_bytes()[:100_000])
    use_bucket(settings, monkeypatch, location)
    with pytest.raises(Undecipherable, match="changed or truncated"):
        store.get(row)
    assert keep("x" * 200_000) == row, "storing it again mends it"
    assert store.get(row).digest == row.digest


def test_an_object_that_comes_too_slowly_is_given_up(location: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes now and then would keep each single wait short."""
    bucket = Bucket(location)
    bucket.replace(NAME, parts(1))
    monkeypatch.setattr("approvals.buckets.transfers.OBJECT_SECONDS", -1.0)
    with pytest.raises(
        StoreUnavailable, match="had not come whole after -1 s; the S3 server or the network is too slow"
    ):
        bucket.open(NAME).read()


def test_keys_begin_with_the_prefix_and_nothing_beside_it_is_listed_or_collected(
    s3: S3Server, location: Location
) -> None:
    Bucket(location).replace(NAME, [b"ours"])
    s3.client.put_object(Bucket=location.bucket, Key="of/somebody/else", Body=b"theirs")
    s3.client.create_multipart_upload(Bucket=location.bucket, Key="of/somebody/else/too")
    assert [one.name for one in Bucket(location).stored()] == [NAME]
    assert Bucket(location).collect_unfinished(timezone.now() + timedelta(hours=1), store.is_ours) == 0
    assert (s3.folder / location.bucket / location.prefix / NAME).exists()


def test_more_objects_than_one_answer_holds_are_all_listed(s3: S3Server, location: Location) -> None:
    folder = s3.files_of(location) / "sha256"
    folder.mkdir(parents=True)
    for number in range(1001):
        (folder / f"{number:04}").write_bytes(b"x")
    assert len(list(content_files().stored())) == 1001


def test_credentials_that_were_replaced_are_read_again(
    location: Location, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In a file that a Secret is mounted as, without a restart."""
    file = tmp_path / "credentials"
    words = "[default]\naws_access_key_id = {}\naws_secret_access_key = {}\n"
    file.write_text(words.format(AWS["AWS_ACCESS_KEY_ID"], "an old secret"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    bucket = Bucket(location)
    with pytest.raises(StoreUnavailable, match="credentials are not accepted"):
        bucket.look()
    file.write_text(words.format(AWS["AWS_ACCESS_KEY_ID"], AWS["AWS_SECRET_ACCESS_KEY"]))
    bucket.look()
