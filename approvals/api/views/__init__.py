"""The resources. Everything is limited to the clusters whose requests the caller may read (security-rules.md S02)."""

from approvals.api.views.deployments import DeploymentViewSet
from approvals.api.views.records import AuditViewSet, ClusterViewSet, NoSuchAddress, PolicyViewSet
from approvals.api.views.requests import RequestViewSet
from approvals.api.views.scoped import ClusterScoped

__all__ = [
    "AuditViewSet",
    "ClusterScoped",
    "ClusterViewSet",
    "DeploymentViewSet",
    "NoSuchAddress",
    "PolicyViewSet",
    "RequestViewSet",
]
