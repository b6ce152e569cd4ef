"""Which requests a person may decide: what Kubernetes is asked for a list, how often, and what is told of the rest.

Each cluster is asked once for all names, and by name only after a no, about the rows that are shown. The answers are
kept for access.questions.READ_SECONDS; a decision asks afresh.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from approvals import access
from approvals.access import Caller, Person
from approvals.ledger.pivots import AskedRequest
from approvals.lifecycle import State
from approvals.models import Cluster, Request
from approvals.selectors import inbox as lists
from approvals.selectors.inbox import WaitingRequest
from approvals.selectors.keyset import Window
from approvals.selectors.status import RequestStatus, statuses
from approvals.services.reviews import is_self_approval
from provisioner.api_groups import OWN_GROUP
from provisioner.values import AccessRequest, Identity

# What a request in this state waits for, in the words of its row.
NEXT = {
    State.PREPARING: "the report is being prepared",
    State.STALE: "a new report is being prepared",
    State.APPROVED: "waiting to be applied",
    State.APPLYING: "being applied",
    State.RESTORING: "the previous revision is being restored",
}
VOIDED = "your approval no longer counts: review it again"
ALL = AccessRequest("approve", OWN_GROUP, "bundledeployments")


@dataclass(frozen=True, slots=True)
class ListedRequest:
    """One row: the request, how it stands, why it is here ("" where its state says that), and why the viewer cannot
    decide on it ("" where they can, or nobody is asked)."""

    request: Request
    how: RequestStatus
    why: str
    why_not: str

    @property
    def is_voided(self) -> bool:
        return self.why == VOIDED

    @property
    def can_decide(self) -> bool:
        return self.request.state == State.IN_REVIEW and not self.why_not


def rows_of(window: Window, rights: Everywhere, *, is_mine: bool) -> list[ListedRequest]:
    """The rows of the page; Kubernetes is asked by name about these alone. Of "needs me" what it allows."""
    shown = lists.shown(window.keys, user=rights.user)
    rights.ask_about(request for request in shown if request.state == State.IN_REVIEW)
    kept = [one for one in shown if not (is_mine and _why_not(one, rights))]
    how = statuses(kept)
    return [_row(request, rights, how[request.pk]) for request in kept]


def _row(request: Request, rights: Everywhere, how: RequestStatus) -> ListedRequest:
    why_not = _why_not(request, rights)
    if request.state == State.IN_REVIEW:
        return ListedRequest(request, how, why_not or (VOIDED if _is_voided(request) else "you can decide"), why_not)
    # What it waits for is told by its cause, where it waits for anything else.
    return ListedRequest(request, how, "" if request.problem else NEXT.get(State(request.state), ""), "")


def _is_voided(request: Any) -> bool:
    """Whether the viewer approved an earlier round of a row of the list, and has not decided on the present one."""
    return bool(request.had_approved and not request.has_decided)


def _why_not(request: Any, rights: Everywhere) -> str:
    """Why the viewer cannot decide on a row of the list; "" where they can, or nobody is asked."""
    if request.state != State.IN_REVIEW:
        return ""
    return "you already decided" if request.has_decided else rights.why_not(request)


class Everywhere:
    """What one person may decide, on each cluster that they may read."""

    def __init__(self, caller: Caller, clusters: Iterable[Cluster]) -> None:
        self.user = caller.user
        known = {cluster.pk: (cluster, access.identity_of(caller, cluster)) for cluster in clusters}
        asked = [access.Question(identity, cluster, ALL) for cluster, identity in known.values() if identity]
        answers = zip(asked, access.ask_all(asked), strict=True)
        everything = {one.cluster.pk for one, answer in answers if answer.allowed}
        self._rights = {
            key: ClusterRights(cluster, identity, access.person_of(caller, cluster), has_all=key in everything)
            for key, (cluster, identity) in known.items()
        }

    def why_never(self, request: WaitingRequest) -> str:
        return self._rights[request.cluster_id].why_never(request)

    def has_all(self, request: WaitingRequest) -> bool:
        return self._rights[request.cluster_id].has_all

    def ask_about(self, requests: Iterable[Request]) -> None:
        """Ask by name about these, where that can change anything; all others count as a no."""
        of_clusters: dict[int, list[Request]] = {}
        for request in requests:
            of_clusters.setdefault(request.cluster_id, []).append(request)
        for key, rows in of_clusters.items():
            self._rights[key].ask_about(rows)

    def why_not(self, request: Request) -> str:
        return self._rights[request.cluster_id].why_not(request)


class ClusterRights:
    """What one person may decide on one cluster; asked once for all names, and by name only where that is a no."""

    def __init__(self, cluster: Cluster, identity: Identity | None, person: Person, *, has_all: bool) -> None:
        self.cluster = cluster
        self.identity = identity
        self.has_all = has_all
        self._person = person
        self._named: set[int] = set()

    def why_never(self, request: AskedRequest) -> str:
        """Why they cannot decide, whatever Kubernetes says; "" where that is for Kubernetes to say."""
        if self.identity is None:
            return "you are not signed in on this cluster"
        if access.is_machine(self.identity):
            return "machine accounts cannot decide"
        return "you requested it" if is_self_approval(request, self._person) else ""

    def ask_about(self, requests: Iterable[Request]) -> None:
        if self.identity is None or self.has_all:
            return
        doubtful = [request for request in requests if not self.why_never(request)]
        questions = {request.deployment_id: access.approval_of(request.deployment) for request in doubtful}
        answers = access.ask_each(self.identity, self.cluster, questions.values())
        self._named = {key for key, question in questions.items() if answers[question].allowed}

    def why_not(self, request: Request) -> str:
        """In a few words; "" where Kubernetes lets them decide, and they did not ask for it themselves."""
        if words := self.why_never(request):
            return words
        return "" if self.has_all or request.deployment_id in self._named else "you are not allowed to approve it"


class Mine:
    """Of what is in review, what needs the viewer for all that is known without asking by name.

    Where Kubernetes lets them approve everything on a cluster, that is certain. `unasked` are the others: whether these
    need the viewer is asked for the rows of one page, and no count and no filter tells of more.
    """

    def __init__(self, rights: Everywhere, waiting: Iterable[WaitingRequest]) -> None:
        rows = [request for request in waiting if not rights.why_never(request)]
        self.keys = [request.pk for request in rows]
        self.unasked = {request.pk for request in rows if not rights.has_all(request)}

    def count(self, window: Window | None, items: Sequence[ListedRequest]) -> str:
        """How many there are, as far as anybody was asked; `window` is the page of all of them, if that is shown."""
        certain = len(self.keys) - len(self.unasked)
        if not self.unasked:
            return str(certain)
        if window is None:
            return f"{certain}+" if certain else ""
        asked = self.unasked & set(window.keys)
        found = certain + sum(item.request.pk in asked for item in items)
        return str(found) if asked == self.unasked else f"{found}+"
