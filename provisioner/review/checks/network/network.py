"""What the bundle opens to the network, and which API groups it takes over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.rbac import BUILT_IN_RESOURCES
from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, ReviewRule, StateFacts, items, mapping, maps
from provisioner.values import Finding, GroupKind, JsonObject, ObjectRef, Section, Severity

_OPEN = ReviewRule("SV-01", Section.OBJECTS, Severity.DANGEROUS)
_OPEN_INSIDE = ReviewRule("SV-01", Section.OBJECTS, Severity.NOTABLE)
_HOST = ReviewRule("SV-02", Section.OBJECTS, Severity.NOTABLE)
_TAKES_GROUP = ReviewRule("AS-01", Section.WEBHOOKS, Severity.CRITICAL)
_NO_TLS = ReviewRule("AS-02", Section.WEBHOOKS, Severity.DANGEROUS)

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


def _standing(state: StateFacts) -> Iterator[Finding]:
    judges = {_SERVICE: _of_service, _INGRESS: _of_ingress, _API_SERVICE: _of_api_service}
    for ref, obj in state.named:
        if ref.group_kind in judges:
            yield from judges[ref.group_kind](ref, obj)


def _of_service(ref: ObjectRef, obj: JsonObject) -> Iterator[Finding]:
    spec = mapping(obj.get("spec"))
    kind = spec.get("type")
    if kind == "LoadBalancer":
        yield _of_load_balancer(ref, obj, spec)
    elif kind == "NodePort":
        yield _OPEN.finding("node-port", ref, where=("spec", "type"), key=kind)
    addresses = sorted(str(one) for one in items(spec.get("externalIPs")))
    if addresses:
        yield _OPEN.finding("external-ips", ref, where=("spec", "externalIPs"), key=addresses, addresses=addresses)


def _of_load_balancer(ref: ObjectRef, obj: JsonObject, spec: Mapping[str, Any]) -> Finding:
    """Open to everybody, unless it says that it stays in the provider's own network, or lets some addresses in only."""
    annotations = mapping(mapping(obj.get("metadata")).get("annotations"))
    ranges = sorted(str(one) for one in items(spec.get("loadBalancerSourceRanges")))
    is_inside = any(str(annotations.get(key)).lower() in words for key, words in _INTERNAL.items())
    is_limited = ranges and not any(one.endswith("/0") for one in ranges)
    return (_OPEN_INSIDE if is_inside or is_limited else _OPEN).finding(
        "internal-load-balancer" if is_inside else "load-balancer",
        ref,
        where=("spec", "type"),
        key=["LoadBalancer", is_inside, ranges],
        ranges=ranges,
        only=ranges if is_limited else None,
    )


def _of_ingress(ref: ObjectRef, obj: JsonObject) -> Iterator[Finding]:
    spec = mapping(obj.get("spec"))
    hosts = sorted({str(rule.get("host") or "") for rule in maps(spec.get("rules"))} or {""})
    covered = {str(host) for entry in maps(spec.get("tls")) for host in items(entry.get("hosts"))}
    for host in hosts:
        lacks = None if host in covered else "tls"
        variant = "host" if host else "every-host"
        yield _HOST.finding(variant, ref, where=("spec", "rules"), key=[host, bool(lacks)], host=host, lacks=lacks)


def _of_api_service(ref: ObjectRef, obj: JsonObject) -> Iterator[Finding]:
    spec = mapping(obj.get("spec"))
    api = f"{spec.get('group')}/{spec.get('version')}"
    if spec.get("service"):
        service = mapping(spec.get("service"))
        by = f"{service.get('namespace')}/{service.get('name')}"
        variant = f"{'built-in-' if spec.get('group') in BUILT_IN_RESOURCES else ''}answered-by-service"
        yield _TAKES_GROUP.finding(variant, ref, key=[api, by], api=api, service=by)
    if spec.get("insecureSkipTLSVerify") is True:
        yield _NO_TLS.finding("not-checked", ref, where=("spec", "insecureSkipTLSVerify"), key=api, api=api)


_CLAIMS = (
    Claim(
        "SV-01",
        frozenset({_SERVICE}),
        (
            "spec.type",
            "spec.externalIPs",
            "spec.loadBalancerSourceRanges",
        ),
    ),
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

CHECK = Check("network", claims=_CLAIMS, standing=_standing)
