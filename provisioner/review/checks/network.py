"""What the bundle opens to the network, and which API groups it takes over."""

from __future__ import annotations

from collections.abc import Iterator

from provisioner.review.facts import Check, Rule, State, items, mapping, maps, said
from provisioner.values import Action, Finding, GroupKind, JsonObject, ObjectRef, PlannedAction, Section, Severity

_OPEN = Rule("SV-01", Section.OBJECTS, Severity.DANGEROUS)
_HOST = Rule("SV-02", Section.OBJECTS, Severity.NOTABLE)
_TAKES_GROUP = Rule("AS-01", Section.WEBHOOKS, Severity.CRITICAL)
_NO_TLS = Rule("AS-02", Section.WEBHOOKS, Severity.DANGEROUS)

_SERVICE = GroupKind("", "Service")
_INGRESS = GroupKind("networking.k8s.io", "Ingress")
_API_SERVICE = GroupKind("apiregistration.k8s.io", "APIService")


def _standing(state: State) -> Iterator[Finding]:
    judges = {_SERVICE: _of_service, _INGRESS: _of_ingress, _API_SERVICE: _of_api_service}
    for obj in state.objects:
        ref = ObjectRef.of(obj)
        if ref.group_kind in judges:
            yield from judges[ref.group_kind](ref, obj)


def _of_service(ref: ObjectRef, obj: JsonObject) -> Iterator[Finding]:
    spec = mapping(obj.get("spec"))
    kind = spec.get("type")
    if kind in {"LoadBalancer", "NodePort"}:
        where = "from outside, by a load balancer" if kind == "LoadBalancer" else "on a port of every node"
        yield _OPEN.at(ref, f"{said(ref)} can be reached {where}", path=("spec", "type"), key=kind)
    addresses = sorted(str(one) for one in items(spec.get("externalIPs")))
    if addresses:
        message = f"{said(ref)} takes over traffic to {', '.join(addresses)}"
        yield _OPEN.at(ref, message, path=("spec", "externalIPs"), evidence={"addresses": addresses}, key=addresses)


def _of_ingress(ref: ObjectRef, obj: JsonObject) -> Iterator[Finding]:
    spec = mapping(obj.get("spec"))
    hosts = sorted({str(rule.get("host") or "every host") for rule in maps(spec.get("rules"))} or {"every host"})
    covered = {str(host) for entry in maps(spec.get("tls")) for host in items(entry.get("hosts"))}
    for host in hosts:
        without = "" if host in covered else ", without TLS"
        yield _HOST.at(ref, f"{said(ref)} serves {host}{without}", path=("spec", "rules"), key=[host, bool(without)])


def _of_api_service(ref: ObjectRef, obj: JsonObject) -> Iterator[Finding]:
    spec = mapping(obj.get("spec"))
    name = f"{spec.get('group')}/{spec.get('version')}"
    if spec.get("service"):
        service = mapping(spec.get("service"))
        by = f"{service.get('namespace')}/{service.get('name')}"
        message = f"Every request for {name} will be answered by the Service {by} instead of the API server"
        yield _TAKES_GROUP.at(ref, message, evidence={"api": name, "service": by}, key=[name, by])
    if spec.get("insecureSkipTLSVerify") is True:
        message = f"{said(ref)} lets anybody on the way answer for {name}: its certificate is not checked"
        yield _NO_TLS.at(ref, message, path=("spec", "insecureSkipTLSVerify"), key=name)


def _claims(planned: PlannedAction) -> bool:
    return planned.ref.group_kind in {_SERVICE, _INGRESS, _API_SERVICE} and planned.action is not Action.DELETE


CHECK = Check("network", standing=_standing, claims=_claims)
