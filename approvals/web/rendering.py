"""Templates to HTML. Every page leaves through `page`, which makes text of others safe to look at (S24)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.cache import cache as django_cache
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.template.backends.django import DjangoTemplates
from django.urls import reverse
from django.utils.cache import add_never_cache_headers
from django.utils.functional import SimpleLazyObject
from django.utils.safestring import SafeString

from approvals.access import Acting, Caller, acting_of
from approvals.clock import database_now
from approvals.models import Cluster
from approvals.selectors import keyset
from approvals.selectors.keyset import BadCursor, Cursor, ListOrder, Window
from provisioner.escaping import visible

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Context = Mapping[str, Any] | DataclassInstance
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
    ("sets", "Sets", "rectangle-stack", "s"),
    ("deployments", "Deployments", "cube", "b"),
    ("catalogs", "Catalogs", "book-open", "l"),
    ("clusters", "Clusters", "server-stack", "c"),
    ("policies", "Policies", "shield-check", "p"),
    ("notifications", "Notifications", "bell", "n"),
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
    ("rule", "policies"),
    ("set", "sets"),
    ("notification", "notifications"),
)

# Where filters and tags of templates stand: those of all pages, and beside what they show those of some.
BUILTINS = [
    "approvals.web.tags",
    "approvals.web.audit",
    "approvals.web.inbox",
    "approvals.web.deployments.spec_form",
    "approvals.web.requests.decision_form",
    "approvals.web.requests.report_view",
    "approvals.web.requests.sources",
]


MAX_DIGITS = 6


@cache
def engine() -> DjangoTemplates:
    """Return the engine of the pages; made when it is first used, since the modules of filters import this one."""
    configured: dict[str, Any] = settings.TEMPLATES[0]
    options = {**configured["OPTIONS"], "builtins": BUILTINS}
    return DjangoTemplates({"NAME": "pages", "DIRS": configured["DIRS"], "APP_DIRS": True, "OPTIONS": options})


def page(http: HttpRequest, template: str, *contexts: Context, status: int = 200) -> HttpResponse:
    """Render the template to a page; control, bidi and look-alike characters in it are shown as escapes (S24).

    The keys of mappings and the fields of dataclasses are the names that the template knows. No cache keeps the page:
    rights end, and so does what they let a person see.
    """
    html = part_of(http, template, *contexts)
    answer = HttpResponse(_safe(html), status=status)
    add_never_cache_headers(answer)
    return answer


def part_of(http: HttpRequest, template: str, *contexts: Context) -> SafeString:
    """Render the template, to stand in what leaves through `page`."""
    here = http.resolver_match.url_name or "" if http.resolver_match else ""
    mains = {name for name, *_ in NAVIGATION}
    names: dict[str, Any] = {
        "theme": _theme(http),
        "density": _chosen(http, "density", DENSITIES),
        "width": _chosen(http, "width", WIDTHS),
        "navigation": NAVIGATION,
        "here": here,
        "area": here if here in mains else next((area for start, area in AREAS if here.startswith(start)), ""),
        "told": SimpleLazyObject(partial(told_count, http)),
        "place": place_of(http),
        "silent": getattr(http, "silent_clusters", []),
        "stale_clusters": getattr(http, "stale_clusters", []),
        "acting": SimpleLazyObject(partial(_acting, http)),
    }
    for context in contexts:
        if isinstance(context, Mapping):
            names.update(context)
        else:
            names.update((field.name, getattr(context, field.name)) for field in fields(context))
    return SafeString(engine().get_template(template).render(names, http))


def caller_of(http: HttpRequest) -> Caller | None:
    """Who is asking; None for strangers, and where nobody has looked at the session yet."""
    find = getattr(http, "find_caller", None)
    return find() if find else None


def note_silent(http: HttpRequest, clusters: list[str]) -> None:
    """Have the page say that these clusters could not be asked, so that what belongs to them is missing on it."""
    http.silent_clusters = clusters  # type: ignore[attr-defined] # requests carry such facts, as from middleware


def note_too_old(http: HttpRequest, clusters: list[str]) -> None:
    """The same for clusters where the viewer's proof is too old (S25)."""
    http.stale_clusters = clusters  # type: ignore[attr-defined] # requests carry such facts, as from middleware


def bare(http: HttpRequest, template: str, context: Mapping[str, Any]) -> str:
    """The rendered template, for which nobody is asked who the viewer is."""
    return _safe(engine().get_template(template).render({"theme": _theme(http), **context}))


def note_cluster(http: HttpRequest, cluster: Cluster) -> None:
    """Have the page say as whom the viewer acts on this cluster, which all of it is about, and not on others."""
    http.cluster_of_page = cluster  # type: ignore[attr-defined] # requests carry such facts, as from middleware


def note_told(http: HttpRequest, count: str) -> None:
    """Keep how much is new to the viewer for the navigation of all pages; "" where that is nothing."""
    django_cache.set(_told_key(http), count, TOLD_SECONDS)


def is_counted(http: HttpRequest) -> bool:
    return django_cache.get(_told_key(http)) is not None


def told_count(http: HttpRequest) -> str:
    """As last counted by a page that counts; "" where none has lately."""
    user = getattr(http, "user", None)
    return django_cache.get(_told_key(http), "") if user is not None and user.is_authenticated else ""


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


def _safe(html: str) -> str:
    """Line by line: almost every line is plain ASCII, which costs nothing."""
    return "\n".join(visible(line) for line in html.replace("\r\n", "\n").split("\n"))


def by_itself(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """For what pages ask for without anybody's doing, as project.middleware reads; the innermost decorator."""
    view.is_by_itself = True  # type: ignore[attr-defined] # views are marked so, as by csrf_exempt
    return view


@dataclass(frozen=True, slots=True)
class Followed:
    """One part: its id on the page, where it is asked for again, and after how many seconds; 0 for never again.

    `body` is what stands in it; `beside` goes into the element of the page whose id is `beside_id`.
    """

    name: str
    address: str
    seconds: int
    body: SafeString
    beside: str = ""
    beside_id: str = ""

    @property
    def mark(self) -> str:
        told = f"{self.seconds}\n{self.beside}\n{self.body}"
        return hashlib.sha256(told.encode()).hexdigest()[:32]


def again(http: HttpRequest, part: Followed) -> HttpResponse:
    """The part as it is now; 304 where the browser has just that."""
    etag = f'"{part.mark}"'
    if http.headers.get("If-None-Match") == etag:
        answer: HttpResponse = HttpResponseNotModified()
        add_never_cache_headers(answer)
    else:
        answer = page(http, "frame/_followed.html", {"part": part, "is_again": True})
    answer["ETag"] = etag
    return answer


def page_of(http: HttpRequest, rows: QuerySet[Any], order: ListOrder, *, size: int) -> Window:
    """The page that the address asks for; the first where it asks for none, or for one that is not there."""
    try:
        cursor = Cursor.read(text, order, rows) if (text := http.GET.get("cursor", "")) else None
    except BadCursor:
        cursor = None
    skip = 0 if cursor else (_number(http) - 1) * size
    found = keyset.window(rows, order, size=size, cursor=cursor, skip=skip)
    return found if found.keys or not (cursor or skip) else keyset.window(rows, order, size=size)


def _number(http: HttpRequest) -> int:
    text = http.GET.get("page", "")
    return max(1, int(text)) if text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS else 1
