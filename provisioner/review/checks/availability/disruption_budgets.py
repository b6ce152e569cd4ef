"""Disruption budgets that let no pod go, so that nodes cannot be drained, and those that protect no pod."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from provisioner.json_values import mapping, value_at
from provisioner.review.base.facts import Check, Facts, Listing, ReviewRule, StateFacts
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


def compare_budgets(facts: Facts) -> Iterator[Finding]:
    """Find budgets that select no pod of the bundle, where they did before, or where they are new."""
    state, previous = facts.state(), facts.previous_state()
    before = {ref.identity: obj for ref, obj in previous.named}
    for ref, budget in state.named:
        if ref.group_kind != _BUDGET or _select_pods(budget, state):
            continue
        old = before.get(ref.identity)
        if lost := _select_pods(old, previous) if old else []:
            yield _GUARDS_NOTHING.finding("selects-none-any-more", ref, where=_SELECTOR, key="none", lost=lost)
        near = [other for other, _ in state.named if other.group_kind in SCALED and other.namespace == ref.namespace]
        if old is None and value_at(budget, "spec", "selector") and near:
            yield _GUARDS_NOTHING.finding("selects-none", ref, where=_SELECTOR, key="none", workloads=near)
    # Budgets that are new or changed, beside those of the cluster that are not in the plan.
    listed, in_plan = facts.around.lists.get(_BUDGETS), {planned.ref.identity for planned in facts.plan.actions}
    others = [obj for obj in (listed.objects if listed else ()) if ObjectRef.of(obj).identity not in in_plan]
    for planned in facts.plan.actions:
        if _adds_budget(planned) and planned.after is not None:
            yield from _judge_overlap(planned.after, others, state)


def judge_budgets(state: StateFacts) -> Iterator[Finding]:
    own = [obj for ref, obj in state.named if ref.group_kind == _BUDGET]
    identities = {ObjectRef.of(budget).identity for budget in own}
    listed = state.around.lists.get(_BUDGETS)
    for budget in own:
        yield from _judge_budget(budget, state)
        # How many pods there should be is asked of what makes them, but where the budget names the number that stays.
        ref, spec = ObjectRef.of(budget), mapping(budget.get("spec"))
        field = "minAvailable" if spec.get("minAvailable") is not None else "maxUnavailable"
        value = spec.get(field)
        pods = [workload for workload in _select_pods(budget, state) if workload.group_kind in _UNSCALED]
        if value is not None and pods and not (field == "minAvailable" and isinstance(value, int)):
            # Whoever drains a node leaves the pods of DaemonSets where they are.
            rule = _GUARDS_NOTHING if all(workload.group_kind == DAEMON_SET for workload in pods) else _BLOCKS
            where = ("spec", field)
            yield rule.finding("unscaled", ref, where=where, key="unscaled", field=field, value=value, pods=pods)
    for budget in listed.objects if listed else ():
        if ObjectRef.of(budget).identity not in identities and any(_count_workloads(budget, state)):
            yield from _judge_budget(budget, state)
    for place, budget in enumerate(own):
        yield from _judge_overlap(budget, own[place + 1 :], state)


def _judge_overlap(budget: JsonObject, others: Sequence[JsonObject], state: StateFacts) -> Iterator[Finding]:
    """The API server answers every eviction of a pod that more than one budget selects with an error."""
    ref, selected = ObjectRef.of(budget), _select_pods(budget, state)
    for other in others if selected else ():
        near = ObjectRef.of(other)
        if both := [workload for workload in _select_pods(other, state) if workload in selected]:
            key = ["overlap", str(near)]
            yield _BLOCKS.finding("overlap", ref, where=_SELECTOR, key=key, other=near, workloads=both)


def _judge_budget(budget: JsonObject, state: StateFacts) -> Iterator[Finding]:
    ref, spec = ObjectRef.of(budget), mapping(budget.get("spec"))
    workloads = list(_count_workloads(budget, state))
    total = sum(most_of(workload, state.objects) for workload in workloads)
    field = "minAvailable" if spec.get("minAvailable") is not None else "maxUnavailable"
    # Both are rounded up, as the controller does it.
    wanted = part_of(spec.get(field), total, up=True)
    if wanted is None or (workloads and not total):
        return
    if wanted > 0 if field == "maxUnavailable" else (not workloads or wanted < total):
        return
    yield _BLOCKS.finding(
        "keeps-workloads" if workloads else "keeps-pods",
        ref,
        where=("spec", field),
        key="blocks",
        pods=total,
        workloads=[ObjectRef.of(workload) for workload in workloads],
        field=field,
        value=spec.get(field),
    )


def _select_pods(budget: JsonObject, state: StateFacts) -> list[ObjectRef]:
    """Return whatever makes pods in a state that the budget selects."""
    ref, selector = ObjectRef.of(budget), value_at(budget, "spec", "selector")

    def find_pods(state: StateFacts) -> list[ObjectRef]:
        pods = state.once("pod specs", lambda facts: list(pod_specs(facts.objects))) if selector is not None else []
        return [pod.ref for pod in pods if pod.ref.namespace == ref.namespace and selects(selector, pod.labels)]

    return state.once(f"pods of {ref}", find_pods)


def _count_workloads(budget: JsonObject, state: StateFacts) -> Iterator[JsonObject]:
    """Yield the workloads of a state whose pods the budget counts."""
    ref, selector = ObjectRef.of(budget), value_at(budget, "spec", "selector")
    if selector is None:
        return
    labels = {pod.ref.identity: pod.labels for pod in pod_specs(state.objects)}
    for other, obj in state.named:
        is_near = other.group_kind in SCALED and other.namespace == ref.namespace
        if is_near and selects(selector, labels.get(other.identity, {})):
            yield obj


def list_budgets(facts: Facts) -> Iterator[Listing]:
    """Budgets of others matter where fewer pods run than before, or where one comes beside them."""
    for planned in facts.plan.actions:
        before, after = planned.before, planned.after
        is_scaled = planned.action is Action.UPDATE and planned.ref.group_kind in SCALED and before and after
        if _adds_budget(planned) or (is_scaled and replicas_of(after or {}) < replicas_of(before or {})):
            yield _BUDGETS
            return


def _adds_budget(planned: PlannedAction) -> bool:
    return planned.ref.group_kind == _BUDGET and planned.action in {Action.CREATE, Action.UPDATE}


CHECK = Check("disruption budgets", changes=compare_budgets, standing=judge_budgets, lists=list_budgets)
