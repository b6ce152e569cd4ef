"""A process says at its start why it cannot use the content store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from approvals.health_endpoints import tell_content_store
from tests.support.servers.s3 import S3Server
from tests.support.stores import use_bucket


def test_a_bucket_that_is_missing_is_an_error_in_the_log(
    s3: S3Server, settings: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    use_bucket(settings, monkeypatch, replace(s3.bucket(), bucket="nobody-made-this"))
    tell_content_store().join()
    (record,) = [one for one in caplog.records if one.levelname == "ERROR"]
    assert record.message == "the content store cannot be used"
    assert "the bucket does not exist" in record.__dict__["problem"]


def test_a_store_that_can_be_used_is_not_worth_a_line(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    tell_content_store().join()
    assert not [one for one in caplog.records if one.levelname == "ERROR"]
