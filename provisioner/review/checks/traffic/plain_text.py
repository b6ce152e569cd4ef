"""Hosts of an Ingress that were served by TLS and no longer are, or are with another certificate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, items, mapping, maps
from provisioner.review.rules import Phrase
from provisioner.values import Action, Finding, GroupKind, JsonObject, PlannedAction, Section, Severity

_PLAIN = ReviewRule("ING-04", Section.OBJECTS, Severity.DANGEROUS)
_CERTIFICATE = ReviewRule("ING-04", Section.OBJECTS, Severity.NOTABLE)
_INGRESS = GroupKind("networking.k8s.io", "Ingress")
_TLS = ("spec", "tls")
_STAYING = frozenset({Action.UPDATE, Action.REPLACE, Action.ADOPT})
# The entry without hosts is for every host that no other one names.
_EVERY = "*"


def _changes(facts: Facts) -> Iterator[Finding]:
    for planned in facts.plan.actions:
        if planned.ref.group_kind == _INGRESS and planned.action in _STAYING:
            yield from _of_hosts(planned)


def _of_hosts(planned: PlannedAction) -> Iterator[Finding]:
    if planned.before is None or planned.after is None:
        return
    old, now = _by_tls(planned.before), _by_tls(planned.after)
    staying = _served(planned.before) & _served(planned.after)
    plain = sorted(host for host in staying if {host, _EVERY} & old.keys() and not {host, _EVERY} & now.keys())
    if plain:
        hosts = sorted(map(_host, plain))
        yield _PLAIN.finding("plain-text", planned.ref, where=_TLS, key=plain, hosts=hosts)
    for host in sorted(old.keys() & now.keys()):
        if old[host] != now[host]:
            before, after = (side[host] or None for side in (old, now))
            variant = "certificate" if before and after else "own-certificate" if after else "default-certificate"
            evidence = {"host": _host(host), "before": before, "after": after}
            yield _CERTIFICATE.finding(variant, planned.ref, where=_TLS, key=[host, before, after], **evidence)


def _host(host: str) -> str:
    return Phrase.of(_PLAIN.id, "hosts.every") if host == _EVERY else host


def _by_tls(ingress: JsonObject) -> dict[str, str]:
    """The hosts that TLS is for, each with the Secret of its certificate, "" where none is named."""
    entries = [(map(str, items(one.get("hosts"))), str(one.get("secretName") or "")) for one in _entries(ingress)]
    return {host: secret for hosts, secret in entries for host in (list(hosts) or [_EVERY])}


def _entries(ingress: JsonObject) -> list[Mapping[str, Any]]:
    return maps(_spec(ingress).get("tls"))


def _served(ingress: JsonObject) -> set[str]:
    spec = _spec(ingress)
    hosts = {str(rule.get("host") or _EVERY) for rule in maps(spec.get("rules"))}
    return hosts if hosts and not spec.get("defaultBackend") else {*hosts, _EVERY}


def _spec(ingress: JsonObject) -> JsonObject:
    return dict(mapping(ingress.get("spec")))


CHECK = Check("plain-text", changes=_changes, claims=(Claim("ING-04", frozenset({_INGRESS}), ("spec.tls",)),))
