"""Sources that come from other packages."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from provisioner.errors import BadSource
from provisioner.source import EgressPolicy, fetch
from provisioner.values import Pin, SourceKind

PLUGIN = """
from provisioner.source import Archive, Fetched
from provisioner.values import Pin, SourceKind

def fetch(source, *, egress, credentials, max_bytes):
    return Fetched(Pin(SourceKind.HTTP, source.bucket, "sha256:0"), (Archive("a.yaml", b"kind: A"),))
"""


@dataclass(frozen=True)
class BucketSource:
    bucket: str
    destination: str = ""


def test_a_source_of_an_installed_package_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bucket_plugin.py").write_text(PLUGIN)
    info = tmp_path / "bucket_plugin-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bucket-plugin\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[pratique.sources]\nBucketSource = bucket_plugin:fetch\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = fetch(BucketSource("here"), egress=EgressPolicy(), max_bytes=10)  # type: ignore[arg-type] -- a plug-in's own
    assert found.pin == Pin(SourceKind.HTTP, "here", "sha256:0")
    sys.modules.pop("bucket_plugin")


def test_a_source_that_nobody_knows_is_refused() -> None:
    with pytest.raises(BadSource, match="no way to fetch a BucketSource"):
        fetch(BucketSource("here"), egress=EgressPolicy(), max_bytes=10)  # type: ignore[arg-type] -- a plug-in's own
