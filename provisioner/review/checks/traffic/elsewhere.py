"""Services that lead to a host or to addresses that no selector makes: ExternalName, Endpoints, EndpointSlices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, items, mapping, maps
from provisioner.review.workloads.pod_specs import selector_of
from provisioner.values import (
    Action,
    Content,
    Finding,
    GroupKind,
    JsonObject,
    ObjectRef,
    Plan,
    PlannedAction,
    Section,
    Severity,
)

_HOST_REPLACES = ReviewRule("SV-05", Section.OBJECTS, Severity.DANGEROUS)
_HOST = ReviewRule("SV-05", Section.OBJECTS, Severity.NOTABLE)
_ADDRESSES_ADDED = ReviewRule("SV-06", Section.OBJECTS, Severity.DANGEROUS)
_ADDRESSES = ReviewRule("SV-06", Section.OBJECTS, Severity.NOTABLE)

_SERVICE = GroupKind("", "Service")
_ENDPOINTS = GroupKind("", "Endpoints")
_SLICE = GroupKind("discovery.k8s.io", "EndpointSlice")
_OF_SERVICE = "kubernetes.io/service-name"
_OUTSIDE = "ExternalName"
_INSIDE = (".svc", ".cluster.local")
_WRITES = frozenset({Action.CREATE, Action.UPDATE, Action.REPLACE, Action.ADOPT, Action.RERUN})


def _changes(facts: Facts) -> Iterator[Finding]:
    for planned in facts.plan.actions:
        if planned.action not in _WRITES or planned.after is None:
            continue
        if planned.ref.group_kind == _SERVICE:
            yield from _of_host(planned, mapping(planned.after.get("spec")))
        elif planned.ref.group_kind in (_ENDPOINTS, _SLICE):
            yield from _of_addresses(planned, planned.after, facts)


def _of_host(planned: PlannedAction, spec: Any) -> Iterator[Finding]:
    """Where a Service of the bundle becomes ExternalName, AVL-03 says so."""
    before = mapping((planned.before or {}).get("spec"))
    was_outside = before.get("type") == _OUTSIDE
    if spec.get("type") != _OUTSIDE:
        if was_outside:
            host = before.get("externalName")
            yield _HOST.finding("to-pods", planned.ref, where=("spec", "externalName"), key=host, before=str(host))
        return
    if before and not was_outside and planned.action is not Action.ADOPT:
        return
    old, new = before.get("externalName"), spec.get("externalName")
    if was_outside and old == new:
        return
    rule, variant = (_HOST_REPLACES, "elsewhere" if was_outside else "taken-over") if before else (_HOST, "outside")
    to = "name" if str(new).rstrip(".").endswith(_INSIDE) else "host"
    where = ("spec", "externalName")
    yield rule.finding(variant, planned.ref, where=where, key=[old, new], before=str(old), after=str(new), to=to)


def _of_addresses(planned: PlannedAction, after: JsonObject, facts: Facts) -> Iterator[Finding]:
    ref, before, service = planned.ref, planned.before or {}, _service_of(planned.ref, after)
    is_moved = planned.before is not None and _service_of(ref, before) != service
    old, new = _addresses(before), _addresses(after)
    added, gone = [one for one in new if is_moved or one not in old], [one for one in old if one not in new]
    where = ("subsets",) if ref.group_kind == _ENDPOINTS else ("endpoints",)
    evidence = {"service": service, "added": added, "gone": gone}
    if added:
        why = _why_it_matters(service, facts)
        rule = _ADDRESSES_ADDED if why or planned.before is not None else _ADDRESSES
        yield rule.finding("addresses", ref, where=where, key=[added, why], why=why, **evidence)
    elif gone:
        yield _ADDRESSES.finding("fewer", ref, where=where, key=gone, **evidence)


def _service_of(ref: ObjectRef, obj: JsonObject) -> ObjectRef | None:
    """The Service that the addresses are of; a slice without that label is nobody's."""
    name = ref.name if ref.group_kind == _ENDPOINTS else _label(obj)
    return ObjectRef("", "v1", "Service", ref.namespace, name) if name else None


def _label(obj: JsonObject) -> str:
    return str(mapping(mapping(obj.get("metadata")).get("labels")).get(_OF_SERVICE) or "")


def _why_it_matters(service: ObjectRef | None, facts: Facts) -> str | None:
    """Whose traffic that takes; None where the Service is new, has no selector and is ours."""
    if service is None:
        return None
    now = {ref.identity: obj for ref, obj in facts.state().named if ref.group_kind == _SERVICE}
    old = {ref.identity: obj for ref, obj in facts.previous_state().named if ref.group_kind == _SERVICE}
    old |= {one.ref.identity: one.before for one in facts.plan.actions if one.before is not None}
    if service.identity not in now:
        return _of_foreign(service, facts)
    if selector_of(now[service.identity]):
        return "shares"
    if service.identity in old:
        return "had-pods" if selector_of(old[service.identity]) else "led-elsewhere"
    return None


def _of_foreign(service: ObjectRef, facts: Facts) -> str | None:
    live = facts.live.get(service.identity)
    if live is None:
        return None if service.identity in facts.live else "not-known"
    return "beside-with-pods" if selector_of(live) else "beside"


def _addresses(obj: JsonObject) -> list[str]:
    """The addresses and the ports of Endpoints or of a slice; of pods of another namespace with that one."""
    held = maps(obj.get("subsets")) or [obj]
    found: list[str] = []
    for part in held:
        ports = [f"{one.get('port')}/{one.get('protocol') or 'TCP'}" for one in maps(part.get("ports"))]
        where = f" (ports {', '.join(ports)})" if ports else ""
        found += [f"{address}{where}" for address in _of_part(part)]
    return list(dict.fromkeys(found))


def _of_part(part: Any) -> Iterator[str]:
    for name in ("addresses", "notReadyAddresses"):
        yield from (str(one.get("ip")) for one in maps(part.get(name)))
    for endpoint in maps(part.get("endpoints")):
        yield from map(str, items(endpoint.get("addresses")))


def _wants(content: Content, _: Plan) -> Iterator[ObjectRef]:
    """The Services that the bundle writes addresses for and does not bring."""
    brought = {one.ref.identity for one in content.manifests}
    for manifest in content.manifests:
        if manifest.ref.group_kind in (_ENDPOINTS, _SLICE):
            service = _service_of(manifest.ref, manifest.body)
            if service is not None and service.identity not in brought:
                yield service


CLAIMS = (
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
        (
            "endpoints.*.addresses",
            "ports.*.port",
            "ports.*.protocol",
            f"metadata.labels.[{_OF_SERVICE}]",
        ),
    ),
)
CHECK = Check("ways elsewhere", changes=_changes, claims=CLAIMS, wants=_wants)
