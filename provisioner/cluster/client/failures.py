"""What an answer of the API server means in our own error tree. Pure.

Validation and admission quote what they refuse, and of an update what stands there already. So the message of an error
is ours, made of what we asked and of words that nobody else chooses; what the server said is kept apart from it, and of
a Secret not at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from provisioner.errors import (
    AlreadyExists,
    ClusterError,
    Expired,
    FieldConflict,
    Forbidden,
    InvalidObject,
    PratiqueError,
    PreconditionFailed,
    Unauthenticated,
    UnknownKind,
    Unreachable,
    WebhookUnavailable,
)
from provisioner.sentences import unescaped

MAX_MESSAGE_CHARACTERS = 2000
MAX_RETRY_AFTER_SECONDS = 300.0

# Answered with 500, and never passing by itself (seen on 1.36.3): a server-side apply that does not fit the schema, an
# object that is too large to be stored, one whose fields are recorded in a version that is not served any more.
_FOR_EVER = re.compile(
    r"failed to create typed patch object|field not declared in schema|failed to convert new object|illegal base64 data"
    r"|etcdserver: request is too large|trying to send message larger than max"
    r"|request to convert CR to an invalid group/version"
)
_CONVERTED = "conversion webhook for "
_CALLED = re.compile(rf"failed calling webhook|{_CONVERTED}")
# How the API server begins when it could not call a webhook. What the webhook said comes after, so that it cannot name
# another one.
_WEBHOOK = re.compile(
    r'(?:Internal error occurred: )?(?:failed calling webhook "([A-Za-z0-9.-]{1,253})": '
    r"|conversion webhook for ([a-z0-9.-]{1,253})/[a-z0-9]{1,63}, Kind=([A-Za-z0-9]{1,63}) failed)"
)
_MANAGER = re.compile(r'conflicts? with "((?:[^"\\]|\\.)*)"')
_IMMUTABLE = re.compile(r"is immutable|may not change once set|cannot change roleRef")
_FORBIDDEN_UPDATE = re.compile(
    r"updates to .* are forbidden|is immutable|may not be changed in an update"
    r"|pod updates may not |existing toleration can not be modified"
)
# The authorizer's own sentence: it names people, verbs and kinds, and no part of the object. It opens the message, so
# that no webhook or policy, whose words come after others, can put anything into its place.
_DENIAL = re.compile(
    r'[a-z0-9.-]+ (?:"[^"]*" )?is forbidden: '
    r'(User "[^"]*" cannot [a-z][a-z:-]* resource "[a-z/]*" in API group "[a-z0-9.]*"[a-z ]*(?:"[a-z0-9-]*")?)'
)
# Machine words that mean something to everybody; a webhook may send any other as its reason.
_REASONS = frozenset({
    "AlreadyExists", "BadRequest", "Conflict", "Expired", "Forbidden", "Gone", "InternalError", "Invalid",
    "MethodNotAllowed", "NotAcceptable", "NotFound", "RequestEntityTooLarge", "ServiceUnavailable", "Timeout",
    "TooManyRequests", "Unauthorized", "UnsupportedMediaType",
})  # fmt: skip
_STEP = re.compile(r"\[[^\]]*\]|[^.\[\]]+")
_INDEX = re.compile(r"[0-9]{1,6}", re.ASCII)
_MAX_FIELDS = 10
_IMMUTABLE_WORDS = {"FieldValueInvalid": _IMMUTABLE, "FieldValueForbidden": _FORBIDDEN_UPDATE}


@dataclass(frozen=True, slots=True)
class Doing:
    """What was tried, for the message: "apply", "Secret a/b". Of what `is_secret` no word of the server is kept.

    `sent` is the object that we sent: only fields that stand in it are named to everybody.
    """

    verb: str
    subject: str
    is_secret: bool = False
    sent: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        return f"{self.verb} {self.subject}"


def failure_of(doing: Doing, http_status: int, body: bytes, headers: Mapping[str, str]) -> PratiqueError:
    """The error that an answer of `http_status` >= 400 stands for."""
    try:
        status = orjson.loads(body)
    except orjson.JSONDecodeError:
        status = None
    if not isinstance(status, dict) or status.get("kind") != "Status":
        return _plain_failure(doing, http_status, body, headers)
    code = int(status.get("code") or http_status)
    reason = str(status.get("reason") or "")
    details = _details_of(status, doing.is_secret)
    words = str(status.get("message") or "")
    message, plain = f"{doing}: {_refusal_words(doing, status)}", unescaped(words)
    # Of a Secret, where anything may be quoted, nothing is kept of the server's words; nor where our message has all.
    said = "" if doing.is_secret or _DENIAL.fullmatch(plain) else plain[:MAX_MESSAGE_CHARACTERS]
    if code == 429 or (code >= 500 and not _FOR_EVER.search(words)):
        wait = _retry_after(headers, details)
        if not (called := _WEBHOOK.match(words)):
            return Unreachable(message, retry_after_seconds=wait, server_words=said)
        name, group, converted = called.groups()
        webhook = f"the webhook {name}" if name else f"the conversion webhook of {converted}.{group}"
        message = f"{doing}: the API server answers, but could not call {webhook}, so that nobody knows the outcome"
        return WebhookUnavailable(message, retry_after_seconds=wait, server_words=said)
    kind = _class_of(code, reason, details)
    if kind is FieldConflict:
        owners: dict[str, list[str]] = {}
        for cause in _held(details):
            found = _MANAGER.search(str(cause.get("message") or ""))
            owners.setdefault(found.group(1) if found else "another manager", []).append(str(cause.get("field") or "?"))
        message, said = (
            f"{doing}: another manager owns {_sent_fields(doing, details)}",
            "; ".join(
                f"{manager} owns {', '.join(sorted(fields)[:_MAX_FIELDS])}"
                for manager, fields in sorted(owners.items())
            ),
        )
    return kind(message, status=code, reason=reason, details=details, server_words=said)


def event_failure(doing: Doing, status: Mapping[str, Any]) -> PratiqueError:
    """The error behind an ERROR event of a watch."""
    return failure_of(doing, int(status.get("code") or 500), orjson.dumps(dict(status)), {})


def is_of_webhook(error: Unreachable) -> bool:
    """Whether the API server itself answers, and only a webhook that it had to call for this object does not."""
    return isinstance(error, WebhookUnavailable) or bool(_CALLED.search(error.server_words))


def is_of_conversion(error: PratiqueError) -> bool:
    """Whether only the webhook that converts objects between the versions of their kind does not answer."""
    return _CONVERTED in error.server_words


def is_immutable_field(error: InvalidObject) -> bool:
    """Whether the object was refused for one reason only: fields that cannot change once the object exists.

    Any other cause beside it means that deleting and creating again would fail as well.
    """
    causes = _causes(error.details)
    return bool(causes) and all(_is_immutable(cause) for cause in causes)


def is_immutable_value(error: InvalidObject) -> bool:
    """Whether the object was refused only because values of an immutable Secret differ."""
    return is_immutable_field(error) and {cause.get("field") for cause in _causes(error.details)} == {"data"}


def _is_immutable(cause: Mapping[str, Any]) -> bool:
    """Some kinds say in words of their own what others call "field is immutable"."""
    words = _IMMUTABLE_WORDS.get(str(cause.get("reason") or ""))
    return bool(words and words.search(str(cause.get("message") or "")))


def _plain_failure(doing: Doing, http_status: int, body: bytes, headers: Mapping[str, str]) -> PratiqueError:
    said = "" if doing.is_secret else body[:200].decode("utf-8", "replace").strip()
    message = f"{doing}: the server answered {http_status}"
    if http_status == 404:
        return UnknownKind(message, status=http_status, server_words=said)
    if http_status == 429 or http_status >= 500:
        return Unreachable(message, retry_after_seconds=_retry_after(headers, {}), server_words=said)
    return _class_of(http_status, "", {})(message, status=http_status, server_words=said)


def _class_of(code: int, reason: str, details: Mapping[str, Any]) -> type[ClusterError]:
    if code == 409:
        if reason == "AlreadyExists":
            return AlreadyExists
        return FieldConflict if _held(details) else PreconditionFailed
    if code == 422 and any(cause.get("field") == "metadata.uid" for cause in _causes(details)):
        return PreconditionFailed
    classes: dict[int, type[ClusterError]] = {
        400: InvalidObject,
        401: Unauthenticated,
        403: Forbidden,
        410: Expired,
        413: InvalidObject,
        422: InvalidObject,
        500: InvalidObject,
    }
    return classes.get(code, ClusterError)


def _held(details: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [cause for cause in _causes(details) if cause.get("reason") == "FieldManagerConflict"]


def _details_of(status: Mapping[str, Any], is_secret: bool) -> dict[str, object]:
    details = status.get("details")
    if not isinstance(details, dict):
        return {}
    if not is_secret:
        return details
    causes = []
    for cause in _causes(details):
        # What may be kept of a cause's words about a Secret: who owns a field, and that it cannot change.
        message = str(cause.get("message") or "")
        manager = _MANAGER.search(message)
        harmless = "field is immutable" if _IMMUTABLE.search(message) else ""
        harmless = f'conflict with "{manager.group(1)}"' if manager else harmless
        causes.append({key: cause[key] for key in ("reason", "field") if key in cause} | {"message": harmless})
    kept = ("name", "group", "kind", "uid", "retryAfterSeconds")
    return {key: details[key] for key in kept if key in details} | {"causes": causes}


def _refusal_words(doing: Doing, status: Mapping[str, Any]) -> str:
    """What is refused, in our words: by whom a right is missing, or the class of it and the fields of ours."""
    if denial := _DENIAL.match(str(status.get("message") or "")):
        return denial.group(1)
    reason = str(status.get("reason") or "")
    classed = f"the API server refuses it{f' ({reason})' if reason in _REASONS else ''}"
    causes = _causes(status.get("details"))
    if not causes:
        return classed
    stuck = ", because it cannot be changed" if all(map(_is_immutable, causes)) else ""
    fields = _sent_fields(doing, {"causes": causes})
    return f"{classed}: {fields}{stuck}" if stuck or fields != _SOME_FIELD else classed


_SOME_FIELD = "a field of it"


def _sent_fields(doing: Doing, details: Mapping[str, Any]) -> str:
    """The fields of the causes that stand in what we sent; whatever else a server calls a field may be a value."""
    fields = {str(cause.get("field") or "").lstrip(".") for cause in _causes(details)}
    ours = sorted(field for field in fields if doing.sent is not None and _stands_in(doing.sent, field))
    return ", ".join(ours[:_MAX_FIELDS]) or _SOME_FIELD


def _stands_in(obj: Mapping[str, Any], field: str) -> bool:
    """Whether `field`, as `spec.ports[0].name` or `spec.ports[name="a"]`, leads to something in `obj`."""
    found: object = obj
    steps = _STEP.findall(field)
    for step in steps:
        key = step[1:-1] if step.startswith("[") else step
        if isinstance(found, Mapping):
            found = found.get(key)
        elif isinstance(found, list) and _INDEX.fullmatch(key):
            found = found[int(key)] if int(key) < len(found) else None
        elif isinstance(found, list):
            keys = [part.partition("=") for part in key.split(",")]
            wanted = {name: text.strip('"') for name, _, text in keys}
            items = [item for item in found if isinstance(item, Mapping)]
            met = (item for item in items if all(str(item.get(name)) == text for name, text in wanted.items()))
            found = next(met, None)
        else:
            return False
        if found is None:
            return False
    return bool(steps)


def _causes(details: object) -> list[dict[str, Any]]:
    causes = details.get("causes") if isinstance(details, dict) else None
    return [cause for cause in causes or [] if isinstance(cause, dict)] if isinstance(causes, list) else []


def _retry_after(headers: Mapping[str, str], details: Mapping[str, object]) -> float:
    said = headers.get("Retry-After") or details.get("retryAfterSeconds") or 0
    try:
        return min(max(float(str(said)), 0.0), MAX_RETRY_AFTER_SECONDS)
    except ValueError:
        return 0.0
