"""A bucket behind something that goes wrong: nothing is lost, and nothing that is wrong is believed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from approvals import retention, store
from approvals.buckets.bucket import PART_BYTES, Bucket
from approvals.buckets.location import Location
from approvals.encryption.files import content_files
from approvals.errors import StoreUnavailable, Undecipherable
from approvals.models import Content
from tests.support.patience import scaled
from tests.support.secrets import keep
from tests.support.servers.s3 import S3Server
from tests.support.servers.s3_faults import Answer, Call, Fault, refusal
from tests.support.stores import use_bucket

pytestmark = pytest.mark.django_db
NAMES = [f"sha256/{letter * 2}/{letter * 64}" for letter in "abcdef"]


def unneeded(value: str) -> Content:
    row = keep(value)
    Content.objects.filter(pk=row.pk).update(used_at=timezone.now() - timedelta(days=9))
    return row


def test_a_deletion_that_comes_late_does_not_meet_what_was_stored_again(
    location: Location, behind: Callable[[Fault], Any], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = unneeded("late")
    go, done = threading.Event(), threading.Event()

    def late(call: Call) -> Answer:
        if call.method != "DELETE":
            return call.send()
        assert go.wait(scaled(60))
        answer = call.send()
        done.set()
        return answer

    behind(late)
    with pytest.raises(StoreUnavailable, match="did not answer in time"):
        retention._remove(row.pk, timezone.now())
    use_bucket(settings, monkeypatch, location)
    with pytest.raises(StoreUnavailable, match=r"has not confirmed that it deleted .* until \d\d:\d\d UTC"):
        keep("late")
    go.set()
    assert done.wait(scaled(60))
    Content.objects.filter(pk=row.pk).update(deleting_until=timezone.now())
    assert store.get(keep("late")).digest == row.pk


def test_one_object_that_cannot_be_deleted_leaves_the_others_to_be_collected(
    location: Location, behind: Callable[[Fault], Any], settings: Any
) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "KEEP_DAYS": 1}
    held = unneeded("under a legal hold")
    went = [unneeded(str(number)) for number in range(3)]
    for name in NAMES[:3]:
        content_files().replace(name, [b"left"])

    def fault(call: Call) -> Answer:
        is_held = call.method == "DELETE" and any(one in call.path for one in (NAMES[0], held.digest[7:]))
        return refusal(403, "AccessDenied") if is_held else call.send()

    behind(fault)
    done = retention.clear(timezone.now() + timedelta(days=2), keep_days=1)
    assert len(done.failures) == 2
    assert all("the credentials do not allow it (AccessDenied)" in one for one in done.failures)
    assert (done.contents, done.leftovers) == (len(went), 2)
    assert {one.name for one in content_files().stored()} == {NAMES[0], store.path_of(held.digest)}


def test_a_store_that_is_away_is_not_asked_for_each_object(location: Location, behind: Callable[[Fault], Any]) -> None:
    for name in NAMES:
        content_files().replace(name, [b"left"])
    proxy = behind(lambda call: refusal(503, "SlowDown") if call.method == "DELETE" else call.send())
    with pytest.raises(StoreUnavailable, match="SlowDown"):
        retention.clear(timezone.now() + timedelta(days=2), keep_days=0)
    assert [method for method, _ in proxy.calls].count("DELETE") == retention.AWAY_AFTER
    assert not Content.objects.filter(deleting_until=None).exists(), "each of them may still happen"


def test_unfinished_uploads_of_others_below_an_outer_prefix_stay(s3: S3Server, location: Location) -> None:
    """The prefix of one installation may begin with that of another, which may also be the whole bucket."""
    outer, inner = replace(location, prefix=""), replace(location, prefix="b/")
    keys = [NAMES[0], inner.prefix + NAMES[0], "backups/of-somebody-else.tar"]
    for key in keys:
        s3.client.create_multipart_upload(Bucket=location.bucket, Key=key)
    later = timezone.now() + timedelta(hours=2)
    assert Bucket(outer).collect_unfinished(later, store.is_ours) == 1
    assert sorted(s3.uploads(location)) == sorted(keys[1:])


def test_an_upload_that_may_not_be_deleted_leaves_the_others_to_be_collected_and_is_told(
    s3: S3Server, location: Location, behind: Callable[[Fault], Any]
) -> None:
    for name in NAMES[:3]:
        s3.client.create_multipart_upload(Bucket=location.bucket, Key=location.prefix + name)
    behind(lambda call: refusal(403, "AccessDenied") if NAMES[0] in call.path else call.send())
    with pytest.raises(StoreUnavailable, match=r"never finished\): the credentials do not allow it"):
        content_files().collect_unfinished(timezone.now() + timedelta(hours=2), store.is_ours)
    assert s3.uploads(location) == [location.prefix + NAMES[0]]


@pytest.mark.parametrize("size", [10, 2 * PART_BYTES], ids=["whole", "in parts"])
def test_answers_of_an_error_and_answers_that_get_lost_do_no_harm(behind: Callable[[Fault], Any], size: int) -> None:
    """Every second call is done but answered by a 500, and what it says of the bytes is wrong."""
    calls: list[str] = []

    def fault(call: Call) -> Answer:
        calls.append(call.method)
        answer = call.send()
        return refusal(500, "InternalError") if len(calls) % 2 else answer

    proxy = behind(fault)
    content_files().replace(NAMES[0], [b"x" * size])
    assert len(content_files().open(NAMES[0]).read()) == size
    assert len(proxy.calls) > 3


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda body: body[:-40] + bytes(40), "changed or truncated"),
        (lambda body: b"<html>signed out</html>", "not encrypted"),
        (lambda body: b"", "not encrypted"),
    ],
    ids=["other bytes", "a page", "nothing"],
)
def test_bytes_that_are_others_are_never_taken(
    behind: Callable[[Fault], Any], spoil: Callable[[bytes], bytes], words: str
) -> None:
    row = keep("x" * 100_000)

    def fault(call: Call) -> Answer:
        answer = call.send()
        is_content = call.method == "GET" and store.path_of(row.digest) in call.path
        return replace(answer, body=spoil(answer.body)) if is_content else answer

    behind(fault)
    with pytest.raises(Undecipherable, match=words):
        store.get(row)


@pytest.mark.parametrize(
    "list_ends",
    [b"", b"<NextContinuationToken>again</NextContinuationToken>"],
    ids=["without a token", "with the same token"],
)
def test_a_list_that_ends_early_is_no_list(
    location: Location, behind: Callable[[Fault], Any], list_ends: bytes
) -> None:
    """Else contents that are there would be told as missing."""
    body = (
        b'<?xml version="1.0"?><ListBucketResult><Name>%s</Name><IsTruncated>true</IsTruncated>%s</ListBucketResult>'
        % (location.bucket.encode(), list_ends)
    )
    behind(lambda call: Answer(200, body, (("Content-Type", "application/xml"),)))
    with pytest.raises(StoreUnavailable, match="listing objects"):
        list(content_files().stored())
