"""The resources. Everything is limited to the clusters whose requests the caller may read (security.md S02)."""

from __future__ import annotations

import hashlib
from typing import Any

import django_filters
from django.contrib.auth.models import User
from django.db.models import Prefetch, QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request as Http
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from approvals import access, services
from approvals.api import serializers as shapes
from approvals.models import AuditEntry, BundleDeployment, Cluster, Policy, Report, Request, Review, Revision
from provisioner.values import ObjectRef

VIA = "rest"


def person(http: Http) -> User:
    """The signed-in user; the permission classes let nobody else in."""
    assert isinstance(http.user, User)
    return http.user


class Readable(viewsets.GenericViewSet[Any]):
    """Knows the caller's clusters; a single object carries an ETag."""

    def clusters(self) -> list[Cluster]:
        return [] if getattr(self, "swagger_fake_view", False) else access.readable_clusters(person(self.request))

    def retrieve(self, request: Http, *args: Any, **kwargs: Any) -> Response:
        data = self.get_serializer(self.get_object()).data
        tag = f'"{hashlib.sha256(repr(data).encode()).hexdigest()[:32]}"'
        if tag in request.headers.get("If-None-Match", ""):
            return Response(status=status.HTTP_304_NOT_MODIFIED, headers={"ETag": tag})
        return Response(data, headers={"ETag": tag})


class ClusterViewSet(mixins.ListModelMixin, Readable):
    serializer_class = shapes.ClusterSerializer
    lookup_field = "name"

    def get_queryset(self) -> QuerySet[Cluster]:
        return Cluster.objects.filter(pk__in=[cluster.pk for cluster in self.clusters()]).order_by("name")


class DeploymentFilter(django_filters.FilterSet):
    cluster = django_filters.CharFilter(field_name="cluster__name")
    name = django_filters.CharFilter()
    health = django_filters.CharFilter()


class DeploymentViewSet(mixins.ListModelMixin, Readable):
    serializer_class = shapes.DeploymentSerializer
    filterset_class = DeploymentFilter
    lookup_field = "uid"

    def get_queryset(self) -> QuerySet[BundleDeployment]:
        return (
            BundleDeployment.objects.filter(cluster__in=self.clusters(), gone_at__isnull=True)
            .select_related("cluster", "active_revision__request")
            .order_by("cluster__name", "name")
        )

    @extend_schema(request=shapes.DeploymentInput, responses={201: shapes.DeploymentSerializer})
    def create(self, request: Http) -> Response:
        """Make a BundleDeployment in the cluster, as the caller."""
        wish = _valid(shapes.DeploymentInput(data=request.data))
        cluster = next((it for it in self.clusters() if it.name == wish["cluster"]), None)
        if cluster is None:
            raise Http404
        made = services.create_deployment(
            by=person(request), cluster=cluster, name=wish["name"], spec=wish["spec"], labels=wish["labels"], via=VIA
        )
        return Response(self.get_serializer(made).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=shapes.SpecInput, responses=shapes.DeploymentSerializer)
    def update(self, request: Http, **_: Any) -> Response:
        """Replace the spec; 409 where the object is no longer at `resource_version`."""
        wish = _valid(shapes.SpecInput(data=request.data))
        changed = services.change_deployment(
            by=person(request),
            deployment=self.get_object(),
            spec=wish["spec"],
            resource_version=wish["resource_version"],
            via=VIA,
        )
        return Response(self.get_serializer(changed).data)

    def destroy(self, request: Http, **_: Any) -> Response:
        """Ask for deletion: a request that has to be approved while objects are left."""
        services.delete_deployment(by=person(request), deployment=self.get_object(), via=VIA)
        return Response(status=status.HTTP_202_ACCEPTED)

    @extend_schema(responses=shapes.RevisionSerializer(many=True))
    @action(detail=True)
    def revisions(self, request: Http, **_: Any) -> Response:
        rows = Revision.objects.filter(deployment=self.get_object()).select_related("request")
        return self._paged(rows, shapes.RevisionSerializer)

    def _paged(self, rows: QuerySet[Any], shape: type[BaseSerializer[Any]]) -> Response:
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(shape(page, many=True).data)


class RequestFilter(django_filters.FilterSet):
    cluster = django_filters.CharFilter(field_name="deployment__cluster__name")
    deployment = django_filters.CharFilter(field_name="deployment__name")
    state = django_filters.CharFilter()
    purpose = django_filters.CharFilter()


class RequestViewSet(mixins.ListModelMixin, Readable):
    filterset_class = RequestFilter
    lookup_field = "uid"

    def get_serializer_class(self) -> type[BaseSerializer[Any]]:
        return shapes.RequestSerializer if self.action == "list" else shapes.RequestDetailSerializer

    def get_queryset(self) -> QuerySet[Request]:
        return (
            Request.objects.filter(deployment__cluster__in=self.clusters())
            .select_related("deployment__cluster")
            .prefetch_related("verdicts", "reviews", Prefetch("reports", queryset=Report.objects.defer("body")))
            .order_by("-created_at", "-pk")
        )

    @extend_schema(responses={200: dict})
    @action(detail=True)
    def report(self, request: Http, **_: Any) -> Response:
        """The whole report of the current round; live values only of objects that the caller may get."""
        found = self.get_object()
        report = Report.objects.filter(request=found, round=found.round).first()
        if report is None:
            raise Http404
        return Response(visible_report(person(request), found, report))

    @extend_schema(responses=shapes.OutcomeSerializer(many=True))
    @action(detail=True)
    def outcomes(self, request: Http, **_: Any) -> Response:
        page = self.paginate_queryset(self.get_object().outcomes.all())
        return self.get_paginated_response(shapes.OutcomeSerializer(page, many=True).data)

    @extend_schema(request=shapes.ReviewInput, responses={201: shapes.ReviewSerializer})
    @action(detail=True, methods=["post"])
    def reviews(self, request: Http, **_: Any) -> Response:
        """Approve or deny exactly the subject that was looked at; 409 where it is no longer current."""
        wish = _valid(shapes.ReviewInput(data=request.data))
        given = services.review(
            by=person(request), request_id=self.get_object().pk, channel=Review.Channel.REST, **wish
        )
        return Response(shapes.ReviewSerializer(given).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=shapes.WithdrawInput, responses=shapes.RequestDetailSerializer)
    @action(detail=True, methods=["post"])
    def withdraw(self, request: Http, **_: Any) -> Response:
        wish = _valid(shapes.WithdrawInput(data=request.data))
        services.withdraw(by=person(request), request_id=self.get_object().pk, reason=wish["reason"], via=VIA)
        return Response(self.get_serializer(self.get_object()).data)


class PolicyViewSet(mixins.ListModelMixin, Readable):
    serializer_class = shapes.PolicySerializer
    lookup_field = "name"

    def get_queryset(self) -> QuerySet[Policy]:
        return Policy.objects.filter(cluster__in=self.clusters()).select_related("cluster").order_by("name")


class AuditFilter(django_filters.FilterSet):
    actor = django_filters.CharFilter()
    deployment = django_filters.CharFilter()
    verb = django_filters.CharFilter()
    via = django_filters.CharFilter()


class AuditViewSet(mixins.ListModelMixin, Readable):
    serializer_class = shapes.AuditSerializer
    filterset_class = AuditFilter
    lookup_field = "number"

    def get_queryset(self) -> QuerySet[AuditEntry]:
        names = [cluster.name for cluster in self.clusters()]
        return AuditEntry.objects.filter(cluster__in=names).order_by("-number")


def visible_report(user: User, request: Request, report: Report) -> dict[str, Any]:
    """The report's record without what this user may not see: `before` of an object that they may not get (S09)."""
    cluster = request.deployment.cluster
    body: dict[str, Any] = report.body
    actions = []
    for planned in body["plan"]["actions"]:
        ref = planned["ref"]
        wanted = ObjectRef(ref["group"], ref["version"], ref["kind"], ref["namespace"], ref["name"])
        is_live = planned.get("before") is not None
        is_open = not is_live or access.may_see_object(user, cluster, wanted).allowed
        actions.append(planned if is_open else {**planned, "before": None, "after": None, "hidden": True})
    hidden = {_key(planned["ref"]) for planned in actions if planned.get("hidden")}
    findings = [
        {**finding, "evidence": {"hidden": True}} if finding.get("ref") and _key(finding["ref"]) in hidden else finding
        for finding in body["findings"]
    ]
    return {**body, "findings": findings, "plan": {**body["plan"], "actions": actions}}


def _key(ref: dict[str, str]) -> tuple[str, ...]:
    return (ref["group"], ref["kind"], ref["namespace"], ref["name"])


def _valid(shape: BaseSerializer[Any]) -> dict[str, Any]:
    shape.is_valid(raise_exception=True)
    return dict(shape.validated_data)
