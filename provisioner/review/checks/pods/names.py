"""By what pods find the hosts that they name: addresses and name servers of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from provisioner.review.base.claims import PODS, Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts, items, mapping, maps, said
from provisioner.review.workloads.pod_changes import change_words, changes_words, field_changes, pod_changes
from provisioner.review.workloads.pod_specs import PodSpec, pod_specs
from provisioner.sentences import some, some_phrases
from provisioner.values import Finding, Section, Severity

_RULE = ReviewRule("POD-37", Section.PODS, Severity.NOTABLE)

MAX_TOLD = 3
# What is told of what stands, as _stated names it.
_STANDING = frozenset({"dnsPolicy", "hostAliases", "nameservers", "searches"})
_OF_CLUSTER = frozenset({"", "ClusterFirst", "ClusterFirstWithHostNet"})


def _standing(state: StateFacts) -> Iterator[Finding]:
    for pod in pod_specs(state.objects):
        told = list(_told(pod))
        if told:
            message = f"{said(pod.ref)} resolves names differently than the cluster: {some_phrases(told, MAX_TOLD)}"
            yield _RULE.at(pod.ref, message, evidence={"by": told}, key=told)


def _told(pod: PodSpec) -> Iterator[str]:
    for one in maps(pod.body.get("hostAliases")):
        yield f"{some(items(one.get('hostnames'))) or 'nothing'} is {one.get('ip')}"
    policy, config = str(pod.body.get("dnsPolicy") or ""), mapping(pod.body.get("dnsConfig"))
    if servers := items(config.get("nameservers")):
        yield f"it asks {some(servers)}"
    elif policy not in _OF_CLUSTER:
        yield "it asks the name servers of its node" if policy == "Default" else f"its dnsPolicy is {policy}"
    if domains := items(config.get("searches")):
        yield f"it looks in {some(domains)}"


def _changes(facts: Facts) -> Iterator[Finding]:
    """What changes beside that: what is gone, options, and the policies of the cluster."""
    for change in pod_changes(facts.plan):
        is_told = bool(set(_told(change.after)) - set(_told(change.before)))
        changes = field_changes(_stated(change.before), _stated(change.after))
        if found := [one for one in changes if not (is_told and one.path[0] in _STANDING)]:
            message = f"{said(change.ref)} resolves names differently than before: {changes_words(found)}"
            told = list(map(change_words, found))
            yield _RULE.at(change.ref, message, evidence={"changes": told}, key=["changes", *told])


def _stated(pod: PodSpec) -> dict[str, Any]:
    config = mapping(pod.body.get("dnsConfig"))
    stated = {"hostAliases": pod.body.get("hostAliases"), "dnsPolicy": pod.body.get("dnsPolicy"), **config}
    return {key: value for key, value in stated.items() if value and value != "ClusterFirst"}


_CLAIMS = (Claim("POD-37", PODS, ("{pod}.hostAliases", "{pod}.dnsConfig", "{pod}.dnsPolicy")),)
CHECK = Check("names", changes=_changes, standing=_standing, claims=_CLAIMS)
