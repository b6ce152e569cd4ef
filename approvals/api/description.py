"""The OpenAPI description says for every route how it can refuse: one problem shape, with the codes of that route."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent
from rest_framework.metadata import BaseMetadata
from rest_framework.request import Request as Http
from rest_framework.views import APIView

from approvals import errors
from approvals.deciding.table import KINDS

PROBLEM: dict[str, Any] = {
    "type": "object",
    "description": "RFC 9457. Some codes come with further facts, such as `rule` or `expected`.",
    "required": ["type", "title", "status", "code", "detail"],
    "properties": {
        "type": {"type": "string", "example": "about:blank"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "stable; for programs to act on"},
        "detail": {"type": "string", "description": "for people: what was found, what was expected"},
    },
    "additionalProperties": True,
}
WORDS = {
    400: "The query or the body cannot be read.",
    401: (
        "Not authenticated: the token is missing, unknown, revoked or expired, or its identity must be verified again."
    ),
    403: "Kubernetes does not allow it, the token lacks the scope, or an approval rule forbids it.",
    404: "Not found, or you are not allowed to see it.",
    406: "Only JSON is accepted and returned.",
    409: "The resource changed since you read it.",
    412: "If-Match does not match the current ETag.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    422: "The body is valid JSON, but a field is missing or invalid.",
    428: "If-Match is missing.",
    429: "Too many calls, or too many open requests.",
    500: "An internal error, see the log; or the database needs a migration.",
    503: "The cluster could not be asked, which never counts as yes, or the database is not responding.",
}
Codes = Mapping[int, frozenset[str]]
EVERYWHERE: Codes = {
    400: frozenset({"invalid-query"}),
    401: frozenset({"authentication-failed", "not-authenticated", "proof-too-old"}),
    403: frozenset({"out-of-scope"}),
    404: frozenset({"not-found"}),
    406: frozenset({"not-acceptable"}),
    429: frozenset({"throttled", "too-many-attempts"}),
    500: frozenset({"failed", "not-migrated"}),
    503: frozenset({"could-not-ask", "missing-right", "unavailable"}),
}
WRITING: Codes = {
    # A session without its CSRF token.
    403: frozenset({"permission-denied"}),
    412: frozenset({"precondition-failed"}),
}
WITH_BODY: Codes = {
    400: frozenset({"parse-error"}),
    413: frozenset({"body-too-large"}),
    415: frozenset({"unsupported-media-type"}),
    422: frozenset({"invalid-input"}),
}
_WISHING = (errors.NotAllowed, errors.Changed, errors.InvalidInput)
# What the services refuse, by operation; what every route refuses is above.
REFUSED: dict[tuple[str, str], tuple[type[errors.Refused], ...]] = {
    ("api-deployment", "create"): (*_WISHING, errors.TooMany),
    ("api-deployment", "update"): (*_WISHING, errors.TooMany),
    ("api-deployment", "destroy"): _WISHING,
    ("api-deployment", "pause"): _WISHING,
    ("api-deployment", "ask_again"): (*_WISHING, errors.TooMany),
    ("api-deployment", "rollback"): (*_WISHING, errors.Revoked, errors.TooMany),
    ("api-deployment", "rotate"): (*_WISHING, errors.TooMany),
    ("api-deployment", "revoke"): _WISHING,
    ("api-deployment", "reinstate"): _WISHING,
    ("api-request", "reviews"): (
        errors.NotAllowed,
        errors.ReviewOwed,
        errors.SelfApproval,
        errors.DigestMoved,
        errors.NotOpen,
        errors.AlreadyReviewed,
        errors.Collides,
        errors.Unacknowledged,
        errors.UnknownFinding,
        errors.NotWaivable,
        errors.InvalidInput,
    ),
    ("api-request", "dismiss"): (
        errors.NotAllowed,
        errors.SelfApproval,
        errors.NotOpen,
        errors.AlreadyReviewed,
        errors.InvalidInput,
    ),
    ("api-request", "run_check_again"): (errors.NotAllowed, errors.NotOpen),
    ("api-external-checks", "secret"): (errors.NotAllowed,),
    ("api-check-run", "answer"): (
        errors.CheckTokenRefused,
        errors.CheckClosed,
        errors.DigestMoved,
        errors.InvalidInput,
    ),
    ("api-policy", "create"): _WISHING,
    ("api-policy", "update"): (*_WISHING, errors.NoVersion),
    ("api-policy", "destroy"): (*_WISHING, errors.NoVersion),
    ("api-policy-test", "create"): (errors.InvalidInput,),
    ("api-notification-target", "create"): (*_WISHING, errors.TooMany),
    ("api-notification-target", "update"): (*_WISHING, errors.NoVersion),
    ("api-notification-target", "destroy"): (errors.NotAllowed, errors.NoVersion),
    ("api-notification-target", "stop"): (errors.NotAllowed,),
    ("api-notification-target", "secret"): (errors.NotAllowed,),
    ("api-notification-target", "test"): (errors.NotAllowed, errors.NotOpen),
    ("api-notification-target", "send_again"): (errors.NotAllowed, errors.NotOpen),
    ("api-set", "review"): (errors.InvalidInput, errors.UnlikeMember),
    ("api-set", "order"): (errors.NotAllowed, errors.InvalidInput),
    **{
        ("api-set", action): (errors.NotAllowed, errors.SelfApproval, errors.NotOpen, errors.InvalidInput)
        for action in ("approve_ring", "take_out", "end_order")
    },
    ("api-cluster", "calendar"): (errors.NotAllowed,),
    ("api-cluster", "switch_guard"): (errors.NotAllowed, errors.InvalidInput),
    ("api-catalog", "comparison"): (errors.NotAllowed, errors.InvalidInput),
    ("api-catalog", "compare"): (errors.NotAllowed, errors.InvalidInput, errors.TooMany),
    ("api-token", "prove"): (errors.NotAllowed,),
    ("api-sign-in", "exchange"): (errors.NotAllowed, errors.SignInFailed, errors.IssuerAway),
    ("api-request", "make_dependencies"): (*_WISHING, errors.TooMany),
    ("api-request", "withdraw"): (errors.NotAllowed, errors.NotOpen),
    **{(f"api-{kind.slug}", "create"): _WISHING for kind in KINDS},
    **{(f"api-{kind.slug}", "update"): (*_WISHING, errors.NoVersion) for kind in KINDS},
    **{(f"api-{kind.slug}", "destroy"): (*_WISHING, errors.NoVersion) for kind in KINDS},
    ("api-finding-exceptions", "confirm"): (errors.NotAllowed, errors.InvalidInput),
}


class Named(BaseMetadata):
    """What OPTIONS answers: name and purpose of the address, which depend on nothing that is there.

    The methods stand in the header Allow, the shapes in the description. REST framework's own answer tells the shape of
    the view's one serializer, which is another action's or none, and reads the object for it.
    """

    def determine_metadata(self, _: Http, view: APIView) -> dict[str, str]:
        return {"name": view.get_view_name(), "description": view.get_view_description()}


class Described(AutoSchema):
    def get_operation(self, *args: Any, **kwargs: Any) -> dict[str, Any] | None:
        operation: dict[str, Any] | None = super().get_operation(*args, **kwargs)
        if operation is None or not hasattr(self.view, "action"):
            return operation
        problem = ResolvedComponent(  # type: ignore[no-untyped-call]  # drf-spectacular's has no types
            name="Problem", type=ResolvedComponent.SCHEMA, schema=PROBLEM, object="Problem"
        )
        self.registry.register_on_missing(problem)
        for status, codes in sorted(self._refusals("requestBody" in operation).items()):
            narrowed = {"type": "object", "properties": {"code": {"type": "string", "enum": sorted(codes)}}}
            content = {"application/problem+json": {"schema": {"allOf": [problem.ref, narrowed]}}}
            operation["responses"][str(status)] = {"description": (WORDS[status]), "content": content}
        return operation

    def _refusals(self, has_body: bool) -> dict[int, set[str]]:
        view: Any = self.view
        found: dict[int, set[str]] = {}
        parts = [EVERYWHERE, *([WRITING] if self.method != "GET" else []), *([WITH_BODY] if has_body else [])]
        for part in parts:
            for status, codes in part.items():
                found.setdefault(status, set()).update(codes)
        for refusal in REFUSED.get((view.basename, view.action), ()):
            found.setdefault(refusal.status, set()).add(refusal.code)
        if view.basename == "api-deployment" and view.detail:
            found.setdefault(409, set()).add("ambiguous")
        return found
