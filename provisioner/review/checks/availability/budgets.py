"""Disruption budgets that let no pod go, so that nodes cannot be drained, and those that protect no pod."""

from __future__ import annotations

from collections.abc import Iterator

from provisioner.review.base.facts import Check, Facts, Listing, ReviewRule, StateFacts, mapping
from provisioner.review.workloads.pod_specs import pod_specs
from provisioner.review.workloads.workload_changes import DAEMON_SET, SCALED, most_of, part_of, replicas_of
from provisioner.selectors import selects
from provisioner.values import Action, Finding, GroupKind, JsonObject, ObjectRef, PlannedAction, Section, Severity

_BLOCKS = ReviewRule("AVL-01", Section.AVAILABILITY, Severity.DANGEROUS)
_GUARDS_NOTHING = ReviewRule("AVL-01", Section.AVAILABILITY, Severity.NOTABLE)
_BUDGET = GroupKind("policy", "PodDisruptionBudget")
_SELECTOR = ("spec", "selector")
# What makes pods and has no scale that the controller of budgets could ask for.
_UNSCALED = frozenset({DAEMON_SET, GroupKind("batch", "Job"), GroupKind("batch", "CronJob")})
_BUDGETS = Listing("policy", "", "PodDisruptionBudget")


def _changes(facts: Facts) -> Iterator[Finding]:
    """Budgets that select no pod of the bundle, where they did before, or where they are new."""
    before = {ref.identity: obj for ref, obj in facts.previous_state().named}
    for ref, budget in facts.state().named:
        if ref.group_kind != _BUDGET or _selected(budget, facts.state()):
            continue
        old = before.get(ref.identity)
        if lost := _selected(old, facts.previous_state()) if old else []:
            yield _GUARDS_NOTHING.finding("selects-none-any-more", ref, where=_SELECTOR, key="none", lost=lost)
        elif (
            old is None
            and mapping(budget.get("spec")).get("selector")
            and (near := _workloads_near(ref, facts.state()))
        ):
            yield _GUARDS_NOTHING.finding("selects-none", ref, where=_SELECTOR, key="none", workloads=near)
    yield from _of_overlap_with_others(facts)


def _of_overlap_with_others(facts: Facts) -> Iterator[Finding]:
    """Budgets that are new or changed, beside those of the cluster that are not in the plan."""
    listed, planned = facts.around.lists.get(_BUDGETS), {one.ref.identity for one in facts.plan.actions}
    others = [one for one in (listed.objects if listed else ()) if ObjectRef.of(one).identity not in planned]
    own = [one.after for one in facts.plan.actions if _adds_budget(one) and one.after is not None]
    for budget in own:
        yield from _of_overlap(budget, others, facts.state())


def _standing(state: StateFacts) -> Iterator[Finding]:
    own = [obj for ref, obj in state.named if ref.group_kind == _BUDGET]
    named = {ObjectRef.of(one).identity for one in own}
    listed = state.around.lists.get(_BUDGETS)
    others = [one for one in (listed.objects if listed else ()) if ObjectRef.of(one).identity not in named]
    for budget in own:
        yield from _of_budget(budget, state)
        yield from _of_unscaled(budget, state)
    for budget in others:
        if any(_covered(budget, state)):
            yield from _of_budget(budget, state)
    for place, budget in enumerate(own):
        yield from _of_overlap(budget, own[place + 1 :], state)


def _of_overlap(budget: JsonObject, others: list[JsonObject], state: StateFacts) -> Iterator[Finding]:
    """The API server answers every eviction of a pod that more than one budget selects with an error."""
    ref, selected = ObjectRef.of(budget), _selected(budget, state)
    for other in others if selected else ():
        near = ObjectRef.of(other)
        if both := [one for one in _selected(other, state) if one in selected]:
            key = ["overlap", str(near)]
            yield _BLOCKS.finding("overlap", ref, where=_SELECTOR, key=key, other=near, workloads=both)


def _of_unscaled(budget: JsonObject, state: StateFacts) -> Iterator[Finding]:
    """How many pods there should be is asked of what makes them, but where the budget names the number that stays."""
    ref, spec = ObjectRef.of(budget), mapping(budget.get("spec"))
    field = "minAvailable" if spec.get("minAvailable") is not None else "maxUnavailable"
    value = spec.get(field)
    unscaled = [one for one in _selected(budget, state) if one.group_kind in _UNSCALED]
    if value is None or not unscaled or (field == "minAvailable" and isinstance(value, int)):
        return
    # Whoever drains a node leaves the pods of DaemonSets where they are.
    rule = _GUARDS_NOTHING if all(one.group_kind == DAEMON_SET for one in unscaled) else _BLOCKS
    yield rule.finding("unscaled", ref, where=("spec", field), key="unscaled", field=field, value=value, pods=unscaled)


def _selected(budget: JsonObject, state: StateFacts) -> list[ObjectRef]:
    """Whatever makes pods in a state that the budget selects."""
    ref, selector = ObjectRef.of(budget), mapping(budget.get("spec")).get("selector")

    def pods_of(it: StateFacts) -> list[ObjectRef]:
        pods = it.once("pod specs", lambda one: list(pod_specs(one.objects))) if selector is not None else []
        return [one.ref for one in pods if one.ref.namespace == ref.namespace and selects(selector, one.labels)]

    return state.once(f"pods of {ref}", pods_of)


def _workloads_near(ref: ObjectRef, state: StateFacts) -> list[ObjectRef]:
    return [one for one, _ in state.named if one.group_kind in SCALED and one.namespace == ref.namespace]


def _of_budget(budget: JsonObject, state: StateFacts) -> Iterator[Finding]:
    ref, spec = ObjectRef.of(budget), mapping(budget.get("spec"))
    covered = list(_covered(budget, state))
    total = sum(most_of(one, state.objects) for one in covered)
    field = "minAvailable" if spec.get("minAvailable") is not None else "maxUnavailable"
    # Both are rounded up, as the controller does it.
    wanted = part_of(spec.get(field), total, up=True)
    if wanted is None or (covered and not total):
        return
    if wanted > 0 if field == "maxUnavailable" else (not covered or wanted < total):
        return
    yield _BLOCKS.finding(
        "keeps-workloads" if covered else "keeps-pods",
        ref,
        where=("spec", field),
        key="blocks",
        pods=total,
        workloads=[ObjectRef.of(one) for one in covered],
        field=field,
        value=spec.get(field),
    )


def _covered(budget: JsonObject, state: StateFacts) -> Iterator[JsonObject]:
    """The workloads of a state whose pods the budget counts."""
    ref, selector = ObjectRef.of(budget), mapping(budget.get("spec")).get("selector")
    if selector is None:
        return
    labels = {pod.ref.identity: pod.labels for pod in pod_specs(state.objects)}
    for other, obj in state.named:
        is_near = other.group_kind in SCALED and other.namespace == ref.namespace
        if is_near and selects(selector, labels.get(other.identity, {})):
            yield obj


def _lists(facts: Facts) -> Iterator[Listing]:
    """Budgets of others matter where fewer pods run than before, or where one comes beside them."""
    if any(_shrinks(one) or _adds_budget(one) for one in facts.plan.actions):
        yield _BUDGETS


def _shrinks(planned: PlannedAction) -> bool:
    if planned.action is not Action.UPDATE or planned.ref.group_kind not in SCALED:
        return False
    before, after = planned.before, planned.after
    return before is not None and after is not None and replicas_of(after) < replicas_of(before)


def _adds_budget(planned: PlannedAction) -> bool:
    return planned.ref.group_kind == _BUDGET and planned.action in {Action.CREATE, Action.UPDATE}


CHECK = Check("disruption budgets", changes=_changes, standing=_standing, lists=_lists)
