"""What nobody foresaw, in the shape of the door at which it happened: a page for people, a problem for programs.

A database that is away, or that ended one of two transactions which waited for each other, is no fault of the code:
503, and to be tried again. Nothing is asked of session or database here: they may be what failed.
"""

from __future__ import annotations

import sys

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse

from approvals.api.problems import CONTENT_TYPE, body_of
from approvals.web import errors

API = "/api/"
RETRY_SECONDS = 5
AWAY = "the database did not answer, or ended this transaction for another one: try again"
FAILED = "this failed; the log tells more under the request id"
UNSURE = "; whether anything was changed is not known: look before you send it again"


def failed(http: HttpRequest) -> HttpResponse:
    """Django's handler500, called while the exception is handled."""
    is_away = isinstance(sys.exception(), OperationalError | InterfaceError)
    status = 503 if is_away else 500
    response: HttpResponse
    if http.path_info.startswith(API):
        code, words = ("unavailable", AWAY) if is_away else ("failed", FAILED)
        words += "" if http.method in ("GET", "HEAD", "OPTIONS") else UNSURE
        body = body_of(status, code, words, requestId=errors.request_id())
        response = JsonResponse(body, status=status, content_type=CONTENT_TYPE)
    else:
        response = errors.failed(http, status)
    if is_away:
        response["Retry-After"] = str(RETRY_SECONDS)
    return response
