"""What would change from one bundle of a package to another: asked for here, and followed until it is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from approvals import access, services
from approvals.access.questions import has_namespace
from approvals.catalogs import bundle_choice
from approvals.catalogs.comparisons import object_key
from approvals.catalogs.editions import find_catalog, find_package
from approvals.errors import InvalidInput, NotFound
from approvals.models import BundleComparison, Catalog
from approvals.services import AskedComparison, ComparisonQuestion
from approvals.web import rendering
from approvals.web.access_decorators import no_catalog, person, signed_in
from approvals.web.catalogs.catalogs import show_missing_package
from approvals.web.rendering import Followed, note_cluster, page, part_of
from provisioner.catalogs.choice import Installed, list_deprecations, upgrade_step
from provisioner.catalogs.values import CatalogBundle, Package
from provisioner.review.rules import rule_text
from provisioner.review.rules.explanations import in_one_paragraph
from provisioner.values import Section, Severity, UpgradeStep

MOST_FINDINGS = 100
MOST_OBJECTS = 300
MOST_IMAGES = 200
# Of findings, in any number (S24).
NEVER_LEFT_OUT = frozenset({Severity.CRITICAL, Severity.UNKNOWN})
WORDS = {Section.CRDS: "CRDs", Section.PREFLIGHT: "Rights of the installer"}
ACTIONS = (
    ("create", "Added"),
    ("update", "Changed"),
    ("replace", "Replaced"),
    ("rerun", "Hooks that run again"),
    ("delete", "Removed"),
    ("orphan", "Removed from the bundle, and kept"),
    ("hidden", "Changed or not: you may not get these"),
)
# What the rules that say something against a bundle find in a request.
AGAINST = {"SRC-03": Severity.DANGEROUS, "CAT-01": Severity.DANGEROUS, "CAT-02": Severity.NOTABLE}
Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SaidAgainst:
    """One thing that a catalog says against going to a bundle; `means` explains its rule."""

    rule: str
    severity: Severity
    words: str
    means: str


@dataclass(frozen=True, slots=True)
class ShownObject:
    """An object, and the severity of the worst finding about it; "" where none is worse than safe.

    `position` is its place in the plan. `added` and `removed` count the lines that differ.
    """

    ref: Record
    severity: str
    position: int
    added: int = 0
    removed: int = 0


@dataclass(frozen=True, slots=True)
class ShownObjects:
    """The objects with which the same happens, those with the worst findings first; `left` more are not listed."""

    words: str
    count: int
    objects: list[ShownObject]
    left: int


@dataclass(frozen=True, slots=True)
class ShownFindings:
    """Findings of one section, the worst first and of equals the new ones; what is safe is counted."""

    name: str
    words: str
    findings: list[Record]
    left: int
    safe: int


@dataclass(frozen=True, slots=True)
class ShownComparison:
    """A result in the order of the page."""

    result: Record
    objects: list[ShownObjects]
    unchanged: int
    sections: list[ShownFindings]
    images: list[Record]
    images_left: int


def arrange_result(result: Record) -> ShownComparison:
    """The parts of a result that a page shows, each bounded."""
    actions, findings = result["report"]["plan"]["actions"], result["report"]["findings"]
    worst = dict[str, Severity]()
    for finding in findings:
        if ref := finding.get("ref"):
            key, severity = object_key(ref), Severity(finding["severity"])
            worst[key] = min(worst.get(key, severity), severity, key=lambda it: it.rank)
    return ShownComparison(
        result,
        [group for name, words in ACTIONS if (group := _group_objects(result, worst, name, words)).count],
        sum(1 for action in actions if action["action"] == "none"),
        [one for section in Section if (one := _group_findings(findings, section)) is not None],
        result["images"][:MOST_IMAGES],
        max(0, len(result["images"]) - MOST_IMAGES),
    )


def list_objections(package: Package, before: CatalogBundle | None, after: CatalogBundle) -> list[SaidAgainst]:
    """What the catalog says against going to a bundle, as findings of a request would; `before` is None where nothing
    runs, or nobody knows which bundle does."""
    said = []
    if before is not None and before.rank > after.rank:
        said.append(_objection("SRC-03", f"A downgrade: {_bundle_words(after)} is lower than {_bundle_words(before)}."))
    if before is not None and _leaves_edges(package, before, after):
        words = (
            f"{_bundle_words(after)} is not higher than {_bundle_words(before)}"
            if after.is_chart
            else f"No edge of the catalog leads from {_bundle_words(before)} to {_bundle_words(after)}"
        )
        how = "a deployment takes it only with upgradeConstraintPolicy SelfCertified"
        said.append(_objection("CAT-01", f"{words}: {how}."))
    found = list_deprecations(package, "", after.name)
    return said + [_objection("CAT-02", f"Its publisher deprecates {words}.") for words in found]


def _objection(rule: str, words: str) -> SaidAgainst:
    means = rule_text(rule)
    return SaidAgainst(rule, AGAINST[rule], words, in_one_paragraph(means) if means else "")


def _leaves_edges(package: Package, before: CatalogBundle, after: CatalogBundle) -> bool:
    runs = Installed(before.name, before.version, before.release)
    return upgrade_step(package, package.channels, after, runs) is UpgradeStep.LEAVES


def _bundle_words(bundle: CatalogBundle) -> str:
    return f"`{bundle.name}` ({bundle.version})"


def _group_objects(result: Record, worst: Mapping[str, Severity], name: str, words: str) -> ShownObjects:
    placed = enumerate(result["report"]["plan"]["actions"])
    judged = [
        (at, action["ref"], worst.get(object_key(action["ref"]), Severity.SAFE))
        for at, action in placed
        if action["action"] == name
    ]
    judged.sort(key=lambda it: it[2].rank)
    shown = [
        ShownObject(ref, "" if severity is Severity.SAFE else severity, at, *result["changed"].get(str(at), ()))
        for at, ref, severity in judged[:MOST_OBJECTS]
    ]
    return ShownObjects(words, len(judged), shown, max(0, len(judged) - MOST_OBJECTS))


def _finding_order(finding: Record) -> tuple[int, bool]:
    return Severity(finding["severity"]).rank, not finding["isNew"]


def _group_findings(findings: list[Record], section: Section) -> ShownFindings | None:
    here = sorted((finding for finding in findings if finding["section"] == section), key=_finding_order)
    if not here:
        return None
    grave, others, safe = list[Record](), list[Record](), 0
    for one in here:
        if one["severity"] in NEVER_LEFT_OUT:
            grave.append(one)
        elif one["severity"] != Severity.SAFE:
            others.append(one)
        else:
            safe += 1
    kept = others[: max(0, MOST_FINDINGS - len(grave))]
    words = WORDS.get(section, str(section).capitalize())
    return ShownFindings(str(section), words, [*grave, *kept], len(others) - len(kept), safe)


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
def show_changes(http: HttpRequest, *, cluster: str, name: str, package: str) -> HttpResponse:
    """The form, and below it what is known; POST has it worked out."""
    try:
        place = _find_place(http, cluster, name, package)
    except _NoPackage as lack:
        return show_missing_package(http, lack.catalog, package)
    given = _read_query(http.POST if http.method == "POST" else http.GET)
    asked, wrong = _resolve_question(http, place, given)
    if http.method == "POST" and asked is not None:
        services.compare_bundles(by=person(http), asked=asked)
        return redirect(place.address("catalog-changes", _write_query(given)))
    bundles = sorted(place.package.bundles.values(), key=lambda one: one.rank, reverse=True)
    facts = {
        "catalog": place.catalog,
        "package": place.package,
        "given": given,
        "wrong": wrong,
        "bundles": bundles[:MOST_VERSIONS],
        "asked": asked,
        "part": _comparison_part(http, place, given, asked) if asked else None,
    }
    return page(http, "catalogs/changes/changes.html", facts, status=422 if wrong and http.method == "POST" else 200)


@require_safe
@signed_in
@rendering.by_itself
def refresh_changes(http: HttpRequest, *, cluster: str, name: str, package: str) -> HttpResponse:
    """What is known now, alone."""
    place = _find_place(http, cluster, name, package)
    given = _read_query(http.GET)
    asked, _ = _resolve_question(http, place, given)
    if asked is None:
        raise Http404
    return rendering.again(http, _comparison_part(http, place, given, asked))


@require_safe
@signed_in
def show_lines(http: HttpRequest, *, cluster: str, name: str, package: str, position: int) -> HttpResponse:
    """What differs in one object: within the page where a script asks for it, else a page of its own."""
    place = _find_place(http, cluster, name, package)
    given = _read_query(http.GET)
    asked, _ = _resolve_question(http, place, given)
    row = services.find_known_comparison(asked) if asked else None
    if asked is None or row is None:
        target = place.address("catalog-changes", _write_query(given))
        if http.headers.get("HX-Request"):
            return HttpResponse(status=204, headers={"HX-Redirect": target})
        return redirect(target)
    found = services.read_comparison_lines(by=person(http), asked=asked, row=row, position=position)
    facts = {
        "catalog": place.catalog,
        "package": place.package,
        "asked": asked,
        "found": found,
        "address": place.address("catalog-changes", _write_query(given)),
    }
    is_part = bool(http.headers.get("HX-Request"))
    return page(http, "catalogs/changes/_lines.html" if is_part else "catalogs/changes/lines.html", facts)


def _find_place(http: HttpRequest, cluster: str, name: str, package: str) -> _Place:
    """Raises as `cluster_to_compare_on` and `check_may_compare`, NotFound, and _NoPackage."""
    where = services.cluster_to_compare_on(by=person(http), name=cluster, catalog=name)
    note_cluster(http, where)
    access.may_read_catalog(person(http), where, name).check()
    row = find_catalog(where, name)
    if row is None:
        raise NotFound(no_catalog(where, name))
    found = find_package(row, package)
    if found is None:
        raise _NoPackage(row)
    services.check_may_compare(by=person(http), cluster=where, catalog=name)
    return _Place(row, found)


def _read_query(query: Any) -> dict[str, str]:
    return {name: str(query.get(word, "")).strip()[:MAX_WORD] for name, word in ASKED.items()}


def _write_query(given: dict[str, str]) -> str:
    return urlencode({ASKED[name]: text for name, text in given.items() if text})


def _resolve_question(http: HttpRequest, place: _Place, given: dict[str, str]) -> tuple[AskedComparison | None, str]:
    """What is asked, else why it cannot be; neither where nothing was asked yet."""
    if not given["after"]:
        return None, "Choose the version that would run." if http.method == "POST" else ""
    try:
        question = ComparisonQuestion(place.package.name, **given)
        return services.resolve_comparison(
            by=person(http), cluster=place.catalog.cluster, catalog=place.catalog.name, question=question
        ), ""
    except (InvalidInput, NotFound) as refusal:
        return None, str(refusal)


def _running_bundle(asked: AskedComparison) -> CatalogBundle | None:
    """The bundle that runs, as the catalog has it; None where nothing runs, or the catalog has none of its name."""
    if asked.deployment is None:
        return asked.before
    (source,) = asked.deployment.bundle_spec.sources
    runs = bundle_choice.running_bundle(asked.deployment, source.destination)
    is_of_it = runs is not None and (runs.catalog, runs.package) == (asked.catalog.name, asked.package.name)
    return asked.package.bundles.get(runs.bundle) if runs and is_of_it else None


def _comparison_part(http: HttpRequest, place: _Place, given: dict[str, str], asked: AskedComparison) -> Followed:
    row = services.find_known_comparison(asked)
    result = services.read_comparison_result(by=person(http), asked=asked, row=row) if row else None
    namespace = str(result["install_namespace"]) if result and result.get("installer") else ""
    facts = {
        "asked": asked,
        "row": row,
        "has_namespace": has_namespace(person(http), place.catalog.cluster, namespace) if namespace else None,
        "shown": arrange_result(result) if result else None,
        "against": list_objections(asked.package, _running_bundle(asked), asked.after),
        "address": place.address("catalog-changes", _write_query(given)),
        "place": place,
        "query": _write_query(given),
    }
    return Followed(
        name="comparison",
        address=place.address("catalog-changes-again", _write_query(given)),
        seconds=SECONDS if row is not None and row.state == BundleComparison.State.WAITING else 0,
        body=part_of(http, "catalogs/changes/_comparison.html", facts),
    )
