"""Which findings of a round somebody accepted, by a review or by a FindingException: one answer for all who show it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from approvals.deciding.deputies import Deputy
from approvals.deciding.finding_exceptions import SOON, FindingException
from approvals.lifecycle import OPEN
from approvals.models import Cluster, DecidingObject, Request, Review


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Why a finding is accepted, and by whom: `at` when it was reviewed, or `until` when the `exception` ends."""

    by: str
    reason: str
    at: datetime | None = None
    exception: str = ""
    ticket: str = ""
    until: datetime | None = None

    @property
    def record(self) -> dict[str, Any]:
        """As REST shows it beside a finding."""
        at, until = (moment.isoformat() if moment else None for moment in (self.at, self.until))
        about = {"exception": self.exception, "ticket": self.ticket, "until": until}
        return {"by": self.by, "reason": self.reason, "at": at, **about}

    @property
    def words(self) -> str:
        """One sentence for texts: `Accepted until 2027-01-31 00:00 UTC by exception web (ada and ben, SEC-1): why`."""
        if self.until is None:
            return f"Accepted by {self.by}{f' on {self.at:%Y-%m-%d %H:%M} UTC' if self.at else ''}: {self.reason}"
        about = ", ".join(filter(None, (self.by, self.ticket)))
        return f"Accepted until {self.until:%Y-%m-%d %H:%M} UTC by exception {self.exception} ({about}): {self.reason}"


@dataclass(frozen=True, slots=True)
class EndingException:
    row: DecidingObject
    exception: FindingException


def acceptances_of(
    request: Request, number: int, reviews: Iterable[Review], now: datetime
) -> dict[str, list[Acceptance]]:
    """By fingerprint, of the round `number`. What exceptions accept is known of the present round; of a settled request
    it is what they accepted then."""
    found: dict[str, list[Acceptance]] = defaultdict(list)
    for review in reviews:
        if review.round == number and not review.is_replaced:
            for waiver in review.waives:
                given = Acceptance(review.username, waiver["reason"], review.given_at)
                found[waiver["fingerprint"]].append(given)
    for one in request.finding_exceptions if number == request.round else ():
        until = datetime.fromisoformat(one["until"])
        if until > now or request.state not in OPEN:
            by = " and ".join(one["by"])
            told = Acceptance(by, one["reason"], None, one["name"], one["ticket"], until)
            for fingerprint in one["fingerprints"]:
                found[fingerprint].append(told)
    return dict(found)


def read_ending(clusters: Iterable[Cluster]) -> list[DecidingObject]:
    """The objects of these clusters that have an end, of every kind."""
    rows = DecidingObject.objects.filter(kind__in=(FindingException.kind, Deputy.kind), gone_at=None)
    return list(rows.filter(cluster__in=list(clusters)).select_related("cluster"))


def ending_exceptions(rows: Iterable[DecidingObject], now: datetime) -> list[EndingException]:
    """Those that count now, as the clusters were told last, and end within SOON; the first that ends stands first."""
    found = []
    for row in rows:
        known = FindingException.read(row.spec)[0] if row.kind == FindingException.kind else None
        is_ready = any(one.get("status") == "True" for one in row.status.get("conditions") or ())
        if known and is_ready and now < known.expires <= now + SOON:
            found.append(EndingException(row, known))
    return sorted(found, key=lambda one: (one.exception.expires, one.row.pk))
