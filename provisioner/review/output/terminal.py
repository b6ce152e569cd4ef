"""A report for a terminal of 80 columns. Every text of others goes through `visible` (S24)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby

from provisioner.escaping import visible
from provisioner.masking import masked_states
from provisioner.review.base.difference import diff_lines
from provisioner.review.base.grouping import (
    NEVER_FOLDED,
    Statement,
    StatementReach,
    count,
    fields_in_words,
    in_counts,
    is_quiet,
    objects_in_words,
    reaches,
    size,
    spelled_out,
    statements,
)
from provisioner.review.base.messages import UNJUDGED, names_field, path_text, words_below_object
from provisioner.review.checks.own.power import ADVICE
from provisioner.review.crd_diff import CrdDifference
from provisioner.review.output.entries import Entry, crd_entries, entries, few_words, is_entry, words_in_entry
from provisioner.review.output.headline import BREVITIES, MAX_LINES, Brevity, Brief
from provisioner.review.output.lines import COLOURS, WIDTH, Paint, example, painted, plain, severity_mark, wrapped
from provisioner.review.output.workloads import told_with_workloads, workloads_as_text
from provisioner.review.preflight.findings import yaml_of
from provisioner.review.rules import rule_text
from provisioner.review.workloads.workload_changes import workload_changes
from provisioner.sentences import and_more, number, some, some_phrases
from provisioner.values import SHAPES, Action, Finding, PlannedAction, Report, Section, Severity

_DIFF_COLOURS = {"+": "32", "-": "31", "@": "36"}
# Schemas describe values and hold none; of Secrets every value is hidden long before.
_WITHOUT_VALUES = ("CustomResourceDefinition", "Secret")
MAX_POWERS = 4  # of one severity before a number stands for the rest
_CHANGING = (Action.UPDATE, Action.REPLACE, Action.RERUN)


def as_text(
    report: Report,
    *,
    title: str = "",
    colours: bool = False,
    with_diff: bool = False,
    with_all: bool = False,
    with_credentials: bool = False,
) -> str:
    """The report in lines of at most 80 columns, longer only for a name or a command; `colours` by ANSI codes.

    First what will run: images, how many pods, access to nodes, accounts, settings. Then the headline and the findings.
    What is safe, and what is as it was before, is only counted unless `with_all`; new critical and unknown findings are
    always said (S24). The lines that change hide values that are named or written like credentials, unless
    `with_credentials`; values of Secrets are hidden always.
    """
    paint = painted if colours else plain
    workloads = workload_changes(report.plan)
    beside = [] if with_all else told_with_workloads(report.findings, workloads)
    told = tuple(finding for finding in report.findings if finding not in beside)
    heads = dict.fromkeys(
        f"{severity_mark(finding.severity, paint)}  {finding.rule}{_title(finding.rule, finding.severity)}"
        for finding in beside
    )
    running = list(workloads_as_text(workloads, with_all=with_all, heads=heads))
    lines = [*([visible(title), ""] if title else []), *([*running, ""] if running else [])]
    for sentence in report.headline:
        lines += wrapped(visible(sentence), "  ")
    for section, findings in worst_sections_first(report) if with_all else []:
        lines += ["", paint(_heading(section, findings), "1"), *_grouped(findings, paint, None)]
    if not with_all:
        # As much of each rule as fits, and the least where nothing does.
        short: list[str] = []
        for brevity in BREVITIES:
            short = list(_what_counts(replace(report, findings=told), paint, brevity))
            if len(lines) + len(short) <= MAX_LINES:
                break
        lines += short
    if with_diff:
        for planned in report.plan.actions:
            if planned.action in _CHANGING:
                lines += _difference(planned, paint, with_credentials=with_credentials)
    return "\n".join(lines) + "\n"


def differences_as_text(
    actions: Iterable[PlannedAction], *, colours: bool = False, with_credentials: bool = False
) -> str:
    """The lines in which planned objects differ, of new and deleted ones all; what `as_text` hides is hidden."""
    paint = painted if colours else plain
    lines = [line for planned in actions for line in _difference(planned, paint, with_credentials=with_credentials)]
    return "\n".join(lines[1:]) + "\n" if lines else ""


def _what_counts(report: Report, paint: Paint, brevity: Brevity) -> Iterator[str]:
    """What is new and not safe, section by section; the rest as numbers."""
    brief = Brief(brevity)
    left = [finding for finding in report.findings if is_quiet(finding)]
    for section, findings in worst_sections_first(report):
        told = [finding for finding in findings if not is_quiet(finding)]
        if not told:
            continue
        yield from ("", paint(_heading(section, findings), "1"))
        of_fields = [finding for finding in told if is_entry(finding)] if brevity.has_entries else []
        known_by = {id(field) for field in of_fields}
        made = entries(finding for finding in told if id(finding) not in known_by)
        for _, group in groupby(made, key=lambda entry: entry.tells_powers):
            yield from _entry_lines(list(group), paint, brief)
        yield from crd_entries(of_fields, paint, brief)
    places = [f"{number(brief.places, 'more place')} of these findings"] if brief.places else []
    if left or places:
        words = ", ".join([*places, *([in_counts(left)] if left else [])])
        yield from ("", *wrapped(f"Not shown: {words}. --all shows them.", ""))


def _grouped(findings: Iterable[Finding], paint: Paint, brief: Brief | None, *, is_said: bool = False) -> Iterator[str]:
    """Findings of one rule and severity below one line that names both, those that say the same as one statement.

    With `brief`, statements and places beyond a few are only counted; `is_said` leaves out that they are as before.
    """
    ordered = sorted(findings, key=lambda finding: (finding.severity.rank, not finding.is_new, finding.rule))
    for (severity, rules, is_new), group in groupby(statements(ordered, shortly=brief is not None), key=_block):
        head = f"{severity_mark(severity, paint)}  {', '.join(map(visible, rules))}{_known(is_new or is_said)}"
        yield f"{head}{_title(rules[0], severity)}"
        told = sorted(group, key=lambda statement: -len(statement.places))
        few = brief if severity not in NEVER_FOLDED else None
        if few and rules == (UNJUDGED,):
            objects, left = few_words(told)
            few.places += left
            for name, fields in objects:
                yield from wrapped(visible(f"{name}:" if fields else name), "      ", "        ")
                yield from (line for words in fields for line in wrapped(visible(words), "        ", "          "))
            continue
        kept = few.kept(told) if few else told
        for statement in kept:
            yield from _statement(statement, paint, few)
        yield from _left_out(told[len(kept) :], few)
        yield from _advice(chain.from_iterable(statement.findings for statement in told))


def _entry_lines(told: Sequence[Entry], paint: Paint, brief: Brief) -> Iterator[str]:
    """Entries, each with what is said in it: of what is critical or unknown each has lines of its own (S24)."""
    for entry in told:
        rules = {finding.rule for finding in entry.findings}
        if entry.tells_powers:
            ways = visible(entry.ways)
            yield from _head(entry, f"{entry.account} can now{f', by {ways}' if ways else ''}", paint)
            # Each critical power has a line, of the rest the first.
            for severity, group in groupby(entry.findings, key=lambda finding: finding.severity):
                powers = [
                    f"{words_in_entry(finding)} ({', '.join((finding.rule, *finding.also))})" for finding in group
                ]
                if severity not in NEVER_FOLDED:
                    brief.places += max(0, len(powers) - MAX_POWERS)
                    powers = [some_phrases(powers, MAX_POWERS)]
                for power in powers:
                    yield from wrapped(f"{SHAPES[severity]} {visible(power)}", "      ", "        ")
        elif len(rules) == 1:
            yield from _grouped(entry.findings, paint, brief)
        else:
            yield from _head(entry, entry.name, paint)
            yield from _consequences(entry, paint, brief)
    if any(entry.tells_powers for entry in told):
        yield from _advice(finding for entry in told for finding in entry.findings)


def _head(entry: Entry, words: str, paint: Paint) -> Iterator[str]:
    mark = severity_mark(entry.severity, plain)
    first, *more = wrapped(visible(f"{mark}  {words}"), "", "      ")
    yield from (first.replace(mark, severity_mark(entry.severity, paint), 1), *more)


def _consequences(entry: Entry, paint: Paint, brief: Brief) -> Iterator[str]:
    """What several rules say of one cause, each in a line that begins with its shape and its rule."""
    for (severity, rules, _), group in groupby(statements(entry.findings, shortly=True), key=_block):
        told, few = list(group), brief if severity not in NEVER_FOLDED else None
        kept = few.kept(told) if few else told
        for statement in kept:
            words = statement.words if statement.is_of_several else words_below_object(statement.first)
            said = replace(statement, words=f"{SHAPES[severity]} {', '.join(rules)}: {words}")
            yield from _statement(said, paint, few)
        yield from _left_out(told[len(kept) :], few)


def _advice(findings: Iterable[Finding]) -> Iterator[str]:
    """What to do about all of these, each advice once."""
    for words in dict.fromkeys(str(finding.evidence[ADVICE]) for finding in findings if ADVICE in finding.evidence):
        yield from wrapped(f"{visible(words)}.", "      ")


def _block(one: Statement) -> tuple[Severity, tuple[str, ...], bool]:
    return one.first.severity, (one.first.rule, *one.first.also), one.first.is_new


def _title(rule: str, severity: Severity) -> str:
    """What the rule is called, where it fits into the line."""
    known = rule_text(rule)
    title = f"  {known.title}" if known else ""
    return title if len(rule) + len(severity) + len(title) < WIDTH - 20 else ""


def _left_out(rest: Sequence[Statement], brief: Brief | None) -> Iterator[str]:
    if rest and brief is not None:
        places = list(dict.fromkeys(place for statement in rest for place in statement.places))
        brief.places += count(places)
        yield from wrapped(f"{and_more(len(rest), 'of this rule')}, in {size(places)}", "      ")


def _known(is_new: bool) -> str:
    return "" if is_new else "  as before"


def worst_sections_first(report: Report) -> list[tuple[Section, Sequence[Finding]]]:
    """The sections that found something: the one with the worst new finding first, then by the worst known before."""
    found = [(section, report.in_section(section)) for section in Section]

    def rank(part: tuple[Section, Sequence[Finding]]) -> tuple[int, int]:
        new = min((finding.severity.rank for finding in part[1] if finding.is_new), default=len(Severity))
        return new, min(finding.severity.rank for finding in part[1])

    return sorted(((section, findings) for section, findings in found if findings), key=rank)


def crds_as_text(found: Iterable[CrdDifference], *, colours: bool = False) -> str:
    """The differences of CRDs, each with its verdict first."""
    paint = painted if colours else plain
    lines: list[str] = []
    for difference in found:
        verdict = paint(f"{SHAPES[difference.verdict]} {difference.verdict}", COLOURS[difference.verdict])
        lines.append(f"{verdict}  {visible(difference.name)}")
        for finding in difference.findings:
            version = str(finding.evidence.get("version") or "")
            rule = visible(f"{finding.rule}  {version}".rstrip())
            lines.append(f"{severity_mark(finding.severity, paint)}  {rule}{_known(finding.is_new)}")
            lines += _finding_lines(Statement(finding.message, (finding,)), paint)
        lines.append("")
    return "\n".join(lines)


def _heading(section: Section, findings: Iterable[Finding]) -> str:
    counted = Counter(finding.severity for finding in findings)
    told = [f"{counted[severity]:,} {severity}" for severity in Severity if counted[severity]]
    return f"{section.upper()}  {', '.join(told)}"


def _statement(one: Statement, paint: Paint, brief: Brief | None) -> Iterator[str]:
    """What several places have in common, and the places: all, or the first of them."""
    has_example = brief is None or brief.brevity.has_examples
    if not one.is_of_several:
        yield from _finding_lines(one, paint, has_example=has_example)
        if one.counts_itself and brief is None:
            yield from (line for reach in one.reaches for line in _reach(reach))
        elif one.counts_itself and brief is not None:
            brief.places += count(one.places)
        return
    places, words = one.places, visible(one.words.rstrip(".:"))
    paths = {place.path for place in places}
    if len(paths) == 1 and (path := path_text(*paths)):
        words, places = f"{words} (at {visible(path)})", [replace(place, path=()) for place in places]
    found = reaches(places, is_apart=one.first.severity in NEVER_FOLDED)
    lines = [line for reach in found for line in _reach(reach)]
    if brief is None or len(lines) <= brief.brevity.reach_lines:
        yield from wrapped(f"{words}:", "      ", "        ")
        yield from (*lines, *wrapped(example(one.first) if has_example else "", "        "))
    elif one.first.section is Section.CRDS and len(paths) > 1:
        # The fields of schemas of which it is said, those that end alike as one.
        most = brief.brevity.fields
        brief.places += count(one.places) - spelled_out(one.findings, most)
        fields = f"{fields_in_words(one.findings, most)}; {objects_in_words(one.findings)}"
        yield from wrapped(f"{words}: {visible(fields)}", "      ", "        ")
    else:
        yield from wrapped(f"{words}: {size(one.places)}, such as", "      ", "        ")
        named = _first_of(found, brief.brevity.reach_lines)
        brief.places += count(one.places) - sum(len(reach.objects) for reach in named)
        yield from (line for reach in named for line in _reach(reach))
    yield from _attached(one.attached, paint)


def _first_of(found: Sequence[StatementReach], most: int) -> list[StatementReach]:
    """The first objects, each with its first field and how many more it has, in about `most` lines."""
    kept: list[StatementReach] = []
    for reach in found:
        named = replace(reach, objects=(some(reach.objects, 1),), fields=(some(reach.fields, 1),))
        if kept and sum(len(_reach(shown)) for shown in (*kept, named)) > most:
            break
        kept.append(named)
    return kept


def _reach(reach: StatementReach) -> list[str]:
    """An object, or several that have the same fields, with versions and fields."""
    words = " ".join(filter(None, (", ".join(reach.objects), ", ".join(reach.versions))))
    fields = ", ".join(reach.fields)
    return wrapped(visible(f"{words}: {fields}" if fields else words), "        ", "          ")


def _finding_lines(one: Statement, paint: Paint, *, has_example: bool = True) -> Iterator[str]:
    """What a finding says of one place, and where that is unless its words name it."""
    finding, place = one.first, path_text(one.first.path)
    at = f" (at {place})" if place and not names_field(finding) else ""
    yield from wrapped(visible(f"{one.words}{at}"), "      ", "        ")
    if finding.server_words:
        yield from wrapped(f"the cluster says: {visible(finding.server_words)}", "        ")
    elif finding.is_withheld:
        of = "what it is made of" if finding.sources else "it" if finding.ref else "them"
        yield from wrapped(f"The details are shown to people who may get {of}.", "        ")
    yield from (f"      {visible(str(step))}" for step in finding.evidence.get("steps") or ())  # whole, to be copied
    yield from wrapped(example(finding) if has_example else "", "        ")
    yield from _attached(one.attached, paint)
    if yaml_of(finding):  # from the first column on: what is copied from there is YAML
        yield from ("", *(visible(line) for line in yaml_of(finding).splitlines()), "")


def _attached(findings: Iterable[Finding], paint: Paint) -> Iterator[str]:
    """What other rules say of the same cause, each in a line of its own."""
    for finding in findings:
        rules = ", ".join(map(visible, (finding.rule, *finding.also)))
        head = f"{severity_mark(finding.severity, plain).strip()}  {rules}"
        first, *more = wrapped(f"{head}: {visible(finding.message)}", "        ", "          ")
        yield from (first.replace(head, paint(head, COLOURS[finding.severity])), *more)


def _difference(planned: PlannedAction, paint: Paint, *, with_credentials: bool) -> Iterator[str]:
    yield ""
    yield paint(visible(f"{planned.action} {planned.ref}"), "1")
    is_plain = with_credentials or planned.ref.kind in _WITHOUT_VALUES
    states = planned.before, planned.after
    for line in diff_lines(*(states if is_plain else masked_states(*states))):
        text = f"{line.kind} {line.text}".rstrip()
        yield paint(text, _DIFF_COLOURS[line.kind]) if line.kind in _DIFF_COLOURS else text
