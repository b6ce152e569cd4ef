"""JSON output: how reports are written, and what is printed where a command could not find out.

It is indented down to the entries of lists, and each of these is on one line.

A schema lies forty levels deep, so that indenting all of it makes several times as much of a report about CRDs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
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


def as_json(record: Any) -> str:
    """One JSON document with sorted keys, as text that ends with a newline."""
    return "".join(_json_lines(record, "\n")) + "\n"


def _json_lines(value: Any, line: str) -> Iterator[str]:
    """`line` ends a line and begins the next one."""
    deeper = f"{line}  "
    if isinstance(value, dict) and value:
        for number, key in enumerate(sorted(value)):
            yield f"{',' if number else '{'}{deeper}{json.dumps(key)}: "
            yield from _json_lines(value[key], deeper)
        yield f"{line}}}"
    elif isinstance(value, list) and value:
        for number, entry in enumerate(value):
            yield f"{',' if number else '['}{deeper}{json.dumps(entry, sort_keys=True)}"
        yield f"{line}]"
    else:
        yield json.dumps(value)


_GAP = ReviewRule("GAP", Section.CONTENT, Severity.UNKNOWN)
_NOT_COMPARED = ReviewRule("CRD-00", Section.CRDS, Severity.UNKNOWN, NOTHING_KNOWN.as_mapping())
_NOT_READ = ReviewRule("PRE-12", Section.PREFLIGHT, Severity.UNKNOWN)


def unanswered_review(_: argparse.Namespace, words: str, code: str) -> dict[str, Any]:
    """A report without a plan: report.schema.json."""
    return _unknown_report("bundle-not-read", words, code)


def _unknown_report(variant: str, words: str, code: str) -> dict[str, Any]:
    found = _GAP.finding(variant, None, key=words, why=words, code=code or None)
    record = to_record(Report((found.message,), (found,), Plan((), "")))
    return {**record, "rules": explained_record(rules_of([found]))}


def unanswered_crd_diff(_: argparse.Namespace, words: str, code: str) -> list[dict[str, Any]]:
    """One element, which names no CRD: crd-diff.schema.json."""
    found = _NOT_COMPARED.finding("not-compared", None, key=words, why=words, code=code or None)
    return [crd_record(CrdDifference("", (found,)))]


def unanswered_rbac(options: argparse.Namespace, words: str, code: str) -> dict[str, Any]:
    """Nobody's rights, and one problem: permissions.schema.json. Of a whole cluster a report: report.schema.json."""
    if options.bundle is None:
        return _unknown_report("cluster-not-read", words, code)
    return permission_text.to_record(PermissionReport((), (), (words,)), {})


def unanswered_preflight(options: argparse.Namespace, words: str, code: str) -> dict[str, Any]:
    """No step, and the account as far as it was understood: preflight.schema.json."""
    found = _NOT_READ.finding("installation-not-read", None, key=words, why=words, code=code or None)
    return findings.to_record(Preflight(options.account, (found,), (), (), ()))
