"""Admission policies and their bindings that become weaker or narrower: what they refused may pass (WH-14)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, items, mapping, maps, said
from provisioner.review.checks.governance.narrowing import Limits, Weakening, difference
from provisioner.review.checks.network.policies import BINDINGS, POLICIES, parameters_of
from provisioner.sentences import number, verb
from provisioner.values import Action, Finding, ObjectRef, PlannedAction, Section, Severity

_WEAKER = ReviewRule("WH-14", Section.WEBHOOKS, Severity.DANGEROUS)
_CHANGED = ReviewRule("WH-14", Section.WEBHOOKS, Severity.NOTABLE)
_POLICY = Limits(_WEAKER, _CHANGED, "resourceRules")
_BINDING = Limits(_WEAKER, _CHANGED, "resourceRules", is_open=True)
_CHANGES = frozenset({Action.UPDATE, Action.REPLACE, Action.ADOPT})
_DENY = "Deny"
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
    does = "what fails it is refused" if actions else "it changes what it matches"
    words = f"puts the policy {spec.get('policyName')} into force: {does}"
    yield _finding(planned, Weakening(_CHANGED, ("policyName",), words, {"actions": actions}))


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
        verb = "Deletes" if planned.action is Action.DELETE else "Changes"
        message = (
            f"{verb} {said(planned.ref)}, from which {said(binding)} takes its parameters: what it refused by those of "
            "before may pass"
        )
        yield _WEAKER.at(planned.ref, message, key=str(binding))


def _is_of(ref: ObjectRef, parameters: ObjectRef) -> bool:
    """Whether it is that object; where no namespace is named, each namespace has one of that name."""
    is_same = (ref.group_kind, ref.name) == (parameters.group_kind, parameters.name)
    return is_same and parameters.namespace in ("", ref.namespace)


def _finding(planned: PlannedAction, one: Weakening) -> Finding:
    message = f"{said(planned.ref)} {one.words}"
    key = [one.words, one.evidence]
    return one.rule.at(planned.ref, message, path=("spec", *one.path), evidence=one.evidence, key=key)


def _of_policy(old: Body, new: Body) -> Iterator[Weakening]:
    before, after = (str(side.get("failurePolicy") or "Fail") for side in (old, new))
    if before != after:
        rule, words = _CHANGED, "now refuses what it cannot judge"
        if after == "Ignore":
            rule, words = _WEAKER, "lets pass what it cannot judge, such as while its parameters cannot be read"
        yield Weakening(rule, ("failurePolicy",), words, {"before": before, "after": after})
    yield from _of_matching(_POLICY, "matchConstraints", old, new)
    yield from _of_conditions(old, new)
    yield from _of_expressions(old, new)
    for key, words in (
        ("paramKind", "takes its parameters from another kind"),
        ("reinvocationPolicy", "is asked again, or no longer, after others changed the object"),
        ("auditAnnotations", "writes something else into the audit log"),
    ):
        if old.get(key) != new.get(key):
            yield Weakening(_CHANGED, (key,), words, {"before": old.get(key), "after": new.get(key)})


def _of_conditions(old: Body, new: Body) -> Iterator[Weakening]:
    yield from _POLICY.conditions(old, new)
    added, gone = difference(old, new, "matchConditions")
    if gone and not added:
        words = "is asked about more than before: conditions are gone"
        yield Weakening(_CHANGED, ("matchConditions",), words, {"gone": gone})


def _of_expressions(old: Body, new: Body) -> Iterator[Weakening]:
    """Whether one expression refuses less than another nobody can tell: one that is gone refuses nothing any more."""
    added, gone = difference(old, new, "validations")
    if gone:
        how = "changed" if added else "removed"
        was = verb(len(gone), f"were {how}", f"was {how}")
        words = f"may let pass what it refused: {number(len(gone), 'validation')} {was}"
        yield Weakening(_WEAKER, ("validations",), words, {"added": added, "gone": gone})
    elif added:
        words = f"may refuse more than before: {number(len(added), 'more validation')}"
        yield Weakening(_CHANGED, ("validations",), words, {"added": added})
    yield from _of_variables(*(maps(side.get("variables")) for side in (old, new)))
    yield from _of_mutations(*(maps(side.get("mutations")) for side in (old, new)))


def _of_variables(old: list[Body], new: list[Body]) -> Iterator[Weakening]:
    before, after = ({str(one.get("name")): one.get("expression") for one in side} for side in (old, new))
    changed = sorted(name for name, expression in before.items() if after.get(name) != expression)
    if changed:
        words = f"means something else by its variables {', '.join(changed)}: what it refused may pass"
        yield Weakening(_WEAKER, ("variables",), words, {"variables": changed})


def _of_mutations(old: list[Body], new: list[Body]) -> Iterator[Weakening]:
    evidence = {"before": old, "after": new}
    if any(one not in new for one in old):
        words = "no longer changes objects as it did: what it set, such as safer defaults of pods, is left as it is"
        yield Weakening(_WEAKER, ("mutations",), words, evidence)
    elif old != new:
        yield Weakening(_CHANGED, ("mutations",), "changes more of the objects than before", evidence)


def _of_binding(old: Body, new: Body) -> Iterator[Weakening]:
    names = [str(side.get("policyName") or "") for side in (old, new)]
    if names[0] != names[1]:
        words = f"puts the policy {names[1]} into force and no longer {names[0]}: what that refused may pass"
        yield Weakening(_WEAKER, ("policyName",), words, {"before": names[0], "after": names[1]})
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
    evidence, path = {"before": sorted(old), "after": sorted(new)}, ("validationActions",)
    if _DENY in old - new:
        instead = f"only answered by {' and '.join(sorted(new))}" if new else "done"
        words = f"no longer refuses anything: what fails the policy is {instead}"
        yield Weakening(_WEAKER, path, words, evidence)
    elif _DENY in new - old:
        yield Weakening(_CHANGED, path, "now refuses what fails the policy", evidence)
    else:
        words = f"answers what fails the policy by {' and '.join(sorted(new)) or 'nothing'}"
        yield Weakening(_CHANGED, path, f"{words} instead of {' and '.join(sorted(old)) or 'nothing'}", evidence)


def _of_parameters(old: Body, new: Body) -> Iterator[Weakening]:
    action = "parameterNotFoundAction"
    if new.get(action) == "Allow" != old.get(action):
        words = "lets everything pass where its parameters are not found"
        yield Weakening(_WEAKER, ("paramRef", action), words)
    elif old.get(action) != new.get(action) and old and new:
        words = "now refuses what it matches where its parameters are not found"
        yield Weakening(_CHANGED, ("paramRef", action), words)
    before, after = ({key: value for key, value in side.items() if key != action} for side in (old, new))
    if before != after:
        words = "takes other parameters: what it refused by those of before may pass"
        yield Weakening(_WEAKER, ("paramRef",), words, {"before": before, "after": after})


CLAIMS = (
    # A new policy does nothing until a binding puts it into force.
    Claim(
        "WH-14",
        POLICIES,
        (
            "spec.auditAnnotations",
            "spec.failurePolicy",
            "spec.matchConditions",
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
        frozenset(BINDINGS),
        ("spec.matchResources", "spec.paramRef", "spec.policyName", "spec.validationActions"),
    ),
)
CHECK = Check("weaker policies", changes=_changes, claims=CLAIMS)
