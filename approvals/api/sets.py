"""Change sets over REST."""

from __future__ import annotations

from typing import Any

from drf_spectacular.helpers import forced_singular_serializer
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request as Http
from rest_framework.response import Response

from approvals import services
from approvals.api import serializers as shapes
from approvals.api.authentication import caller_of
from approvals.api.resources import ClusterScoped, valid
from approvals.errors import NotFound
from approvals.models import Request, Review
from approvals.selectors.sets import summaries
from approvals.services import ChangeSet

NAME = OpenApiParameter("name", str, OpenApiParameter.PATH, description="the value of the label core.rukpak.io/set")


class SetViewSet(ClusterScoped):
    """What belongs to a set is asked of the deployments that the caller may read: each caller sees their own part."""

    queryset = Request.objects.none()  # for the description
    lookup_field = "name"
    lookup_value_regex = "[^/]+"
    paged_actions, pagination_class = (), None

    @extend_schema(responses=forced_singular_serializer(shapes.SetSummariesSerializer), filters=False)
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
            by=caller_of(request),
            clusters=self.clusters(),
            name=found.name,
            channel=Review.Channel.REST,
            **wish,
        )
        return Response(shapes.MemberResultsSerializer({"results": results}).data)

    def _read(self) -> ChangeSet:
        """503 while a cluster of the caller's cannot be asked: nobody can then tell what belongs to the set."""
        try:
            return services.read_set(
                by=caller_of(self.request), clusters=self.clusters(), name=str(self.kwargs["name"])
            )
        except NotFound:
            self.check_all_answered()
            raise
