"""What network policies let through or cut off, from where, and doors that open beside them."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from provisioner.json_values import items, mapping, maps, value_at
from provisioner.review.base.causes import OTHER_PODS
from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts
from provisioner.review.workloads.pod_specs import PodSpec, pod_specs, pods_of_policy, pods_of_service
from provisioner.values import Action, Finding, GroupKind, JsonObject, ObjectRef, Section, Severity

_ALL_PODS = ReviewRule("NP-01", Section.OBJECTS, Severity.DANGEROUS)
_REMOVED = ReviewRule("NP-02", Section.OBJECTS, Severity.NOTABLE)
_OPEN = ReviewRule("NP-03", Section.OBJECTS, Severity.NOTABLE)
_NO_DNS = ReviewRule("NP-04", Section.OBJECTS, Severity.DANGEROUS)
_CLOSER = ReviewRule("NP-05", Section.OBJECTS, Severity.NOTABLE)
_SHUT = ReviewRule("NP-06", Section.OBJECTS, Severity.DANGEROUS)
_ROUTE = ReviewRule("SV-02", Section.OBJECTS, Severity.NOTABLE)
_ON_NODE = ReviewRule("SV-03", Section.OBJECTS, Severity.DANGEROUS)

_POLICY = GroupKind("networking.k8s.io", "NetworkPolicy")
_SERVICE = GroupKind("", "Service")
_GATEWAY_GROUP = "gateway.networking.k8s.io"
_ROUTES = frozenset(GroupKind(_GATEWAY_GROUP, kind) for kind in ("HTTPRoute", "GRPCRoute", "TLSRoute"))
_GATEWAY = GroupKind(_GATEWAY_GROUP, "Gateway")
DNS_PORT = 53
INGRESS, EGRESS = "ingress", "egress"
PEERS = {INGRESS: "from", EGRESS: "to"}
_TYPES = {INGRESS: "Ingress", EGRESS: "Egress"}
# A block with a shorter prefix than this is no network of somebody, but a good part of all of them.
_WIDE_PREFIX = {4: 8, 6: 16}
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_Body = Mapping[str, Any]


def restricts(spec: _Body, direction: str) -> bool:
    """Whether a policy restricts a direction at all; without `policyTypes`, egress where it has rules for it."""
    if "policyTypes" in spec:
        return _TYPES[direction] in items(spec.get("policyTypes"))
    return direction == INGRESS or direction in spec


def judge_policies(state: StateFacts) -> Iterator[Finding]:
    for ref, obj in state.named:
        spec = mapping(obj.get("spec"))
        if ref.group_kind == _POLICY:
            yield from _judge_policy(ref, obj, state)
        elif ref.group_kind in _ROUTES:
            for host in sorted({str(name) for name in items(spec.get("hostnames"))} or {""}):
                variant = "host" if host else "every-host-of-gateway"
                yield _ROUTE.finding(variant, ref, where=("spec", "hostnames"), key=host, host=host)
        elif ref.group_kind == _GATEWAY:
            for index, listener in enumerate(maps(spec.get("listeners"))):
                host, port = str(listener.get("hostname") or ""), str(listener.get("port"))
                lacks = None if listener.get("tls") or listener.get("protocol") in {"TCP", "UDP"} else "tls"
                variant, where = "listener" if host else "listener-for-every-host", ("spec", "listeners", index)
                key = [host, bool(lacks)]
                yield _ROUTE.finding(variant, ref, where=where, key=key, host=host, port=port, lacks=lacks)
    for pod in pod_specs(state.objects):
        ports = [port for container in pod.containers() for port in maps(container.body.get("ports"))]
        numbers = sorted({str(port.get("hostPort") or port.get("containerPort")) for port in ports})
        if pod.body.get("hostNetwork") is True and numbers:
            on_node = (*pod.path, "hostNetwork")
            yield _ON_NODE.finding("host-network", pod.ref, where=on_node, key=numbers, ports=numbers)


def _judge_policy(ref: ObjectRef, policy: JsonObject, state: StateFacts) -> Iterator[Finding]:
    spec = mapping(policy.get("spec"))
    ingress, egress = maps(spec.get(INGRESS)), maps(spec.get(EGRESS))
    if not mapping(spec.get("podSelector")) and (ingress or egress):
        yield _ALL_PODS.finding("every-pod", ref, where=("spec", "podSelector"))
    for direction, peers_field in PEERS.items():
        for index, rule in enumerate(maps(spec.get(direction))):
            peers = maps(rule.get(peers_field))
            networks = list(_find_networks(peers))
            wide = sorted(str(network) for network in networks if network.prefixlen < _WIDE_PREFIX[network.version])
            if variant := _find_openness(peers, networks, has_wide=bool(wide)):
                where, key = ("spec", direction, index), [direction, index]
                yield _OPEN.finding(variant, ref, where=where, key=key, direction=direction, networks=wide)
    if restricts(spec, INGRESS) and not ingress:
        # Nothing may reach workloads that serve: policies add up, so another one may let something in.
        serving = state.once("pods that serve and that no policy opens", _find_closed_pods)
        if shut := [pod.ref for pod in pods_of_policy(policy, serving)]:
            yield _SHUT.finding("shut-in", ref, where=("spec", INGRESS), key=list(map(str, shut)), workloads=shut)
    if restricts(spec, EGRESS) and not any(map(_lets_names_out, egress)):
        # Another policy of the bundle may let DNS out in the same namespace: policies add up.
        others = [
            mapping(obj.get("spec"))
            for other, obj in state.named
            if other.group_kind == _POLICY and other.namespace == ref.namespace and other.name != ref.name
        ]
        if not any(_lets_names_out(rule) for other in others for rule in maps(other.get(EGRESS))):
            yield _NO_DNS.finding("no-dns" if egress else "nothing", ref, where=("spec", EGRESS))


def _find_closed_pods(state: StateFacts) -> list[PodSpec]:
    """Return the pods that a Service of the bundle leads to, and that no policy of the bundle lets anything reach."""
    policies = [obj for ref, obj in state.named if ref.group_kind == _POLICY]
    opening = [policy for policy in policies if maps(value_at(policy, "spec", INGRESS))]
    services = [obj for ref, obj in state.named if ref.group_kind == _SERVICE]
    return [
        pod
        for pod in pod_specs(state.objects)
        if any(pods_of_service(service, [pod]) for service in services)
        and not any(pods_of_policy(policy, [pod]) for policy in opening)
    ]


def _find_openness(peers: list[_Body], networks: Iterable[_Network], *, has_wide: bool) -> str:
    """Return how far a rule is open, as a variant of NP-03: "" where it names who is meant."""
    fours = [network for network in networks if isinstance(network, ipaddress.IPv4Network)]
    sixes = [network for network in networks if isinstance(network, ipaddress.IPv6Network)]
    together: list[_Network] = [*ipaddress.collapse_addresses(fours), *ipaddress.collapse_addresses(sixes)]
    if not peers or any(not network.prefixlen for network in together):
        return "everywhere"
    if has_wide:
        return "wide-networks"
    is_any_pod = any(peer.get("namespaceSelector") == {} and not peer.get("podSelector") for peer in peers)
    return "every-pod" if is_any_pod else ""


def _find_networks(peers: Iterable[_Body]) -> Iterator[_Network]:
    for peer in peers:
        try:
            yield ipaddress.ip_network(str(value_at(peer, "ipBlock", "cidr")), strict=False)
        except ValueError:
            continue  # no address block; the API server refuses one that is none


def _lets_names_out(rule: _Body) -> bool:
    """Whether a rule lets port 53 out, by its number, in a range, or by a name that begins with dns."""
    ports = maps(rule.get("ports"))
    for port in ports:
        first, last = port.get("port"), port.get("endPort")
        if isinstance(first, str):
            if first.startswith("dns"):
                return True
        elif first in (None, DNS_PORT) or (
            isinstance(first, int) and isinstance(last, int) and first <= DNS_PORT <= last
        ):
            return True
    return not ports


def compare_policies(facts: Facts) -> Iterator[Finding]:
    """Find policies that go, and rules that were not there, directions no longer restricted, other pods, lost rules."""
    for planned in facts.plan.actions:
        ref = planned.ref
        if ref.group_kind != _POLICY:
            continue
        if planned.action is Action.DELETE:
            yield _REMOVED.finding("deleted", ref, key="gone")
        elif planned.action in {Action.UPDATE, Action.REPLACE} and planned.before and planned.after:
            old, new = mapping(planned.before.get("spec")), mapping(planned.after.get("spec"))
            changed = [f"new-rules-{direction}" for direction in PEERS if _is_wider(old, new, direction)]
            gone = [direction for direction in PEERS if restricts(old, direction) and not restricts(new, direction)]
            changed += [f"unrestricted-{direction}" for direction in gone]
            if old.get("podSelector") != new.get("podSelector"):
                changed.append(OTHER_PODS)
            if changed:
                yield _REMOVED.finding("loosened", ref, where=("spec",), key=changed, changes=changed)
            for direction in PEERS:
                if _is_wider(new, old, direction):
                    where, key = ("spec", direction), ["less", direction]
                    yield _CLOSER.finding(f"lets-less-{direction}", ref, where=where, key=key)


def _is_wider(before: _Body, after: _Body, direction: str) -> bool:
    """Whether a rule of `after` is not contained in one of `before`, where both restrict the direction."""
    if not restricts(before, direction) or not restricts(after, direction):
        return False
    former, parts = maps(before.get(direction)), (PEERS[direction], "ports")
    for rule in maps(after.get(direction)):
        if not any(all(_has_all(old.get(part), rule.get(part)) for part in parts) for old in former):
            return True
    return False


def _has_all(wider: object, entries: object) -> bool:
    """Whether a list of peers or ports has all of another one. An empty list means everything."""
    known, wanted = (
        {json.dumps(entry, sort_keys=True, default=str) for entry in maps(side)} for side in (wider, entries)
    )
    return not known or (bool(wanted) and wanted <= known)


CHECK = Check("network-policies", changes=compare_policies, standing=judge_policies)
