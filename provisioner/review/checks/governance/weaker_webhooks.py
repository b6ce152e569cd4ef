"""Admission webhooks that become weaker or narrower: what they refused or changed may pass as it is (WH-13)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from itertools import groupby
from typing import Any

from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, mapping
from provisioner.review.checks.governance.narrowing import Limits, Weakening
from provisioner.review.checks.network.webhooks import KINDS, Webhook, webhooks_of
from provisioner.values import Action, Finding, GroupKind, ObjectIdentity, PlannedAction, Section, Severity

_WEAKER = ReviewRule("WH-13", Section.WEBHOOKS, Severity.DANGEROUS)
_CHANGED = ReviewRule("WH-13", Section.WEBHOOKS, Severity.NOTABLE)
_LIMITS = Limits(_WEAKER, _CHANGED, "rules")
_SERVICE = GroupKind("", "Service")
_DEFAULT_SECONDS = 10
_CHANGES = frozenset({Action.UPDATE, Action.REPLACE, Action.ADOPT})


def _changes(facts: Facts) -> Iterator[Finding]:
    services = {ref.identity for ref, _ in facts.state().named if ref.group_kind == _SERVICE}
    for planned in facts.plan.actions:
        if planned.ref.group_kind in KINDS and planned.action in _CHANGES and planned.before and planned.after:
            yield from _of_configuration(planned, services)


def _of_configuration(planned: PlannedAction, services: Collection[ObjectIdentity]) -> Iterator[Finding]:
    """One finding for all webhooks of a configuration of which the same is to be said."""
    old, new = ({one.name: one for one in webhooks_of([side])} for side in (planned.before or {}, planned.after or {}))
    found = [(name, one) for name in old if name in new for one in _weaker(old[name], new[name])]
    found += [(name, one) for name in old if name in new for one in _of_path(old[name], new[name], services)]
    added = [one for name, one in new.items() if name not in old]
    for name in old:
        if name not in new and not any(_stands_for(old[name], one) for one in added):
            evidence = {"rules": old[name].body.get("rules")}
            found.append((name, Weakening(_WEAKER, ("webhooks",), "no-longer-there", evidence=evidence)))
    for _, group in groupby(sorted(found, key=_what_is_said), key=_what_is_said):
        several = list(group)
        names, first = [name for name, _ in several], several[0][1]
        where = first.path if len(names) == 1 else ("webhooks",)
        params = first.params if len(names) == 1 else first.shown
        key = [names, first.variant, params]
        yield first.rule.finding(first.variant, planned.ref, where=where, key=key, webhooks=names, **params)


def _what_is_said(found: tuple[str, Weakening]) -> tuple[int, str, str]:
    _, one = found
    return one.rule.severity.rank, one.variant, json.dumps(one.shown, sort_keys=True)


def _weaker(before: Webhook, after: Webhook) -> Iterator[Weakening]:
    old, new, path = before.body, after.body, after.path
    if before.fails_closed and not after.fails_closed:
        yield Weakening(_WEAKER, (*path, "failurePolicy"), "fails-open")
    yield from _LIMITS.narrowed(old, new, path)
    yield from _LIMITS.conditions(old, new, path)
    yield from _of_server(before, after)
    yield from _lesser(before, after)


def _lesser(before: Webhook, after: Webhook) -> Iterator[Weakening]:
    """What hardly decides what passes, or nobody can say."""
    seconds = [one.body.get("timeoutSeconds", _DEFAULT_SECONDS) for one in (before, after)]
    if all(isinstance(one, int) for one in seconds) and seconds[1] < seconds[0]:
        late = "refused" if after.fails_closed else "passes"
        shown = {"seconds": seconds[1], "old_seconds": seconds[0], "late": late}
        yield Weakening(_CHANGED, (*after.path, "timeoutSeconds"), "less-time", shown)
    if before.body.get("reinvocationPolicy") == "IfNeeded" != after.body.get("reinvocationPolicy"):
        yield Weakening(_CHANGED, (*after.path, "reinvocationPolicy"), "not-asked-again")
    effects = [one.body.get("sideEffects") for one in (before, after)]
    if effects[0] != effects[1]:
        shown = {"effects": str(effects[1]), "old_effects": str(effects[0])}
        yield Weakening(_CHANGED, (*after.path, "sideEffects"), "side-effects", shown)


def _of_server(before: Webhook, after: Webhook) -> Iterator[Weakening]:
    old, new, path = _server(before), _server(after), (*after.path, "clientConfig")
    evidence = {"before": old, "after": new}
    if {**old, "path": ""} != {**new, "path": ""}:
        yield Weakening(_WEAKER, path, "other-server", evidence=evidence)


def _of_path(before: Webhook, after: Webhook, services: Collection[ObjectIdentity]) -> Iterator[Weakening]:
    """Another path of the same server. Where the server comes with the bundle and no answer means no, the program
    decides as it did before by another path."""
    old, new = _server(before), _server(after)
    is_own = after.service is not None and after.service.identity in services
    if old != new and {**old, "path": ""} == {**new, "path": ""} and not (is_own and after.fails_closed):
        shown = {"path": str(new.get("path") or "/"), "old_path": str(old.get("path") or "/")}
        path = (*after.path, "clientConfig", "service", "path")
        yield Weakening(_CHANGED, path, "other-path", shown, {"before": old, "after": new})


def _server(webhook: Webhook) -> Mapping[str, Any]:
    client = webhook.client
    service = mapping(client.get("service"))
    named = {key: service.get(key) for key in ("namespace", "name", "path")} if service else {}
    port = {"port": service.get("port") or 443} if service else {}
    return {**named, **port, **({"url": str(client["url"])} if client.get("url") else {})}


def _stands_for(before: Webhook, after: Webhook) -> bool:
    """Whether a new webhook asks for all that one that is gone asked for: it was renamed."""
    return not any(one.rule is _WEAKER for one in _weaker(before, after))


_FIELDS = (
    "name",
    "clientConfig.service",
    "clientConfig.url",
    "failurePolicy",
    "matchConditions.*.expression",
    "matchPolicy",
    "namespaceSelector",
    "objectSelector",
    "rules",
    "sideEffects",
)
# What a new webhook sees and holds up, and what one sees that it did not, is said by WH-01 to WH-12.
CLAIMS = (
    Claim("WH-13", KINDS, tuple(f"webhooks.*.{one}" for one in _FIELDS)),
    Claim(
        "WH-13",
        KINDS,
        ("webhooks.*.reinvocationPolicy", "webhooks.*.timeoutSeconds"),
        harmless="More time to answer, or to be asked once more, lets nothing pass that did not",
    ),
)
CHECK = Check("weaker webhooks", changes=_changes, claims=CLAIMS)
