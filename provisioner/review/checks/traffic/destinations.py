"""Where traffic goes and who is let in: the pods that Services lead to and network policies hold, hosts and addresses
that no selector makes, and hosts that lose TLS."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from provisioner.json_values import items, mapping, maps, value_at
from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts
from provisioner.review.base.renames import renamed, renames
from provisioner.review.checks.network.network_policies import PEERS, restricts
from provisioner.review.rules import Phrase
from provisioner.review.workloads.pod_specs import PodSpec, pod_specs, pods_of_policy, pods_of_service, selector_of
from provisioner.values import (
    Action,
    Content,
    Finding,
    GroupKind,
    JsonObject,
    ObjectIdentity,
    ObjectRef,
    Plan,
    PlannedAction,
    Section,
    Severity,
)

_LEADS_ELSEWHERE = ReviewRule("SV-04", Section.OBJECTS, Severity.DANGEROUS)
_LEADS_TO_FEWER = ReviewRule("SV-04", Section.OBJECTS, Severity.NOTABLE)
_LETS_GO = ReviewRule("NP-05", Section.OBJECTS, Severity.DANGEROUS)
_HOLDS_OTHERS = ReviewRule("NP-05", Section.OBJECTS, Severity.NOTABLE)
_HOST_REPLACES = ReviewRule("SV-05", Section.OBJECTS, Severity.DANGEROUS)
_HOST = ReviewRule("SV-05", Section.OBJECTS, Severity.NOTABLE)
_ADDRESSES_ADDED = ReviewRule("SV-06", Section.OBJECTS, Severity.DANGEROUS)
_ADDRESSES = ReviewRule("SV-06", Section.OBJECTS, Severity.NOTABLE)
_PLAIN = ReviewRule("ING-04", Section.OBJECTS, Severity.DANGEROUS)
_CERTIFICATE = ReviewRule("ING-04", Section.OBJECTS, Severity.NOTABLE)

_SERVICE, _ENDPOINTS = GroupKind("", "Service"), GroupKind("", "Endpoints")
_SLICE = GroupKind("discovery.k8s.io", "EndpointSlice")
_POLICY = GroupKind("networking.k8s.io", "NetworkPolicy")
_INGRESS = GroupKind("networking.k8s.io", "Ingress")
_OF_SERVICE = "kubernetes.io/service-name"
_OUTSIDE = "ExternalName"
_INSIDE = (".svc", ".cluster.local")
_WRITES = frozenset({Action.CREATE, Action.UPDATE, Action.REPLACE, Action.ADOPT, Action.RERUN})
_STAYING = frozenset({Action.UPDATE, Action.REPLACE, Action.ADOPT})
_TLS = ("spec", "tls")
# The entry without hosts is for every host that no other one names.
_EVERY = "*"
_Select = Callable[[JsonObject, Sequence[PodSpec]], list[PodSpec]]


@dataclass(frozen=True, slots=True)
class _Selected:
    """One object before and after, with the workloads whose pods it selects; `all_before` are those that there were."""

    ref: ObjectRef
    old: JsonObject
    new: JsonObject
    was: Mapping[ObjectIdentity, ObjectRef]
    now: Mapping[ObjectIdentity, ObjectRef]
    all_before: frozenset[ObjectIdentity]
    all_after: frozenset[ObjectIdentity]

    @property
    def joined(self) -> list[ObjectRef]:
        return [ref for key, ref in self.now.items() if key not in self.was]

    @property
    def left(self) -> list[ObjectRef]:
        """Those that are still there and no longer selected."""
        return [ref for key, ref in self.was.items() if key not in self.now and key in self.all_after]

    @property
    def is_replaced(self) -> bool:
        """Whether all that it led to is gone, and all that it leads to is new."""
        gone = bool(self.was) and not self.all_after & self.was.keys()
        return gone and bool(self.now) and not self.all_before & self.now.keys()

    def finding(self, rule: ReviewRule, variant: str, **pods: list[ObjectRef]) -> Finding:
        if self.ref.group_kind == _SERVICE:
            field, before, after = "selector", dict(selector_of(self.old)), dict(selector_of(self.new))
        else:
            sides = (value_at(side, "spec", "podSelector") for side in (self.old, self.new))
            field, (before, after) = "podSelector", (dict(mapping(selector)) for selector in sides)
        was, now = list(self.was.values()), list(self.now.values())
        evidence = {"before": before, "after": after, "selected_before": was, "selected": now, **pods}
        return rule.finding(
            variant, self.ref, where=("spec", field), key=[variant, before, after, was, now], **evidence
        )


def compare_selected_pods(facts: Facts) -> Iterator[Finding]:
    """Find Services and policies that other pods come under, where selectors or labels of pods change that.

    Those that stay as they are count too: labels of pods may change.
    """
    is_followed = not facts.hides_old_names  # else it would quote what led elsewhere under another name
    former = (renamed(facts, renames(facts)) if is_followed else None) or facts.previous_state()
    state = facts.state()
    yield from _compare_isolation(state, former)
    kinds: dict[GroupKind, _Select] = {_SERVICE: pods_of_service, _POLICY: pods_of_policy}
    known = {ref.identity: obj for ref, obj in former.named if ref.group_kind in kinds}
    known |= {planned.ref.identity: planned.before for planned in facts.plan.actions if planned.before is not None}
    both = [
        (ref, known[ref.identity], obj) for ref, obj in state.named if ref.group_kind in kinds and ref.identity in known
    ]
    if not both:
        return
    pods = list(pod_specs(former.objects)), list(pod_specs(state.objects))
    everything = [frozenset(pod.ref.identity for pod in side) for side in pods]
    policies = [obj for ref, obj in state.named if ref.group_kind == _POLICY]
    for ref, old, new in both:
        select = kinds[ref.group_kind]
        was, now = ({pod.ref.identity: pod.ref for pod in select(*side)} for side in zip((old, new), pods, strict=True))
        selected = _Selected(ref, old, new, was, now, *everything)
        if ref.group_kind == _SERVICE:
            yield from _compare_service(selected)
        else:
            yield from _compare_policy(selected, policies, pods[1])


def _compare_service(service: _Selected) -> Iterator[Finding]:
    """Where a Service leads to no pod of the bundle any more, AVL-04 says so."""
    old, new = selector_of(service.old), selector_of(service.new)
    if any(value_at(side, "spec", "type") == _OUTSIDE for side in (service.old, service.new)):
        return
    # Of an unchanged Service, what merely stands in the place of what is gone gets no traffic that others had.
    is_shared = old != new or any(key in service.was for key in service.now)
    joined = [ref for ref in service.joined if is_shared or ref.identity in service.all_before]
    if not new:
        if old:
            yield service.finding(_LEADS_ELSEWHERE, "no-selector")
    elif service.was and not service.now:
        return
    elif joined:
        rule = _LEADS_TO_FEWER if service.is_replaced else _LEADS_ELSEWHERE
        gone = [ref for key, ref in service.was.items() if key not in service.now]
        yield service.finding(rule, "other-pods", joined=joined, gone=gone)
    elif service.left:
        yield service.finding(_LEADS_TO_FEWER, "fewer-pods", gone=service.left)
    elif old != new and service.now:
        yield service.finding(_LEADS_TO_FEWER, "same-pods")
    elif old != new:
        is_narrower = bool(old) and old.items() <= new.items()
        # Where a bundle brings no pods, others make them for it, as operators do.
        rule = _LEADS_TO_FEWER if is_narrower or not service.all_after else _LEADS_ELSEWHERE
        yield service.finding(rule, "fewer-outside" if is_narrower else "other-outside")


def _compare_policy(policy: _Selected, policies: Sequence[JsonObject], pods: Sequence[PodSpec]) -> Iterator[Finding]:
    # Of the pods that it lets go, those that nothing restricts any more in a direction in which it did.
    directions = _find_directions(policy.old)
    others = [obj for obj in policies if ObjectRef.of(obj).identity != policy.ref.identity]
    free = []
    for ref in policy.left:
        own = [pod for pod in pods if pod.ref.identity == ref.identity]
        still = {direction for obj in others if pods_of_policy(obj, own) for direction in _find_directions(obj)}
        if directions - still:
            free.append(ref)
    if free:
        yield policy.finding(_LETS_GO, "free", pods=free)
    elif policy.left:
        yield policy.finding(_HOLDS_OTHERS, "still-held", pods=policy.left)
    if joined := [ref for ref in policy.joined if ref.identity in policy.all_before]:
        yield policy.finding(_HOLDS_OTHERS, "newly-held", pods=joined)


def _compare_isolation(state: StateFacts, former: StateFacts) -> Iterator[Finding]:
    """Find policies that restrict pods which everybody could reach, or which could reach everybody: until now no policy
    did so in that direction."""
    known = {ref.identity: obj for ref, obj in former.named if ref.group_kind == _POLICY}
    policies = [(ref, obj) for ref, obj in state.named if ref.group_kind == _POLICY]
    was, now = (list(pod_specs(side.objects)) if policies else [] for side in (former, state))
    for direction, peers_field in PEERS.items():
        restricting = [obj for obj in known.values() if direction in _find_directions(obj)]
        free = {pod.ref.identity for pod in was if not any(pods_of_policy(obj, [pod]) for obj in restricting)}
        for ref, policy in policies:
            spec, old = mapping(policy.get("spec")), known.get(ref.identity)
            rules = maps(spec.get(direction))
            lets_all = any(not rule.get(peers_field) and not rule.get("ports") for rule in rules)
            if not restricts(spec, direction) or old in restricting or lets_all:
                continue
            if cut := [pod.ref for pod in pods_of_policy(policy, now) if pod.ref.identity in free]:
                where, key = ("spec", direction), [direction, list(map(str, cut))]
                who = _describe_peers(rules, peers_field)
                yield _HOLDS_OTHERS.finding(f"cuts-off-{direction}", ref, where=where, key=key, pods=cut, who=who)


def _describe_peers(rules: list[Mapping[str, Any]], peers_field: str) -> str:
    """Return whom the rules of a policy let through, as a phrase of NP-05."""
    peers = [peer for rule in rules for peer in maps(rule.get(peers_field))]
    if not rules:
        return "nobody"
    if any(not rule.get(peers_field) for rule in rules):
        return "everybody-on-ports"
    is_near = all("podSelector" in peer and not peer.keys() & {"namespaceSelector", "ipBlock"} for peer in peers)
    return "own-namespace" if is_near else "named"


def _find_directions(policy: JsonObject) -> set[str]:
    return {direction for direction in PEERS if restricts(mapping(policy.get("spec")), direction)}


def compare_destinations(facts: Facts) -> Iterator[Finding]:
    """Find Services that lead to a host (ExternalName), or to addresses that no selector makes (Endpoints, slices)."""
    for planned in facts.plan.actions:
        if planned.action not in _WRITES or planned.after is None:
            continue
        if planned.ref.group_kind == _SERVICE:
            yield from _compare_host(
                planned, *(mapping(mapping(side).get("spec")) for side in (planned.before, planned.after))
            )
        elif planned.ref.group_kind in (_ENDPOINTS, _SLICE):
            yield from _compare_addresses(planned, planned.after, facts)


def _compare_host(planned: PlannedAction, before: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[Finding]:
    """Where a Service of the bundle becomes ExternalName, AVL-03 says so."""
    was_outside, is_outside = before.get("type") == _OUTSIDE, spec.get("type") == _OUTSIDE
    old, new, where = before.get("externalName"), spec.get("externalName"), ("spec", "externalName")
    if was_outside and not is_outside:
        yield _HOST.finding("to-pods", planned.ref, where=where, key=old, before=str(old))
    is_becoming = before and not was_outside and planned.action is not Action.ADOPT
    if is_outside and not is_becoming and not (was_outside and old == new):
        rule, variant = (_HOST_REPLACES, "elsewhere" if was_outside else "taken-over") if before else (_HOST, "outside")
        to = "name" if str(new).rstrip(".").endswith(_INSIDE) else "host"
        yield rule.finding(variant, planned.ref, where=where, key=[old, new], before=str(old), after=str(new), to=to)


def _compare_addresses(planned: PlannedAction, after: JsonObject, facts: Facts) -> Iterator[Finding]:
    ref, before, service = planned.ref, planned.before or {}, _service_of(planned.ref, after)
    is_moved = planned.before is not None and _service_of(ref, before) != service
    old, new = _find_addresses(before), _find_addresses(after)
    added = [address for address in new if is_moved or address not in old]
    gone = [address for address in old if address not in new]
    where = ("subsets",) if ref.group_kind == _ENDPOINTS else ("endpoints",)
    evidence = {"service": service, "added": added, "gone": gone}
    if added:
        why = _find_why_it_matters(service, facts)
        rule = _ADDRESSES_ADDED if why or planned.before is not None else _ADDRESSES
        yield rule.finding("addresses", ref, where=where, key=[added, why], why=why, **evidence)
    elif gone:
        yield _ADDRESSES.finding("fewer", ref, where=where, key=gone, **evidence)


def _service_of(ref: ObjectRef, obj: JsonObject) -> ObjectRef | None:
    """Return the Service that the addresses are of; a slice without that label is nobody's."""
    label = value_at(obj, "metadata", "labels", _OF_SERVICE)
    name = ref.name if ref.group_kind == _ENDPOINTS else str(label or "")
    return ObjectRef("", "v1", "Service", ref.namespace, name) if name else None


def _find_why_it_matters(service: ObjectRef | None, facts: Facts) -> str | None:
    """Return whose traffic that takes; None where the Service is new, has no selector and is ours."""
    if service is None:
        return None
    now, was = (
        {ref.identity: obj for ref, obj in state.named if ref.group_kind == _SERVICE}
        for state in (facts.state(), facts.previous_state())
    )
    was |= {planned.ref.identity: planned.before for planned in facts.plan.actions if planned.before is not None}
    identity = service.identity
    if identity not in now:
        live = facts.live.get(identity)
        if live is None:
            return None if identity in facts.live else "not-known"
        return "beside-with-pods" if selector_of(live) else "beside"
    if selector_of(now[identity]):
        return "shares"
    if identity in was:
        return "had-pods" if selector_of(was[identity]) else "led-elsewhere"
    return None


def _find_addresses(obj: JsonObject) -> list[str]:
    """Return the addresses and the ports of Endpoints or of a slice."""
    found: list[str] = []
    for part in maps(obj.get("subsets")) or [obj]:
        ports = [f"{port.get('port')}/{port.get('protocol') or 'TCP'}" for port in maps(part.get("ports"))]
        where = f" (ports {', '.join(ports)})" if ports else ""
        addresses = [*maps(part.get("addresses")), *maps(part.get("notReadyAddresses"))]
        found += [f"{address.get('ip')}{where}" for address in addresses]
        for endpoint in maps(part.get("endpoints")):
            found += [f"{address}{where}" for address in items(endpoint.get("addresses"))]
    return list(dict.fromkeys(found))


def want_services(content: Content, _: Plan) -> Iterator[ObjectRef]:
    """Want the Services that the bundle writes addresses for and does not bring."""
    brought = {manifest.ref.identity for manifest in content.manifests}
    for manifest in content.manifests:
        if manifest.ref.group_kind in (_ENDPOINTS, _SLICE):
            service = _service_of(manifest.ref, manifest.body)
            if service is not None and service.identity not in brought:
                yield service


def compare_tls(facts: Facts) -> Iterator[Finding]:
    """Find hosts of an Ingress that were served by TLS and no longer are, or are with another certificate."""
    for planned in facts.plan.actions:
        ref, before, after = planned.ref, planned.before, planned.after
        if ref.group_kind != _INGRESS or planned.action not in _STAYING or before is None or after is None:
            continue
        old, now = _find_certificates(before), _find_certificates(after)
        staying = _find_hosts(before) & _find_hosts(after)
        plain = sorted(host for host in staying if {host, _EVERY} & old.keys() and not {host, _EVERY} & now.keys())
        if plain:
            hosts = sorted(map(_phrase_host, plain))
            yield _PLAIN.finding("plain-text", ref, where=_TLS, key=plain, hosts=hosts)
        for host in sorted(old.keys() & now.keys()):
            if old[host] != now[host]:
                was, shall = (side[host] or None for side in (old, now))
                variant = "certificate" if was and shall else "own-certificate" if shall else "default-certificate"
                params = {"host": _phrase_host(host), "before": was, "after": shall}
                yield _CERTIFICATE.finding(variant, ref, where=_TLS, key=[host, was, shall], **params)


def _phrase_host(host: str) -> str:
    return Phrase.of(_PLAIN.id, "hosts.every") if host == _EVERY else host


def _find_certificates(ingress: JsonObject) -> dict[str, str]:
    """Return the hosts that TLS is for, each with the Secret of its certificate, "" where none is named."""
    found: dict[str, str] = {}
    for entry in maps(value_at(ingress, "spec", "tls")):
        hosts = list(map(str, items(entry.get("hosts")))) or [_EVERY]
        found |= dict.fromkeys(hosts, str(entry.get("secretName") or ""))
    return found


def _find_hosts(ingress: JsonObject) -> set[str]:
    spec = mapping(ingress.get("spec"))
    hosts = {str(rule.get("host") or _EVERY) for rule in maps(spec.get("rules"))}
    return hosts if hosts and not spec.get("defaultBackend") else {*hosts, _EVERY}


_DESTINATION_CLAIMS = (
    # A name means nothing for a Service of another type.
    Claim("SV-05", frozenset({_SERVICE}), ("spec.externalName",)),
    Claim(
        "SV-06",
        frozenset({_ENDPOINTS}),
        (
            "subsets.*.addresses.*.ip",
            "subsets.*.notReadyAddresses.*.ip",
            "subsets.*.ports.*.port",
            "subsets.*.ports.*.protocol",
        ),
    ),
    Claim(
        "SV-06",
        frozenset({_SLICE}),
        ("endpoints.*.addresses", "ports.*.port", "ports.*.protocol", f"metadata.labels.[{_OF_SERVICE}]"),
    ),
)
_SELECTOR_CLAIMS = (
    # Nobody's traffic goes to a new Service yet.
    Claim("SV-04", frozenset({_SERVICE}), ("spec.selector",)),
    Claim("NP-05", frozenset({_POLICY}), ("spec.podSelector",)),
)
DESTINATIONS_CHECK = Check(
    "ways elsewhere", changes=compare_destinations, claims=_DESTINATION_CLAIMS, wants=want_services
)
TLS_CHECK = Check("plain-text", changes=compare_tls, claims=(Claim("ING-04", frozenset({_INGRESS}), ("spec.tls",)),))
SELECTORS_CHECK = Check("selectors", changes=compare_selected_pods, claims=_SELECTOR_CLAIMS)
