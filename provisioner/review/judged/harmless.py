"""Fields that are harmless by nature, whatever they change to, each with its reason: rule HARMLESS. Pure.

docs/rules/harmless.md is written from this table. A reason has to convince somebody who knows Kubernetes: what a
selector, a controller or the kubelet obeys is not harmless, however often it changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from provisioner.api_groups import ADMISSION_GROUP, RBAC_GROUP
from provisioner.review.base.claims import EVERY_KIND, POD_PLACES, PODS, Claim
from provisioner.review.base.facts import Facts
from provisioner.values import GroupKind

RULE = "HARMLESS"
_CRD = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
_JOB, _CRON_JOB = GroupKind("batch", "Job"), GroupKind("batch", "CronJob")


@dataclass(frozen=True)
class HarmlessField:
    """`paths` of objects of `kinds`, as a Claim has them, and why no change of them does harm.

    `label` is the key of the label that they are. It is harmless only as long as nothing in the bundle, or in what was
    read of the cluster, names the key otherwise: a selector could.
    """

    kinds: frozenset[GroupKind]
    paths: tuple[str, ...]
    reason: str
    label: str = ""

    @cached_property
    def claim(self) -> Claim:
        return Claim(RULE, self.kinds, self.paths)


def _annotations(*keys: str) -> tuple[str, ...]:
    return tuple(f"metadata.annotations.[{key}]" for key in keys)


def _pod_annotations(*keys: str) -> tuple[str, ...]:
    return tuple(f"{{pod-meta}}.annotations.[{key}]" for key in keys)


def _of_label(key: str, reason: str) -> HarmlessField:
    paths = (f"metadata.labels.[{key}]", f"{{pod-meta}}.labels.[{key}]", f"spec.jobTemplate.metadata.labels.[{key}]")
    return HarmlessField(EVERY_KIND, paths, f"{reason}. {_UNLESS_SELECTED}", label=key)


_UNLESS_SELECTED = (
    "Not harmless where a selector, or anything else in the bundle, names the key. In a template of pods it restarts "
    "them; AVL-05 says where that leaves none"
)
_CONTAINERS = ("containers", "initContainers")
_EMPTY_IN_CONTAINERS = ("args", "command", "env", "envFrom", "ports", "resources", "securityContext", "volumeMounts")
_EMPTY_IN_PODS = (
    *("affinity", "imagePullSecrets", "initContainers", "nodeSelector", "securityContext", "tolerations"),
    *("topologySpreadConstraints", "volumes"),
)
_ADMISSION = tuple(
    f"{which}{what}" for which in ("Mutating", "Validating") for what in ("AdmissionPolicy", "WebhookConfiguration")
)
_WITH_STATUS = PODS | {
    _CRD,
    GroupKind("", "Namespace"),
    GroupKind("", "PersistentVolumeClaim"),
    GroupKind("", "Service"),
    GroupKind("autoscaling", "HorizontalPodAutoscaler"),
    GroupKind("networking.k8s.io", "Ingress"),
    GroupKind("policy", "PodDisruptionBudget"),
}

TABLE: tuple[HarmlessField, ...] = (
    _of_label(
        "app.kubernetes.io/version",
        "Kubernetes recommends it to tell people and tools a version, and obeys no value of it",
    ),
    _of_label("helm.sh/chart", "Helm writes the name and version of the chart there and never reads it"),
    _of_label("chart", "Charts of Helm 2 wrote the name and version of the chart there; nothing reads it"),
    HarmlessField(
        EVERY_KIND,
        _annotations("kubernetes.io/description", "kubernetes.io/change-cause", "artifacthub.io/*", "a8r.io/*"),
        "Words for people and for catalogs of packages, which no controller reads",
    ),
    HarmlessField(
        frozenset({_CRD}),
        _annotations("controller-gen.kubebuilder.io/version"),
        "Which version of a generator wrote the definition; what it wrote has findings of its own",
    ),
    HarmlessField(
        PODS,
        _pod_annotations("checksum/*", "kubectl.kubernetes.io/restartedAt"),
        "Made to differ, so that pods restart when what they read changes. Nothing reads the value; AVL-05 says where "
        "a restart leaves no pod",
    ),
    HarmlessField(
        PODS,
        _pod_annotations("kubectl.kubernetes.io/default-container", "kubectl.kubernetes.io/default-logs-container"),
        "Which container kubectl takes where nobody names one",
    ),
    HarmlessField(
        frozenset({GroupKind("apps", "DaemonSet")}),
        _annotations("deprecated.daemonset.template.generation"),
        "The API server counts there how often the template of the pods changed, and writes it itself",
    ),
    HarmlessField(
        EVERY_KIND,
        ("metadata.creationTimestamp", "{pod-meta}.creationTimestamp"),
        "The API server writes it itself and drops what a request says",
    ),
    HarmlessField(
        EVERY_KIND,
        ("metadata.annotations.{}", "metadata.labels.{}", "{pod-meta}.annotations.{}", "{pod-meta}.labels.{}"),
        "An empty map of labels or annotations is none",
    ),
    HarmlessField(
        _WITH_STATUS,
        ("status",),
        "These kinds have a status of their own, which the API server drops from what is applied",
    ),
    HarmlessField(
        PODS,
        (
            *(f"{{pod}}.{name}.{{}}" for name in _EMPTY_IN_PODS),
            *(f"{{pod}}.{name}.*.{field}.{{}}" for name in _CONTAINERS for field in _EMPTY_IN_CONTAINERS),
        ),
        "Empty, which the API server takes as not set; to empty what held something is told by what is removed",
    ),
    HarmlessField(
        PODS,
        ("{pod}.volumes.*.name",),
        "It only joins a volume to where it is mounted. What the volume holds and where it is mounted are fields of "
        "their own",
    ),
    HarmlessField(
        PODS,
        ("{pod}.volumes.*.emptyDir.{}",),
        "A folder that is empty when the pod starts and goes with it: it reads nothing of the node or of the cluster",
    ),
    HarmlessField(
        frozenset(GroupKind("apps", kind) for kind in ("Deployment", "StatefulSet", "DaemonSet")),
        ("spec.revisionHistoryLimit",),
        "How many old versions the controller keeps for `kubectl rollout undo`. Pratique goes back by its own "
        "revisions",
    ),
    HarmlessField(
        frozenset({GroupKind("apps", "Deployment")}),
        ("spec.strategy.rollingUpdate.maxSurge", "spec.strategy.{}", "spec.strategy.rollingUpdate.{}"),
        "How many new pods start before old ones end: where they find no node, the rollout waits and the old ones stay",
    ),
    HarmlessField(
        frozenset(GroupKind(ADMISSION_GROUP, kind) for kind in _ADMISSION),
        ("webhooks.*.matchConditions.*.name", "spec.matchConditions.*.name"),
        "Names a condition in messages of the API server; what it holds for says its expression",
    ),
    HarmlessField(
        frozenset(GroupKind(RBAC_GROUP, kind) for kind in ("RoleBinding", "ClusterRoleBinding")),
        ("subjects.*.apiGroup",),
        "Follows from the kind of the subject; the API server takes no other",
    ),
    HarmlessField(
        frozenset({GroupKind("discovery.k8s.io", "EndpointSlice")}),
        ("addressType",),
        "Of which kind the addresses are, which SV-06 tells as they are; the API server refuses to change it",
    ),
    HarmlessField(
        frozenset({_CRON_JOB}),
        ("spec.successfulJobsHistoryLimit", "spec.failedJobsHistoryLimit"),
        "How many finished Jobs are kept to be looked at; which ones run does not depend on it",
    ),
    HarmlessField(
        frozenset({_JOB}),
        ("spec.ttlSecondsAfterFinished",),
        "When a Job that has ended is deleted, with its pods and their logs; what it did stays",
    ),
    HarmlessField(frozenset({GroupKind("scheduling.k8s.io", "PriorityClass")}), ("description",), "Words for people"),
)


def harmless_here(facts: Facts) -> list[Claim]:
    """What is harmless in this change: no label whose key is named anywhere but as a label."""
    labels = {field.label for field in TABLE if field.label}
    contents = (facts.content, *([facts.previous] if facts.previous else []))
    bodies = [manifest.body for content in contents for manifest in content.manifests]
    bodies += [obj for obj in facts.live.values() if obj is not None]
    # A schema selects nothing.
    text = join_texts([body for body in bodies if body.get("kind") != _CRD.kind], {"labels"})
    named = {key for key in labels if key in text}
    return [field.claim for field in TABLE if field.label not in named or not field.label]


def join_texts(value: object, skipped: Collection[str] = ()) -> str:
    """All texts and keys in a value, a line each, without the maps that stand under a `skipped` key."""
    texts: list[str] = []
    _collect_texts(value, skipped, texts)
    return "\n".join(texts)


def _collect_texts(value: object, skipped: Collection[str], texts: list[str]) -> None:
    if isinstance(value, str):
        texts.append(value)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if key not in skipped or not isinstance(inner, Mapping):
                texts.append(str(key))
                _collect_texts(inner, skipped, texts)
    elif isinstance(value, list):
        for inner in value:
            _collect_texts(inner, skipped, texts)


def page(of_new: Iterable[HarmlessField], claims: Iterable[Claim]) -> str:
    """docs/rules/harmless.md; of the `claims` of rules those that name a harmless direction."""
    one_way = [HarmlessField(claim.kinds, claim.paths, claim.harmless) for claim in claims if claim.harmless]
    lines = [
        "<!-- Written by `make docs` from provisioner/review/judged/harmless.py. Do not edit. -->",
        "# Fields that are harmless by nature",
        "",
        "A change of these fields is safe whatever they change to: rule",
        "[HARMLESS](../../provisioner/review/rules/HARMLESS.md). Every other field that changes is judged by a rule",
        "that names it, or reported as [UNJUDGED](../../provisioner/review/rules/UNJUDGED.md).",
        "",
        "`*` is any key or item, in brackets any text. `{pod}` is the spec of pods, in a template too, and",
        "`{pod-meta}` their metadata. A path that ends with `{}` is an empty map or list.",
        "",
        *_rows(TABLE),
        "",
        "## Of new objects",
        "",
        "Where an object is created, these fields need no rule. A change of them in an object that exists is judged as",
        "that of any other.",
        "",
        *_rows(of_new),
        "",
        "## In one direction",
        "",
        "A rule judges these fields and speaks of a change of them, but for the harmless direction.",
        "",
        *_rows(one_way),
    ]
    return "\n".join(lines) + "\n"


def _rows(fields: Iterable[HarmlessField]) -> list[str]:
    """One row for each reason."""
    rows: dict[tuple[str, str], list[str]] = {}
    for field in fields:
        kinds = ["kinds that make pods"] if field.kinds >= PODS else []
        kinds += sorted(str(kind) for kind in field.kinds if not (kinds and kind in POD_PLACES))
        told = "every kind" if field.kinds == EVERY_KIND else ", ".join(kinds)
        rows.setdefault((told, field.reason), []).extend(f"`{path}`" for path in field.paths)
    shown = (f"| {'<br>'.join(paths)} | {kinds} | {reason} |" for (kinds, reason), paths in rows.items())
    return ["| fields | of | why |", "|---|---|---|", *shown]
