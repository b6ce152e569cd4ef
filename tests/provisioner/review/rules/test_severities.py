"""The severities that the file of a rule lists are those that cases of the tests show: no more and no less.

That a finding has no other severity than its file lists is checked after each test (tests/provisioner/conftest.py).
Here the tests that show them run once more, and every severity has to come up.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from provisioner.values import Section, Severity
from tests.support.folders import ROOT
from tests.support.patience import scaled
from tests.support.provisioner import findings_made

FOLDER = "tests/provisioner"
# The quickest tests that together show all of them. Where a new case stands in another file, name it here.
CASES = (
    "review/checks/availability",
    "review/checks/bundle",
    "review/checks/governance/test_admission.py",
    "review/checks/governance/test_quotas.py",
    "review/checks/network",
    "review/checks/objects",
    "review/checks/own",
    "review/checks/pods/test_commands.py",
    "review/checks/pods/test_credentials.py",
    "review/checks/pods/test_images.py",
    "review/checks/pods/test_security.py",
    "review/checks/pods/test_surroundings.py",
    "review/checks/rights",
    "review/checks/traffic",
    "review/preflight/test_answer.py",
    "review/test_cases.py",
    "review/crds/test_live_scene.py",
    "review/crds/test_verdicts.py",
    "review/crds/test_object_fates.py",
    "review/base/test_difference.py",
    "review/test_frame.py",
    "review/test_plugin_checks.py::test_two_checks_of_one_name_are_unknown_and_both_named",
    "review/judged/test_directions.py::test_S36_no_claim_swallows_a_direction",
    "review/judged/test_unjudged_fields.py",
    "review/output/test_headline.py",
    "review/crds/test_live_findings.py",
    "review/rights/test_role_holders.py",
    "review/preflight/test_needs.py",
    "review/crds/test_references.py",
    "review/crds/test_conditions.py::test_objects_of_another_kind_settle_nothing",
    "schema/diff/test_walk.py",
    "schema/diff/test_branches.py",
    "schema/diff/test_crd.py",
    "schema/diff/test_rules.py",
    "schema/inclusion/test_presence.py",
    "schema/diff/test_odd_pairs.py",
    "schema/diff/test_keywords.py",
    "cli/test_crd_diff.py::test_a_crd_that_goes_counts_what_it_takes_along",
    "cli/test_json_output.py",
    "cli/test_cluster_rights.py::test_who_may_not_list_roles_is_told_which",
    "schema/cel/test_type_check.py::test_a_compiler_that_had_no_time_is_no_refusal",
)
SECONDS = 300


def test_every_case_is_there() -> None:
    """The test below runs by `make thorough` alone: that it can start is known at once."""
    assert [case for case in CASES if not (ROOT / FOLDER / case.partition("::")[0]).exists()] == []


@pytest.mark.thorough
def test_every_severity_and_message_that_a_rule_lists_is_shown_by_a_case(tmp_path: Path) -> None:
    file = tmp_path / "made.json"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not corpus and not controlplane"]
    done = subprocess.run(
        [*command, *(f"{FOLDER}/{case}" for case in CASES)],
        cwd=ROOT,
        env={**os.environ, findings_made.FILE: str(file)},
        capture_output=True,
        text=True,
        check=False,
        timeout=scaled(SECONDS),
    )
    assert done.returncode == 0, done.stdout[-3000:]
    found = json.loads(file.read_text())
    shown = {(rule, Severity(severity)) for rule, severity, _ in found["made"]}
    never = sorted(f"{rule} {severity}" for rule, severity in findings_made.listed() - shown)
    assert never == [], "listed by the files of the rules and shown by no case"
    unsaid = findings_made.listed_variants() - {tuple(variant) for variant in found["variants"]}
    assert sorted(unsaid) == [], "messages in the files of the rules that no case shows"


@pytest.mark.parametrize(
    ("found", "is_said"),
    [
        (("WH-03", Severity.BREAKING, Section.WEBHOOKS), False),
        (("WH-03", Severity.SAFE, Section.WEBHOOKS), True),
        (("WH-03", Severity.BREAKING, Section.PODS), True),
        (("GAP", Severity.UNKNOWN, Section.PODS), False),
        (("THEIRS-01", Severity.SAFE, Section.PODS), False),
    ],
    ids=["as written", "another severity", "another section", "a gap of any section", "another package's"],
)
def test_a_finding_other_than_its_file_says_is_named(found: findings_made.Made, is_said: bool) -> None:
    words = ["provisioner/review/rules/WH-03.md says otherwise"] if is_said else []
    assert [one.rpartition(": ")[2] for one in findings_made.not_as_written({found})] == words
