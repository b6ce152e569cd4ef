"""The phases in which the objects of a bundle enter a cluster, by their kinds: those of OLM v1. Pure."""

from __future__ import annotations

from provisioner.api_groups import ADMISSION_GROUP, RBAC_GROUP
from provisioner.values import GroupKind, ObjectRef

PHASES = (
    "namespaces", "policies", "identity", "configuration", "storage", "crds", "roles", "bindings", "infrastructure",
    "deploy", "scaling", "publish", "admission",
)  # fmt: skip
PHASE_OF = {
    GroupKind("", "Namespace"): "namespaces",
    GroupKind("networking.k8s.io", "NetworkPolicy"): "policies",
    GroupKind("policy", "PodDisruptionBudget"): "policies",
    GroupKind("scheduling.k8s.io", "PriorityClass"): "policies",
    GroupKind("node.k8s.io", "RuntimeClass"): "policies",
    GroupKind("", "ResourceQuota"): "policies",
    GroupKind("", "LimitRange"): "policies",
    GroupKind("", "ServiceAccount"): "identity",
    GroupKind("", "Secret"): "configuration",
    GroupKind("", "ConfigMap"): "configuration",
    GroupKind("", "PersistentVolume"): "storage",
    GroupKind("", "PersistentVolumeClaim"): "storage",
    GroupKind("storage.k8s.io", "StorageClass"): "storage",
    GroupKind("storage.k8s.io", "CSIDriver"): "storage",
    GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"): "crds",
    GroupKind(RBAC_GROUP, "ClusterRole"): "roles",
    GroupKind(RBAC_GROUP, "Role"): "roles",
    GroupKind(RBAC_GROUP, "ClusterRoleBinding"): "bindings",
    GroupKind(RBAC_GROUP, "RoleBinding"): "bindings",
    GroupKind("", "Service"): "infrastructure",
    GroupKind("cert-manager.io", "Issuer"): "infrastructure",
    GroupKind("cert-manager.io", "ClusterIssuer"): "infrastructure",
    GroupKind("cert-manager.io", "Certificate"): "infrastructure",
    GroupKind("autoscaling", "HorizontalPodAutoscaler"): "scaling",
    GroupKind("autoscaling.k8s.io", "VerticalPodAutoscaler"): "scaling",
    GroupKind("monitoring.coreos.com", "PrometheusRule"): "publish",
    GroupKind("monitoring.coreos.com", "ServiceMonitor"): "publish",
    GroupKind("monitoring.coreos.com", "PodMonitor"): "publish",
    GroupKind("networking.k8s.io", "Ingress"): "publish",
    GroupKind("networking.k8s.io", "IngressClass"): "publish",
    GroupKind("route.openshift.io", "Route"): "publish",
    GroupKind("apiregistration.k8s.io", "APIService"): "publish",
    GroupKind(ADMISSION_GROUP, "ValidatingWebhookConfiguration"): "admission",
    GroupKind(ADMISSION_GROUP, "MutatingWebhookConfiguration"): "admission",
    GroupKind(ADMISSION_GROUP, "ValidatingAdmissionPolicy"): "admission",
    GroupKind(ADMISSION_GROUP, "ValidatingAdmissionPolicyBinding"): "admission",
    GroupKind(ADMISSION_GROUP, "MutatingAdmissionPolicy"): "admission",
    GroupKind(ADMISSION_GROUP, "MutatingAdmissionPolicyBinding"): "admission",
}


def phase_of(ref: ObjectRef) -> str:
    """The phase of a kind; what is not known (workloads, custom resources) belongs to `deploy`."""
    return phase_name(ref.group, ref.kind)


def phase_name(group: str, kind: str) -> str:
    if group == "console.openshift.io":
        return "publish"
    return PHASE_OF.get(GroupKind(group, kind), "deploy")
