"""Quotas that are too small for what runs, or that change what a namespace may use (QUO-01)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts, mapping
from provisioner.review.checks.governance.amounts import Amounts, amounts, texts
from provisioner.review.checks.governance.demand import demanded, reserved
from provisioner.review.workloads.pod_specs import PodSpec, pod_specs
from provisioner.values import Action, Content, Finding, GroupKind, ObjectRef, Plan, PlannedAction, Section, Severity

_REFUSES = ReviewRule("QUO-01", Section.AVAILABILITY, Severity.BREAKING)
_FULL = ReviewRule("QUO-01", Section.AVAILABILITY, Severity.DANGEROUS)
_CHANGED = ReviewRule("QUO-01", Section.AVAILABILITY, Severity.NOTABLE)
_QUOTA = GroupKind("", "ResourceQuota")
_WRITES = frozenset({Action.CREATE, Action.UPDATE, Action.REPLACE, Action.ADOPT, Action.RERUN})
_SCOPES = ("scopes", "scopeSelector")
_RANGE = GroupKind("", "LimitRange")
_COUNTED = {"cpu": "requests.cpu", "memory": "requests.memory"}
_PARTS = ("requests", "limits")


def _standing(state: StateFacts) -> Iterator[Finding]:
    """Quotas of the bundle that do not let all of it run. With scopes a quota counts a part of the pods: not told."""
    for ref, obj in state.named:
        spec = mapping(obj.get("spec"))
        if ref.group_kind == _QUOTA and (exceeded := _refuses(ref, spec, state)):
            hard, own = amounts(spec.get("hard")), demanded(state, ref.namespace)
            evidence = {"exceeded": exceeded, "hard": texts(hard), "asked": texts(own)}
            key = [exceeded, texts(hard)]
            yield _REFUSES.finding("refuses", ref, where=("spec", "hard"), key=key, **evidence)
        if ref.group_kind == _QUOTA and (lacking := _lacking(ref, spec, state)):
            open_by = {"lacking": [{"of": one, "asked": names} for one, names in lacking]}
            yield _FULL.finding("refuses-silent", ref, where=("spec", "hard"), key=open_by, **open_by)


def _lacking(ref: ObjectRef, spec: Mapping[str, Any], state: StateFacts) -> list[tuple[ObjectRef, list[str]]]:
    """Workloads of which a container leaves open what the quota counts; none where a LimitRange of the bundle may fill
    it in."""
    counted = sorted(_COUNTED.get(str(name), str(name)) for name in mapping(spec.get("hard")))
    wanted = [one for one in counted if one.partition(".")[0] in _PARTS and one.partition(".")[2] in ("cpu", "memory")]
    ranges = (it for it, _ in state.named if it.group_kind == _RANGE and it.namespace == ref.namespace)
    if not wanted or any(map(spec.get, _SCOPES)) or next(ranges, None):
        return []
    found = []
    for pod in pod_specs(state.objects):
        names = [one for one in wanted if pod.ref.namespace == ref.namespace and _is_open(pod, one)]
        if names:
            found.append((pod.ref, names))
    return found


def _is_open(pod: PodSpec, name: str) -> bool:
    part, _, resource = name.partition(".")
    return part not in mapping(pod.body.get("resources")) and any(
        resource not in dict(reserved(one.body, part)) for one in pod.containers()
    )


def _refuses(ref: ObjectRef, spec: Mapping[str, Any], state: StateFacts) -> list[str]:
    """Of what the bundle asks for more than the quota lets it have."""
    if any(map(spec.get, _SCOPES)):
        return []
    return _exceeded(amounts(spec.get("hard")), demanded(state, ref.namespace))


def _changes(facts: Facts) -> Iterator[Finding]:
    for planned in facts.plan.actions:
        if planned.ref.group_kind == _QUOTA and planned.action in _WRITES and planned.after is not None:
            yield from _of_quota(planned, mapping(planned.after.get("spec")), facts)


def _of_quota(planned: PlannedAction, spec: Mapping[str, Any], facts: Facts) -> Iterator[Finding]:
    before, ref, where = mapping((planned.before or {}).get("spec")), planned.ref, ("spec", "hard")
    hard, old = amounts(spec.get("hard")), amounts(before.get("hard"))
    lowered = {name: amount for name, amount in hard.items() if name not in old or amount < old[name]}
    used = amounts(mapping(mapping(facts.live.get(ref.identity)).get("status")).get("used"))
    differing = sorted(name for name in {*old, *hard} if old.get(name) != hard.get(name))
    if exceeded := _exceeded(lowered, used):
        evidence: dict[str, Any] = {"exceeded": exceeded, "hard": texts(hard), "used": texts(used)}
        yield _FULL.finding("full", ref, where=where, key=[exceeded, texts(lowered)], **evidence)
    elif planned.before is None:
        evidence = {"namespace": ref.namespace, "hard": texts(hard)}
        yield _CHANGED.finding("new" if hard else "new-without-limits", ref, where=where, key=texts(hard), **evidence)
    elif differing and not _refuses(planned.ref, spec, facts.state()):
        evidence = {"before": texts(old), "after": texts(hard)}
        params = {"namespace": ref.namespace, "differing": differing, **evidence}
        yield _CHANGED.finding("changed", ref, where=where, key=evidence, **params)
    for field in _SCOPES:
        if planned.before is not None and before.get(field) != spec.get(field):
            evidence = {"before": before.get(field), "after": spec.get(field)}
            yield _CHANGED.finding("scopes", ref, where=("spec", field), key=evidence, field=field, **evidence)


def _exceeded(hard: Amounts, needed: Amounts) -> list[str]:
    return sorted(name for name, amount in hard.items() if needed.get(name, Decimal()) > amount)


def _wants(content: Content, _: Plan) -> Iterator[ObjectRef]:
    """The quotas as they are, for what is used of them."""
    return (one.ref for one in content.manifests if one.ref.group_kind == _QUOTA)


CLAIMS = (Claim("QUO-01", frozenset({_QUOTA}), ("spec.hard", "spec.scopes", "spec.scopeSelector")),)
CHECK = Check("quotas", claims=CLAIMS, changes=_changes, standing=_standing, wants=_wants)
