"""What changes in containers, for a terminal: each step of an image said once, then the settings by container."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from provisioner.review.base.facts import said
from provisioner.review.base.marks import Mark
from provisioner.review.base.places import places_of
from provisioner.review.base.text import visible
from provisioner.review.workloads.container_changes import ContainerChange, image_words
from provisioner.sentences import and_more, number
from provisioner.values import Finding, Severity

# That containers run or are told something else: what that is stands here.
_OF_VALUES, _CHANGED = "POD-28", "changed"
# That pods may run on nodes of the control plane: the title of the rule says it.
_OF_PODS = "POD-35"
WIDTH = 80
MAX_STEPS, MAX_OBJECTS, MAX_CONTAINERS, MAX_SETTINGS = 8, 4, 4, 6  # before a number stands for the rest
MAX_TEXT = 300
_DIGEST = re.compile(r"(@sha256:[0-9a-f]{12})[0-9a-f]{52}")
_STEP = {Mark.NEW: "new", Mark.GONE: "gone", Mark.CHANGED: ""}


def told_with_containers(findings: Iterable[Finding], changes: Sequence[ContainerChange]) -> list[Finding]:
    """The new findings that the section on containers tells by the titles of their rules: it gives the values of some,
    and others hold for every object that it names."""
    new = [one for one in findings if one.is_new and one.severity is Severity.NOTABLE and not one.server_words]
    valued = {said(one.ref) for one in changes if one.lines}
    # Scripts and volumes that no container mounts stand in no line.
    of_values = [one for one in new if one.rule == _OF_VALUES and one.variant == _CHANGED]
    with_values = [one for one in of_values if "after" not in one.evidence and _of(one) <= valued]
    of_pods = [one for one in new if one.rule == _OF_PODS]
    is_of_all = set[str]().union(*map(_of, of_pods)) == {said(one.ref) for one in changes}
    return [*with_values, *(of_pods if is_of_all else ())]


def _of(finding: Finding) -> set[str]:
    return {place.of for place in places_of(finding)}


def containers_as_text(changes: list[ContainerChange], *, with_all: bool, heads: Iterable[str] = ()) -> Iterator[str]:
    """A section, each step of an image before the settings; of many the first unless `with_all`. Nothing where none
    changes. `heads` are the lines of findings that are told with it."""
    if not changes:
        return
    yield from (f"CONTAINERS  {number(len(changes), 'container')} changed", *heads)
    steps = [(words if with_all else _DIGEST.sub(r"\1…", words), group) for words, group in _by_image(changes)]
    for words, group in steps if with_all else steps[:MAX_STEPS]:
        yield from _wrapped(f"  {words}", "      ")
        yield from _objects(group, with_all=with_all)
    yield from _more(0 if with_all else len(steps) - MAX_STEPS, "images")
    set_anew = [one for one in changes if one.lines]
    for one in set_anew if with_all else set_anew[:MAX_CONTAINERS]:
        yield from _settings(one, with_all=with_all)
    yield from _more(0 if with_all else len(set_anew) - MAX_CONTAINERS, "containers with other settings")


def _more(count: int, noun: str) -> Iterator[str]:
    if count > 0:
        yield f"  {and_more(count, noun)}: --all shows them"


def _objects(group: Iterable[ContainerChange], *, with_all: bool) -> Iterator[str]:
    """The objects that run an image, and in which containers."""
    found = list(_by_object(group))
    for ref, names in found if with_all else found[:MAX_OBJECTS]:
        yield from _wrapped(f"      {ref}: {', '.join(names)}", "        ")
    more = "" if with_all else and_more(len(found) - MAX_OBJECTS, "objects")
    if more:
        yield f"      {more}"


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
