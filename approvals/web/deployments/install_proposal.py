"""A new deployment of a package of a catalog: the form filled in, and the account and least rights that it takes.

Whoever may not get the catalog or create a deployment is offered nothing. The rights are worked out by a worker, as
comparisons are: what would change from nothing to the bundle.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from approvals import services
from approvals.access.questions import has_namespace
from approvals.catalogs.comparisons import suggested_names
from approvals.catalogs.editions import find_catalog, find_package
from approvals.errors import CouldNotAsk, InvalidInput, NotAllowed, NotFound
from approvals.models import BundleComparison, Catalog
from approvals.services import AskedComparison, ComparisonQuestion
from approvals.web import rendering
from approvals.web.access_decorators import person, signed_in
from approvals.web.rendering import Followed, part_of
from provisioner.catalogs.values import Package

NAMED = ("cluster", "catalog", "package", "channel", "version", "name", "install_namespace", "service_account")
MAX_WORD = 500
MOST_NAME = 52
SECONDS = 2
NOT_ASKED = (
    "cluster {cluster} did not answer whether you may get catalog {catalog} and create deployments, so the format of "
    "the bundle, the account and its rights are not proposed. Fill in the form yourself, or open this page again when "
    "the cluster answers."
)


@dataclass(frozen=True, slots=True)
class InstallWish:
    """What the address of the form names; "" where it does not say."""

    cluster: str = ""
    catalog: str = ""
    package: str = ""
    channel: str = ""
    version: str = ""
    name: str = ""
    install_namespace: str = ""
    service_account: str = ""

    @classmethod
    def of(cls, query: Any) -> InstallWish:
        return cls(**{name: str(query.get(name, "")).strip()[:MAX_WORD] for name in NAMED})

    @classmethod
    def of_form(cls, posted: Any) -> InstallWish:
        """As it is typed; a name that is as the package alone suggests it was not, so that the bundle may say another.

        `use_namespace` is the bundle's, where somebody has chosen that.
        """
        wish = cls.of(posted)
        namespace, account = suggested_names(wish.package)
        typed = str(posted.get("use_namespace") or wish.install_namespace)[:MAX_WORD]
        return replace(
            wish,
            install_namespace="" if typed == namespace else typed,
            service_account="" if wish.service_account == account else wish.service_account,
        )

    @property
    def query(self) -> str:
        return urlencode({name: getattr(self, name) for name in NAMED if getattr(self, name)})

    @property
    def is_of_catalog(self) -> bool:
        return bool(self.cluster and self.catalog and self.package)


@dataclass(frozen=True, slots=True)
class _Place:
    """The package that a wish names, which the viewer may have compared."""

    catalog: Catalog
    package: Package


@dataclass(frozen=True, slots=True)
class Proposal:
    """What is proposed for a wish: `initial` is what the form is filled in with, `part` how far the rights are.

    `why_not` says why nothing is proposed.
    """

    wish: InstallWish
    initial: dict[str, Any]
    part: Followed | None = None
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a wish; `is_in_form` where the form on the same page is filled in with it."""

    row: BundleComparison | None
    result: dict[str, Any] | None
    is_in_form: bool


def proposal(http: HttpRequest) -> Proposal | None:
    """What the form of a new deployment is filled in with; None where its address names no package."""
    wish = InstallWish.of(http.GET)
    try:
        return _proposal(http, wish, is_with_form=True) if wish.is_of_catalog else None
    except CouldNotAsk:
        return _unasked(wish)


def _unasked(wish: InstallWish) -> Proposal:
    return Proposal(wish, _initial(wish, ""), why_not=NOT_ASKED.format(cluster=wish.cluster, catalog=wish.catalog))


def _proposal(http: HttpRequest, wish: InstallWish, *, is_with_form: bool) -> Proposal | None:
    """None where the viewer lacks a right, which the form names. Raises CouldNotAsk."""
    offered = ""
    try:
        place = _place(http, wish)
        offered = services.format_offered(place.catalog)
        asked = _asked(http, wish, place)
    except NotAllowed:
        return None
    except (NotFound, InvalidInput) as refusal:
        return Proposal(wish, _initial(wish, offered), why_not=str(refusal))
    row = services.find_known_comparison(asked)
    found = services.read_comparison_result(by=person(http), asked=asked, row=row) if row else None
    known = _Known(row, found, is_in_form=is_with_form)
    return Proposal(wish, _initial(wish, offered, found), _part(http, wish, asked, known))


def propose(http: HttpRequest) -> Proposal:
    """Have account and rights worked out for what is typed, where that is what was pressed; what is known of it so far.

    All that was typed stays in the form. Raises InvalidInput, NotAllowed and NotFound.
    """
    wish = InstallWish.of_form(http.POST)
    if not wish.is_of_catalog:
        raise InvalidInput("A package of a catalog is missing.", field="package")
    try:
        if http.POST.get("propose") == "start":
            services.compare_bundles(by=person(http), asked=_asked(http, wish, _place(http, wish)))
        found = _proposal(http, wish, is_with_form=True)
    except CouldNotAsk as silence:
        messages.error(http, f"Account and rights are not being worked out. {silence}.")
        found = _unasked(wish)
    found = found or Proposal(wish, {})
    rest = found.initial.get("rest") or {}
    as_offered = [f"{text}{end}" for text in ("", f"format: {rest.get('format')}") for end in ("", "\n", "\r\n")]
    typed = {
        name: value
        for name, value in http.POST.dict().items()
        if (name != "rest" or value not in as_offered) and (name != "config" or value.strip())
    }
    own: dict[str, Any] = {
        name: found.initial[name] for name in ("install_namespace", "service_account") if name in found.initial
    }
    return replace(found, initial={**found.initial, **typed, **own})


@require_safe
@signed_in
@rendering.by_itself
def again(http: HttpRequest) -> HttpResponse:
    """How far it is, alone."""
    wish = InstallWish.of(http.GET)
    found = _proposal(http, wish, is_with_form=False) if wish.is_of_catalog else None
    if found is None or found.part is None:
        raise Http404
    return rendering.again(http, found.part)


def _place(http: HttpRequest, wish: InstallWish) -> _Place:
    """Raises NotFound, and as `check_may_compare`."""
    cluster = services.cluster_to_compare_on(by=person(http), name=wish.cluster, catalog=wish.catalog)
    services.check_may_compare(by=person(http), cluster=cluster, catalog=wish.catalog)
    row = find_catalog(cluster, wish.catalog)
    package = find_package(row, wish.package) if row else None
    if row is None or package is None:
        raise NotFound(f"catalog {wish.catalog} has no package {wish.package}")
    return _Place(row, package)


def _asked(http: HttpRequest, wish: InstallWish, place: _Place) -> AskedComparison:
    """Raises as `comparison_asked`."""
    bundle = services.bundle_to_install(place.package, wish.channel, wish.version)
    question = ComparisonQuestion(
        place.package.name, bundle.name, namespace=wish.install_namespace, account=wish.service_account
    )
    cluster, catalog = place.catalog.cluster, place.catalog.name
    return services.resolve_comparison(by=person(http), cluster=cluster, catalog=catalog, question=question)


def _initial(wish: InstallWish, offered: str, found: dict[str, Any] | None = None) -> dict[str, Any]:
    """What is known of the bundle counts before what only its name says; `offered` is the format of the catalog."""
    namespace, account = suggested_names(wish.package)
    known = found or {}
    config = known.get("config") or {}
    return {
        "cluster": wish.cluster,
        "name": wish.name or namespace[:MOST_NAME],
        "install_namespace": wish.install_namespace or known.get("install_namespace") or namespace,
        "service_account": wish.service_account or known.get("service_account") or account,
        "kind": "catalog",
        **{name: getattr(wish, name) for name in ("catalog", "package", "channel", "version")},
        **({"rest": {"format": offered}, "config": config} if offered else {}),
    }


def _part(http: HttpRequest, wish: InstallWish, asked: AskedComparison, known: _Known) -> Followed:
    row, found = known.row, known.result
    is_waiting = row is not None and row.state == BundleComparison.State.WAITING
    suggested = str(found["suggested_namespace"]) if found else ""
    is_elsewhere = found is not None and suggested not in ("", found["install_namespace"])
    facts = {
        "asked": asked,
        "row": row,
        "result": found,
        "has_namespace": has_namespace(person(http), asked.catalog.cluster, str(found["install_namespace"]))
        if found
        else None,
        "is_in_form": known.is_in_form,
        "suggested": suggested if is_elsewhere else "",
    }
    return Followed(
        name="proposal",
        address=f"{reverse('deployment-proposal-again')}?{wish.query}",
        seconds=SECONDS if is_waiting else 0,
        body=part_of(http, "deployments/_proposal.html", facts),
    )
