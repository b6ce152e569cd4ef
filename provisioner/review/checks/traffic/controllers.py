"""Annotations that controllers of ingresses and load balancers run as configuration, or that guard access (ING)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from provisioner.masking import masked
from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, mapping, said
from provisioner.review.checks.traffic.annotation_table import ANNOTATIONS, Annotation, Effect, annotation
from provisioner.sentences import some, some_phrases
from provisioner.values import Action, Finding, GroupKind, JsonObject, PlannedAction, Section, Severity

_RUN = ReviewRule("ING-01", Section.OBJECTS, Severity.DANGEROUS)
_RUN_NO_MORE = ReviewRule("ING-01", Section.OBJECTS, Severity.NOTABLE)
_OPENED = ReviewRule("ING-02", Section.OBJECTS, Severity.DANGEROUS)
_GUARDED = ReviewRule("ING-02", Section.OBJECTS, Severity.NOTABLE)
_LED_ELSEWHERE = ReviewRule("ING-03", Section.OBJECTS, Severity.DANGEROUS)
_LED = ReviewRule("ING-03", Section.OBJECTS, Severity.NOTABLE)

_GATEWAY = "gateway.networking.k8s.io"
KINDS = frozenset(
    {
        GroupKind("", "Service"),
        GroupKind("networking.k8s.io", "Ingress"),
        GroupKind("extensions", "Ingress"),
        GroupKind("route.openshift.io", "Route"),
        *(GroupKind(_GATEWAY, f"{which}Route") for which in ("HTTP", "GRPC", "TLS", "TCP", "UDP")),
        GroupKind(_GATEWAY, "Gateway"),
    }
)
_WRITES = frozenset({Action.CREATE, Action.UPDATE, Action.REPLACE, Action.ADOPT, Action.RERUN})
MAX_VALUE = 300
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class _Change:
    """One annotation of the table that changes, None where it is not there; `is_new` where its object is."""

    entry: Annotation
    name: str
    old: str | None
    new: str | None
    is_new: bool


@dataclass(frozen=True, slots=True)
class _Judged:
    rule: ReviewRule
    words: str
    change: _Change


def _changes(facts: Facts) -> Iterator[Finding]:
    for planned in facts.plan.actions:
        if planned.action in _WRITES and planned.after is not None and planned.ref.group_kind in KINDS:
            yield from _of_object(planned, planned.after)


def _of_object(planned: PlannedAction, after: JsonObject) -> Iterator[Finding]:
    """One finding for all annotations of which the same is to be said."""
    judged = [one for change in _changed(planned, after) if (one := _judged(change)) is not None]
    judged.sort(key=lambda one: (one.rule.id, one.rule.severity.rank, one.words, one.change.name))
    for (rule, words), group in groupby(judged, key=lambda one: (one.rule, one.words)):
        found = [one.change for one in group]
        message = f"{said(planned.ref)} {words} {_with_reasons(found)}"
        path = ("metadata", "annotations", *([found[0].name] if len(found) == 1 else []))
        evidence = {"annotations": [_shown(one) for one in found]}
        key = [words, *([one.name, one.old, one.new] for one in found)]
        yield rule.at(planned.ref, message, path=path, evidence=evidence, key=key)


def _with_reasons(changes: Iterable[_Change]) -> str:
    named: dict[str, list[str]] = {}
    for one in changes:
        named.setdefault(one.entry.why, []).append(f"`{one.name}`")
    phrases = [
        f"{some(names)}, {'which' if len(names) == 1 else 'each of which'} {why}" for why, names in named.items()
    ]
    return some_phrases(phrases)


def _shown(change: _Change) -> dict[str, str | None]:
    before, after = (None if value is None else masked(value)[:MAX_VALUE] for value in (change.old, change.new))
    return {"name": change.name, "before": before, "after": after, "why": change.entry.why}


def _changed(planned: PlannedAction, after: JsonObject) -> Iterator[_Change]:
    old, new = (_annotations(side) for side in (planned.before, after))
    for name in sorted({*old, *new}, key=str):
        entry = annotation(str(name))
        if entry is not None and old.get(name) != new.get(name):
            before, value = (None if side.get(name) is None else str(side[name]) for side in (old, new))
            yield _Change(entry, str(name), before, value, is_new=planned.before is None)


def _annotations(obj: JsonObject | None) -> Mapping[str, Any]:
    return mapping(mapping((obj or {}).get("metadata")).get("annotations"))


def _judged(change: _Change) -> _Judged | None:
    match change.entry.effect:
        case Effect.RUNS:
            return _of_lines(change)
        case Effect.LEADS:
            return _of_way(change)
    return _of_guard(change)


def _of_lines(change: _Change) -> _Judged:
    if change.new is None:
        return _Judged(_RUN_NO_MORE, "loses the lines of configuration, with the rules in them, of", change)
    return _Judged(_RUN, "gives its controller lines of configuration by", change)


def _of_way(change: _Change) -> _Judged | None:
    if change.is_new:
        return _Judged(_LED, "has", change) if change.entry.matters_when_new else None
    if change.new is None:
        return _Judged(_LED, "no longer has", change)
    return _Judged(_LED_ELSEWHERE, "sets" if change.old is None else "changes", change)


def _of_guard(change: _Change) -> _Judged | None:
    old, new = (_guarding(change.entry, value) for value in (change.old, change.new))
    if change.is_new:
        if new is None:
            return _Judged(_GUARDED, "leaves access open by", change) if change.new else None
        return _Judged(_GUARDED, "has", change) if change.entry.matters_when_new else None
    if old is None and new is None:
        return None
    if old is None:
        return _Judged(_GUARDED, "newly guards access by", change)
    if new is None:
        return _Judged(_OPENED, "no longer guards access by", change)
    if old == new:
        return None
    if _is_stricter(change.entry.effect, old, new):
        return _Judged(_GUARDED, "lets fewer addresses in by", change)
    return _Judged(_OPENED, "guards access in another way by", change)


def _guarding(entry: Annotation, value: str | None) -> str | None:
    """The value that guards access, None where it keeps nobody out."""
    counted = (entry.default if value is None else value).strip()
    return None if counted.replace(" ", "") in entry.off else counted


def _is_stricter(effect: Effect, old: str, new: str) -> bool:
    """Whether a list of networks that are let in is part of the one before, or one of those kept out has all of it."""
    if effect not in (Effect.LETS_IN, Effect.KEEPS_OUT):
        return False
    before, after = (_networks(value) for value in (old, new))
    if not before or not after:
        return False
    inner, outer = (after, before) if effect is Effect.LETS_IN else (before, after)
    return all(any(_holds(wide, one) for wide in outer) for one in inner)


def _networks(value: str) -> list[_Network]:
    """None where one of them is none: it may be the name of a list."""
    try:
        return [ipaddress.ip_network(one, strict=False) for one in _words(value)]
    except ValueError:
        return []


def _words(value: str) -> Iterable[str]:
    return value.replace(",", " ").split()


def _holds(wide: _Network, one: _Network) -> bool:
    if isinstance(wide, ipaddress.IPv4Network) and isinstance(one, ipaddress.IPv4Network):
        return one.subnet_of(wide)
    if isinstance(wide, ipaddress.IPv6Network) and isinstance(one, ipaddress.IPv6Network):
        return one.subnet_of(wide)
    return False


_JUDGES = {Effect.RUNS: _RUN.id, Effect.LEADS: _LED.id}
# A guard that a new object has from the start keeps nobody out who was let in before.
CLAIMS = tuple(
    Claim(_JUDGES.get(one.effect, _OPENED.id), KINDS, (f"metadata.annotations.[{one.name}]",)) for one in ANNOTATIONS
)
CHECK = Check("annotations that controllers read", changes=_changes, claims=CLAIMS)
