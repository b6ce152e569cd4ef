"""Ports of the nodes and addresses that one Service at a time can have: the API server refuses a second one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from provisioner.review.base.facts import Check, Facts, FieldPath, Reads, ReviewRule, items, mapping, maps
from provisioner.values import Action, Finding, GroupKind, JsonObject, PlannedAction, Section, Severity

_REFUSED = ReviewRule("OBJ-10", Section.OBJECTS, Severity.BREAKING)
_SERVICE = GroupKind("", "Service")
_WITH_NODE_PORTS = frozenset({"NodePort", "LoadBalancer"})
_WRITES = frozenset({Action.CREATE, Action.UPDATE, Action.REPLACE, Action.ADOPT, Action.RERUN})
_Held = dict[tuple[str, Any], PlannedAction]


def _changes(facts: Facts) -> Iterator[Finding]:
    """What is asked for in the order of the plan, as long as an object before or after it has the same.

    Objects are deleted when all others are written.
    """
    services = [one for one in facts.plan.actions if one.ref.group_kind == _SERVICE]
    holders: _Held = {what: one for one in services if one.before is not None for what in _asked(one.before)}
    taken: _Held = {}
    for one in (it for it in services if it.after is not None and it.action is not Action.DELETE):
        asked = _asked(one.after or {})
        for what in [] if one.before is None else _asked(one.before):
            if what not in asked and holders.get(what) is one:
                del holders[what]
        for what, where in asked.items():
            holder = taken.get(what) or holders.get(what) or one
            if one.action in _WRITES and holder.ref != one.ref:
                stays = what in taken or holder.action not in {Action.DELETE, Action.UPDATE}
                variant = "taken" if stays else f"held-until-{holder.action}"
                told = {"what": what[0], "value": what[1], "other": holder.ref}
                yield _REFUSED.finding(variant, one.ref, where=where, key=[*what, str(holder.ref)], **told)
            taken.setdefault(what, one)


def _asked(service: JsonObject) -> dict[tuple[str, Any], FieldPath]:
    """What a Service asks for by its value, and where; node ports are given out by number, whatever the protocol."""
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


CHECK = Check("allocations", changes=_changes, reads=frozenset({Reads.CHOICES}))
