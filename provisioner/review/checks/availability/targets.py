"""Autoscalers whose workload is not there, and monitors that find nothing to scrape any more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts, items, mapping, maps
from provisioner.review.workloads.pod_specs import pod_specs
from provisioner.review.workloads.workload_changes import target_of
from provisioner.selectors import selects
from provisioner.values import Action, Finding, GroupKind, JsonObject, ObjectRef, Section, Severity

_GONE = ReviewRule("AVL-08", Section.AVAILABILITY, Severity.DANGEROUS)
_NOT_SEEN = ReviewRule("AVL-08", Section.AVAILABILITY, Severity.NOTABLE)
_BLIND = ReviewRule("AVL-08", Section.AVAILABILITY, Severity.NOTABLE)
_SERVICE = GroupKind("", "Service")
_SERVICE_MONITOR = GroupKind("monitoring.coreos.com", "ServiceMonitor")
_POD_MONITOR = GroupKind("monitoring.coreos.com", "PodMonitor")
_ENDPOINTS = {_SERVICE_MONITOR: "endpoints", _POD_MONITOR: "podMetricsEndpoints"}
# What a monitor may find: the object, its labels, and the names of its ports.
_Scraped = tuple[ObjectRef, dict[str, object], frozenset[str]]


def _changes(facts: Facts) -> Iterator[Finding]:
    before = {ref.identity: obj for ref, obj in facts.previous_state().named}
    there = {ref.identity for ref, _ in facts.state().named}
    for ref, obj in facts.state().named:
        target = target_of(obj)
        if target is not None and target.identity not in there:
            yield from _of_target(ref, target, facts, was_target=target_of(before.get(ref.identity, {})))
        elif ref.group_kind in _ENDPOINTS and ref.identity in before:
            yield from _of_monitor(ref, before[ref.identity], obj, facts)


def _of_target(ref: ObjectRef, target: ObjectRef, facts: Facts, *, was_target: ObjectRef | None) -> Iterator[Finding]:
    """An autoscaler of what is not in the bundle; of what it named before, and others have, nothing is new."""
    action = next((one.action for one in facts.plan.actions if one.ref.identity == target.identity), None)
    exists = facts.around.exists.get(target.identity)
    is_as_before = was_target is not None and was_target.identity == target.identity
    rule, variant = _GONE, "gone"
    if action is not Action.DELETE:
        if action is not None or exists or is_as_before:  # it is kept, or others have it
            return
        left = {one.identity for one, _ in facts.previous_state().named}
        led_here = was_target is not None and was_target.identity in left
        rule = _GONE if exists is False or led_here else _NOT_SEEN
        variant = "absent" if exists is False else "not-in-bundle"
    yield rule.finding(variant, ref, where=("spec",), key=str(target), target=target)


def _of_monitor(ref: ObjectRef, old: JsonObject, new: JsonObject, facts: Facts) -> Iterator[Finding]:
    was, now = _scraped(ref, old, facts.previous_state()), _scraped(ref, new, facts.state())
    if was and not now:
        lost = [one for one, _, _ in was]
        yield _BLIND.finding("finds-nothing", ref, where=("spec", "selector"), key="nothing", lost=lost)
        return
    list_name = _ENDPOINTS[ref.group_kind]
    had, has = ({port for _, _, ports in side for port in ports} for side in (was, now))
    if not had.intersection(str(one.get("port")) for one in maps(mapping(old.get("spec")).get(list_name))):
        return
    for place, endpoint in enumerate(maps(mapping(new.get("spec")).get(list_name))):
        if (port := endpoint.get("port")) and port not in has:
            where, scraped = ("spec", list_name, place, "port"), [one for one, _, _ in now]
            yield _BLIND.finding("no-port", ref, where=where, key=["port", port], port=port, scraped=scraped)


def _scraped(ref: ObjectRef, monitor: JsonObject, state: StateFacts) -> list[_Scraped]:
    """The Services or pods of a state that a monitor selects, in its namespace or in those that it names."""
    spec = mapping(monitor.get("spec"))
    places = mapping(spec.get("namespaceSelector"))
    near = {str(one) for one in items(places.get("matchNames"))} or {ref.namespace}
    found = state.once("scraped services", _services) if ref.group_kind == _SERVICE_MONITOR else _pods(state)
    return [
        one
        for one in found
        if (places.get("any") is True or one[0].namespace in near) and selects(mapping(spec.get("selector")), one[1])
    ]


def _services(state: StateFacts) -> Sequence[_Scraped]:
    services = [(ref, obj) for ref, obj in state.named if ref.group_kind == _SERVICE]
    return [
        (
            ref,
            dict(mapping(mapping(obj.get("metadata")).get("labels"))),
            frozenset(str(port.get("name")) for port in maps(mapping(obj.get("spec")).get("ports"))),
        )
        for ref, obj in services
    ]


def _pods(state: StateFacts) -> Sequence[_Scraped]:
    return [
        (
            pod.ref,
            dict(pod.labels),
            frozenset(str(port.get("name")) for one in pod.containers() for port in maps(one.body.get("ports"))),
        )
        for pod in pod_specs(state.objects)
    ]


def _mentions(facts: Facts) -> Iterator[ObjectRef]:
    targets = (target_of(one.body) for one in facts.content.manifests)
    yield from (one for one in targets if one is not None)


CHECK = Check("targets", changes=_changes, mentions=_mentions)
