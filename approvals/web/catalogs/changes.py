"""What would change from one bundle of a package to another: asked for here, and followed until it is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from approvals import access, catalogs, services
from approvals.access.questions import has_namespace
from approvals.errors import InvalidInput, NotFound
from approvals.ledger.packages import choosing
from approvals.models import BundleComparison, Catalog
from approvals.services import AskedComparison, ComparisonQuestion
from approvals.source_refs import listed_sources
from approvals.web import rendering
from approvals.web.access_decorators import no_catalog, person, signed_in
from approvals.web.catalogs.compared import shown_result, words_against
from approvals.web.catalogs.lacking import lacking
from approvals.web.rendering import Followed, note_cluster, page, part_of
from provisioner.catalogs import CatalogBundle, Package

# What the address says, by what it means.
ASKED = {
    "before": "from",
    "after": "to",
    "deployment": "deployment",
    "namespace": "install_namespace",
    "account": "service_account",
}
MAX_WORD = 500
MOST_VERSIONS = 500
SECONDS = 2


class _NoPackage(Http404):
    """The catalog, which the viewer may get, has no such package."""

    def __init__(self, catalog: Catalog) -> None:
        super().__init__()
        self.catalog = catalog


@dataclass(frozen=True, slots=True)
class _Place:
    """The package that the page is about."""

    catalog: Catalog
    package: Package

    def address(self, name: str, query: str) -> str:
        at = reverse(name, args=(self.catalog.cluster.name, self.catalog.name, self.package.name))
        return f"{at}?{query}" if query else at


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def index(http: HttpRequest, *, cluster: str, name: str, package: str) -> HttpResponse:
    """The form, and below it what is known; POST has it worked out."""
    try:
        place = _place(http, cluster, name, package)
    except _NoPackage as lack:
        return lacking(http, lack.catalog, package)
    given = _given(http.POST if http.method == "POST" else http.GET)
    asked, wrong = _asked(http, place, given)
    if http.method == "POST" and asked is not None:
        services.compare_bundles(by=person(http), asked=asked)
        return redirect(place.address("catalog-changes", _query(given)))
    bundles = sorted(place.package.bundles.values(), key=lambda one: one.rank, reverse=True)
    facts = {
        "catalog": place.catalog,
        "package": place.package,
        "given": given,
        "wrong": wrong,
        "bundles": bundles[:MOST_VERSIONS],
        "asked": asked,
        "part": _part(http, place, given, asked) if asked else None,
    }
    return page(http, "catalogs/changes/changes.html", facts, status=422 if wrong and http.method == "POST" else 200)


@require_safe
@signed_in
@rendering.by_itself
def again(http: HttpRequest, *, cluster: str, name: str, package: str) -> HttpResponse:
    """What is known now, alone."""
    place = _place(http, cluster, name, package)
    given = _given(http.GET)
    asked, _ = _asked(http, place, given)
    if asked is None:
        raise Http404
    return rendering.again(http, _part(http, place, given, asked))


@require_safe
@signed_in
def lines(http: HttpRequest, *, cluster: str, name: str, package: str, position: int) -> HttpResponse:
    """What differs in one object: within the page where a script asks for it, else a page of its own."""
    place = _place(http, cluster, name, package)
    given = _given(http.GET)
    asked, _ = _asked(http, place, given)
    row = services.known_comparison(asked) if asked else None
    if asked is None or row is None:
        target = place.address("catalog-changes", _query(given))
        if http.headers.get("HX-Request"):
            return HttpResponse(status=204, headers={"HX-Redirect": target})
        return redirect(target)
    found = services.comparison_lines(by=person(http), asked=asked, row=row, position=position)
    facts = {
        "catalog": place.catalog,
        "package": place.package,
        "asked": asked,
        "found": found,
        "address": place.address("catalog-changes", _query(given)),
    }
    is_part = bool(http.headers.get("HX-Request"))
    return page(http, "catalogs/changes/_lines.html" if is_part else "catalogs/changes/lines.html", facts)


def _place(http: HttpRequest, cluster: str, name: str, package: str) -> _Place:
    """Raises as `cluster_to_compare_on` and `check_may_compare`, NotFound, and _NoPackage."""
    where = services.cluster_to_compare_on(by=person(http), name=cluster, catalog=name)
    note_cluster(http, where)
    access.may_read_catalog(person(http), where, name).check()
    row = catalogs.catalog(where, name)
    if row is None:
        raise NotFound(no_catalog(where, name))
    found = catalogs.package(row, package)
    if found is None:
        raise _NoPackage(row)
    services.check_may_compare(by=person(http), cluster=where, catalog=name)
    return _Place(row, found)


def _given(query: Any) -> dict[str, str]:
    return {name: str(query.get(word, "")).strip()[:MAX_WORD] for name, word in ASKED.items()}


def _query(given: dict[str, str]) -> str:
    return urlencode({ASKED[name]: text for name, text in given.items() if text})


def _asked(http: HttpRequest, place: _Place, given: dict[str, str]) -> tuple[AskedComparison | None, str]:
    """What is asked, else why it cannot be; neither where nothing was asked yet."""
    if not given["after"]:
        return None, "Choose the version that would run." if http.method == "POST" else ""
    try:
        question = ComparisonQuestion(place.package.name, **given)
        return services.comparison_asked(
            by=person(http), cluster=place.catalog.cluster, catalog=place.catalog.name, question=question
        ), ""
    except (InvalidInput, NotFound) as refusal:
        return None, str(refusal)


def _before(asked: AskedComparison) -> CatalogBundle | None:
    """The bundle that runs, as the catalog has it; None where nothing runs, or the catalog has none of its name."""
    if asked.deployment is None:
        return asked.before
    (source,) = listed_sources(asked.deployment.spec)
    runs = choosing.running_bundle(asked.deployment, str(source.get("destination") or ""))
    is_of_it = runs is not None and (runs.catalog, runs.package) == (asked.catalog.name, asked.package.name)
    return asked.package.bundles.get(runs.bundle) if runs and is_of_it else None


def _part(http: HttpRequest, place: _Place, given: dict[str, str], asked: AskedComparison) -> Followed:
    row = services.known_comparison(asked)
    result = services.comparison_result(by=person(http), asked=asked, row=row) if row else None
    namespace = str(result["install_namespace"]) if result and result.get("installer") else ""
    facts = {
        "asked": asked,
        "row": row,
        "has_namespace": has_namespace(person(http), place.catalog.cluster, namespace) if namespace else None,
        "shown": shown_result(result) if result else None,
        "against": words_against(asked.package, _before(asked), asked.after),
        "address": place.address("catalog-changes", _query(given)),
        "place": place,
        "query": _query(given),
    }
    return Followed(
        name="comparison",
        address=place.address("catalog-changes-again", _query(given)),
        seconds=SECONDS if row is not None and row.state == BundleComparison.State.WAITING else 0,
        body=part_of(http, "catalogs/changes/_comparison.html", facts),
    )
