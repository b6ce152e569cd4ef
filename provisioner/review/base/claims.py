"""Which fields a rule judges: what a check claims of an object, path by path, and who claims a given field. Pure.

A claim is a promise: however such a field changes (set, changed, removed), a rule speaks of it. In which direction a
change is harmless, and no rule speaks, the claim says with the reason. What nobody claims is reported as not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple

from provisioner.values import GroupKind

Path = tuple[str | int, ...]

_TEMPLATE = ("spec", "template")
# Kinds that make pods, and where they keep what the pods are made from: metadata and spec.
POD_PLACES: Mapping[GroupKind, tuple[str, ...]] = {
    GroupKind("", "Pod"): (),
    GroupKind("", "PodTemplate"): ("template",),
    GroupKind("", "ReplicationController"): _TEMPLATE,
    GroupKind("apps", "DaemonSet"): _TEMPLATE,
    GroupKind("apps", "Deployment"): _TEMPLATE,
    GroupKind("apps", "ReplicaSet"): _TEMPLATE,
    GroupKind("apps", "StatefulSet"): _TEMPLATE,
    GroupKind("batch", "Job"): _TEMPLATE,
    GroupKind("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
}
PODS = frozenset(POD_PLACES)
# Stands for whatever is there: a group, a kind of it, one key or item of a path.
ANY = "*"
# So many sets of claims are kept from one report to the next.
MAX_KNOWN = 64
EVERY_KIND = frozenset({GroupKind(ANY, ANY)})
_OF_PODS: Mapping[str, str] = {"{pod}": "spec", "{pod-meta}": "metadata"}
_PART = re.compile(r"\[([^\[\]]+)\]|([^.\[\]]+)")


@dataclass(frozen=True, slots=True)
class Claim:
    """Fields that a rule judges, whatever it then says of them.

    `rule` is the id of the rule. `kinds` are those whose objects it judges: PODS stands for all that make pods, a kind
    `*` for all kinds of its group, EVERY_KIND for all there are. `paths` are patterns such as
    `spec.ports.*.nodePort`: `*` is one key or item, a pattern holds for the field and all below it, and a key with dots
    stands in brackets, where `*` is any text (`metadata.annotations.[prometheus.io/*]`). Of kinds that make pods
    `{pod}` is the spec of the pods, `{pod-meta}` their metadata. With `is_of_hooks` it holds for objects that run as
    hooks and for no others; with `is_of_new` for objects that are created, because the rule says what is, not what
    changes. `harmless` says in which direction a change needs no finding, and why.
    """

    rule: str
    kinds: frozenset[GroupKind]
    paths: tuple[str, ...]
    is_of_hooks: bool = False
    is_of_new: bool = False
    harmless: str = ""

    def parts(self, path: str, kind: GroupKind) -> tuple[str, ...]:
        """One of its patterns as parts, as it is for objects of `kind`; none where it has no meaning there."""
        first, *rest = parts_of(path)
        if first not in _OF_PODS:
            return (first, *rest)
        place = POD_PLACES.get(kind)
        return (*place, _OF_PODS[first], *rest) if place is not None else ()


class Claims:
    """All that is claimed, to be asked of single fields. Where several claims hold, the first counts."""

    _known: ClassVar[dict[tuple[int, ...], Claims]] = {}

    def __init__(self, claims: Iterable[Claim]) -> None:
        self._claims = tuple(claims)
        self._named = frozenset(kind for claim in self._claims for kind in claim.kinds)
        inside = (claim for claim in self._claims if any(parts_of(path)[0] != "metadata" for path in claim.paths))
        self._inside = frozenset(kind for claim in inside for kind in claim.kinds)
        self._roots: dict[GroupKind, Place] = {}

    @classmethod
    def of(cls, claims: Iterable[Claim]) -> Claims:
        """These very claims as in the report before, with all that was worked out for them."""
        found = tuple(claims)
        key = tuple(map(id, found))  # of claims that are kept, so that no other can have their ids
        if key not in cls._known:
            if len(cls._known) >= MAX_KNOWN:
                cls._known.clear()
            cls._known[key] = cls(found)
        return cls._known[key]

    def root(self, kind: GroupKind) -> Place:
        """Where objects of `kind` begin."""
        if kind not in self._named and kind not in POD_PLACES:  # one place for all of these: there may be any
            kind = GroupKind(kind.group if GroupKind(kind.group, ANY) in self._named else ANY, ANY)
        if kind not in self._roots:
            asked = {kind, GroupKind(kind.group, ANY), *EVERY_KIND}
            patterns: list[_Pattern] = []
            for claim in self._claims:
                for path in claim.paths if asked & claim.kinds else ():
                    if parts := claim.parts(path, kind):
                        patterns.append(_Pattern(len(patterns), claim.rule, tuple(map(_compile_part, parts))))
            self._roots[kind] = Place(patterns)
        return self._roots[kind]

    def judge_of(self, kind: GroupKind, path: Path) -> str:
        """The rule that judges a field of objects of `kind`; "" where none does."""
        place = self.root(kind)
        for key in path:
            place = place.at(key)
        return place.rule

    def knows(self, kind: GroupKind) -> bool:
        """Whether any claim is of this kind by its name: a kind of which only what all objects have is judged is not
        known."""
        return kind in self._named or GroupKind(kind.group, ANY) in self._named

    def judges_inside(self, kind: GroupKind) -> bool:
        """Whether a claim is of more of this kind than its metadata."""
        return kind in self._inside or GroupKind(kind.group, ANY) in self._inside


class Place:
    """A place in the objects of a kind. `rule` is the first that claims it with all below it, "" where none does.

    What is below is worked out when it is first asked for, and kept: a field costs one look into a dict for each key
    of its path, however many claims there are. Keys that no claim names are not kept, since objects may hold any.
    """

    __slots__ = ("_below", "_claimed", "_has_globs", "_keys", "_met", "_open", "rule")

    def __init__(self, patterns: Sequence[_Pattern] = (), claimed: _Pattern | None = None) -> None:
        """`patterns` are what is left of those that hold down to here; `claimed` is the first that ended above."""
        ended = [pattern for pattern in patterns if not pattern.parts] + ([claimed] if claimed else [])
        self._claimed = first = min(ended, key=lambda pattern: pattern.turn, default=None)
        self._open = [pattern for pattern in patterns if pattern.parts and (first is None or pattern.turn < first.turn)]
        self._keys = frozenset(pattern.parts[0] for pattern in self._open)
        self._has_globs = not all(isinstance(part, str) for part in self._keys)
        self._below: dict[tuple[_Pattern, ...], Place] = {}
        self._met: dict[str | None, Place] = {}
        self.rule = first.rule if first else ""

    def at(self, key: str | int) -> Place:
        """What is at a key of a map, or at an item of a list: all items are one place."""
        if not self._open:
            return self
        # Items, and keys that no claim names, have in common what claims hold for each of them.
        name = None if isinstance(key, int) or (key not in self._keys and not self._has_globs) else key
        if name in self._met:
            return self._met[name]
        held = tuple(pattern.below for pattern in self._open if _fits(pattern.parts[0], name))
        if held not in self._below:
            self._below[held] = Place(held, self._claimed)
        if name is None or name in self._keys:
            self._met[name] = self._below[held]
        return self._below[held]


class _Pattern(NamedTuple):
    turn: int
    rule: str
    parts: tuple[re.Pattern[str] | str, ...]

    @property
    def below(self) -> _Pattern:
        return self._replace(parts=self.parts[1:])


def parts_of(path: str) -> tuple[str, ...]:
    """A pattern as its parts; raises ValueError where it is none."""
    found = [match.group(1) or match.group(2) for match in _PART.finditer(path)]
    if not found or _PART.sub("", path).strip("."):
        raise ValueError(f"{path!r} is no path; expected keys with dots between them, and keys with dots in [..]")
    return tuple(found)


@lru_cache(maxsize=4096)
def _compile_part(part: str) -> re.Pattern[str] | str:
    if part == ANY or ANY not in part:
        return part
    return re.compile(".*".join(map(re.escape, part.split(ANY))), re.DOTALL)


def _fits(part: re.Pattern[str] | str, key: str | None) -> bool:
    if isinstance(part, str):
        return part in (ANY, key)
    return key is not None and part.fullmatch(key) is not None
