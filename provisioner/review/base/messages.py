"""The sentence of a finding, made of its variant, its values and its notes, and what it says wherever it holds. Pure.

The templates stand in the files of the rules (`review.rules.messages`). Two findings of which `said_anywhere` is equal
differ in nothing but their object, its version and its field; no text is compared for that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from typing import Any

from provisioner.review.base.claims import ANY
from provisioner.review.rules import messages_of, rule_ids
from provisioner.review.rules.messages import LEAF, PHRASE, PLACE, SUBJECT, VARIANT, WHERE, Placeholder, Template
from provisioner.schema.verdicts import ITEMS, VALUES, shown
from provisioner.values import Finding, Note, ObjectRef, display_name

Path = tuple[str | int, ...]
PLACES = "all_places"  # in a finding's evidence
COUNTED = "fieldCounts"  # in a finding's evidence: how many of its places change in which way, as its own words say
DIFFERING = "evidence"  # in a place: what is not the same at all of them
# Rules of what no rule judges, and in their evidence the fields, as patterns.
UNJUDGED, UNCLAIMED = "UNJUDGED", "UNCLAIMED"
FIELDS = "fields"


@dataclass(frozen=True, slots=True, order=True)
class FieldPlace:
    """A field of an object; `version` names one of a CRD's versions where the field is one of its schema.

    `of` is the object as messages call it. Paths are those of findings: ("spec", "things", "[]", "name").
    """

    of: str
    path: Path = ()
    version: str = ""

    def as_evidence(self) -> dict[str, object]:
        return {"object": self.of, "path": list(self.path), "version": self.version}


def places_of(finding: Finding) -> list[FieldPlace]:
    """All places of a finding, its own alone where nothing else was said with it."""
    listed = finding.evidence.get(PLACES)
    if listed:
        return [FieldPlace(str(place["object"]), tuple(place["path"]), str(place["version"])) for place in listed]
    return [FieldPlace(display_name(finding.ref) if finding.ref else "", finding.path, version_of(finding))]


def listed_places(finding: Finding) -> list[dict[str, Any]]:
    """The places of a finding as its evidence lists them, with what was said of each alone."""
    listed = finding.evidence.get(PLACES)
    return [dict(place) for place in listed] if listed else [place.as_evidence() for place in places_of(finding)]


def unjudged_fields(rule: str, evidence: Mapping[str, Any]) -> Iterator[str]:
    """The fields that a finding, or its record, says no rule judges, once for each object; ANY where it names none."""
    if rule not in (UNJUDGED, UNCLAIMED):
        return
    everywhere = evidence.get(FIELDS) or [ANY]
    for place in evidence.get(PLACES) or [{}]:
        yield from (place.get(DIFFERING) or {}).get(FIELDS) or everywhere


def version_of(finding: Finding) -> str:
    version = finding.evidence.get("version")
    return version if isinstance(version, str) else ""


def by_field(places: Iterable[FieldPlace]) -> Iterator[tuple[str, Path, list[str]]]:
    """The places in order: each object's fields, each with its versions."""
    for (name, path), group in groupby(
        sorted(places, key=lambda place: (place.of, tuple(str(part) for part in place.path), place.version)),
        key=lambda place: (place.of, place.path),
    ):
        yield name, path, [place.version for place in group if place.version]


def path_text(path: Iterable[str | int]) -> str:
    """A path as people write it: spec.containers[0].image, or of a schema spec.containers[].image and spec.labels{}."""
    words = ""
    for part in path:
        if isinstance(part, int):
            words += f"[{part}]"
        else:
            words += f".{part}" if words and part not in (ITEMS, VALUES) else str(part)
    return words


EACH, FIELD = "each of these", "…"
# The notes of this file say where else a finding holds.
FOLDED = "shared/folded"
# A variant with this ending says the same in fewer values, where several places are told together.
_SHORT = ".short"
_VARIANT = f"_{VARIANT}"
_OF_PLACE = frozenset({SUBJECT, WHERE, PLACE, LEAF})


def with_message(finding: Finding) -> Finding:
    """`finding` with the sentence that its rule's file has for its variant, and its notes."""
    return replace(finding, message=message_of(finding)) if finding.variant else finding


def without_place(finding: Finding) -> Finding:
    """`finding` with its sentence for a list that says the object above."""
    return replace(finding, message=message_of(finding, **{PLACE: None})) if finding.variant else finding


def message_of(finding: Finding, **instead: Any) -> str:
    """The sentence with the values `instead` of the finding's own; a value that it has not is none."""
    return first_message(finding, {**_known(finding), **instead})


def first_message(finding: Finding, values: Mapping[str, Any]) -> str:
    """The sentence with these values. Raises LookupError where the check gives not all that it shows."""
    params = {**_place_values(finding), **values}
    return f"{messages_of(finding.rule).render(finding.variant, params)}{_added(finding, params)}"


def _known(finding: Finding) -> dict[str, Any]:
    return {**dict.fromkeys(shown_names(finding) - _OF_PLACE), **finding.evidence}


def _place_values(finding: Finding) -> dict[str, Any]:
    path = finding.path
    return {SUBJECT: finding.ref, WHERE: shown(path), LEAF: path[-1] if path else "", PLACE: _place_words(finding)}


def _added(finding: Finding, params: Mapping[str, Any]) -> str:
    notes = (messages_of(note.file).render(note.name, {**params, **note.params}) for note in finding.notes)
    return "".join(notes)


def _place_words(finding: Finding) -> str | None:
    """The object with its versions, and the field of a schema where the sentence does not name it elsewhere."""
    if finding.ref is None:
        return None
    of, field = display_name(finding.ref), _unnamed_field(finding)
    here = [place for place in places_of(finding) if (place.of, place.path) == (of, finding.path)]
    versions = ", ".join(dict.fromkeys(place.version for place in here if place.version))
    return f"{of} {versions}".rstrip() + (f", {field}" if field else "")


def _unnamed_field(finding: Finding) -> str | None:
    """The field of a schema where nothing of the sentence names it but its place."""
    named = {WHERE, LEAF} if len(finding.path) == 1 else {WHERE}
    is_unnamed = finding.rule.startswith("SCH-") and finding.path and not shown_names(finding) & named
    return shown(finding.path) if is_unnamed else None


def names_field(finding: Finding) -> bool:
    """Whether the sentence names the field that the finding is at."""
    names = shown_names(finding) if finding.variant else _OF_PLACE
    return WHERE in names or (PLACE in names and finding.rule.startswith("SCH-"))


def is_as_written(finding: Finding) -> bool:
    """Whether the files of the rules give the sentence that a finding has, or kept for who may see what it is of."""
    try:
        words = message_of(finding) if finding.variant else ""
        kept = finding.server_words.startswith(words) if finding.is_withheld else finding.message == words
        return bool(words) and kept
    except (AttributeError, LookupError, TypeError, ValueError):
        return False


def said_anywhere(finding: Finding, *, is_short: bool = False) -> str | None:
    """What the finding says beside its place; None for one that is told by itself: it names no object, or is not made
    of a template. `is_short` leaves out what the short form of its sentence does not show."""
    if finding.ref is None or not finding.variant:
        return None
    name = _variant(finding, is_short=is_short)
    names = shown_names(finding, name)
    if not names & {SUBJECT, PLACE}:
        return None
    told = {key: "" if _is_subject(finding, key) else finding.evidence.get(key) for key in names - _OF_PLACE}
    return _as_text(name, told, _lasting(finding, is_short=is_short))


def said(finding: Finding) -> str:
    """What the finding says of its place: its variant with the values that the sentence shows, and its notes; of one
    that is not made of a template the sentence."""
    if not finding.variant:
        return finding.message
    told = {key: finding.evidence.get(key) for key in shown_names(finding) - _OF_PLACE}
    return _as_text(finding.variant, told, finding.notes)


def _as_text(variant: str, told: Mapping[str, Any], notes: Iterable[Note]) -> str:
    """As JSON; what a record of a report holds gives the same."""
    added = [[note.file, note.name, note.params] for note in notes]
    return json.dumps([variant, told, added], sort_keys=True, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return display_name(value) if isinstance(value, ObjectRef) else str(value)


def words_anywhere(finding: Finding, *, is_short: bool = False) -> str:
    """The sentence for all places of which `said_anywhere` is the same."""
    shown = replace(finding, variant=_variant(finding, is_short=is_short), notes=_lasting(finding, is_short=is_short))
    same = {key: EACH for key in finding.evidence if _is_subject(finding, key)}
    words = message_of(shown, **{**same, SUBJECT: EACH, WHERE: FIELD, LEAF: "it", PLACE: None})
    return f"{EACH.capitalize()}{words.removeprefix(EACH)}" if words.startswith(EACH) else words


def subject_and_words(finding: Finding) -> tuple[str, str]:
    """The object of a sentence that begins with it, and the rest of the sentence; else "" and all of it."""
    if not finding.variant or finding.server_words:
        return "", finding.message
    head = messages_of(finding.rule).templates[finding.variant].parts[0]
    if isinstance(head, Template) and PLACE in head.names and (place := _place_words(finding)):
        return place, message_of(finding, **{PLACE: None})
    if isinstance(head, Placeholder) and head.name == SUBJECT:
        name, words = _around_subject(finding)
        return name, words.lstrip()
    return "", finding.message


def words_below_object(finding: Finding) -> str:
    """The sentence for a list below the name of its object; it names the field."""
    if finding.variant and not finding.server_words and (field := _unnamed_field(finding)):
        return message_of(finding, **{PLACE: field})
    return subject_and_words(finding)[1]


def words_after_subject(finding: Finding) -> str:
    """What the sentence says behind its object, without the punctuation between them; of one that is withheld all."""
    is_told = finding.variant and not finding.server_words
    return _around_subject(finding)[1].lstrip(":,; ") if is_told else finding.message


def _around_subject(finding: Finding) -> tuple[str, str]:
    """The sentence up to its object, and the rest."""
    messages, params = messages_of(finding.rule), {**_place_values(finding), **_known(finding)}
    parts = messages.templates[finding.variant].parts
    at = next((at for at, part in enumerate(parts, 1) if isinstance(part, Placeholder) and part.name == SUBJECT), 0)
    told = [messages.show(part, params) for part in parts]
    return "".join(told[:at]), f"{''.join(told[at:])}{_added(finding, params)}"


def _variant(finding: Finding, *, is_short: bool) -> str:
    short = f"{finding.variant}{_SHORT}"
    return short if is_short and short in messages_of(finding.rule).templates else finding.variant


def _lasting(finding: Finding, *, is_short: bool) -> tuple[Note, ...]:
    """The notes but for those on where else it holds; in short without minor ones and the name of the field."""
    notes = tuple(note for note in finding.notes if note.file != FOLDED)
    if not is_short:
        return notes
    return tuple(
        replace(note, params={name: value for name, value in note.params.items() if name != LEAF})
        for note in notes
        if not note.is_minor
    )


def _is_subject(finding: Finding, key: str) -> bool:
    value = finding.evidence.get(key)
    return finding.ref is not None and (value == finding.ref or value == display_name(finding.ref))


def shown_names(finding: Finding, variant: str = "") -> frozenset[str]:
    """The values that the sentence of a finding shows, or that of another `variant`."""
    names = _names_in(finding.rule, variant or finding.variant)
    evidence = finding.evidence
    others = [name.removesuffix(_VARIANT) for name in names if name.endswith(_VARIANT) and name in evidence]
    return names.union(*(_names_in(evidence[name], evidence[f"{name}{_VARIANT}"]) for name in others))


@cache
def phrase_names(rule: str) -> frozenset[str]:
    """The values of a rule's findings that only name a phrase of its file."""
    templates = messages_of(rule).templates.values() if rule in rule_ids() else ()
    return frozenset(field.name for template in templates for field in template.fields if field.format == PHRASE)


@cache
def _names_in(rule: str, variant: str) -> frozenset[str]:
    return messages_of(rule).names(variant)
