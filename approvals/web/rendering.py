"""Templates to HTML. Every page leaves through `page`, which makes text of others safe to look at (S24)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.template.backends.django import DjangoTemplates
from django.urls import reverse
from django.utils.cache import add_never_cache_headers
from django.utils.functional import SimpleLazyObject
from django.utils.safestring import SafeString

from approvals.access import Acting, Caller, acting_of
from approvals.clock import database_now
from approvals.models import Cluster
from provisioner.escaping import visible

THEMES = ("light", "dark")
THEME_COOKIE = "theme"
READS = ("GET", "HEAD", "OPTIONS")
TOLD_SECONDS = 60
DENSITIES = ("comfortable", "compact")
WIDTHS = ("full", "fixed")
# Name of the URL, words, name of the icon, and the key after `g`.
NAVIGATION = (
    ("inbox", "Requests", "inbox", "i"),
    ("news", "Home", "home", "h"),
    ("deployments", "Deployments", "cube", "b"),
    ("catalogs", "Catalogs", "book-open", "l"),
    ("clusters", "Clusters", "server-stack", "c"),
    ("policies", "Policies", "shield-check", "p"),
    ("audit", "Audit", "document-text", "a"),
)
# The main page above the pages whose URLs are named so.
AREAS = (
    ("request", "inbox"),
    ("news", "news"),
    ("inbox", "inbox"),
    ("deployment", "deployments"),
    ("catalog", "catalogs"),
    ("polic", "policies"),
)

_configured: dict[str, Any] = settings.TEMPLATES[0]
_engine = DjangoTemplates(
    {
        "NAME": "pages",
        "DIRS": _configured["DIRS"],
        "APP_DIRS": True,
        "OPTIONS": {
            **_configured["OPTIONS"],
            "builtins": ["approvals.web.tags", "approvals.web.times", "approvals.web.icons"],
        },
    }
)


def page(
    http: HttpRequest, template: str, context: Mapping[str, Any] | None = None, *, status: int = 200
) -> HttpResponse:
    """The rendered template; control, bidi and look-alike characters in it are shown as escapes (S24).

    No cache keeps it: rights end, and so does what they let a person see.
    """
    html = part_of(http, template, context)
    answer = HttpResponse(_safe(html), status=status)
    add_never_cache_headers(answer)
    return answer


def part_of(http: HttpRequest, template: str, context: Mapping[str, Any] | None = None) -> SafeString:
    """The rendered template, to stand in what leaves through `page`."""
    facts = {
        "theme": _theme(http),
        "density": _chosen(http, "density", DENSITIES),
        "width": _chosen(http, "width", WIDTHS),
        "navigation": NAVIGATION,
        "here": _here(http),
        "area": _area(_here(http)),
        "told": SimpleLazyObject(partial(told_count, http)),
        "place": place_of(http),
        "silent": getattr(http, "silent_clusters", []),
        "stale_clusters": getattr(http, "stale_clusters", []),
        "acting": SimpleLazyObject(partial(_acting, http)),
        **(context or {}),
    }
    return SafeString(_engine.get_template(template).render(facts, http))


def caller_of(http: HttpRequest) -> Caller | None:
    """Who is asking; None for strangers, and where nobody has looked at the session yet."""
    find = getattr(http, "find_caller", None)
    return find() if find else None


def note_silent(http: HttpRequest, clusters: list[str]) -> None:
    """Have the page say that these clusters could not be asked, so that what belongs to them is missing on it."""
    http.silent_clusters = clusters  # type: ignore[attr-defined] # requests carry such facts, as from middleware


def note_too_old(http: HttpRequest, clusters: list[str]) -> None:
    """The same for clusters where the viewer's proof is too old (S25)."""
    http.stale_clusters = clusters  # type: ignore[attr-defined] # likewise


def bare(http: HttpRequest, template: str, context: Mapping[str, Any]) -> str:
    """The rendered template, for which nobody is asked who the viewer is."""
    return _safe(_engine.get_template(template).render({"theme": _theme(http), **context}))


def note_cluster(http: HttpRequest, cluster: Cluster) -> None:
    """Have the page say as whom the viewer acts on this cluster, which all of it is about, and not on others."""
    http.cluster_of_page = cluster  # type: ignore[attr-defined] # likewise


def note_told(http: HttpRequest, count: str) -> None:
    """Keep how much is new to the viewer for the navigation of all pages; "" where that is nothing."""
    cache.set(_told_key(http), count, TOLD_SECONDS)


def is_counted(http: HttpRequest) -> bool:
    return cache.get(_told_key(http)) is not None


def told_count(http: HttpRequest) -> str:
    """As last counted by a page that counts; "" where none has lately."""
    user = getattr(http, "user", None)
    return cache.get(_told_key(http), "") if user is not None and user.is_authenticated else ""


def _told_key(http: HttpRequest) -> str:
    """Of what this session has proved, not of the account: that may be another person's on another cluster (S01)."""
    caller = caller_of(http)
    proved = sorted(caller.identity_ids) if caller else []
    return f"told-{http.user.pk}-{'-'.join(map(str, proved))}"


def is_read(http: HttpRequest) -> bool:
    return http.method in READS


def place_of(http: HttpRequest) -> str:
    """The address at which this can be looked at again: of what only a form is sent to, that of the form's page."""
    view = http.resolver_match.func if http.resolver_match else None
    return page_above(http) if getattr(view, "is_only_by_form", False) else http.get_full_path()


def page_above(http: HttpRequest) -> str:
    """The page of what a form is about, which shows what it is now."""
    me = reverse("me")
    return me if http.path.startswith(f"{me}/") else http.path.rpartition("/")[0] or reverse("inbox")


def _acting(http: HttpRequest) -> Acting | None:
    caller = caller_of(http)
    # Who has just signed out was somebody when the request began.
    if caller is None or not http.user.is_authenticated:
        return None
    return acting_of(caller, getattr(http, "cluster_of_page", None), database_now())


def _theme(http: HttpRequest) -> str:
    chosen = http.COOKIES.get(THEME_COOKIE, "")
    return chosen if chosen in THEMES else ""


def _chosen(http: HttpRequest, name: str, offered: tuple[str, ...]) -> str:
    chosen = http.COOKIES.get(name, "")
    return chosen if chosen in offered else offered[0]


def _area(here: str) -> str:
    mains = {name for name, *_ in NAVIGATION}
    return here if here in mains else next((area for start, area in AREAS if here.startswith(start)), "")


def _here(http: HttpRequest) -> str:
    return http.resolver_match.url_name or "" if http.resolver_match else ""


def _safe(html: str) -> str:
    """Line by line: almost every line is plain ASCII, which costs nothing."""
    return "\n".join(visible(line) for line in html.replace("\r\n", "\n").split("\n"))
