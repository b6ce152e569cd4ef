"""Fields of new objects that need no rule: what they do is known, or is said of what they lead to. Pure.

docs/rules/harmless.md lists them with their reasons. A change of the same field in an object that exists is judged as
any other: what was may have been relied upon.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from provisioner.review.base.claims import EVERY_KIND, PODS, Claims
from provisioner.review.base.facts import Facts
from provisioner.review.judged.harmless import HarmlessField, join_texts
from provisioner.review.judged.leaves import Leaf
from provisioner.review.workloads.mentions import mentions
from provisioner.review.workloads.pod_specs import PodSpec, pod_specs
from provisioner.review.workloads.selection import pods_of_service
from provisioner.values import GroupKind, JsonObject, ObjectRef

_SERVICE, _CONFIG_MAP = GroupKind("", "Service"), GroupKind("", "ConfigMap")
# Of these kinds what selects by labels selects pods and nothing else; what it does with them has rules of its own.
_SELECTING_PODS = PODS | {
    _SERVICE,
    GroupKind("networking.k8s.io", "NetworkPolicy"),
    GroupKind("policy", "PodDisruptionBudget"),
}
_POD_SELECTORS = frozenset({"selector", "podSelector", "labelSelector"})
_NAMESPACE = GroupKind("", "Namespace")
_OF_KUBERNETES = "kube-"
_RECOMMENDED = tuple(
    f"app.kubernetes.io/{name}"
    for name in ("component", "created-by", "instance", "managed-by", "name", "part-of", "version")
)

LABELS = tuple(
    HarmlessField(
        EVERY_KIND,
        (f"metadata.labels.[{key}]", f"{{pod-meta}}.labels.[{key}]", f"spec.jobTemplate.metadata.labels.[{key}]"),
        "Kubernetes and Helm recommend these labels for people and tools. Services, network policies and workloads "
        "select pods by them, which is told of those. Not where anything else in the bundle, or in what was read of "
        "the cluster, names the key: a webhook or an operator could select by it",
        label=key,
    )
    for key in (*_RECOMMENDED, "helm.sh/chart")
)
SELECTORS = HarmlessField(
    frozenset(GroupKind("apps", kind) for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")),
    ("spec.selector",),
    "The API server takes only a selector that picks the pods of the object's own template",
)
PORTS = HarmlessField(
    PODS,
    tuple(f"{{pod}}.containers.*.ports.*.{field}" for field in ("containerPort", "name", "protocol")),
    "What a container listens on can be reached in the cluster whether it is declared or not. A port of the node is "
    "told by POD-06",
)
LEADING = HarmlessField(
    frozenset({_SERVICE}),
    ("spec.ports", "spec.selector"),
    "Of a Service that leads to pods of the bundle: they get a name and a port in the cluster. What opens them to "
    "others, its type, ports of nodes and addresses, has rules of its own",
)
DATA = HarmlessField(
    frozenset({_CONFIG_MAP}),
    ("data", "binaryData"),
    "Of a ConfigMap that no pod of the bundle mounts, reads, runs or names, in the namespace that the bundle is "
    "installed into or in one that it brings, and in none of Kubernetes: others look for theirs elsewhere",
)
TABLE = (*LABELS, SELECTORS, PORTS, LEADING, DATA)


@dataclass(frozen=True, slots=True)
class NewObjects:
    """What of the new objects of a change needs no rule."""

    _pods: tuple[PodSpec, ...]
    _read: frozenset[object]
    _named: str
    _namespaces: frozenset[str]
    # By whether it is a Service that leads to pods of the bundle, or a ConfigMap that nothing of it obeys.
    _claims: Mapping[HarmlessField | None, Claims]

    @classmethod
    def of(cls, facts: Facts) -> NewObjects:
        bodies = tuple(one.body for one in facts.content.manifests)
        pods = tuple(pod_specs(bodies))
        read = frozenset(one.ref.identity for pod in pods for one in mentions(pod))
        named = join_texts([pod.body for pod in pods])
        known = (*bodies, *(one for one in facts.live.values() if one is not None))
        text = "\n".join(join_texts(body, _skipped_in(body)) for body in known)
        labels = [one for one in LABELS if one.label not in text]
        fields = {one: [*labels, SELECTORS, PORTS, *([one] if one else [])] for one in (None, LEADING, DATA)}
        brought = {one.ref.name for one in facts.content.manifests if one.ref.group_kind == _NAMESPACE}
        own = frozenset({facts.content.install_namespace, *brought})
        return cls(pods, read, named, own, {one: Claims.of(each.claim for each in of) for one, of in fields.items()})

    def left(self, ref: ObjectRef, body: JsonObject, leaves: tuple[Leaf, ...]) -> tuple[Leaf, ...]:
        """Those of the leaves of a new object that a rule would have to judge."""
        more = None
        if ref.group_kind == _SERVICE and pods_of_service(body, self._pods):
            more = LEADING
        elif ref.group_kind == _CONFIG_MAP and self._is_read_by_nobody(ref):
            more = DATA
        claims = self._claims[more]
        return tuple(leaf for leaf in leaves if not claims.judge_of(ref.group_kind, leaf.path))

    def _is_read_by_nobody(self, ref: ObjectRef) -> bool:
        is_named = ref.identity in self._read or ref.name in self._named
        is_own = ref.namespace in self._namespaces and not ref.namespace.startswith(_OF_KUBERNETES)
        return is_own and not is_named


def _skipped_in(body: JsonObject) -> frozenset[str]:
    is_of_pods = ObjectRef.of(body).group_kind in _SELECTING_PODS
    return frozenset({"labels"}) | (_POD_SELECTORS if is_of_pods else frozenset())
