"""A package that a catalog does not have, now or no longer: what was looked for, and what to do."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from approvals import access, catalogs
from approvals.models import Catalog
from approvals.selectors import followed_sources
from approvals.web.access_decorators import person
from approvals.web.catalogs.condition import condition_of
from approvals.web.rendering import page

FOLLOWERS = 20


def lacking(http: HttpRequest, catalog: Catalog, package: str) -> HttpResponse:
    """The page with the status 404, for who may get the catalog."""
    reading = access.may_read(person(http), catalog.cluster)
    rows = (
        followed_sources.package_followers(catalog=catalog, package=package, limit=FOLLOWERS + 1)
        if reading.allowed
        else []
    )
    facts = {
        "catalog": catalog,
        "condition": condition_of(catalog),
        "name": package,
        "last_seen": catalogs.last_seen(catalog, package),
        "reading": reading,
        "followers": rows[:FOLLOWERS],
        "has_more_followers": len(rows) > FOLLOWERS,
    }
    return page(http, "catalogs/no_package.html", facts, status=404)
