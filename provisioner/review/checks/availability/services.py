"""Ways to reach pods that end with a change, and what leads nowhere: Services, Ingresses, autoscalers and monitors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.json_values import items, mapping, maps, value_at
from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, Reads, ReviewRule, StateFacts
from provisioner.review.workloads.pod_specs import PodSpec, pod_specs, pods_of_service
from provisioner.review.workloads.workload_changes import target_of
from provisioner.selectors import selects
from provisioner.values import Action, Finding, GroupKind, JsonObject, ObjectIdentity, ObjectRef, Section, Severity

_CLOSED = ReviewRule("AVL-03", Section.AVAILABILITY, Severity.BREAKING)
_MOVED = ReviewRule("AVL-03", Section.AVAILABILITY, Severity.DANGEROUS)
_NOWHERE = ReviewRule("AVL-04", Section.AVAILABILITY, Severity.BREAKING)
_NOT_DECLARED = ReviewRule("AVL-04", Section.AVAILABILITY, Severity.DANGEROUS)
_GONE = ReviewRule("AVL-08", Section.AVAILABILITY, Severity.DANGEROUS)
_NOT_SEEN = ReviewRule("AVL-08", Section.AVAILABILITY, Severity.NOTABLE)

_SERVICE = GroupKind("", "Service")
_INGRESS = GroupKind("networking.k8s.io", "Ingress")
_DEFAULT_TYPE, _OUTSIDE = "ClusterIP", "ExternalName"
# Types of Services that give a way in, which another type has not.
_WAYS_IN = {"LoadBalancer": "no-load-balancer", "NodePort": "no-node-port"}
_SERVICE_MONITOR = GroupKind("monitoring.coreos.com", "ServiceMonitor")
_POD_MONITOR = GroupKind("monitoring.coreos.com", "PodMonitor")
_ENDPOINTS = {_SERVICE_MONITOR: "endpoints", _POD_MONITOR: "podMetricsEndpoints"}
# What a monitor may find: the object, its labels, and the names of its ports.
_Scraped = tuple[ObjectRef, Mapping[str, Any], frozenset[str]]


def compare_services(facts: Facts) -> Iterator[Finding]:
    for planned in facts.plan.actions:
        before, after = planned.before, planned.after
        if planned.action not in {Action.UPDATE, Action.REPLACE} or before is None or after is None:
            continue
        if planned.ref.group_kind == _SERVICE:
            yield from _compare_types(planned.ref, mapping(before.get("spec")), mapping(after.get("spec")))
            yield from _compare_ports(planned.ref, mapping(before.get("spec")), mapping(after.get("spec")))
        elif planned.ref.group_kind == _INGRESS:
            kept = set(_find_routes(after))
            if gone := [route for route in _find_routes(before) if route not in kept]:
                yield _CLOSED.finding("no-route", planned.ref, where=("spec", "rules"), key=gone, routes=gone)
    yield from _compare_selected_pods(facts)
    # Services that this change deletes, and that an Ingress of the bundle leads to.
    services = (planned for planned in facts.plan.actions if planned.ref.group_kind == _SERVICE)
    deleted = {planned.ref.identity for planned in services if planned.action is Action.DELETE}
    for ref, obj in facts.state().named if deleted else ():
        for name in dict.fromkeys(name for name, _ in _find_backends(obj)) if ref.group_kind == _INGRESS else ():
            service = ObjectRef("", "v1", _SERVICE.kind, ref.namespace, name)
            if service.identity in deleted:
                yield _NOWHERE.finding("no-backend", ref, where=("spec",), key=["backend", name], service=service)


def _compare_types(ref: ObjectRef, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Finding]:
    old, new = (str(side.get("type") or _DEFAULT_TYPE) for side in (before, after))
    evidence, where = {"before": old, "after": new}, ("spec", "type")
    if new == _OUTSIDE != old:
        host = after.get("externalName")
        yield _CLOSED.finding("external", ref, where=where, key=evidence, host=host, **evidence)
    elif old in _WAYS_IN and new != old and (old, new) != ("NodePort", "LoadBalancer"):
        yield _CLOSED.finding(_WAYS_IN[old], ref, where=where, key=evidence, **evidence)


def _compare_ports(ref: ObjectRef, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Finding]:
    if _OUTSIDE not in (before.get("type"), after.get("type")):
        where = ("spec", "ports")
        old, new = (
            {f"{port.get('port')}/{port.get('protocol') or 'TCP'}": port for port in maps(side.get("ports"))}
            for side in (before, after)
        )
        if gone := [port for port in old if port not in new]:
            yield _CLOSED.finding("no-port", ref, where=where, key=gone, ports=gone)
        for port in (port for port in old if port in new):
            was, shall = old[port].get("nodePort"), new[port].get("nodePort")
            if was != shall and ((was and shall) or before.get("type") == after.get("type")):
                yield _MOVED.finding("node-port", ref, where=where, key=port, port=port, before=was, after=shall)
    kept = {str(address) for address in items(after.get("externalIPs"))}
    gone = [str(address) for address in items(before.get("externalIPs")) if str(address) not in kept]
    was, shall = before.get("loadBalancerIP"), after.get("loadBalancerIP")
    if was and shall != was and after.get("type") == "LoadBalancer":
        gone.append(str(was))
    if gone:
        yield _MOVED.finding("no-address", ref, where=("spec",), key=gone, addresses=gone)


def _find_routes(ingress: JsonObject) -> list[str]:
    """Return the hosts and paths that an Ingress serves."""
    found = []
    for rule in maps(value_at(ingress, "spec", "rules")):
        paths = [str(path.get("path") or "/") for path in maps(value_at(rule, "http", "paths"))] or ["/"]
        found += [f"{rule.get('host') or '*'}{path}" for path in paths]
    return list(dict.fromkeys(found))


def _compare_selected_pods(facts: Facts) -> Iterator[Finding]:
    """Find Services that led to pods of the bundle and lead to none of it now, or to ports that none declares any more.

    Nobody has to declare a port: a number counts where containers declared it and now declare others.
    """
    was, now = (list(pod_specs(state.objects)) for state in (facts.previous_state(), facts.state()))
    before = {ref.identity: obj for ref, obj in facts.previous_state().named}
    for ref, service in facts.state().named:
        old, selector = before.get(ref.identity), mapping(value_at(service, "spec", "selector"))
        if ref.group_kind != _SERVICE or old is None or not selector:
            continue
        lost, pods = pods_of_service(old, was), pods_of_service(service, now)
        if lost and not pods:
            yield _NOWHERE.finding(
                "no-pods",
                ref,
                where=("spec", "selector"),
                key=dict(selector),
                selector=dict(selector),
                workloads=[pod.ref for pod in lost],
            )
        declared_before, declared = _find_declared_ports(lost), _find_declared_ports(pods)
        for index, port in enumerate(maps(value_at(service, "spec", "ports"))):
            same = [former for former in maps(value_at(old, "spec", "ports")) if _is_same_port(former, port)]
            target, is_number = _target_of(port), str(port.get("targetPort") or 1).isdigit()
            is_lost = target not in declared and not declared_before.isdisjoint(map(_target_of, same))
            if pods and is_number and declared and is_lost:
                ports = (port for pod in pods for port in _container_ports(pod))
                yield _NOT_DECLARED.finding(
                    "no-declared-port",
                    ref,
                    where=("spec", "ports", index, "targetPort"),
                    key=["declared", target],
                    port=port.get("port"),
                    target=target,
                    declared=sorted({_target_of(port, "containerPort") for port in ports}),
                    workloads=[pod.ref for pod in pods],
                )


def _find_declared_ports(pods: list[PodSpec]) -> set[str]:
    """Return the ports that containers declare, by number and by name."""
    ports = [port for pod in pods for port in _container_ports(pod)]
    return {_target_of(port, key) for port in ports for key in ("containerPort", "name") if port.get(key)}


def _target_of(port: Mapping[str, Any], key: str = "targetPort") -> str:
    """Where a port of a Service leads to, or what a container listens on, with its protocol."""
    return f"{port.get(key) or port.get('port')}/{port.get('protocol') or 'TCP'}"


def _is_same_port(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether clients that know the port by name or number find the same."""
    return old.get("port") == new.get("port") or (bool(new.get("name")) and old.get("name") == new.get("name"))


def _container_ports(pod: PodSpec) -> Iterator[Mapping[str, Any]]:
    return (port for container in pod.containers() for port in maps(container.body.get("ports")))


def judge_services(state: StateFacts) -> Iterator[Finding]:
    pods = list(pod_specs(state.objects))
    services = {ref.identity: obj for ref, obj in state.named if ref.group_kind == _SERVICE}
    for ref, obj in state.named:
        if ref.group_kind == _INGRESS:
            yield from _judge_backends(ref, obj, services)
        elif ref.group_kind == _SERVICE:
            found = pods_of_service(obj, pods)
            listening = {str(port.get("name")) for pod in found for port in _container_ports(pod)}
            for index, port in enumerate(maps(value_at(obj, "spec", "ports"))):
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


def _judge_backends(
    ref: ObjectRef, ingress: JsonObject, services: Mapping[ObjectIdentity, JsonObject]
) -> Iterator[Finding]:
    """Find ports of Services of the bundle that they do not have. Other Services are others' business."""
    for name, port in dict.fromkeys(_find_backends(ingress)):
        service = ObjectRef("", "v1", "Service", ref.namespace, name)
        body = services.get(service.identity)
        if body is None or value_at(body, "spec", "type") == _OUTSIDE:
            continue
        ports = maps(value_at(body, "spec", "ports"))
        if not any(port in (offer.get("port"), offer.get("name")) for offer in ports):
            offered = [str(offer.get("name") or offer.get("port")) for offer in ports]
            key, variant = ["backend", name, port], "no-backend-port" if offered else "no-backend-ports"
            yield _NOWHERE.finding(variant, ref, where=("spec",), key=key, service=service, port=port, offered=offered)


def _find_backends(ingress: JsonObject) -> Iterator[tuple[str, Any]]:
    """Yield (name, port) of each Service that an Ingress leads to."""
    spec = mapping(ingress.get("spec"))
    paths = [path for rule in maps(spec.get("rules")) for path in maps(value_at(rule, "http", "paths"))]
    for backend in (mapping(spec.get("defaultBackend")), *(mapping(path.get("backend")) for path in paths)):
        service = mapping(backend.get("service"))
        port = mapping(service.get("port"))
        if service.get("name") and (port.get("number") or port.get("name")):
            yield str(service["name"]), port.get("number") or port.get("name")


def compare_targets(facts: Facts) -> Iterator[Finding]:
    """Find autoscalers whose workload is not there, and monitors that find nothing to scrape any more."""
    before = {ref.identity: obj for ref, obj in facts.previous_state().named}
    there = {ref.identity for ref, _ in facts.state().named}
    for ref, obj in facts.state().named:
        target, old = target_of(obj), before.get(ref.identity)
        if target is not None and target.identity not in there:
            yield from _judge_absent_target(ref, target, facts, old_target=target_of(old or {}))
        elif ref.group_kind in _ENDPOINTS and old is not None:
            yield from _compare_monitors(ref, old, obj, facts)


def _judge_absent_target(
    ref: ObjectRef, target: ObjectRef, facts: Facts, *, old_target: ObjectRef | None
) -> Iterator[Finding]:
    """Judge an autoscaler of what is not in the bundle; of what it named before, and others have, nothing is new."""
    action = next((planned.action for planned in facts.plan.actions if planned.ref.identity == target.identity), None)
    exists = facts.around.exists.get(target.identity)
    is_as_before = old_target is not None and old_target.identity == target.identity
    rule, variant = _GONE, "gone"
    if action is not Action.DELETE:
        if action is not None or exists or is_as_before:  # it is kept, or others have it
            return
        led_here = old_target is not None and old_target.identity in {
            former.identity for former, _ in facts.previous_state().named
        }
        rule = _GONE if exists is False or led_here else _NOT_SEEN
        variant = "absent" if exists is False else "not-in-bundle"
    yield rule.finding(variant, ref, where=("spec",), key=str(target), target=target)


def _compare_monitors(ref: ObjectRef, old: JsonObject, new: JsonObject, facts: Facts) -> Iterator[Finding]:
    was, now = _find_scraped(ref, old, facts.previous_state()), _find_scraped(ref, new, facts.state())
    if was and not now:
        lost = [scraped for scraped, _, _ in was]
        yield _NOT_SEEN.finding("finds-nothing", ref, where=("spec", "selector"), key="nothing", lost=lost)
        return
    list_name = _ENDPOINTS[ref.group_kind]
    had, has = ({port for _, _, ports in side for port in ports} for side in (was, now))
    if had.isdisjoint(str(endpoint.get("port")) for endpoint in maps(value_at(old, "spec", list_name))):
        return
    for place, endpoint in enumerate(maps(value_at(new, "spec", list_name))):
        if (port := endpoint.get("port")) and port not in has:
            where, scraped = ("spec", list_name, place, "port"), [scraped for scraped, _, _ in now]
            yield _NOT_SEEN.finding("no-port", ref, where=where, key=["port", port], port=port, scraped=scraped)


def _find_scraped(ref: ObjectRef, monitor: JsonObject, state: StateFacts) -> list[_Scraped]:
    """Return the Services or pods of a state that a monitor selects, in its namespace or in those that it names."""
    spec = mapping(monitor.get("spec"))
    places, selector = mapping(spec.get("namespaceSelector")), mapping(spec.get("selector"))
    near = {str(name) for name in items(places.get("matchNames"))} or {ref.namespace}
    if ref.group_kind == _SERVICE_MONITOR:
        found = [
            (service, mapping(value_at(obj, "metadata", "labels")), maps(value_at(obj, "spec", "ports")))
            for service, obj in state.named
            if service.group_kind == _SERVICE
        ]
    else:
        found = [(pod.ref, pod.labels, list(_container_ports(pod))) for pod in pod_specs(state.objects)]
    return [
        (scraped, labels, frozenset(str(port.get("name")) for port in ports))
        for scraped, labels, ports in found
        if (places.get("any") is True or scraped.namespace in near) and selects(selector, labels)
    ]


def mention_targets(facts: Facts) -> Iterator[ObjectRef]:
    targets = (target_of(manifest.body) for manifest in facts.content.manifests)
    yield from (target for target in targets if target is not None)


SERVICES_CHECK = Check(
    "ways to pods",
    claims=(Claim("AVL-03", frozenset({_SERVICE}), ("spec.ports.*.nodePort",)),),
    changes=compare_services,
    standing=judge_services,
    reads=frozenset({Reads.CHOICES}),
)
TARGETS_CHECK = Check("targets", changes=compare_targets, mentions=mention_targets)
