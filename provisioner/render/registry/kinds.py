"""The kinds that an operator bundle may have beside its ClusterServiceVersion and CRDs, and which are namespaced.

Source: operator-registry, pkg/lib/bundle/supported_resources.go.
"""

from __future__ import annotations

from types import MappingProxyType

SUPPORTED = MappingProxyType(
    {
        "ClusterRole": False,
        "ClusterRoleBinding": False,
        "ConfigMap": True,
        "ConsoleCLIDownload": False,
        "ConsoleLink": False,
        "ConsolePlugin": False,
        "ConsoleQuickStart": False,
        "ConsoleYAMLSample": False,
        "NetworkPolicy": True,
        "PodDisruptionBudget": True,
        "PriorityClass": False,
        "PrometheusRule": True,
        "Role": True,
        "RoleBinding": True,
        "Secret": True,
        "Service": True,
        "ServiceAccount": True,
        "ServiceMonitor": True,
        "VerticalPodAutoscaler": True,
    }
)
