"""How pods run: on which nodes, within which bounds, by which names they find hosts, and how they behave on a node that
they share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from provisioner.json_values import items, mapping, maps, value_at
from provisioner.review.base.claims import PODS, Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts
from provisioner.review.base.sizes import amount_of
from provisioner.review.rules.messages import VARIANT
from provisioner.review.workloads.pod_specs import Container, PodSpec, pod_specs
from provisioner.review.workloads.workload_changes import (
    PROBES,
    PodChange,
    change_record,
    field_changes,
    of_containers,
    pod_changes,
    sides,
)
from provisioner.values import Finding, ObjectRef, Section, Severity

_HABITS = ReviewRule("POD-24", Section.PODS, Severity.SAFE)
_PLACE = ReviewRule("POD-25", Section.PODS, Severity.NOTABLE)
_CLASS = ReviewRule("POD-26", Section.PODS, Severity.NOTABLE)
_NO_CLASS = ReviewRule("POD-26", Section.PODS, Severity.BREAKING)
_USERS_LOST = ReviewRule("POD-27", Section.PODS, Severity.NOTABLE)
_BOUNDS_CHANGED = ReviewRule("POD-34", Section.PODS, Severity.NOTABLE)
_NODE_NAMED = ReviewRule("POD-35", Section.PODS, Severity.DANGEROUS)
_ADMITTED = ReviewRule("POD-35", Section.PODS, Severity.NOTABLE)
_MOVED = ReviewRule("POD-36", Section.PODS, Severity.NOTABLE)
_OWN_NAMES = ReviewRule("POD-37", Section.PODS, Severity.NOTABLE)

# What the API server puts where nothing, or zero, is said of a probe.
_PROBE_DEFAULTS = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
# What _find_ways tells of, as _find_stated_names names it.
_TOLD_NAMES = frozenset({"dnsPolicy", "hostAliases", "nameservers", "searches"})
_POLICIES_OF_CLUSTER = frozenset({"", "ClusterFirst", "ClusterFirstWithHostNet"})
_CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_PASSING = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
_USUAL_SYSTEM = ("kubernetes.io/os", "linux")
# Fields of the pod that say where it runs, and what the API server puts where they are not set.
_PLACEMENT: Mapping[str, Any] = {
    "affinity": None,
    "nodeSelector": None,
    "preemptionPolicy": "PreemptLowerPriority",
    "priorityClassName": None,
    "schedulerName": "default-scheduler",
    "schedulingGates": None,
    "tolerations": None,
    "topologySpreadConstraints": None,
}
_OF_THE_CLUSTER = frozenset({"kube-system", "kube-public", "kube-node-lease", "default"})
_SYSTEM_CLASSES = frozenset({"system-node-critical", "system-cluster-critical"})


def compare_bounds(facts: Facts) -> Iterator[Finding]:
    """Find what watches and bounds containers that stay: probes that change or go, requests, limits, empty volumes."""
    for change in pod_changes(facts.plan):
        found: list[dict[str, Any]] = []
        for old, new in change.kept():
            found += _compare_probes(old, new)
            found += [{"container": new.name, **entry} for entry in _compare_resources(old.body, new.body)]
        found += _compare_resources(change.before.body, change.after.body)
        found += _compare_empty_volumes(change)
        if found:
            yield _BOUNDS_CHANGED.finding("changed", change.ref, key=found, changes=found)


def _compare_probes(old: Container, new: Container) -> Iterator[dict[str, Any]]:
    for key in PROBES:
        before, after = (_find_stated_probe(mapping(container.body.get(key))) for container in (old, new))
        who, changes = {"container": new.name, "probe": key}, list(map(change_record, field_changes(before, after)))
        if before and not after:
            yield {VARIANT: "no-probe", **who}
        elif after and not before:
            yield {VARIANT: "new-probe", **who, "fields": changes}
        else:
            yield from ({VARIANT: "probe", **who, **change} for change in changes)


def _find_stated_probe(probe: Mapping[str, Any]) -> dict[str, Any]:
    """Return a probe without what says the same as its absence."""
    stated = {key: value for key, value in probe.items() if value and _PROBE_DEFAULTS.get(key) != value}
    if request := mapping(stated.get("httpGet")):
        usual = {"scheme": "HTTP", "path": "/"}
        stated["httpGet"] = {key: value for key, value in request.items() if value and usual.get(key) != value}
    return stated


def _compare_resources(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield requests and limits whose amounts differ, however they are written."""
    for part in ("limits", "requests"):
        before, after = (mapping(value_at(side, "resources", part)) for side in (old, new))
        for name in sorted({*before, *after}, key=str):
            was, shall = before.get(name), after.get(name)
            if was != shall and not _is_same_amount(was, shall):
                yield {VARIANT: "resource", "resource": name, "part": part, **sides(was, shall)}


def _is_same_amount(old: object, new: object) -> bool:
    before = amount_of(old)
    return before is not None and before == amount_of(new)


def _compare_empty_volumes(change: PodChange) -> Iterator[dict[str, Any]]:
    before, after = (
        {
            str(volume.get("name")): mapping(volume["emptyDir"])
            for volume in maps(pod.body.get("volumes"))
            if volume.get("emptyDir") is not None
        }
        for pod in (change.before, change.after)
    )
    for name in (name for name in after if name in before):
        for field in field_changes(before[name], after[name]):
            if not _is_same_amount(field.before, field.after):
                yield {VARIANT: "volume", "volume": name, **change_record(field)}


def judge_names(state: StateFacts) -> Iterator[Finding]:
    """Find pods with addresses and name servers of their own."""
    for pod in pod_specs(state.objects):
        if by := list(_find_ways(pod)):
            yield _OWN_NAMES.finding("own-names", pod.ref, key=by, by=by)


def _find_ways(pod: PodSpec) -> Iterator[dict[str, Any]]:
    """Yield by what a pod finds hosts that others do not find so."""
    for alias in maps(pod.body.get("hostAliases")):
        yield {VARIANT: "alias", "hostnames": items(alias.get("hostnames")), "ip": alias.get("ip")}
    policy, config = str(pod.body.get("dnsPolicy") or ""), mapping(pod.body.get("dnsConfig"))
    if servers := items(config.get("nameservers")):
        yield {VARIANT: "servers", "servers": servers}
    elif policy not in _POLICIES_OF_CLUSTER:
        yield {VARIANT: "servers-of-node" if policy == "Default" else "policy", "policy": policy}
    if domains := items(config.get("searches")):
        yield {VARIANT: "searches", "domains": domains}


def compare_names(facts: Facts) -> Iterator[Finding]:
    """Find what changes beside that: what is gone, options, and the policies of the cluster."""
    for change in pod_changes(facts.plan):
        before = list(_find_ways(change.before))
        is_told = any(way not in before for way in _find_ways(change.after))
        changes = field_changes(_find_stated_names(change.before), _find_stated_names(change.after))
        records = [change_record(field) for field in changes if not (is_told and field.path[0] in _TOLD_NAMES)]
        if records:
            yield _OWN_NAMES.finding("changed", change.ref, key=["changes", *records], changes=records)


def _find_stated_names(pod: PodSpec) -> dict[str, Any]:
    config = mapping(pod.body.get("dnsConfig"))
    stated = {"hostAliases": pod.body.get("hostAliases"), "dnsPolicy": pod.body.get("dnsPolicy"), **config}
    return {key: value for key, value in stated.items() if value and value != "ClusterFirst"}


def judge_placement(state: StateFacts) -> Iterator[Finding]:
    """Find pods on a node that they name, or that may run on nodes of the control plane."""
    for pod in pod_specs(state.objects):
        if node := pod.body.get("nodeName"):
            yield _NODE_NAMED.finding("names-node", pod.ref, where=(*pod.path, "nodeName"), key=node, node=node)
        elif found := list(dict.fromkeys(_find_control_plane_reasons(pod))):
            by = [{how: what} for how, what in found]
            yield _ADMITTED.finding("control-plane", pod.ref, key=found, by=by)


def _find_control_plane_reasons(pod: PodSpec) -> Iterator[tuple[str, str]]:
    """Yield by what a pod may run there; an agent that runs on each node tolerates every taint."""
    roles = [key for key in mapping(pod.body.get("nodeSelector")) if key in _CONTROL_PLANE]
    affinity = mapping(value_at(pod.body, "affinity", "nodeAffinity"))
    terms = maps(value_at(affinity, _REQUIRED, "nodeSelectorTerms"))
    terms += [mapping(preferred.get("preference")) for preferred in maps(affinity.get(_PREFERRED))]
    for requirement in (requirement for term in terms for requirement in maps(term.get("matchExpressions"))):
        operator, values = requirement.get("operator"), items(requirement.get("values"))
        is_wanted = operator == "Exists" or (operator == "In" and bool(values))
        if requirement.get("key") in _CONTROL_PLANE and is_wanted:
            roles.append(str(requirement["key"]))
    yield from (("asksFor", role.rpartition("/")[2]) for role in roles)
    for toleration in maps(pod.body.get("tolerations")):
        if _is_for_control_plane(toleration):
            yield "tolerates", str(toleration.get("key") or "*").rpartition("/")[2]


def _is_for_control_plane(toleration: Mapping[str, Any]) -> bool:
    key, operator = toleration.get("key") or "", toleration.get("operator") or "Equal"
    if toleration.get("effect") not in (None, "", "NoSchedule"):
        return False
    if not key:
        return operator == "Exists"
    return key in _CONTROL_PLANE and (operator == "Exists" or not toleration.get("value"))


def compare_placement(facts: Facts) -> Iterator[Finding]:
    for change in pod_changes(facts.plan):
        before, after = _find_stated_placement(change.before), _find_stated_placement(change.after)
        if found := list(map(change_record, field_changes(before, after))):
            yield _MOVED.finding("scheduled-differently", change.ref, key=found, changes=found)


def _find_stated_placement(pod: PodSpec) -> dict[str, Any]:
    """Return what is stated of where a pod runs, without what judge_placement says, and without that it is Linux."""
    stated = {key: pod.body.get(key) for key in _PLACEMENT}
    stated["nodeSelector"] = {
        key: value
        for key, value in mapping(stated["nodeSelector"]).items()
        if key not in _CONTROL_PLANE and (key, value) != _USUAL_SYSTEM
    }
    taints = []
    for toleration in maps(stated["tolerations"]):
        # How long a pod stays on a node that fails says nothing of where it runs.
        is_passing = toleration.get("key") in _PASSING and toleration.get("effect") == "NoExecute"
        if not is_passing and not _is_for_control_plane(toleration):
            taints.append(_write_taint(toleration))
    stated["tolerations"] = sorted(taints)
    return {key: value for key, value in stated.items() if value and value != _PLACEMENT[key]}


def _write_taint(toleration: Mapping[str, Any]) -> str:
    """Return a toleration as kubectl writes the taint; `*` stands for any."""
    operator, value = toleration.get("operator") or "Equal", toleration.get("value") or ""
    compared = {"Equal": f"={value}" if value else "", "Exists": "=*"}.get(operator, f" {operator} {value}")
    seconds = f" for {toleration['tolerationSeconds']} s" if toleration.get("tolerationSeconds") is not None else ""
    return f"{toleration.get('key') or '*'}{compared}:{toleration.get('effect') or '*'}{seconds}"


def judge_habits(state: StateFacts) -> Iterator[Finding]:
    """Find how pods behave on a node that they share: limits, probes, tokens, priorities, and whose place they take."""
    for pod in pod_specs(state.objects):
        # What a pod leaves out; what it is told once covers all its containers.
        containers = [container for container in pod.containers() if container.list_name == "containers"]
        resources = [mapping(container.body.get("resources")) for container in containers]
        is_served = any(maps(container.body.get("ports")) for container in containers)
        is_probed = any(container.body.get("readinessProbe") for container in containers)
        habits = {
            "memory-limit": all(value_at(stated, "limits", "memory") for stated in resources),
            "read-only-root": all(container.security.get("readOnlyRootFilesystem") is True for container in containers),
            "readiness-probe": is_probed or not is_served,
            "opt-out-of-token": pod.account != "default" or pod.body.get("automountServiceAccountToken") is False,
        }
        if missing := [name for name, is_kept in habits.items() if not is_kept]:
            yield _HABITS.finding("leaves-out", pod.ref, where=pod.path, key=missing, missing=missing)
        if (place := pod.ref.namespace) in _OF_THE_CLUSTER:
            where = ("metadata", "namespace")
            yield _PLACE.finding("beside-the-cluster", pod.ref, where=where, key=place, namespace=place)
        if (name := str(pod.body.get("priorityClassName") or "")) in _SYSTEM_CLASSES:
            priority = (*pod.path, "priorityClassName")
            yield _CLASS.finding("system-priority", pod.ref, where=priority, key=name, **{"class": name})
        if name := str(pod.body.get("runtimeClassName") or ""):
            runtime = (*pod.path, "runtimeClassName")
            yield _CLASS.finding("runtime", pod.ref, where=runtime, key=["runtime", name], **{"class": name})


def compare_habits(facts: Facts) -> Iterator[Finding]:
    """Find pods that lose a user namespace of their own, or name a class that nobody has."""
    before = {pod.ref.identity: pod for pod in pod_specs(facts.previous_state().objects)}
    brought = {manifest.ref.identity for manifest in facts.content.manifests}
    for pod in pod_specs(facts.state().objects):
        old = before.get(pod.ref.identity)
        if old is not None and old.body.get("hostUsers") is False and pod.body.get("hostUsers") is not False:
            yield _USERS_LOST.finding("no-user-namespace", pod.ref, where=(*pod.path, "hostUsers"))
        for wanted in _find_classes(pod):
            if wanted.identity not in brought and facts.around.exists.get(wanted.identity) is False:
                key = ["missing", str(wanted)]
                found = _NO_CLASS.finding("no-class", pod.ref, where=pod.path, key=key, wanted=wanted)
                yield replace(found, is_new=old is None or wanted not in _find_classes(old))


def _find_classes(pod: PodSpec) -> Iterator[ObjectRef]:
    if name := str(pod.body.get("priorityClassName") or ""):
        yield ObjectRef("scheduling.k8s.io", "v1", "PriorityClass", "", name)
    if runtime := str(pod.body.get("runtimeClassName") or ""):
        yield ObjectRef("node.k8s.io", "v1", "RuntimeClass", "", runtime)


def mention_classes(facts: Facts) -> Iterator[ObjectRef]:
    for pod in pod_specs(tuple(manifest.body for manifest in facts.content.manifests)):
        yield from _find_classes(pod)


_BOUNDS_CLAIMS = (
    of_containers("POD-34", *PROBES, "resources.limits", "resources.requests"),
    Claim("POD-34", PODS, ("{pod}.resources.limits", "{pod}.resources.requests", "{pod}.volumes.*.emptyDir")),
)
_NAMES_CLAIMS = (Claim("POD-37", PODS, ("{pod}.hostAliases", "{pod}.dnsConfig", "{pod}.dnsPolicy")),)
_PLACEMENT_CLAIMS = (
    Claim("POD-35", PODS, ("{pod}.nodeName",), is_of_new=True),
    Claim("POD-36", PODS, tuple(f"{{pod}}.{name}" for name in _PLACEMENT)),
)
BOUNDS_CHECK = Check("bounds", changes=compare_bounds, claims=_BOUNDS_CLAIMS)
NAMES_CHECK = Check("names", changes=compare_names, standing=judge_names, claims=_NAMES_CLAIMS)
PLACEMENT_CHECK = Check("placement", changes=compare_placement, standing=judge_placement, claims=_PLACEMENT_CLAIMS)
HABITS_CHECK = Check(
    "pod-habits",
    claims=(Claim("POD-27", PODS, ("{pod}.hostUsers",), is_of_new=True),),
    changes=compare_habits,
    standing=judge_habits,
    mentions=mention_classes,
)
