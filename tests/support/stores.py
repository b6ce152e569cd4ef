"""The content store of a test: in a folder, or in a bucket of a real S3 server, where BOTH_STORES says so.

Both are seen from outside as a folder in which each content is a file of its name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from approvals.buckets.location import Location
from tests.support.servers.s3 import AWS

BOTH_STORES = pytest.mark.parametrize(
    "folder", ["folder", pytest.param("bucket", marks=pytest.mark.services)], indirect=True
)


def use_folder(settings: Any, folder: Path) -> Path:
    backend = {"BACKEND": "approvals.encryption.files.PrivateFiles", "OPTIONS": {"location": folder}}
    settings.STORAGES = {**settings.STORAGES, "content": backend}
    return folder


def use_bucket(settings: Any, monkeypatch: pytest.MonkeyPatch, location: Location) -> Location:
    for name, value in AWS.items():
        monkeypatch.setenv(name, value)
    backend = {"BACKEND": "approvals.buckets.bucket.Bucket", "OPTIONS": {"location": location}}
    settings.STORAGES = {**settings.STORAGES, "content": backend}
    return location


@pytest.fixture
def folder(request: pytest.FixtureRequest, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A content store of the test's own: the folder in which its files are."""
    if getattr(request, "param", "folder") == "folder":
        return use_folder(settings, tmp_path / "content")
    server = request.getfixturevalue("s3")
    return Path(server.files_of(use_bucket(settings, monkeypatch, server.bucket())))
