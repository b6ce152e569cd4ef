"""`policy test`: what a draft of a policy would have said of past requests. The service tries it; nothing is saved."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from provisioner.cli.kubectl.login import open_service
from provisioner.cli.kubectl.service import add_service, told_by
from provisioner.cli.kubectl.tables import age_of, table
from provisioner.cli.kubectl.terminal import page, read_one_document
from provisioner.escaping import visible
from provisioner.render.limits import YamlLimits
from provisioner.sentences import and_more, number

HELP = "try a draft of a policy on past requests"
EPILOG = """\
FILE holds one ApprovalPolicy; - reads standard input. The service evaluates it on
the requests that you may read, each with its report as it was, and saves nothing.
A request is unknown if its report was cleared, or if the policy asks about what
you may not see. Needs a login: see `login --help`.

exit status
  0  no request would have been held (Guard) or approved (Grant)
  1  some would have been
  2  an error
"""
SAME, OTHER = 0, 1
MOST_ROWS = 50
MAX_BYTES = 256 * 1024
LIMITS = YamlLimits(max_file_bytes=MAX_BYTES, max_documents=2, max_nodes=5_000, max_characters=MAX_BYTES, max_depth=20)
_DAYS = re.compile(r"([0-9]{1,4})d?", re.ASCII)
# The results in the order in which they are listed, and as they are called.
RESULTS = {
    "held": "would have been held",
    "approved": "would have been approved",
    "unknown": "unknown",
    "passed": "would have passed",
    "silent": "would not have been approved",
    "not-selected": "not selected",
}
LISTED = ("held", "approved", "unknown")
Record = Mapping[str, Any]


def add(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("action", choices=("test",), help="what to do")
    sub.add_argument("-f", "--filename", metavar="FILE", required=True, help="the ApprovalPolicy; - for standard input")
    sub.add_argument(
        "--requests", metavar="DAYS", type=_parse_days, default=90, help="how far to look back; default: 90d"
    )
    sub.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: %(default)s")
    add_service(sub)


def run(options: argparse.Namespace) -> int:
    service = open_service(options, "policy test needs Pratique's service, which reads the reports")
    policy = read_one_document(options.filename, limits=LIMITS, expected="ApprovalPolicy")
    found = service.post("policy-tests", {"policy": policy, "days": options.requests})
    with told_by(service):
        counts = found["counts"]
        text = json.dumps(found, indent=2) if options.output == "json" else "\n".join(replay_lines(found))
        changes = int(counts["held"]) + int(counts["approved"])
    page(f"{text}\n")
    return OTHER if changes else SAME


def replay_lines(found: Record) -> Iterator[str]:
    """The result for a terminal: the counts, then each request that would have been held or approved, or is unknown."""
    rows = found["requests"]
    yield visible(f"{found['policy']} ({found['effect']}) on {number(len(rows), 'request')} of {found['days']} days:")
    for result, words in RESULTS.items():
        if count := int(found["counts"][result]):
            really = sum(row["result"] == result and row["verdict"] == "Approved" for row in rows)
            also = f", of which {really:,} {'was' if really == 1 else 'were'} really approved" if really else ""
            yield f"  {count:6,}  {words}{also}"
    if found["left_out"]:
        yield visible(f"  {int(found['left_out']):6,}  older, not looked at: {found['why_left_out']}")
    if found["could_not_ask"]:
        yield visible(f"Could not ask what you may read on {', '.join(found['could_not_ask'])}: none of its requests.")
    listed = sorted((row for row in rows if row["result"] in LISTED), key=lambda row: LISTED.index(row["result"]))
    if listed:
        now = datetime.now(UTC)
        yield ""
        yield table(("RESULT", "REQUEST", "AGE", "REALLY", "WHY"), [_cells(row, now) for row in listed[:MOST_ROWS]])
        if more := and_more(len(listed) - MOST_ROWS, "requests"):
            yield f"{more}; -o json has all"


def _cells(row: Record, now: datetime) -> tuple[str, ...]:
    # What made it so: of a guard the terms that are not true, of a grant those that are.
    telling = [term for term in row["terms"] if term["value"] is not (row["result"] == "held")]
    why = "; ".join(filter(None, (str(row["words"]), *map(_term_words, telling))))
    age = age_of(now - datetime.fromisoformat(row["created_at"]))
    request = f"{row['cluster']}/{row['deployment']}-{row['number']}"
    return row["result"], request, age, str(row["state"]).replace("_", " "), why


def _term_words(term: Record) -> str:
    value = "unknown" if term["value"] is None else "true" if term["value"] else "false"
    facts = ", ".join(f"{name}: {text}" for name, text in term["facts"].items())
    return f"{term['text']} is {value}{f' ({facts})' if facts else ''}"


def _parse_days(words: str) -> int:
    """For argparse."""
    days = _DAYS.fullmatch(words)
    if days is None or not int(days[1]):
        raise argparse.ArgumentTypeError(f"{words!r}: expected a number of days, such as 90d")
    return int(days[1])
