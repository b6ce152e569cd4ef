"""Packages by their words, in one catalog or in all that somebody may read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from django.db.models import Case, Q, QuerySet, Value, When
from django.db.models.functions import Coalesce, Lower, Substr

from approvals.models import Catalog, CatalogPackage

MAX_SEARCH = 200
MOST_WORDS = 8
# Of a description, which has up to 64 Ki characters, a search looks in so many.
SEARCHED_DESCRIPTION = 16 * 1024
MOST_NAMED = 20
_EXCERPT = 160
# Of Markdown, which an excerpt of it is no longer.
_MARKS = re.compile(r"[*#`]+")
_BEFORE = 40


def words_of(search: str) -> list[str]:
    """What is looked for, in small letters; what is beyond MOST_WORDS is left out."""
    return search[:MAX_SEARCH].replace("\0", " ").lower().split()[:MOST_WORDS]


def with_words(rows: QuerySet[CatalogPackage], search: str) -> QuerySet[CatalogPackage]:
    """Those in whose name, display name, summary, provider or description each word stands."""
    words = words_of(search)
    if not words:
        return rows
    said = Lower(Coalesce(Substr("presentation__description", 1, SEARCHED_DESCRIPTION), Value("")))
    rows = rows.alias(said=said)
    for word in words:
        rows = rows.filter(Q(searched_text__contains=word) | Q(said__contains=word))
    return rows


def packages_found(keys: Iterable[int], search: str, *, cluster: str = "") -> QuerySet[CatalogPackage]:
    """The packages of the editions that are shown of the catalogs with these keys, by name; of one cluster where that
    is named. Each has its catalog, and its icon's type without the icon."""
    catalogs = Catalog.objects.filter(pk__in=list(keys), edition__isnull=False)
    catalogs = catalogs.filter(cluster__name=cluster) if cluster else catalogs
    rows = CatalogPackage.objects.filter(edition__in=catalogs.values("edition"))
    rows = rows.select_related("edition__catalog__cluster", "presentation").defer(
        "document",
        "edition__problems",
        "edition__catalog__spec",
        "edition__catalog__authors",
        "edition__catalog__status",
        "edition__catalog__cluster__kubeconfig",
        "presentation__description",
        "presentation__facts",
        "presentation__icon",
    )
    return with_words(rows, search).order_by("name", "pk")


def named_so(rows: QuerySet[CatalogPackage], search: str) -> list[int]:
    """Of what was found, the keys of the first in whose name or display name each word stands: what is meant, mostly.

    One of exactly this name comes first, then those whose name begins so.
    """
    words = words_of(search)
    for word in words:
        rows = rows.filter(Q(name__icontains=word) | Q(display_name__icontains=word))
    whole = " ".join(words)
    nearness = Case(When(name__iexact=whole, then=0), When(name__istartswith=whole, then=1), default=2)
    near = rows.annotate(nearness=nearness).order_by("nearness", "name", "pk")
    return list(near.values_list("pk", flat=True)[:MOST_NAMED])


def excerpts(packages: Sequence[CatalogPackage], search: str) -> dict[int, str]:
    """Of each package the words of its description around what was looked for, where only that has it, by key."""
    words = words_of(search)
    lacking = {one.pk: [word for word in words if word not in one.searched_text] for one in packages}
    keys = [key for key, missing in lacking.items() if missing]
    said = CatalogPackage.objects.filter(pk__in=keys).values_list(
        "pk", Substr("presentation__description", 1, SEARCHED_DESCRIPTION)
    )
    return {key: _excerpt(text or "", lacking[key][0]) for key, text in said} if keys else {}


def same_name(catalog: Catalog, package: str, *, limit: int) -> list[Catalog]:
    """Other catalogs of its cluster that have a package of this name, by name."""
    rows = Catalog.objects.filter(cluster=catalog.cluster_id, edition__packages__name=package).exclude(pk=catalog.pk)
    return list(rows.only("name", "cluster").order_by("name")[:limit])


def _excerpt(text: str, word: str) -> str:
    at = max(0, text.lower().find(word))
    start = max(0, at - _BEFORE)
    cut = " ".join(_MARKS.sub("", text[start : start + _EXCERPT]).split())
    return f"{'…' if start else ''}{cut}{'…' if start + _EXCERPT < len(text) else ''}"
