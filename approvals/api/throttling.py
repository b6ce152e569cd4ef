"""How often the REST API may be asked. Counted in one step, unlike the framework's own lists of times in a cache."""

from __future__ import annotations

from typing import Any

from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from approvals.errors import TooManyAttempts
from approvals.limits import Limit, take

PERSON = Limit("rest-person", 600, 60)
ACTIONS = {
    "report": Limit("rest-report", 120, 60),
    "planned": Limit("rest-planned", 240, 60),
    "drift": Limit("rest-drift", 120, 60),
    "comparison": Limit("rest-comparison", 120, 60),
    "compared_lines": Limit("rest-compared-lines", 240, 60),
}
WRITING = Limit("rest-writing", 120, 60)
# By the name of the address: the description of the whole API is worked out anew each time.
ADDRESSES = {"api-schema": Limit("rest-schema", 20, 60)}
WORDS = "too many requests: try again in {time}"


class _Counted(BaseThrottle):
    seconds: float | None = None

    def limit(self, request: Request, view: Any) -> Limit | None:
        raise NotImplementedError

    def allow_request(self, request: Request, view: Any) -> bool:
        limit = self.limit(request, view)
        if limit is None:
            return True
        try:
            take(limit, str(request.user.pk), words=WORDS)
        except TooManyAttempts as refusal:
            self.seconds = float(str(refusal.facts["retryAfter"]))
            return False
        return True

    def wait(self) -> float | None:
        return self.seconds


class ByPerson(_Counted):
    """All that one person asks for."""

    def limit(self, request: Request, view: Any) -> Limit | None:
        return PERSON


class ByAction(_Counted):
    """What costs more: reports, for which the cluster is asked about each object, and writes to the cluster."""

    def limit(self, request: Request, view: Any) -> Limit | None:
        if request.method not in SAFE_METHODS:
            return WRITING
        name = request.resolver_match.url_name if request.resolver_match else ""
        return ACTIONS.get(getattr(view, "action", "")) or ADDRESSES.get(name or "")
