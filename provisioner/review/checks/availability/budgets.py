"""Disruption budgets that let no pod go: nodes under them cannot be drained."""

from __future__ import annotations

from collections.abc import Iterator

from provisioner.review.base.facts import Check, Facts, Listing, ReviewRule, StateFacts, mapping
from provisioner.review.checks.availability.scale import SCALED, most_of, part_of, replicas_of
from provisioner.review.workloads.pod_specs import pod_specs
from provisioner.selectors import selects
from provisioner.values import Action, Finding, GroupKind, JsonObject, ObjectRef, PlannedAction, Section, Severity

_BLOCKS = ReviewRule("AVL-01", Section.AVAILABILITY, Severity.DANGEROUS)
_BUDGET = GroupKind("policy", "PodDisruptionBudget")
_BUDGETS = Listing("policy", "", "PodDisruptionBudget")


def _standing(state: StateFacts) -> Iterator[Finding]:
    own = [obj for ref, obj in state.named if ref.group_kind == _BUDGET]
    named = {ObjectRef.of(one).identity for one in own}
    listed = state.around.lists.get(_BUDGETS)
    others = [one for one in (listed.objects if listed else ()) if ObjectRef.of(one).identity not in named]
    for budget in own:
        yield from _of_budget(budget, state)
    for budget in others:
        if any(_covered(budget, state)):
            yield from _of_budget(budget, state)


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
    """Budgets of others matter where fewer pods run than before."""
    if any(_shrinks(one) for one in facts.plan.actions):
        yield _BUDGETS


def _shrinks(planned: PlannedAction) -> bool:
    if planned.action is not Action.UPDATE or planned.ref.group_kind not in SCALED:
        return False
    before, after = planned.before, planned.after
    return before is not None and after is not None and replicas_of(after) < replicas_of(before)


CHECK = Check("disruption budgets", standing=_standing, lists=_lists)
