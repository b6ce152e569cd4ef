"""What changes in containers, for a terminal: each step of an image said once, then the settings by container."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from provisioner.review.base.facts import said
from provisioner.review.base.marks import Mark
from provisioner.review.base.places import places_of
from provisioner.review.base.text import visible
from provisioner.review.workloads.container_changes import ContainerChange, image_words
from provisioner.sentences import and_more, number
from provisioner.values import Finding

# That containers run or are told something else: what that is stands here.
TOLD_HERE = "POD-28"
WIDTH = 80
MAX_SETTINGS = 6
MAX_TEXT = 300
_STEP = {Mark.NEW: "new", Mark.GONE: "gone", Mark.CHANGED: ""}


def told_with_containers(findings: Iterable[Finding], changes: Iterable[ContainerChange]) -> list[Finding]:
    """The new findings that say no more than the section on containers shows: it gives their values."""
    shown = {said(one.ref) for one in changes if one.lines}
    of_containers = (one for one in findings if one.rule == TOLD_HERE and one.is_new and not one.server_words)
    whole = (one for one in of_containers if "after" not in one.evidence)  # volumes that no container mounts
    return [one for one in whole if {place.of for place in places_of(one)} <= shown]


def containers_as_text(changes: list[ContainerChange], *, with_all: bool, heads: Iterable[str] = ()) -> Iterator[str]:
    """A section, with at most MAX_SETTINGS values of a container unless `with_all`; nothing where none changes.

    `heads` are the lines of findings that are told with it.
    """
    if not changes:
        return
    yield from ("", f"CONTAINERS  {number(len(changes), 'container')} changed", *heads)
    for words, group in _by_image(changes):
        yield from _wrapped(f"  {words}", "      ")
        for ref, names in _by_object(group):
            yield from _wrapped(f"      {ref}: {', '.join(names)}", "        ")
    for one in changes:
        if one.lines:
            yield from _settings(one, with_all=with_all)


def _by_image(changes: Iterable[ContainerChange]) -> Iterator[tuple[str, list[ContainerChange]]]:
    found: dict[str, list[ContainerChange]] = {}
    for one in changes:
        if one.before != one.after or one.mark is not Mark.CHANGED:
            step = " ".join(filter(None, (_STEP[one.mark], image_words(one.before, one.after))))
            found.setdefault(step, []).append(one)
    yield from found.items()


def _by_object(changes: Iterable[ContainerChange]) -> Iterator[tuple[str, list[str]]]:
    found: dict[str, list[str]] = {}
    for one in changes:
        found.setdefault(said(one.ref), []).append(one.title)
    yield from found.items()


def _settings(change: ContainerChange, *, with_all: bool) -> Iterator[str]:
    yield from _wrapped(f"  {said(change.ref)}, {change.title}", "      ")
    shown = change.lines if with_all else change.lines[:MAX_SETTINGS]
    for one in shown:
        sign = "+" if one.mark is Mark.NEW else "-"
        text = one.text if len(one.text) <= MAX_TEXT else f"{one.text[:MAX_TEXT]}…"
        yield from _wrapped(f"      {sign} {one.what} {text}", "          ")
    more = and_more(len(change.lines) - len(shown))
    if more:
        yield f"      {more}: --all shows them"


def _wrapped(text: str, further: str) -> list[str]:
    return textwrap.wrap(
        visible(text), WIDTH, subsequent_indent=further, break_long_words=False, break_on_hyphens=False
    )
