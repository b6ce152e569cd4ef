"""The storage of Django over one bucket, as much of it as the content store needs.

An object is there whole or not at all: S3 shows it when its last byte has been taken, and the parts of an upload that
nobody ends are no object (`collect_unfinished`). Why django-storages is not used: docs/decisions/structure.md.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any

from django.core.files.base import File
from django.core.files.storage import Storage

from approvals.buckets import failures
from approvals.buckets.connection import BucketClients
from approvals.buckets.location import Location
from approvals.buckets.transfers import PIECE_BYTES, Arriving, Sending
from approvals.encryption.files import StoredFile, each_or_raise
from approvals.errors import StoreUnavailable

logger = logging.getLogger(__name__)

# S3 takes no smaller ones. One is in memory at a time, and sent again if need be.
PART_BYTES = 8 * 1024 * 1024


class Bucket(Storage):
    """Names are keys below the prefix. Whatever S3 cannot do now raises StoreUnavailable, in words."""

    def __init__(self, location: Location) -> None:
        self.where = location
        self._clients = BucketClients(location)

    def replace(self, name: str, parts: Iterable[bytes]) -> None:
        """Have `name` hold these bytes: the old ones stay until all of the new ones have been taken."""
        from boto3.s3.transfer import TransferConfig  # noqa: PLC0415 - loaded where a bucket is used: it takes long

        one_by_one = TransferConfig(
            multipart_threshold=PART_BYTES,
            multipart_chunksize=PART_BYTES,
            use_threads=False,
            preferred_transfer_client="classic",
        )
        with self._worded("writing an object") as client:
            client.upload_fileobj(
                Sending(parts),
                self.where.bucket,
                self._object_key(name),
                ExtraArgs={"ContentType": "application/octet-stream"},
                Config=one_by_one,
            )

    def exists(self, name: str) -> bool:
        """Asked by listing: to HEAD, a bucket that is missing looks like an object that is."""
        with self._worded("looking for an object") as client:
            page = client.list_objects_v2(Bucket=self.where.bucket, Prefix=self._object_key(name), MaxKeys=1)
        return any(found["Key"] == self._object_key(name) for found in self._contents(page))

    def delete(self, name: str) -> None:
        """Answers within seconds. What was not answered may be done later: until then nothing is put there."""
        with self._worded("deleting an object", is_quick=True) as client:
            client.delete_object(Bucket=self.where.bucket, Key=self._object_key(name))

    def stored(self) -> Iterator[StoredFile]:
        """Every object below the prefix, by name, a thousand at a time."""
        with self._worded("listing objects") as client:
            pages = client.get_paginator("list_objects_v2").paginate(Bucket=self.where.bucket, Prefix=self.where.prefix)
            for page in pages:
                if page.get("IsTruncated") and not page.get("NextContinuationToken"):
                    raise failures.worded(failures.CUT_SHORT, "listing objects")
                for found in self._contents(page):
                    yield StoredFile(self._content_name(found["Key"]), found["LastModified"], found["Size"])

    def collect_unfinished(self, before: datetime, is_ours: Callable[[str], bool]) -> int:
        """Have S3 forget the parts of uploads that began before then, whose process was killed; how many uploads."""
        with self._worded("looking for uploads that were never finished") as client:
            pages = client.get_paginator("list_multipart_uploads")
            uploads: list[Mapping[str, Any]] = []
            for page in pages.paginate(Bucket=self.where.bucket, Prefix=self.where.prefix):
                uploads += page.get("Uploads", ())
        old = [found for found in uploads if found["Initiated"] < before and is_ours(self._content_name(found["Key"]))]
        return each_or_raise(partial(self._abort, upload) for upload in old)

    def look(self) -> None:
        """Raises StoreUnavailable where the bucket is away or may not be listed; answers within seconds."""
        with self._worded("listing objects", is_quick=True) as client:
            page = client.list_objects_v2(Bucket=self.where.bucket, Prefix=self.where.prefix, MaxKeys=1)
        self._contents(page)

    def room(self) -> None:
        return None

    def _open(self, name: str, mode: str = "rb") -> File[bytes]:
        with self._worded("reading an object") as client:
            try:
                answer = client.get_object(Bucket=self.where.bucket, Key=self._object_key(name))
            except client.exceptions.ClientError as exc:
                if failures.is_missing(exc):
                    raise FileNotFoundError(name) from exc
                raise
        arriving = Arriving(answer["Body"], self._told("reading an object"))
        return File(io.BufferedReader(arriving, PIECE_BYTES), name)

    def _contents(self, page: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        """boto3 reads any XML, and any page of HTML, as a bucket that is empty: the list of a bucket says its name."""
        if not page.get("Name"):
            raise failures.worded(failures.NO_S3, "listing objects")
        contents: Sequence[Mapping[str, Any]] = page.get("Contents", ())
        return contents

    def _abort(self, upload: Mapping[str, Any]) -> int:
        where = {"Bucket": self.where.bucket, "Key": upload["Key"], "UploadId": upload["UploadId"]}
        with self._worded("deleting an upload that was never finished") as client:
            try:
                client.abort_multipart_upload(**where)
            except client.exceptions.NoSuchUpload:
                return 0  # another process was quicker
        return 1

    def _object_key(self, name: str) -> str:
        return self.where.prefix + name

    def _content_name(self, key: str) -> str:
        return key.removeprefix(self.where.prefix)

    @contextmanager
    def _worded(self, doing: str, *, is_quick: bool = False) -> Iterator[Any]:
        from boto3.exceptions import Boto3Error  # noqa: PLC0415 - loaded where a bucket is used: it takes long
        from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError  # noqa: PLC0415 - loaded where a bucket is used: it takes long

        try:
            yield self._clients.client(is_quick=is_quick)
        except (Boto3Error, BotoCoreError, ClientError, HTTPClientError) as exc:
            raise self._told(doing)(exc) from exc

    def _told(self, doing: str) -> Callable[[Exception], StoreUnavailable]:
        def told(exc: Exception) -> StoreUnavailable:
            if failures.are_of_credentials(exc):
                self._clients.forget()
            logger.warning(
                "the content store could not be used",
                extra={
                    "store": str(self.where),
                    "doing": doing,
                    "code": failures.code_of(exc),
                    "error": str(exc)[:500],
                },
            )
            return failures.unavailable(exc, doing)

        return told
