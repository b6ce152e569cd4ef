"""How a request stands, in words for every page, REST and chat: the cause, by whom, since when, and the next step.

`status_of` is pure. `statuses` reads what it needs in at most four queries, however many requests there are.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from textwrap import dedent, shorten

from django.db.models import Exists, OuterRef, Subquery
from django.urls import reverse

from approvals.lifecycle import SETTLED, State
from approvals.models import REQUEST_CHANGES, AuditEntry, BundleDeployment, Request, Review
from provisioner.sentences import and_more, first_line

# Two lines of a list.
MAX_CAUSE = 160
LABELS = {State.PREPARING: "preparing", State.IN_REVIEW: "in review", State.STALE: "needs a new review"}
TONES: dict[str, str] = {
    State.APPROVED: "good",
    State.APPLIED: "good",
    State.DENIED: "bad",
    State.FAILED: "bad",
    State.RESTORING: "warn",
    State.STALE: "warn",
    State.EXPIRED: "plain",
    State.SUPERSEDED: "plain",
    State.WITHDRAWN: "plain",
}
# What the state says by itself, where nothing more is known.
CAUSES = {
    State.PREPARING: "The sources are fetched, rendered and compared with the cluster.",
    State.APPROVED: "It will be applied.",
    State.APPLYING: "It is being applied.",
    State.RESTORING: "The previous revision is being restored.",
    State.STALE: "A new report is being prepared.",
    State.DENIED: "No reason was given.",
    State.EXPIRED: "It was not settled in time.",
    State.SUPERSEDED: "A newer change of the deployment replaced it.",
}
CHANGES_REQUESTED = "changes requested"
WAITING = "waiting"
# What takes its course.
PLAIN = frozenset({"preparing", "in review", "approved", "applying", "restoring", "applied"})


@dataclass(frozen=True, slots=True)
class NextStep:
    """A link or button. `url_name` takes `args`. `is_form`: sent by POST, with the `generation` of the spec that is
    shown. `verb` is what it takes on the deployment, "" where everybody may who sees the request: offer no door that
    the viewer may not use."""

    label: str
    url_name: str
    args: tuple[str, ...]
    is_form: bool = False
    verb: str = ""
    generation: int = 0

    @property
    def url(self) -> str:
        return reverse(self.url_name, args=self.args)


@dataclass(frozen=True, slots=True)
class RequestStatus:
    """`label` and `tone` (good, bad, warn, info or plain) are those of the badge. `cause` is a sentence of at most
    MAX_CAUSE characters, "" where the label says it all, `whole` all of it; `by` names people and policies, sorted;
    `remedy` says in words who can do what about it. `steps` are the next ones, the best first."""

    label: str
    tone: str
    cause: str
    by: tuple[str, ...]
    since: datetime
    code: str = ""
    remedy: str = ""
    whole: str = ""
    steps: tuple[NextStep, ...] = ()

    @property
    def is_told(self) -> bool:
        """Whether there is more to say than the label: pages that have a banner show one."""
        return self.label not in PLAIN

    @property
    def first_paragraph(self) -> str:
        """The cause uncut, as it stands above `further_lines`."""
        return _with_end(self.whole.partition("\n")[0])

    @property
    def further_lines(self) -> str:
        """What the first paragraph introduces, to be copied: a command, a manifest, or a list; "" where it says all."""
        return dedent(self.whole.partition("\n")[2]).strip("\n")

    @property
    def by_whom(self) -> str:
        """For a row of a list: `by_words`, "" where it takes its course."""
        return self.by_words if self.is_told else ""

    @property
    def links(self) -> tuple[NextStep, ...]:
        """The steps of everybody who sees the request: rows of a list offer no others, about which nobody was asked."""
        return tuple(step for step in self.steps if not step.verb)

    @property
    def next_words(self) -> str:
        """What is left to those who may update the deployment, for a reader who is not asked whether they may."""
        is_over = self.is_told and any(step.is_form for step in self.steps)
        return "can be changed or asked for again" if is_over and not self.remedy else ""

    @property
    def by_words(self) -> str:
        """`ada`, `ada and bob`, `ada, bob and 2 more`; "" where nobody did it."""
        if len(self.by) > 2:
            return f"{', '.join(self.by[:2])} {and_more(len(self.by) - 2)}"
        return " and ".join(self.by)


@dataclass(frozen=True, slots=True)
class ReasonGiven:
    """What one person or policy did to a request, and the reason that they gave."""

    by: str
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Beside:
    """What is known of a request beside its row: what people said of it, and the request that followed."""

    denials: tuple[ReasonGiven, ...] = ()
    withdrawal: ReasonGiven | None = None
    change_requests: tuple[ReasonGiven, ...] = ()
    successor: Request | None = None


def status_of(request: Request, beside: Beside) -> RequestStatus:
    """How this request stands. PURE: reads the row, its deployment and cluster, and `beside`."""
    said = _said(request, beside)
    whole = _cause(request, beside, said).strip()
    waits = bool(request.problem) and request.state in (State.PREPARING, State.IN_REVIEW, State.APPROVED)
    label, tone = LABELS.get(State(request.state), request.state), TONES.get(State(request.state), "info")
    if beside.change_requests and request.state == State.IN_REVIEW:
        label, tone = CHANGES_REQUESTED, "warn"
    elif waits:
        label, tone = WAITING, "warn"
    names = {reason.by for reason in said if reason.by}
    if not said and beside.successor:
        names = {str(requester.get("username", "")) for requester in beside.successor.requesters}
    return RequestStatus(
        label=label,
        tone=tone,
        cause=_with_end(shorten(first_line(whole), MAX_CAUSE - 1, placeholder="…")),
        by=tuple(sorted(names - {""})),
        since=said[0].at if said else request.settled_at or request.changed_at,
        code=request.problem_code,
        remedy="" if beside.successor else request.remedy,
        whole=whole,
        steps=_steps(request, beside),
    )


def statuses(requests: Collection[Request]) -> dict[int, RequestStatus]:
    """By key; for the rows of one page. Select `deployment__cluster` with the requests."""
    asking = _change_requests([request for request in requests if request.state == State.IN_REVIEW])
    denials = _denials([request for request in requests if request.state == State.DENIED])
    withdrawals = _withdrawals([request for request in requests if request.state == State.WITHDRAWN])
    over = [request for request in requests if request.state in SETTLED and request.state != State.APPLIED]
    followed = _successors(over)
    known = {
        request.pk: Beside(
            denials=tuple(denials.get(request.pk, ())),
            withdrawal=withdrawals.get(str(request.uid)),
            change_requests=tuple(asking.get(request.pk, ())),
            successor=followed.get(request.pk),
        )
        for request in requests
    }
    return {request.pk: status_of(request, known.get(request.pk, Beside())) for request in requests}


def status(request: Request) -> RequestStatus:
    """Of one request."""
    return statuses([request])[request.pk]


def _said(request: Request, beside: Beside) -> Sequence[ReasonGiven]:
    """What people said that this state is of."""
    if request.state == State.DENIED:
        return beside.denials
    if request.state == State.WITHDRAWN:
        return [beside.withdrawal] if beside.withdrawal else []
    return beside.change_requests if request.state == State.IN_REVIEW else []


def _cause(request: Request, beside: Beside, said: Sequence[ReasonGiven]) -> str:
    reason = next((answer.reason for answer in said if answer.reason), "")
    if reason:
        return reason
    if request.state == State.SUPERSEDED and beside.successor:
        return f"Request {beside.successor.number} replaced it"
    return request.problem or CAUSES.get(State(request.state), "")


def _steps(request: Request, beside: Beside) -> tuple[NextStep, ...]:
    deployment = request.deployment
    place = (deployment.cluster.name, deployment.name)
    change = NextStep("Change it", "deployment-edit", place, verb="update")
    if beside.successor:
        label = f"Open request {beside.successor.number}"
        return (NextStep(label, "request", (str(beside.successor.uid),)),)
    if request.state == State.IN_REVIEW and beside.change_requests:
        return (change,)
    if request.state not in SETTLED - {State.APPLIED, State.SUPERSEDED} or deployment.gone_at:
        return ()
    is_of_revision = request.to_revision_id or request.purpose == Request.Purpose.ROTATE
    if is_of_revision or request.options_digest != deployment.options_digest:
        # Who asks again answers for a spec (S05), and the present one is not what this request shows.
        return (change, NextStep("Open the deployment", "deployment", place))
    again = NextStep(
        "Ask again", "deployment-ask-again", place, is_form=True, verb="update", generation=deployment.generation
    )
    return (change, again) if request.state in (State.DENIED, State.FAILED) else (again, change)


def _with_end(line: str) -> str:
    """With a capital, unless the name of a field or file begins it, and with a full stop where nothing else ends it or
    introduces what follows."""
    is_name = any(mark in line.partition(" ")[0].rstrip(".,:;") for mark in "./[_")
    end = "" if not line or line.endswith((".", "…", "?", "!", ":")) else "."
    return (line[:1] if is_name else line[:1].upper()) + line[1:] + end


def _denials(requests: Collection[Request]) -> dict[int, list[ReasonGiven]]:
    """The counted denials of their last rounds, the earliest first; by request."""
    found: dict[int, list[ReasonGiven]] = {}
    if not requests:
        return found
    rounds = {request.pk: request.round for request in requests}
    rows = Review.objects.counted().filter(request__in=list(rounds), decision="Deny").order_by("given_at", "pk")
    for row in rows:
        if row.round == rounds[row.request_id]:
            found.setdefault(row.request_id, []).append(ReasonGiven(row.username, row.reason, row.given_at))
    return found


def _change_requests(requests: Collection[Request]) -> dict[int, list[ReasonGiven]]:
    """Of every round: who has not reviewed since, and was not dismissed, still asks for them."""
    found: dict[int, list[ReasonGiven]] = {}
    if not requests:
        return found
    later = Review.objects.filter(request=OuterRef("request"), voter=OuterRef("voter"), round__gt=OuterRef("round"))
    rows = Review.objects.counted().filter(~Exists(later), request__in=requests, decision=REQUEST_CHANGES)
    for row in rows.filter(dismissals=None).order_by("given_at", "pk"):
        found.setdefault(row.request_id, []).append(ReasonGiven(row.username, row.reason, row.given_at))
    return found


def _withdrawals(requests: Collection[Request]) -> dict[str, ReasonGiven]:
    """By the request's uid."""
    if not requests:
        return {}
    entries = AuditEntry.objects.filter(
        request_uid__in=[str(request.uid) for request in requests], verb="request.withdraw"
    )
    return {
        entry.request_uid: ReasonGiven(
            entry.actor, str(entry.facts.get("reason") or entry.facts.get("why") or ""), entry.at
        )
        for entry in entries
    }


def _successors(requests: Collection[Request]) -> dict[int, Request]:
    """The newest later request of the same deployment, by the key of each."""
    if not requests:
        return {}
    of_one = Request.objects.filter(deployment=OuterRef("pk")).order_by("-number").values("pk")[:1]
    deployments = BundleDeployment.objects.filter(pk__in={request.deployment_id for request in requests})
    newest = Request.objects.filter(pk__in=deployments.annotate(newest=Subquery(of_one)).values("newest"))
    of_deployment = {
        request.deployment_id: request
        for request in newest.only("uid", "number", "deployment", "requesters", "state").order_by()
    }
    return {
        request.pk: found
        for request in requests
        if (found := of_deployment.get(request.deployment_id)) and found.number > request.number
    }
