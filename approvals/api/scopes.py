"""What a token may do before Kubernetes is asked: its scopes, and how fresh its proofs are (security-rules.md S33)."""

from __future__ import annotations

from typing import Any

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request as Http

from approvals import access
from approvals.access import Caller, Scope
from approvals.errors import OutOfScope

# What decides, by (basename, action); every other write asks for a change.
DECIDING = {
    ("api-request", "reviews"),
    ("api-request", "dismiss"),
    ("api-deployment", "revoke"),
    ("api-deployment", "reinstate"),
}
# What writes nothing in a cluster and decides nothing: its result is read, and working it out has a quota.
READING = {("api-catalog", "compare")}
# About the token itself: open to every token, also to one whose proof is too old.
OWN = "api-token"


def caller_of(http: Http) -> Caller:
    """Who is asking; the permission classes let nobody else in."""
    if isinstance(http.auth, Caller):
        return http.auth
    caller = http._request.find_caller()  # type: ignore[attr-defined]  # set by project.middleware
    assert isinstance(caller, Caller)
    return caller


class InScope(BasePermission):
    """Raises OutOfScope and ProofTooOld, which say more than a no."""

    def has_permission(self, request: Http, view: Any) -> bool:
        basename = getattr(view, "basename", "")
        if basename == OWN:
            return True
        caller, needed = caller_of(request), scope_of(request, basename, getattr(view, "action", "") or "")
        if not caller.has(needed):
            given = ", ".join(sorted(caller.scopes or ()))
            words = (
                f"this token lacks the scope {needed}: it has {given}. Create one with that scope on the account page"
            )
            raise OutOfScope(words, scope=needed)
        access.check_fresh(caller)
        return True


def scope_of(request: Http, basename: str, action: str) -> str:
    if request.method in SAFE_METHODS or (basename, action) in READING:
        return Scope.READ.value
    return Scope.DECIDE.value if (basename, action) in DECIDING else Scope.REQUEST.value
