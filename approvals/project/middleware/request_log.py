"""One line and one count for every request that was answered, with an id that its other lines carry too.

Neither holds a query string: one-time codes and signed addresses come in there. A person is their number.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable
from typing import Any

import structlog
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_login_failed
from django.http import HttpRequest, HttpResponseBase

from approvals import instruments
from approvals.limits import client_address

logger = logging.getLogger(__name__)
MAX_PATH = 300
MAX_AGENT = 200
# Asked every few seconds by machines: of interest where they fail.
FREQUENT = frozenset({"healthz", "readyz", "metrics"})


class RequestLog:
    """The outermost middleware: what the others refuse is told as well."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, http: HttpRequest) -> HttpResponseBase:
        began = time.perf_counter()
        # Never the caller's own id: two of the same would mix up who did what.
        with structlog.contextvars.bound_contextvars(request_id=str(uuid.uuid4())):
            answer = self._get_response(http)
            _tell(http, answer.status_code, time.perf_counter() - began)
        return answer


def _tell(http: HttpRequest, status: int, seconds: float) -> None:
    view = view_of(http)
    method = instruments.method_label(http.method)
    instruments.http_requests.labels(view, method, str(status)).inc()
    instruments.http_seconds.labels(view).observe(seconds)
    facts: dict[str, Any] = {
        "method": method,
        "path": http.path[:MAX_PATH],
        "view": view,
        "status": status,
        "milliseconds": round(seconds * 1000, 1),
        "user_id": user_id_of(http),
        "client": client_address(http),
        "user_agent": http.headers.get("User-Agent", "")[:MAX_AGENT],
    }
    level = logging.DEBUG if view in FREQUENT and status < 400 else logging.INFO
    logger.log(level, "request answered", extra=facts)


def view_of(http: HttpRequest) -> str:
    """The name of the view that answered, as a label; "other" where none did."""
    match = http.resolver_match
    name = match.view_name.replace(":", "_") if match and match.view_name else ""
    return instruments.code_label(name)


def user_id_of(http: HttpRequest) -> int | None:
    """The number of the signed-in user; None where nobody asked who it is, and nobody is asked here."""
    for user in (http.__dict__.get("user"), http.__dict__.get("_cached_user")):
        if type(user) is User:
            return user.pk
    return None


def _count_refused(sender: object, **_: object) -> None:
    instruments.refused_sign_ins.labels("password").inc()


# Every form that takes a password says so here, the admin site's too.
user_login_failed.connect(_count_refused, dispatch_uid="approvals.refused_sign_ins")
