"""BundleDeployments: read, changed in the cluster as the caller, and what people ask of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request as Http
from rest_framework.response import Response

from approvals import access, services
from approvals.access.sight import Sight
from approvals.api import filters
from approvals.api import serializers as shapes
from approvals.api.authentication import caller_of
from approvals.api.report_parts import MAX_ASKED
from approvals.api.views.changes import VIA, valid
from approvals.api.views.scoped import ClusterScoped
from approvals.clock import database_now
from approvals.models import BundleDeployment, Drift, Revision
from approvals.selectors import lists
from approvals.selectors.floating import offers


class DeploymentViewSet(ClusterScoped):
    serializer_class = shapes.DeploymentSerializer
    filterset_class = filters.DeploymentFilter
    object_filterset_class = filters.ByCluster
    lookup_field = "uid"

    def get_queryset(self) -> QuerySet[BundleDeployment]:
        known = BundleDeployment.objects.filter(cluster__in=self.clusters(), gone_at__isnull=True)
        # Of each row, a list would decrypt it anew.
        known = known.defer("cluster__kubeconfig") if self.action == "list" else known
        known = known.select_related("cluster", "active_revision__request", "active_revision__content")
        return known.prefetch_related("followed_references__reference", offers()).order_by("cluster__name", "name")

    @extend_schema(request=shapes.DeploymentInput, responses={201: shapes.DeploymentSerializer})
    def create(self, request: Http) -> Response:
        """Create a BundleDeployment in the cluster, as the caller."""
        wish = valid(shapes.DeploymentInput(data=request.data))
        cluster = next((it for it in self.clusters() if it.name == wish["cluster"]), None)
        if cluster is None:
            self.check_all_answered()
            self._check_named(wish["cluster"])
            raise Http404
        made = services.create_deployment(
            by=caller_of(request), cluster=cluster, name=wish["name"], spec=wish["spec"], labels=wish["labels"], via=VIA
        )
        return Response(self.get_serializer(made).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=shapes.SpecInput, responses=shapes.DeploymentSerializer)
    def update(self, request: Http, **_: Any) -> Response:
        """Replace the spec; 409 if `generation` is not the current one, 403 if you may not get the BundleDeployment."""
        wish = valid(shapes.SpecInput(data=request.data))
        found = self.get_object()
        sees = access.may(caller_of(request), found.cluster, "get", resource="bundledeployments", name=found.name)
        replace(sees, words=f"{sees.words}: the spec that you were shown would overwrite values with `hidden`").check()
        self.check_if_match(found)
        changed = services.change_deployment(
            by=caller_of(request),
            deployment=found,
            spec=wish["spec"],
            generation=wish["generation"],
            via=VIA,
        )
        return Response(self.get_serializer(changed).data)

    @extend_schema(responses={202: None})
    def destroy(self, request: Http, **_: Any) -> Response:
        """Request deletion: creates a request that must be approved if objects are left."""
        found = self.get_object()
        self.check_if_match(found)
        services.delete_deployment(by=caller_of(request), deployment=found, via=VIA)
        return Response(status=status.HTTP_202_ACCEPTED)

    @extend_schema(request=shapes.PauseInput, responses=shapes.DeploymentSerializer)
    @action(detail=True, methods=["post"])
    def pause(self, request: Http, **_: Any) -> Response:
        """Pause or resume applying. While paused, changes still create requests with reports."""
        wish = valid(shapes.PauseInput(data=request.data))
        changed = services.pause_deployment(by=caller_of(request), deployment=self.get_object(), via=VIA, **wish)
        return Response(self.get_serializer(changed).data)

    @extend_schema(request=shapes.AskAgainInput, responses=shapes.DeploymentSerializer)
    @action(detail=True, methods=["post"], url_path="ask-again")
    def ask_again(self, request: Http, **_: Any) -> Response:
        """Fetch the sources again and create a new request, or report the open one again; 409 while one is applied, or
        if `generation` is not the current one: the caller asks for the spec that they have read."""
        wish = valid(shapes.AskAgainInput(data=request.data))
        changed = services.ask_again(by=caller_of(request), deployment=self.get_object(), via=VIA, **wish)
        return Response(self.get_serializer(changed).data)

    @extend_schema(request=shapes.RollbackInput, responses=shapes.DeploymentSerializer)
    @action(detail=True, methods=["post"])
    def rollback(self, request: Http, **_: Any) -> Response:
        """Request a rollback to the stored content of an earlier revision: creates a request that must be approved."""
        wish = valid(shapes.RollbackInput(data=request.data))
        changed = services.rollback_deployment(by=caller_of(request), deployment=self.get_object(), via=VIA, **wish)
        return Response(self.get_serializer(changed).data)

    @extend_schema(request=shapes.RevokeInput, responses=shapes.RevisionSerializer)
    @action(detail=True, methods=["post"])
    def revoke(self, request: Http, **_: Any) -> Response:
        """Mark an earlier revision as revoked: it can no longer be rolled back to or restored automatically."""
        wish = valid(shapes.RevokeInput(data=request.data))
        marked = services.revoke_revision(by=caller_of(request), deployment=self.get_object(), via=VIA, **wish)
        return Response(shapes.RevisionSerializer(marked).data)

    @extend_schema(request=shapes.ReinstateInput, responses=shapes.RevisionSerializer)
    @action(detail=True, methods=["post"])
    def reinstate(self, request: Http, **_: Any) -> Response:
        """Remove the revoked mark; 409 if there is none."""
        wish = valid(shapes.ReinstateInput(data=request.data))
        marked = services.reinstate_revision(by=caller_of(request), deployment=self.get_object(), via=VIA, **wish)
        return Response(shapes.RevisionSerializer(marked).data)

    @extend_schema(responses=shapes.RevisionSerializer(many=True))
    @action(detail=True)
    def revisions(self, request: Http, **_: Any) -> Response:
        rows = Revision.objects.filter(deployment=self.get_object()).select_related("request", "content")
        return self.paged(rows, shapes.RevisionSerializer)

    @extend_schema(responses=shapes.DriftSerializer(many=True))
    @action(detail=True)
    def drift(self, request: Http, **_: Any) -> Response:
        """Drift now and in the last day: the field managers, the fields, and what was corrected. Drift of a Secret is
        listed only if the caller is allowed to get the Secret."""
        deployment = self.get_object()
        sight = Sight(caller_of(request), deployment.cluster, limit=MAX_ASKED)
        found = lists.drifts(deployment=deployment, now=database_now(), may_see=sight.may_see)
        rows = self.paginate_queryset(found)
        context = {"may_see": lambda row: _tells_nothing(row) or sight.may_see(lists.ref_of(row))}
        return self.get_paginated_response(shapes.DriftSerializer(rows, many=True, context=context).data)


def _tells_nothing(row: Drift) -> bool:
    return not row.fields and not row.server_words
