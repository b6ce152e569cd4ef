"""What network policies let through or cut off, and doors that open beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.review.base.causes import OTHER_PODS
from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts, items, mapping, maps
from provisioner.review.checks.network.policy_reach import (
    EGRESS,
    INGRESS,
    PEERS,
    openness,
    restricts,
    wide_networks,
    wider_rules,
)
from provisioner.review.workloads.pod_specs import PodSpec, pod_specs, pods_of_policy, pods_of_service
from provisioner.values import Action, Finding, GroupKind, JsonObject, ObjectRef, Section, Severity

_ALL_PODS = ReviewRule("NP-01", Section.OBJECTS, Severity.DANGEROUS)
_REMOVED = ReviewRule("NP-02", Section.OBJECTS, Severity.NOTABLE)
_OPEN = ReviewRule("NP-03", Section.OBJECTS, Severity.NOTABLE)
_NO_DNS = ReviewRule("NP-04", Section.OBJECTS, Severity.DANGEROUS)
_SHUT = ReviewRule("NP-06", Section.OBJECTS, Severity.DANGEROUS)
_CLOSER = ReviewRule("NP-05", Section.OBJECTS, Severity.NOTABLE)
_ROUTE = ReviewRule("SV-02", Section.OBJECTS, Severity.NOTABLE)
_ON_NODE = ReviewRule("SV-03", Section.OBJECTS, Severity.DANGEROUS)

_POLICY = GroupKind("networking.k8s.io", "NetworkPolicy")
_SERVICE = GroupKind("", "Service")
_GATEWAY = "gateway.networking.k8s.io"
_ROUTES = frozenset(GroupKind(_GATEWAY, kind) for kind in ("HTTPRoute", "GRPCRoute", "TLSRoute"))
_GATEWAYS = GroupKind(_GATEWAY, "Gateway")
DNS_PORT = 53


def _standing(state: StateFacts) -> Iterator[Finding]:
    for ref, obj in state.named:
        if ref.group_kind == _POLICY:
            yield from _of_policy(ref, obj, state)
        elif ref.group_kind in _ROUTES:
            yield from _of_route(ref, obj)
        elif ref.group_kind == _GATEWAYS:
            yield from _of_gateway(ref, obj)
    for pod in pod_specs(state.objects):
        ports = [port for one in pod.containers() for port in maps(one.body.get("ports"))]
        numbers = sorted({str(port.get("hostPort") or port.get("containerPort")) for port in ports})
        if pod.body.get("hostNetwork") is True and numbers:
            yield _ON_NODE.finding(
                "host-network", pod.ref, where=(*pod.path, "hostNetwork"), key=numbers, ports=numbers
            )


def _of_policy(ref: ObjectRef, obj: JsonObject, state: StateFacts) -> Iterator[Finding]:
    spec = mapping(obj.get("spec"))
    selector = mapping(spec.get("podSelector"))
    if not selector and not _is_deny_all(spec) and _opens(spec):
        yield _ALL_PODS.finding("every-pod", ref, where=("spec", "podSelector"))
    for direction in PEERS:
        for index, rule in enumerate(maps(spec.get(direction))):
            if variant := openness(rule, direction):
                where, networks = ("spec", direction, index), wide_networks(rule, direction)
                key = [direction, index]
                yield _OPEN.finding(variant, ref, where=where, key=key, direction=direction, networks=networks)
    if shut := _shuts_in(obj, state):
        yield _SHUT.finding("shut-in", ref, where=("spec", INGRESS), key=[str(one) for one in shut], workloads=shut)
    if _denies_names(spec) and not _has_dns_elsewhere(ref, state):
        yield _NO_DNS.finding("no-dns" if maps(spec.get(EGRESS)) else "nothing", ref, where=("spec", "egress"))


def _shuts_in(policy: JsonObject, state: StateFacts) -> list[ObjectRef]:
    """The workloads that serve, by a Service of the bundle, and that nothing may reach: policies add up, so another
    one may let something in."""
    spec = mapping(policy.get("spec"))
    if not restricts(spec, INGRESS) or maps(spec.get(INGRESS)):
        return []
    serving = state.once("pods that serve and that no policy opens", _closed)
    return [pod.ref for pod in pods_of_policy(policy, serving)]


def _closed(state: StateFacts) -> list[PodSpec]:
    """The pods that a Service of the bundle leads to, and that no policy of the bundle lets anything reach."""
    policies = [obj for ref, obj in state.named if ref.group_kind == _POLICY]
    opening = [one for one in policies if maps(mapping(one.get("spec")).get(INGRESS))]
    services = [obj for ref, obj in state.named if ref.group_kind == _SERVICE]
    return [
        pod
        for pod in pod_specs(state.objects)
        if any(pods_of_service(one, [pod]) for one in services)
        and not any(pods_of_policy(one, [pod]) for one in opening)
    ]


def _is_deny_all(spec: Mapping[str, Any]) -> bool:
    return not maps(spec.get("ingress")) and not maps(spec.get("egress"))


def _opens(spec: Mapping[str, Any]) -> bool:
    return bool(maps(spec.get("ingress")) or maps(spec.get("egress")))


def _denies_names(spec: Mapping[str, Any]) -> bool:
    """Whether egress is restricted and no rule lets port 53 out."""
    return restricts(spec, EGRESS) and not any(_lets_names(rule) for rule in maps(spec.get("egress")))


def _lets_names(rule: Mapping[str, Any]) -> bool:
    ports = maps(rule.get("ports"))
    return not ports or any(_covers(one, DNS_PORT) for one in ports)


def _covers(port: Mapping[str, Any], number: int) -> bool:
    first, last = port.get("port"), port.get("endPort")
    if isinstance(first, str):
        return first.startswith("dns")
    return (
        first is None
        or first == number
        or (isinstance(last, int) and isinstance(first, int) and first <= number <= last)
    )


def _has_dns_elsewhere(ref: ObjectRef, state: StateFacts) -> bool:
    """Whether another policy of the bundle lets DNS out in the same namespace: policies add up."""
    return any(
        other.group_kind == _POLICY
        and other.namespace == ref.namespace
        and other.name != ref.name
        and any(_lets_names(rule) for rule in maps(mapping(obj.get("spec")).get("egress")))
        for obj in state.objects
        for other in (ObjectRef.of(obj),)
    )


def _of_route(ref: ObjectRef, obj: JsonObject) -> Iterator[Finding]:
    spec = mapping(obj.get("spec"))
    for host in sorted({str(one) for one in items(spec.get("hostnames"))} or {""}):
        variant = "host" if host else "every-host-of-gateway"
        yield _ROUTE.finding(variant, ref, where=("spec", "hostnames"), key=host, host=host)


def _of_gateway(ref: ObjectRef, obj: JsonObject) -> Iterator[Finding]:
    for index, listener in enumerate(maps(mapping(obj.get("spec")).get("listeners"))):
        host, port = str(listener.get("hostname") or ""), str(listener.get("port"))
        lacks = None if listener.get("tls") or listener.get("protocol") in {"TCP", "UDP"} else "tls"
        variant, where = "listener" if host else "listener-for-every-host", ("spec", "listeners", index)
        key = [host, bool(lacks)]
        yield _ROUTE.finding(variant, ref, where=where, key=key, host=host, port=port, lacks=lacks)


def _changes(facts: Facts) -> Iterator[Finding]:
    for planned in facts.plan.actions:
        if planned.ref.group_kind != _POLICY:
            continue
        if planned.action is Action.DELETE:
            yield _REMOVED.finding("deleted", planned.ref, key="gone")
        elif planned.action in {Action.UPDATE, Action.REPLACE} and planned.before and planned.after:
            yield from _of_rules(planned.ref, planned.before, planned.after)


def _of_rules(ref: ObjectRef, before: JsonObject, after: JsonObject) -> Iterator[Finding]:
    """Rules that were not there, directions no longer restricted, other pods; and rules that are gone."""
    old, new = mapping(before.get("spec")), mapping(after.get("spec"))
    changed = [f"new-rules-{direction}" for direction in PEERS if wider_rules(old, new, direction)]
    gone = [one for one in PEERS if restricts(old, one) and not restricts(new, one)]
    changed += [f"unrestricted-{one}" for one in gone]
    if old.get("podSelector") != new.get("podSelector"):
        changed.append(OTHER_PODS)
    if changed:
        yield _REMOVED.finding("loosened", ref, where=("spec",), key=changed, changes=changed)
    for direction in PEERS:
        if wider_rules(new, old, direction):
            yield _CLOSER.finding(f"lets-less-{direction}", ref, where=("spec", direction), key=["less", direction])


CHECK = Check("network-policies", changes=_changes, standing=_standing)
