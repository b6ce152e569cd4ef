"""The conditions that the cluster shows for deployments and requests. PURE: rows come in, values go out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, StrEnum
from typing import Any

from approvals.errors import CHANGE_OR_ASK
from approvals.lifecycle import State
from approvals.models import ACCEPT, BundleDeployment, Request, Review, Revision, Verdict, VoidedRound
from approvals.selectors.followed_sources import FollowedReference, OfferedUpgrade
from approvals.selectors.lists import DriftSummary
from approvals.steps.restore import OVERDUE
from provisioner.escaping import visible
from provisioner.values import HealthState


class ConditionStatus(StrEnum):
    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class ReadinessRow:
    """`when` says when it is so. `reason` is that of the conditions, "" where it is the code of what is wrong."""

    when: str
    ready: ConditionStatus = ConditionStatus.FALSE
    is_reconciling: bool = False
    is_stalled: bool = False
    reason: str = ""


class Readiness(Enum):
    """Everything that a deployment can be in; nothing else is shown as Ready, Reconciling and Stalled."""

    NO_REQUEST = ReadinessRow("there is no request yet", is_reconciling=True, reason="Pending")
    QUOTA = ReadinessRow("a quota is used up, so no request was made yet", is_reconciling=True, reason="QuotaExceeded")
    PREPARING = ReadinessRow("sources are fetched and rendered, and reported", is_reconciling=True, reason="Preparing")
    CANNOT_PREPARE = ReadinessRow("preparing does not work, and is tried again", is_reconciling=True)
    REPORTING_AGAIN = ReadinessRow("a new report is being prepared", is_reconciling=True, reason="Stale")
    IN_REVIEW = ReadinessRow("people or policies have to approve it", reason="WaitingForApproval")
    APPROVED = ReadinessRow("approved, about to be applied", is_reconciling=True, reason="Approved")
    PAUSED = ReadinessRow("approved, and the BundleDeployment is paused", reason="Paused")
    HELD = ReadinessRow("approved, and something has to be so in the cluster first", is_reconciling=True)
    APPLYING = ReadinessRow("objects are being applied", is_reconciling=True, reason="Applying")
    RESTORING = ReadinessRow("the previous revision is being restored", is_reconciling=True, reason="Restoring")
    PROGRESSING = ReadinessRow("applied, not healthy yet", is_reconciling=True, reason="Progressing")
    UNHEALTHY = ReadinessRow("applied, and an object failed or is missing", is_reconciling=True, reason="Unhealthy")
    OVERDUE = ReadinessRow("not healthy within its deadline", is_stalled=True, reason="ProgressDeadlineExceeded")
    HEALTH_UNKNOWN = ReadinessRow(
        "applied, and nobody could tell whether it is healthy", ConditionStatus.UNKNOWN, reason="HealthUnknown"
    )
    READY = ReadinessRow("applied and healthy", ConditionStatus.TRUE, reason="Applied")
    ROLLED_BACK = ReadinessRow(
        "an earlier revision runs, and the spec asks for something else", is_stalled=True, reason="RolledBack"
    )
    DENIED = ReadinessRow("reviewers or a policy denied it", is_stalled=True, reason="Denied")
    EXPIRED = ReadinessRow("it was not settled in time", is_stalled=True, reason="Expired")
    WITHDRAWN = ReadinessRow("it was withdrawn", is_stalled=True, reason="Withdrawn")
    FAILED = ReadinessRow("it needs another spec, or to be requested again", is_stalled=True)
    DELETION_ASKED = ReadinessRow(
        "deleted with kubectl, and the request is not made yet", is_reconciling=True, reason="DeletionRequested"
    )
    DELETING = ReadinessRow("its objects are being deleted", is_reconciling=True, reason="Deleting")


# What a request says by its state alone. The others depend on more.
_BY_STATE = {
    State.STALE: Readiness.REPORTING_AGAIN,
    State.IN_REVIEW: Readiness.IN_REVIEW,
    State.RESTORING: Readiness.RESTORING,
    State.DENIED: Readiness.DENIED,
    State.EXPIRED: Readiness.EXPIRED,
    State.WITHDRAWN: Readiness.WITHDRAWN,
    State.FAILED: Readiness.FAILED,
    State.SUPERSEDED: Readiness.NO_REQUEST,
}
_BY_HEALTH = {
    HealthState.CURRENT: Readiness.READY,
    HealthState.FAILED: Readiness.UNHEALTHY,
    HealthState.NOT_FOUND: Readiness.UNHEALTHY,
    HealthState.IN_PROGRESS: Readiness.PROGRESSING,
    HealthState.TERMINATING: Readiness.PROGRESSING,
    "": Readiness.PROGRESSING,
}


@dataclass(frozen=True, slots=True)
class ReadinessFacts:
    """What is known of a deployment and of its latest request (`state` is None where there is none).

    `is_deletion`, `is_rollback`: what that request is for. `is_leaving`: somebody has deleted the BundleDeployment.
    `health` is that of the running revision.
    """

    state: State | None
    is_deletion: bool = False
    is_rollback: bool = False
    is_leaving: bool = False
    waits_for_quota: bool = False
    is_paused: bool = False
    has_problem: bool = False
    is_overdue: bool = False
    health: str = ""


def readiness_of(facts: ReadinessFacts) -> Readiness:
    """The one row of the table that is true of a deployment. PURE."""
    if facts.waits_for_quota:
        return Readiness.QUOTA
    if facts.is_leaving and not facts.is_deletion:
        return Readiness.DELETION_ASKED
    if facts.state is None:
        return Readiness.NO_REQUEST
    if facts.state in _BY_STATE:
        return _BY_STATE[facts.state]
    if facts.state is not State.APPLIED:
        return readiness_on_the_way(facts)
    if facts.is_deletion:
        # Its objects are gone or left alone: the finalizer goes next.
        return Readiness.DELETING
    if facts.is_rollback:
        return Readiness.ROLLED_BACK
    found = _BY_HEALTH.get(facts.health, Readiness.HEALTH_UNKNOWN)
    return Readiness.OVERDUE if facts.is_overdue and found is not Readiness.READY else found


def readiness_on_the_way(facts: ReadinessFacts) -> Readiness:
    """The row of a deployment whose latest request is being prepared, approved or applied."""
    if facts.state is State.PREPARING:
        return Readiness.CANNOT_PREPARE if facts.has_problem else Readiness.PREPARING
    if facts.state is State.APPLYING:
        return Readiness.DELETING if facts.is_deletion else Readiness.APPLYING
    if facts.is_paused:
        return Readiness.PAUSED
    return Readiness.HELD if facts.has_problem else Readiness.APPROVED


MAX_MESSAGE = 8000
SOURCES = "SourcesAvailable"
UPGRADES = "UpgradeAvailable"
REVIEW_OWED = "ReviewOwed"
HEALTHY = "Current"


@dataclass(frozen=True, slots=True)
class Condition:
    """metav1.Condition, without the generation that it was observed at."""

    type: str
    is_true: bool
    reason: str
    message: str
    since: datetime
    is_unknown: bool = False

    def record(self, *, generation: int = 0) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "type": self.type,
            "status": "Unknown" if self.is_unknown else "True" if self.is_true else "False",
            "reason": self.reason or "Unknown",
            "message": visible(self.message, keep_newlines=True)[:MAX_MESSAGE],
            "lastTransitionTime": instant(self.since),
        }
        return {**shown, "observedGeneration": generation} if generation else shown


def of_deployment(deployment: BundleDeployment, latest: Request | None, waits_for: str, paused: str) -> list[Condition]:
    """Applied, UpToDate, Healthy and Paused.

    `waits_for` says in words where the latest request stands, `paused` by whom it is paused and why.
    """
    active = deployment.active_revision
    since = latest.changed_at if latest else deployment.seen_at
    is_settled = latest is not None and latest.state == State.APPLIED
    is_back = is_settled and _is_back(latest)
    why = "RolledBack" if is_back else reason(latest.state if latest else State.PREPARING)
    if latest and latest.state in (State.PREPARING, State.FAILED) and latest.problem_code:
        why = camel(latest.problem_code)
    if deployment.waiting_since:
        is_settled, why, since = False, "QuotaExceeded", deployment.waiting_since
    applied = f"revision {active.number}" if active else waits_for
    paused = f"{paused}; approved requests wait until someone resumes it" if deployment.is_paused else ""
    health = deployment.health_message or "not observed yet"
    return [
        Condition("Applied", active is not None, "RevisionActive" if active else "Waiting", applied, since),
        Condition("UpToDate", is_settled and not is_back, why, waits_for, since),
        _healthy(deployment, active, health, since),
        Condition("Paused", deployment.is_paused, "Paused" if deployment.is_paused else "Running", paused, since),
    ]


def of_readiness(deployment: BundleDeployment, latest: Request | None, words: str) -> list[Condition]:
    """Ready, Reconciling and Stalled, by the one table of what a deployment can be in; `words` say why."""
    readiness = readiness_of(facts_of(deployment, latest))
    row = readiness.value
    why = row.reason or (camel(latest.problem_code) if latest and latest.problem_code else "Failed")
    since = _since(readiness, deployment, latest)
    is_ready, is_unknown = row.ready is ConditionStatus.TRUE, row.ready is ConditionStatus.UNKNOWN
    return [
        Condition("Ready", is_ready, why, words, since, is_unknown=is_unknown),
        Condition("Reconciling", row.is_reconciling, why, words if row.is_reconciling else "", since),
        Condition("Stalled", row.is_stalled, why, words if row.is_stalled else "", since),
    ]


def facts_of(deployment: BundleDeployment, latest: Request | None) -> ReadinessFacts:
    """What decides how a deployment stands, out of its rows."""
    active = deployment.active_revision
    return ReadinessFacts(
        state=State(latest.state) if latest else None,
        is_deletion=latest is not None and latest.purpose == Request.Purpose.DELETE,
        is_rollback=_is_back(latest),
        is_leaving=deployment.deletion_requested_at is not None,
        waits_for_quota=deployment.waiting_since is not None,
        is_paused=deployment.is_paused,
        has_problem=latest is not None and bool(latest.problem),
        is_overdue=active is not None and active.overdue_at is not None,
        health=deployment.health,
    )


def _is_back(latest: Request | None) -> bool:
    """Whether it is for a revision that the spec does not ask for: a rollback, or a rotation of what was not the spec's
    by then."""
    asked = latest
    while asked and asked.purpose == Request.Purpose.ROTATE and asked.from_revision:
        asked = asked.from_revision.request
    if latest is None or asked is None or latest.purpose not in (Request.Purpose.ROLLBACK, Request.Purpose.ROTATE):
        return False
    return asked.purpose == Request.Purpose.ROLLBACK or asked.options_digest != latest.options_digest


def _since(readiness: Readiness, deployment: BundleDeployment, latest: Request | None) -> datetime:
    """Since when it has stood so, as far as anybody kept it."""
    active = deployment.active_revision
    if readiness is Readiness.QUOTA and deployment.waiting_since:
        return deployment.waiting_since
    if readiness is Readiness.DELETION_ASKED and deployment.deletion_requested_at:
        return deployment.deletion_requested_at
    if readiness is Readiness.OVERDUE and active and active.overdue_at:
        return active.overdue_at
    if readiness is Readiness.READY and active and active.healthy_at:
        return active.healthy_at
    return (latest.problem_since or latest.changed_at) if latest else deployment.seen_at


def of_drift(deployment: BundleDeployment, latest: Request | None, drift: DriftSummary) -> Condition:
    """Drifted: which objects are not as approved; Unknown where nobody can tell (promise 4).

    Its time is none that moves whenever the deployment is seen: each move would be a write, which is seen as well.
    """
    active = deployment.active_revision
    since = drift.since or (active.started_at if active else latest.created_at if latest else deployment.seen_at)
    if deployment.drift_problem:
        return Condition("Drifted", False, "CouldNotCompare", deployment.drift_problem, since, is_unknown=True)
    if not drift.open:
        return Condition("Drifted", False, "AsApproved", drift.words, since)
    return Condition("Drifted", True, "Fight" if drift.fights else "Changed", drift.words, since)


def of_sources(followed: Sequence[FollowedReference]) -> list[Condition]:
    """SourcesAvailable, where a source is looked at again: since when one cannot be, and why. Unknown before a look."""
    watched = [reference for reference in followed if reference.interval_seconds]
    if not watched:
        return []
    down = [reference for reference in watched if reference.problem]
    if down:
        worst = min(down, key=lambda reference: reference.problem_since or datetime.max.replace(tzinfo=UTC))
        since = worst.problem_since
        assert since is not None
        words = "; ".join(
            f"{reference.name} cannot be checked since {instant(reference.problem_since)}: {reference.problem}"
            for reference in down
            if reference.problem_since
        )
        return [Condition(SOURCES, False, camel(worst.problem_code), words, since)]
    looked = [reference.looked_at for reference in watched if reference.looked_at]
    if len(looked) < len(watched):
        first = min((reference.next_look_at for reference in watched if reference.next_look_at), default=None)
        words = f"not checked for changes yet; next at {instant(first)}" if first else "not checked for changes yet"
        return [Condition(SOURCES, False, "NotChecked", words, first or datetime.now(UTC), is_unknown=True)]
    resting = [reference for reference in watched if reference.rests_until]
    if resting:
        until = instant(min(reference.rests_until for reference in resting if reference.rests_until))
        names = ", ".join(reference.name for reference in resting)
        words = f"changed too often (PRATIQUE_SOURCE_REQUESTS_PER_HOUR), and requested at {until}: {names}"
        return [Condition(SOURCES, True, "ChangesTooOften", words, max(looked))]
    moved = [reference.name for reference in watched if reference.moved_at]
    words = f"changed, and requested when the open request is settled: {', '.join(moved)}" if moved else ""
    return [Condition(SOURCES, True, "Moved" if moved else "Checked", words, max(looked))]


def of_upgrades(packages: Sequence[OfferedUpgrade]) -> list[Condition]:
    """UpgradeAvailable, where a source names a catalog: what is offered, and why it is not taken. Unknown where
    nobody can tell."""
    if not packages:
        return []
    words = "; ".join(offer.words for offer in packages if offer.words)
    first = datetime.max.replace(tzinfo=UTC)
    offered = [offer for offer in packages if offer.version]
    if offered:
        since = min(offer.since or first for offer in offered)
        return [Condition(UPGRADES, True, offered[0].reason, words, since)]
    unsure = [offer for offer in packages if offer.problem or offer.looked_at is None or offer.source_problem_since]
    if unsure:
        times = (offer.problem_since or offer.source_problem_since or offer.looked_at for offer in unsure)
        since = min(at or datetime.now(UTC) for at in times)
        reason = "CouldNotTell" if words else "NotChecked"
        return [Condition(UPGRADES, False, reason, words or "not checked yet", since, is_unknown=True)]
    looked = max(offer.looked_at for offer in packages if offer.looked_at)
    return [Condition(UPGRADES, False, "UpToDate", words, looked)]


def of_request(
    request: Request, verdict: Verdict | None, revision: Revision | None, voided: VoidedRound | None = None
) -> list[Condition]:
    """Prepared, then what has become of it. Approved and Denied are there only once given; Approved is False where what
    was approved is no more: `voided` is the last round that ended so.
    """
    state, since = request.state, request.changed_at
    found = [Condition("Prepared", bool(request.subject_digest), reason(state), request.problem, since)]
    if verdict:
        carried = [one["words"] for one in request.earlier_approvals if not one["why_not"]]
        words = ", ".join(filter(None, (f"round {verdict.round}", request.public_subject_digest)))
        words = "; ".join([words, *carried])
        found.append(Condition(verdict.verdict, True, "Reviewed", words, verdict.given_at))
    elif voided and voided.was_approved:
        words = f"the approval of round {voided.round} no longer counts: {voided.words}"
        found.append(Condition("Approved", False, camel(voided.code), words, voided.at))
    if state == State.IN_REVIEW and request.approval_rules:
        left = request.rules_left
        words = "; ".join(left) or ", ".join(rule["name"] for rule in request.approval_rules)
        words = "; ".join([words, *(one["words"] for one in request.earlier_approvals)])
        found.append(Condition("RulesSatisfied", not left, "ApprovalsMissing" if left else "Satisfied", words, since))
    if state in (State.IN_REVIEW, State.APPROVED) and request.external_checks:
        left = request.checks_left
        words = "; ".join(left or [f"{it['name']}: {it['state']}" for it in request.external_checks])
        found.append(Condition("ChecksSatisfied", not left, "NotPassed" if left else "Satisfied", words, since))
    if state in (State.IN_REVIEW, State.APPROVED, State.APPLYING, State.RESTORING) and request.problem:
        found.append(Condition("Applied", False, camel(request.problem_code), told(request), since))
    if state in (State.SUPERSEDED, State.EXPIRED, State.WITHDRAWN):
        words = "" if state == State.SUPERSEDED else told(request)
        found.append(Condition(reason(state), True, reason(state), words, since))
    if verdict and state == State.FAILED and not revision:
        found.append(Condition("Applied", False, camel(request.problem_code), told(request), since))
    if revision and state in (State.APPLIED, State.FAILED):
        words = told(request) if request.problem else f"revision {revision.number}"
        found.append(Condition("Applied", state == State.APPLIED, reason(state), words, since))
        if request.deployment.active_revision_id == revision.pk:
            words = request.deployment.health_message
            found.append(_healthy(request.deployment, revision, words, since))
    return found


def of_break_glass(broken: Review, answer: Review | None, due_at: datetime) -> Condition:
    """ReviewOwed: whether somebody still has to review afterwards what went by a break-glass."""
    words = f"{broken.username} broke glass for incident {broken.incident}"
    if answer is None:
        due = f"someone else who may approve must accept it or object by {instant(due_at)}"
        return Condition(REVIEW_OWED, True, "BreakGlass", f"{words}: {due}", broken.given_at)
    said = "accepted it" if answer.decision == ACCEPT else f"objected: {answer.reason}"
    return Condition(REVIEW_OWED, False, f"{answer.decision}ed", f"{words}; {answer.username} {said}", answer.given_at)


def told(request: Request) -> str:
    """What it waits for or failed of, and who can do what about it; what ends with rules to apply ends with them."""
    is_over = request.state == State.FAILED and request.problem
    remedy = request.remedy or (CHANGE_OR_ASK.format(name=request.deployment.name) if is_over else "")
    is_whole = not remedy or "\n" in request.problem
    return request.problem if is_whole else f"{request.problem.rstrip('.')}. {remedy}"


def _healthy(deployment: BundleDeployment, revision: Revision | None, words: str, since: datetime) -> Condition:
    """Healthy; Unknown where nobody has looked or could tell (promise 4)."""
    is_overdue = revision is not None and revision.overdue_at is not None and deployment.health != HEALTHY
    why = OVERDUE if is_overdue else deployment.health
    is_unknown = why in ("", "Unknown")
    return Condition("Healthy", deployment.health == HEALTHY, why, words, since, is_unknown=is_unknown)


def reason(state: str) -> str:
    """`in_review` as Kubernetes writes reasons: InReview."""
    return camel(state, "_")


def camel(words: str, separator: str = "-") -> str:
    """A code as Kubernetes writes reasons: `held-back` is HeldBack."""
    return "".join(word.capitalize() for word in words.split(separator))


def instant(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
