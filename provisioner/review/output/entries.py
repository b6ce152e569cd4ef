"""Findings told by cause: one entry for what a person would change to make them go, with its consequences inside. Pure.

An entry is made of what its reader may see: whoever withholds findings does so before, and nothing here tells more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from provisioner.review.base.messages import subject_and_words
from provisioner.review.base.places import UNJUDGED, places_of, version_of
from provisioner.review.base.statements import NEVER_FOLDED, in_counts, is_quiet, statements
from provisioner.review.output.unjudged import MAX_KINDS, fields_in_words, kinds_and_fields
from provisioner.review.rules import messages_of, rule_text
from provisioner.sentences import some_phrases
from provisioner.values import Finding, Section, Severity, display_name, worst_first

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
        return self.cause.kind is CauseKind.ACCOUNT and any(one.rule != _ALL_RIGHTS for one in self.findings)

    @property
    def account(self) -> str:
        """The account as sentences name it."""
        return subject_and_words(self.findings[0])[0]

    @property
    def words(self) -> str:
        """The entry as one sentence. Of an account it says all that is critical or unknown (S24)."""
        if self.tells_powers:
            told = [words_in_entry(one) for one in self.findings]
            most = max(sum(one.severity in NEVER_FOLDED for one in self.findings), MAX_TOLD)
            by = f", by {self.ways}" if self.ways else ""
            return f"{self.account} will newly be able to {some_phrases(told, most)}{by}"
        if self.cause.kind in (CauseKind.SAFE, CauseKind.KNOWN):
            return in_counts(self.findings)
        said = statements(self.findings)
        if len(said) == 1:
            return f"{said[0].words}: {said[0].size}" if said[0].is_of_several else said[0].words
        if self.cause == Cause(CauseKind.RULE, UNJUDGED):
            kinds = "; ".join(kinds_and_fields(self.findings, MAX_KINDS))
            return f"{fields_in_words(self.findings)} that no rule judges: {kinds}"
        titles = list(dict.fromkeys(map(_title, self.findings)))
        return titles[0] if self.cause.kind is CauseKind.RULE else f"{self.name}: {some_phrases(titles)}"

    @property
    def name(self) -> str:
        """What the cause is called at the beginning of a line."""
        return f"Image {self.cause.name}" if self.cause.kind is CauseKind.IMAGE else self.cause.name


def cause_of(finding: Finding) -> Cause:
    """What a person would change to make a finding go, by its rule, its object and its values."""
    ref, image = finding.ref, finding.evidence.get("image")
    if ref is None or finding.rule == UNJUDGED or len({place.of for place in places_of(finding)}) > 1:
        return Cause(CauseKind.RULE, finding.rule)
    if _is_power(finding):
        return Cause(CauseKind.ACCOUNT, display_name(ref))
    if finding.section is Section.IMAGES and isinstance(image, str):
        return Cause(CauseKind.IMAGE, image)
    name, version = display_name(ref), version_of(finding)
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
    told = [((one.section, one.is_new, one.severity is Severity.SAFE), one, cause_of(one)) for one in findings]
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
        Entry(cause, tuple(sorted(group, key=lambda it: (it.severity.rank, it.rule))))
        for (*_, cause, _), group in groups.items()
    ]
    return sorted(made, key=lambda it: (not it.is_new, it.severity.rank))


def entries_record(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """The entries of a report as JSON, the last ones for all that is safe and for all that was so before."""
    told = list(findings)
    quiet = [one for one in told if is_quiet(one)]
    safe = [one for one in quiet if one.severity is Severity.SAFE]
    known = [one for one in quiet if one.severity is not Severity.SAFE]
    made = entries(one for one in told if not is_quiet(one))
    made += [
        Entry(Cause(kind, ""), worst_first(group))
        for kind, group in ((CauseKind.SAFE, safe), (CauseKind.KNOWN, known))
        if group
    ]
    return [
        {
            "cause": {"kind": str(one.cause.kind), "name": one.cause.name},
            "severity": str(one.severity),
            "isNew": one.is_new,
            "message": one.words,
            "findings": [finding.fingerprint for finding in one.findings],
        }
        for one in made
    ]


def words_in_entry(finding: Finding) -> str:
    """What a finding says of its account, in the entry of that account."""
    return messages_of(finding.rule).render(_part_of_entry(finding), finding.evidence)


def _is_power(finding: Finding) -> bool:
    """Whether a finding says what its account can do, in words that stand in an entry."""
    is_told = bool(finding.variant) and not finding.server_words
    return is_told and _part_of_entry(finding) in messages_of(finding.rule).templates


def _part_of_entry(finding: Finding) -> str:
    return f"entry.{finding.variant}"


def _title(finding: Finding) -> str:
    """What its rule is called; of a rule that has no text its id."""
    known = rule_text(finding.rule) if finding.rule else None
    return known.title if known else finding.rule or "Findings without a rule"


def _in_runs(numbers: list[int]) -> str:
    """`1 to 3 and 5`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    told = [words for run in runs for words in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run))]
    return " and ".join(filter(None, [", ".join(told[:-1]), told[-1]]))
