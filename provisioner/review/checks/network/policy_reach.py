"""What the rules of a network policy let through: from where, and whether one set of rules lets through no more than
another."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from provisioner.review.base.facts import items, mapping, maps

INGRESS, EGRESS = "ingress", "egress"
PEERS = {INGRESS: "from", EGRESS: "to"}
_TYPES = {INGRESS: "Ingress", EGRESS: "Egress"}
# A block with a shorter prefix than this is no network of somebody, but a good part of all of them.
_WIDE_PREFIX = {4: 8, 6: 16}
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def restricts(spec: Mapping[str, Any], direction: str) -> bool:
    """Whether a policy restricts a direction at all; without `policyTypes`, egress where it has rules for it."""
    if "policyTypes" in spec:
        return _TYPES[direction] in items(spec.get("policyTypes"))
    return direction == INGRESS or direction in spec


def wider_rules(before: Mapping[str, Any], after: Mapping[str, Any], direction: str) -> bool:
    """Whether a rule of `after` is not contained in one of `before`, where both restrict the direction."""
    if not restricts(before, direction) or not restricts(after, direction):
        return False
    old, peers = maps(before.get(direction)), PEERS[direction]
    return not all(any(_contains(one, new, peers) for one in old) for new in maps(after.get(direction)))


def _contains(wider: Mapping[str, Any], rule: Mapping[str, Any], peers: str) -> bool:
    return all(_has_all(maps(wider.get(part)), maps(rule.get(part))) for part in (peers, "ports"))


def _has_all(wider: list[Mapping[str, Any]], entries: list[Mapping[str, Any]]) -> bool:
    """An empty list means everything."""
    if not wider:
        return True
    known = {_text(one) for one in wider}
    return bool(entries) and all(_text(one) in known for one in entries)


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def openness(rule: Mapping[str, Any], direction: str) -> str:
    """How far a rule is open, as a variant of NP-03: "" where it names who is meant."""
    peers = maps(rule.get(PEERS[direction]))
    if not peers or any(not one.prefixlen for one in _collapsed(list(_networks(peers)))):
        return "everywhere"
    if wide_networks(rule, direction):
        return "wide-networks"
    is_any_pod = any(one.get("namespaceSelector") == {} and not one.get("podSelector") for one in peers)
    return "every-pod" if is_any_pod else ""


def wide_networks(rule: Mapping[str, Any], direction: str) -> list[str]:
    """The address blocks of a rule that are a good part of all addresses, sorted."""
    networks = _networks(maps(rule.get(PEERS[direction])))
    return sorted(str(one) for one in networks if one.prefixlen < _WIDE_PREFIX[one.version])


def _networks(peers: Iterable[Mapping[str, Any]]) -> Iterator[_Network]:
    for peer in peers:
        try:
            yield ipaddress.ip_network(str(mapping(peer.get("ipBlock")).get("cidr")), strict=False)
        except ValueError:
            continue  # no address block; the API server refuses one that is none


def _collapsed(networks: list[_Network]) -> list[_Network]:
    fours = [one for one in networks if isinstance(one, ipaddress.IPv4Network)]
    sixes = [one for one in networks if isinstance(one, ipaddress.IPv6Network)]
    return [*ipaddress.collapse_addresses(fours), *ipaddress.collapse_addresses(sixes)]
