"""Packages by their words, in one catalog or in all that somebody may read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import and_

from django.db.models import Case, IntegerField, Q, QuerySet, Value, When
from django.db.models.functions import Coalesce, Lower, Substr

from approvals.models import Catalog, CatalogPackage

MAX_SEARCH = 200
MOST_WORDS = 8
# Of a description, which has up to 64 Ki characters, a search looks in so many.
SEARCHED_DESCRIPTION = 16 * 1024
MOST_NAMED = 20
MOST_KEYWORDS_SHOWN = 5
_EXCERPT = 160
# Of Markdown, which an excerpt of it is no longer.
_MARKS = re.compile(r"[*#`]+")
_BEFORE = 40


def search_words(search: str) -> list[str]:
    """What is looked for, in small letters; what is beyond MOST_WORDS is left out."""
    return search[:MAX_SEARCH].replace("\0", " ").lower().split()[:MOST_WORDS]


def with_search_words(rows: QuerySet[CatalogPackage], search: str) -> QuerySet[CatalogPackage]:
    """Those in whose name, display name, summary, provider, description or keywords each word stands."""
    words = search_words(search)
    if not words:
        return rows
    said = Lower(Coalesce(Substr("presentation__description", 1, SEARCHED_DESCRIPTION), Value("")))
    rows = rows.alias(said=said)
    for word in words:
        rows = rows.filter(_says_word(word) | Q(searched_keywords__contains=word))
    return rows


def search_packages(keys: Iterable[int], search: str, *, cluster: str = "") -> QuerySet[CatalogPackage]:
    """The packages of the editions that are shown of the catalogs with these keys, by name; of one cluster where that
    is named. Those that only keywords lead to come last, with `is_by_keyword` 1. Each has its catalog, and its icon's
    type without the icon."""
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
    words = search_words(search)
    if not words:
        return rows.order_by("name", "pk")
    # A publisher writes more keywords than anybody reads, so that they count less than what is shown.
    says_all = reduce(and_, map(_says_word, words))
    by_keyword = Case(When(says_all, then=Value(0)), default=Value(1), output_field=IntegerField())
    return with_search_words(rows, search).annotate(is_by_keyword=by_keyword).order_by("is_by_keyword", "name", "pk")


def best_matches(rows: QuerySet[CatalogPackage], search: str) -> list[int]:
    """Of what was found, the keys of the first in whose name or display name each word stands: what is meant, mostly.

    One of exactly this name comes first, then those whose name begins so.
    """
    words = search_words(search)
    for word in words:
        rows = rows.filter(Q(name__icontains=word) | Q(display_name__icontains=word))
    whole = " ".join(words)
    nearness = Case(When(name__iexact=whole, then=0), When(name__istartswith=whole, then=1), default=2)
    near = rows.annotate(nearness=nearness).order_by("nearness", "name", "pk")
    return list(near.values_list("pk", flat=True)[:MOST_NAMED])


def search_excerpts(packages: Sequence[CatalogPackage], search: str) -> dict[int, str]:
    """Of each package the words of its description around what was looked for, where its names and summary lack it, by
    key."""
    lacking = {package.pk: _missing_words(package, search) for package in packages}
    keys = [key for key, missing in lacking.items() if missing]
    said = CatalogPackage.objects.filter(pk__in=keys).values_list(
        "pk", Substr("presentation__description", 1, SEARCHED_DESCRIPTION)
    )
    found = {key: _cut_excerpt(text or "", lacking[key]) for key, text in said} if keys else {}
    return {key: excerpt for key, excerpt in found.items() if excerpt}


def matching_keywords(package: CatalogPackage, search: str) -> list[str]:
    """Its keywords in which something stands that was looked for, where its names and summary lack it."""
    lacking = _missing_words(package, search)
    listed = package.searched_keywords.splitlines()
    return [keyword for keyword in listed if any(word in keyword for word in lacking)][:MOST_KEYWORDS_SHOWN]


def catalogs_with_package(catalog: Catalog, package: str, *, limit: int) -> list[Catalog]:
    """Other catalogs of its cluster that have a package of this name, by name."""
    rows = Catalog.objects.filter(cluster=catalog.cluster_id, edition__packages__name=package).exclude(pk=catalog.pk)
    return list(rows.only("name", "cluster", "spec").order_by("name")[:limit])


def _says_word(word: str) -> Q:
    return Q(searched_text__contains=word) | Q(said__contains=word)


def _missing_words(package: CatalogPackage, search: str) -> list[str]:
    return [word for word in search_words(search) if word not in package.searched_text]


def _cut_excerpt(text: str, words: Sequence[str]) -> str:
    """Around the first of the words that the text has; "" where it has none."""
    lowered = text.lower()
    at = next((place for word in words if (place := lowered.find(word)) >= 0), -1)
    if at < 0:
        return ""
    start = max(0, at - _BEFORE)
    cut = " ".join(_MARKS.sub("", text[start : start + _EXCERPT]).split())
    return f"{'…' if start else ''}{cut}{'…' if start + _EXCERPT < len(text) else ''}"
