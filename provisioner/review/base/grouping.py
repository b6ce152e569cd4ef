"""What is found in the same words at several places is said once, with their number and all of them.

The same field in several versions of a CRD is one finding, and so is the same difference between several pairs of its
versions; more than MAX_UNFOLDED objects or fields are one, too.
Nothing critical or unknown is ever folded (S24), nothing about Secrets, of which each reader may see other ones, and no
deletion that takes something along: an approval names each of those, with what goes with it.
Only objects of one kind and namespace stand together, so that who may see one may as a rule see all.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from provisioner.review.base.facts import SECRET, fingerprint
from provisioner.review.base.messages import (
    COUNTED,
    DIFFERING,
    FOLDED,
    PLACES,
    FieldPlace,
    Path,
    by_field,
    listed_places,
    path_text,
    places_of,
    said_anywhere,
    shown_names,
    version_of,
    with_message,
    words_anywhere,
)
from provisioner.review.base.record import plain
from provisioner.schema.fields import shown_json
from provisioner.schema.verdicts import shown
from provisioner.sentences import number, some
from provisioner.values import Finding, Note, Severity, display_name

MAX_UNFOLDED = 10
_DELETIONS = frozenset({"DEL-01", "CRD-08"})
_TAKING_ALONG = frozenset({"CustomResourceDefinition", "Namespace", "PersistentVolume", "PersistentVolumeClaim"})
# In the evidence of findings that stand by themselves: what goes with an object is looked at again before it goes, and
# what accounts may do is told account by account.
_APART = frozenset({"counts", "volumes", "subject"})
MAX_TEXTS = 500
MAX_NAMES = 4
_ALWAYS_SAID = frozenset({Severity.CRITICAL, Severity.UNKNOWN})
# What folding itself writes into evidence.
_OWN = frozenset({PLACES, "count", "objects", "version"})
_Key = tuple[object, ...]


def folded(findings: Iterable[Finding]) -> list[Finding]:
    """`findings`, those that differ only in the version of a CRD as one, and more than MAX_UNFOLDED that differ only in
    object, field and version.

    The one has all of them in its evidence (`all_places`, see places_of, each with the evidence that is not that of
    all; `count`, and `objects`), and is another finding as soon as one joins or leaves: what was accepted of some is
    not accepted of more.
    """
    once = _grouped(findings, _of_one_field, most=1, as_one=_in_versions)
    return _grouped(once, _fold_key, most=MAX_UNFOLDED, as_one=_at_places)


def _grouped(
    findings: Iterable[Finding],
    key: Callable[[Finding], _Key | None],
    most: int,
    as_one: Callable[[Sequence[Finding]], Finding],
) -> list[Finding]:
    groups: dict[_Key, list[Finding]] = {}
    for position, one in enumerate(findings):
        groups.setdefault(key(one) or (position,), []).append(one)
    return [finding for group in groups.values() for finding in (group if len(group) <= most else [as_one(group)])]


def _fold_key(finding: Finding) -> _Key | None:
    """What findings that say the same have in common, None for one that is always said by itself."""
    ref = finding.ref
    if ref is None or finding.severity in _ALWAYS_SAID or ref.group_kind == SECRET:
        return None
    if finding.server_words:  # those of one object are no other's
        return None
    if _APART & finding.evidence.keys() or (finding.rule in _DELETIONS and ref.kind in _TAKING_ALONG):
        return None
    said = said_anywhere(finding)
    if said is None:
        return None
    verdicts = tuple(sorted(finding.verdicts.items()))
    place = (finding.section, finding.severity, finding.is_new, ref.group_kind, ref.namespace)
    # Who may see what one is made of may not see what the other is (S09).
    return (finding.rule, *place, said, verdicts, finding.sources)


def _of_one_field(finding: Finding) -> _Key | None:
    """What findings about one field have in common, whichever version of the CRD they are about."""
    if not finding.path or not version_of(finding):
        return None
    pair = _pair_of(finding)
    apart = ("version", "from", "to") if pair else ("version",)
    rest = {name: value for name, value in finding.evidence.items() if name not in apart}
    same = _fold_key(replace(finding, evidence={**finding.evidence, **dict.fromkeys(apart[1:])}))
    return (*same, finding.ref, finding.path, str(plain(rest))) if same else None


def _pair_of(finding: Finding) -> list[str] | None:
    """The two versions of one CRD that a finding compares."""
    pair = [finding.evidence.get("from"), finding.evidence.get("to")]
    is_pair = finding.rule.startswith("SRV-") and all(isinstance(version, str) for version in pair)
    return list(map(str, pair)) if is_pair else None


def _in_versions(group: Sequence[Finding]) -> Finding:
    """One field of several versions. It stands for the first of them where one version has to be named."""
    first = group[0]
    pairs = [{"from": pair[0], "to": pair[1]} for finding in group[1:] if (pair := _pair_of(finding))]
    if not pairs:
        return _one_of(group, [], {**first.evidence})
    own = {name: first.evidence[name] for name in ("version", "from", "to")}
    return _one_of(group, [Note(FOLDED, "versions", {"pairs": pairs})], _common(group), **own)


def _at_places(group: Sequence[Finding]) -> Finding:
    """One that stands for several objects, with a note on where else it holds: in other fields or of other objects."""
    ordered = sorted(
        group, key=lambda finding: (finding.ref.identity if finding.ref else (), tuple(map(str, finding.path)))
    )
    first, names = ordered[0], list(dict.fromkeys(display_name(finding.ref) for finding in ordered if finding.ref))
    own = {"count": len(ordered), "objects": names, "version": version_of(first) or None}
    counts = {name: value for name, value in own.items() if value and name not in shown_names(first)}
    places = dict.fromkeys(place for finding in ordered for place in places_of(finding))
    fields = [path for _, path, _ in by_field(places)]
    if len(fields) == len(names):
        note = Note(FOLDED, "objects", {"more": len(names) - 1, "others": names[1 : MAX_NAMES + 1]})
    elif len(names) == 1:
        others = [shown(path) for path in fields[1 : MAX_NAMES + 1]]
        note = Note(FOLDED, "fields", {"more": len(fields) - 1, "others": others})
    else:
        more = {"more": len(fields) - 1, "objects": len(names), "others": names[:MAX_NAMES]}
        note = Note(FOLDED, "fields-of-objects", more)
    return _one_of(ordered, [note], _common(ordered), **counts)


def _one_of(group: Sequence[Finding], notes: Sequence[Note], evidence: dict[str, object], **own: object) -> Finding:
    """The first of a group with the evidence of all, `own` evidence of its own, and its places."""
    first = group[0]
    everywhere = []
    for finding in group:
        held = {name: value for name, value in plain(finding.evidence).items() if name not in _OWN}
        # What of a place's evidence is not in that of all.
        differing = {name: held[name] for name in held if name not in evidence or plain(evidence[name]) != held[name]}
        for place in listed_places(finding):
            before = place.get(DIFFERING)
            found = {**differing, **(before if isinstance(before, Mapping) else {})}
            everywhere.append({**place, **({DIFFERING: found} if found else {})})
    # Of a JSON value: two places that differ in nothing are one.
    places = list({json.dumps(place, sort_keys=True, default=str): place for place in everywhere}.values())
    told = {**evidence, **own, PLACES: places}
    named = fingerprint(first.rule, first.ref, first.path, sorted(finding.fingerprint for finding in group))
    return with_message(replace(first, evidence=told, fingerprint=named, notes=(*first.notes, *notes)))


def _common(group: Sequence[Finding]) -> dict[str, object]:
    """The evidence that is the same for all; of lists of texts, what any of them has."""
    everybody = [plain(finding.evidence) for finding in group]
    found: dict[str, object] = {}
    for name, value in everybody[0].items():
        values = [evidence.get(name) for evidence in everybody]
        if all(one == value for one in values):
            found[name] = value
        elif all(isinstance(one, list) for one in values):
            texts = [text for one in values for text in one or () if isinstance(text, str)]
            found[name] = list(dict.fromkeys(texts))[:MAX_TEXTS]
    return found


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
    powers = {
        _account(finding): finding.fingerprint
        for finding in everything
        if finding.rule == _POWER and finding.evidence.get("told") == _ALL_POWER
    }
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
    told = []
    for group in groups.values():
        first = group[0]
        below = tuple(chain.from_iterable(attached.get(finding.fingerprint, ()) for finding in group))
        made = Statement(first.message, tuple(group), below)
        if not is_told_alone(first) and said_anywhere(first) is not None and made.is_of_several:
            is_short = shortly and first.severity not in NEVER_FOLDED
            made = replace(made, words=words_anywhere(first, is_short=is_short))
        told.append(made)
    return told


def _account(finding: Finding) -> tuple[object, ...]:
    return (finding.ref.identity if finding.ref else None, finding.is_new, finding.severity)


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
    objects = number(len({place.of for place in places}), "object")
    return f"{number(count(places), 'field')} of {objects}" if any(place.path for place in places) else objects


def count(places: Iterable[FieldPlace]) -> int:
    """The same field in several versions is one."""
    return len({(place.of, place.path) for place in places})


def is_told_alone(finding: Finding) -> bool:
    """Whether a finding joins no other: the API server said it, or it is there to be copied, or counts its places."""
    return finding.ref is None or bool(finding.server_words) or any(name in finding.evidence for name in _OWN_WORDS)


def is_quiet(finding: Finding) -> bool:
    """Whether a number is enough at first: safe, or as before."""
    return finding.severity is Severity.SAFE or not finding.is_new


def in_counts(findings: Iterable[Finding]) -> str:
    """`364 safe, 2 dangerous and 7 notable as before`."""
    counted = Counter((finding.severity, finding.is_new or finding.severity is Severity.SAFE) for finding in findings)
    new = [f"{counted[severity, True]:,} {severity}" for severity in Severity if counted[severity, True]]
    known = [f"{counted[severity, False]:,} {severity}" for severity in Severity if counted[severity, False]]
    told = " and ".join(filter(None, [", ".join(known[:-1]), *known[-1:]]))
    return ", ".join([*new, *([f"{told} as before"] if known else [])])


MAX_PATH, MAX_VALUE = 48, 60
# What of a default is a value of its field, and stands beside it.
_DEFAULTS = frozenset({"SCH-06", "SCH-33", "SCH-34", "SCH-35"})


@dataclass(frozen=True, slots=True)
class SharedField:
    """A field by the name that all its places end in, and its values where they are what changes."""

    name: str
    count: int
    values: str = ""

    def __str__(self) -> str:
        told = [self.values] if self.values else []
        told += [f"{self.count:,} places"] if self.count > 1 else []
        return f"{self.name} ({'; '.join(told)})" if told else self.name


def fields_in_words(findings: Sequence[Finding], at_most: int) -> str:
    """The fields, those that end alike as one."""
    fields = _shared(_listed(findings))
    return some(fields, at_most, noun="fields")


def objects_in_words(findings: Sequence[Finding]) -> str:
    """How many places of which objects."""
    places = [place for place, _ in _listed(findings)]
    count = len({(place.of, place.path) for place in places})
    where = some(list(dict.fromkeys(place.of for place in places)), 1)
    return f"{number(count, 'place')} in {where}"


def spelled_out(findings: Sequence[Finding], at_most: int) -> int:
    """How many of the places `fields_in_words` names whole."""
    return sum(field.count == 1 for field in _shared(_listed(findings))[:at_most])


def _listed(findings: Iterable[Finding]) -> list[tuple[FieldPlace, str]]:
    return [
        (FieldPlace(str(place["object"]), tuple(place["path"]), str(place["version"])), _value_texts(place, finding))
        for finding in findings
        for place in listed_places(finding)
    ]


def _shared(places: Iterable[tuple[FieldPlace, str]]) -> list[SharedField]:
    """The fields of most places first."""
    groups: dict[tuple[str, ...], dict[tuple[str, Path], str]] = {}
    for place, values in places:
        ending = tuple(map(str, place.path[-2:]))
        groups.setdefault(ending, {})[place.of, place.path] = values
    found = []
    for ending, group in groups.items():
        paths, values_of_all = {path for _, path in group}, set(group.values())
        name = path_text(*paths) if len(paths) == 1 else ""
        if not name or (len(name) > MAX_PATH and not name.startswith("…")):
            name = f"…{path_text(ending)}"
        found.append(SharedField(name, len(group), *(values_of_all if len(values_of_all) == 1 else ())))
    return sorted(found, key=lambda field: (-field.count, field.name))


def _value_texts(listed: Mapping[str, Any], finding: Finding) -> str:
    if finding.rule not in _DEFAULTS:
        return ""
    own = listed.get(DIFFERING)
    facts = {**finding.evidence, **(own if isinstance(own, Mapping) else {})}
    told = [shown_json(facts[name]) for name in ("old", "new") if facts.get(name) is not None]
    return " → ".join(text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}…" for text in told)
