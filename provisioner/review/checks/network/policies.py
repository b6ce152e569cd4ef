"""Admission policies (CEL in the API server): what they reach, and whether they can lock the cluster (WH-11)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.api_groups import ADMISSION_GROUP
from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts, items, mapping, maps
from provisioner.values import (
    Action,
    Finding,
    GroupKind,
    JsonObject,
    ObjectIdentity,
    ObjectRef,
    Section,
    Severity,
)

_LOCKS = ReviewRule("WH-11", Section.WEBHOOKS, Severity.CRITICAL)
_ALTERS = ReviewRule("WH-11", Section.WEBHOOKS, Severity.DANGEROUS)
_REACHES = ReviewRule("WH-11", Section.WEBHOOKS, Severity.NOTABLE)
_NO_PARAMETERS = ReviewRule("WH-11", Section.WEBHOOKS, Severity.BREAKING)
_PARAMETERS_UNKNOWN = ReviewRule("WH-11", Section.WEBHOOKS, Severity.UNKNOWN)
_NO_POLICY = ReviewRule("WH-11", Section.WEBHOOKS, Severity.DANGEROUS)
_GONE = ReviewRule("WH-10", Section.WEBHOOKS, Severity.DANGEROUS)

_MUTATING = GroupKind(ADMISSION_GROUP, "MutatingAdmissionPolicy")
POLICIES = frozenset({_MUTATING, GroupKind(ADMISSION_GROUP, "ValidatingAdmissionPolicy")})
BINDINGS = {GroupKind(ADMISSION_GROUP, f"{one.kind}Binding"): one for one in POLICIES}
_SENSITIVE = frozenset({"pods", "secrets", "roles", "clusterroles", "rolebindings", "clusterrolebindings", "*"})


def _standing(state: StateFacts) -> Iterator[Finding]:
    bodies = {ref.identity: obj for ref, obj in state.named}
    for ref, obj in state.named:
        if ref.group_kind in POLICIES:
            yield from _of_policy(ref, mapping(obj.get("spec")))
        elif ref.group_kind in BINDINGS:
            yield from _of_binding(ref, obj, bodies, state)


def _of_policy(ref: ObjectRef, spec: Mapping[str, Any]) -> Iterator[Finding]:
    constraints = mapping(spec.get("matchConstraints"))
    rules = maps(constraints.get("resourceRules"))
    reached = sorted({str(one) for rule in rules for one in items(rule.get("resources"))})
    sensitive = sorted({one.split("/")[0] for one in reached} & _SENSITIVE)
    where, evidence = ("spec", "matchConstraints"), {"resources": reached, "sensitive": sensitive}
    fails_closed = str(spec.get("failurePolicy", "Fail")) == "Fail"
    if fails_closed and spec.get("paramKind") and sensitive and not mapping(constraints.get("namespaceSelector")):
        yield _LOCKS.finding("locks", ref, where=where, key=sensitive, **evidence)
    if ref.group_kind == _MUTATING and sensitive:
        yield _ALTERS.finding("may-alter", ref, where=where, key=sensitive, **evidence)
    elif sensitive:
        yield _REACHES.finding("may-refuse", ref, where=where, key=["refuse", sensitive], **evidence)


def _of_binding(
    ref: ObjectRef, obj: JsonObject, bodies: Mapping[ObjectIdentity, JsonObject], state: StateFacts
) -> Iterator[Finding]:
    spec = mapping(obj.get("spec"))
    policy = BINDINGS[ref.group_kind]
    name = str(spec.get("policyName") or "")
    wanted = ObjectRef(policy.group, ref.version, policy.kind, "", name)
    if wanted.identity not in bodies and state.around.exists.get(wanted.identity) is False:
        yield _NO_POLICY.finding("no-policy", ref, where=("spec", "policyName"), key=name, policy=wanted)
    parameters = parameters_of(obj, bodies.get(wanted.identity))
    if parameters is None or parameters.identity in bodies or state.is_offline:
        return
    if mapping(spec.get("paramRef")).get("parameterNotFoundAction") == "Allow":
        return
    exists = state.around.exists.get(parameters.identity)
    if not exists:
        is_unknown, where = exists is None, ("spec", "paramRef")
        rule, variant = (_PARAMETERS_UNKNOWN, "parameters-unknown") if is_unknown else (_NO_PARAMETERS, "no-parameters")
        yield rule.finding(variant, ref, where=where, key=str(parameters), parameters=parameters)


def parameters_of(binding: JsonObject, policy: JsonObject | None) -> ObjectRef | None:
    """The object that a binding names as parameters, where its policy, in the bundle too, says of which kind."""
    named = mapping(mapping(binding.get("spec")).get("paramRef"))
    kind = mapping(mapping((policy or {}).get("spec")).get("paramKind"))
    if not named.get("name") or not kind:
        return None
    group, _, version = str(kind.get("apiVersion") or "").rpartition("/")
    return ObjectRef(group, version, str(kind.get("kind")), str(named.get("namespace") or ""), str(named["name"]))


def _mentions(facts: Facts) -> Iterator[ObjectRef]:
    bodies = {one.ref.identity: one.body for one in facts.content.manifests}
    for manifest in facts.content.manifests:
        policy = BINDINGS.get(manifest.ref.group_kind)
        if policy is None:
            continue
        name = str(mapping(manifest.body.get("spec")).get("policyName") or "")
        wanted = ObjectRef(policy.group, manifest.ref.version, policy.kind, "", name)
        parameters = parameters_of(manifest.body, bodies.get(wanted.identity))
        yield from (one for one in (wanted, parameters) if one is not None and one.name and one.identity not in bodies)


def _changes(facts: Facts) -> Iterator[Finding]:
    for planned in facts.plan.actions:
        if planned.action is Action.DELETE and planned.ref.group_kind in {*POLICIES, *BINDINGS}:
            yield _GONE.finding("deleted", planned.ref)


CHECK = Check("policies", changes=_changes, standing=_standing, mentions=_mentions)
