"""Change sets over REST."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from drf_spectacular.helpers import forced_singular_serializer
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request as Http
from rest_framework.response import Response

from approvals import services
from approvals.api import serializers as shapes
from approvals.api.authentication import caller_of
from approvals.api.resources import VIA, ClusterScoped, valid
from approvals.errors import NotFound
from approvals.models import Request, Review
from approvals.selectors.sets import summaries
from approvals.services import ChangeSet

# `list` would be described as pages of them.
ONE_DOCUMENT = forced_singular_serializer(shapes.SetSummariesSerializer)  # type: ignore[no-untyped-call]  # REST framework's base has no types
NAME = OpenApiParameter("name", str, OpenApiParameter.PATH, description="the value of the label core.rukpak.io/set")


class SetViewSet(ClusterScoped):
    """What belongs to a set is asked of the deployments that the caller may read: each caller sees their own part."""

    queryset = Request.objects.none()  # for the description
    lookup_field = "name"
    lookup_value_regex = "[^/]+"
    paged_actions, pagination_class = (), None

    @extend_schema(responses=ONE_DOCUMENT, filters=False)
    def list(self, request: Http, *_: Any, **__: Any) -> Response:
        """All sets, those with something to decide first."""
        return Response(shapes.SetSummariesSerializer({"results": summaries(clusters=self.clusters())}).data)

    @extend_schema(parameters=[NAME], responses=shapes.ChangeSetSerializer)
    def retrieve(self, request: Http, *_: Any, **__: Any) -> Response:
        """The members by groups that are alike, and how each group differs from the largest."""
        found = self._read()
        groups = services.read_groups(found)
        shown = {
            **{name: getattr(found, name) for name in ("name", "alone", "settled")},
            "order": services.read_order(clusters=self.clusters(), name=found.name),
            "groups": groups,
            "more_groups": len(found.groups) - len(groups),
        }
        return Response(shapes.ChangeSetSerializer(shown).data)

    @extend_schema(parameters=[NAME], request=shapes.SetReviewInput, responses={200: shapes.MemberResultsSerializer})
    @action(detail=True, methods=["post"])
    def review(self, request: Http, *_: Any, **__: Any) -> Response:
        """Record one review for each member, bound to the subject digest given with it.

        An approval covers members that are like the one that is shown. Each member has its own result: read all of
        them, since the status is 200 also where some were refused.
        """
        wish = valid(shapes.SetReviewInput(data=request.data))
        found = self._read()
        wish["members"] = {member["request"]: member["subject_digest"] for member in wish["members"]}
        results = services.review_set(
            by=caller_of(request), clusters=self.clusters(), name=found.name, channel=Review.Channel.REST, **wish
        )
        return Response(shapes.MemberResultsSerializer({"results": results}).data)

    @extend_schema(parameters=[NAME], request=shapes.SetOrderInput, responses={201: shapes.SetOrderSerializer})
    @action(detail=True, methods=["post"])
    def order(self, request: Http, *_: Any, **__: Any) -> Response:
        """Give the set an order: in which rings its members are applied. You need `update` on every member."""
        wish = valid(shapes.SetOrderInput(data=request.data))
        wish["members"] = [(one["cluster"], one["deployment"]) for one in wish["members"]]
        about: dict[str, Any] = {"clusters": self.clusters(), "name": str(self.kwargs["name"])}
        services.make_order(by=caller_of(request), via=VIA, **about, **wish)
        made = services.read_order(**about)
        return Response(shapes.SetOrderSerializer(made).data, status=status.HTTP_201_CREATED)

    @extend_schema(parameters=[NAME], request=shapes.RingApprovalInput, responses={204: None})
    @action(detail=True, methods=["post"], url_path="order/approve", url_name="order-approve")
    def approve_ring(self, request: Http, *_: Any, **__: Any) -> Response:
        """Approve what follows a ring. You need `approve` on every member that waits, and may have requested none."""
        return self._hasten(services.approve_ring, shapes.RingApprovalInput, channel=VIA)

    @extend_schema(parameters=[NAME], request=shapes.TakeOutInput, responses={204: None})
    @action(detail=True, methods=["post"], url_path="order/take-out", url_name="order-take-out")
    def take_out(self, request: Http, *_: Any, **__: Any) -> Response:
        """Have the set go on without one deployment. Needs the same rights as to approve a ring."""
        return self._hasten(services.take_out, shapes.TakeOutInput, via=VIA)

    @extend_schema(parameters=[NAME], request=shapes.OrderReasonInput, responses={204: None})
    @action(detail=True, methods=["post"], url_path="order/end", url_name="order-end")
    def end_order(self, request: Http, *_: Any, **__: Any) -> Response:
        """End the order: each member is applied as soon as it is approved. Needs the same rights as to approve a
        ring."""
        return self._hasten(services.end_order, shapes.OrderReasonInput, via=VIA)

    def _hasten(self, do: Callable[..., object], shape: type[serializers.Serializer[Any]], **door: str) -> Response:
        wish = valid(shape(data=self.request.data))
        do(by=caller_of(self.request), clusters=self.clusters(), name=str(self.kwargs["name"]), **door, **wish)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _read(self) -> ChangeSet:
        """503 while a cluster of the caller's cannot be asked: nobody can then tell what belongs to the set."""
        try:
            return services.read_set(
                by=caller_of(self.request), clusters=self.clusters(), name=str(self.kwargs["name"])
            )
        except NotFound:
            self.check_all_answered()
            raise
