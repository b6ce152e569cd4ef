"""Bundles with their findings: each folder under cases/ holds new/, mostly old/, and what a reviewer has to be told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from provisioner.values import Finding
from tests.support.provisioner.cases import CASES, report_of


def record(finding: Finding) -> dict[str, object]:
    path = ".".join(map(str, finding.path))
    found = {"rule": finding.rule, "severity": str(finding.severity), "ref": str(finding.ref or ""), "path": path}
    also = {"also": list(finding.also)} if finding.also else {}
    return {**found, **also} if finding.is_new else {**found, **also, "isNew": False}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_bundle_has_exactly_the_findings_that_its_case_names_and_each_time_the_same_report(case: Path) -> None:
    report = report_of(case)
    assert report == report_of(case)
    expected = json.loads((case / "findings.json").read_text())
    assert sorted(map(record, report.findings), key=str) == sorted(expected, key=str)
