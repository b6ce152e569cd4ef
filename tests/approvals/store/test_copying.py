"""Moving contents from a folder into a bucket and back: all of them, checked, and again after it was stopped."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from approvals import store
from approvals.buckets.bucket import Bucket
from approvals.buckets.location import Location
from approvals.models import Content
from tests.support.secrets import keep
from tests.support.servers.s3 import S3Server
from tests.support.stores import use_bucket, use_folder

pytestmark = pytest.mark.django_db
COUNT = 4


@pytest.fixture
def rows(settings: Any, tmp_path: Path) -> list[Content]:
    """Kept in the folder `tmp_path`/content, before there was a bucket."""
    use_folder(settings, tmp_path / "content")
    return [keep(str(number)) for number in range(COUNT)]


@pytest.fixture
def bucket(rows: list[Content], s3: S3Server, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Location:
    return use_bucket(settings, monkeypatch, s3.bucket())


def copy(*words: str) -> str:
    said = StringIO()
    call_command("copy_contents", *words, stdout=said)
    return said.getvalue().splitlines()[-1]


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_there_and_back_without_a_change(
    s3: S3Server, bucket: Location, rows: list[Content], settings: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "content"
    assert copy("--from", str(folder)).startswith(f"{COUNT} contents were copied (")
    assert files_below(s3.files_of(bucket)) == files_below(folder)
    assert [store.get(row).digest for row in rows] == [row.digest for row in rows]
    assert copy("--from", str(folder)).startswith(f"0 contents were copied (0 bytes), {COUNT} were there already")
    assert copy("--to", str(tmp_path / "back")).startswith(f"{COUNT} contents were copied")
    assert files_below(tmp_path / "back") == files_below(folder)
    use_folder(settings, tmp_path / "back")
    assert [store.get(row).digest for row in rows] == [row.digest for row in rows]


def test_one_that_is_stopped_goes_on_where_it_was(
    bucket: Location, rows: list[Content], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, written = Bucket.replace, []

    def dying(self: Bucket, name: str, parts: Iterable[bytes]) -> None:
        if len(written) == 2:
            raise KeyboardInterrupt
        real(self, name, parts)
        written.append(name)

    with monkeypatch.context() as patched:
        patched.setattr(Bucket, "replace", dying)
        with pytest.raises(KeyboardInterrupt):
            copy("--from", str(tmp_path / "content"))
    assert copy("--from", str(tmp_path / "content")).startswith(f"{COUNT - 2} contents were copied")


def test_what_is_missing_or_changed_is_named_and_the_others_are_copied(
    s3: S3Server, bucket: Location, rows: list[Content], tmp_path: Path
) -> None:
    missing, changed = (tmp_path / "content" / store.path_of(row.digest) for row in rows[:2])
    missing.unlink()
    changed.write_bytes(changed.read_bytes()[:-1])
    with pytest.raises(CommandError, match="2 contents cannot be used") as caught:
        copy("--from", str(tmp_path / "content"))
    assert f"{rows[0].digest} is not in the content store" in str(caught.value)
    assert f"{rows[1].digest} cannot be decrypted" in str(caught.value)
    assert len(files_below(s3.files_of(bucket))) == COUNT - 2
    with pytest.raises(CommandError, match="2 contents cannot be used"):
        call_command("check_content_store", stdout=StringIO())


def test_a_copy_that_is_wrong_over_there_is_made_anew(
    s3: S3Server, bucket: Location, rows: list[Content], tmp_path: Path
) -> None:
    copy("--from", str(tmp_path / "content"))
    (s3.files_of(bucket) / store.path_of(rows[0].digest)).write_bytes(b"something else")
    with pytest.raises(CommandError, match=f"{rows[0].digest} is not encrypted"):
        call_command("check_content_store", "--read", stdout=StringIO())
    assert copy("--from", str(tmp_path / "content")).startswith("1 contents were copied")


def test_what_was_removed_is_left_behind(bucket: Location, rows: list[Content], tmp_path: Path) -> None:
    Content.objects.filter(pk=rows[0].pk).update(removed_at=timezone.now())
    assert copy("--from", str(tmp_path / "content")).startswith(f"{COUNT - 1} contents were copied")


def test_a_folder_that_is_no_other_store_is_refused(rows: list[Content], tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="is the content store itself: set PRATIQUE_CONTENT_S3_BUCKET"):
        copy("--from", str(tmp_path / "content"))
    with pytest.raises(CommandError, match="is not a folder"):
        copy("--from", str(tmp_path / "nowhere"))


def test_a_bucket_that_is_away_stops_it_in_words(
    bucket: Location, rows: list[Content], s3: S3Server, tmp_path: Path
) -> None:
    s3.client.delete_bucket(Bucket=bucket.bucket)
    with pytest.raises(CommandError, match=r"it stopped: .*the bucket does not exist.* run it again"):
        copy("--from", str(tmp_path / "content"))
