"""Which content a version had: it is found where the same version comes to mean something else.

It is remembered beyond an edition, so that a bundle which is taken out and put back with other content is found too,
and beyond the Catalog, which somebody may delete and create again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import NamedTuple

from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Q, QuerySet

from approvals.locks import hold
from approvals.models import Catalog, CatalogHistory, Cluster, FollowedPackage
from provisioner.catalogs.values import CatalogBundle, Package

# Of bundles that a package does not have any more; those that changed are forgotten last.
MOST_GONE = 5_000
# Of Catalogs that are gone and that no deployment follows: of so many on a cluster, for so long.
MOST_GONE_CATALOGS = 50
KEPT_GONE = timedelta(days=365)
AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class ContentChange:
    """A version of a bundle that had other content before; of several changes the last one."""

    package: str
    bundle: str
    version: str
    before: str
    after: str
    seen_at: datetime


class _KnownBundle(NamedTuple):
    """What is known of one bundle; times as ISO text, `before` and `changed_at` are "" where it never changed."""

    name: str
    version: str
    content: str
    seen_at: str
    before: str = ""
    changed_at: str = ""


def find_content_change(catalog: Catalog, package: str, bundle: str) -> ContentChange | None:
    """How the content of this bundle changed under the same version; None where it never did."""
    rows = _history_of(catalog).filter(package=package, change_count__gt=0)
    return next((change for change in _list_changes(rows) if change.bundle == bundle), None)


def list_content_changes(catalog: Catalog, package: str = "") -> list[ContentChange]:
    """Every version of a catalog, or of one package, that came to mean something else, by package and bundle."""
    rows = _history_of(catalog).filter(change_count__gt=0)
    rows = rows.filter(package=package) if package else rows
    return sorted(_list_changes(rows), key=lambda one: (one.package, one.bundle))


def package_last_seen(catalog: Catalog, package: str) -> datetime | None:
    """When an edition was read last that had a bundle of this package; None where none is known."""
    row = _history_of(catalog).filter(package=package).first()
    return (
        max((datetime.fromisoformat(bundle.seen_at) for bundle in _known_bundles(row)), default=None) if row else None
    )


def _history_of(catalog: Catalog) -> QuerySet[CatalogHistory]:
    return _history_of_name(catalog.cluster_id, catalog.name)


def _history_of_name(cluster_id: int, name: str) -> QuerySet[CatalogHistory]:
    return CatalogHistory.objects.filter(cluster=cluster_id, catalog_name=name)


def keep_history(catalog: Catalog, now: datetime) -> None:
    """A locked Catalog goes: what is known of its versions stays for the next one of its name (forget_gone)."""
    rows = _history_of(catalog)
    hold(rows)
    rows.update(gone_at=now)


def resume_history(cluster: Cluster, name: str) -> None:
    """There is a Catalog of this name, perhaps again."""
    rows = _history_of_name(cluster.pk, name).filter(gone_at__isnull=False)
    hold(rows)
    rows.update(gone_at=None)


@transaction.atomic
def forget_removed_history(now: datetime) -> int:
    """How much went: of Catalogs that no deployment follows, and that are gone for long or before many others."""
    following = FollowedPackage.objects.filter(
        deployment__cluster=OuterRef("cluster"), catalog=OuterRef("catalog_name")
    )
    rows = CatalogHistory.objects.filter(~Exists(following), gone_at__isnull=False)
    is_over = Q(gone_at__lte=now - KEPT_GONE)
    for cluster in rows.order_by("cluster").values_list("cluster", flat=True).distinct():
        by_name = rows.filter(cluster=cluster).values("catalog_name").annotate(at=Max("gone_at"))
        names = by_name.order_by("-at", "catalog_name").values_list("catalog_name", flat=True)
        is_over |= Q(cluster=cluster, catalog_name__in=list(names[MOST_GONE_CATALOGS:]))
    count, _ = CatalogHistory.objects.filter(pk__in=hold(rows.filter(is_over))).delete()
    return count


def _list_changes(rows: Iterable[CatalogHistory]) -> Iterator[ContentChange]:
    for row in rows:
        for bundle in _known_bundles(row):
            if bundle.before:
                at = datetime.fromisoformat(bundle.changed_at)
                yield ContentChange(row.package, bundle.name, bundle.version, bundle.before, bundle.content, at)


def remember_contents(catalog: Catalog, packages: Mapping[str, Package], now: datetime) -> list[ContentChange]:
    """Keep the contents of an edition; what changed against all that was seen before. In a transaction."""
    found: list[ContentChange] = []
    for names in _batches(packages):
        rows = _history_of(catalog).filter(package__in=names)
        known = {row.package: _known_bundles(row) for row in rows}
        joined = {name: _join_bundles(known.get(name, []), packages[name], now.isoformat()) for name in names}
        CatalogHistory.objects.bulk_create(
            [_history_row(catalog, name, bundles) for name, bundles in joined.items()],
            update_conflicts=True,
            unique_fields=["cluster", "catalog_name", "package"],
            update_fields=["bundles", "change_count"],
        )
        for name, bundles in joined.items():
            new = [bundle for bundle in bundles if bundle.changed_at == now.isoformat()]
            found += [
                ContentChange(name, bundle.name, bundle.version, bundle.before, bundle.content, now) for bundle in new
            ]
    return found


def _batches(names: Iterable[str]) -> Iterator[list[str]]:
    left = iter(names)
    while batch := list(islice(left, AT_ONCE)):
        yield batch


def _known_bundles(row: CatalogHistory) -> list[_KnownBundle]:
    return [_KnownBundle._make(bundle) for bundle in row.bundles]


def _history_row(catalog: Catalog, name: str, bundles: Iterable[_KnownBundle]) -> CatalogHistory:
    kept = list(bundles)
    return CatalogHistory(
        cluster_id=catalog.cluster_id,
        catalog_name=catalog.name,
        package=name,
        bundles=kept,
        change_count=sum(1 for change in kept if change.before),
    )


def _join_bundles(before: Iterable[_KnownBundle], package: Package, now: str) -> list[_KnownBundle]:
    """What is known of a package's bundles now, and of those that it had; `now` marks what changed just now."""
    by_name = {bundle.name: bundle for bundle in before}
    # A version that goes on under another name is the same version.
    gone = {bundle.version: bundle for bundle in by_name.values() if bundle.name not in package.bundles}
    kept = [
        _update_bundle(by_name.get(bundle.name) or gone.get(_version_words(bundle)), bundle, now)
        for bundle in package.bundles.values()
    ]
    rest = sorted(gone.values(), key=lambda one: (bool(one.before), one.seen_at, one.name), reverse=True)
    return [*kept, *rest[:MOST_GONE]]


def _update_bundle(known: _KnownBundle | None, bundle: CatalogBundle, now: str) -> _KnownBundle:
    new = _KnownBundle(bundle.name, _version_words(bundle), bundle.content, now)
    if known is None or not known.content:
        return new
    if not new.content or new.content == known.content:
        return new._replace(content=known.content, before=known.before, changed_at=known.changed_at)
    return new._replace(before=known.content, changed_at=now)


def _version_words(bundle: CatalogBundle) -> str:
    return f"{bundle.version} release {bundle.release}" if bundle.release else str(bundle.version)
