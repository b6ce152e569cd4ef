"""Objects that say how requests are decided, over REST: read by whoever may `get` them in their cluster, and written
there as the caller."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import status
from rest_framework.request import Request as Http
from rest_framework.response import Response

from approvals import access, services
from approvals.api.authentication import caller_of
from approvals.api.resources import VIA, ClusterScoped, stated_etags, valid
from approvals.api.serializers.deciding import (
    ConfirmationInput,
    DecidingObjectInput,
    DecidingObjectSerializer,
    DecidingSpecInput,
)
from approvals.deciding.kinds import DecidingKind
from approvals.deciding.table import KINDS
from approvals.models import Cluster, DecidingObject

IF_MATCH = OpenApiParameter(
    "If-Match", str, OpenApiParameter.HEADER, required=True, description="the ETag of the object as you read it"
)


@extend_schema_view(list=extend_schema(responses=DecidingObjectSerializer(many=True), filters=False))
class DecidingViewSet(ClusterScoped):
    """The objects of one kind in one cluster."""

    serializer_class = DecidingObjectSerializer
    of: ClassVar[type[DecidingKind]] = KINDS[0]

    def get_queryset(self) -> QuerySet[DecidingObject]:
        """404 where the caller may not get every object of the kind: each is read by its name then."""
        rows = DecidingObject.objects.filter(kind=self.of.kind, gone_at=None)
        if getattr(self, "swagger_fake_view", False):
            return rows
        rows = rows.filter(cluster=self._cluster("")).select_related("cluster").prefetch_related("confirmations")
        return rows.order_by("name")

    def get_object(self) -> DecidingObject:
        rows = DecidingObject.objects.filter(kind=self.of.kind, gone_at=None, cluster=self._cluster(self._name))
        found = rows.filter(name=self._name).select_related("cluster").first()
        if found is None:
            raise Http404
        return found

    def retrieve(self, request: Http, *args: Any, **kwargs: Any) -> Response:
        """One object; its ETag is what If-Match takes."""
        return self._shown(self.get_object())

    @extend_schema(request=DecidingObjectInput, responses={201: DecidingObjectSerializer})
    def create(self, request: Http, **_: Any) -> Response:
        """Create the object in its cluster, as the caller."""
        wish = valid(DecidingObjectInput(data=request.data))
        cluster = self._cluster(wish["name"])
        made = services.create_object(by=caller_of(request), cluster=cluster, kind=self.of, via=VIA, **wish)
        return self._shown(made, status.HTTP_201_CREATED)

    @extend_schema(parameters=[IF_MATCH], request=DecidingSpecInput, responses=DecidingObjectSerializer)
    def update(self, request: Http, **_: Any) -> Response:
        """Replace the spec, as the caller; 412 if the object is not at the version in If-Match, 428 without one."""
        wish = valid(DecidingSpecInput(data=request.data))
        return self._shown(services.change_object(**self._written(request), spec=wish["spec"], via=VIA))

    @extend_schema(parameters=[IF_MATCH], responses={204: None})
    def destroy(self, request: Http, **_: Any) -> Response:
        """Delete the object, as the caller. Deleting an approval rule approves nothing that is open: one person has to
        approve after that. What waited for a change window alone is applied."""
        services.delete_object(**self._written(request), via=VIA)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(request=ConfirmationInput, responses=DecidingObjectSerializer)
    def confirm(self, request: Http, **_: Any) -> Response:
        """Stand behind the object as it is at this version, as a second person; 412 if it is at another one."""
        cluster = self._cluster(self._name)
        wish = valid(ConfirmationInput(data=request.data))
        about: dict[str, Any] = {"by": caller_of(request), "cluster": cluster, "kind": self.of, "name": self._name}
        return self._shown(services.confirm_object(**about, version=wish["version"], via=VIA))

    @property
    def _name(self) -> str:
        return str(self.kwargs["name"])

    def _cluster(self, name: str) -> Cluster:
        """The cluster of the address; 404 where the caller may not get this object there, or with "" every one."""
        self._check_named(self.kwargs["cluster"])
        if "\0" in self.kwargs["cluster"] + name:  # which PostgreSQL does not store
            raise Http404
        cluster = Cluster.objects.filter(name=self.kwargs["cluster"]).first()
        if cluster is None:
            raise Http404
        answer = access.may(caller_of(self.request), cluster, "get", resource=self.of.plural, name=name)
        self.answers = [(cluster, answer)]
        self.check_all_answered()
        if not answer.allowed:
            raise Http404
        return cluster

    def _written(self, request: Http) -> dict[str, Any]:
        """Who writes which object, as they read it; who may not get it is not told that If-Match is missing."""
        cluster = self._cluster(self._name)
        return {
            "by": caller_of(request),
            "cluster": cluster,
            "kind": self.of,
            "name": self._name,
            "version": stated_etags(request)[0].removeprefix("W/").strip('"'),
        }

    def _shown(self, row: DecidingObject, code: int = status.HTTP_200_OK) -> Response:
        return Response(self.get_serializer(row).data, status=code, headers={"ETag": f'"{row.version}"'})
