"""Templates to HTML. Every page leaves through `page`, which makes text of others safe to look at (S24)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template.backends.django import DjangoTemplates
from django.utils.cache import add_never_cache_headers

from provisioner.review.text import visible

THEMES = ("light", "dark")
THEME_COOKIE = "theme"
NAVIGATION = (
    ("inbox", "Requests"),
    ("deployments", "Deployments"),
    ("clusters", "Clusters"),
    ("policies", "Policies"),
    ("audit", "Audit"),
)

_configured: dict[str, Any] = settings.TEMPLATES[0]
_engine = DjangoTemplates(
    {
        "NAME": "pages",
        "DIRS": _configured["DIRS"],
        "APP_DIRS": True,
        "OPTIONS": {**_configured["OPTIONS"], "builtins": ["approvals.web.tags"]},
    }
)


def page(
    http: HttpRequest, template: str, context: Mapping[str, Any] | None = None, *, status: int = 200
) -> HttpResponse:
    """The rendered template; control, bidi and look-alike characters in it are shown as escapes (S24).

    No cache keeps it: rights end, and so does what they let a person see.
    """
    chosen = http.COOKIES.get(THEME_COOKIE, "")
    facts = {
        "theme": chosen if chosen in THEMES else "",
        "navigation": NAVIGATION,
        "here": _here(http),
        **(context or {}),
    }
    html = _engine.get_template(template).render(facts, http)
    answer = HttpResponse(_safe(html), status=status)
    add_never_cache_headers(answer)
    return answer


def _here(http: HttpRequest) -> str:
    return http.resolver_match.url_name or "" if http.resolver_match else ""


def _safe(html: str) -> str:
    """Line by line: almost every line is plain ASCII, which costs nothing."""
    return "\n".join(visible(line) for line in html.replace("\r\n", "\n").split("\n"))
