"""The built-in kinds, as discovery shows them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class SandboxKind:
    """One resource in one version. `status` and `scale`: which subresources it has."""

    group: str
    version: str
    plural: str
    kind: str
    is_namespaced: bool
    short_names: tuple[str, ...] = ()
    has_status: bool = False
    has_scale: bool = False
    is_custom: bool = False
    has_generation: bool = False

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def full_name(self) -> str:
        """The kind with its group, as messages name it."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def resource(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


# group version: plural/Kind/shortnames; a leading ! is cluster-scoped, + has status, = has scale as well.
_TABLE = {
    (
        "",
        "v1",
    ): "!+namespaces/Namespace/ns !+nodes/Node/no +pods/Pod/po =replicationcontrollers/ReplicationController/rc "
    "+services/Service/svc configmaps/ConfigMap/cm secrets/Secret serviceaccounts/ServiceAccount/sa "
    "events/Event/ev +persistentvolumeclaims/PersistentVolumeClaim/pvc !+persistentvolumes/PersistentVolume/pv "
    "endpoints/Endpoints/ep +resourcequotas/ResourceQuota/quota limitranges/LimitRange/limits podtemplates/PodTemplate",
    ("apps", "v1"): "=deployments/Deployment/deploy =replicasets/ReplicaSet/rs =statefulsets/StatefulSet/sts "
    "+daemonsets/DaemonSet/ds controllerrevisions/ControllerRevision",
    ("batch", "v1"): "+jobs/Job +cronjobs/CronJob/cj",
    ("rbac.authorization.k8s.io", "v1"): "roles/Role rolebindings/RoleBinding !clusterroles/ClusterRole "
    "!clusterrolebindings/ClusterRoleBinding",
    ("apiextensions.k8s.io", "v1"): "!+customresourcedefinitions/CustomResourceDefinition/crd,crds",
    (
        "networking.k8s.io",
        "v1",
    ): "+ingresses/Ingress/ing !ingressclasses/IngressClass networkpolicies/NetworkPolicy/netpol",
    ("policy", "v1"): "+poddisruptionbudgets/PodDisruptionBudget/pdb",
    ("admissionregistration.k8s.io", "v1"): "!mutatingwebhookconfigurations/MutatingWebhookConfiguration "
    "!validatingwebhookconfigurations/ValidatingWebhookConfiguration "
    "!+validatingadmissionpolicies/ValidatingAdmissionPolicy "
    "!validatingadmissionpolicybindings/ValidatingAdmissionPolicyBinding "
    "!mutatingadmissionpolicies/MutatingAdmissionPolicy "
    "!mutatingadmissionpolicybindings/MutatingAdmissionPolicyBinding",
    (
        "storage.k8s.io",
        "v1",
    ): "!storageclasses/StorageClass/sc !csidrivers/CSIDriver !volumeattachments/VolumeAttachment",
    ("scheduling.k8s.io", "v1"): "!priorityclasses/PriorityClass/pc",
    ("node.k8s.io", "v1"): "!runtimeclasses/RuntimeClass",
    ("coordination.k8s.io", "v1"): "leases/Lease",
    ("autoscaling", "v2"): "+horizontalpodautoscalers/HorizontalPodAutoscaler/hpa",
    ("discovery.k8s.io", "v1"): "endpointslices/EndpointSlice",
    ("events.k8s.io", "v1"): "events/Event/ev",
    ("apiregistration.k8s.io", "v1"): "!+apiservices/APIService",
}


# Their metadata.generation counts the changes of what they wish for.
_COUNTED = {
    "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController", "Job", "CronJob", "Pod",
    "PodDisruptionBudget", "NetworkPolicy", "Ingress", "IngressClass", "CustomResourceDefinition", "PriorityClass",
    "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding", "EndpointSlice",
}  # fmt: skip


def _parse_table() -> Iterator[SandboxKind]:
    for (group, version), words in _TABLE.items():
        for word in words.split():
            plural, kind, *short = word.lstrip("!+=").split("/")
            marks = word[: len(word) - len(word.lstrip("!+="))]
            yield SandboxKind(
                group,
                version,
                plural,
                kind,
                is_namespaced="!" not in marks,
                short_names=tuple(short[0].split(",")) if short else (),
                has_status="+" in marks or "=" in marks,
                has_scale="=" in marks,
                has_generation=kind in _COUNTED,
            )


BUILT_IN = tuple(_parse_table())

# Posted, answered and forgotten.
REVIEWS = (
    SandboxKind("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", False),
    SandboxKind("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False),
    SandboxKind("authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", False),
    SandboxKind("authorization.k8s.io", "v1", "localsubjectaccessreviews", "LocalSubjectAccessReview", True),
    SandboxKind("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", False),
    SandboxKind("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False),
)
