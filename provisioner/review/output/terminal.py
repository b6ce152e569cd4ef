"""A report for a terminal of 80 columns. Every text of others goes through `visible` (S24)."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from provisioner.review.base.difference import diff_lines
from provisioner.review.base.places import PLACES, by_field, places_of
from provisioner.review.base.text import visible
from provisioner.review.crd_diff import CrdDifference
from provisioner.review.preflight.findings import yaml_of
from provisioner.schema.verdicts import ITEMS, VALUES
from provisioner.sentences import and_more
from provisioner.values import SHAPES, Action, Finding, PlannedAction, Report, Section, Severity

WIDTH = 80
MAX_EXAMPLE = 200
MAX_PLACES = 5
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


def as_text(
    report: Report, *, title: str = "", colours: bool = False, with_diff: bool = False, with_all: bool = False
) -> str:
    """The report in lines of at most 80 columns, longer only for a name or a command; `colours` by ANSI codes.

    What is safe, and what is as it was before, is only counted unless `with_all`; critical and unknown findings are
    always said (S24).
    """
    paint = _paint if colours else _plain
    lines = [visible(title), ""] if title else []
    for sentence in report.headline:
        lines += _wrapped(visible(sentence), "  ")
    for section, findings in _worst_first(report) if with_all else []:
        lines += ["", paint(_heading(section, findings), "1"), *_grouped(findings, paint, None)]
    if not with_all:
        lines += _what_counts(report, paint)
    if with_diff:
        for planned in report.plan.actions:
            if planned.action in _CHANGING:
                lines += _difference(planned, paint)
    return "\n".join(lines) + "\n"


def _what_counts(report: Report, paint: Paint) -> Iterator[str]:
    """What is new and not safe, section by section; then what is critical or unknown as before; the rest as numbers."""
    known = [one for one in report.findings if not one.is_new and one.severity in _NEVER_FOLDED]
    left = [
        one
        for one in report.findings
        if one.severity is Severity.SAFE or not (one.is_new or one.severity in _NEVER_FOLDED)
    ]
    for section, findings in _worst_first(report):
        told = [one for one in findings if one.is_new and one.severity is not Severity.SAFE]
        if told:
            yield from ("", paint(_heading(section, findings), "1"), *_grouped(told, paint, MAX_PLACES))
    if known:
        yield from (
            "",
            paint(f"AS BEFORE  {_severities(known)}", "1"),
            *_grouped(known, paint, MAX_PLACES, is_said=True),
        )
    if left:
        yield from ("", *_wrapped(f"Not shown: {_counted(left)}. --all shows them.", ""))


def _counted(findings: Iterable[Finding]) -> str:
    """`364 safe, 2 dangerous and 7 notable as before`."""
    counted = Counter((one.severity, one.is_new or one.severity is Severity.SAFE) for one in findings)
    new = [f"{counted[severity, True]:,} {severity}" for severity in Severity if counted[severity, True]]
    known = [f"{counted[severity, False]:,} {severity}" for severity in Severity if counted[severity, False]]
    return ", ".join([*new, *([f"{' and '.join(known)} as before"] if known else [])])


def _grouped(findings: Iterable[Finding], paint: Paint, most: int | None, *, is_said: bool = False) -> Iterator[str]:
    """Findings of one rule and severity below one line that names both; each keeps words of its own.

    `is_said` leaves out that they are as before.
    """
    for (severity, rule, is_new), group in groupby(
        sorted(findings, key=lambda it: (it.severity.rank, not it.is_new, it.rule)),
        key=lambda it: (it.severity, it.rule, it.is_new),
    ):
        yield f"{_head(severity, paint)}  {visible(rule)}{_known(is_new or is_said)}"
        for one in group:
            yield from _words(one, most)


def _head(severity: Severity, paint: Paint) -> str:
    return paint(f"  {SHAPES[severity]} {severity}", _COLOURS[severity])


def _known(is_new: bool) -> str:
    return "" if is_new else "  as before"


def _worst_first(report: Report) -> list[tuple[Section, Sequence[Finding]]]:
    """The sections that found something: the one with the worst new finding first, then by the worst known before."""
    found = [(section, report.in_section(section)) for section in Section]

    def rank(part: tuple[Section, Sequence[Finding]]) -> tuple[int, int]:
        new = min((one.severity.rank for one in part[1] if one.is_new), default=len(Severity))
        return new, min(one.severity.rank for one in part[1])

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
    return f"{section.upper()}  {_severities(findings)}"


def _severities(findings: Iterable[Finding]) -> str:
    counted = Counter(one.severity for one in findings)
    return ", ".join(f"{counted[severity]:,} {severity}" for severity in Severity if counted[severity])


def _finding(finding: Finding, paint: Paint) -> Iterator[str]:
    yield f"{_head(finding.severity, paint)}  {visible(finding.rule)}{_known(finding.is_new)}"
    yield from _words(finding, MAX_PLACES)


def _words(finding: Finding, most: int | None) -> Iterator[str]:
    """What a finding says, and at most so many of the places where it holds; all of them for None."""
    yield from _wrapped(visible(finding.message), "      ", "        ")
    if finding.server_words:
        yield from _wrapped(f"the cluster says: {visible(finding.server_words)}", "        ")
    yield from _places(finding, most)
    yield from (f"      {visible(str(step))}" for step in finding.evidence.get("steps") or ())  # whole, to be copied
    if "counterexample" in finding.evidence:
        yield from _wrapped(f"no longer accepted: {visible(_short(finding.evidence['counterexample']))}", "        ")
    if yaml_of(finding):  # from the first column on: what is copied from there is YAML
        yield from ("", *(visible(line) for line in yaml_of(finding).splitlines()), "")


def _places(finding: Finding, most: int | None) -> Iterator[str]:
    """The field, unless the words name it; of what holds at several the objects with their fields and versions."""
    if PLACES not in finding.evidence:
        place = path_text(finding.path)
        if place and place not in finding.message:
            yield from _wrapped(f"at {visible(place)}", "        ")
        return
    fields = list(by_field(places_of(finding)))
    if most is not None and len({path for _, path, _ in fields}) == 1:
        return  # the words name the objects
    for name, path, versions in fields[:most]:
        yield from _wrapped(
            visible(" ".join(filter(None, ("at", name, ", ".join(versions), path_text(path))))), "        "
        )
    more = and_more(len(fields) - len(fields[:most]))
    if more:
        yield f"        {more}: --all shows them"


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


def _wrapped(text: str, indent: str, further: str | None = None) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent if further is None else further,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _difference(planned: PlannedAction, paint: Paint) -> Iterator[str]:
    yield ""
    yield paint(visible(f"{planned.action} {planned.ref}"), "1")
    for line in diff_lines(planned.before, planned.after):
        text = f"{line.kind} {line.text}".rstrip()
        yield paint(text, _DIFF_COLOURS[line.kind]) if line.kind in _DIFF_COLOURS else text
