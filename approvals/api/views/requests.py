"""Requests: how they stand, their reports in parts, and what reviewers say."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from django.db.models import Prefetch, QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request as Http
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from approvals import services
from approvals.access.sight import ReportSight, Sight, may_see_roles, said_of, show_words
from approvals.api import filters
from approvals.api import serializers as shapes
from approvals.api.authentication import caller_of
from approvals.api.report_parts import MAX_ASKED, changes_of, part_of, visible_report
from approvals.api.views.changes import VIA, valid
from approvals.api.views.scoped import ClusterScoped
from approvals.models import Report, Request, Review
from approvals.selectors import inbox
from approvals.selectors.inbox_columns import REST_COLUMNS, with_columns
from approvals.selectors.since_review import SinceReview, since_your_review
from approvals.selectors.status import RequestStatus, statuses


class RequestViewSet(ClusterScoped):
    filterset_class = filters.RequestFilter
    lookup_field = "uid"

    @property
    def _unread(self) -> tuple[str, ...]:
        """What no row of a list shows; each of a thousand would be read and decrypted."""
        return ("spec", "deployment__spec", "deployment__cluster__kubeconfig") if self.action == "list" else ()

    def get_serializer_class(self) -> type[BaseSerializer[Any]]:
        return shapes.RequestSerializer if self.action == "list" else shapes.RequestDetailSerializer

    def get_serializer_context(self) -> dict[str, Any]:
        known = cache(partial(may_see_roles, caller_of(self.request)))
        context = {
            "said_of": self._said_of,
            "since_review": self._since_review,
            "may_see_roles": lambda request: known(request.deployment.cluster),
            "status_of": self._status_of,
        }
        return {**super().get_serializer_context(), **context}

    def paginate_queryset(self, queryset: Any) -> Any:
        """The rows of a page; how requests stand is read for all of them at once."""
        rows = super().paginate_queryset(queryset)
        self._statuses = statuses(rows or ()) if self.action == "list" else {}
        return rows

    def _status_of(self, request: Request) -> RequestStatus:
        known = getattr(self, "_statuses", {})
        return known[request.pk] if request.pk in known else statuses([request])[request.pk]

    def _since_review(self, request: Request) -> SinceReview | None:
        caller = caller_of(self.request)
        sight = Sight(caller, request.deployment.cluster, limit=MAX_ASKED)
        return since_your_review(request=request, user=caller.user, sight_of=partial(ReportSight, sight))

    def _said_of(self, request: Request) -> list[str]:
        return said_of(Sight(caller_of(self.request), request.deployment.cluster, limit=MAX_ASKED), request)

    def get_queryset(self) -> QuerySet[Request]:
        known = inbox.with_verdict(with_columns(inbox.requests(clusters=self.clusters()), REST_COLUMNS.values()))
        known = known.select_related("deployment__cluster", "to_revision", "content").defer(*self._unread)
        if self.action != "list":
            reviews = Review.objects.select_related("replaced_by").prefetch_related("dismissals")
            known = known.prefetch_related(Prefetch("reviews", queryset=reviews))
        return known.order_by("-created_at", "-pk")

    @extend_schema(parameters=[shapes.ReportPart], responses={200: dict})
    @action(detail=True)
    def report(self, request: Http, **_: Any) -> Response:
        """The report of the current round, with live values only of objects that the caller is allowed to get.

        A large report comes in parts, each with all counts: `parts` says where the next one starts.
        """
        wish = filters.query_of(shapes.ReportPart(data=request.query_params))
        shown = self._shown(request)
        if wish["finding"]:
            found = [one for one in shown["findings"] if one["fingerprint"] == wish["finding"]]
            return Response({"findings": found})
        return Response(part_of(shown, **{name: wish[name] for name in wish if name.endswith("_from")}))

    @extend_schema(responses={200: dict})
    @action(detail=True, url_path=r"report/objects/(?P<position>\d{1,7})")
    def planned(self, request: Http, position: str, **_: Any) -> Response:
        """One planned action by its position in the plan, with its object before and after."""
        return Response(self._planned(request, position))

    @extend_schema(parameters=[shapes.ChangesPart], responses={200: dict})
    @action(detail=True, url_path=r"report/objects/(?P<position>\d{1,7})/changes", url_name="changes")
    def changes(self, request: Http, position: str, **_: Any) -> Response:
        """The lines that differ in one planned object, in hunks with three lines around each change.

        Long changes come in parts: `parts` says where the next one starts. Secrets are masked.
        """
        wish = filters.query_of(shapes.ChangesPart(data=request.query_params))
        return Response(changes_of(self._planned(request, position), lines_from=wish["lines_from"]))

    def _planned(self, request: Http, position: str) -> dict[str, Any]:
        actions = self._shown(request)["plan"]["actions"]
        if int(position) >= len(actions):
            raise Http404
        return dict(actions[int(position)])

    def _shown(self, request: Http) -> dict[str, Any]:
        found = self.get_object()
        report = Report.objects.filter(request=found, round=found.round).first()
        if report is None:
            raise Http404
        return visible_report(caller_of(request), found, report)

    @extend_schema(responses=shapes.OutcomeSerializer(many=True))
    @action(detail=True)
    def outcomes(self, request: Http, **_: Any) -> Response:
        found = self.get_object()
        sight = Sight(caller_of(request), found.deployment.cluster, limit=MAX_ASKED)
        rows = self.paginate_queryset(found.outcomes.all())
        shape = shapes.OutcomeSerializer(rows, many=True, context={"show_words": partial(show_words, sight)})
        return self.get_paginated_response(shape.data)

    @extend_schema(request=shapes.ReviewInput, responses={201: shapes.ReviewSerializer})
    @action(detail=True, methods=["post"])
    def reviews(self, request: Http, **_: Any) -> Response:
        """Decide on exactly the subject digest that was reviewed; 409 if it is no longer current.

        `RequestChanges` does not end the request: nobody's approval counts until its author reviews again or somebody
        dismisses it.
        """
        wish = valid(shapes.ReviewInput(data=request.data))
        wish["waives"] = [services.Waiver(**one) for one in wish["waives"]]
        given = services.review(
            by=caller_of(request), request_id=self.get_object().pk, channel=Review.Channel.REST, **wish
        )
        return Response(shapes.ReviewSerializer(given).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=shapes.DismissInput, responses={201: shapes.DismissalSerializer})
    @action(detail=True, methods=["post"], url_path=r"reviews/(?P<review>\d{1,18})/dismiss", url_name="dismiss")
    def dismiss(self, request: Http, review: str, **_: Any) -> Response:
        """Dismiss a review that requests changes; needs `override`. 409 if the review holds nothing back."""
        wish = valid(shapes.DismissInput(data=request.data))
        given = services.dismiss(
            by=caller_of(request),
            request_id=self.get_object().pk,
            review_id=int(review),
            reason=wish["reason"],
            channel=Review.Channel.REST,
        )
        return Response(shapes.DismissalSerializer(given).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=shapes.WithdrawInput, responses=shapes.RequestDetailSerializer)
    @action(detail=True, methods=["post"])
    def withdraw(self, request: Http, **_: Any) -> Response:
        wish = valid(shapes.WithdrawInput(data=request.data))
        services.withdraw(by=caller_of(request), request_id=self.get_object().pk, reason=wish["reason"], via=VIA)
        return Response(self.get_serializer(self.get_object()).data)
