"""Where pods run: on nodes of the control plane, on a node that they name, or scheduled differently than before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.review.base.claims import PODS, Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts, items, mapping, maps
from provisioner.review.workloads.pod_specs import PodSpec, pod_specs
from provisioner.review.workloads.workload_changes import change_record, field_changes, pod_changes
from provisioner.values import Finding, Section, Severity

_NAMED = ReviewRule("POD-35", Section.PODS, Severity.DANGEROUS)
_ADMITTED = ReviewRule("POD-35", Section.PODS, Severity.NOTABLE)
_MOVED = ReviewRule("POD-36", Section.PODS, Severity.NOTABLE)

_ROLES = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_PASSING = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
_USUAL_SYSTEM = ("kubernetes.io/os", "linux")
# Fields of the pod that say where it runs, and what the API server puts where they are not set.
_FIELDS: Mapping[str, Any] = {
    "affinity": None,
    "nodeSelector": None,
    "preemptionPolicy": "PreemptLowerPriority",
    "priorityClassName": None,
    "schedulerName": "default-scheduler",
    "schedulingGates": None,
    "tolerations": None,
    "topologySpreadConstraints": None,
}


def _standing(state: StateFacts) -> Iterator[Finding]:
    for pod in pod_specs(state.objects):
        if node := pod.body.get("nodeName"):
            yield _NAMED.finding("names-node", pod.ref, where=(*pod.path, "nodeName"), key=node, node=node)
        elif found := list(dict.fromkeys(_reasons(pod))):
            by = [{how: what} for how, what in found]
            yield _ADMITTED.finding("control-plane", pod.ref, key=found, by=by)


def _reasons(pod: PodSpec) -> Iterator[tuple[str, str]]:
    """By what a pod may run there; an agent that runs on each node tolerates every taint."""
    yield from (("asksFor", _short(one)) for one in mapping(pod.body.get("nodeSelector")) if one in _ROLES)
    affinity = mapping(mapping(pod.body.get("affinity")).get("nodeAffinity"))
    terms = maps(mapping(affinity.get(_REQUIRED)).get("nodeSelectorTerms"))
    terms += [mapping(one.get("preference")) for one in maps(affinity.get(_PREFERRED))]
    yield from (("asksFor", _short(one)) for one in _wanted(terms))
    for one in maps(pod.body.get("tolerations")):
        if _is_for_control_plane(one):
            yield "tolerates", _short(one.get("key") or "*")


def _short(role: object) -> str:
    return str(role).rpartition("/")[2]


def _is_for_control_plane(toleration: Mapping[str, Any]) -> bool:
    key, operator = toleration.get("key") or "", toleration.get("operator") or "Equal"
    if toleration.get("effect") not in (None, "", "NoSchedule"):
        return False
    return operator == "Exists" if not key else key in _ROLES and (operator == "Exists" or not toleration.get("value"))


def _wanted(terms: list[Mapping[str, Any]]) -> Iterator[str]:
    for term in terms:
        for one in maps(term.get("matchExpressions")):
            if one.get("key") in _ROLES and (one.get("operator") == "Exists" or _is_any_of(one)):
                yield str(one["key"])


def _is_any_of(one: Mapping[str, Any]) -> bool:
    return one.get("operator") == "In" and bool(items(one.get("values")))


def _changes(facts: Facts) -> Iterator[Finding]:
    for change in pod_changes(facts.plan):
        found = list(map(change_record, field_changes(_placed(change.before), _placed(change.after))))
        if found:
            yield _MOVED.finding("scheduled-differently", change.ref, key=found, changes=found)


def _placed(pod: PodSpec) -> dict[str, Any]:
    """What is stated of where a pod runs, without what is said of what stands, and without that it runs on Linux."""
    stated = {key: pod.body.get(key) for key in _FIELDS}
    selector = mapping(stated["nodeSelector"])
    stated["nodeSelector"] = {
        key: value for key, value in selector.items() if key not in _ROLES and (key, value) != _USUAL_SYSTEM
    }
    others = (one for one in maps(stated["tolerations"]) if not _is_for_control_plane(one) and not _is_passing(one))
    stated["tolerations"] = sorted(map(_as_taint, others))
    return {key: value for key, value in stated.items() if value and value != _FIELDS[key]}


def _is_passing(toleration: Mapping[str, Any]) -> bool:
    """Whether it says only how long a pod stays on a node that fails."""
    return toleration.get("key") in _PASSING and toleration.get("effect") == "NoExecute"


def _as_taint(toleration: Mapping[str, Any]) -> str:
    """As kubectl writes the taint; `*` stands for any."""
    operator, value = toleration.get("operator") or "Equal", toleration.get("value") or ""
    told = {"Equal": f"={value}" if value else "", "Exists": "=*"}.get(operator, f" {operator} {value}")
    seconds = f" for {toleration['tolerationSeconds']} s" if toleration.get("tolerationSeconds") is not None else ""
    return f"{toleration.get('key') or '*'}{told}:{toleration.get('effect') or '*'}{seconds}"


_CLAIMS = (
    Claim("POD-35", PODS, ("{pod}.nodeName",), is_of_new=True),
    Claim("POD-36", PODS, tuple(f"{{pod}}.{name}" for name in _FIELDS)),
)
CHECK = Check("placement", changes=_changes, standing=_standing, claims=_CLAIMS)
