"""What a command says as JSON where it could not find out: a document of its usual shape whose verdict is unknown.

So a script reads standard output by one schema whatever the exit status; the sentence also goes to standard error.
"""

from __future__ import annotations

import argparse
from typing import Any

from provisioner.review.base.facts import ReviewRule
from provisioner.review.base.record import to_record
from provisioner.review.crd_diff import CrdDifference
from provisioner.review.crd_diff import to_record as crd_record
from provisioner.review.output import permission_text
from provisioner.review.preflight import findings
from provisioner.review.preflight.answer import Preflight
from provisioner.review.rights.permission_report import PermissionReport
from provisioner.review.rules.explanations import rules_of
from provisioner.review.rules.explanations import to_record as explained_record
from provisioner.schema.verdicts import NOTHING_KNOWN
from provisioner.values import Plan, Report, Section, Severity

_GAP = ReviewRule("GAP", Section.CONTENT, Severity.UNKNOWN)
_NOT_COMPARED = ReviewRule("CRD-00", Section.CRDS, Severity.UNKNOWN, NOTHING_KNOWN.as_mapping())
_NOT_READ = ReviewRule("PRE-12", Section.PREFLIGHT, Severity.UNKNOWN)


def review(_: argparse.Namespace, words: str, code: str) -> dict[str, Any]:
    """A report without a plan: report.schema.json."""
    return _report("bundle-not-read", words, code)


def _report(variant: str, words: str, code: str) -> dict[str, Any]:
    found = _GAP.finding(variant, None, key=words, why=words, code=code or None)
    record = to_record(Report((found.message,), (found,), Plan((), "")))
    return {**record, "rules": explained_record(rules_of([found]))}


def crd_diff(_: argparse.Namespace, words: str, code: str) -> list[dict[str, Any]]:
    """One element, which names no CRD: crd-diff.schema.json."""
    found = _NOT_COMPARED.finding("not-compared", None, key=words, why=words, code=code or None)
    return [crd_record(CrdDifference("", (found,)))]


def rbac(options: argparse.Namespace, words: str, code: str) -> dict[str, Any]:
    """Nobody's rights, and one problem: permissions.schema.json. Of a whole cluster a report: report.schema.json."""
    if options.bundle is None:
        return _report("cluster-not-read", words, code)
    return permission_text.to_record(PermissionReport((), (), (words,)), {})


def preflight(options: argparse.Namespace, words: str, code: str) -> dict[str, Any]:
    """No step, and the account as far as it was understood: preflight.schema.json."""
    found = _NOT_READ.finding("installation-not-read", None, key=words, why=words, code=code or None)
    return findings.to_record(Preflight(options.account, (found,), (), (), ()))
