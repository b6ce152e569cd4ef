"""The form that decides on a request, as it stands on every page that lists findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User

from approvals.lifecycle import State
from approvals.models import Report, Request, Review
from approvals.web import standing
from approvals.web.sight import ShownFinding, ShownReport
from approvals.web.standing import Standing, Tick
from approvals.web.waivers import ShownWaiver, Waivers


@dataclass(frozen=True, slots=True)
class Wrong:
    """Why a decision was not taken, and what was written: `waives` by fingerprint."""

    words: str
    reason: str = ""
    waives: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Form:
    """What the viewer may do here. `ticks` are what an approval has to name."""

    standing: Standing
    waivers: Waivers | None
    ticks: list[Tick]
    is_serious: bool
    wrong: Wrong | None

    def facts(self, shown: Iterable[ShownFinding], sight: ShownReport | None) -> dict[str, Any]:
        """What the template needs, on a page that shows these findings."""
        carried = self._carried({one.record["fingerprint"] for one in shown}, sight) if sight else []
        return {
            "standing": self.standing,
            "waivers": self.waivers,
            "ticks": self.ticks,
            "is_serious": self.is_serious,
            "wrong": self.wrong,
            "carried": carried,
        }

    def _carried(self, shown: set[str], sight: ShownReport) -> list[tuple[ShownFinding, ShownWaiver]]:
        """What was written at findings that this page does not show; nothing of it is lost."""
        if self.waivers is None:
            return []
        found = [sight.finding(record) for record in self.waivers.written_at(beside=shown)]
        pairs = [(one, self.waivers.of(one)) for one in found]
        return [(one, waiver) for one, waiver in pairs if waiver.field]


def form_of(
    user: User, request: Request, report: Report | None, reviews: Iterable[Review], wrong: Wrong | None = None
) -> Form:
    """The form for one viewer: Kubernetes is asked by the very checks that a decision goes through."""
    reviews = list(reviews)
    stands = standing.standing(user, request, reviews)
    waivers = Waivers(report, reviews, wrong.waives if wrong else {}) if report else None
    if waivers:
        waivers.offer(user, request, stands)
    return Form(
        stands,
        waivers,
        standing.ticks(request) if request.state == State.IN_REVIEW else [],
        standing.is_serious(report.worst) if report else False,
        wrong,
    )
