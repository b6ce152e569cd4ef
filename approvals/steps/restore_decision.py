"""APPLIED → RESTORING: what becomes of a revision not healthy in time (`spec.onFailure`, security-rules.md S16)."""

from __future__ import annotations

from dataclasses import dataclass

from approvals.audit import MACHINE
from approvals.ledger.moves import locked, move
from approvals.lifecycle import OPEN, Event, State
from approvals.models import BundleDeployment, Revision
from approvals.selectors import lists

CODE = "progress-deadline-exceeded"
# The same as the reason of a condition.
OVERDUE = "ProgressDeadlineExceeded"


@dataclass(frozen=True, slots=True)
class RestoreAnswer:
    """Whether what ran before is restored now, and what people are told of it."""

    is_to_restore: bool
    words: str


@dataclass(frozen=True, slots=True)
class Since:
    """What came after an overdue revision: the open request's number and the newest revision's; 0 where there is none.

    `is_same_wish`: the deployment still asks for what was applied.
    """

    open_request: int
    newest_revision: int
    is_same_wish: bool


def answer(revision: Revision, deployment: BundleDeployment, since: Since) -> RestoreAnswer:
    """What to do about an overdue revision. PURE: rows come in, a value goes out."""
    request = revision.request
    if not request.bundle_spec.is_restoring:
        return RestoreAnswer(False, "nothing is restored automatically: spec.onFailure is Stop")
    if request.from_revision is None:
        return RestoreAnswer(False, "nothing is restored: there is no earlier revision")
    previous = f"revision {request.from_revision.number}"
    revoked = lists.revoked_words(request.from_revision)
    if request.state == State.RESTORING:
        return RestoreAnswer(False, f"{previous} is being restored")
    if request.state == State.FAILED:
        return RestoreAnswer(False, f"{previous} was not restored: request {request.number} says why")
    hindrance = revoked or _hindrance(revision, deployment, since)
    return RestoreAnswer(
        not hindrance, f"{previous} is not restored: {hindrance}" if hindrance else f"{previous} is restored"
    )


def act(revision: Revision, deployment: BundleDeployment, problem: str) -> str:
    """Have what ran before put back where that is to be, because of `problem`; what people are told of it.

    Needs the deployment's lock; a worker does the rest (steps.restore).
    """
    found = answer(revision, deployment, _since(revision, deployment))
    if found.is_to_restore:
        _begin(revision, problem)
    return found.words


def _hindrance(revision: Revision, deployment: BundleDeployment, since: Since) -> str:
    if deployment.deletion_requested_at or deployment.gone_at:
        return "the deployment is being deleted"
    if since.open_request:
        return f"request {since.open_request} is open"
    if since.newest_revision > revision.number:
        return f"revision {since.newest_revision} was started since then"
    if not since.is_same_wish:
        return "the spec has changed"
    if deployment.is_paused:
        return (
            "the deployment is paused; it is restored when someone resumes the deployment, unless it is healthy by then"
        )
    return ""


def _since(revision: Revision, deployment: BundleDeployment) -> Since:
    still_open = deployment.requests.filter(state__in=OPEN).first()
    newest = deployment.revisions.order_by("-number").first()
    return Since(
        open_request=still_open.number if still_open else 0,
        newest_revision=newest.number if newest else 0,
        is_same_wish=deployment.options_digest == revision.request.options_digest,
    )


def _begin(revision: Revision, problem: str) -> None:
    row = locked(revision.request_id)
    move(
        row,
        Event.RESTORE,
        actor=MACHINE,
        facts={"revision": revision.number, "code": CODE, "why": problem},
        problem_code=CODE,
        problem=problem,
        attempts=0,
        worked_seconds=0.0,
        look_again_at=None,
    )
    revision.message = problem
    revision.save(update_fields=["message"])
