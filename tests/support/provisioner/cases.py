"""The bundles that a reviewer is told about: each folder holds new/, mostly old/, and findings.json; some hold
objects/, which are stored."""

from __future__ import annotations

from pathlib import Path

from provisioner.cli.inputs import read_stored_objects
from provisioner.pipeline import look_offline
from provisioner.values import Report
from tests.support.folders import ROOT
from tests.support.provisioner.contents import content_of

FOLDER = ROOT / "tests/provisioner/review/cases"
CASES = sorted(FOLDER.iterdir())


def report_of(case: Path) -> Report:
    """What the library says of the bundle, beside the one before it where there is one."""
    content = content_of(case / "new")
    assert content is not None
    objects = case / "objects"
    stored = read_stored_objects(objects) if objects.exists() else None
    return look_offline(content, content_of(case / "old"), stored=stored)
