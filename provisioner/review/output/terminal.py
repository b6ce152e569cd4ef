"""A report for a terminal of 80 columns. Every text of others goes through `visible` (S24)."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from provisioner.review.base.difference import diff_lines
from provisioner.review.base.text import visible
from provisioner.review.crd_diff import CrdDifference
from provisioner.review.preflight.findings import yaml_of
from provisioner.schema.verdicts import ITEMS, VALUES
from provisioner.values import SHAPES, Action, Finding, PlannedAction, Report, Section, Severity

WIDTH = 80
MAX_EXAMPLE = 200
Paint = Callable[[str, str], str]
_COLOURS = {
    Severity.CRITICAL: "1;31",
    Severity.BREAKING: "31",
    Severity.UNKNOWN: "35",
    Severity.DANGEROUS: "33",
    Severity.NOTABLE: "36",
    Severity.SAFE: "2",
}
_DIFF_COLOURS = {"+": "32", "-": "31", "@": "36"}
_NEVER_FOLDED = (Severity.CRITICAL, Severity.UNKNOWN)
_CHANGING = (Action.UPDATE, Action.REPLACE)


def as_text(report: Report, *, title: str = "", colours: bool = False, with_diff: bool = False) -> str:
    """The report in lines of at most 80 columns, longer only for a name or a command; `colours` by ANSI codes."""
    paint = _paint if colours else _plain
    lines = [visible(title), ""] if title else []
    for sentence in report.headline:
        lines += _wrapped(visible(sentence), "  ")
    for section, findings in _worst_first(report):
        lines += ["", paint(_heading(section, findings), "1")]
        for finding in findings:
            lines += _finding(finding, paint)
    if with_diff:
        for planned in report.plan.actions:
            if planned.action in _CHANGING:
                lines += _difference(planned, paint)
    return "\n".join(lines) + "\n"


def _worst_first(report: Report) -> list[tuple[Section, Sequence[Finding]]]:
    """The sections that found something: the one with the worst to look at first, then by the worst known before.

    As on the pages, what is critical or unknown is to be looked at, also where it is not new (S24).
    """
    found = [(section, report.in_section(section)) for section in Section]

    def rank(part: tuple[Section, Sequence[Finding]]) -> tuple[int, int]:
        ranks = [(one.severity.rank, one.is_new or one.severity in _NEVER_FOLDED) for one in part[1]]
        to_look_at = min((rank for rank, is_loud in ranks if is_loud), default=len(Severity))
        return to_look_at, min(rank for rank, _ in ranks)

    return sorted(((section, findings) for section, findings in found if findings), key=rank)


def crds_as_text(found: Iterable[CrdDifference], *, colours: bool = False) -> str:
    """The differences of CRDs, each with its verdict first."""
    paint = _paint if colours else _plain
    lines: list[str] = []
    for one in found:
        verdict = paint(f"{SHAPES[one.verdict]} {one.verdict}", _COLOURS[one.verdict])
        lines.append(f"{verdict}  {visible(one.name)}")
        for finding in one.findings:
            version = str(finding.evidence.get("version") or "")
            lines += _finding(replace(finding, rule=f"{finding.rule}  {version}".rstrip()), paint)
        lines.append("")
    return "\n".join(lines)


def _plain(text: str, _: str) -> str:
    return text


def _paint(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m"


def _heading(section: Section, findings: Iterable[Finding]) -> str:
    counted = Counter(one.severity for one in findings)
    words = ", ".join(f"{counted[severity]} {severity}" for severity in Severity if counted[severity])
    return f"{section.upper()}  {words}"


def _finding(finding: Finding, paint: Paint) -> Iterator[str]:
    severity = finding.severity
    known = "" if finding.is_new else "  as before"
    head = f"  {SHAPES[severity]} {severity}"
    yield f"{paint(head, _COLOURS[severity])}  {visible(finding.rule)}{known}"
    yield from _wrapped(visible(finding.message), "      ")
    if finding.server_words:
        yield from _wrapped(f"the cluster says: {visible(finding.server_words)}", "      ")
    if finding.path:
        yield from _wrapped(f"at {visible(path_text(finding.path))}", "      ")
    yield from (f"      {visible(str(step))}" for step in finding.evidence.get("steps") or ())  # whole, to be copied
    if "counterexample" in finding.evidence:
        yield from _wrapped(f"no longer accepted: {visible(_short(finding.evidence['counterexample']))}", "      ")
    if yaml_of(finding):  # from the first column on: what is copied from there is YAML
        yield from ("", *(visible(line) for line in yaml_of(finding).splitlines()), "")


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    return text if len(text) <= MAX_EXAMPLE else f"{text[:MAX_EXAMPLE]}…"


def path_text(path: Iterable[str | int]) -> str:
    """A path as people write it: spec.containers[0].image, or of a schema spec.containers[].image and spec.labels{}."""
    words = ""
    for part in path:
        if isinstance(part, int):
            words += f"[{part}]"
        else:
            words += f".{part}" if words and part not in (ITEMS, VALUES) else str(part)
    return words


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _difference(planned: PlannedAction, paint: Paint) -> Iterator[str]:
    yield ""
    yield paint(visible(f"{planned.action} {planned.ref}"), "1")
    for line in diff_lines(planned.before, planned.after):
        text = f"{line.kind} {line.text}".rstrip()
        yield paint(text, _DIFF_COLOURS[line.kind]) if line.kind in _DIFF_COLOURS else text
