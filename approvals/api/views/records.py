"""What is only read: clusters, policies and the audit; and the answer of every other address."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request as Http
from rest_framework.views import APIView

from approvals.api import filters
from approvals.api import serializers as shapes
from approvals.api.views.scoped import ClusterScoped
from approvals.models import AuditEntry, Cluster, Policy
from approvals.selectors.audit import OF_SECRETS


class ClusterViewSet(ClusterScoped):
    serializer_class = shapes.ClusterSerializer
    lookup_field = "name"

    def get_queryset(self) -> QuerySet[Cluster]:
        return Cluster.objects.filter(pk__in=[cluster.pk for cluster in self.clusters()]).order_by("name")


class PolicyViewSet(ClusterScoped):
    serializer_class = shapes.PolicySerializer
    lookup_field = "name"

    def get_queryset(self) -> QuerySet[Policy]:
        return Policy.objects.filter(cluster__in=self.clusters()).select_related("cluster").order_by("name")


class AuditViewSet(ClusterScoped):
    serializer_class = shapes.AuditSerializer
    filterset_class = filters.AuditFilter
    lookup_field = "number"

    def get_queryset(self) -> QuerySet[AuditEntry]:
        names = [cluster.name for cluster in self.clusters()]
        return AuditEntry.objects.filter(~OF_SECRETS, cluster__in=names).order_by("-number")


@extend_schema(exclude=True)
class NoSuchAddress(APIView):
    """Every other address under /api: its 404 has the shape of all others."""

    def initial(self, request: Http, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        raise Http404
