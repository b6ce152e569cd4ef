"""How pods behave on a node that they share: limits, probes, tokens, priorities, and whose place they take."""

from __future__ import annotations

from collections.abc import Iterator

from provisioner.review.base.facts import Check, Facts, Listing, Rule, State, mapping, maps, said
from provisioner.review.workloads.pod_specs import PodSpec, pod_specs
from provisioner.sentences import number
from provisioner.values import Finding, ObjectRef, Section, Severity

_HABITS = Rule("POD-24", Section.PODS, Severity.SAFE)
_PLACE = Rule("POD-25", Section.PODS, Severity.NOTABLE)
_CLASS = Rule("POD-26", Section.PODS, Severity.NOTABLE)
_NO_CLASS = Rule("POD-26", Section.PODS, Severity.BREAKING)
_USERS_LOST = Rule("POD-27", Section.PODS, Severity.NOTABLE)
_NO_NODE = Rule("IMG-10", Section.IMAGES, Severity.BREAKING)

_OF_THE_CLUSTER = frozenset({"kube-system", "kube-public", "kube-node-lease", "default"})
_SYSTEM_CLASSES = frozenset({"system-node-critical", "system-cluster-critical"})
_ARCHITECTURE = "kubernetes.io/arch"
_SYSTEM = "kubernetes.io/os"
_NODES = Listing("", "v1", "Node", metadata_only=True)


def _standing(state: State) -> Iterator[Finding]:
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
                yield _NO_CLASS.at(pod.ref, message, path=pod.path, key=["missing", str(wanted)])
        yield from _of_nodes(pod, facts)


def _of_nodes(pod: PodSpec, facts: Facts) -> Iterator[Finding]:
    """A selector for a kind of machine that the cluster has not: the pods wait for ever."""
    listed = facts.around.lists.get(_NODES)
    if listed is None or not listed.is_whole or not listed.objects:
        return
    wanted = mapping(pod.body.get("nodeSelector"))
    asked = {key: wanted[key] for key in (_ARCHITECTURE, _SYSTEM) if key in wanted}
    labels = [mapping(mapping(one.get("metadata")).get("labels")) for one in listed.objects]
    if asked and not any(all(has.get(key) == value for key, value in asked.items()) for has in labels):
        words = ", ".join(f"{key.rpartition('/')[2]} {value}" for key, value in sorted(asked.items()))
        message = (
            f"{said(pod.ref)} wants nodes with {words}, and of {number(len(labels), 'node')} none is: "
            "its pods never start"
        )
        yield _NO_NODE.at(pod.ref, message, path=(*pod.path, "nodeSelector"), key=words)


def _classes(pod: PodSpec) -> Iterator[ObjectRef]:
    if name := str(pod.body.get("priorityClassName") or ""):
        yield ObjectRef("scheduling.k8s.io", "v1", "PriorityClass", "", name)
    if runtime := str(pod.body.get("runtimeClassName") or ""):
        yield ObjectRef("node.k8s.io", "v1", "RuntimeClass", "", runtime)


def _mentions(facts: Facts) -> Iterator[ObjectRef]:
    for pod in pod_specs(tuple(one.body for one in facts.content.manifests)):
        yield from _classes(pod)


def _lists(facts: Facts) -> Iterator[Listing]:
    for pod in pod_specs(tuple(one.body for one in facts.content.manifests)):
        if {_ARCHITECTURE, _SYSTEM} & set(mapping(pod.body.get("nodeSelector"))):
            yield _NODES


CHECK = Check("pod-habits", changes=_changes, standing=_standing, mentions=_mentions, lists=_lists)
