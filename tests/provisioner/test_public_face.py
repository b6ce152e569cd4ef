"""The example in the library's docstring does what it says."""

from __future__ import annotations

import doctest
from pathlib import Path

import provisioner


def test_the_example_of_the_library_runs(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    (bundle / "manifests").mkdir(parents=True)
    manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {depth: '7'}\n"
    (bundle / "manifests" / "settings.yaml").write_text(manifest)
    ran = doctest.testmod(provisioner, extraglobs={"bundle": str(bundle)}, raise_on_error=True)
    assert ran.attempted > 4
