"""Admission policies and their bindings that become weaker or narrower: what they refused may pass (WH-14)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, items, mapping, maps
from provisioner.review.checks.governance.narrowing import Limits, Weakening, difference
from provisioner.review.checks.network.policies import BINDINGS, POLICIES, parameters_of
from provisioner.values import Action, Finding, ObjectRef, PlannedAction, Section, Severity

_WEAKER = ReviewRule("WH-14", Section.WEBHOOKS, Severity.DANGEROUS)
_CHANGED = ReviewRule("WH-14", Section.WEBHOOKS, Severity.NOTABLE)
_POLICY = Limits(_WEAKER, _CHANGED, "resourceRules")
_BINDING = Limits(_WEAKER, _CHANGED, "resourceRules", is_open=True)
_CHANGES = frozenset({Action.UPDATE, Action.REPLACE, Action.ADOPT})
_DENY = "Deny"
# Other fields of a policy that may change what it does.
_OTHERS = {"paramKind": "param-kind", "reinvocationPolicy": "reinvocation", "auditAnnotations": "audit"}
Body = Mapping[str, Any]


def _changes(facts: Facts) -> Iterator[Finding]:
    for planned in facts.plan.actions:
        if planned.action is Action.CREATE and planned.ref.group_kind in BINDINGS and planned.after is not None:
            yield from _of_new_binding(planned, mapping(planned.after.get("spec")))
        if planned.action not in _CHANGES or planned.before is None or planned.after is None:
            continue
        old, new = mapping(planned.before.get("spec")), mapping(planned.after.get("spec"))
        if planned.ref.group_kind in POLICIES:
            found = _of_policy(old, new)
        elif planned.ref.group_kind in BINDINGS:
            found = _of_binding(old, new)
        else:
            continue
        yield from (_finding(planned, one) for one in found)
    yield from _of_parameter_objects(facts)


def _of_new_binding(planned: PlannedAction, spec: Body) -> Iterator[Finding]:
    """What only warns or is only audited refuses nothing."""
    actions = [str(one) for one in items(spec.get("validationActions"))]
    if actions and _DENY not in actions:
        return
    variant, shown = "in-force" if actions else "in-force-changing", {"policy": str(spec.get("policyName"))}
    yield _finding(planned, Weakening(_CHANGED, ("policyName",), variant, shown, {"actions": actions}))


def _of_parameter_objects(facts: Facts) -> Iterator[Finding]:
    """Objects of the bundle from which its bindings take their parameters."""
    named = facts.state().named
    bodies = {ref.identity: obj for ref, obj in named}
    taken: dict[ObjectRef, ObjectRef] = {}
    for ref, obj in named:
        policy = BINDINGS.get(ref.group_kind)
        if policy is not None:
            name = str(mapping(obj.get("spec")).get("policyName") or "")
            body = bodies.get(ObjectRef(policy.group, ref.version, policy.kind, "", name).identity)
            parameters = parameters_of(obj, body)
            taken |= {parameters: ref} if parameters is not None else {}
    for planned in facts.plan.actions:
        binding = next((to for one, to in taken.items() if _is_of(planned.ref, one)), None)
        if binding is None or planned.before is None or planned.before == planned.after:
            continue
        variant = "parameters-deleted" if planned.action is Action.DELETE else "parameters-changed"
        yield _WEAKER.finding(variant, planned.ref, key=str(binding), binding=binding)


def _is_of(ref: ObjectRef, parameters: ObjectRef) -> bool:
    """Whether it is that object; where no namespace is named, each namespace has one of that name."""
    is_same = (ref.group_kind, ref.name) == (parameters.group_kind, parameters.name)
    return is_same and parameters.namespace in ("", ref.namespace)


def _finding(planned: PlannedAction, one: Weakening) -> Finding:
    key, where = [one.variant, one.params], ("spec", *one.path)
    return one.rule.finding(one.variant, planned.ref, where=where, key=key, **one.params)


def _of_policy(old: Body, new: Body) -> Iterator[Weakening]:
    before, after = (str(side.get("failurePolicy") or "Fail") for side in (old, new))
    if before != after:
        rule, variant = (_WEAKER, "fails-open") if after == "Ignore" else (_CHANGED, "fails-closed")
        yield Weakening(rule, ("failurePolicy",), variant, evidence={"before": before, "after": after})
    yield from _of_matching(_POLICY, "matchConstraints", old, new)
    yield from _of_conditions(old, new)
    yield from _of_expressions(old, new)
    for key, variant in _OTHERS.items():
        if old.get(key) != new.get(key):
            yield Weakening(_CHANGED, (key,), variant, evidence={"before": old.get(key), "after": new.get(key)})


def _of_conditions(old: Body, new: Body) -> Iterator[Weakening]:
    yield from _POLICY.conditions(old, new)
    added, gone = difference(old, new, "matchConditions")
    if gone and not added:
        yield Weakening(_CHANGED, ("matchConditions",), "fewer-conditions", evidence={"gone": gone})


def _of_expressions(old: Body, new: Body) -> Iterator[Weakening]:
    """Whether one expression refuses less than another nobody can tell: one that is gone refuses nothing any more."""
    added, gone = difference(old, new, "validations")
    if gone:
        variant = "validations-changed" if added else "validations-removed"
        yield Weakening(_WEAKER, ("validations",), variant, {"gone": gone}, {"added": added})
    elif added:
        yield Weakening(_CHANGED, ("validations",), "more-validations", {"added": added})
    yield from _of_variables(*(maps(side.get("variables")) for side in (old, new)))
    yield from _of_mutations(*(maps(side.get("mutations")) for side in (old, new)))


def _of_variables(old: list[Body], new: list[Body]) -> Iterator[Weakening]:
    before, after = ({str(one.get("name")): one.get("expression") for one in side} for side in (old, new))
    changed = sorted(name for name, expression in before.items() if after.get(name) != expression)
    if changed:
        yield Weakening(_WEAKER, ("variables",), "variables", {"variables": changed})


def _of_mutations(old: list[Body], new: list[Body]) -> Iterator[Weakening]:
    evidence = {"before": old, "after": new}
    if any(one not in new for one in old):
        yield Weakening(_WEAKER, ("mutations",), "changes-less", evidence=evidence)
    elif old != new:
        yield Weakening(_CHANGED, ("mutations",), "changes-more", evidence=evidence)


def _of_binding(old: Body, new: Body) -> Iterator[Weakening]:
    names = [str(side.get("policyName") or "") for side in (old, new)]
    if names[0] != names[1]:
        yield Weakening(_WEAKER, ("policyName",), "other-policy", {"before": names[0], "after": names[1]})
    yield from _of_actions(*(set(map(str, items(side.get("validationActions")))) for side in (old, new)))
    yield from _of_parameters(mapping(old.get("paramRef")), mapping(new.get("paramRef")))
    yield from _of_matching(_BINDING, "matchResources", old, new)


def _of_matching(limits: Limits, field: str, old: Body, new: Body) -> Iterator[Weakening]:
    before, after = mapping(old.get(field)), mapping(new.get(field))
    yield from limits.narrowed(before, after, (field,))
    yield from limits.widened(before, after, (field,))


def _of_actions(old: set[str], new: set[str]) -> Iterator[Weakening]:
    if old == new:
        return
    rule, variant = _CHANGED, "other-actions"
    if _DENY in old - new:
        rule, variant = _WEAKER, "no-longer-denies" if new else "no-action"
    elif _DENY in new - old:
        variant = "denies"
    elif not old or not new:
        variant = "fewer-actions" if old else "new-actions"
    yield Weakening(rule, ("validationActions",), variant, {"before": sorted(old), "after": sorted(new)})


def _of_parameters(old: Body, new: Body) -> Iterator[Weakening]:
    action = "parameterNotFoundAction"
    if new.get(action) == "Allow" != old.get(action):
        yield Weakening(_WEAKER, ("paramRef", action), "passes-without-parameters")
    elif old.get(action) != new.get(action) and old and new:
        yield Weakening(_CHANGED, ("paramRef", action), "refuses-without-parameters")
    before, after = ({key: value for key, value in side.items() if key != action} for side in (old, new))
    if before != after:
        yield Weakening(_WEAKER, ("paramRef",), "other-parameters", evidence={"before": before, "after": after})


CLAIMS = (
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
CHECK = Check("weaker policies", changes=_changes, claims=CLAIMS)
