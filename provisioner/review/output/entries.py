"""Findings told by cause: one entry for what a person would change to make them go, with its consequences inside. Pure.

An entry is made of what its reader may see: whoever withholds findings does so before, and nothing here tells more.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby
from typing import Any

from provisioner.escaping import visible
from provisioner.review.base.grouping import (
    NEVER_FOLDED,
    Statement,
    count,
    fields_in_words,
    in_counts,
    is_quiet,
    is_told_alone,
    spelled_out,
    statements,
)
from provisioner.review.base.messages import (
    UNJUDGED,
    places_of,
    said_anywhere,
    subject_and_words,
    unjudged_fields,
    version_of,
    words_anywhere,
)
from provisioner.review.crds.live_findings import CONDITIONS
from provisioner.review.output.headline import Brief, shortened
from provisioner.review.output.lines import Paint, plain, severity_mark, wrapped
from provisioner.review.rules import messages_of, rule_text
from provisioner.sentences import and_more, number, some, some_phrases
from provisioner.values import Action, Certainty, Finding, Section, Severity, display_name, worst_first

_DEPENDING = "What follows depends on stored objects, except where it says always:"
# Longer words are told by the title of their rule.
_MAX_WORDS = 60
_ALWAYS = " (always)"


def is_entry(finding: Finding) -> bool:
    """Whether a finding about a CRD is told in an entry: what is said of a field of its schema, in our own words."""
    is_of_field = finding.rule.startswith("SCH-") and bool(finding.path) and not finding.server_words
    return (
        is_of_field
        and finding.severity not in NEVER_FOLDED
        and not is_told_alone(finding)
        and said_anywhere(finding) is not None
    )


def crd_entries(findings: Iterable[Finding], paint: Paint, brief: Brief) -> Iterator[str]:
    """The entries, the worst first, below the CRDs that they are about; and what they depend on, where objects could
    settle some."""
    ordered = sorted(findings, key=lambda finding: (finding.severity.rank, finding.rule))
    depends = any(map(_depends, ordered))
    if depends:
        yield from wrapped(_DEPENDING, "  ")
    # The findings of each rule and severity, those about the same CRDs together.
    groups: dict[tuple[Severity, tuple[str, ...]], list[list[Finding]]] = {}
    for (severity, _), group in groupby(ordered, key=lambda finding: (finding.severity, finding.rule)):
        entry = list(group)
        objects = tuple(sorted({place.of for finding in entry for place in places_of(finding)}))
        groups.setdefault((severity, objects), []).append(entry)
    most = brief.brevity.fields
    for (severity, objects), of_objects in groups.items():
        mark = severity_mark(severity, plain)
        first, *more = wrapped(visible(f"{mark.strip()}  {', '.join(objects)}"), "  ", "      ")
        yield from (first.replace(mark, severity_mark(severity, paint), 1), *more)
        for entry in of_objects:
            places = [place for finding in entry for place in places_of(finding)]
            brief.places += count(places) - spelled_out(entry, most)
            always = _ALWAYS if depends and not any(map(_depends, entry)) else ""
            told = f"{entry[0].rule}  {_common_words(entry)}{always}: {fields_in_words(entry, most)}"
            yield from wrapped(visible(told), "    ", "      ")


def _common_words(findings: Sequence[Finding]) -> str:
    """What all of them have in common: their words, or the title of their rule."""
    told = [
        replace(finding, notes=tuple(note for note in finding.notes if note.file != CONDITIONS)) for finding in findings
    ]
    rule, words = rule_text(findings[0].rule), words_anywhere(told[0], is_short=True)
    is_same = len({said_anywhere(finding, is_short=True) for finding in told}) == 1
    return rule.title if rule and (not is_same or len(words) > _MAX_WORDS) else words


def _depends(finding: Finding) -> bool:
    return finding.certainty is Certainty.DEPENDS_ON_OBJECTS


MAX_FIELDS = 3
MAX_KINDS = 3
MAX_WORDS = 100
MAX_LINE = 60
_METADATA = ".metadata."


def few_words(told: Sequence[Statement]) -> tuple[list[tuple[str, list[str]]], int]:
    """Objects, each with what is said of them, for a short report, and of how many places it says only that there are
    more.

    Fields of what stays come first. Labels and annotations are told where nothing else changes, else counted.
    """
    new = [statement for statement in told if statement.first.evidence.get("action") == Action.CREATE]
    changed = sorted((statement for statement in told if statement not in new), key=_is_of_metadata)
    fields = [statement for statement in changed if not _is_of_metadata(statement)] or changed
    kept = fields[:MAX_FIELDS]
    rest = changed[len(kept) :]
    objects: dict[str, list[str]] = {}
    for one in kept:
        objects.setdefault(some(list(dict.fromkeys(place.of for place in one.places)), 1), []).append(
            _statement_words(one)
        )
    found = list(objects.items())
    if rest:
        objects_left = len({place.of for statement in rest for place in statement.places})
        found.append((f"{number(len(rest), 'more field')} of {number(objects_left, 'object')}", []))
    if new:
        told_of_new = [finding for statement in new for finding in statement.findings]
        found.append(
            (f"{count_fields_and_objects(told_of_new)} that are new", kinds_and_fields(told_of_new, MAX_KINDS))
        )
    return found, sum(count(statement.places) for statement in (*rest, *new))


def _is_of_metadata(one: Statement) -> bool:
    return all(_METADATA in f".{field}" for field in one.first.evidence.get("fields") or ())


def _statement_words(statement: Statement) -> str:
    """Cut, so that one field of many values leaves room for others; of a text of many lines those that differ."""
    evidence = statement.first.evidence
    changes = evidence.get("changes") or ()
    texts = [(_text_of(change.get("before")), _text_of(change.get("after"))) for change in changes]
    if len(texts) != 1 or not any("\n" in side for side in texts[0]):
        is_change = statement.first.variant == "changed"
        words = messages_of(UNJUDGED).render("changed.few", evidence) if is_change else statement.words
        return words if len(words) <= MAX_WORDS else f"{words[:MAX_WORDS].rstrip('…')}…"
    # The first line that goes and the first that comes, cut, and how many more.
    before, after = (side.splitlines() for side in texts[0])
    gone, come = Counter(before) - Counter(after), Counter(after) - Counter(before)
    old = [f"- {line.strip()}" for line in before if gone[line]]
    new = [f"+ {line.strip()}" for line in after if come[line]]
    told = [line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}…" for line in (*old[:1], *new[:1])]
    rest = len(old) + len(new) - len(told)
    words = " ".join([*told, *([f"({number(rest, 'more line')})"] if rest else [])])
    return f"{evidence.get('field')}: {words or 'its lines stand in another order'}"


def _text_of(value: object) -> str:
    """A text as the object holds it: in evidence one of several lines stands as JSON."""
    try:
        found = json.loads(str(value))
    except ValueError:
        return str(value)
    return found if isinstance(found, str) else str(value)


def count_fields_and_objects(findings: Iterable[Finding]) -> str:
    """`32 fields of 15 objects`, of findings of what no rule judges."""
    everything = list(findings)
    fields = sum(1 for finding in everything for _ in unjudged_fields(finding.rule, finding.evidence))
    objects = len({place.of for finding in everything for place in places_of(finding)})
    return f"{number(fields, 'field')} of {number(objects, 'object')}"


def kinds_and_fields(findings: Iterable[Finding], most: int) -> list[str]:
    """Which fields of which kinds these are, `most` of the kinds and of the fields of each: `Service: spec.ports`."""
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    for finding in findings:
        kinds[finding.ref.kind if finding.ref else ""].update(unjudged_fields(finding.rule, finding.evidence))
    ordered = sorted(kinds.items(), key=lambda it: -it[1].total())
    told = [f"{kind}: {some([name for name, _ in fields.most_common()], most)}" for kind, fields in ordered[:most]]
    return [*told, *([and_more(len(ordered) - most, "kinds")] if len(ordered) > most else [])]


MAX_WAYS, MAX_TOLD = 3, 2
_ALL_RIGHTS = "RB-DIFF"
_Part = tuple[Any, ...]


class CauseKind(StrEnum):
    """What would be changed: an account's rights, a version of CRDs, an image or an object; else what one rule found.

    `safe` is all that is no risk, and `known` all else that was so before: one entry each, where they are not listed.
    """

    ACCOUNT = "account"
    VERSION = "version"
    IMAGE = "image"
    OBJECT = "object"
    RULE = "rule"
    SAFE = "safe"
    KNOWN = "known"


@dataclass(frozen=True, slots=True, order=True)
class Cause:
    """`name` is the object as messages call it, of a CRD with its version; else the image, or the id of the rule."""

    kind: CauseKind
    name: str


@dataclass(frozen=True, slots=True)
class Entry:
    """The `findings` of one section that go with one cause, the worst first; all of them are new or none is."""

    cause: Cause
    findings: tuple[Finding, ...]

    @property
    def severity(self) -> Severity:
        return self.findings[0].severity

    @property
    def is_new(self) -> bool:
        return self.findings[0].is_new

    @property
    def ways(self) -> str:
        """The roles that give an account all of it, each with its rules: `ClusterRole web, rules 1 and 3`."""
        rules: dict[str, set[int]] = {}
        for finding in self.findings:
            for way in finding.evidence.get("by") or ():
                kind, _, name = str(way["origin"]).partition(" ")
                rules.setdefault(f"{kind.partition('.')[0]} {name}", set()).add(int(way["rule"]) + 1)
        told = [
            f"{role}, rule{'s' if len(of) > 1 else ''} {_in_runs(sorted(of))}" for role, of in sorted(rules.items())
        ]
        return some_phrases(told, MAX_WAYS)

    @property
    def is_told_whole(self) -> bool:
        """Whether the sentence says all that is critical or unknown, so that nothing else has to stand open (S24)."""
        return self.tells_powers or self.severity not in NEVER_FOLDED

    @property
    def tells_powers(self) -> bool:
        """Whether it is of an account that gains power; where it gains rights alone, the finding says which."""
        return self.cause.kind is CauseKind.ACCOUNT and any(finding.rule != _ALL_RIGHTS for finding in self.findings)

    @property
    def account(self) -> str:
        """The account as sentences name it."""
        return subject_and_words(self.findings[0])[0]

    @property
    def words(self) -> str:
        """The entry as one sentence: what the worst finding says, and how many more there are.

        Of an account it says all that is critical or unknown (S24).
        """
        if self.tells_powers:
            told = [words_in_entry(finding) for finding in self.findings]
            most = max(sum(finding.severity in NEVER_FOLDED for finding in self.findings), MAX_TOLD)
            by = f", by {self.ways}" if self.ways else ""
            return f"{self.account} can now {some_phrases(told, most)}{by}"
        if self.cause.kind in (CauseKind.SAFE, CauseKind.KNOWN):
            return in_counts(self.findings)
        worst, *others = statements(self.findings)
        words = f"{worst.words}: {worst.size}" if worst.is_of_several else worst.words
        if not others:
            return words
        if self.cause == Cause(CauseKind.RULE, UNJUDGED):
            kinds = "; ".join(kinds_and_fields(self.findings, MAX_KINDS))
            return f"{count_fields_and_objects(self.findings)} that no rule judges: {kinds}"
        if self.cause.kind is CauseKind.RULE:
            known = rule_text(self.cause.name) if self.cause.name else None
            return known.title if known else self.cause.name or "Findings without a rule"
        words = shortened(words.splitlines()[0].rstrip(".:"), worst.first.severity)
        return f"{words}; {and_more(len(self.findings) - len(worst.everything))}"

    @property
    def rule(self) -> str:
        """The rule where one rule says all of it. Nobody may learn which of them speak of a Secret (S09)."""
        rules = {finding.rule for finding in self.findings}
        return rules.pop() if len(rules) == 1 else ""

    @property
    def name(self) -> str:
        """What the cause is called at the beginning of a line."""
        return f"Image {self.cause.name}" if self.cause.kind is CauseKind.IMAGE else self.cause.name


def cause_of(finding: Finding) -> Cause:
    """What a person would change to make a finding go, by its rule, its object and its values."""
    ref, image = finding.ref, finding.evidence.get("image")
    if ref is None or finding.rule == UNJUDGED or len({place.of for place in places_of(finding)}) > 1:
        return Cause(CauseKind.RULE, finding.rule)
    name, version = display_name(ref), version_of(finding)
    # What an account can do stands in its entry where the rule has words for that.
    is_told = bool(finding.variant) and not finding.server_words
    if is_told and _part_of_entry(finding) in messages_of(finding.rule).templates:
        return Cause(CauseKind.ACCOUNT, name)
    if finding.section is Section.IMAGES and isinstance(image, str):
        return Cause(CauseKind.IMAGE, image)
    is_version = finding.section is Section.CRDS and version
    return Cause(CauseKind.VERSION, f"{name} {version}") if is_version else Cause(CauseKind.OBJECT, name)


def entries(findings: Iterable[Finding]) -> list[Entry]:
    """Every finding in one entry, what is new first, then the worst.

    A finding stands with those of its cause where more rules speak of the cause than the rule speaks of causes, else
    with those of its rule and severity: seven pods that lack the same are one entry, and so is one that lacks seven
    things. An account always is one, unless it gains rights and no power: then a sentence says which rights.
    """
    rules: dict[_Part, set[str]] = {}
    causes: dict[_Part, set[Cause]] = {}
    told = [
        ((finding.section, finding.is_new, finding.severity is Severity.SAFE), finding, cause_of(finding))
        for finding in findings
    ]
    for part, one, cause in told:
        rules.setdefault((*part, cause), set()).add(one.rule)
        causes.setdefault((*part, one.rule), set()).add(cause)
    groups: dict[_Part, list[Finding]] = {}
    for part, one, cause in told:
        of_cause, of_rule = rules[*part, cause], causes[*part, one.rule]
        is_alone = of_cause == {_ALL_RIGHTS} or (cause.kind is not CauseKind.ACCOUNT and len(of_cause) <= len(of_rule))
        key = (Cause(CauseKind.RULE, one.rule), one.severity) if is_alone and len(of_rule) > 1 else (cause, None)
        groups.setdefault((*part, *key), []).append(one)
    made = [
        Entry(cause, tuple(sorted(group, key=lambda finding: (finding.severity.rank, finding.rule))))
        for (*_, cause, _), group in groups.items()
    ]
    return sorted(made, key=lambda entry: (not entry.is_new, entry.severity.rank))


def entries_record(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """The entries of a report as JSON, the last ones for all that is safe and for all that was so before."""
    told = list(findings)
    quiet = [finding for finding in told if is_quiet(finding)]
    safe = [finding for finding in quiet if finding.severity is Severity.SAFE]
    known = [finding for finding in quiet if finding.severity is not Severity.SAFE]
    made = entries(finding for finding in told if not is_quiet(finding))
    made += [
        Entry(Cause(kind, ""), worst_first(group))
        for kind, group in ((CauseKind.SAFE, safe), (CauseKind.KNOWN, known))
        if group
    ]
    return [
        {
            "cause": {"kind": str(entry.cause.kind), "name": entry.cause.name},
            "severity": str(entry.severity),
            "isNew": entry.is_new,
            "message": entry.words,
            "findings": [finding.fingerprint for finding in entry.findings],
        }
        for entry in made
    ]


def words_in_entry(finding: Finding) -> str:
    """What a finding says of its account, in the entry of that account."""
    return messages_of(finding.rule).render(_part_of_entry(finding), finding.evidence)


def _part_of_entry(finding: Finding) -> str:
    return f"entry.{finding.variant}"


def _in_runs(numbers: list[int]) -> str:
    """`1 to 3 and 5`."""
    runs: list[list[int]] = []
    for at in numbers:
        if runs and at == runs[-1][-1] + 1:
            runs[-1].append(at)
        else:
            runs.append([at])
    told = [words for run in runs for words in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run))]
    return " and ".join(filter(None, [", ".join(told[:-1]), told[-1]]))
