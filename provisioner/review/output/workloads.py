"""What will run, in words: each image once, how workloads run, and for a terminal the settings by container."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from provisioner.escaping import visible
from provisioner.review.base.messages import places_of
from provisioner.review.base.record import Mark
from provisioner.review.output.lines import wrapped
from provisioner.review.workloads.workload_changes import WorkloadChange, image_words
from provisioner.sentences import and_more, number, some
from provisioner.values import Finding, Severity, display_name

# That containers run or are told something else: what that is stands here.
_OF_VALUES, _CHANGED = "POD-28", "changed"
# That pods may run on nodes of the control plane: the title of the rule says it.
_OF_PODS = "POD-35"
MAX_IMAGES, MAX_RUNS, MAX_CONTAINERS, MAX_SETTINGS = 8, 8, 4, 6  # before a number stands for the rest
MAX_ACCESS = 6
MAX_TEXT = 300
_DIGEST = re.compile(r"(@sha256:[0-9a-f]{12})[0-9a-f]{52}")
_DIGEST_START = r"\1…"
_MARKS = {Mark.NEW: "new", Mark.GONE: "gone", Mark.CHANGED: ""}


def told_with_workloads(findings: Iterable[Finding], workloads: Iterable[WorkloadChange]) -> list[Finding]:
    """The new findings that the section on workloads tells by the titles of their rules: it gives the values of some,
    and others hold for every object that it names."""
    new = [
        finding
        for finding in findings
        if finding.is_new and finding.severity is Severity.NOTABLE and not finding.server_words
    ]
    changes = [change for workload in workloads if workload.mark is not Mark.GONE for change in workload.containers]
    valued = {display_name(change.ref) for change in changes if change.lines}
    # Scripts and volumes that no container mounts stand in no line.
    of_values = [finding for finding in new if finding.rule == _OF_VALUES and finding.variant == _CHANGED]
    with_values = [value for value in of_values if "after" not in value.evidence and _of(value) <= valued]
    of_pods = [finding for finding in new if finding.rule == _OF_PODS]
    is_of_all = set[str]().union(*map(_of, of_pods)) == {display_name(change.ref) for change in changes}
    return [*with_values, *(of_pods if is_of_all else ())]


def _of(finding: Finding) -> set[str]:
    return {place.of for place in places_of(finding)}


@dataclass(frozen=True, slots=True)
class ImageChange:
    """An image and what takes its place, "" where there is none; `objects` name the containers in each workload."""

    mark: Mark
    before: str
    after: str
    objects: Mapping[str, list[str]]


def image_changes(workloads: Iterable[WorkloadChange]) -> list[ImageChange]:
    """Each image that comes, goes or takes the place of another once, that of most workloads first."""
    found: dict[tuple[Mark, str, str], dict[str, list[str]]] = {}
    for one in (change for workload in workloads for change in workload.containers):
        if one.before != one.after:
            objects = found.setdefault((one.mark, one.before, one.after), {})
            objects.setdefault(display_name(one.ref), []).append(one.title)
    made = [ImageChange(*key, objects) for key, objects in found.items()]
    return sorted(made, key=lambda image: -len(image.objects))


def runs_of(workloads: Iterable[WorkloadChange]) -> list[tuple[WorkloadChange, list[str]]]:
    """What comes, goes or changes how it runs, with `run_words`; what gains or has access to its node first."""
    told = [(workload, list(run_words(workload))) for workload in workloads]
    shown = [(one, words) for one, words in told if words or one.mark is not Mark.CHANGED]
    return sorted(shown, key=lambda it: (set(it[0].after.host) <= set(it[0].before.host), not it[0].after.host))


def run_words(one: WorkloadChange) -> Iterator[str]:
    """How many pods, with which access to the node, as which account: all where it is new, else what changes, and the
    access that it keeps; nothing of what goes."""
    old, new = one.before, one.after
    is_new = one.mark is Mark.NEW
    if one.mark is Mark.GONE:
        return
    if one.runs_again:
        yield "runs again"
    if old.scale != new.scale:
        yield new.scale if is_new else f"{old.scale or 'one'} → {new.scale or 'one'}"
    for words, found in (
        ("" if is_new else "newly ", [access for access in new.host if access not in old.host]),
        ("no longer ", [access for access in old.host if access not in new.host]),
        ("as before ", [access for access in new.host if access in old.host]),
    ):
        if found:
            yield f"{words}{some(found, MAX_ACCESS)}"
    if old.account != new.account:
        yield f"account {new.account}" if is_new else f"account {old.account} → {new.account}"


def workloads_in_words(workloads: Sequence[WorkloadChange]) -> str:
    """`7 new, 1 changed`."""
    counted = Counter(workload.mark for workload in workloads)
    return ", ".join(f"{counted[mark]:,} {mark}" for mark in Mark if counted[mark])


def workloads_as_text(
    workloads: Sequence[WorkloadChange], *, with_all: bool, heads: Iterable[str] = ()
) -> Iterator[str]:
    """A section: each image once, then how workloads run, then the settings of containers; of many the first unless
    `with_all`. Nothing where none changes. `heads` are the lines of findings that are told with it."""
    if not workloads:
        return
    yield from (f"WORKLOADS  {workloads_in_words(workloads)}", *heads)
    images, runs = image_changes(workloads), runs_of(workloads)
    # What holds for all of them is said once, in the heading.
    marks = {mark: "" if {workload.mark for workload in workloads} == {mark} else word for mark, word in _MARKS.items()}
    for image in images if with_all else images[:MAX_IMAGES]:
        step = " ".join(filter(None, (marks[image.mark], image_words(image.before, image.after))))
        if not with_all:
            where = next(iter(image.objects)) if len(image.objects) == 1 else number(len(image.objects), "workload")
            step = f"{_DIGEST.sub(_DIGEST_START, step)}, in {where}"
        yield from wrapped(visible(f"  {step}"), "", "      ")
        for name, containers in image.objects.items() if with_all else ():
            yield from wrapped(visible(f"      {name}: {', '.join(containers)}"), "", "        ")
    yield from _more(0 if with_all else len(images) - MAX_IMAGES, "images")
    for workload, words in runs if with_all else runs[:MAX_RUNS]:
        name = " ".join(filter(None, (marks[workload.mark], display_name(workload.ref))))
        yield from wrapped(visible(f"  {': '.join(filter(None, (name, ', '.join(words))))}"), "", "      ")
    yield from _more(0 if with_all else len(runs) - MAX_RUNS, "workloads")
    set_anew = [container for workload in workloads for container in workload.containers if container.lines]
    for container in set_anew if with_all else set_anew[:MAX_CONTAINERS]:
        yield from wrapped(visible(f"  {display_name(container.ref)}, {container.title}"), "", "      ")
        for line in container.lines if with_all else container.lines[:MAX_SETTINGS]:
            sign = "+" if line.mark is Mark.NEW else "-"
            text = line.text if len(line.text) <= MAX_TEXT else f"{line.text[:MAX_TEXT]}…"
            yield from wrapped(visible(f"      {sign} {line.what} {text}"), "", "          ")
        yield from _more(0 if with_all else len(container.lines) - MAX_SETTINGS, indent="      ")
    yield from _more(0 if with_all else len(set_anew) - MAX_CONTAINERS, "containers with other settings")


def _more(count: int, noun: str = "", indent: str = "  ") -> Iterator[str]:
    if count > 0:
        yield f"{indent}{and_more(count, noun)}: --all shows them"
