"""Why a deployment stands as it does, in words for its own conditions: what happened, since when, and what comes next.

Never a finding, a comment of a reviewer or the words of an API server (S27): whoever lists deployments reads these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten

from approvals.errors import CHANGE_OR_ASK
from approvals.models import BundleDeployment, Request
from approvals.steps.mirroring.conditions import Readiness, facts_of, instant, readiness_of
from provisioner.api_groups import FINALIZER
from provisioner.sentences import first_line, number, some
from provisioner.values import ObjectRef

NAMED = 3
# One column of `kubectl get bd -o wide`; a constraint alone can be longer.
MAX_REASON = 120
OWN_FINALIZER = "Pratique could not remove its own yet, and tries again. If it lasts, see the log of the worker"
_WHAT = {
    Request.Purpose.DELETE: "deletion request",
    Request.Purpose.ROLLBACK: "rollback request",
    Request.Purpose.ROTATE: "rotation request",
}
_BECAUSE = {
    Readiness.DENIED: "was denied",
    Readiness.EXPIRED: "expired",
    Readiness.WITHDRAWN: "was withdrawn",
    Readiness.FAILED: "failed",
}


def why(deployment: BundleDeployment, latest: Request | None, paused: str, kept_by: Sequence[str] = ()) -> str:
    """Why it is ready or not. `paused` says by whom it is paused and why; `kept_by` are the finalizers of one that is
    deleted and of which nothing is left to do. Reads what is left of its objects."""
    readiness = readiness_of(facts_of(deployment, latest))
    if kept_by:
        # What holds it although nothing is left to do here, and who can end that.
        names = f"{'finalizer' if len(kept_by) == 1 else 'finalizers'} {some(kept_by, NAMED)}"
        words = f"nothing is left to delete, and the BundleDeployment stays because of the {names}: "
        words += OWN_FINALIZER if FINALIZER in kept_by else "whoever set it has to remove it"
    elif readiness is Readiness.QUOTA:
        words = deployment.waiting_words
    elif readiness is Readiness.DELETION_ASKED:
        words = "this BundleDeployment was deleted with kubectl; a request to delete its objects is created next"
    elif latest is None or readiness is Readiness.NO_REQUEST:
        words = "no request yet; it is created next"
    else:
        words = _WORDS[readiness](_Told(deployment, latest, readiness, paused))
    return "; ".join(filter(None, [words, deployment.problem]))


def mirror_name(request: Request) -> str:
    return f"{request.deployment.name}-{request.number}"


@dataclass(frozen=True, slots=True)
class _Told:
    deployment: BundleDeployment
    request: Request
    readiness: Readiness
    paused: str

    @property
    def name(self) -> str:
        return f"{_WHAT.get(Request.Purpose(self.request.purpose), 'request')} {mirror_name(self.request)}"

    @property
    def since(self) -> str:
        return instant(self.request.problem_since or self.request.changed_at)

    @property
    def problem(self) -> str:
        """The first line, cut where it is long, and who can do what about it. The request's object has all of it, and
        the rules to apply."""
        first, has_more = first_line(self.request.problem), "\n" in self.request.problem
        told = shorten(first, MAX_REASON, placeholder=" …")
        ended = told if told.endswith("…") else f"{told.rstrip('.:')}."
        words = f"{ended} {self.request.remedy}".strip() if first else ""
        shows = "what to apply" if has_more else "all of it" if told.endswith("…") else ""
        where = f"`kubectl get bdr {mirror_name(self.request)} -o yaml` shows {shows}."
        return f"{words} {where}" if shows else words

    @property
    def running(self) -> str:
        active = self.deployment.active_revision
        return f"revision {active.number} keeps running" if active else "nothing of it runs"

    @property
    def revision(self) -> str:
        active = self.deployment.active_revision
        return f"revision {active.number}" if active else "its revision"

    @property
    def health(self) -> str:
        return f"{self.revision}: {self.deployment.health_message.partition(chr(10))[0] or 'not observed yet'}"


def _in_review(told: _Told) -> str:
    who = f"someone who may `approve` BundleDeployment {told.deployment.name}"
    stays = "; its objects stay until then" if told.deployment.deletion_requested_at else ""
    waits = f"{told.name} waits for approval by {who}{stays}"
    return f"{waits}; {told.problem}" if told.problem else waits


def _applying(told: _Told) -> str:
    phase = f", phase {told.request.phase}" if told.request.phase else ""
    return f"{told.name} is being applied{phase}" + (f": {told.problem}" if told.problem else "")


def _deleting(told: _Told) -> str:
    """What is left of what was applied."""
    rows = told.deployment.inventory.order_by("kind", "namespace", "name")
    left = rows.count()
    if not left:
        return f"{told.name}: all objects are gone; the BundleDeployment goes next"
    named = some([str(ObjectRef.from_parts(row)) for row in rows[:NAMED]], NAMED, total=left)
    waits = f"; {told.problem}" if told.problem else ""
    return f"{told.name}: {number(left, 'object')} left to delete: {named}{waits}"


def _ended(told: _Told) -> str:
    """What it ended of, what runs now, and how to go on."""
    ask = CHANGE_OR_ASK.format(name=told.deployment.name)
    is_told = told.problem and told.readiness is not Readiness.DENIED
    cause = f": {told.problem.rstrip('.')}" if is_told else ""
    has_begun = told.readiness is Readiness.FAILED and bool(told.request.subject_digest)
    what = f"{told.name} {_BECAUSE[told.readiness]}{cause}"
    stands = what if has_begun else f"{what}; {told.running}"
    return stands if told.request.remedy and is_told else f"{stands}. {ask}"


def _rolled_back(told: _Told) -> str:
    ask = CHANGE_OR_ASK.format(name=told.deployment.name)
    is_rotation = told.request.purpose == Request.Purpose.ROTATE
    why = "has new values of what ran before" if is_rotation else "runs because someone went back to an earlier one"
    return f"{told.revision} {why}, and the spec asks for another. {ask}"


_WORDS: Mapping[Readiness, Callable[[_Told], str]] = {
    Readiness.PREPARING: lambda told: f"{told.name} is being prepared",
    Readiness.CANNOT_PREPARE: lambda told: f"{told.name} cannot be prepared since {told.since}: {told.problem}",
    Readiness.REPORTING_AGAIN: lambda told: f"{told.name} gets a new report: {told.problem}".rstrip(": "),
    Readiness.IN_REVIEW: _in_review,
    Readiness.APPROVED: lambda told: f"{told.name} is approved; it is applied next",
    Readiness.PAUSED: lambda told: (
        f"{told.name} is approved; the BundleDeployment is paused {told.paused}; someone who may update it resumes it"
    ),
    Readiness.HELD: lambda told: f"{told.name} is approved and waits since {told.since}: {told.problem}",
    Readiness.APPLYING: _applying,
    Readiness.RESTORING: lambda told: (
        f"{told.name} failed, and the revision before it is being restored: {told.problem}"
    ),
    Readiness.PROGRESSING: lambda told: told.health,
    Readiness.UNHEALTHY: lambda told: told.health,
    Readiness.OVERDUE: lambda told: told.health,
    Readiness.HEALTH_UNKNOWN: lambda told: told.health,
    Readiness.READY: lambda told: f"{told.revision} runs, and all its objects are healthy",
    Readiness.ROLLED_BACK: _rolled_back,
    Readiness.DENIED: _ended,
    Readiness.EXPIRED: _ended,
    Readiness.WITHDRAWN: _ended,
    Readiness.FAILED: _ended,
    Readiness.DELETING: _deleting,
}
