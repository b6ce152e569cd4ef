"""The objects of a plan as a tree: by phase, with a sign for what happens to each. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from approvals.access.sight import reference
from approvals.web.requests.changes.wishes import Filter
from provisioner.phases import PHASES, phase_name
from provisioner.review.base.facts import said
from provisioner.values import Severity

SIGNS = {
    "create": "+",
    "delete": "-",
    "update": "~",
    "replace": "⇄",
    "rerun": "↻",
    "adopt": "⇥",
    "orphan": "⇤",
    "skip": "○",
    "none": "=",
    "hidden": "?",
}
WORDS = {"none": "unchanged", "orphan": "kept"}
# As long as Kubernetes lets a group, a kind, a namespace and a name be.
MAX_NAME = 640
# The rule that says of each hook when it runs.
_HOOK = "HOOK-01"
_WORST = {str(severity): place for place, severity in enumerate(Severity)}
Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Planned:
    """One object of a plan as its viewer may know it.

    `worst` is the severity of its worst finding, "" without one; `hook` when it runs as a hook, "" where it is none.
    """

    position: int
    record: Record
    name: str
    is_viewed: bool
    worst: str
    hook: str = ""

    @property
    def action(self) -> str:
        return str(self.record["action"])

    @property
    def sign(self) -> str:
        return SIGNS.get(self.action, "?")

    @property
    def kind(self) -> str:
        return str(self.record["ref"]["kind"])

    @property
    def phase(self) -> str:
        return phase_name(self.record["ref"]["group"], self.kind)


@dataclass(frozen=True, slots=True)
class PhaseBranch:
    """The objects of one kind in one phase."""

    phase: str
    kind: str
    objects: list[Planned]


@dataclass(frozen=True, slots=True)
class Counts:
    """Of all objects that change: how many there are, how many the viewer has ticked, and how many of each kind."""

    total: int
    viewed: int
    actions: list[tuple[str, str, int]]
    kinds: list[tuple[str, int]]


def action_words(action: str) -> str:
    """What people read for an action: its own name, where that says enough."""
    return WORDS.get(action, action)


def object_name(ref: Mapping[str, str]) -> str:
    """What is the same object in two reports of a request, whatever version it is written in."""
    return "/".join((ref["group"], ref["kind"], ref["namespace"], ref["name"]))[:MAX_NAME]


class Hooks:
    """When the objects run that do so as hooks, by what a report says of them."""

    def __init__(self, findings: Iterable[Record]) -> None:
        told = [one for one in findings if one["rule"] == _HOOK and one["ref"]]
        # Of many that are alike it is said once.
        self._moments = {
            name: one["evidence"].get("moments") or ()
            for one in told
            for name in one["evidence"].get("objects") or [said(reference(one["ref"]))]
        }

    def words_of(self, record: Record) -> str:
        """`before`, or `before and after`; "" for an object that is no hook, or that the viewer may not see."""
        if record["action"] == "hidden":
            return ""
        return " and ".join(self._moments.get(said(reference(record["ref"])), ())).replace("-", " ")


def planned(
    records: Iterable[tuple[int, Record]], findings: Sequence[Record], viewed: Collection[str]
) -> list[Planned]:
    """The objects that something happens to, phase by phase, in the order of the plan."""
    hooks = Hooks(findings)
    worst: dict[str, str] = {}
    for one in findings:
        if one["ref"]:
            name = object_name(one["ref"])
            worst[name] = min(worst.get(name, one["severity"]), one["severity"], key=lambda it: _WORST.get(it, 0))
    found = []
    for position, record in records:
        name = object_name(record["ref"])
        if record["action"] != "none" or record["problem"]:
            found.append(Planned(position, record, name, name in viewed, worst.get(name, ""), hooks.words_of(record)))
    return sorted(found, key=lambda one: PHASES.index(one.phase))


def taken(objects: Iterable[Planned], wish: Filter) -> list[Planned]:
    """The objects that a filter takes."""
    searched = wish.search.casefold()
    return [
        one
        for one in objects
        if (not wish.kind or one.kind == wish.kind)
        and (not wish.action or one.action == wish.action)
        and not (wish.is_unviewed and one.is_viewed)
        and searched in f"{one.kind} {one.record['ref']['namespace']}/{one.record['ref']['name']}".casefold()
    ]


def branches(objects: Sequence[Planned]) -> list[PhaseBranch]:
    grouped = groupby(objects, key=lambda one: (one.phase, one.kind))
    return [PhaseBranch(phase, kind, list(group)) for (phase, kind), group in grouped]


def counts(objects: Sequence[Planned]) -> Counts:
    actions, kinds = Counter(one.action for one in objects), Counter(one.kind for one in objects)
    return Counts(
        len(objects),
        sum(1 for one in objects if one.is_viewed),
        [(name, sign, actions[name]) for name, sign in SIGNS.items() if actions[name]],
        sorted(kinds.items()),
    )
