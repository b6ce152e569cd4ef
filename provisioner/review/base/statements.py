"""Findings that say the same, told together: one statement, and below it everything that it holds for. Pure.

Nothing is left out and nothing becomes another finding: each member keeps its fingerprint, and is approved or accepted
by itself. One statement is of one rule, one severity, and either new or as before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from provisioner.review.base.messages import said_anywhere, words_anywhere
from provisioner.review.base.places import COUNTED, FieldPlace, by_field, path_text, places_of
from provisioner.sentences import number
from provisioner.values import Finding, Severity

NEVER_FOLDED = (Severity.CRITICAL, Severity.UNKNOWN)
# Findings with these are told by themselves: they are copied, or are another's words, or count their places.
_OWN_WORDS = ("steps", "yaml", COUNTED)
_POWER, _EVERYTHING = "OWN-PRATIQUE-03", "RB-01"
_ALL_POWER = "everything"


@dataclass(frozen=True, slots=True)
class Statement:
    """What `findings` say, in the words of the first where there is one, else in `words` that fit them all.

    `attached` are findings of other rules that follow from the same cause, and are told right below.
    """

    words: str
    findings: tuple[Finding, ...]
    attached: tuple[Finding, ...] = ()

    @property
    def first(self) -> Finding:
        return self.findings[0]

    @property
    def everything(self) -> tuple[Finding, ...]:
        return (*self.findings, *self.attached)

    @property
    def places(self) -> list[FieldPlace]:
        """Where it holds, each place once."""
        return list(dict.fromkeys(chain.from_iterable(map(places_of, self.findings))))

    @property
    def is_of_several(self) -> bool:
        return len(self.findings) > 1 or (len(self.places) > 1 and not self.counts_itself)

    @property
    def counts_itself(self) -> bool:
        """Whether its words say of how many places they are."""
        return COUNTED in self.first.evidence

    @property
    def reaches(self) -> list[StatementReach]:
        """Where it holds, grouped: what is critical or unknown has a line for each object (S24)."""
        return reaches(self.places, is_apart=self.first.severity in NEVER_FOLDED)

    @property
    def size(self) -> str:
        return size(self.places)


@dataclass(frozen=True, slots=True)
class StatementReach:
    """Objects that have the same fields in the same versions; without fields the objects alone."""

    objects: tuple[str, ...]
    versions: tuple[str, ...]
    fields: tuple[str, ...]


def statements(findings: Iterable[Finding], *, shortly: bool = False) -> list[Statement]:
    """`findings` in their order, with those that say the same beside the first of them.

    `shortly` what differs only in the name or the values of a schema's field says the same, too; nothing critical or
    unknown does (S24).
    """
    everything = list(findings)
    powers = {_account(one): one.fingerprint for one in everything if _is_of_all_power(one)}
    attached: dict[str, list[Finding]] = {}
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for position, one in enumerate(everything):
        if one.rule == _EVERYTHING and _account(one) in powers:
            attached.setdefault(powers[_account(one)], []).append(one)
            continue
        is_short = shortly and one.severity not in NEVER_FOLDED
        said = None if is_told_alone(one) else said_anywhere(one, is_short=is_short)
        key = (one.rule, one.also, one.severity, one.is_new, said) if said else (position,)
        groups.setdefault(key, []).append(one)
    return [_of_group(group, attached, is_short=shortly) for group in groups.values()]


def _of_group(group: Sequence[Finding], attached: dict[str, list[Finding]], *, is_short: bool) -> Statement:
    found, first = tuple(group), group[0]
    below = tuple(chain.from_iterable(attached.get(one.fingerprint, ()) for one in found))
    made = Statement(first.message, found, below)
    if is_told_alone(first) or said_anywhere(first) is None or not made.is_of_several:
        return made
    return replace(made, words=words_anywhere(first, is_short=is_short and first.severity not in NEVER_FOLDED))


def _account(finding: Finding) -> tuple[object, ...]:
    return (finding.ref.identity if finding.ref else None, finding.is_new, finding.severity)


def _is_of_all_power(finding: Finding) -> bool:
    return finding.rule == _POWER and finding.evidence.get("told") == _ALL_POWER


def reaches(places: Iterable[FieldPlace], *, is_apart: bool = False) -> list[StatementReach]:
    """Places by object, field and versions. Nothing is left out.

    Objects that have the same fields in the same versions stand together, unless each `is_apart`.
    """
    fields: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for name, path, versions in by_field(places):
        fields.setdefault((name, tuple(versions)), []).append(path_text(path))
    objects: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (name, served), paths in fields.items():
        key = (name if is_apart else "", served, tuple(one for one in paths if one))
        objects.setdefault(key, []).append(name)
    return [StatementReach(tuple(names), same[1], same[2]) for same, names in objects.items()]


def size(places: Sequence[FieldPlace]) -> str:
    """How many fields of how many objects."""
    objects = number(len({one.of for one in places}), "object")
    return f"{number(count(places), 'field')} of {objects}" if any(one.path for one in places) else objects


def count(places: Iterable[FieldPlace]) -> int:
    """The same field in several versions is one."""
    return len({(one.of, one.path) for one in places})


def is_told_alone(finding: Finding) -> bool:
    """Whether a finding joins no other: the API server said it, or it is there to be copied, or counts its places."""
    return finding.ref is None or bool(finding.server_words) or any(name in finding.evidence for name in _OWN_WORDS)


def is_quiet(finding: Finding) -> bool:
    """Whether a number is enough at first: safe, or as before."""
    return finding.severity is Severity.SAFE or not finding.is_new


def in_counts(findings: Iterable[Finding]) -> str:
    """`364 safe, 2 dangerous and 7 notable as before`."""
    counted = Counter((one.severity, one.is_new or one.severity is Severity.SAFE) for one in findings)
    new = [f"{counted[severity, True]:,} {severity}" for severity in Severity if counted[severity, True]]
    known = [f"{counted[severity, False]:,} {severity}" for severity in Severity if counted[severity, False]]
    told = " and ".join(filter(None, [", ".join(known[:-1]), *known[-1:]]))
    return ", ".join([*new, *([f"{told} as before"] if known else [])])
