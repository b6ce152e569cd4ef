"""Kubernetes' way of saying no."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class StatusRefusal(Exception):
    """An answer of kind Status; `details` as metav1.StatusDetails has them."""

    def __init__(self, code: int, reason: str, message: str, details: Mapping[str, Any] | None = None):
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = None if details is None else dict(details)

    def body(self) -> dict[str, Any]:
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        }
        reason = {"reason": self.reason} if self.reason else {}
        return {**status, **reason, **({} if self.details is None else {"details": self.details})}


def not_found(resource: str, name: str) -> StatusRefusal:
    return StatusRefusal(404, "NotFound", f'{resource} "{name}" not found', _about(resource, name))


def already_exists(resource: str, name: str) -> StatusRefusal:
    return StatusRefusal(409, "AlreadyExists", f'{resource} "{name}" already exists', _about(resource, name))


def conflict(resource: str, name: str, words: str) -> StatusRefusal:
    message = f'Operation cannot be fulfilled on {resource} "{name}": {words}'
    return StatusRefusal(409, "Conflict", message, _about(resource, name))


def invalid(kind: str, name: str, causes: list[tuple[str, str]]) -> StatusRefusal:
    """`causes` are (field, words) pairs; the words begin as the API server's do: Invalid value: …"""
    said = [f"{field}: {words}" for field, words in causes]
    joined = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    plain, _, group = kind.partition(".")
    details = {
        **({"name": name} if name else {}),
        **({"group": group} if group else {}),
        **({"kind": plain} if plain else {}),
        "causes": [{"reason": _cause(words), "message": words, "field": field} for field, words in causes],
    }
    return StatusRefusal(422, "Invalid", f'{kind} "{name}" is invalid: {joined}', details)


def lost() -> StatusRefusal:
    """The path is no resource of this server."""
    return StatusRefusal(404, "NotFound", "the server could not find the requested resource", {})


def not_allowed() -> StatusRefusal:
    words = "the server does not allow this method on the requested resource"
    return StatusRefusal(405, "MethodNotAllowed", words, {})


def bad_request(words: str) -> StatusRefusal:
    return StatusRefusal(400, "BadRequest", words)


def _about(resource: str, name: str) -> dict[str, Any]:
    plural, _, group = resource.partition(".")
    return {"name": name, "kind": plural, **({"group": group} if group else {})}


def _cause(words: str) -> str:
    known = {
        "Required value": "FieldValueRequired",
        "Duplicate value": "FieldValueDuplicate",
        "Forbidden": "FieldValueForbidden",
        "Unsupported value": "FieldValueNotSupported",
        "Too long": "FieldValueTooLong",
        "Too many": "FieldValueTooMany",
        "Invalid value": "FieldValueInvalid",
    }
    if "in body must be of type" in words:
        return "FieldValueTypeInvalid"
    return next((reason for start, reason in known.items() if words.startswith(start)), "FieldValueInvalid")
