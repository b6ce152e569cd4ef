"""A report for a terminal of 80 columns. Every text of others goes through `visible` (S24)."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby

from provisioner.masking import masked_states
from provisioner.review.base.difference import diff_lines
from provisioner.review.base.places import UNJUDGED, path_text
from provisioner.review.base.statements import (
    NEVER_FOLDED,
    Statement,
    StatementReach,
    count,
    is_quiet,
    name_and_words,
    reaches,
    size,
    statements,
)
from provisioner.review.base.text import visible
from provisioner.review.checks.own.advice import ADVICE
from provisioner.review.crd_diff import CrdDifference
from provisioner.review.output.containers import containers_as_text
from provisioner.review.output.unjudged import few_words
from provisioner.review.preflight.findings import yaml_of
from provisioner.review.rules import rule_text
from provisioner.review.workloads.container_changes import container_changes
from provisioner.schema.verdicts import PRUNED
from provisioner.sentences import and_more, number, some
from provisioner.values import SHAPES, Action, Finding, PlannedAction, Report, Section, Severity

WIDTH = 80
MAX_EXAMPLE = 200
MAX_REPEATED = 20
# Statements of one rule, and lines of places of one statement, before a number stands for the rest; of what is critical
# or unknown all are told.
MAX_STATEMENTS = 3
MAX_BREAKING = 5
MAX_REACH_LINES = 2
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
# Schemas describe values and hold none; of Secrets every value is hidden long before.
_WITHOUT_VALUES = ("CustomResourceDefinition", "Secret")
_CHANGING = (Action.UPDATE, Action.REPLACE, Action.RERUN)


@dataclass(slots=True)
class _Brief:
    """How many places a short report leaves to a number."""

    places: int = 0


def as_text(  # noqa: PLR0913 - each is a switch of the command line
    report: Report,
    *,
    title: str = "",
    colours: bool = False,
    with_diff: bool = False,
    with_all: bool = False,
    with_credentials: bool = False,
) -> str:
    """The report in lines of at most 80 columns, longer only for a name or a command; `colours` by ANSI codes.

    What is safe, and what is as it was before, is only counted unless `with_all`; critical and unknown findings are
    always said (S24). The lines that change hide values that are named or written like credentials, unless
    `with_credentials`; values of Secrets are hidden always.
    """
    paint = _paint if colours else _plain
    lines = [visible(title), ""] if title else []
    for sentence in report.headline:
        lines += _wrapped(visible(sentence), "  ")
    for section, findings in worst_sections_first(report) if with_all else []:
        lines += ["", paint(_heading(section, findings), "1"), *_grouped(findings, paint, None)]
    if not with_all:
        lines += _what_counts(report, paint)
    lines += containers_as_text(container_changes(report.plan), with_all=with_all)
    if with_diff:
        for planned in report.plan.actions:
            if planned.action in _CHANGING:
                lines += _difference(planned, paint, with_credentials=with_credentials)
    return "\n".join(lines) + "\n"


def differences_as_text(
    actions: Iterable[PlannedAction], *, colours: bool = False, with_credentials: bool = False
) -> str:
    """The lines in which planned objects differ, of new and deleted ones all; what `as_text` hides is hidden."""
    paint = _paint if colours else _plain
    lines = [line for one in actions for line in _difference(one, paint, with_credentials=with_credentials)]
    return "\n".join(lines[1:]) + "\n" if lines else ""


def _what_counts(report: Report, paint: Paint) -> Iterator[str]:
    """What is new and not safe, section by section; then what is critical or unknown as before; the rest as numbers."""
    brief = _Brief()
    left = [one for one in report.findings if is_quiet(one)]
    known = [one for one in report.findings if not one.is_new and not is_quiet(one)]
    for section, findings in worst_sections_first(report):
        told = [one for one in findings if one.is_new and not is_quiet(one)]
        if told:
            yield from ("", paint(_heading(section, findings), "1"), *_grouped(told, paint, brief))
    if known:
        yield from (
            "",
            paint(f"AS BEFORE  {_severities(known)}", "1"),
            *_by_object(known, paint, brief),
        )
    places = [f"{number(brief.places, 'more place')} of these findings"] if brief.places else []
    if left or places:
        words = ", ".join([*places, *([in_counts(left)] if left else [])])
        yield from ("", *_wrapped(f"Not shown: {words}. --all shows them.", ""))


def in_counts(findings: Iterable[Finding]) -> str:
    """`364 safe, 2 dangerous and 7 notable as before`."""
    counted = Counter((one.severity, one.is_new or one.severity is Severity.SAFE) for one in findings)
    new = [f"{counted[severity, True]:,} {severity}" for severity in Severity if counted[severity, True]]
    known = [f"{counted[severity, False]:,} {severity}" for severity in Severity if counted[severity, False]]
    return ", ".join([*new, *([f"{' and '.join(known)} as before"] if known else [])])


def _grouped(
    findings: Iterable[Finding], paint: Paint, brief: _Brief | None, *, is_said: bool = False
) -> Iterator[str]:
    """Findings of one rule and severity below one line that names both, those that say the same as one statement.

    With `brief`, statements and places beyond a few are only counted; `is_said` leaves out that they are as before.
    """
    ordered = sorted(findings, key=lambda it: (it.severity.rank, not it.is_new, it.rule))
    for (severity, rules, is_new), group in groupby(statements(ordered), key=_block):
        head = f"{_head(severity, paint)}  {', '.join(map(visible, rules))}{_known(is_new or is_said)}"
        yield f"{head}{_title(rules[0], severity)}"
        told = sorted(group, key=lambda one: -len(one.places))
        few = brief if severity not in NEVER_FOLDED else None
        if few and rules == (UNJUDGED,):
            objects, left = few_words(told)
            few.places += left
            for name, fields in objects:
                yield from _wrapped(visible(f"{name}:" if fields else name), "      ", "        ")
                yield from (line for words in fields for line in _wrapped(visible(words), "        ", "          "))
            continue
        most = MAX_BREAKING if severity is Severity.BREAKING else MAX_STATEMENTS
        kept = told[:most] if few and len(told) > most + 1 else told
        for one in kept:
            yield from _statement(one, paint, few)
        yield from _left_out(told[len(kept) :], few)
        yield from _advice(chain.from_iterable(one.findings for one in told))


def _by_object(findings: Sequence[Finding], paint: Paint, brief: _Brief) -> Iterator[str]:
    """What is as before: all that is said of one object below its name, a line for each; the rest by rule."""
    objects: dict[tuple[int, str], list[tuple[str, Finding]]] = {}
    for one in sorted(findings, key=lambda it: (it.severity.rank, it.rule)):
        name, words = name_and_words(one)
        if name:
            objects.setdefault((one.severity.rank, name), []).append((words, one))
    several = {key: told for key, told in objects.items() if len(told) > 1}
    for (_, name), told in several.items():
        yield f"{_head(told[0][1].severity, paint)}  {visible(name)}"
        for words, one in told:
            place = path_text(one.path)
            at = f" (at {place})" if place and place not in one.message else ""
            rules = ", ".join((one.rule, *one.also))
            yield from _wrapped(visible(f"{rules}  {words}{at}"), "      ", "        ")
            yield from _wrapped(_example(one), "        ")
    yield from _advice(one for told in several.values() for _, one in told)
    told_already = {id(one) for told in several.values() for _, one in told}
    rest = [one for one in findings if id(one) not in told_already]
    yield from _grouped(rest, paint, brief, is_said=True)


def _advice(findings: Iterable[Finding]) -> Iterator[str]:
    """What to do about all of these, each advice once."""
    for words in dict.fromkeys(str(one.evidence[ADVICE]) for one in findings if ADVICE in one.evidence):
        yield from _wrapped(f"{visible(words)}.", "      ")


def _block(one: Statement) -> tuple[Severity, tuple[str, ...], bool]:
    return one.first.severity, (one.first.rule, *one.first.also), one.first.is_new


def _title(rule: str, severity: Severity) -> str:
    """What the rule is called, where it fits into the line."""
    known = rule_text(rule)
    title = f"  {known.title}" if known else ""
    return title if len(rule) + len(severity) + len(title) < WIDTH - 20 else ""


def _left_out(rest: Sequence[Statement], brief: _Brief | None) -> Iterator[str]:
    if rest and brief is not None:
        places = list(dict.fromkeys(place for one in rest for place in one.places))
        brief.places += count(places)
        yield from _wrapped(f"{and_more(len(rest), 'of this rule')}, in {size(places)}", "      ")


def _head(severity: Severity, paint: Paint) -> str:
    return paint(f"  {SHAPES[severity]} {severity}", _COLOURS[severity])


def _known(is_new: bool) -> str:
    return "" if is_new else "  as before"


def worst_sections_first(report: Report) -> list[tuple[Section, Sequence[Finding]]]:
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
    yield from _words(Statement(finding.message, (finding,)), paint)


def _statement(one: Statement, paint: Paint, brief: _Brief | None) -> Iterator[str]:
    """What several places have in common, and the places: all, or the first of them."""
    if not one.is_of_several:
        yield from _words(one, paint)
        return
    places, words = one.places, visible(one.words.rstrip(".:"))
    paths = {place.path for place in places}
    if len(paths) == 1 and (path := path_text(*paths)):
        words, places = f"{words} (at {visible(path)})", [replace(place, path=()) for place in places]
    found = reaches(places, is_apart=one.first.severity in NEVER_FOLDED)
    lines = [line for reach in found for line in _reach(reach)]
    is_whole = brief is None or len(lines) <= MAX_REACH_LINES
    yield from _wrapped(f"{words}:" if is_whole else f"{words}: {size(one.places)}, such as", "      ", "        ")
    if brief is None or is_whole:
        yield from (*lines, *_wrapped(_example(one.first), "        "))
    else:
        named = _first_of(found)
        brief.places += count(one.places) - sum(len(reach.objects) for reach in named)
        yield from (line for reach in named for line in _reach(reach))
    yield from _attached(one.attached, paint)


def _first_of(found: Sequence[StatementReach]) -> list[StatementReach]:
    """The first objects, each with its first field and how many more it has, in about MAX_REACH_LINES lines."""
    kept: list[StatementReach] = []
    for reach in found:
        named = replace(reach, objects=(some(reach.objects, 1),), fields=(some(reach.fields, 1),))
        if kept and sum(len(_reach(one)) for one in (*kept, named)) > MAX_REACH_LINES:
            break
        kept.append(named)
    return kept


def _reach(reach: StatementReach) -> list[str]:
    """An object, or several that have the same fields, with versions and fields."""
    words = " ".join(filter(None, (", ".join(reach.objects), ", ".join(reach.versions))))
    fields = ", ".join(reach.fields)
    return _wrapped(visible(f"{words}: {fields}" if fields else words), "        ", "          ")


def _words(one: Statement, paint: Paint) -> Iterator[str]:
    """What a finding says of one place, and where that is unless its words name it."""
    finding, place = one.first, path_text(one.first.path)
    at = f" (at {place})" if place and place not in one.words else ""
    yield from _wrapped(visible(f"{one.words}{at}"), "      ", "        ")
    if finding.server_words:
        yield from _wrapped(f"the cluster says: {visible(finding.server_words)}", "        ")
    yield from (f"      {visible(str(step))}" for step in finding.evidence.get("steps") or ())  # whole, to be copied
    yield from _wrapped(_example(finding), "        ")
    yield from _attached(one.attached, paint)
    if yaml_of(finding):  # from the first column on: what is copied from there is YAML
        yield from ("", *(visible(line) for line in yaml_of(finding).splitlines()), "")


def _attached(findings: Iterable[Finding], paint: Paint) -> Iterator[str]:
    """What other rules say of the same cause, each in a line of its own."""
    for one in findings:
        rules = ", ".join(map(visible, (one.rule, *one.also)))
        head = f"{_head(one.severity, _plain).strip()}  {rules}"
        first, *more = _wrapped(f"{head}: {visible(one.message)}", "        ", "          ")
        yield from (first.replace(head, paint(head, _COLOURS[one.severity])), *more)


def _example(finding: Finding) -> str:
    if "counterexample" not in finding.evidence:
        return ""
    what = "parts of it are pruned" if finding.evidence.get("lost") == PRUNED else "no longer accepted"
    return f"{what}: {visible(_short(finding.evidence['counterexample']))}"


def _short(value: object) -> str:
    if isinstance(value, str) and len(value) > MAX_REPEATED and len(set(value)) == 1:
        return f"{json.dumps(value[0], ensure_ascii=False)} {len(value):,} times in a row"
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    return text if len(text) <= MAX_EXAMPLE else f"{text[:MAX_EXAMPLE]}…"


def _wrapped(text: str, indent: str, further: str | None = None) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent if further is None else further,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _difference(planned: PlannedAction, paint: Paint, *, with_credentials: bool) -> Iterator[str]:
    yield ""
    yield paint(visible(f"{planned.action} {planned.ref}"), "1")
    is_plain = with_credentials or planned.ref.kind in _WITHOUT_VALUES
    states = planned.before, planned.after
    for line in diff_lines(*(states if is_plain else masked_states(*states))):
        text = f"{line.kind} {line.text}".rstrip()
        yield paint(text, _DIFF_COLOURS[line.kind]) if line.kind in _DIFF_COLOURS else text
