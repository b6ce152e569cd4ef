"""Findings that say the same, told together: one statement, and below it everything that it holds for. Pure.

Nothing is left out and nothing becomes another finding: each member keeps its fingerprint, and is approved or accepted
by itself. One statement is of one rule, one severity, and either new or as before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from provisioner.review.base.facts import said
from provisioner.review.base.fold import MORE
from provisioner.review.base.places import COUNTED, PLACES, FieldPlace, by_field, path_text, places_of, version_of
from provisioner.review.base.shared_fields import shared_words
from provisioner.schema.verdicts import shown
from provisioner.sentences import number
from provisioner.values import Finding, Severity

EACH = "each of these"
NEVER_FOLDED = (Severity.CRITICAL, Severity.UNKNOWN)
_FIELD = "…"
# Findings with these are told by themselves: they are copied, or are another's words, or count their places.
_OWN_WORDS = ("steps", "yaml", COUNTED)
_POWER, _EVERYTHING = "OWN-PRATIQUE-03", "RB-01"
_ALL_POWER = "do everything in the cluster"


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
    groups: dict[tuple[object, ...], list[tuple[str, Finding]]] = {}
    for position, one in enumerate(everything):
        if one.rule == _EVERYTHING and _account(one) in powers:
            attached.setdefault(powers[_account(one)], []).append(one)
            continue
        words = common_words(one)
        if words and shortly and one.severity not in NEVER_FOLDED:
            words = shared_words(words, one)
        key = (one.rule, one.also, one.severity, one.is_new, words) if words else (position,)
        groups.setdefault(key, []).append((words, one))
    return [_of_group(group, attached) for group in groups.values()]


def _of_group(group: Sequence[tuple[str, Finding]], attached: dict[str, list[Finding]]) -> Statement:
    found = tuple(one for _, one in group)
    words, first = group[0]
    below = tuple(chain.from_iterable(attached.get(one.fingerprint, ()) for one in found))
    made = Statement(words, found, below)
    return made if words and made.is_of_several else replace(made, words=first.message)


def _account(finding: Finding) -> tuple[object, ...]:
    return (finding.ref.identity if finding.ref else None, finding.is_new, finding.severity)


def _is_of_all_power(finding: Finding) -> bool:
    powers = finding.evidence.get("powers")
    return finding.rule == _POWER and isinstance(powers, list | tuple) and list(powers[:1]) == [_ALL_POWER]


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


def common_words(finding: Finding) -> str:
    """What a finding says without its object and its field; "" where it has to be told by itself."""
    ref = finding.ref
    if ref is None or finding.server_words or any(name in finding.evidence for name in _OWN_WORDS):
        return ""
    # The last one: a field may be named so that it reads like one before.
    message = finding.message.rpartition(MORE)[0] if PLACES in finding.evidence else ""
    message = message or finding.message
    field = shown(finding.path) if finding.path else ""
    name = next((one for one in _names(finding) if one and one in message), "")
    if not name:
        return ""
    if not message.startswith(name):
        return _without_field(message.replace(name, EACH), field)
    rest = message.removeprefix(name)
    if rest.startswith((" ", ", ")) and not (field and rest.startswith(f", {field}: ")):
        return _without_field(f"{EACH.capitalize()}{rest}", field)
    words = rest.removeprefix(f", {field}").removeprefix(": ")
    return _without_field(words, field)


def name_and_words(finding: Finding) -> tuple[str, str]:
    """The object as a message that begins with it names it, and the rest of the message; else "" and all of it."""
    if finding.ref is None or finding.server_words or any(name in finding.evidence for name in _OWN_WORDS):
        return "", finding.message
    name = next((one for one in _names(finding) if finding.message.startswith(f"{one} ")), "")
    return name, finding.message.removeprefix(name).lstrip() if name else finding.message


def _names(finding: Finding) -> Iterator[str]:
    """How a message may call the object, the longest first: with its versions, by itself, and as an account."""
    ref = finding.ref
    assert ref is not None
    versions = list(dict.fromkeys(one.version for one in places_of(finding) if one.path == finding.path))
    told = [", ".join(versions), ", ".join(versions[:1]), version_of(finding)]
    yield from (f"{said(ref)} {one}" for one in told if one)
    yield said(ref)
    yield f"`{ref.namespace}/{ref.name}`" if ref.namespace else f"{ref.kind} `{ref.name}`"


def _without_field(words: str, field: str) -> str:
    if not field:
        return words
    found = re.sub(rf"(?<![\w.\[]){re.escape(field)}(?![\w.\[])", _FIELD, words)
    required = f"{field.rpartition('.')[2]} must "
    return f"it must {found.removeprefix(required)}" if found.startswith(required) else found


def is_quiet(finding: Finding) -> bool:
    """Whether a number is enough at first: safe, or as before; never what is critical or unknown (S24)."""
    if finding.severity in NEVER_FOLDED:
        return False
    return finding.severity is Severity.SAFE or not finding.is_new
