"""What a chart made up, such as passwords and certificates that the deployment keeps, and where it went."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from provisioner.builtin.changes import dotted
from provisioner.escaping import visible
from provisioner.review.base.facts import Check, Facts, ReviewRule
from provisioner.values import Content, Finding, MadePlace, MadeSort, MadeUp, MadeValue, ObjectRef, Section, Severity

_MADE = ReviewRule("MADE-01", Section.CONTENT, Severity.SAFE)
_READABLE = ReviewRule("MADE-02", Section.CONTENT, Severity.DANGEROUS)
_READABLE_ALONE = ReviewRule("MADE-02", Section.CONTENT, Severity.NOTABLE)
_TIME = ReviewRule("MADE-02", Section.CONTENT, Severity.SAFE)
_CHECKSUM = ReviewRule("MADE-03", Section.CONTENT, Severity.NOTABLE)
_BESIDE = ReviewRule("MADE-04", Section.CONTENT, Severity.UNKNOWN)
_NUMBERED = ReviewRule("MADE-05", Section.CONTENT, Severity.NOTABLE)
_EXCHANGED = ReviewRule("MADE-06", Section.CONTENT, Severity.DANGEROUS)
# Of an entry of a list that no name tells from others.
_NUMBER = re.compile(r"/[0-9]+(?=/|\Z)")
# What nothing signs in with, and nothing is computed from.
_REMARK = re.compile(r"/metadata/(?:annotations|labels)/")
# Who is asked for a certificate may know it: it is the public half.
_PUBLIC = "/caBundle"


def compare_made_up(facts: Facts) -> Iterator[Finding]:
    """Find what the chart made up, and where it went: never its value."""
    made_up = facts.content.made_up
    before = facts.previous.made_up if facts.previous else MadeUp()
    if made_up.values:
        places = [place for made in made_up.values for place in _places(facts.content, made)]
        objects = list(dict.fromkeys(_name(place) for place in places))
        new = sum(made.is_new for made in made_up.values)
        params: dict[str, Any] = {"count": len(made_up.values), "objects": objects, "new": new or None}
        found = _MADE.finding("made-up", None, key=[made.place.key for made in made_up.values], **params)
        yield replace(found, is_new=facts.previous is None or bool(new))
    yield from _judge_exchanged(facts.content, before)
    yield from _judge_readers(facts.content, before)
    known = {checksum.place for checksum in before.checksums}
    for checksum in made_up.checksums:
        if not checksum.is_known:
            found = _CHECKSUM.finding(
                "computed-here",
                _ref(facts.content, checksum.place),
                key=checksum.place.key,
                object=_name(checksum.place),
                path=_field(checksum.place),
            )
            yield replace(found, is_new=checksum.place not in known)
    yield from _judge_new_ones(facts.content)
    yield from _judge_numbered(facts.content, before)


def _judge_exchanged(content: Content, before: MadeUp) -> Iterator[Finding]:
    """Find values that others take the place of: new ones, where somebody asked for that, or those of an earlier
    revision."""
    running = {place: made.generation for made in before.values for place in made.places}
    earlier = [
        made
        for made in content.made_up.values
        if made.generation and any(made.generation < running.get(place, 0) for place in made.places)
    ]
    rotated = [made for made in content.made_up.values if made.is_rotated]
    for variant, exchanged in (("rotated", rotated), ("earlier", earlier)):
        if exchanged:
            places = [_places(content, made)[0] for made in exchanged]
            named = [f"{_field(place)} of {_name(place)}" for place in places]
            key = [made.place.key for made in exchanged]
            yield _EXCHANGED.finding(variant, None, key=key, count=len(named), values=named)


def _judge_readers(content: Content, before: MadeUp) -> Iterator[Finding]:
    """Find values in objects that are no Secrets: whoever may read these reads them."""
    known = {place for made in before.values for place in (made.place, *made.copies)}
    for made in content.made_up.values:
        places = _places(content, made)
        secret = next((place for place in places if place.kind == "Secret"), None)
        for place in places:
            if place.kind == "Secret" or made.sort is MadeSort.NAME or place.path.endswith(_PUBLIC):
                continue
            rule, variant = (_READABLE, "copied") if secret else (_READABLE_ALONE, "alone")
            if made.sort is MadeSort.TIME:
                rule, variant = _TIME, "time"
            found = rule.finding(
                variant,
                _ref(content, place),
                key=place.key,
                path=_field(place),
                object=_name(place),
                secret=_name(secret) if secret else None,
            )
            yield replace(found, is_new=place not in known)


def _judge_new_ones(content: Content) -> Iterator[Finding]:
    """Find values that were made now beside kept ones of one file: a hash or a certificate of what was made anew.

    A time, or what annotations and labels alone have, is computed from no kept one, and nothing would fail by it.
    """
    files = {made.place: _file(content, _places(content, made)[0]) for made in content.made_up.values}
    kept = {files[made.place] for made in content.made_up.values if not (made.is_new or made.is_rotated)}
    for made in content.made_up.values:
        is_harmless = made.sort in (MadeSort.NAME, MadeSort.TIME) or all(map(_is_remark, made.places))
        if (made.is_new or made.is_rotated) and not is_harmless and files[made.place] in kept - {""}:
            yield _BESIDE.finding(
                "beside-kept",
                _ref(content, made.place),
                key=made.place.key,
                path=_field(made.place),
                object=_name(made.place),
                file=visible(files[made.place]),
            )


def _judge_numbered(content: Content, before: MadeUp) -> Iterator[Finding]:
    """Find values that are known by the number of an entry in a list alone: one more entry before it moves them."""
    known = {place for made in before.values for place in made.places}
    for made in content.made_up.values:
        if made.sort is not MadeSort.TIME and all(_NUMBER.search(place.path) for place in made.places):
            found = _NUMBERED.finding(
                "by-number",
                _ref(content, made.place),
                key=made.place.key,
                path=_field(made.place),
                object=_name(made.place),
            )
            yield replace(found, is_new=made.place not in known)


def _is_remark(place: MadePlace) -> bool:
    return bool(_REMARK.search(place.path))


def _places(content: Content, made: MadeValue) -> list[MadePlace]:
    """Where it is: patches may have given objects other names."""
    places = [made.place, *made.copies]
    there = [(place.kind, place.path, place.number) for place in places if _ref(content, place)]
    return [place for place in places if _ref(content, place) or (place.kind, place.path, place.number) not in there]


def _name(place: MadePlace) -> str:
    """The object that a place is in; one whose name is made up by its file."""
    if not place.name:
        return visible(f"{place.kind} of {place.path.partition('#')[0]}")
    return visible(f"{place.kind} {place.namespace}/{place.name}" if place.namespace else f"{place.kind} {place.name}")


def _field(place: MadePlace) -> str:
    """Where in the object, as people write it, such as `data.password`."""
    inside = place.path if place.name else place.path.partition("#")[2]
    steps = (step.replace("~1", "/").replace("~0", "~") for step in inside.split("/")[1:])
    # An entry that is known by its name is written like one by its number.
    return visible(dotted(int(step) if step.isdigit() else step for step in steps).replace(".[name=", "[name="))


def _ref(content: Content, place: MadePlace) -> ObjectRef | None:
    """The object that a place is in; the scope of a kind that Kubernetes does not know may be another one."""
    named = [it.ref for it in content.everything if (it.ref.kind, it.ref.name) == (place.kind, place.name)]
    return next((ref for ref in named if ref.namespace in (place.namespace, "")), None)


def _file(content: Content, place: MadePlace) -> str:
    ref = _ref(content, place)
    return next((it.file for it in content.everything if it.ref == ref), "")


MADE_UP_CHECK = Check("what the chart made up", changes=compare_made_up)
