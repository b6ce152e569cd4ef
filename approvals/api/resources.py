"""What all resources share: the caller's clusters, list pages, ETags, and a 404 that hides what may not be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any, ClassVar

from django.core.exceptions import MultipleObjectsReturned
from django.db.models import Prefetch, QuerySet
from django.http import Http404, HttpResponse
from django.middleware.http import ConditionalGetMiddleware
from django.utils.cache import set_response_etag
from django.utils.decorators import decorator_from_middleware, method_decorator
from django.utils.functional import cached_property
from django.utils.http import parse_etags
from django_filters import FilterSet
from drf_spectacular.utils import extend_schema
from rest_framework import status, viewsets
from rest_framework.decorators import action
from rest_framework.permissions import SAFE_METHODS, AllowAny
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request as Http
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView

from approvals import access, services
from approvals.access import Permission
from approvals.access.sight import ReportSight, Sight, may_see_roles, said_of, show_words, shown_spec
from approvals.api import filters
from approvals.api import serializers as shapes
from approvals.api.authentication import caller_of
from approvals.api.description import Named
from approvals.api.filters import Pages
from approvals.api.problems import BoundedJson
from approvals.api.report_parts import MAX_ASKED, changes_of, part_of, visible_report
from approvals.clock import database_now
from approvals.deciding.calendar_feed import write_calendar
from approvals.deciding.change_windows import ChangeWindow
from approvals.errors import Ambiguous, CouldNotAsk, NotAsExpected, NoVersion, OutOfScope
from approvals.ledger import made_values
from approvals.models import (
    AuditEntry,
    BundleDeployment,
    Cluster,
    KeptValue,
    PolicyEvaluation,
    Report,
    Request,
    Review,
    Revision,
)
from approvals.rate_limits import Limit, client_address, take
from approvals.selectors import inbox, lists, pages
from approvals.selectors.audit import OF_SECRETS
from approvals.selectors.change_stops import windows_of
from approvals.selectors.followed_sources import offers
from approvals.selectors.inbox_columns import REST_COLUMNS, with_columns
from approvals.selectors.since_review import SinceReview, since_your_review
from approvals.selectors.status import RequestStatus, statuses

# These change what a GET of the same address shows, and take If-Match.
CONDITIONAL = ("update", "destroy")
# The actions that answer with a page of rows.
PAGED: tuple[str, ...] = ("list", "revisions", "drift", "outcomes")


VIA = "rest"


class CalendarRenderer(JSONRenderer):
    """A calendar is text that the view has written; what OPTIONS says of the address is JSON."""

    media_type, format, charset = "text/calendar", "ics", "utf-8"

    def render(self, data: Any, media_type: str | None = None, context: Mapping[str, Any] | None = None) -> bytes:
        return data.encode() if isinstance(data, str) else super().render(data, media_type, context)


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
            # It may be on a cluster that the token is not for: then that is said.
            lookup = {self.lookup_field: self.kwargs[self.lookup_url_kwarg or self.lookup_field]}
            for cluster in self._elsewhere():
                self.answers = [(cluster, Permission(True, "to look whether it is there"))]
                is_there = self.get_queryset().filter(**lookup).exists()
                del self.answers
                if is_there:
                    self._check_named(cluster.name)
            raise

    def _check_named(self, cluster: str) -> None:
        """Raise OutOfScope where this cluster is one that the token is not for, and its person is somebody there."""
        if cluster in {elsewhere.name for elsewhere in self._elsewhere()}:
            raise OutOfScope(
                f"this token does not cover cluster {cluster}: create a token for that cluster", cluster=cluster
            )

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


def stated_etags(http: Http) -> list[str]:
    """The ETags in If-Match; raises NoVersion where there is none, or only the `*` of who has read nothing."""
    found = parse_etags(http.headers.get("If-Match", ""))
    if found and found != ["*"]:
        return found
    raise NoVersion("If-Match has no ETag: read it, and send the ETag of that answer")


class OpenViewSet(viewsets.GenericViewSet[Any]):
    """Nobody is known here, and a browser's session changes nothing: limits are those of the client's address."""

    parser_classes = [BoundedJson]
    metadata_class = Named
    authentication_classes = []
    permission_classes = [AllowAny]
    throttle_classes = []
    filter_backends = []
    pagination_class = None
    limit: ClassVar[Limit]

    def initial(self, request: Http, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        take(self.limit, client_address(request._request), words="too many requests: try again in {time}")
        filters.check_names(request.query_params, [])


def valid(shape: BaseSerializer[Any]) -> dict[str, Any]:
    shape.is_valid(raise_exception=True)
    return dict(shape.validated_data)


class ClusterViewSet(ClusterScoped):
    serializer_class = shapes.ClusterSerializer
    lookup_field = "name"

    def get_queryset(self) -> QuerySet[Cluster]:
        return Cluster.objects.filter(pk__in=[cluster.pk for cluster in self.clusters()]).order_by("name")

    @extend_schema(responses={(200, "text/calendar"): str})
    @action(detail=True, url_path=r"change-windows\.ics", renderer_classes=[CalendarRenderer])
    def calendar(self, request: Http, **_: Any) -> Response:
        """The change windows as a calendar (iCalendar), from a week ago for three months; needs `list` on the kind."""
        cluster = self.get_object()
        access.may(caller_of(request), cluster, "list", resource=ChangeWindow.plural).check()
        return Response(write_calendar(cluster.name, windows_of(cluster), database_now()))

    @extend_schema(request=shapes.SwitchInput, responses=shapes.PolicySerializer)
    @action(detail=True, methods=["put"], url_path=r"built-in-guards/(?P<guard>[a-z0-9-]+)", url_name="guard")
    def switch_guard(self, request: Http, guard: str, **_: Any) -> Response:
        """Switch a built-in guard on or off for the cluster; you need `approve` on all its deployments. The list of
        policies has these guards."""
        wish = valid(shapes.SwitchInput(data=request.data))
        made = services.switch_guard(
            by=caller_of(request), cluster=self.get_object(), name=guard, is_active=wish["is_active"], via=VIA
        )
        return Response(shapes.PolicySerializer(made).data)


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
        cluster = next((candidate for candidate in self.clusters() if candidate.name == wish["cluster"]), None)
        if cluster is None:
            self.check_all_answered()
            self._check_named(wish["cluster"])
            raise Http404
        made = services.create_deployment(by=caller_of(request), via=VIA, **{**wish, "cluster": cluster})
        return Response(self.get_serializer(made).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=shapes.SpecInput, responses=shapes.DeploymentSerializer)
    def update(self, request: Http, **_: Any) -> Response:
        """Replace the spec; 409 if `generation` is not the current one, 403 if you may not get the BundleDeployment."""
        wish = valid(shapes.SpecInput(data=request.data))
        found = self.get_object()
        sees = access.may(caller_of(request), found.cluster, "get", resource="bundledeployments", name=found.name)
        replace(sees, words=f"{sees.words}: the spec that you were shown would overwrite values with `hidden`").check()
        self.check_if_match(found)
        changed = services.change_deployment(by=caller_of(request), deployment=found, via=VIA, **wish)
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

    @extend_schema(request=shapes.RotateInput, responses=shapes.DeploymentSerializer)
    @action(detail=True, methods=["post"])
    def rotate(self, request: Http, **_: Any) -> Response:
        """Request new values in place of those that the chart made up: creates a request that must be approved. 422 if
        `target` names no value that is in use; the answer lists those that are."""
        wish = valid(shapes.RotateInput(data=request.data))
        changed = services.rotate_deployment(by=caller_of(request), deployment=self.get_object(), via=VIA, **wish)
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

    @extend_schema(responses=shapes.KeptValueSerializer(many=True))
    @action(detail=True, url_path="made-values")
    def kept_values(self, request: Http, **_: Any) -> Response:
        """What the chart made up and the deployment keeps: the places, never the values."""
        counting = made_values.kept_rows(self.get_object()).values()
        rows = KeptValue.objects.filter(pk__in=[row.pk for row in counting]).select_related("first_request")
        return self.paged(rows, shapes.KeptValueSerializer)

    @extend_schema(responses=shapes.DriftSerializer(many=True))
    @action(detail=True)
    def drift(self, request: Http, **_: Any) -> Response:
        """Drift now and in the last day: the field managers, the fields, and what was corrected. Drift of a Secret is
        listed only if the caller is allowed to get the Secret."""
        deployment = self.get_object()
        sight = Sight(caller_of(request), deployment.cluster, limit=MAX_ASKED)
        found = lists.drifts(deployment=deployment, now=database_now(), may_see=sight.may_see)
        rows = self.paginate_queryset(found)
        context = {"may_see": lambda row: (not row.fields and not row.server_words) or sight.may_see(lists.ref_of(row))}
        return self.get_paginated_response(shapes.DriftSerializer(rows, many=True, context=context).data)

    @extend_schema(responses=shapes.NextOpeningsSerializer)
    @action(detail=True)
    def windows(self, request: Http, **_: Any) -> Response:
        """When the deployment may be applied next, by the change windows of its cluster."""
        return Response(shapes.NextOpeningsSerializer(services.next_openings(self.get_object())).data)


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
            "evaluations_of": self._evaluations_of,
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

    def _evaluations_of(self, request: Request) -> tuple[list[PolicyEvaluation], Mapping[int, Any]]:
        """What policies said of the present round, and their terms as the caller may know them."""
        evaluations = pages.evaluations_of(request)
        report = pages.report_of(request) if evaluations else None
        sight = Sight(caller_of(self.request), request.deployment.cluster, limit=MAX_ASKED)
        return evaluations, services.explain_evaluations(evaluations, request, report, sight)

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
        shown = self._visible_report(request)
        if wish["finding"]:
            found = [finding for finding in shown["findings"] if finding["fingerprint"] == wish["finding"]]
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
        actions = self._visible_report(request)["plan"]["actions"]
        if int(position) >= len(actions):
            raise Http404
        return dict(actions[int(position)])

    def _visible_report(self, request: Http) -> dict[str, Any]:
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
        dismisses it. `BreakGlass` lets the request go in an emergency, by the verb break-glass; `Accept` or `Object` is
        the review that is owed after that.
        """
        wish = valid(shapes.ReviewInput(data=request.data))
        wish["waives"] = [services.Waiver(**waiver) for waiver in wish["waives"]]
        given = services.give_review(
            by=caller_of(request), request_id=self.get_object().pk, channel=Review.Channel.REST, **wish
        )
        return Response(shapes.ReviewSerializer(given).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=shapes.ApplyAtInput, responses=shapes.RequestDetailSerializer)
    @action(detail=True, methods=["post"], url_path="apply-at")
    def apply_at(self, request: Http, **_: Any) -> Response:
        """Choose when a request that is in review or approved is applied; needs `approve`, as a review does."""
        wish = valid(shapes.ApplyAtInput(data=request.data))
        services.set_apply_at(by=caller_of(request), request_id=self.get_object().pk, via=VIA, **wish)
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(request=None, responses=shapes.RequestDetailSerializer)
    @action(
        detail=True,
        methods=["post"],
        url_path=r"external-checks/(?P<check>[a-z0-9.-]{1,253})/run",
        url_name="run-check",
    )
    def run_check_again(self, request: Http, check: str, **_: Any) -> Response:
        """Ask an external check again that was asked in this round; needs `approve`, as a review does."""
        found = self.get_object()
        services.run_check_again(by=caller_of(request), request_id=found.pk, name=check, via=VIA)
        return Response(self.get_serializer(self.get_object()).data)

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

    @extend_schema(responses=shapes.DependenciesSerializer)
    @action(detail=True)
    def dependencies(self, request: Http, **_: Any) -> Response:
        """What the bundle needs of other packages, and the deployments that would come first, in order.

        Only of catalogs that the caller may get. Empty once the request is settled.
        """
        offer = services.find_dependencies(by=caller_of(request), request=self.get_object())
        return Response(shapes.DependenciesSerializer(shapes.dependencies_record(offer)).data)

    @extend_schema(request=shapes.DependenciesInput, responses={201: shapes.MadeDependenciesSerializer})
    @dependencies.mapping.post
    def make_dependencies(self, request: Http, **_: Any) -> Response:
        """Create all deployments of the plan, or none; 409 if it is no longer the one of `digest`."""
        wish = valid(shapes.DependenciesInput(data=request.data))
        made = services.make_dependencies(
            by=caller_of(request), request=self.get_object(), digest=wish["digest"], via=VIA
        )
        return Response(shapes.MadeDependenciesSerializer({"deployments": made}).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=shapes.WithdrawInput, responses=shapes.RequestDetailSerializer)
    @action(detail=True, methods=["post"])
    def withdraw(self, request: Http, **_: Any) -> Response:
        wish = valid(shapes.WithdrawInput(data=request.data))
        services.withdraw(by=caller_of(request), request_id=self.get_object().pk, reason=wish["reason"], via=VIA)
        return Response(self.get_serializer(self.get_object()).data)
