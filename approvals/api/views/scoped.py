"""What all resources share: the caller's clusters, list pages, ETags, and a 404 that hides what may not be read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from django.core.exceptions import MultipleObjectsReturned
from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.middleware.http import ConditionalGetMiddleware
from django.utils.cache import set_response_etag
from django.utils.decorators import decorator_from_middleware, method_decorator
from django.utils.functional import cached_property
from django.utils.http import parse_etags
from django_filters import FilterSet
from rest_framework import viewsets
from rest_framework.permissions import SAFE_METHODS
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request as Http
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from approvals import access
from approvals.access import Permission
from approvals.access.sight import Sight, shown_spec
from approvals.api import filters
from approvals.api import serializers as shapes
from approvals.api.authentication import caller_of
from approvals.api.description import Named
from approvals.api.filters import Pages
from approvals.api.problems import BoundedJson
from approvals.api.report_parts import MAX_ASKED
from approvals.errors import Ambiguous, CouldNotAsk, NotAsExpected, OutOfScope
from approvals.models import BundleDeployment, Cluster

# These change what a GET of the same address shows, and take If-Match.
CONDITIONAL = ("update", "destroy")
# The actions that answer with a page of rows.
PAGED: tuple[str, ...] = ("list", "revisions", "drift", "outcomes")


@method_decorator(decorator_from_middleware(ConditionalGetMiddleware), name="dispatch")
class ClusterScoped(viewsets.GenericViewSet[Any]):
    """Limited to the caller's clusters. Every response to a GET has an ETag; a matching If-None-Match gets a 304."""

    parser_classes = [BoundedJson]
    metadata_class = Named
    filter_backends = [filters.Filters]
    filterset_class: type[FilterSet] | None = None
    object_filterset_class: type[FilterSet] | None = None
    paged_actions = PAGED

    def get_serializer_context(self) -> dict[str, Any]:
        sights = cache(lambda cluster: Sight(caller_of(self.request), cluster, limit=MAX_ASKED))

        def shown(deployment: BundleDeployment, spec: Mapping[str, Any]) -> dict[str, Any]:
            return shown_spec(sights(deployment.cluster), deployment.name, spec)

        return {**super().get_serializer_context(), "shown_spec": shown}

    known_parameters: Mapping[str, tuple[str, ...]] = {}

    def initial(self, request: Http, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        narrowing = self.filterset_class if self.action == "list" else self.object_filterset_class
        known = [*narrowing.base_filters] if narrowing and self.action != "create" else []
        known += shapes.ReportPart().fields if self.action == "report" else []
        known += shapes.ChangesPart().fields if self.action == "changes" else []
        known += self.known_parameters.get(self.action, ())
        if self.action not in CONDITIONAL and request.method not in SAFE_METHODS and "If-Match" in request.headers:
            raise NotAsExpected("If-Match is only supported for PUT and DELETE of resources with an ETag")
        self._check_named(request.query_params.get("cluster", ""))
        filters.check_names(request.query_params, [*known, *(Pages.names if self.action in self.paged_actions else ())])

    @property
    def default_response_headers(self) -> dict[str, str]:
        # What one may see is one's own, and asked again.
        return {**super().default_response_headers, "Cache-Control": "private, no-cache"}

    @cached_property
    def answers(self) -> list[tuple[Cluster, Permission]]:
        """Whether the caller may read, for each cluster where they are somebody."""
        if getattr(self, "swagger_fake_view", False):
            return []
        return access.read_answers(caller_of(self.request))

    def clusters(self) -> list[Cluster]:
        return [cluster for cluster, permission in self.answers if permission.allowed]

    def get_object(self) -> Any:
        """The row at this address; 404 where there is none or the caller may not read it, which looks the same.

        503 while a cluster of the caller's cannot be asked: nobody can then tell (promise 4).
        """
        try:
            return super().get_object()
        except MultipleObjectsReturned:
            raise Ambiguous("several clusters have an object with this uid: add ?cluster=") from None
        except Http404:
            self.check_all_answered()
            self._check_elsewhere()
            raise

    def _check_named(self, cluster: str) -> None:
        """Raise OutOfScope where this cluster is one that the token is not for, and its person is somebody there."""
        if cluster in {one.name for one in self._elsewhere()}:
            raise OutOfScope(
                f"this token does not cover cluster {cluster}: create a token for that cluster", cluster=cluster
            )

    def _check_elsewhere(self) -> None:
        """The same for the cluster of what this address names."""
        lookup = {self.lookup_field: self.kwargs[self.lookup_url_kwarg or self.lookup_field]}
        for cluster in self._elsewhere():
            self.answers = [(cluster, Permission(True, "to look whether it is there"))]
            is_there = self.get_queryset().filter(**lookup).exists()
            del self.answers
            if is_there:
                self._check_named(cluster.name)

    def _elsewhere(self) -> list[Cluster]:
        """Clusters on which the caller's account is somebody, and for which their token is not."""
        caller = caller_of(self.request)
        if caller.clusters is None:
            return []
        return list(Cluster.objects.filter(identities__user=caller.user).exclude(pk__in=caller.clusters))

    def list(self, request: Http, *args: Any, **kwargs: Any) -> Response:
        """One page. Headers Pratique-Could-Not-Ask and Pratique-Proof-Too-Old name clusters with missing rows."""
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        answer = self.get_paginated_response(self.get_serializer(page, many=True).data)
        too_old = [cluster.name for cluster, permission in self.answers if permission.is_too_old]
        if too_old:
            answer["Pratique-Proof-Too-Old"] = ",".join(too_old)
            self.headers["Cache-Control"] = "no-store"
        if self.silent_clusters():
            answer["Pratique-Could-Not-Ask"] = ",".join(self.silent_clusters())
            # No ETag: a 304 would drop the header, and an empty list look like the one that is known.
            self.headers["Cache-Control"] = "no-store"
        return answer

    def check_if_match(self, found: Any) -> None:
        """Raise NotAsExpected where If-Match is given and is not the ETag that a GET of `found` would carry now."""
        wanted = parse_etags(self.request.headers.get("If-Match", ""))
        if not wanted or wanted == ["*"]:
            return
        media_type = self.request.accepted_media_type or ""
        body = JSONRenderer().render(self.get_serializer(found).data, media_type, self.get_renderer_context())
        etag = set_response_etag(HttpResponse(body))["ETag"]
        if etag not in wanted:
            raise NotAsExpected(
                f"If-Match is {', '.join(wanted)[:200]}; the current ETag is {etag}: read the resource again"
            )

    def retrieve(self, request: Http, *args: Any, **kwargs: Any) -> Response:
        return Response(self.get_serializer(self.get_object()).data)

    def silent_clusters(self) -> tuple[str, ...]:
        return tuple(cluster.name for cluster, permission in self.answers if not permission.could_ask)

    def check_all_answered(self) -> None:
        for _, permission in self.answers:
            if permission.is_too_old:
                permission.check()
        silent = self.silent_clusters()
        if silent:
            raise CouldNotAsk(
                f"Kubernetes could not be asked what you are allowed to read on {', '.join(silent)}", clusters=silent
            )

    def paged(self, rows: QuerySet[Any], shape: type[BaseSerializer[Any]]) -> Response:
        return self.get_paginated_response(shape(self.paginate_queryset(rows), many=True).data)
