"""What nobody foresaw, in the shape of the door at which it happened: a page for people, a problem for programs.

A database that is away, or that ended one of two transactions which waited for each other, is no fault of the code:
503, and to be tried again. One that was not migrated is the operator's: 500. Nothing is asked of session or database
here: they may be what failed.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse

from approvals.api.problems import CONTENT_TYPE, body_of
from approvals.errors import KeyMissing, StoreUnavailable, Undecipherable
from approvals.web import errors
from approvals.web.rendering import is_read

API = "/api/"
RETRY_SECONDS = 5
UNSURE = "; it is not known whether anything was changed: check before you try again"
# PostgreSQL's undefined_table and undefined_column; of SQLite only the words tell them from a mistake in SQL.
MISSING_STATES = ("42P01", "42703")
MISSING_WORDS = re.compile(r"no such (table|column): |table \S+ has no column named ")


@dataclass(frozen=True, slots=True)
class Failure:
    """`words` are for programs; `title` and `advice` stand on the page."""

    status: int
    code: str
    words: str
    title: str
    advice: str


AWAY = Failure(
    503,
    "unavailable",
    "the database did not respond, or ended this transaction because of a deadlock: try again",
    "The database is not responding",
    "Try again in a moment. If the problem persists, give the operator the request id below.",
)
NOT_MIGRATED = Failure(
    500,
    "not-migrated",
    "the database schema is older than this version: the operator must run pratique-manage migrate",
    "The database must be migrated",
    "The operator must run `pratique-manage migrate`. Trying again before that will not help.",
)
LOCKED = Failure(
    503,
    "key-missing",
    "this is encrypted with a key that the service does not have: the operator must add it to PRATIQUE_ENCRYPTION_KEYS",
    "An encryption key is missing",
    "This is encrypted with a key that the service does not have. Nothing is lost: the operator must add the "
    "key to PRATIQUE_ENCRYPTION_KEYS.",
)
CHANGED = Failure(
    500,
    "undecipherable",
    "this cannot be decrypted because the stored data was changed: the operator must restore it from a backup",
    "The stored data was changed",
    "It cannot be decrypted, so it is not shown. The operator must check the log and restore it from a backup.",
)
STORE_AWAY = Failure(
    503,
    "store-unavailable",
    "the content store did not respond or refused: try again; the operator finds the reason in the log and at /readyz",
    "The content store is not responding",
    "Nothing is lost. Try again in a moment. If the problem persists, give the operator the request id below.",
)
FAILED = Failure(
    500,
    "failed",
    "an internal error occurred; the log has details under the request id",
    "Something went wrong",
    "Try again. If the problem persists, give the operator the request id below.",
)
NOT_READ = Failure(
    400,
    "bad-request",
    "bad request: the host is not served here, or the request is malformed",
    "Bad request",
    "The host is not served here, or the request is malformed.",
)
FOREIGN = Failure(
    403,
    "permission-denied",
    "the CSRF token is missing or invalid",
    "This form has expired",
    "The form belongs to an earlier session or to another site. Go back, reload the page and submit it again.",
)
FORESEEN: dict[type[Exception], Failure] = {
    KeyMissing: LOCKED,
    Undecipherable: CHANGED,
    StoreUnavailable: STORE_AWAY,
    OperationalError: AWAY,
    InterfaceError: AWAY,
}


def failed(http: HttpRequest) -> HttpResponse:
    """Django's handler500, called while the exception is handled."""
    failure = failure_of(sys.exception())
    answer = _answer(http, failure, is_unsure=not is_read(http))
    if failure in (AWAY, STORE_AWAY):
        answer["Retry-After"] = str(RETRY_SECONDS)
    return answer


def not_read(http: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Django's handler400."""
    return _answer(http, NOT_READ, is_unsure=False)


def foreign(http: HttpRequest, reason: str = "") -> HttpResponse:
    """Django's CSRF_FAILURE_VIEW."""
    return _answer(http, FOREIGN, is_unsure=False)


def failure_of(exception: BaseException | None) -> Failure:
    if isinstance(exception, DatabaseError) and (
        getattr(exception.__cause__, "sqlstate", None) in MISSING_STATES
        or bool(MISSING_WORDS.match(str(exception.__cause__)))
    ):
        return NOT_MIGRATED
    for kind, failure in FORESEEN.items():
        if isinstance(exception, kind):
            return failure
    return FAILED


def _answer(http: HttpRequest, failure: Failure, *, is_unsure: bool) -> HttpResponse:
    if not http.path_info.startswith(API):
        return errors.failed(http, failure.status, failure.title, failure.advice, is_unsure=is_unsure)
    words = failure.words + (UNSURE if is_unsure else "")
    body = body_of(failure.status, failure.code, words, requestId=errors.request_id())
    return JsonResponse(body, status=failure.status, content_type=CONTENT_TYPE)
