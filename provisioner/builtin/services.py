"""What the API server refuses of Services, Ingresses and NetworkPolicies.

Source: pkg/apis/core/validation and pkg/apis/networking/validation.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from provisioner.builtin import forms, metadata
from provisioner.builtin.changes import NEVER, Change, FieldRefusal, Path, is_number, numbered, quoted, texts
from provisioner.json_values import mapping, value_at

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


def _check_service(change: Change) -> Iterator[FieldRefusal]:
    spec = change.spec
    kind = spec.get("type") or "ClusterIP"
    is_headless = spec.get("clusterIP") == _NO_ADDRESS
    yield from metadata.check_labels(spec.get("selector"), ("spec", "selector"))
    yield from _check_ports(spec, kind, is_headless=is_headless)
    yield from _check_addresses(spec, kind)
    yield from _check_traffic(spec, kind)
    for place, one in enumerate(texts(spec.get("loadBalancerSourceRanges"))):
        if _is_loose(one.strip(), change):
            yield FieldRefusal(("spec", "loadBalancerSourceRanges", place), f"{_LOOSE}, and is {quoted(one)}")
    yield from _check_places(change, kind)
    if change.old is not None:
        # Addresses never change; what was given out once stays, and so what `sent` leaves out is no change.
        sent, old, new = mapping(change.sent.get("spec")), change.old_spec, change.spec
        kinds = [one.get("type") or "ClusterIP" for one in (old, new)]
        if not set(kinds) <= _WITH_ADDRESS:
            return
        if kinds == ["LoadBalancer"] * 2 and old.get("loadBalancerClass") != new.get("loadBalancerClass"):
            yield FieldRefusal(("spec", "loadBalancerClass"), NEVER, is_of_update=True)
        before, after = old.get("clusterIP"), sent.get("clusterIP")
        is_moved = after is not None and after != "" and (before != after if before else after == _NO_ADDRESS)
        if is_moved:
            yield FieldRefusal(("spec", "clusterIP"), NEVER, is_of_update=True)
        if before == _NO_ADDRESS and after in (None, "") and kinds[1] in _WITH_NODE_PORTS:
            yield FieldRefusal(
                ("spec", "type"), f"must not become {kinds[1]} where clusterIP is None", is_of_update=True
            )
        families = [texts(one.get("ipFamilies")) for one in (old, sent)]
        if families[0] and families[1] and families[0][0] != families[1][0]:
            yield FieldRefusal(("spec", "ipFamilies", 0), NEVER, is_of_update=True)


def without_stale(old: Mapping[str, Any], new: dict[str, Any]) -> None:
    """Take out of a Service what its former type needed and the new one does not, where it has not changed."""
    before, after = mapping(old.get("spec")), new.get("spec")
    if not isinstance(after, dict):
        return
    kind = after.get("type") or "ClusterIP"
    stale = {key for key, kinds in _BY_TYPE.items() if kind not in kinds}
    for key in stale:
        if key in after and after[key] == before.get(key):
            del after[key]
    known = {repr((port.get("port"), port.get("nodePort"))) for _, port in numbered(before.get("ports"))}
    for _, one in numbered(after.get("ports")) if kind not in _WITH_NODE_PORTS else ():
        if isinstance(one, dict) and repr((one.get("port"), one.get("nodePort"))) in known:
            one.pop("nodePort", None)


def _check_ports(spec: Mapping[str, Any], kind: str, *, is_headless: bool) -> Iterator[FieldRefusal]:
    ports = list(numbered(spec.get("ports")))
    if not ports and kind != "ExternalName" and not is_headless:
        yield FieldRefusal(("spec", "ports"), "must hold at least one port")
    names: set[str] = set()
    taken: set[tuple[Any, Any]] = set()
    for place, one in ports:
        where: Path = ("spec", "ports", place)
        name = str(one.get("name") or "")
        if not name and len(ports) > 1:
            yield FieldRefusal((*where, "name"), "is missing, and there is more than one port")
        elif name and name in names:
            yield FieldRefusal((*where, "name"), f"stands there twice: {quoted(name)}")
        names.add(name)
        yield from _check_port(one, where, kind)
        node = one.get("nodePort")
        if node and (one.get("protocol"), node) in taken:
            yield FieldRefusal((*where, "nodePort"), f"stands there twice: {node}")
        taken.add((one.get("protocol"), node))


def _check_port(one: Mapping[str, Any], where: Path, kind: str) -> Iterator[FieldRefusal]:
    target, node = one.get("targetPort"), one.get("nodePort")
    if isinstance(target, str) and target and not forms.is_port_name(target):
        yield FieldRefusal(
            (*where, "targetPort"), f"must be a number or {forms.FORMS['port-name'][1]}, and is {quoted(target)}"
        )
    elif is_number(target) and not 0 < target < 65536:
        yield FieldRefusal((*where, "targetPort"), f"must be from 1 to 65535, and is {target}")
    if node and kind not in _WITH_NODE_PORTS:
        yield FieldRefusal((*where, "nodePort"), f"must not be set where the type is {kind}")
    elif is_number(node) and node and not LEAST_NODE_PORT <= node <= MOST_NODE_PORT:
        yield FieldRefusal(
            (*where, "nodePort"),
            f"must be from {LEAST_NODE_PORT} to {MOST_NODE_PORT} unless the cluster says otherwise, and is {node}",
        )


def _check_addresses(spec: Mapping[str, Any], kind: str) -> Iterator[FieldRefusal]:
    if kind == "ExternalName":
        for key in ("clusterIP", "internalTrafficPolicy"):
            if spec.get(key):
                yield FieldRefusal(("spec", key), "must not be set where the type is ExternalName")
        name = str(spec.get("externalName") or "").removesuffix(".")
        if not forms.is_subdomain(name):
            yield FieldRefusal(
                ("spec", "externalName"), f"must be {forms.FORMS['subdomain'][1]}, and is {quoted(name)}"
            )
        return
    address, all_of_them = spec.get("clusterIP"), texts(spec.get("clusterIPs"))
    if address == _NO_ADDRESS and kind in _WITH_NODE_PORTS:
        yield FieldRefusal(("spec", "clusterIP"), f"must not be None where the type is {kind}")
    places: list[tuple[Path, Any]] = [(("spec", "clusterIP"), address)]
    places += [(("spec", "clusterIPs", place), one) for place, one in enumerate(all_of_them)]
    for path, one in places:
        if one and one != _NO_ADDRESS and not forms.is_ip(str(one)):
            yield FieldRefusal(path, f"must be an address, None or empty, and is {quoted(one)}")
    if address and all_of_them and address != all_of_them[0]:
        yield FieldRefusal(("spec", "clusterIPs"), "must begin with clusterIP")
    families = texts(spec.get("ipFamilies"))
    if len(set(families)) != len(families):
        yield FieldRefusal(("spec", "ipFamilies"), "must not name a family twice")
    if len(families) == 2 and spec.get("ipFamilyPolicy") in (None, "SingleStack"):
        yield FieldRefusal(("spec", "ipFamilyPolicy"), "must not be SingleStack where there are two families")


def _check_traffic(spec: Mapping[str, Any], kind: str) -> Iterator[FieldRefusal]:
    is_outside = kind in _WITH_NODE_PORTS or bool(spec.get("externalIPs"))
    is_local = kind == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"
    if spec.get("externalTrafficPolicy") and not is_outside:
        yield FieldRefusal(("spec", "externalTrafficPolicy"), f"must not be set where the type is {kind}")
    if spec.get("healthCheckNodePort") and not is_local:
        yield FieldRefusal(("spec", "healthCheckNodePort"), "must be set only for a LoadBalancer with local traffic")
    for key in ("allocateLoadBalancerNodePorts", "loadBalancerClass", "loadBalancerSourceRanges"):
        if spec.get(key) not in (None, []) and kind != "LoadBalancer":
            yield FieldRefusal(("spec", key), "must be set only where the type is LoadBalancer")
    for place, one in enumerate(texts(spec.get("loadBalancerSourceRanges"))):
        if not forms.is_cidr(one.strip()):
            yield FieldRefusal(("spec", "loadBalancerSourceRanges", place), "must be a range such as 10.0.0.0/8")


def _check_places(change: Change, kind: str) -> Iterator[FieldRefusal]:
    """From where, and to which endpoints first."""
    for place, address in enumerate(texts(change.spec.get("externalIPs"))):
        if forms.is_special_ip(address):
            yield FieldRefusal(
                ("spec", "externalIPs", place), f"must not be of the machine or its link: {quoted(address)}"
            )
    chosen = change.spec.get("trafficDistribution")
    if isinstance(chosen, str) and chosen not in _DISTRIBUTIONS:
        words = f"must be one of {', '.join(_DISTRIBUTIONS)}, and is {quoted(chosen)}"
        yield FieldRefusal(("spec", "trafficDistribution"), words)
    ranges = value_at(change.new, "metadata", "annotations", _SOURCE_RANGES)
    if not isinstance(ranges, str) or change.spec.get("loadBalancerSourceRanges"):
        return
    where: Path = ("metadata", "annotations", _SOURCE_RANGES)
    if kind != "LoadBalancer":
        yield FieldRefusal(where, "must be set only where the type is LoadBalancer")
    elif ranges.strip() and not all(forms.is_cidr(one.strip()) for one in ranges.split(",")):
        yield FieldRefusal(where, f"must be ranges such as 10.0.0.0/8, and is {quoted(ranges)}")


def needs_both_families(change: Change) -> bool:
    """Whether a Service asks for what not every cluster has."""
    spec, old = change.spec, change.old_spec
    wanted = [(one.get("ipFamilies"), one.get("ipFamilyPolicy")) for one in (spec, old)]
    is_new = change.old is None or wanted[0] != wanted[1]
    return is_new and ("IPv6" in texts(spec.get("ipFamilies")) or spec.get("ipFamilyPolicy") == "RequireDualStack")


def is_address_unknown(change: Change) -> bool:
    """Whether an update names the address of a Service that got one by the server: it may be the same."""
    sent = mapping(change.sent.get("spec")).get("clusterIP")
    return bool(change.old is not None and sent and sent != _NO_ADDRESS and not change.old_spec.get("clusterIP"))


def _check_ingress(change: Change) -> Iterator[FieldRefusal]:
    spec = change.spec
    if not spec.get("rules") and not spec.get("defaultBackend"):
        yield FieldRefusal(("spec",), "must have rules or a default backend")
    if spec.get("defaultBackend") is not None:
        yield from _check_backend(mapping(spec["defaultBackend"]), ("spec", "defaultBackend"))
    for place, rule in numbered(spec.get("rules")):
        yield from _check_ingress_rule(rule, ("spec", "rules", place))
    for place, one in numbered(spec.get("tls")):
        for number, host in enumerate(texts(one.get("hosts"))):
            if not _is_host(host):
                words = f"must be the name of a host, and is {quoted(host)}"
                yield FieldRefusal(("spec", "tls", place, "hosts", number), words)
    annotated = value_at(change.new, "metadata", "annotations", "kubernetes.io/ingress.class")
    if spec.get("ingressClassName") and annotated and annotated != spec["ingressClassName"] and change.old is None:
        words = "must be the same as ingressClassName"
        yield FieldRefusal(("metadata", "annotations", "kubernetes.io/ingress.class"), words)


def _check_ingress_rule(rule: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    host = str(rule.get("host") or "")
    if host and (not _is_host(host) or forms.is_ip(host)):
        yield FieldRefusal(
            (*path, "host"), f"must be a name such as example.com or *.example.com, and is {quoted(host)}"
        )
    for number, one in numbered(value_at(rule, "http", "paths")):
        inner: Path = (*path, "http", "paths", number)
        yield from _check_ingress_path(one, inner)
        yield from _check_backend(mapping(one.get("backend")), (*inner, "backend"))


def _check_ingress_class(change: Change) -> Iterator[FieldRefusal]:
    name = str(change.spec.get("controller") or "")
    domain, slash, rest = name.partition("/")
    if not (slash and rest and forms.is_subdomain(domain) and len(name) <= MOST_CONTROLLER):
        words = f"must be a domain, a slash and a path, at most {MOST_CONTROLLER} characters, and is {quoted(name)}"
        yield FieldRefusal(("spec", "controller"), words)
    parameters = mapping(change.spec.get("parameters"))
    if parameters and (parameters.get("scope") == "Namespace") != bool(parameters.get("namespace")):
        yield FieldRefusal(
            ("spec", "parameters", "namespace"), "must be set where the scope is Namespace, and nowhere else"
        )


def _is_host(text: str) -> bool:
    return forms.is_wildcard_subdomain(text) if "*" in text else forms.is_subdomain(text)


def _check_ingress_path(one: Mapping[str, Any], where: Path) -> Iterator[FieldRefusal]:
    path, kind = str(one.get("path") or ""), one.get("pathType")
    if kind in ("Exact", "Prefix"):
        if not path.startswith("/"):
            yield FieldRefusal((*where, "path"), f"must begin with /, and is {quoted(path)}")
        for bad in ("//", "/./", "/../", "%2f", "%2F"):
            if bad in path:
                yield FieldRefusal((*where, "path"), f"must not hold {quoted(bad)}")
        for bad in ("/..", "/."):
            if path.endswith(bad):
                yield FieldRefusal((*where, "path"), f"must not end with {quoted(bad)}")
    elif path and not path.startswith("/"):
        yield FieldRefusal((*where, "path"), f"must begin with /, and is {quoted(path)}")


def _check_backend(backend: Mapping[str, Any], where: Path) -> Iterator[FieldRefusal]:
    service, resource = backend.get("service"), backend.get("resource")
    if (service is None) == (resource is None):
        yield FieldRefusal(where, "must name a service or a resource")
    elif resource is not None:
        yield from _check_resource(mapping(resource), (*where, "resource"))
    else:
        port = mapping(mapping(service).get("port"))
        if bool(port.get("name")) == bool(port.get("number")):
            yield FieldRefusal((*where, "service", "port"), "must have a name or a number")
        named = port.get("name")
        if isinstance(named, str) and named and not forms.is_port_name(named):
            yield FieldRefusal(
                (*where, "service", "port", "name"), f"must be {forms.FORMS['port-name'][1]}, and is {quoted(named)}"
            )
        name = str(mapping(service).get("name") or "")
        if not forms.is_label_1035(name) and not forms.is_label(name):
            yield FieldRefusal((*where, "service", "name"), f"must be the name of a Service, and is {quoted(name)}")


def _check_resource(resource: Mapping[str, Any], where: Path) -> Iterator[FieldRefusal]:
    for key in ("kind", "name"):
        if not resource.get(key):
            yield FieldRefusal((*where, key), "is missing")
    group = resource.get("apiGroup")
    if isinstance(group, str) and group and not forms.is_subdomain(group):
        yield FieldRefusal((*where, "apiGroup"), f"must be {forms.FORMS['subdomain'][1]}, and is {quoted(group)}")


def _check_network_policy(change: Change) -> Iterator[FieldRefusal]:
    spec = change.spec
    yield from metadata.check_selector(spec.get("podSelector"), ("spec", "podSelector"))
    if len(texts(spec.get("policyTypes"))) > 2:
        yield FieldRefusal(("spec", "policyTypes"), "must be at most two")
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for place, rule in numbered(spec.get(direction)):
            for number, port in numbered(rule.get("ports")):
                yield from _check_policy_port(port, ("spec", direction, place, "ports", number))
            for number, peer in numbered(rule.get(peers)):
                yield from _check_peer(peer, ("spec", direction, place, peers, number), change)


def _check_policy_port(one: Mapping[str, Any], where: Path) -> Iterator[FieldRefusal]:
    port, end = one.get("port"), one.get("endPort")
    if isinstance(port, str) and not forms.is_port_name(port):
        yield FieldRefusal(
            (*where, "port"), f"must be a number or {forms.FORMS['port-name'][1]}, and is {quoted(port)}"
        )
    elif is_number(port) and not 0 < port < 65536:
        yield FieldRefusal((*where, "port"), f"must be from 1 to 65535, and is {port}")
    if end is not None and not is_number(port):
        yield FieldRefusal((*where, "endPort"), "must be set only where the port is a number")
    elif is_number(end) and is_number(port) and end < port:
        yield FieldRefusal((*where, "endPort"), f"must not be below the port, which is {port}")


def _check_peer(peer: Mapping[str, Any], where: Path, change: Change) -> Iterator[FieldRefusal]:
    block = peer.get("ipBlock")
    if block is None and peer.get("podSelector") is None and peer.get("namespaceSelector") is None:
        yield FieldRefusal(where, "must name pods, namespaces or a range of addresses")
    for key in ("podSelector", "namespaceSelector"):
        yield from metadata.check_selector(peer.get(key), (*where, key))
    if block is None:
        return
    if peer.get("podSelector") is not None or peer.get("namespaceSelector") is not None:
        yield FieldRefusal((*where, "ipBlock"), "must not stand beside selectors")
    inner = (*where, "ipBlock")
    cidr = str(value_at(block, "cidr") or "")
    if not forms.is_cidr(cidr):
        yield FieldRefusal((*inner, "cidr"), f"must be {forms.FORMS['cidr'][1]}, and is {quoted(cidr)}")
        return
    if _is_loose(cidr, change):
        yield FieldRefusal((*inner, "cidr"), f"{_LOOSE}, and is {quoted(cidr)}")
    for place, one in enumerate(texts(value_at(block, "except"))):
        if _is_loose(one, change):
            yield FieldRefusal((*inner, "except", place), f"{_LOOSE}, and is {quoted(one)}")
        elif not _is_within(one, cidr):
            words = f"must be a range inside {cidr}, and smaller; it is {quoted(one)}"
            yield FieldRefusal((*inner, "except", place), words)


def _is_loose(cidr: str, change: Change) -> bool:
    """Whether a range has bits beyond its prefix, which servers refuse since 1.36 unless it stood there before."""
    is_loose = not change.is_before(STRICT_SINCE) and forms.is_cidr(cidr) and not forms.is_network(cidr)
    return is_loose and not _holds(change.old_spec, cidr)


def _holds(value: Any, text: str) -> bool:
    if isinstance(value, Mapping):
        return any(_holds(one, text) for one in value.values())
    return any(_holds(one, text) for one in value) if isinstance(value, list) else value == text


def _is_within(inner: str, outer: str) -> bool:
    if not forms.is_cidr(inner):
        return False
    one, other = ipaddress.ip_network(inner, strict=False), ipaddress.ip_network(outer, strict=False)
    return (
        one.version == other.version
        and one != other
        and one.network_address in other
        and one.prefixlen > other.prefixlen
    )


RULES: dict[str, Callable[[Change], Iterator[FieldRefusal]]] = {
    "networking.k8s.io/v1 Ingress": _check_ingress,
    "networking.k8s.io/v1 IngressClass": _check_ingress_class,
    "networking.k8s.io/v1 NetworkPolicy": _check_network_policy,
    "v1 Service": _check_service,
}
