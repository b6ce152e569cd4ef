"""How pods behave on a node that they share: limits, probes, tokens, priorities, and whose place they take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from provisioner.review.base.claims import PODS, Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts, mapping, maps, said
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
        missing = _missing_habits(pod)
        if missing:
            message = f"{said(pod.ref)}: {', '.join(missing)}"
            yield _HABITS.at(pod.ref, message, path=pod.path, evidence={"missing": missing}, key=missing)
        if pod.ref.namespace in _OF_THE_CLUSTER:
            message = f"{said(pod.ref)} runs in {pod.ref.namespace}, beside what belongs to the cluster"
            yield _PLACE.at(pod.ref, message, path=("metadata", "namespace"), key=pod.ref.namespace)
        name = str(pod.body.get("priorityClassName") or "")
        if name in _SYSTEM_CLASSES:
            message = f"{said(pod.ref)} runs as {name}: other pods are stopped to make room for it"
            yield _CLASS.at(pod.ref, message, path=(*pod.path, "priorityClassName"), key=name)
        if runtime := str(pod.body.get("runtimeClassName") or ""):
            message = (
                f"{said(pod.ref)} asks for the runtime {runtime}, and how well that isolates pods is not known here"
            )
            yield _CLASS.at(pod.ref, message, path=(*pod.path, "runtimeClassName"), key=["runtime", runtime])


def _missing_habits(pod: PodSpec) -> list[str]:
    """What a pod leaves out, in the words of a list; what it is told once covers all its containers."""
    containers = [one for one in pod.containers() if one.list_name == "containers"]
    found = []
    if any(not mapping(mapping(one.body.get("resources")).get("limits")).get("memory") for one in containers):
        found.append("no memory limit")
    if any(one.security.get("readOnlyRootFilesystem") is not True for one in containers):
        found.append("writable root file system")
    is_served = any(maps(one.body.get("ports")) for one in containers)
    if is_served and not any(one.body.get("readinessProbe") for one in containers):
        found.append("no readiness probe")
    has_account = pod.body.get("serviceAccountName") not in {None, "", "default"}
    if not has_account and pod.body.get("automountServiceAccountToken") is not False:
        found.append("a token of the default account that it does not ask for")
    return found


def _changes(facts: Facts) -> Iterator[Finding]:
    before = {pod.ref.identity: pod for pod in pod_specs(facts.previous_state().objects)}
    brought = {one.ref.identity for one in facts.content.manifests}
    for pod in pod_specs(facts.state().objects):
        old = before.get(pod.ref.identity)
        if old is not None and old.body.get("hostUsers") is False and pod.body.get("hostUsers") is not False:
            message = (
                f"{said(pod.ref)} no longer has a user namespace: root in its containers is root on the node again"
            )
            yield _USERS_LOST.at(pod.ref, message, path=(*pod.path, "hostUsers"))
        for wanted in _classes(pod):
            if wanted.identity not in brought and facts.around.exists.get(wanted.identity) is False:
                message = f"{said(pod.ref)} asks for {said(wanted)}, which does not exist: its pods are refused"
                found = _NO_CLASS.at(pod.ref, message, path=pod.path, key=["missing", str(wanted)])
                yield replace(found, is_new=old is None or wanted not in _classes(old))


def _classes(pod: PodSpec) -> Iterator[ObjectRef]:
    if name := str(pod.body.get("priorityClassName") or ""):
        yield ObjectRef("scheduling.k8s.io", "v1", "PriorityClass", "", name)
    if runtime := str(pod.body.get("runtimeClassName") or ""):
        yield ObjectRef("node.k8s.io", "v1", "RuntimeClass", "", runtime)


def _mentions(facts: Facts) -> Iterator[ObjectRef]:
    for pod in pod_specs(tuple(one.body for one in facts.content.manifests)):
        yield from _classes(pod)


_CLAIMS = (Claim("POD-27", PODS, ("{pod}.hostUsers",)),)

CHECK = Check("pod-habits", claims=_CLAIMS, changes=_changes, standing=_standing, mentions=_mentions)
