"""Quotas and limit ranges: those that are too small for what runs or change what a namespace may use, and those of the
cluster that leave no room for what the change adds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from provisioner.builtin import quantity
from provisioner.json_values import mapping, maps, value_at
from provisioner.rbac import plural_of
from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, Listing, ReviewRule, StateFacts, said
from provisioner.review.workloads.pod_specs import PodSpec, pod_specs
from provisioner.review.workloads.workload_changes import DAEMON_SET, SCALED, most_of
from provisioner.values import Action, Content, Finding, GroupKind, JsonObject, ObjectRef, Plan, Section, Severity

_QUOTA_REFUSES = ReviewRule("QUO-01", Section.AVAILABILITY, Severity.BREAKING)
_QUOTA_FULL = ReviewRule("QUO-01", Section.AVAILABILITY, Severity.DANGEROUS)
_QUOTA_CHANGED = ReviewRule("QUO-01", Section.AVAILABILITY, Severity.NOTABLE)
_RANGE_REFUSES = ReviewRule("QUO-02", Section.AVAILABILITY, Severity.BREAKING)
_RANGE_CHANGED = ReviewRule("QUO-02", Section.AVAILABILITY, Severity.NOTABLE)
_NO_ROOM = ReviewRule("QUO-03", Section.AVAILABILITY, Severity.BREAKING)
_ROOM_UNKNOWN = ReviewRule("QUO-03", Section.AVAILABILITY, Severity.UNKNOWN)

_QUOTA, _RANGE = GroupKind("", "ResourceQuota"), GroupKind("", "LimitRange")
_CLAIM, _SERVICE, _NAMESPACE = (GroupKind("", kind) for kind in ("PersistentVolumeClaim", "Service", "Namespace"))
_WRITES = frozenset({Action.CREATE, Action.UPDATE, Action.REPLACE, Action.ADOPT, Action.RERUN})
_ADDS = _WRITES - {Action.ADOPT}
_SCOPES = ("scopes", "scopeSelector")
_COMPUTE = ("cpu", "memory")
_PARTS = ("requests", "limits")
_RANGE_PARTS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
# What quotas count by a short name, beside `count/`.
_SHORT = frozenset(
    {"configmaps", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas", "secrets", "services"}
)
_RESERVED = frozenset({"cpu", "memory", "ephemeral-storage"})
# Amounts by the names that quotas give them: requests.cpu, pods, count/jobs.batch.
Amounts = Mapping[str, Decimal]
_Refused = tuple[tuple[str, Any], ...]


def _read_amounts(value: object) -> dict[str, Decimal]:
    """Return those of a map of quantities that can be read."""
    found = ((str(name), quantity(raw)) for name, raw in mapping(value).items())
    return {name: amount for name, amount in found if amount is not None}


def _write_amounts(amounts: Amounts) -> dict[str, str]:
    """Return amounts as people write them: bytes of memory in the units of Kubernetes."""
    return {name: _write_amount(amount) for name, amount in sorted(amounts.items())}


def _write_amount(amount: Decimal) -> str:
    for unit, size in (("Gi", 2**30), ("Mi", 2**20)):
        if amount and amount >= size and amount % size == 0:
            return f"{amount / size:f}{unit}"
    plain = f"{amount:f}"
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def _sum_demand(state: StateFacts, namespace: str) -> Amounts:
    """Return the least that runs there if all of the bundle runs.

    Of Jobs nobody knows how many run at a time: one pod each. Of a DaemonSet it is one pod too, for how many nodes
    there are is not known here.
    """
    found: dict[str, Decimal] = defaultdict(Decimal)
    bodies = {ref.identity: obj for ref, obj in state.named if ref.namespace == namespace}
    for pod in pod_specs(state.objects):
        if pod.ref.identity in bodies:
            is_scaled = pod.ref.group_kind in SCALED and pod.ref.group_kind != DAEMON_SET
            count = most_of(bodies[pod.ref.identity], state.objects) if is_scaled else 1
            count = 0 if pod.ref.kind == "PodTemplate" else count
            _add(found, {"pods": Decimal(1), **_sum_pod(pod.body)}, count)
    for obj in bodies.values():
        _add(found, _count_object(obj), 1)
    return dict(found)


def _add(found: dict[str, Decimal], amounts: Amounts, times: int) -> None:
    for name, amount in amounts.items():
        found[name] += amount * times


def _sum_pod(spec: Mapping[str, Any]) -> Amounts:
    """Return what a pod reserves: its containers together, or an init container that asks for more; plus overhead."""
    found: dict[str, Decimal] = {}
    for part in _PARTS:
        together: dict[str, Decimal] = defaultdict(Decimal)
        alone: dict[str, Decimal] = defaultdict(Decimal)
        for container in maps(spec.get("containers")):
            _add(together, _read_reserved(container, part), 1)
        for container in maps(spec.get("initContainers")):
            amounts = _read_reserved(container, part)
            if container.get("restartPolicy") == "Always":
                _add(together, amounts, 1)
            else:
                alone.update({name: max(amount, alone[name]) for name, amount in amounts.items()})
        overhead = _read_amounts(spec.get("overhead"))
        for name in {*together, *alone}:
            found[f"{part}.{name}"] = max(together[name], alone[name]) + overhead.get(name, Decimal())
    return found | {name: found[f"requests.{name}"] for name in _RESERVED if f"requests.{name}" in found}


def _read_reserved(container: Mapping[str, Any], part: str) -> dict[str, Decimal]:
    """Return what a container requests, or what it is limited to; for a request that is not there its limit stands."""
    resources = mapping(container.get("resources"))
    limits = mapping(resources.get("limits"))
    return _read_amounts(limits if part == "limits" else {**limits, **mapping(resources.get("requests"))})


def _count_object(obj: JsonObject) -> Amounts:
    """Return what an object counts for by itself."""
    ref, spec = ObjectRef.of(obj), mapping(obj.get("spec"))
    plural = plural_of(ref.kind)
    found = {f"count/{plural}.{ref.group}" if ref.group else f"count/{plural}": Decimal(1)}
    if not ref.group and plural in _SHORT:
        found[plural] = Decimal(1)
    if ref.group_kind == _CLAIM:
        asked = quantity(value_at(spec, "resources", "requests", "storage"))
        found |= {"requests.storage": asked} if asked is not None else {}
    if ref.group_kind == _SERVICE and spec.get("type") in ("LoadBalancer", "NodePort"):
        found["services.nodeports"] = Decimal(len(maps(spec.get("ports"))))
        found |= {"services.loadbalancers": Decimal(1)} if spec.get("type") == "LoadBalancer" else {}
    return found


def judge_quotas(state: StateFacts) -> Iterator[Finding]:
    """Find quotas of the bundle that do not let all of it run, or none of what leaves open what they count."""
    where = ("spec", "hard")
    for ref, obj in state.named:
        if ref.group_kind != _QUOTA:
            continue
        spec = mapping(obj.get("spec"))
        hard = _read_amounts(spec.get("hard"))
        params: dict[str, Any]
        if exceeded := _find_refused(ref, spec, state):
            key: Any = [exceeded, _write_amounts(hard)]
            asked = _write_amounts(_sum_demand(state, ref.namespace))
            params = {"exceeded": exceeded, "hard": _write_amounts(hard), "asked": asked}
            yield _QUOTA_REFUSES.finding("refuses", ref, where=where, key=key, **params)
        # A LimitRange of the bundle may fill in what containers leave open.
        has_range = any(other.group_kind == _RANGE and other.namespace == ref.namespace for other, _ in state.named)
        if has_range or any(map(spec.get, _SCOPES)):
            continue
        names = (f"requests.{name}" if name in _COMPUTE else str(name) for name in mapping(spec.get("hard")))
        counted = sorted(
            name for name in names if name.partition(".")[0] in _PARTS and name.partition(".")[2] in _COMPUTE
        )
        pods = [pod for pod in pod_specs(state.objects) if pod.ref.namespace == ref.namespace]
        lacking = [{"of": pod.ref, "asked": [name for name in counted if _is_open(pod, name)]} for pod in pods]
        if lacking := [entry for entry in lacking if entry["asked"]]:
            params = {"lacking": lacking}
            yield _QUOTA_FULL.finding("refuses-silent", ref, where=where, key=params, **params)


def _is_open(pod: PodSpec, name: str) -> bool:
    part, _, resource = name.partition(".")
    return part not in mapping(pod.body.get("resources")) and any(
        resource not in _read_reserved(container.body, part) for container in pod.containers()
    )


def _find_refused(ref: ObjectRef, spec: Mapping[str, Any], state: StateFacts) -> list[str]:
    """Return of what the bundle asks for more than the quota lets it have.

    With scopes a quota counts a part of the pods: not told.
    """
    if any(map(spec.get, _SCOPES)):
        return []
    return _find_exceeded(_read_amounts(spec.get("hard")), _sum_demand(state, ref.namespace))


def _find_exceeded(hard: Amounts, needed: Amounts) -> list[str]:
    return sorted(name for name, amount in hard.items() if needed.get(name, Decimal()) > amount)


def compare_quotas(facts: Facts) -> Iterator[Finding]:
    """Find quotas that change what a namespace may use, or are full as they are in the cluster (QUO-01)."""
    for planned in facts.plan.actions:
        ref, where = planned.ref, ("spec", "hard")
        if ref.group_kind != _QUOTA or planned.action not in _WRITES or planned.after is None:
            continue
        before, spec = (mapping(mapping(side).get("spec")) for side in (planned.before, planned.after))
        old, hard = _read_amounts(before.get("hard")), _read_amounts(spec.get("hard"))
        lowered = {name: amount for name, amount in hard.items() if name not in old or amount < old[name]}
        used = _read_amounts(mapping(mapping(facts.live.get(ref.identity)).get("status")).get("used"))
        differing = sorted(name for name in {*old, *hard} if old.get(name) != hard.get(name))
        params: dict[str, Any]
        if exceeded := _find_exceeded(lowered, used):
            params = {"exceeded": exceeded, "hard": _write_amounts(hard), "used": _write_amounts(used)}
            yield _QUOTA_FULL.finding("full", ref, where=where, key=[exceeded, _write_amounts(lowered)], **params)
        elif planned.before is None:
            written, variant = _write_amounts(hard), "new" if hard else "new-without-limits"
            yield _QUOTA_CHANGED.finding(variant, ref, where=where, key=written, namespace=ref.namespace, hard=written)
        elif differing and not _find_refused(ref, spec, facts.state()):
            key = {"before": _write_amounts(old), "after": _write_amounts(hard)}
            params = {"namespace": ref.namespace, "differing": differing, **key}
            yield _QUOTA_CHANGED.finding("changed", ref, where=where, key=key, **params)
        for field in _SCOPES:
            if planned.before is not None and before.get(field) != spec.get(field):
                sides = {"before": before.get(field), "after": spec.get(field)}
                yield _QUOTA_CHANGED.finding("scopes", ref, where=("spec", field), key=sides, field=field, **sides)


def want_quotas(content: Content, _: Plan) -> Iterator[ObjectRef]:
    """Want the quotas as they are, for what is used of them."""
    return (manifest.ref for manifest in content.manifests if manifest.ref.group_kind == _QUOTA)


def compare_room(facts: Facts) -> Iterator[Finding]:
    """Find quotas of the cluster that leave no room for what the change adds, which would be refused (QUO-03).

    What counts is the difference: what a quota already counts for the objects as they are is in use, and stays or goes.
    """
    own = {planned.ref.identity for planned in facts.plan.actions}
    for namespace, added in facts.once("what quotas have to have room for", _sum_added).items():
        listed = facts.around.lists.get(_list_of(_QUOTA, namespace))
        if listed is None:
            continue
        ref = ObjectRef("", "v1", "Namespace", "", namespace)
        if not listed.is_whole:
            variant, problem = "unknown" if listed.problem else "too-many", listed.problem
            yield _ROOM_UNKNOWN.finding(variant, ref, key=namespace, namespace=namespace, problem=problem)
            continue
        for obj in listed.objects:
            quota, spec = ObjectRef.of(obj), mapping(obj.get("spec"))
            if quota.identity in own or any(map(spec.get, _SCOPES)):
                continue
            # What is used and what is added together, against what there may be.
            hard, used = _read_amounts(spec.get("hard")), _read_amounts(value_at(obj, "status", "used"))
            needed = {name: used[name] + added[name] for name in hard if name in used and added.get(name, 0) > 0}
            if exceeded := sorted(name for name, amount in needed.items() if amount > hard[name]):
                yield _NO_ROOM.finding(
                    "no-room",
                    ref,
                    key=[said(quota), exceeded],
                    quota=quota,
                    exceeded=exceeded,
                    hard=_write_amounts(hard),
                    used=_write_amounts(used),
                    added=_write_amounts(added),
                )
            yield from _find_silent_pods(ref, quota, hard, facts)


def _find_silent_pods(ref: ObjectRef, quota: ObjectRef, hard: Amounts, facts: Facts) -> Iterator[Finding]:
    """Find pods that do not say what a quota counts, and get it from no limit range: none of them is let in."""
    counted = [(part, name) for part in _PARTS for name in _COMPUTE if f"{part}.{name}" in hard]
    counted += [("requests", name) for name in _COMPUTE if name in hard and ("requests", name) not in counted]
    given = _find_defaults(facts, ref.name) if counted else None
    if given is None:
        return
    # A limit stands for a request that is not there.
    open_parts = [
        (part, name)
        for part, name in counted
        if (part, name) not in given and not (part == "requests" and ("limits", name) in given)
    ]
    written = {planned.ref.identity for planned in facts.plan.actions if planned.action in _ADDS}
    lacking: dict[str, list[str]] = {}
    for pod in pod_specs(facts.state().objects):
        if pod.ref.identity in written and pod.ref.namespace == ref.name:
            containers = [*maps(pod.body.get("containers")), *maps(pod.body.get("initContainers"))]
            missing = [
                f"{part}.{name}"
                for part, name in open_parts
                if any(name not in _read_reserved(container, part) for container in containers)
            ]
            lacking |= {said(pod.ref): missing} if missing else {}
    if lacking:
        stated = sorted({name for missing in lacking.values() for name in missing})
        lacking = dict(sorted(lacking.items()))
        key = [said(quota), lacking]
        yield _NO_ROOM.finding("not-stated", ref, key=key, quota=quota, stated=stated, missing=lacking)


def _find_defaults(facts: Facts, namespace: str) -> set[tuple[str, str]] | None:
    """Return what limit ranges of cluster and bundle give containers that say nothing; None where nobody knows."""
    listed = facts.around.lists.get(_list_of(_RANGE, namespace))
    if listed is None or not listed.is_whole:
        return None
    own = [obj for ref, obj in facts.state().named if ref.kind == "LimitRange" and ref.namespace == namespace]
    found: set[tuple[str, str]] = set()
    for obj in (*listed.objects, *own):
        for limits in maps(value_at(obj, "spec", "limits")):
            if limits.get("type") == "Container":
                # A maximum is a limit for who has none.
                for key in ("default", "max", "defaultRequest", "min"):
                    part = "limits" if key in ("default", "max") else "requests"
                    found |= {(part, str(name)) for name in mapping(limits.get(key))}
    return found


def _sum_added(facts: Facts) -> dict[str, dict[str, Decimal]]:
    """Return what each namespace that is there already has to have room for besides.

    Of what exists and is somebody else's nothing is known here that everybody may know: it is left out on both sides.
    """
    if facts.is_offline:
        return {}
    actions, state = facts.plan.actions, facts.state()
    created = [planned.ref for planned in actions if planned.action is Action.CREATE]
    new_namespaces = {ref.name for ref in created if ref.group_kind == _NAMESPACE}
    new = (planned.after for planned in actions if planned.action in _ADDS | {Action.NONE})
    old = (planned.before for planned in actions if planned.action is not Action.ADOPT)
    after, before = (replace(state, objects=tuple(obj for obj in side if obj is not None)) for side in (new, old))
    found: dict[str, dict[str, Decimal]] = {}
    for namespace in sorted({ref.namespace for ref, _ in after.named if ref.namespace} - new_namespaces):
        known = _sum_demand(before, namespace)
        more = {name: amount - known.get(name, Decimal()) for name, amount in _sum_demand(after, namespace).items()}
        found |= {namespace: more} if any(amount > 0 for amount in more.values()) else {}
    return found


def _list_of(kind: GroupKind, namespace: str) -> Listing:
    return Listing("", "v1", kind.kind, namespace)


def list_quotas(facts: Facts) -> Iterator[Listing]:
    for namespace in facts.once("what quotas have to have room for", _sum_added):
        yield from (_list_of(kind, namespace) for kind in (_QUOTA, _RANGE))


def judge_limit_ranges(state: StateFacts) -> Iterator[Finding]:
    """Find limit ranges that refuse pods or claims of the bundle (QUO-02)."""
    for ref, obj in state.named:
        for index, limits in enumerate(maps(value_at(obj, "spec", "limits")) if ref.group_kind == _RANGE else []):
            refused = [dict(entry) for entry in dict.fromkeys(_find_beyond(limits, state, ref.namespace))]
            if refused:
                where, kind = ("spec", "limits", index), str(limits.get("type"))
                yield _RANGE_REFUSES.finding(
                    "refuses", ref, where=where, key=[kind, refused], type=kind, refused=refused
                )


def _find_beyond(limits: Mapping[str, Any], state: StateFacts, namespace: str) -> Iterator[_Refused]:
    """Yield what each object asks for beyond the limits, with the container that does."""
    for who, most, least in _find_limited(str(limits.get("type")), state, namespace):
        for name, raw in mapping(limits.get("max")).items():
            allowed = quantity(raw)
            if allowed is not None and name in most and most[name] > allowed:
                yield (*who, ("resource", name), ("bound", "max"), ("amount", str(raw)))
        for name, raw in mapping(limits.get("min")).items():
            needed = quantity(raw)
            if needed is not None and name in least and least[name] < needed:
                yield (*who, ("resource", name), ("bound", "min"), ("amount", str(raw)))


def _find_limited(kind: str, state: StateFacts, namespace: str) -> Iterator[tuple[_Refused, Amounts, Amounts]]:
    """Yield who asks for how much at most and at least, of claims, containers or pods.

    A request stands for a limit that is not there, for it cannot be above it.
    """
    for ref, obj in state.named if kind == _CLAIM.kind else ():
        if ref.group_kind == _CLAIM and ref.namespace == namespace:
            asked = _read_reserved(mapping(obj.get("spec")), "requests")
            yield (("of", ref),), asked, asked
    for pod in pod_specs(state.objects):
        if pod.ref.namespace != namespace:
            continue
        if kind == "Container":
            for container in pod.containers():
                requests, bounds = _read_reserved(container.body, "requests"), _read_reserved(container.body, "limits")
                yield (("of", pod.ref), ("container", container.name)), requests | bounds, requests
        elif kind == "Pod":
            most, least = defaultdict[str, Decimal](Decimal), defaultdict[str, Decimal](Decimal)
            for body in maps(pod.body.get("containers")):
                requests = _read_reserved(body, "requests")
                _add(least, requests, 1)
                _add(most, requests | _read_reserved(body, "limits"), 1)
            yield (("of", pod.ref),), most, least


def compare_limit_ranges(facts: Facts) -> Iterator[Finding]:
    """Find limit ranges that change what pods get that ask for nothing (QUO-02)."""
    for planned in facts.plan.actions:
        ref = planned.ref
        if ref.group_kind != _RANGE or planned.action not in _WRITES or planned.after is None:
            continue
        old, new = (_flatten_limits(mapping(side)) for side in (planned.before, planned.after))
        if old != new:
            variant, key = "new" if planned.before is None else "changed", {"before": old, "after": new}
            differing = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
            params: dict[str, Any] = {"namespace": ref.namespace, "differing": differing, **key}
            yield _RANGE_CHANGED.finding(variant, ref, where=("spec", "limits"), key=key, **params)


def _flatten_limits(obj: Mapping[str, Any]) -> dict[str, str]:
    """Return each limit by its kind, part and resource: `Container max cpu`."""
    return {
        f"{limits.get('type')} {part} {name}": str(value)
        for limits in maps(value_at(obj, "spec", "limits"))
        for part in _RANGE_PARTS
        for name, value in mapping(limits.get(part)).items()
    }


_QUOTA_CLAIMS = (Claim("QUO-01", frozenset({_QUOTA}), ("spec.hard", "spec.scopes", "spec.scopeSelector")),)
FULL_QUOTAS_CHECK = Check("full quotas", changes=compare_room, lists=list_quotas)
LIMIT_RANGES_CHECK = Check(
    "limit ranges",
    claims=(Claim("QUO-02", frozenset({_RANGE}), ("spec.limits",)),),
    changes=compare_limit_ranges,
    standing=judge_limit_ranges,
)
QUOTAS_CHECK = Check("quotas", claims=_QUOTA_CLAIMS, changes=compare_quotas, standing=judge_quotas, wants=want_quotas)
