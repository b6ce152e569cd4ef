"""What the bundle opens to the network, ports and addresses that one Service at a time can have, API groups that
Services answer, and what stays and calls a Service that goes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.json_values import items, mapping, maps, value_at
from provisioner.rbac import BUILT_IN_RESOURCES
from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, FieldPath, Reads, ReviewRule, StateFacts
from provisioner.review.checks.network.webhooks import find_webhooks
from provisioner.review.crds.live_scene import CRD
from provisioner.review.workloads.pod_specs import pod_specs, pods_of_service
from provisioner.schema.definition.crd import Crd
from provisioner.values import (
    Action,
    Finding,
    GroupKind,
    JsonObject,
    ObjectIdentity,
    ObjectRef,
    PlannedAction,
    Section,
    Severity,
)

_OPEN = ReviewRule("SV-01", Section.OBJECTS, Severity.DANGEROUS)
_OPEN_INSIDE = ReviewRule("SV-01", Section.OBJECTS, Severity.NOTABLE)
_HOST = ReviewRule("SV-02", Section.OBJECTS, Severity.NOTABLE)
_TAKES_GROUP = ReviewRule("AS-01", Section.WEBHOOKS, Severity.CRITICAL)
_NO_TLS = ReviewRule("AS-02", Section.WEBHOOKS, Severity.DANGEROUS)
_NO_SERVICE = ReviewRule("AS-03", Section.WEBHOOKS, Severity.BREAKING)
_SERVICE_UNKNOWN = ReviewRule("AS-03", Section.WEBHOOKS, Severity.UNKNOWN)
_GROUP_GONE = ReviewRule("AS-04", Section.WEBHOOKS, Severity.BREAKING)
_REFUSED = ReviewRule("OBJ-10", Section.OBJECTS, Severity.BREAKING)
_STOPS = ReviewRule("DEL-05", Section.WEBHOOKS, Severity.BREAKING)
_LETS_PASS = ReviewRule("DEL-05", Section.WEBHOOKS, Severity.DANGEROUS)

_SERVICE = GroupKind("", "Service")
_INGRESS = GroupKind("networking.k8s.io", "Ingress")
_API_SERVICE = GroupKind("apiregistration.k8s.io", "APIService")
# Annotations by which a provider makes a load balancer of its own network, with the values that mean so.
_INTERNAL = {
    "cloud.google.com/load-balancer-type": {"internal"},
    "networking.gke.io/load-balancer-type": {"internal"},
    "service.beta.kubernetes.io/aws-load-balancer-internal": {"true", "0.0.0.0/0"},
    "service.beta.kubernetes.io/aws-load-balancer-scheme": {"internal"},
    "service.beta.kubernetes.io/azure-load-balancer-internal": {"true"},
    "service.beta.kubernetes.io/openstack-internal-load-balancer": {"true"},
}
_WITH_NODE_PORTS = frozenset({"NodePort", "LoadBalancer"})
_WRITES = frozenset({Action.CREATE, Action.UPDATE, Action.REPLACE, Action.ADOPT, Action.RERUN})


def judge_exposure(state: StateFacts) -> Iterator[Finding]:
    """Find what the bundle opens to the network, and which API groups it takes over."""
    for ref, obj in state.named:
        spec = mapping(obj.get("spec"))
        if ref.group_kind == _SERVICE:
            yield from _judge_service(ref, obj, spec)
        elif ref.group_kind == _INGRESS:
            covered = {str(host) for entry in maps(spec.get("tls")) for host in items(entry.get("hosts"))}
            for host in sorted({str(rule.get("host") or "") for rule in maps(spec.get("rules"))} or {""}):
                lacks, where = None if host in covered else "tls", ("spec", "rules")
                variant, key = "host" if host else "every-host", [host, bool(lacks)]
                yield _HOST.finding(variant, ref, where=where, key=key, host=host, lacks=lacks)
        elif ref.group_kind == _API_SERVICE:
            api = f"{spec.get('group')}/{spec.get('version')}"
            if spec.get("service"):
                service = mapping(spec.get("service"))
                by = f"{service.get('namespace')}/{service.get('name')}"
                variant = f"{'built-in-' if str(spec.get('group')) in BUILT_IN_RESOURCES else ''}answered-by-service"
                yield _TAKES_GROUP.finding(variant, ref, key=[api, by], api=api, service=by)
            if spec.get("insecureSkipTLSVerify") is True:
                yield _NO_TLS.finding("not-checked", ref, where=("spec", "insecureSkipTLSVerify"), key=api, api=api)


def _judge_service(ref: ObjectRef, obj: JsonObject, spec: Mapping[str, Any]) -> Iterator[Finding]:
    """Find a load balancer that is open to everybody, unless it stays in the provider's network or lets only some in,
    and other ways in."""
    if spec.get("type") == "LoadBalancer":
        annotations = mapping(value_at(obj, "metadata", "annotations"))
        ranges = sorted(str(block) for block in items(spec.get("loadBalancerSourceRanges")))
        is_inside = any(str(annotations.get(key)).lower() in words for key, words in _INTERNAL.items())
        is_limited = ranges and not any(block.endswith("/0") for block in ranges)
        yield (_OPEN_INSIDE if is_inside or is_limited else _OPEN).finding(
            "internal-load-balancer" if is_inside else "load-balancer",
            ref,
            where=("spec", "type"),
            key=["LoadBalancer", is_inside, ranges],
            ranges=ranges,
            only=ranges if is_limited else None,
        )
    elif spec.get("type") == "NodePort":
        yield _OPEN.finding("node-port", ref, where=("spec", "type"), key="NodePort")
    if addresses := sorted(str(address) for address in items(spec.get("externalIPs"))):
        yield _OPEN.finding("external-ips", ref, where=("spec", "externalIPs"), key=addresses, addresses=addresses)


def compare_allocations(facts: Facts) -> Iterator[Finding]:
    """Find ports of nodes and addresses of which the API server refuses a second one.

    They are asked for in the order of the plan, as long as an object before or after it has the same. Objects are
    deleted when all others are written. What nobody asks for the API server chooses; in a dry run it answers each such
    Service with one and the same address and port, and gives out others when the Service is written.
    """
    services = [planned for planned in facts.plan.actions if planned.ref.group_kind == _SERVICE]
    asking = {
        one.ref.identity: _find_asked(one.body) for one in facts.content.everything if one.ref.group_kind == _SERVICE
    }
    had = [(planned, _find_asked(planned.before)) for planned in services if planned.before is not None]
    holders: dict[tuple[str, Any], PlannedAction] = {what: planned for planned, asked in had for what in asked}
    taken: dict[tuple[str, Any], PlannedAction] = {}
    for planned in services:
        if planned.after is None or planned.action is Action.DELETE:
            continue
        before = {} if planned.before is None else _find_asked(planned.before)
        kept = {} if planned.action in {Action.REPLACE, Action.RERUN} else before
        wanted = asking.get(planned.ref.identity, {})
        asked = {what: where for what, where in _find_asked(planned.after).items() if what in wanted or what in kept}
        for what in before:
            if what not in asked and holders.get(what) is planned:
                del holders[what]
        for what, where in asked.items():
            holder = taken.get(what) or holders.get(what) or planned
            if planned.action in _WRITES and holder.ref != planned.ref:
                stays = what in taken or holder.action not in {Action.DELETE, Action.UPDATE}
                variant = "taken" if stays else f"held-until-{holder.action}"
                params = {"what": what[0], "value": what[1], "other": holder.ref}
                yield _REFUSED.finding(variant, planned.ref, where=where, key=[*what, str(holder.ref)], **params)
            taken.setdefault(what, planned)


def _find_asked(service: JsonObject) -> dict[tuple[str, Any], FieldPath]:
    """Return what a Service asks for by its value, and where; node ports are given out by number, of any protocol."""
    spec = mapping(service.get("spec"))
    found: dict[tuple[str, Any], FieldPath] = {}
    if spec.get("type") in _WITH_NODE_PORTS:
        for at, port in enumerate(maps(spec.get("ports"))):
            if number := port.get("nodePort"):
                found[("node-port", number)] = ("spec", "ports", at, "nodePort")
        if number := spec.get("healthCheckNodePort"):
            found[("node-port", number)] = ("spec", "healthCheckNodePort")
    if spec.get("type") != "ExternalName":
        for address in {spec.get("clusterIP"), *filter(None, items(spec.get("clusterIPs")))} - {None, "", "None"}:
            found[("address", address)] = ("spec", "clusterIP")
    return found


def _find_answering_service(obj: object) -> ObjectRef | None:
    """Return the Service that answers for an APIService; None where the API server does itself."""
    service = mapping(value_at(obj, "spec", "service"))
    if not service.get("name"):
        return None
    return ObjectRef("", "v1", "Service", str(service.get("namespace") or ""), str(service["name"]))


def judge_api_services(state: StateFacts) -> Iterator[Finding]:
    brought = {ref.identity for ref, _ in state.named}
    for ref, obj in state.named:
        service = _find_answering_service(obj)
        if ref.group_kind != _API_SERVICE or service is None or service.identity in brought or state.is_offline:
            continue
        exists = state.around.exists.get(service.identity)
        if not exists:
            rule, variant = (_SERVICE_UNKNOWN, "service-unknown") if exists is None else (_NO_SERVICE, "no-service")
            yield rule.finding(variant, ref, where=("spec", "service"), key=str(service), service=service)


def compare_api_services(facts: Facts) -> Iterator[Finding]:
    """Find groups that the cluster serves already, by somebody else; and groups that nobody answers for afterwards."""
    for planned in facts.plan.actions:
        if planned.ref.group_kind != _API_SERVICE:
            continue
        spec = mapping((planned.after or planned.before or {}).get("spec"))
        group, version = str(spec.get("group") or ""), str(spec.get("version") or "")
        served = facts.around.kinds or ()
        kinds = sorted({kind.kind for kind in served if (kind.group, kind.version) == (group, version)})
        api = f"{group}/{version}"
        if planned.action is Action.CREATE and kinds and spec.get("service"):
            yield _TAKES_GROUP.finding("takes-over", planned.ref, key=["shadows", group, version], api=api, kinds=kinds)
        elif planned.action is Action.DELETE:
            yield _GROUP_GONE.finding("no-longer-served", planned.ref, key=[group, version], api=api, kinds=kinds)


def mention_answering_services(facts: Facts) -> Iterator[ObjectRef]:
    brought = {manifest.ref.identity for manifest in facts.content.manifests}
    for manifest in facts.content.manifests:
        service = _find_answering_service(manifest.body) if manifest.ref.group_kind == _API_SERVICE else None
        if service is not None and service.identity not in brought:
            yield service


def compare_callers(facts: Facts) -> Iterator[Finding]:
    """Find what stays in the cluster and calls a Service that goes: webhooks, API groups, and conversions of CRDs.

    What is kept is read as the bundle had it: what only the live object says is a value of it (S09).
    """
    previous = {ref.identity: obj for ref, obj in facts.previous_state().named}
    orphaned = [planned.ref for planned in facts.plan.actions if planned.action is Action.ORPHAN]
    kept = [previous[ref.identity] for ref in orphaned if ref.identity in previous]
    lost = _find_lost_services(facts, tuple(previous.values()), kept)
    for obj in [*facts.state().objects, *kept] if lost else []:
        ref = ObjectRef.of(obj)
        for rule, variant, service, webhook in _find_calls(ref, obj):
            if service.identity in lost:
                key, why = [str(service), variant, webhook], lost[service.identity]
                yield rule.finding(variant, ref, key=key, webhook=webhook, service=service, why=why)


def _find_lost_services(
    facts: Facts, previous: tuple[JsonObject, ...], kept: list[JsonObject]
) -> dict[ObjectIdentity, str]:
    """Return the Services that nobody answers for afterwards, each with why: it goes, or it is kept and its pods go."""
    deleted = (planned.ref for planned in facts.plan.actions if planned.action is Action.DELETE)
    lost = {ref.identity: "deleted" for ref in deleted if ref.group_kind == _SERVICE}
    if services := [obj for obj in kept if ObjectRef.of(obj).group_kind == _SERVICE]:
        was, now = list(pod_specs(previous)), list(pod_specs((*facts.state().objects, *kept)))
        for service in services:
            if pods_of_service(service, was) and not pods_of_service(service, now):
                lost[ObjectRef.of(service).identity] = "without-pods"
    return lost


def _find_calls(ref: ObjectRef, obj: JsonObject) -> Iterator[tuple[ReviewRule, str, ObjectRef, str | None]]:
    """Yield (rule, variant, Service, name of the webhook) of each call that the API server makes for this object."""
    for webhook in find_webhooks([obj]):
        if webhook.service is not None and webhook.fails_closed:
            yield _STOPS, "refuses-writes", webhook.service, webhook.name
        elif webhook.service is not None:
            variant = "changes-nothing" if webhook.is_mutating else "refuses-nothing"
            yield _LETS_PASS, variant, webhook.service, webhook.name
    if ref.group_kind == _API_SERVICE and (service := _find_answering_service(obj)) is not None:
        yield _STOPS, "api-unusable", service, None
    if ref.group_kind == CRD and (crd := Crd(obj)).uses_webhook:
        called = mapping(value_at(crd.conversion, "webhookClientConfig", "service"))
        if called:
            service = ObjectRef("", "v1", _SERVICE.kind, str(called.get("namespace") or ""), str(called.get("name")))
            yield _STOPS, "not-converted", service, None


_EXPOSURE_CLAIMS = (
    Claim("SV-01", frozenset({_SERVICE}), ("spec.type", "spec.externalIPs", "spec.loadBalancerSourceRanges")),
    Claim(
        "SV-01",
        frozenset({_SERVICE}),
        tuple(f"metadata.annotations.[{key}]" for key in sorted(_INTERNAL)),
        harmless="A value that leaves the load balancer as open as no annotation does",
    ),
    Claim("SV-02", frozenset({_INGRESS}), ("spec.rules.*.host",)),
    Claim(
        "SV-02",
        frozenset({_INGRESS}),
        ("spec.tls.*.hosts",),
        harmless="A host that gets TLS, or that the Ingress does not serve, is reached as before",
    ),
    Claim(
        "AS-01",
        frozenset({_API_SERVICE}),
        ("spec.group", "spec.version", "spec.service.name", "spec.service.namespace"),
    ),
    Claim("AS-02", frozenset({_API_SERVICE}), ("spec.insecureSkipTLSVerify",), is_of_new=True),
)

EXPOSURE_CHECK = Check("network", claims=_EXPOSURE_CLAIMS, standing=judge_exposure)
ALLOCATIONS_CHECK = Check("allocations", changes=compare_allocations, reads=frozenset({Reads.CHOICES}))
API_SERVICES_CHECK = Check(
    "api-services", changes=compare_api_services, standing=judge_api_services, mentions=mention_answering_services
)
CALLERS_CHECK = Check("callers", changes=compare_callers)
