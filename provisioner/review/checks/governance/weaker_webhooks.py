"""Admission webhooks that become weaker or narrower: what they refused or changed may pass as it is (WH-13)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import groupby
from typing import Any

from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, mapping, said
from provisioner.review.checks.governance.narrowing import Limits, Weakening
from provisioner.review.checks.network.webhooks import KINDS, Webhook, webhooks_of
from provisioner.sentences import some
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
            words = "is no longer there: what it refused or changed passes as it is"
            found.append((name, Weakening(_WEAKER, ("webhooks",), words, {"rules": old[name].body.get("rules")})))
    found.sort(key=lambda one: (one[1].rule.severity.rank, one[1].words))
    for (rule, words), group in groupby(found, key=lambda one: (one[1].rule, one[1].words)):
        several = list(group)
        names, first = [name for name, _ in several], several[0][1]
        subject = "The webhook" if len(names) == 1 else "Each of the webhooks"
        path = first.path if len(names) == 1 else ("webhooks",)
        evidence = {"webhooks": names, **(first.evidence if len(names) == 1 else {})}
        message = f"{subject} {some(names)} of {said(planned.ref)} {words}"
        yield rule.at(planned.ref, message, path=path, evidence=evidence, key=[names, words, evidence])


def _weaker(before: Webhook, after: Webhook) -> Iterator[Weakening]:
    old, new, path = before.body, after.body, after.path
    if before.fails_closed and not after.fails_closed:
        words = "lets everything pass while it is down, which it would have refused or changed"
        yield Weakening(_WEAKER, (*path, "failurePolicy"), words)
    yield from _LIMITS.narrowed(old, new, path)
    yield from _LIMITS.conditions(old, new, path)
    yield from _of_server(before, after)
    yield from _lesser(before, after)


def _lesser(before: Webhook, after: Webhook) -> Iterator[Weakening]:
    """What hardly decides what passes, or nobody can say."""
    seconds = [one.body.get("timeoutSeconds", _DEFAULT_SECONDS) for one in (before, after)]
    if all(isinstance(one, int) for one in seconds) and seconds[1] < seconds[0]:
        late = "refused" if after.fails_closed else "let through"
        words = f"has {seconds[1]} instead of {seconds[0]} seconds to answer: what would wait longer is {late}"
        yield Weakening(_CHANGED, (*after.path, "timeoutSeconds"), words)
    if before.body.get("reinvocationPolicy") == "IfNeeded" != after.body.get("reinvocationPolicy"):
        words = "is not asked again after other webhooks changed the object"
        yield Weakening(_CHANGED, (*after.path, "reinvocationPolicy"), words)
    effects = [one.body.get("sideEffects") for one in (before, after)]
    if effects[0] != effects[1]:
        words = f"says of its side effects {effects[1]} instead of {effects[0]}, which decides what dry runs do"
        yield Weakening(_CHANGED, (*after.path, "sideEffects"), words)


def _of_server(before: Webhook, after: Webhook) -> Iterator[Weakening]:
    old, new, path = _server(before), _server(after), (*after.path, "clientConfig")
    evidence = {"before": old, "after": new}
    if {**old, "path": ""} != {**new, "path": ""}:
        yield Weakening(_WEAKER, path, "is answered by another server, which decides now what passes", evidence)


def _of_path(before: Webhook, after: Webhook, services: Collection[ObjectIdentity]) -> Iterator[Weakening]:
    """Another path of the same server. Where the server comes with the bundle and no answer means no, the program
    decides as it did before by another path."""
    old, new = _server(before), _server(after)
    is_own = after.service is not None and after.service.identity in services
    if old != new and {**old, "path": ""} == {**new, "path": ""} and not (is_own and after.fails_closed):
        words = f"is asked at {new.get('path') or '/'} and no longer at {old.get('path') or '/'}"
        path = (*after.path, "clientConfig", "service", "path")
        yield Weakening(_CHANGED, path, words, {"before": old, "after": new})


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
    "matchConditions",
    "matchPolicy",
    "namespaceSelector",
    "objectSelector",
    "reinvocationPolicy",
    "rules",
    "sideEffects",
    "timeoutSeconds",
)
# What a new webhook sees and holds up, and what one sees that it did not, is said by WH-01 to WH-12.
CLAIMS = (Claim("WH-13", KINDS, tuple(f"webhooks.*.{one}" for one in _FIELDS)),)
CHECK = Check("weaker webhooks", changes=_changes, claims=CLAIMS)
