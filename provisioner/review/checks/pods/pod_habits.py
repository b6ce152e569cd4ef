"""How pods behave on a node that they share: limits, probes, tokens, priorities, and whose place they take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from provisioner.review.base.claims import PODS, Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts, mapping, maps
from provisioner.review.workloads.pod_specs import PodSpec, pod_specs
from provisioner.values import Finding, ObjectRef, Section, Severity

_HABITS = ReviewRule("POD-24", Section.PODS, Severity.SAFE)
_PLACE = ReviewRule("POD-25", Section.PODS, Severity.NOTABLE)
_CLASS = ReviewRule("POD-26", Section.PODS, Severity.NOTABLE)
_NO_CLASS = ReviewRule("POD-26", Section.PODS, Severity.BREAKING)
_USERS_LOST = ReviewRule("POD-27", Section.PODS, Severity.NOTABLE)

_OF_THE_CLUSTER = frozenset({"kube-system", "kube-public", "kube-node-lease", "default"})
_SYSTEM_CLASSES = frozenset({"system-node-critical", "system-cluster-critical"})


def _standing(state: StateFacts) -> Iterator[Finding]:
    for pod in pod_specs(state.objects):
        if missing := _missing_habits(pod):
            yield _HABITS.finding("leaves-out", pod.ref, where=pod.path, key=missing, missing=missing)
        if (place := pod.ref.namespace) in _OF_THE_CLUSTER:
            yield _PLACE.finding(
                "beside-the-cluster", pod.ref, where=("metadata", "namespace"), key=place, namespace=place
            )
        name = str(pod.body.get("priorityClassName") or "")
        if name in _SYSTEM_CLASSES:
            where = (*pod.path, "priorityClassName")
            yield _CLASS.finding("system-priority", pod.ref, where=where, key=name, **{"class": name})
        if name := str(pod.body.get("runtimeClassName") or ""):
            where = (*pod.path, "runtimeClassName")
            yield _CLASS.finding("runtime", pod.ref, where=where, key=["runtime", name], **{"class": name})


def _missing_habits(pod: PodSpec) -> list[str]:
    """What a pod leaves out; what it is told once covers all its containers."""
    containers = [one for one in pod.containers() if one.list_name == "containers"]
    found = []
    if any(not mapping(mapping(one.body.get("resources")).get("limits")).get("memory") for one in containers):
        found.append("memory-limit")
    if any(one.security.get("readOnlyRootFilesystem") is not True for one in containers):
        found.append("read-only-root")
    is_served = any(maps(one.body.get("ports")) for one in containers)
    if is_served and not any(one.body.get("readinessProbe") for one in containers):
        found.append("readiness-probe")
    if pod.account == "default" and pod.body.get("automountServiceAccountToken") is not False:
        found.append("opt-out-of-token")
    return found


def _changes(facts: Facts) -> Iterator[Finding]:
    before = {pod.ref.identity: pod for pod in pod_specs(facts.previous_state().objects)}
    brought = {one.ref.identity for one in facts.content.manifests}
    for pod in pod_specs(facts.state().objects):
        old = before.get(pod.ref.identity)
        if old is not None and old.body.get("hostUsers") is False and pod.body.get("hostUsers") is not False:
            yield _USERS_LOST.finding("no-user-namespace", pod.ref, where=(*pod.path, "hostUsers"))
        for wanted in _classes(pod):
            if wanted.identity not in brought and facts.around.exists.get(wanted.identity) is False:
                key = ["missing", str(wanted)]
                found = _NO_CLASS.finding("no-class", pod.ref, where=pod.path, key=key, wanted=wanted)
                yield replace(found, is_new=old is None or wanted not in _classes(old))


def _classes(pod: PodSpec) -> Iterator[ObjectRef]:
    if name := str(pod.body.get("priorityClassName") or ""):
        yield ObjectRef("scheduling.k8s.io", "v1", "PriorityClass", "", name)
    if runtime := str(pod.body.get("runtimeClassName") or ""):
        yield ObjectRef("node.k8s.io", "v1", "RuntimeClass", "", runtime)


def _mentions(facts: Facts) -> Iterator[ObjectRef]:
    for pod in pod_specs(tuple(one.body for one in facts.content.manifests)):
        yield from _classes(pod)


_CLAIMS = (Claim("POD-27", PODS, ("{pod}.hostUsers",), is_of_new=True),)

CHECK = Check("pod-habits", claims=_CLAIMS, changes=_changes, standing=_standing, mentions=_mentions)
