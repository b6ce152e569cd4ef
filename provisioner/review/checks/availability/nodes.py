"""Nodes that pods ask for and the cluster has not, and nodes that keep pods off by their taints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.review.base.facts import Check, Facts, Listing, ReviewRule, StateFacts, items, mapping, maps
from provisioner.review.workloads.pod_specs import PodSpec, pod_specs
from provisioner.review.workloads.workload_changes import DAEMON_SET
from provisioner.selectors import selects
from provisioner.values import Finding, JsonObject, ObjectRef, Section, Severity

_NO_MACHINE = ReviewRule("IMG-10", Section.AVAILABILITY, Severity.BREAKING)
_NO_NODE = ReviewRule("IMG-10", Section.AVAILABILITY, Severity.DANGEROUS)
_ON_NO_NODE = ReviewRule("IMG-10", Section.AVAILABILITY, Severity.NOTABLE)
_UNKNOWN = ReviewRule("IMG-10", Section.AVAILABILITY, Severity.UNKNOWN)

_ARCHITECTURE, _SYSTEM = "kubernetes.io/arch", "kubernetes.io/os"
_NAME = "metadata.name"
_NODES = Listing("", "v1", "Node")  # whole: taints stand in the spec
_KEEPS_OFF = frozenset({"NoSchedule", "NoExecute"})
# These taints come and go with the state of a node: what they say holds for a moment.
_PASSING = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


@dataclass(frozen=True, slots=True)
class _Node:
    """Its labels, with its name where a term asks for that, and the taints that stay."""

    labels: Mapping[str, Any]
    taints: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, obj: JsonObject) -> _Node:
        labels = {**mapping(mapping(obj.get("metadata")).get("labels")), _NAME: ObjectRef.of(obj).name}
        found = maps(mapping(obj.get("spec")).get("taints"))
        stay = (one for one in found if not str(one.get("key")).startswith(_PASSING))
        return cls(labels, tuple(one for one in stay if one.get("effect") in _KEEPS_OFF))

    def takes(self, pod: PodSpec) -> bool:
        return not any(self.untolerated(pod))

    def untolerated(self, pod: PodSpec) -> Iterator[str]:
        """The taints that keep the pod off, as kubectl writes them."""
        tolerations = maps(pod.body.get("tolerations"))
        for taint in self.taints:
            if not any(_tolerates(one, taint) for one in tolerations):
                value = f"={taint['value']}" if taint.get("value") else ""
                yield f"{taint.get('key')}{value}:{taint.get('effect')}"


def _standing(state: StateFacts) -> Iterator[Finding]:
    listed = state.around.lists.get(_NODES)
    if state.is_offline:
        return
    nodes = [_Node.of(one) for one in (listed.objects if listed else ())]
    is_whole = listed is not None and listed.is_whole
    for pod in pod_specs(state.objects):
        fitting = [one for one in nodes if _fits(pod, one.labels)]
        if any(one.takes(pod) for one in fitting):
            continue
        if is_whole and fitting:
            yield _kept_off(pod, fitting, len(nodes))
        elif _asks(pod):
            yield from _without_node(pod, nodes, is_whole=is_whole)


def _without_node(pod: PodSpec, nodes: list[_Node], *, is_whole: bool) -> Iterator[Finding]:
    """No node has what the pod asks for, or nobody knows."""
    where, asked = (*pod.path, "nodeSelector"), _words(pod)
    if not is_whole and not _asks_little(pod):
        yield _UNKNOWN.finding("unknown", pod.ref, where=where, key=asked, asked=asked)
    elif is_whole and nodes:
        rule, then = _judged(pod, nodes)
        yield rule.finding("no-node", pod.ref, where=where, key=asked, asked=asked, nodes=len(nodes), then=then)


def _kept_off(pod: PodSpec, fitting: list[_Node], count: int) -> Finding:
    """Each node that would do has a taint that the pod does not tolerate."""
    taints = sorted({taint for one in fitting for taint in one.untolerated(pod)})
    rule, then = _otherwise(pod)
    variant = "every-node-tainted" if len(fitting) == count else "fitting-nodes-tainted"
    where = (*pod.path, "tolerations")
    return rule.finding(variant, pod.ref, where=where, key="taints", taints=taints, nodes=len(fitting), then=then)


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    """As the scheduler has it; an operator that only newer ones know is taken to tolerate."""
    if toleration.get("effect") and toleration.get("effect") != taint.get("effect"):
        return False
    if toleration.get("key") and toleration.get("key") != taint.get("key"):
        return False
    if (toleration.get("operator") or "Equal") == "Equal":
        return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")
    return True


def _judged(pod: PodSpec, nodes: list[_Node]) -> tuple[ReviewRule, str]:
    wanted = mapping(pod.body.get("nodeSelector"))
    machine = {key: wanted[key] for key in (_ARCHITECTURE, _SYSTEM) if key in wanted}
    if machine and not any(all(one.labels.get(key) == value for key, value in machine.items()) for one in nodes):
        return _NO_MACHINE, "never-starts"
    return _otherwise(pod)


def _otherwise(pod: PodSpec) -> tuple[ReviewRule, str]:
    if pod.ref.group_kind == DAEMON_SET:
        return _ON_NO_NODE, "runs-none"
    return _NO_NODE, "waits"


def _terms(pod: PodSpec) -> list[Mapping[str, Any]] | None:
    """What node affinity requires, one of which has to fit; None where it requires nothing."""
    affinity = mapping(mapping(pod.body.get("affinity")).get("nodeAffinity"))
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return maps(mapping(required).get("nodeSelectorTerms")) if required else None


def _asks(pod: PodSpec) -> bool:
    return bool(mapping(pod.body.get("nodeSelector"))) or _terms(pod) is not None


def _asks_little(pod: PodSpec) -> bool:
    """Whether all that it asks for is Linux, as nearly every bundle does and nearly every cluster has."""
    return _terms(pod) is None and dict(mapping(pod.body.get("nodeSelector"))) == {_SYSTEM: "linux"}


def _fits(pod: PodSpec, labels: Mapping[str, Any]) -> bool:
    wanted = mapping(pod.body.get("nodeSelector"))
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    terms = _terms(pod)
    return terms is None or any(_fits_term(one, labels) for one in terms)


def _fits_term(term: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    """All requirements of a term; one without any fits nothing."""
    found = _requirements(term)
    return bool(found) and all(_fits_one(one, labels) for one in found)


def _fits_one(one: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    operator = one.get("operator")
    if operator not in {"Gt", "Lt"}:
        return selects({"matchExpressions": [one]}, labels)
    try:
        value, limit = int(str(labels.get(str(one.get("key"))))), int(str(items(one.get("values"))[0]))
    except (ValueError, IndexError):
        return False
    return value > limit if operator == "Gt" else value < limit


def _words(pod: PodSpec) -> str:
    wanted = mapping(pod.body.get("nodeSelector"))
    told = [f"{str(key).removeprefix('kubernetes.io/')} {value}" for key, value in sorted(wanted.items())]
    terms = [" and ".join(_in_words(one) for one in _requirements(term)) for term in _terms(pod) or ()]
    return ", ".join([*told, *([" or ".join(terms)] if terms else [])])


def _requirements(term: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*maps(term.get("matchExpressions")), *maps(term.get("matchFields"))]


def _in_words(one: Mapping[str, Any]) -> str:
    values = ", ".join(map(str, items(one.get("values"))))
    return f"{one.get('key')} {one.get('operator')}{f' ({values})' if values else ''}"


def _lists(facts: Facts) -> Iterator[Listing]:
    """Bundles that say nothing of nodes are those that any cluster runs: theirs are not read."""
    pods = pod_specs(tuple(one.body for one in facts.content.manifests))
    if any(_asks(pod) or maps(pod.body.get("tolerations")) for pod in pods):
        yield _NODES


CHECK = Check("nodes", standing=_standing, lists=_lists)
