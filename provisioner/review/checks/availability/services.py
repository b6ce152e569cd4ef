"""Ways to reach pods that end with a change, and those that lead nowhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, Reads, ReviewRule, StateFacts, items, mapping, maps
from provisioner.review.workloads.pod_specs import PodSpec, pod_specs, pods_of_service
from provisioner.values import Action, Finding, GroupKind, JsonObject, ObjectRef, Section, Severity

_CLOSED = ReviewRule("AVL-03", Section.AVAILABILITY, Severity.BREAKING)
_MOVED = ReviewRule("AVL-03", Section.AVAILABILITY, Severity.DANGEROUS)
_NOWHERE = ReviewRule("AVL-04", Section.AVAILABILITY, Severity.BREAKING)
_NOT_DECLARED = ReviewRule("AVL-04", Section.AVAILABILITY, Severity.DANGEROUS)

_SERVICE = GroupKind("", "Service")
_INGRESS = GroupKind("networking.k8s.io", "Ingress")
_DEFAULT_TYPE = "ClusterIP"
# Types of Services that give a way in, which another type has not.
_WAYS_IN = {"LoadBalancer": "no-load-balancer", "NodePort": "no-node-port"}


def _changes(facts: Facts) -> Iterator[Finding]:
    for planned in facts.plan.actions:
        before, after = planned.before, planned.after
        if planned.action not in {Action.UPDATE, Action.REPLACE} or before is None or after is None:
            continue
        if planned.ref.group_kind == _SERVICE:
            yield from _of_type(planned.ref, _spec(before), _spec(after))
            yield from _of_ports(planned.ref, _spec(before), _spec(after))
            yield from _of_addresses(planned.ref, _spec(before), _spec(after))
        elif planned.ref.group_kind == _INGRESS:
            yield from _of_routes(planned.ref, before, after)
    yield from _of_selectors(facts)
    yield from _of_lost_backends(facts)


def _of_type(ref: ObjectRef, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Finding]:
    old, new = (str(side.get("type") or _DEFAULT_TYPE) for side in (before, after))
    evidence, where = {"before": old, "after": new}, ("spec", "type")
    if new == "ExternalName" != old:
        host = after.get("externalName")
        yield _CLOSED.finding("external", ref, where=where, key=evidence, host=host, **evidence)
    elif old in _WAYS_IN and new != old and (old, new) != ("NodePort", "LoadBalancer"):
        yield _CLOSED.finding(_WAYS_IN[old], ref, where=where, key=evidence, **evidence)


def _of_ports(ref: ObjectRef, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Finding]:
    if "ExternalName" in (before.get("type"), after.get("type")):
        return
    old, new = _ports(before), _ports(after)
    if gone := [one for one in old if one not in new]:
        yield _CLOSED.finding("no-port", ref, where=("spec", "ports"), key=gone, ports=gone)
    for port in (one for one in old if one in new):
        was, shall = old[port].get("nodePort"), new[port].get("nodePort")
        if was != shall and ((was and shall) or before.get("type") == after.get("type")):
            where = ("spec", "ports")
            yield _MOVED.finding("node-port", ref, where=where, key=port, port=port, before=was, after=shall)


def _ports(spec: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {f"{one.get('port')}/{one.get('protocol') or 'TCP'}": one for one in maps(spec.get("ports"))}


def _of_addresses(ref: ObjectRef, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Finding]:
    kept = {str(one) for one in items(after.get("externalIPs"))}
    gone = [str(one) for one in items(before.get("externalIPs")) if str(one) not in kept]
    was, shall = before.get("loadBalancerIP"), after.get("loadBalancerIP")
    if was and shall != was and after.get("type") == "LoadBalancer":
        gone.append(str(was))
    if gone:
        yield _MOVED.finding("no-address", ref, where=("spec",), key=gone, addresses=gone)


def _of_routes(ref: ObjectRef, before: JsonObject, after: JsonObject) -> Iterator[Finding]:
    """Hosts and paths that an Ingress served."""
    kept = set(_routes(after))
    if gone := [one for one in _routes(before) if one not in kept]:
        yield _CLOSED.finding("no-route", ref, where=("spec", "rules"), key=gone, routes=gone)


def _routes(ingress: JsonObject) -> list[str]:
    found = []
    for rule in maps(_spec(ingress).get("rules")):
        paths = [str(one.get("path") or "/") for one in maps(mapping(rule.get("http")).get("paths"))] or ["/"]
        found += [f"{rule.get('host') or '*'}{path}" for path in paths]
    return list(dict.fromkeys(found))


def _of_selectors(facts: Facts) -> Iterator[Finding]:
    """Services that led to pods of the bundle, and lead to none of it now."""
    was, now = (list(pod_specs(one.objects)) for one in (facts.previous_state(), facts.state()))
    before = {ref.identity: obj for ref, obj in facts.previous_state().named}
    for ref, service in _services(facts.state()):
        old = before.get(ref.identity)
        selector = mapping(_spec(service).get("selector"))
        if old is None or not selector:
            continue
        if found := pods_of_service(service, now):
            yield from _of_target_numbers((ref, old, service), pods_of_service(old, was), found)
        elif lost := pods_of_service(old, was):
            yield _NOWHERE.finding(
                "no-pods",
                ref,
                where=("spec", "selector"),
                key=dict(selector),
                selector=dict(selector),
                workloads=[pod.ref for pod in lost],
            )


def _of_target_numbers(
    change: tuple[ObjectRef, JsonObject, JsonObject], was: list[PodSpec], now: list[PodSpec]
) -> Iterator[Finding]:
    """Numbers that containers declared, and no longer do while they declare others. Nobody has to declare a port."""
    ref, old, new = change
    before, declared = _declared(was), _declared(now)
    for index, port in enumerate(maps(_spec(new).get("ports"))):
        known = [_target_of(one) for one in maps(_spec(old).get("ports")) if _is_same_port(one, port)]
        target, is_number = _target_of(port), str(port.get("targetPort") or 1).isdigit()
        if is_number and declared and target not in declared and not before.isdisjoint(known):
            yield _NOT_DECLARED.finding(
                "no-declared-port",
                ref,
                where=("spec", "ports", index, "targetPort"),
                key=["declared", target],
                port=port.get("port"),
                target=target,
                declared=sorted({_target_of(one, "containerPort") for pod in now for one in _container_ports(pod)}),
                workloads=[pod.ref for pod in now],
            )


def _declared(pods: list[PodSpec]) -> set[str]:
    """The ports that containers declare, by number and by name."""
    ports = [port for pod in pods for port in _container_ports(pod)]
    return {_target_of(port, key) for port in ports for key in ("containerPort", "name") if port.get(key)}


def _target_of(port: Mapping[str, Any], key: str = "targetPort") -> str:
    """Where a port of a Service leads to, or what a container listens on, with its protocol."""
    return f"{port.get(key) or port.get('port')}/{port.get('protocol') or 'TCP'}"


def _is_same_port(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether clients that know the port by name or number find the same."""
    return old.get("port") == new.get("port") or (bool(new.get("name")) and old.get("name") == new.get("name"))


def _services(state: StateFacts) -> Iterator[tuple[ObjectRef, JsonObject]]:
    return ((ref, obj) for ref, obj in state.named if ref.group_kind == _SERVICE)


def _standing(state: StateFacts) -> Iterator[Finding]:
    pods = list(pod_specs(state.objects))
    services = {ref.identity: obj for ref, obj in _services(state)}
    for ref, service in _services(state):
        found = pods_of_service(service, pods)
        listening = {str(port.get("name")) for pod in found for port in _container_ports(pod)}
        for index, port in enumerate(maps(_spec(service).get("ports"))):
            target = port.get("targetPort")
            if found and isinstance(target, str) and not target.isdigit() and target not in listening:
                yield _NOWHERE.finding(
                    "no-target-port",
                    ref,
                    where=("spec", "ports", index, "targetPort"),
                    key=["target", target],
                    port=port.get("port"),
                    target=target,
                    workloads=[pod.ref for pod in found],
                )
    for ref, obj in state.named:
        if ref.group_kind == _INGRESS:
            yield from _of_backends(ref, obj, services)


def _of_lost_backends(facts: Facts) -> Iterator[Finding]:
    """Services that this change deletes, and that an Ingress of the bundle leads to."""
    services = (one for one in facts.plan.actions if one.ref.group_kind == _SERVICE)
    gone = {one.ref.identity for one in services if one.action is Action.DELETE}
    for ref, obj in facts.state().named if gone else ():
        for name in dict.fromkeys(name for name, _ in _backends(obj)) if ref.group_kind == _INGRESS else ():
            service = ObjectRef("", "v1", _SERVICE.kind, ref.namespace, name)
            if service.identity in gone:
                yield _NOWHERE.finding("no-backend", ref, where=("spec",), key=["backend", name], service=service)


def _container_ports(pod: PodSpec) -> Iterator[Mapping[str, Any]]:
    return (port for container in pod.containers() for port in maps(container.body.get("ports")))


def _of_backends(ref: ObjectRef, ingress: JsonObject, services: Mapping[Any, JsonObject]) -> Iterator[Finding]:
    """Ports of Services of the bundle that they do not have. Other Services are others' business."""
    for named in dict.fromkeys(_backends(ingress)):
        name, port = named
        service = ObjectRef("", "v1", "Service", ref.namespace, name)
        body = services.get(service.identity)
        if body is None or _spec(body).get("type") == "ExternalName":
            continue
        ports = maps(_spec(body).get("ports"))
        if not any(port in (one.get("port"), one.get("name")) for one in ports):
            offered = [str(one.get("name") or one.get("port")) for one in ports]
            key = ["backend", name, port]
            variant = "no-backend-port" if offered else "no-backend-ports"
            yield _NOWHERE.finding(variant, ref, where=("spec",), key=key, service=service, port=port, offered=offered)


def _backends(ingress: JsonObject) -> Iterator[tuple[str, Any]]:
    spec = _spec(ingress)
    paths = [path for rule in maps(spec.get("rules")) for path in maps(mapping(rule.get("http")).get("paths"))]
    for backend in (mapping(spec.get("defaultBackend")), *(mapping(one.get("backend")) for one in paths)):
        service = mapping(backend.get("service"))
        port = mapping(service.get("port"))
        if service.get("name") and (port.get("number") or port.get("name")):
            yield str(service["name"]), port.get("number") or port.get("name")


def _spec(obj: JsonObject) -> Mapping[str, Any]:
    return mapping(obj.get("spec"))


_CLAIMS = (Claim("AVL-03", frozenset({_SERVICE}), ("spec.ports.*.nodePort",)),)

CHECK = Check("ways to pods", claims=_CLAIMS, changes=_changes, standing=_standing, reads=frozenset({Reads.CHOICES}))
