"""One error shape: application/problem+json (RFC 9457), with our stable `code`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import IO, Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import Http404
from rest_framework import exceptions
from rest_framework import status as statuses
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response
from rest_framework.views import exception_handler

from approvals.errors import Refused

MAX_BODY_BYTES = 2 * 1024 * 1024


CONTENT_TYPE = "application/problem+json"
KEPT_HEADERS = ("WWW-Authenticate", "Retry-After", "Allow")


class BodyTooLarge(APIException):
    status_code = 413
    default_code = "body-too-large"
    default_detail = f"the body is too large: at most {MAX_BODY_BYTES} bytes are accepted"


class BoundedJson(BaseParser):
    """REST framework's own parser reads any length, and takes the last of two equal keys."""

    media_type = "application/json"
    renderer_class = JSONRenderer

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        body = stream.read(MAX_BODY_BYTES + 1)
        if len(body) > MAX_BODY_BYTES:
            raise BodyTooLarge
        try:
            found = json.loads(body.decode(), object_pairs_hook=_unique_object, parse_constant=_no_number)
            _check_text(found)
        except (ValueError, RecursionError) as exc:
            raise ParseError(f"the body is not valid JSON: {exc}") from exc
        return found


def _unique_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} appears twice")
    return found


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _check_text(value: object) -> None:
    if isinstance(value, str):
        value.encode()
        if "\0" in value:
            raise ValueError("a string contains a NUL character, which cannot be stored")
    elif isinstance(value, Mapping | list):
        parts: Iterable[object] = (*value.keys(), *value.values()) if isinstance(value, Mapping) else value
        for part in parts:
            _check_text(part)


def handle(exc: Exception, context: dict[str, Any]) -> Response | None:
    """Django REST framework's EXCEPTION_HANDLER: None lets what is nobody's fault become a 500."""
    # Also where the page is a template's (/api/v1/docs): that asks once more who it is, and fails once more.
    context["request"].accepted_renderer, context["request"].accepted_media_type = JSONRenderer(), CONTENT_TYPE
    if isinstance(exc, Refused):
        return _refusal(exc)
    shaped = _of_framework(exc)
    answer = exception_handler(shaped, context)
    if answer is None or not isinstance(shaped, exceptions.APIException):
        return answer
    made = _shaped(shaped, answer)
    for name in KEPT_HEADERS:
        if name in answer:
            made[name] = answer[name]
    return made


def _refusal(exc: Refused) -> Response:
    answer = problem(exc.status, exc.code, str(exc), **exc.facts)
    if "retryAfter" in exc.facts:
        answer["Retry-After"] = str(exc.facts["retryAfter"])
    if exc.status == statuses.HTTP_401_UNAUTHORIZED:
        answer["WWW-Authenticate"] = 'Bearer error="invalid_token"'
    return answer


def problem(status: int, code: str, detail: str, **facts: object) -> Response:
    return Response(body_of(status, code, detail, **facts), status=status, content_type=CONTENT_TYPE)


def body_of(status: int, code: str, detail: str, **facts: object) -> dict[str, object]:
    body = {"type": "about:blank", "title": code.replace("-", " "), "status": status, "code": code, "detail": detail}
    return {**facts, **body}


def _of_framework(exc: Exception) -> Exception:
    if isinstance(exc, Http404):
        return exceptions.NotFound("not found, or you are not allowed to see it")
    if isinstance(exc, PermissionDenied):
        return exceptions.PermissionDenied()
    if isinstance(exc, RequestDataTooBig):
        return BodyTooLarge()
    return exc


def _shaped(exc: exceptions.APIException, answer: Response) -> Response:
    if isinstance(exc, exceptions.ValidationError):
        return problem(422, "invalid-input", "the input is invalid: see errors", errors=answer.data)
    return problem(answer.status_code, str(exc.get_codes()).replace("_", "-"), str(exc.detail))
