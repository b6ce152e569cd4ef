"""What the API server refuses of Services, Ingresses and NetworkPolicies.

Source: pkg/apis/core/validation and pkg/apis/networking/validation.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from provisioner.builtin import forms, metadata
from provisioner.builtin.changes import Change, FieldRefusal, ObjectNode, is_number, numbered, quoted, texts
from provisioner.json_values import mapping

_NO_ADDRESS = "None"
_WITH_ADDRESS = frozenset({"ClusterIP", "NodePort", "LoadBalancer"})
_WITH_NODE_PORTS = frozenset({"NodePort", "LoadBalancer"})
# Which types need a field; of any other it goes with the change of the type.
_BY_TYPE: dict[str, frozenset[str]] = {
    "allocateLoadBalancerNodePorts": frozenset({"LoadBalancer"}),
    "clusterIP": _WITH_ADDRESS,
    "clusterIPs": _WITH_ADDRESS,
    "externalTrafficPolicy": _WITH_NODE_PORTS,
    "healthCheckNodePort": frozenset({"LoadBalancer"}),
    "internalTrafficPolicy": _WITH_ADDRESS,
    "ipFamilies": _WITH_ADDRESS,
    "ipFamilyPolicy": _WITH_ADDRESS,
    "loadBalancerClass": frozenset({"LoadBalancer"}),
}
MOST_CONTROLLER = 250
STRICT_SINCE = 36  # the minor
_LOOSE = "must not have bits set beyond the length of its prefix"
_SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
LEAST_NODE_PORT, MOST_NODE_PORT = 30000, 32767
_RANGE = "10.0.0.0/8"
_CLASS = "kubernetes.io/ingress.class"


def _check_service(change: Change) -> Iterator[FieldRefusal]:
    kind = change.spec.get("type") or "ClusterIP"
    yield from metadata.check_labels(change.spec, "selector")
    yield from _check_ports(change.spec, kind)
    yield from _check_addresses(change.spec, kind)
    yield from _check_traffic(change, kind)
    yield from _check_service_update(change, kind)


def _check_ports(spec: ObjectNode, kind: str) -> Iterator[FieldRefusal]:
    ports = list(spec.items("ports"))
    if not ports and kind != "ExternalName" and spec.get("clusterIP") != _NO_ADDRESS:
        yield spec.refuse("must hold at least one port", "ports")
    names: set[str] = set()
    taken: set[tuple[Any, Any]] = set()
    for port in ports:
        name, target, node = str(port.get("name") or ""), port.get("targetPort"), port.get("nodePort")
        if not name and len(ports) > 1:
            yield port.refuse("is missing, and there is more than one port", "name")
        elif name and name in names:
            yield port.refuse(f"stands there twice: {quoted(name)}", "name")
        names.add(name)
        if isinstance(target, str) and target and not forms.is_port_name(target):
            yield port.refuse_value(f"must be a number or {forms.FORMS['port-name'][1]}", "targetPort")
        elif is_number(target) and not 0 < target < 65536:
            yield port.refuse(f"must be from 1 to 65535, and is {target}", "targetPort")
        if node and kind not in _WITH_NODE_PORTS:
            yield port.refuse(f"must not be set where the type is {kind}", "nodePort")
        elif is_number(node) and node and not LEAST_NODE_PORT <= node <= MOST_NODE_PORT:
            words = f"must be from {LEAST_NODE_PORT} to {MOST_NODE_PORT} unless the cluster says otherwise"
            yield port.refuse(f"{words}, and is {node}", "nodePort")
        if node and (port.get("protocol"), node) in taken:
            yield port.refuse(f"stands there twice: {node}", "nodePort")
        taken.add((port.get("protocol"), node))


def _check_addresses(spec: ObjectNode, kind: str) -> Iterator[FieldRefusal]:
    if kind == "ExternalName":
        for key in ("clusterIP", "internalTrafficPolicy"):
            if spec.get(key):
                yield spec.refuse("must not be set where the type is ExternalName", key)
        name = str(spec.get("externalName") or "").removesuffix(".")
        if not forms.is_subdomain(name):
            yield spec.refuse(f"must be {forms.FORMS['subdomain'][1]}, and is {quoted(name)}", "externalName")
        return
    address, addresses, families = spec.get("clusterIP"), texts(spec.get("clusterIPs")), texts(spec.get("ipFamilies"))
    if address == _NO_ADDRESS and kind in _WITH_NODE_PORTS:
        yield spec.refuse(f"must not be None where the type is {kind}", "clusterIP")
    places: list[tuple[Any, ...]] = [("clusterIP",), *(("clusterIPs", place) for place in range(len(addresses)))]
    for steps, given in zip(places, [address, *addresses], strict=True):
        if given and given != _NO_ADDRESS and not forms.is_ip(str(given)):
            yield spec.refuse(f"must be an address, None or empty, and is {quoted(given)}", *steps)
    if address and addresses and address != addresses[0]:
        yield spec.refuse("must begin with clusterIP", "clusterIPs")
    if len(set(families)) != len(families):
        yield spec.refuse("must not name a family twice", "ipFamilies")
    if len(families) == 2 and spec.get("ipFamilyPolicy") in (None, "SingleStack"):
        yield spec.refuse("must not be SingleStack where there are two families", "ipFamilyPolicy")


def _check_traffic(change: Change, kind: str) -> Iterator[FieldRefusal]:
    spec = change.spec
    is_balancer, ranges = kind == "LoadBalancer", texts(spec.get("loadBalancerSourceRanges"))
    if spec.get("externalTrafficPolicy") and kind not in _WITH_NODE_PORTS and not spec.get("externalIPs"):
        yield spec.refuse(f"must not be set where the type is {kind}", "externalTrafficPolicy")
    if spec.get("healthCheckNodePort") and not (is_balancer and spec.get("externalTrafficPolicy") == "Local"):
        yield spec.refuse("must be set only for a LoadBalancer with local traffic", "healthCheckNodePort")
    for key in ("allocateLoadBalancerNodePorts", "loadBalancerClass", "loadBalancerSourceRanges"):
        if spec.get(key) not in (None, []) and not is_balancer:
            yield spec.refuse("must be set only where the type is LoadBalancer", key)
    for place, cidr in enumerate(ranges):
        if not forms.is_cidr(cidr.strip()):
            yield spec.refuse(f"must be a range such as {_RANGE}", "loadBalancerSourceRanges", place)
        elif _is_loose(cidr.strip(), change):
            yield spec.refuse(f"{_LOOSE}, and is {quoted(cidr)}", "loadBalancerSourceRanges", place)
    yield from _check_places(change, is_balancer=is_balancer)


def _check_places(change: Change, *, is_balancer: bool) -> Iterator[FieldRefusal]:
    """Check from which addresses a Service is reached, and which endpoints come first."""
    spec = change.spec
    for place, address in enumerate(texts(spec.get("externalIPs"))):
        if forms.is_special_ip(address):
            yield spec.refuse(f"must not be of the machine or its link: {quoted(address)}", "externalIPs", place)
    chosen, annotations = spec.get("trafficDistribution"), change.root.at("metadata", "annotations")
    if isinstance(chosen, str) and chosen not in _DISTRIBUTIONS:
        yield spec.refuse_value(f"must be one of {', '.join(_DISTRIBUTIONS)}", "trafficDistribution")
    written = annotations.get(_SOURCE_RANGES)
    if not isinstance(written, str) or spec.get("loadBalancerSourceRanges"):
        return
    if not is_balancer:
        yield annotations.refuse("must be set only where the type is LoadBalancer", _SOURCE_RANGES)
    elif written.strip() and not all(forms.is_cidr(cidr.strip()) for cidr in written.split(",")):
        yield annotations.refuse_value(f"must be ranges such as {_RANGE}", _SOURCE_RANGES)


def _check_service_update(change: Change, kind: str) -> Iterator[FieldRefusal]:
    """Addresses never change; what was given out once stays, and so what `sent` leaves out is no change."""
    spec, old, sent = change.spec, change.old_spec, change.sent_spec
    kind_before = old.get("type") or "ClusterIP"
    if change.old is None or not {kind_before, kind} <= _WITH_ADDRESS:
        return
    is_same_balancer = kind_before == kind == "LoadBalancer"
    if is_same_balancer and old.get("loadBalancerClass") != spec.get("loadBalancerClass"):
        yield spec.refuse_change("loadBalancerClass")
    before, after = old.get("clusterIP"), sent.get("clusterIP")
    if after not in (None, "") and (before != after if before else after == _NO_ADDRESS):
        yield spec.refuse_change("clusterIP")
    if before == _NO_ADDRESS and after in (None, "") and kind in _WITH_NODE_PORTS:
        yield spec.refuse_change("type", words=f"must not become {kind} where clusterIP is None")
    families, wanted = texts(old.get("ipFamilies")), texts(sent.get("ipFamilies"))
    if families and wanted and families[0] != wanted[0]:
        yield spec.refuse_change("ipFamilies", 0)


def remove_stale_fields(old: Mapping[str, Any], new: dict[str, Any]) -> None:
    """Take out of a Service what its former type needed and the new one does not, where it has not changed."""
    before, after = mapping(old.get("spec")), new.get("spec")
    if not isinstance(after, dict):
        return
    kind = after.get("type") or "ClusterIP"
    for key, kinds in _BY_TYPE.items():
        if kind not in kinds and key in after and after[key] == before.get(key):
            del after[key]
    known = {repr((port.get("port"), port.get("nodePort"))) for _, port in numbered(before.get("ports"))}
    for _, port in numbered(after.get("ports")) if kind not in _WITH_NODE_PORTS else ():
        if isinstance(port, dict) and repr((port.get("port"), port.get("nodePort"))) in known:
            port.pop("nodePort", None)


def needs_both_families(change: Change) -> bool:
    """Whether a Service asks for what not every cluster has."""
    spec, old = change.spec.value, change.old_spec
    is_same = all(spec.get(key) == old.get(key) for key in ("ipFamilies", "ipFamilyPolicy"))
    if change.old is not None and is_same:
        return False
    return "IPv6" in texts(spec.get("ipFamilies")) or spec.get("ipFamilyPolicy") == "RequireDualStack"


def is_address_unknown(change: Change) -> bool:
    """Whether an update names the address of a Service that got one by the server: it may be the same."""
    sent = change.sent_spec.get("clusterIP")
    return bool(change.old is not None and sent and sent != _NO_ADDRESS and not change.old_spec.get("clusterIP"))


def _check_ingress(change: Change) -> Iterator[FieldRefusal]:
    spec = change.spec
    if not spec.get("rules") and not spec.get("defaultBackend"):
        yield spec.refuse("must have rules or a default backend")
    if spec.get("defaultBackend") is not None:
        yield from _check_backend(spec.at("defaultBackend"))
    for rule in spec.items("rules"):
        host = str(rule.get("host") or "")
        if host and (not _is_host(host) or forms.is_ip(host)):
            yield rule.refuse_value("must be a name such as example.com or *.example.com", "host")
        for path in rule.at("http").items("paths"):
            yield from _check_ingress_path(path)
            yield from _check_backend(path.at("backend"))
    for tls in spec.items("tls"):
        for place, host in enumerate(texts(tls.get("hosts"))):
            if not _is_host(host):
                yield tls.refuse(f"must be the name of a host, and is {quoted(host)}", "hosts", place)
    name, annotated = spec.get("ingressClassName"), change.root.get("metadata", "annotations", _CLASS)
    if name and annotated and annotated != name and change.old is None:
        yield change.root.refuse("must be the same as ingressClassName", "metadata", "annotations", _CLASS)


def _is_host(text: str) -> bool:
    return forms.is_wildcard_subdomain(text) if "*" in text else forms.is_subdomain(text)


def _check_ingress_path(entry: ObjectNode) -> Iterator[FieldRefusal]:
    path = str(entry.get("path") or "")
    is_matched = entry.get("pathType") in ("Exact", "Prefix")
    if (path or is_matched) and not path.startswith("/"):
        yield entry.refuse(f"must begin with /, and is {quoted(path)}", "path")
    for part in ("//", "/./", "/../", "%2f", "%2F") if is_matched else ():
        if part in path:
            yield entry.refuse(f"must not hold {quoted(part)}", "path")
    for end in ("/..", "/.") if is_matched else ():
        if path.endswith(end):
            yield entry.refuse(f"must not end with {quoted(end)}", "path")


def _check_backend(backend: ObjectNode) -> Iterator[FieldRefusal]:
    if (backend.get("service") is None) == (backend.get("resource") is None):
        yield backend.refuse("must name a service or a resource")
    elif backend.get("resource") is not None:
        resource = backend.at("resource")
        for key in ("kind", "name"):
            if not resource.get(key):
                yield resource.refuse("is missing", key)
        yield from resource.check_form("subdomain", "apiGroup")
    else:
        service = backend.at("service")
        if bool(service.get("port", "name")) == bool(service.get("port", "number")):
            yield service.refuse("must have a name or a number", "port")
        yield from service.check_form("port-name", "port", "name")
        name = str(service.get("name") or "")
        if not forms.is_label_1035(name) and not forms.is_label(name):
            yield service.refuse(f"must be the name of a Service, and is {quoted(name)}", "name")


def _check_ingress_class(change: Change) -> Iterator[FieldRefusal]:
    name = str(change.spec.get("controller") or "")
    if not forms.is_domain_path(name) or len(name) > MOST_CONTROLLER:
        words = f"must be a domain, a slash and a path, at most {MOST_CONTROLLER} characters, and is {quoted(name)}"
        yield change.spec.refuse(words, "controller")
    parameters = change.spec.at("parameters")
    if parameters.value and (parameters.get("scope") == "Namespace") != bool(parameters.get("namespace")):
        yield parameters.refuse("must be set where the scope is Namespace, and nowhere else", "namespace")


def _check_network_policy(change: Change) -> Iterator[FieldRefusal]:
    spec = change.spec
    yield from metadata.check_selector(spec.at("podSelector"))
    if len(texts(spec.get("policyTypes"))) > 2:
        yield spec.refuse("must be at most two", "policyTypes")
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for rule in spec.items(direction):
            for port in rule.items("ports"):
                yield from _check_policy_port(port)
            for peer in rule.items(peers):
                yield from _check_peer(peer, change)


def _check_policy_port(entry: ObjectNode) -> Iterator[FieldRefusal]:
    port, end = entry.get("port"), entry.get("endPort")
    if isinstance(port, str) and not forms.is_port_name(port):
        yield entry.refuse_value(f"must be a number or {forms.FORMS['port-name'][1]}", "port")
    elif is_number(port) and not 0 < port < 65536:
        yield entry.refuse(f"must be from 1 to 65535, and is {port}", "port")
    if end is not None and not is_number(port):
        yield entry.refuse("must be set only where the port is a number", "endPort")
    elif is_number(end) and is_number(port) and end < port:
        yield entry.refuse(f"must not be below the port, which is {port}", "endPort")


def _check_peer(peer: ObjectNode, change: Change) -> Iterator[FieldRefusal]:
    given = [key for key in ("ipBlock", "podSelector", "namespaceSelector") if peer.get(key) is not None]
    if not given:
        yield peer.refuse("must name pods, namespaces or a range of addresses")
    for key in ("podSelector", "namespaceSelector"):
        yield from metadata.check_selector(peer.at(key))
    if "ipBlock" not in given:
        return
    if len(given) > 1:
        yield peer.refuse("must not stand beside selectors", "ipBlock")
    block = peer.at("ipBlock")
    outer = str(block.get("cidr") or "")
    if not forms.is_cidr(outer):
        yield block.refuse(f"must be {forms.FORMS['cidr'][1]}, and is {quoted(outer)}", "cidr")
        return
    if _is_loose(outer, change):
        yield block.refuse(f"{_LOOSE}, and is {quoted(outer)}", "cidr")
    for place, inner in enumerate(texts(block.get("except"))):
        if _is_loose(inner, change):
            yield block.refuse(f"{_LOOSE}, and is {quoted(inner)}", "except", place)
        elif not _is_within(inner, outer):
            yield block.refuse(f"must be a range inside {outer}, and smaller; it is {quoted(inner)}", "except", place)


def _is_loose(cidr: str, change: Change) -> bool:
    """Whether a range has bits beyond its prefix, which servers refuse since 1.36 unless it stood there before."""
    is_loose = not change.is_before(STRICT_SINCE) and forms.is_cidr(cidr) and not forms.is_network(cidr)
    return is_loose and not _holds(change.old_spec, cidr)


def _holds(value: Any, text: str) -> bool:
    if isinstance(value, Mapping):
        return any(_holds(inner, text) for inner in value.values())
    return any(_holds(item, text) for item in value) if isinstance(value, list) else value == text


def _is_within(inner: str, outer: str) -> bool:
    if not forms.is_cidr(inner):
        return False
    small, large = ipaddress.ip_network(inner, strict=False), ipaddress.ip_network(outer, strict=False)
    is_inside = small.version == large.version and small.network_address in large
    return is_inside and small.prefixlen > large.prefixlen


RULES: dict[str, Callable[[Change], Iterator[FieldRefusal]]] = {
    "networking.k8s.io/v1 Ingress": _check_ingress,
    "networking.k8s.io/v1 IngressClass": _check_ingress_class,
    "networking.k8s.io/v1 NetworkPolicy": _check_network_policy,
    "v1 Service": _check_service,
}
