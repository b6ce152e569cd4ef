"""Admission policies (CEL in the API server), what they reach, and policies and webhooks that become weaker or
narrower, so that what they refused or changed may pass as it is."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from provisioner.api_groups import ADMISSION_GROUP
from provisioner.json_values import items, mapping, maps, value_at
from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, FieldPath, ReviewRule, StateFacts
from provisioner.review.checks.network.webhooks import (
    KINDS,
    SENSITIVE,
    Body,
    Webhook,
    find_lost_reach,
    find_webhooks,
    is_looser,
)
from provisioner.values import Action, Finding, GroupKind, JsonObject, ObjectIdentity, ObjectRef, Section, Severity

_LOCKS = ReviewRule("WH-11", Section.WEBHOOKS, Severity.CRITICAL)
_ALTERS = ReviewRule("WH-11", Section.WEBHOOKS, Severity.DANGEROUS)
_REACHES = ReviewRule("WH-11", Section.WEBHOOKS, Severity.NOTABLE)
_NO_PARAMETERS = ReviewRule("WH-11", Section.WEBHOOKS, Severity.BREAKING)
_PARAMETERS_UNKNOWN = ReviewRule("WH-11", Section.WEBHOOKS, Severity.UNKNOWN)
_NO_POLICY = ReviewRule("WH-11", Section.WEBHOOKS, Severity.DANGEROUS)
_GONE = ReviewRule("WH-10", Section.WEBHOOKS, Severity.DANGEROUS)
_WEAKER_WEBHOOK = ReviewRule("WH-13", Section.WEBHOOKS, Severity.DANGEROUS)
_CHANGED_WEBHOOK = ReviewRule("WH-13", Section.WEBHOOKS, Severity.NOTABLE)
_WEAKER_POLICY = ReviewRule("WH-14", Section.WEBHOOKS, Severity.DANGEROUS)
_CHANGED_POLICY = ReviewRule("WH-14", Section.WEBHOOKS, Severity.NOTABLE)

_SERVICE = GroupKind("", "Service")
_MUTATING = GroupKind(ADMISSION_GROUP, "MutatingAdmissionPolicy")
POLICIES = frozenset({_MUTATING, GroupKind(ADMISSION_GROUP, "ValidatingAdmissionPolicy")})
BINDINGS = {GroupKind(ADMISSION_GROUP, f"{policy.kind}Binding"): policy for policy in POLICIES}
_CHANGES = frozenset({Action.UPDATE, Action.REPLACE, Action.ADOPT})
_DENY = "Deny"
# Other fields of a policy that may change what it does.
_OTHERS = {"paramKind": "param-kind", "reinvocationPolicy": "reinvocation", "auditAnnotations": "audit"}
_EVERYTHING: Body = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"]}
_SELECTORS = {"namespaceSelector": "namespaces-left-out", "objectSelector": "objects-left-out"}
_DEFAULT_SECONDS = 10


def judge_admission_policies(state: StateFacts) -> Iterator[Finding]:
    """Find what policies reach, whether they can lock the cluster, and what bindings name that is not there (WH-11)."""
    bodies = {ref.identity: obj for ref, obj in state.named}
    for ref, obj in state.named:
        spec = mapping(obj.get("spec"))
        if ref.group_kind in BINDINGS:
            yield from _judge_binding(ref, obj, bodies, state)
        if ref.group_kind not in POLICIES:
            continue
        constraints = mapping(spec.get("matchConstraints"))
        rules = maps(constraints.get("resourceRules"))
        reached = sorted({str(resource) for rule in rules for resource in items(rule.get("resources"))})
        sensitive = sorted({resource.split("/")[0] for resource in reached} & SENSITIVE)
        where, evidence = ("spec", "matchConstraints"), {"resources": reached, "sensitive": sensitive}
        fails_closed = str(spec.get("failurePolicy", "Fail")) == "Fail"
        if fails_closed and spec.get("paramKind") and sensitive and not mapping(constraints.get("namespaceSelector")):
            yield _LOCKS.finding("locks", ref, where=where, key=sensitive, **evidence)
        if ref.group_kind == _MUTATING and sensitive:
            yield _ALTERS.finding("may-alter", ref, where=where, key=sensitive, **evidence)
        elif sensitive:
            yield _REACHES.finding("may-refuse", ref, where=where, key=["refuse", sensitive], **evidence)


def _judge_binding(
    ref: ObjectRef, obj: JsonObject, bodies: Mapping[ObjectIdentity, JsonObject], state: StateFacts
) -> Iterator[Finding]:
    wanted = _policy_of(ref, obj)
    if wanted.identity not in bodies and state.around.exists.get(wanted.identity) is False:
        yield _NO_POLICY.finding("no-policy", ref, where=("spec", "policyName"), key=wanted.name, policy=wanted)
    parameters = _parameters_of(obj, bodies.get(wanted.identity))
    named = mapping(value_at(obj, "spec", "paramRef"))
    if parameters is None or parameters.identity in bodies or state.is_offline:
        return
    exists = state.around.exists.get(parameters.identity)
    if not exists and named.get("parameterNotFoundAction") != "Allow":
        is_unknown, where = exists is None, ("spec", "paramRef")
        rule, variant = (_PARAMETERS_UNKNOWN, "parameters-unknown") if is_unknown else (_NO_PARAMETERS, "no-parameters")
        yield rule.finding(variant, ref, where=where, key=str(parameters), parameters=parameters)


def _policy_of(ref: ObjectRef, binding: JsonObject) -> ObjectRef:
    policy, name = BINDINGS[ref.group_kind], str(value_at(binding, "spec", "policyName") or "")
    return ObjectRef(policy.group, ref.version, policy.kind, "", name)


def _parameters_of(binding: JsonObject, policy: JsonObject | None) -> ObjectRef | None:
    """Return the object that a binding names as parameters, where its policy, in the bundle too, says of which kind."""
    named = mapping(value_at(binding, "spec", "paramRef"))
    kind = mapping(value_at(policy, "spec", "paramKind"))
    if not named.get("name") or not kind:
        return None
    group, _, version = str(kind.get("apiVersion") or "").rpartition("/")
    return ObjectRef(group, version, str(kind.get("kind")), str(named.get("namespace") or ""), str(named["name"]))


def mention_policies(facts: Facts) -> Iterator[ObjectRef]:
    bodies = {manifest.ref.identity: manifest.body for manifest in facts.content.manifests}
    for manifest in facts.content.manifests:
        if manifest.ref.group_kind in BINDINGS:
            wanted = _policy_of(manifest.ref, manifest.body)
            for ref in (wanted, _parameters_of(manifest.body, bodies.get(wanted.identity))):
                if ref is not None and ref.name and ref.identity not in bodies:
                    yield ref


def find_deleted_policies(facts: Facts) -> Iterator[Finding]:
    for planned in facts.plan.actions:
        if planned.action is Action.DELETE and planned.ref.group_kind in {*POLICIES, *BINDINGS}:
            yield _GONE.finding("deleted", planned.ref)


@dataclass(frozen=True, slots=True)
class Weakening:
    """One way in which an admission object changes, as a variant of `rule`, which says how bad that is.

    `shown` is what its message shows, `evidence` what else is known of it.
    """

    rule: ReviewRule
    path: FieldPath
    variant: str
    shown: Mapping[str, Any] = field(default_factory=dict)
    evidence: Mapping[str, Any] = field(default_factory=dict)

    @property
    def params(self) -> dict[str, Any]:
        return {**self.shown, **self.evidence}


@dataclass(frozen=True, slots=True)
class Limits:
    """What limits an admission object, with the rules that say how bad it is if that narrows, or just changes.

    `rules` is the field with its rules; with none in it, it is asked about everything where `is_open`.
    """

    narrower: ReviewRule
    changed: ReviewRule
    rules: str
    is_open: bool = False

    def find_narrower(self, before: Body, after: Body, path: FieldPath = ()) -> Iterator[Weakening]:
        """Yield the ways in which `after` is asked about less than `before`; `path` leads to both."""
        is_equivalent = after.get("matchPolicy") != "Exact"
        if lost := find_lost_reach(self._rules_of(before), self._rules_of(after), is_equivalent=is_equivalent):
            yield Weakening(self.narrower, (*path, self.rules), "sees-less", {"no_longer_seen": lost})
        if excluded := find_lost_reach(*(maps(side.get("excludeResourceRules")) for side in (after, before))):
            yield Weakening(self.narrower, (*path, "excludeResourceRules"), "left-out", {"left_out": excluded})
        for key, variant in _SELECTORS.items():
            if is_looser(after.get(key), before.get(key)):
                yield Weakening(self.narrower, (*path, key), variant, evidence=_both(key, before, after))
        if "Exact" == after.get("matchPolicy") != before.get("matchPolicy"):
            evidence = _both("matchPolicy", before, after)
            yield Weakening(self.narrower, (*path, "matchPolicy"), "versions-left-out", evidence=evidence)

    def find_conditions(self, before: Body, after: Body, path: FieldPath = ()) -> Iterator[Weakening]:
        """Yield conditions that were not there: each of them has to hold, so what it does not hold for passes."""
        added, gone = _compare_expressions(before, after, "matchConditions")
        if added:
            variant, evidence = "other-conditions" if gone else "new-conditions", {"added": added, "gone": gone}
            yield Weakening(self.narrower, (*path, "matchConditions"), variant, evidence=evidence)

    def find_wider(self, before: Body, after: Body, path: FieldPath = ()) -> Iterator[Weakening]:
        """Yield the other way round, for whatever has no rule of its own about that."""
        turned = Limits(self.changed, self.changed, self.rules, self.is_open)
        for found in turned.find_narrower(after, before, path):
            evidence = _both(str(found.path[-1]), before, after)
            yield Weakening(found.rule, found.path, "sees-more", evidence=evidence)

    def _rules_of(self, body: Body) -> Sequence[Body]:
        return maps(body.get(self.rules)) or ([_EVERYTHING] if self.is_open else [])


_OF_POLICY = Limits(_WEAKER_POLICY, _CHANGED_POLICY, "resourceRules")
_OF_BINDING = Limits(_WEAKER_POLICY, _CHANGED_POLICY, "resourceRules", is_open=True)
_OF_WEBHOOK = Limits(_WEAKER_WEBHOOK, _CHANGED_WEBHOOK, "rules")


def _both(key: str, before: Body, after: Body) -> dict[str, Any]:
    return {"before": before.get(key), "after": after.get(key)}


def _compare_expressions(before: Body, after: Body, key: str) -> tuple[list[str], list[str]]:
    """Return the expressions of a list that came and those that went, in their order."""
    old, new = ([str(entry.get("expression")) for entry in maps(side.get(key))] for side in (before, after))
    return list((Counter(new) - Counter(old)).elements()), list((Counter(old) - Counter(new)).elements())


def compare_weaker_policies(facts: Facts) -> Iterator[Finding]:
    """Find admission policies and their bindings that become weaker or narrower (WH-14)."""
    for planned in facts.plan.actions:
        kind, spec = planned.ref.group_kind, mapping(mapping(planned.after).get("spec"))
        former, found = mapping(mapping(planned.before).get("spec")), list[Weakening]()
        if planned.action is Action.CREATE and kind in BINDINGS and planned.after is not None:
            actions = [str(action) for action in items(spec.get("validationActions"))]
            if not actions or _DENY in actions:  # what only warns or is only audited refuses nothing
                variant, shown = "in-force" if actions else "in-force-changing", {"policy": str(spec.get("policyName"))}
                found = [Weakening(_CHANGED_POLICY, ("policyName",), variant, shown, {"actions": actions})]
        elif planned.action in _CHANGES and planned.before is not None and planned.after is not None:
            if kind in POLICIES:
                found = [*_compare_policy(former, spec)]
            elif kind in BINDINGS:
                found = [*_compare_binding(former, spec)]
        for weakening in found:
            where, params = ("spec", *weakening.path), weakening.params
            key = [weakening.variant, params]
            yield weakening.rule.finding(weakening.variant, planned.ref, where=where, key=key, **params)
    yield from _compare_parameters(facts)


def _compare_parameters(facts: Facts) -> Iterator[Finding]:
    """Find objects of the bundle that change and from which its bindings take their parameters."""
    named = facts.state().named
    bodies = {ref.identity: obj for ref, obj in named}
    taken: dict[ObjectRef, ObjectRef] = {}
    for ref, obj in named:
        if ref.group_kind in BINDINGS:
            parameters = _parameters_of(obj, bodies.get(_policy_of(ref, obj).identity))
            taken |= {parameters: ref} if parameters is not None else {}
    for planned in facts.plan.actions:
        if planned.before is None or planned.before == planned.after:
            continue
        for parameters, binding in taken.items():
            # Where no namespace is named, each namespace has one of that name.
            is_same = (planned.ref.group_kind, planned.ref.name) == (parameters.group_kind, parameters.name)
            if is_same and parameters.namespace in ("", planned.ref.namespace):
                variant = "parameters-deleted" if planned.action is Action.DELETE else "parameters-changed"
                yield _WEAKER_POLICY.finding(variant, planned.ref, key=str(binding), binding=binding)
                break


def _compare_policy(old: Body, new: Body) -> Iterator[Weakening]:
    before, after = (str(side.get("failurePolicy") or "Fail") for side in (old, new))
    if before != after:
        rule, variant = (_WEAKER_POLICY, "fails-open") if after == "Ignore" else (_CHANGED_POLICY, "fails-closed")
        yield Weakening(rule, ("failurePolicy",), variant, evidence={"before": before, "after": after})
    yield from _compare_reach(_OF_POLICY, "matchConstraints", old, new)
    yield from _OF_POLICY.find_conditions(old, new)
    added, gone = _compare_expressions(old, new, "matchConditions")
    if gone and not added:
        yield Weakening(_CHANGED_POLICY, ("matchConditions",), "fewer-conditions", evidence={"gone": gone})
    # Whether one expression refuses less than another nobody can tell: one that is gone refuses nothing any more.
    added, gone = _compare_expressions(old, new, "validations")
    if gone:
        variant = "validations-changed" if added else "validations-removed"
        yield Weakening(_WEAKER_POLICY, ("validations",), variant, {"gone": gone}, {"added": added})
    elif added:
        yield Weakening(_CHANGED_POLICY, ("validations",), "more-validations", {"added": added})
    was, now = (
        {str(variable.get("name")): variable.get("expression") for variable in maps(side.get("variables"))}
        for side in (old, new)
    )
    if changed := sorted(name for name, expression in was.items() if now.get(name) != expression):
        yield Weakening(_WEAKER_POLICY, ("variables",), "variables", {"variables": changed})
    mutated, mutates = (maps(side.get("mutations")) for side in (old, new))
    if mutated != mutates:
        is_less = any(mutation not in mutates for mutation in mutated)
        rule, variant = (_WEAKER_POLICY, "changes-less") if is_less else (_CHANGED_POLICY, "changes-more")
        yield Weakening(rule, ("mutations",), variant, evidence={"before": mutated, "after": mutates})
    for key, variant in _OTHERS.items():
        if old.get(key) != new.get(key):
            yield Weakening(_CHANGED_POLICY, (key,), variant, evidence=_both(key, old, new))


def _compare_reach(limits: Limits, key: str, old: Body, new: Body) -> Iterator[Weakening]:
    before, after = mapping(old.get(key)), mapping(new.get(key))
    yield from limits.find_narrower(before, after, (key,))
    yield from limits.find_wider(before, after, (key,))


def _compare_binding(old: Body, new: Body) -> Iterator[Weakening]:
    before, after = (str(side.get("policyName") or "") for side in (old, new))
    if before != after:
        yield Weakening(_WEAKER_POLICY, ("policyName",), "other-policy", {"before": before, "after": after})
    did, does = (set(map(str, items(side.get("validationActions")))) for side in (old, new))
    if did != does:
        rule, variant = _CHANGED_POLICY, "other-actions"
        if _DENY in did - does:
            rule, variant = _WEAKER_POLICY, "no-longer-denies" if does else "no-action"
        elif _DENY in does - did:
            variant = "denies"
        elif not did or not does:
            variant = "fewer-actions" if did else "new-actions"
        yield Weakening(rule, ("validationActions",), variant, {"before": sorted(did), "after": sorted(does)})
    had, has = mapping(old.get("paramRef")), mapping(new.get("paramRef"))
    action = "parameterNotFoundAction"
    if has.get(action) == "Allow" != had.get(action):
        yield Weakening(_WEAKER_POLICY, ("paramRef", action), "passes-without-parameters")
    elif had.get(action) != has.get(action) and had and has:
        yield Weakening(_CHANGED_POLICY, ("paramRef", action), "refuses-without-parameters")
    was, now = ({key: value for key, value in side.items() if key != action} for side in (had, has))
    if was != now:
        yield Weakening(_WEAKER_POLICY, ("paramRef",), "other-parameters", evidence={"before": was, "after": now})
    yield from _compare_reach(_OF_BINDING, "matchResources", old, new)


def compare_weaker_webhooks(facts: Facts) -> Iterator[Finding]:
    """Find webhooks that become weaker or narrower (WH-13).

    One finding is for all webhooks of a configuration of which the same is to be said.
    """
    services = {ref.identity for ref, _ in facts.state().named if ref.group_kind == _SERVICE}
    for planned in facts.plan.actions:
        is_changed = planned.ref.group_kind in KINDS and planned.action in _CHANGES
        if not (is_changed and planned.before and planned.after):
            continue
        old, new = (
            {webhook.name: webhook for webhook in find_webhooks([side])} for side in (planned.before, planned.after)
        )
        kept, added = (
            [name for name in old if name in new],
            [webhook for name, webhook in new.items() if name not in old],
        )
        found = [(name, weakening) for name in kept for weakening in _compare_webhook(old[name], new[name])]
        found += [(name, weakening) for name in kept for weakening in _compare_path(old[name], new[name], services)]
        for name in [name for name in old if name not in new]:
            # A new webhook that asks for all that one that is gone asked for is the same, renamed.
            rules = [[weakening.rule for weakening in _compare_webhook(old[name], webhook)] for webhook in added]
            if all(_WEAKER_WEBHOOK in found_rules for found_rules in rules):
                evidence = {"rules": old[name].body.get("rules")}
                found.append((name, Weakening(_WEAKER_WEBHOOK, ("webhooks",), "no-longer-there", evidence=evidence)))
        for _, group in groupby(sorted(found, key=_sort_key), key=_sort_key):
            several = list(group)
            names, first = [name for name, _ in several], several[0][1]
            where = first.path if len(names) == 1 else ("webhooks",)
            params = first.params if len(names) == 1 else first.shown
            key = [names, first.variant, params]
            yield first.rule.finding(first.variant, planned.ref, where=where, key=key, webhooks=names, **params)


def _sort_key(found: tuple[str, Weakening]) -> tuple[int, str, str]:
    """Return what is said of a webhook, beside its name."""
    _, weakening = found
    return weakening.rule.severity.rank, weakening.variant, json.dumps(weakening.shown, sort_keys=True)


def _compare_webhook(before: Webhook, after: Webhook) -> Iterator[Weakening]:
    old, new, path = before.body, after.body, after.path
    if before.fails_closed and not after.fails_closed:
        yield Weakening(_WEAKER_WEBHOOK, (*path, "failurePolicy"), "fails-open")
    yield from _OF_WEBHOOK.find_narrower(old, new, path)
    yield from _OF_WEBHOOK.find_conditions(old, new, path)
    was, now = _server_of(before), _server_of(after)
    if {**was, "path": ""} != {**now, "path": ""}:
        evidence = {"before": was, "after": now}
        yield Weakening(_WEAKER_WEBHOOK, (*path, "clientConfig"), "other-server", evidence=evidence)
    # What follows hardly decides what passes, or nobody can say.
    had, has = (side.get("timeoutSeconds", _DEFAULT_SECONDS) for side in (old, new))
    if isinstance(had, int) and isinstance(has, int) and has < had:
        late = "refused" if after.fails_closed else "passes"
        shown: dict[str, Any] = {"seconds": has, "old_seconds": had, "late": late}
        yield Weakening(_CHANGED_WEBHOOK, (*path, "timeoutSeconds"), "less-time", shown)
    if old.get("reinvocationPolicy") == "IfNeeded" != new.get("reinvocationPolicy"):
        yield Weakening(_CHANGED_WEBHOOK, (*path, "reinvocationPolicy"), "not-asked-again")
    if old.get("sideEffects") != new.get("sideEffects"):
        shown = {"effects": str(new.get("sideEffects")), "old_effects": str(old.get("sideEffects"))}
        yield Weakening(_CHANGED_WEBHOOK, (*path, "sideEffects"), "side-effects", shown)


def _compare_path(before: Webhook, after: Webhook, services: Collection[ObjectIdentity]) -> Iterator[Weakening]:
    """Find another path of the same server.

    Where the server comes with the bundle and no answer means no, the program decides as it did before by another path.
    """
    old, new = _server_of(before), _server_of(after)
    is_own = after.service is not None and after.service.identity in services
    if old != new and {**old, "path": ""} == {**new, "path": ""} and not (is_own and after.fails_closed):
        shown = {"path": str(new.get("path") or "/"), "old_path": str(old.get("path") or "/")}
        path = (*after.path, "clientConfig", "service", "path")
        yield Weakening(_CHANGED_WEBHOOK, path, "other-path", shown, {"before": old, "after": new})


def _server_of(webhook: Webhook) -> Mapping[str, Any]:
    client = webhook.client
    service = mapping(client.get("service"))
    named = {key: service.get(key) for key in ("namespace", "name", "path")} if service else {}
    port = {"port": service.get("port") or 443} if service else {}
    return {**named, **port, **({"url": str(client["url"])} if client.get("url") else {})}


_WEBHOOK_FIELDS = (
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
_WEBHOOK_CLAIMS = (
    Claim("WH-13", KINDS, tuple(f"webhooks.*.{name}" for name in _WEBHOOK_FIELDS)),
    Claim(
        "WH-13",
        KINDS,
        ("webhooks.*.reinvocationPolicy", "webhooks.*.timeoutSeconds"),
        harmless="More time to answer, or to be asked once more, lets nothing pass that did not",
    ),
)
_POLICY_CLAIMS = (
    # A new policy does nothing until a binding puts it into force.
    Claim(
        "WH-14",
        POLICIES,
        (
            "spec.auditAnnotations",
            "spec.failurePolicy",
            "spec.matchConditions.*.expression",
            "spec.matchConstraints",
            "spec.mutations",
            "spec.paramKind",
            "spec.reinvocationPolicy",
            "spec.validations.*.expression",
            "spec.variables",
        ),
    ),
    Claim(
        "WH-14",
        POLICIES | BINDINGS.keys(),
        ("spec.matchConstraints.*.*.apiVersions", "spec.matchResources.*.*.apiVersions"),
        harmless="By matchPolicy Equivalent, one version stands for all versions of its API",
    ),
    Claim(
        "WH-14",
        frozenset(BINDINGS),
        ("spec.matchResources", "spec.paramRef", "spec.policyName", "spec.validationActions"),
    ),
)
POLICIES_CHECK = Check(
    "policies", changes=find_deleted_policies, standing=judge_admission_policies, mentions=mention_policies
)
WEAKER_POLICIES_CHECK = Check("weaker policies", changes=compare_weaker_policies, claims=_POLICY_CLAIMS)
WEAKER_WEBHOOKS_CHECK = Check("weaker webhooks", changes=compare_weaker_webhooks, claims=_WEBHOOK_CLAIMS)
