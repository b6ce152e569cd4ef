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
from approvals.errors import KeyMissing, Undecipherable
from approvals.web import errors
from approvals.web.rendering import is_read

API = "/api/"
RETRY_SECONDS = 5
UNSURE = "; whether anything was changed is not known: look before you send it again"
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
    "the database did not answer, or ended this transaction for another one: try again",
    "The database does not answer",
    "Try again in a moment; if it stays so, give the operator the id below.",
)
NOT_MIGRATED = Failure(
    500,
    "not-migrated",
    "the database lacks a table or a column of this version: the operator has to run pratique-manage migrate",
    "The database is older than this service",
    "The operator has to run `pratique-manage migrate`; until then, trying again does not help.",
)
LOCKED = Failure(
    503,
    "key-missing",
    "this is encrypted with a key that the service does not have: the operator has to add it to"
    " PRATIQUE_ENCRYPTION_KEYS",
    "A key is missing",
    "This is encrypted with a key that the service does not have. Nothing is lost: the operator has to add the key to"
    " PRATIQUE_ENCRYPTION_KEYS.",
)
CHANGED = Failure(
    500,
    "undecipherable",
    "this cannot be decrypted, because what is stored was changed; the operator has to restore it from a backup",
    "What is stored was changed",
    "It cannot be decrypted, so it is not shown. The operator has to look at the log and restore it from a backup.",
)
FAILED = Failure(
    500,
    "failed",
    "this failed; the log tells more under the request id",
    "This page failed",
    "Try again; if it stays so, give the operator the id below.",
)
NOT_READ = Failure(
    400,
    "bad-request",
    "this cannot be read: it came for a host that is not served here, or in a shape that no form of ours sends",
    "This cannot be read",
    "It came for a host that is not served here, or in a shape that no form of ours sends.",
)
FOREIGN = Failure(
    403,
    "permission-denied",
    "this came without the proof that a page of ours sent it",
    "This form is too old",
    "It came from an earlier session or from elsewhere. Go back, load the page again and repeat.",
)


def failed(http: HttpRequest) -> HttpResponse:
    """Django's handler500, called while the exception is handled."""
    failure = failure_of(sys.exception())
    answer = _answer(http, failure, is_unsure=not is_read(http))
    if failure is AWAY:
        answer["Retry-After"] = str(RETRY_SECONDS)
    return answer


def not_read(http: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Django's handler400."""
    return _answer(http, NOT_READ, is_unsure=False)


def foreign(http: HttpRequest, reason: str = "") -> HttpResponse:
    """Django's CSRF_FAILURE_VIEW."""
    return _answer(http, FOREIGN, is_unsure=False)


def failure_of(exception: BaseException | None) -> Failure:
    if isinstance(exception, DatabaseError) and _is_missing(exception.__cause__):
        return NOT_MIGRATED
    if isinstance(exception, KeyMissing | Undecipherable):
        return LOCKED if isinstance(exception, KeyMissing) else CHANGED
    return AWAY if isinstance(exception, OperationalError | InterfaceError) else FAILED


def _is_missing(cause: BaseException | None) -> bool:
    return getattr(cause, "sqlstate", None) in MISSING_STATES or bool(MISSING_WORDS.match(str(cause)))


def _answer(http: HttpRequest, failure: Failure, *, is_unsure: bool) -> HttpResponse:
    if not http.path_info.startswith(API):
        return errors.failed(http, failure.status, failure.title, failure.advice, is_unsure=is_unsure)
    words = failure.words + (UNSURE if is_unsure else "")
    body = body_of(failure.status, failure.code, words, requestId=errors.request_id())
    return JsonResponse(body, status=failure.status, content_type=CONTENT_TYPE)
