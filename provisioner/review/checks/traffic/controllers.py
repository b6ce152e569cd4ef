"""Annotations that controllers of ingresses and load balancers run as configuration, or that guard access (ING)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from provisioner.masking import masked
from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, mapping
from provisioner.review.checks.traffic.annotation_table import ANNOTATIONS, Annotation, Effect, annotation
from provisioner.review.rules import Phrase
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


def _changes(facts: Facts) -> Iterator[Finding]:
    for planned in facts.plan.actions:
        if planned.action in _WRITES and planned.after is not None and planned.ref.group_kind in KINDS:
            yield from _of_object(planned, planned.after)


def _of_object(planned: PlannedAction, after: JsonObject) -> Iterator[Finding]:
    """One finding for all annotations of which the same is to be said."""
    judged = [(*told, change) for change in _changed(planned, after) if (told := _judged(change)) is not None]
    judged.sort(key=lambda it: (it[0].id, it[0].severity.rank, it[1], it[2].name))
    for (rule, variant), group in groupby(judged, key=lambda it: it[:2]):
        changes, named = [change for _, _, change in group], dict[str, list[str]]()
        for change in changes:
            named.setdefault(change.entry.why, []).append(change.name)
        yield rule.finding(
            variant,
            planned.ref,
            where=("metadata", "annotations", *([changes[0].name] if len(changes) == 1 else [])),
            key=[variant, *([change.name, change.old, change.new] for change in changes)],
            annotations=[_shown(change) for change in changes],
            reasons=[Phrase.of(rule.id, "reasons.why", names=names, why=why) for why, names in named.items()],
        )


def _shown(change: _Change) -> dict[str, str | None]:
    before, after = (None if value is None else masked(value)[:MAX_VALUE] for value in (change.old, change.new))
    words = Phrase.of(change.entry.rule, f"why.{change.entry.why}")
    return {"name": change.name, "before": before, "after": after, "why": words}


def _changed(planned: PlannedAction, after: JsonObject) -> Iterator[_Change]:
    old, new = (_annotations(side) for side in (planned.before, after))
    for name in sorted({*old, *new}, key=str):
        entry = annotation(str(name))
        if entry is not None and old.get(name) != new.get(name):
            before, value = (None if side.get(name) is None else str(side[name]) for side in (old, new))
            yield _Change(entry, str(name), before, value, is_new=planned.before is None)


def _annotations(obj: JsonObject | None) -> Mapping[str, Any]:
    return mapping(mapping((obj or {}).get("metadata")).get("annotations"))


def _judged(change: _Change) -> tuple[ReviewRule, str] | None:
    match change.entry.effect:
        case Effect.RUNS:
            return _of_lines(change)
        case Effect.LEADS:
            return _of_way(change)
    return _of_guard(change)


def _of_lines(change: _Change) -> tuple[ReviewRule, str]:
    if change.new is None:
        return _RUN_NO_MORE, "loses-lines"
    return _RUN, "gives-lines"


def _of_way(change: _Change) -> tuple[ReviewRule, str] | None:
    if change.is_new:
        return (_LED, "has") if change.entry.matters_when_new else None
    if change.new is None:
        return _LED, "no-longer-has"
    return _LED_ELSEWHERE, "sets" if change.old is None else "changes"


def _of_guard(change: _Change) -> tuple[ReviewRule, str] | None:
    old, new = (_guarding(change.entry, value) for value in (change.old, change.new))
    if change.is_new:
        if new is None:
            return (_GUARDED, "leaves-open") if change.new else None
        return (_GUARDED, "has") if change.entry.matters_when_new else None
    if old is None and new is None:
        return None
    if old is None:
        return _GUARDED, "newly-guards"
    if new is None:
        return _OPENED, "no-longer-guards"
    if old == new:
        return None
    if _is_stricter(change.entry.effect, old, new):
        return _GUARDED, "lets-in-fewer"
    return _OPENED, "guards-otherwise"


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


# A guard that a new object has from the start keeps nobody out who was let in before.
CLAIMS = tuple(
    Claim(rule, KINDS, tuple(f"metadata.annotations.[{one.name}]" for one in ANNOTATIONS if one.rule == rule))
    for rule in sorted({one.rule for one in ANNOTATIONS})
)
CHECK = Check("annotations that controllers read", changes=_changes, claims=CLAIMS)
