"""In which phase each kind enters a cluster."""

from __future__ import annotations

import pytest

from provisioner.phases import phase_of
from provisioner.values import ObjectRef

RBAC = "rbac.authorization.k8s.io/v1"


@pytest.mark.parametrize(
    ("api_version", "kind", "phase"),
    [
        ("v1", "Namespace", "namespaces"),
        ("networking.k8s.io/v1", "NetworkPolicy", "policies"),
        ("policy/v1", "PodDisruptionBudget", "policies"),
        ("scheduling.k8s.io/v1", "PriorityClass", "policies"),
        ("v1", "ServiceAccount", "identity"),
        ("v1", "Secret", "configuration"),
        ("v1", "ConfigMap", "configuration"),
        ("v1", "PersistentVolume", "storage"),
        ("v1", "PersistentVolumeClaim", "storage"),
        ("storage.k8s.io/v1", "StorageClass", "storage"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "crds"),
        (RBAC, "ClusterRole", "roles"),
        (RBAC, "Role", "roles"),
        (RBAC, "ClusterRoleBinding", "bindings"),
        (RBAC, "RoleBinding", "bindings"),
        ("v1", "Service", "infrastructure"),
        ("cert-manager.io/v1", "Issuer", "infrastructure"),
        ("cert-manager.io/v1", "Certificate", "infrastructure"),
        ("apps/v1", "Deployment", "deploy"),
        ("batch/v1", "Job", "deploy"),
        ("example.com/v1", "Namespace", "deploy"),
        ("example.com/v1", "Anything", "deploy"),
        ("autoscaling.k8s.io/v1", "VerticalPodAutoscaler", "scaling"),
        ("monitoring.coreos.com/v1", "PrometheusRule", "publish"),
        ("networking.k8s.io/v1", "Ingress", "publish"),
        ("console.openshift.io/v1", "ConsolePlugin", "publish"),
        ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "admission"),
        ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "admission"),
        ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "admission"),
    ],
)
def test_each_kind_has_its_phase(api_version: str, kind: str, phase: str) -> None:
    body = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}}
    assert phase_of(ObjectRef.of(body)) == phase
