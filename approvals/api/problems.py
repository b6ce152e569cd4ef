"""One error shape: application/problem+json (RFC 9457), with our stable `code`."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import exception_handler

from approvals.errors import Refused

CONTENT_TYPE = "application/problem+json"


def handle(exc: Exception, context: dict[str, Any]) -> Response | None:
    """Django REST framework's EXCEPTION_HANDLER: None lets what is nobody's fault become a 500."""
    if isinstance(exc, Refused):
        return problem(exc.status, exc.code, str(exc), **exc.facts)
    if isinstance(exc, Http404):
        return problem(404, "not-found", "there is nothing at this address, or you may not see it")
    answer = exception_handler(exc, context)
    if answer is None or not isinstance(exc, exceptions.APIException):
        return answer
    code = exc.get_codes()
    is_simple = isinstance(code, str)
    shaped = problem(
        answer.status_code,
        code.replace("_", "-") if isinstance(code, str) else "invalid-input",
        str(exc.detail) if is_simple else "the body is not as expected",
        **({} if is_simple else {"errors": answer.data}),
    )
    for name in ("WWW-Authenticate", "Retry-After"):
        if name in answer:
            shaped[name] = answer[name]
    return shaped


def problem(status: int, code: str, detail: str, **facts: object) -> Response:
    body = {"type": "about:blank", "title": code.replace("-", " "), "status": status, "code": code, "detail": detail}
    return Response({**facts, **body}, status=status, content_type=CONTENT_TYPE)
