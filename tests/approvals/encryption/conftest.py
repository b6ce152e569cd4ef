"""Fixtures of the tests in this folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def folder(tmp_path: Path, settings: Any) -> Path:
    """A content store of the test's own."""
    backend = {"BACKEND": "approvals.encryption.files.PrivateFiles", "OPTIONS": {"location": tmp_path / "content"}}
    settings.STORAGES = {**settings.STORAGES, "content": backend}
    return tmp_path / "content"
