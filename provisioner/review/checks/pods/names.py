"""By what pods find the hosts that they name: addresses and name servers of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from provisioner.review.base.claims import PODS, Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts, items, mapping, maps
from provisioner.review.rules.messages import VARIANT
from provisioner.review.workloads.pod_specs import PodSpec, pod_specs
from provisioner.review.workloads.workload_changes import change_record, field_changes, pod_changes
from provisioner.values import Finding, Section, Severity

_RULE = ReviewRule("POD-37", Section.PODS, Severity.NOTABLE)

# What _ways tells of, as _stated names it.
_STANDING = frozenset({"dnsPolicy", "hostAliases", "nameservers", "searches"})
_OF_CLUSTER = frozenset({"", "ClusterFirst", "ClusterFirstWithHostNet"})


def _standing(state: StateFacts) -> Iterator[Finding]:
    for pod in pod_specs(state.objects):
        if by := list(_ways(pod)):
            yield _RULE.finding("own-names", pod.ref, key=by, by=by)


def _ways(pod: PodSpec) -> Iterator[dict[str, Any]]:
    """By what a pod finds hosts that others do not find so."""
    for one in maps(pod.body.get("hostAliases")):
        yield {VARIANT: "alias", "hostnames": items(one.get("hostnames")), "ip": one.get("ip")}
    policy, config = str(pod.body.get("dnsPolicy") or ""), mapping(pod.body.get("dnsConfig"))
    if servers := items(config.get("nameservers")):
        yield {VARIANT: "servers", "servers": servers}
    elif policy not in _OF_CLUSTER:
        yield {VARIANT: "servers-of-node" if policy == "Default" else "policy", "policy": policy}
    if domains := items(config.get("searches")):
        yield {VARIANT: "searches", "domains": domains}


def _changes(facts: Facts) -> Iterator[Finding]:
    """What changes beside that: what is gone, options, and the policies of the cluster."""
    for change in pod_changes(facts.plan):
        before = list(_ways(change.before))
        is_told = any(one not in before for one in _ways(change.after))
        changes = field_changes(_stated(change.before), _stated(change.after))
        if found := [one for one in changes if not (is_told and one.path[0] in _STANDING)]:
            records = list(map(change_record, found))
            yield _RULE.finding("changed", change.ref, key=["changes", *records], changes=records)


def _stated(pod: PodSpec) -> dict[str, Any]:
    config = mapping(pod.body.get("dnsConfig"))
    stated = {"hostAliases": pod.body.get("hostAliases"), "dnsPolicy": pod.body.get("dnsPolicy"), **config}
    return {key: value for key, value in stated.items() if value and value != "ClusterFirst"}


_CLAIMS = (Claim("POD-37", PODS, ("{pod}.hostAliases", "{pod}.dnsConfig", "{pod}.dnsPolicy")),)
CHECK = Check("names", changes=_changes, standing=_standing, claims=_CLAIMS)
