"""JSON bodies: bounded, unambiguous, and only text that every database takes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import IO, Any

from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser
from rest_framework.renderers import JSONRenderer

MAX_BODY_BYTES = 2 * 1024 * 1024


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
            found = json.loads(body.decode(), object_pairs_hook=_object, parse_constant=_no_number)
            _check_text(found)
        except (ValueError, RecursionError) as exc:
            raise ParseError(f"the body is not valid JSON: {exc}") from exc
        return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
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
