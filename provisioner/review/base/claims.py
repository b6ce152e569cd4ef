"""Which fields a rule judges: what a check claims of an object, path by path, and who claims a given field. Pure.

A claim is a promise: however such a field changes (set, changed, removed), the rule says what there is to say, and
where it says nothing, the change is harmless for that rule's reason. What nobody claims is reported as not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

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
    `{pod}` is the spec of the pods, `{pod-meta}` their metadata.
    """

    rule: str
    kinds: frozenset[GroupKind]
    paths: tuple[str, ...]

    def parts(self, path: str, kind: GroupKind) -> tuple[str, ...]:
        """One of its patterns as parts, as it is for objects of `kind`; none where it has no meaning there."""
        first, *rest = parts_of(path)
        if first not in _OF_PODS:
            return (first, *rest)
        place = POD_PLACES.get(kind)
        return (*place, _OF_PODS[first], *rest) if place is not None else ()


@dataclass(slots=True)
class Claims:
    """All that is claimed, to be asked of single fields."""

    claims: tuple[Claim, ...]
    _by_kind: dict[GroupKind, tuple[_Pattern, ...]] = field(default_factory=dict)
    _known: dict[tuple[GroupKind, Path], str] = field(default_factory=dict)

    def judge_of(self, kind: GroupKind, path: Path) -> str:
        """The rule that judges a field of objects of `kind`, the first that claims it; "" where none does."""
        key = (kind, tuple(0 if isinstance(part, int) else part for part in path))
        if key not in self._known:
            self._known[key] = next((one.rule for one in self._of(kind) if one.holds(path)), "")
        return self._known[key]

    def knows(self, kind: GroupKind) -> bool:
        """Whether any claim is of this kind by its name: a kind of which only what all objects have is judged is not
        known."""
        return any(kind in one.kinds or GroupKind(kind.group, ANY) in one.kinds for one in self.claims)

    def _of(self, kind: GroupKind) -> tuple[_Pattern, ...]:
        if kind not in self._by_kind:
            self._by_kind[kind] = tuple(_patterns(self.claims, kind))
        return self._by_kind[kind]


@dataclass(frozen=True, slots=True)
class _Pattern:
    rule: str
    parts: tuple[re.Pattern[str] | str, ...]

    def holds(self, path: Path) -> bool:
        return len(path) >= len(self.parts) and all(map(_fits, self.parts, path))


def parts_of(path: str) -> tuple[str, ...]:
    """A pattern as its parts; raises ValueError where it is none."""
    found = [match.group(1) or match.group(2) for match in _PART.finditer(path)]
    if not found or _PART.sub("", path).strip("."):
        raise ValueError(f"{path!r} is no path; expected keys with dots between them, and keys with dots in [..]")
    return tuple(found)


def _patterns(claims: Iterable[Claim], kind: GroupKind) -> Iterator[_Pattern]:
    asked = {kind, GroupKind(kind.group, ANY), *EVERY_KIND}
    for one in claims:
        if asked & one.kinds:
            for path in one.paths:
                parts = one.parts(path, kind)
                if parts:
                    yield _Pattern(one.rule, tuple(map(_compiled, parts)))


@lru_cache(maxsize=4096)
def _compiled(part: str) -> re.Pattern[str] | str:
    if part == ANY or ANY not in part:
        return part
    return re.compile(".*".join(map(re.escape, part.split(ANY))), re.DOTALL)


def _fits(part: re.Pattern[str] | str, key: str | int) -> bool:
    if isinstance(part, str):
        return part in (ANY, key)
    return isinstance(key, str) and part.fullmatch(key) is not None
