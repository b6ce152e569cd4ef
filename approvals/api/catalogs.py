"""Catalogs over REST: read by whoever may `get` them in their cluster, and written there."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.utils.functional import cached_property
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request as Http
from rest_framework.response import Response

from approvals import access, services
from approvals.access import Permission
from approvals.api import filters
from approvals.api import serializers as shapes
from approvals.api.authentication import caller_of
from approvals.api.report_parts import hunks_of, part_of
from approvals.api.resources import ClusterScoped
from approvals.catalogs.editions import find_catalog, find_package, find_presentation, package_rows
from approvals.errors import NotFound
from approvals.models import BundleComparison, Catalog, CatalogPackage, Cluster
from approvals.services import AskedComparison
from provisioner.review.base.record import finding_from
from provisioner.review.output.entries import entries_record

PACKAGE = OpenApiParameter(
    "package",
    str,
    OpenApiParameter.PATH,
    description="its name, in which ~1 stands for a slash, ~0 for a tilde, and ~2 for a dot where the name is . or ..",
)
SEARCH = OpenApiParameter(
    "search",
    str,
    description="only packages in whose names, words, description or keywords each of its words stands, at most 8",
)


class CatalogViewSet(ClusterScoped):
    serializer_class = shapes.CatalogSerializer
    filterset_class = filters.CatalogFilter
    paged_actions = ("list", "packages")
    known_parameters = {
        "packages": ("search",),
        "comparison": (*shapes.ComparisonQuestionSerializer().fields, *shapes.ComparisonPart().fields),
        "compared_lines": (*shapes.ComparisonQuestionSerializer().fields, *shapes.ChangesPart().fields),
    }

    @cached_property
    def readable(self) -> access.ReadableCatalogs:
        if getattr(self, "swagger_fake_view", False):
            return access.ReadableCatalogs(frozenset(), ())
        return access.readable_catalogs(caller_of(self.request))

    @cached_property
    def answers(self) -> list[tuple[Cluster, Permission]]:
        return list(self.readable.answers)

    def get_queryset(self) -> QuerySet[Catalog]:
        rows = Catalog.objects.filter(pk__in=self.readable.keys)
        rows = rows.select_related("cluster", "edition").order_by("cluster__name", "name")
        return rows.defer("cluster__kubeconfig", "edition__problems")

    def get_object(self) -> Catalog:
        """As for other rows: 404 where there is none or the caller may not read it, which looks the same.

        One question is asked, about the catalog of this name.
        """
        self._check_named(self.kwargs["cluster"])
        if "\0" in self.kwargs["cluster"] + self.kwargs["name"]:  # which PostgreSQL does not store
            raise Http404
        cluster = Cluster.objects.filter(name=self.kwargs["cluster"]).first()
        if cluster is None:
            raise Http404
        answer = access.may_read_catalog(caller_of(self.request), cluster, self.kwargs["name"])
        self.answers = [(cluster, answer)]
        self.check_all_answered()
        found = find_catalog(cluster, self.kwargs["name"])
        if found is None or not answer.allowed:
            raise Http404
        return found

    @extend_schema(responses=shapes.CatalogDetailSerializer)
    def retrieve(self, request: Http, *args: Any, **kwargs: Any) -> Response:
        """One catalog, with what is wrong in it."""
        return Response(shapes.CatalogDetailSerializer(self.get_object()).data)

    @extend_schema(parameters=[SEARCH], responses=shapes.PackageSummarySerializer(many=True), filters=False)
    def packages(self, request: Http, **_: Any) -> Response:
        """The packages of a catalog, by name."""
        rows: QuerySet[CatalogPackage] = package_rows(self.get_object(), request.query_params.get("search", ""))
        return self.paged(rows.order_by("name"), shapes.PackageSummarySerializer)

    @extend_schema(parameters=[PACKAGE], responses=shapes.PackageSerializer)
    def package(self, request: Http, **_: Any) -> Response:
        """One package, with its channels, versions, and which may follow which."""
        catalog, name = self.get_object(), self.kwargs["package"]
        found, words = find_package(catalog, name), find_presentation(catalog, name)
        if found is None or words is None:
            raise Http404
        return Response(shapes.PackageSerializer(shapes.package_record(catalog, found, words)).data)

    @extend_schema(
        parameters=[PACKAGE, shapes.ComparisonQuestionSerializer, shapes.ComparisonPart],
        responses=shapes.ComparisonSerializer,
        filters=False,
    )
    def comparison(self, request: Http, **_: Any) -> Response:
        """What would change from one bundle to another, without the live objects of the cluster.

        For who may get the catalog, create a BundleDeployment and, if `deployment` names one, get that. 404 where
        nobody has asked for it lately: then POST the same question, and GET this until `state` is no longer `waiting`.
        The result of a comparison is kept for a while, for everybody who may know it. A large report comes in parts,
        like that of a request.
        """
        asked = self._asked(request.query_params)
        part = shapes.ComparisonPart(data=request.query_params)
        part.is_valid(raise_exception=True)
        return Response(self._comparison_answer(asked, self._known(asked), part.validated_data))

    @extend_schema(
        parameters=[PACKAGE, shapes.ComparisonQuestionSerializer, shapes.ChangesPart],
        responses=shapes.ComparedLinesSerializer,
        filters=False,
    )
    def compared_lines(self, request: Http, *, position: int, **_: Any) -> Response:
        """The lines that differ in one object of a comparison, by its position in the plan of the result.

        They come in hunks with three lines around each change. Long changes come in parts: `parts` says where the next
        one starts. Secrets are masked.
        """
        asked = self._asked(request.query_params)
        wish = filters.query_of(shapes.ChangesPart(data=request.query_params))
        found = services.read_comparison_lines(
            by=caller_of(request), asked=asked, row=self._known(asked), position=position
        )
        told = hunks_of(found.lines, lines_from=wish["lines_from"])
        return Response({"ref": found.ref, "is_hidden": found.is_hidden, **told, "left_out": found.left})

    @extend_schema(
        parameters=[PACKAGE],
        request=shapes.ComparisonQuestionSerializer,
        responses={200: shapes.ComparisonSerializer, 202: shapes.ComparisonSerializer},
    )
    def compare(self, request: Http, **_: Any) -> Response:
        """Have it worked out what would change from one bundle to another, or what installing one takes.

        It is queued (202), unless it is known already (200). It is no request, writes nothing to the cluster, and
        approves nothing, so that the scope `read` is enough. Each person may have PRATIQUE_COMPARISONS under way, and
        ask for PRATIQUE_COMPARISONS_PER_HOUR.
        """
        asked = self._asked(request.data)
        row = services.compare_bundles(by=caller_of(request), asked=asked)
        is_under_way = row.state == BundleComparison.State.WAITING
        code = status.HTTP_202_ACCEPTED if is_under_way else status.HTTP_200_OK
        return Response(self._comparison_answer(asked, row, {}), status=code)

    def _asked(self, given: Any) -> AskedComparison:
        """Who may not get the catalog is not told what is wrong with the question."""
        row = self.get_object()
        form = shapes.ComparisonQuestionSerializer(data=given)
        form.is_valid(raise_exception=True)
        question = shapes.question_of(self.kwargs["package"], form.validated_data)
        return services.resolve_comparison(
            by=caller_of(self.request), cluster=row.cluster, catalog=row.name, question=question
        )

    def _known(self, asked: AskedComparison) -> BundleComparison:
        row = services.find_known_comparison(asked)
        if row is None:
            raise NotFound("nobody has asked for this comparison lately: POST the same question to this address")
        return row

    def _comparison_answer(self, asked: AskedComparison, row: BundleComparison, part: Any) -> dict[str, Any]:
        result = services.read_comparison_result(by=caller_of(self.request), asked=asked, row=row)
        if result is not None:
            report = result["report"]
            told = entries_record(map(finding_from, report["findings"]))
            result["report"] = part_of({**report, "entries": told, "workloads": [], "containers": []}, **part)
        return shapes.ComparisonSerializer(shapes.comparison_record(asked, row, result)).data
