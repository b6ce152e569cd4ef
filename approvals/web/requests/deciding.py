"""The form that decides on a request, as it stands on every page that lists findings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest

from approvals.access import Caller
from approvals.lifecycle import State
from approvals.models import Report, Request, Review
from approvals.web.requests import viewer_options
from approvals.web.requests.shown import ShownFinding, ShownReport
from approvals.web.requests.viewer_options import Tick, ViewerOptions
from approvals.web.requests.waivers import ShownWaiver, Waivers, typed_in


@dataclass(frozen=True, slots=True)
class Written:
    """What stands written in the form: `waives` are reasons by fingerprint. `errors` say by field why it was refused;
    "" has what is wrong with no single field.

    `lacks_reason` where it is a denial that says nothing: it may be sent once more as it is. `typed` is the name that
    confirms a serious approval.
    """

    reason: str
    acknowledges: Collection[str]
    waives: Mapping[str, str]
    errors: Mapping[str, str] = field(default_factory=dict)
    lacks_reason: bool = False
    typed: str = ""

    @property
    def wrong(self) -> str:
        """What is wrong with no field that the form shows."""
        return " ".join(words for name, words in self.errors.items() if name not in ("reason", "typed"))


def written_in(http: HttpRequest, errors: Mapping[str, str] | None = None, *, lacks_reason: bool = False) -> Written:
    """The whole form, whatever button sent it."""
    waives = {one.fingerprint: one.reason for one in typed_in(http.POST)}
    reason = http.POST.get("reason", "").strip()
    typed = http.POST.get("typed", "")
    return Written(reason, http.POST.getlist("acknowledges"), waives, errors or {}, lacks_reason, typed)


def _written_by(given: Review, ticks: list[Tick]) -> Written:
    """The form as it was sent with the viewer's own review, to be given again."""
    waives = {one["fingerprint"]: one["reason"] for one in given.waives}
    return Written(given.reason, viewer_options.ticked_by(given, ticks), waives)


@dataclass(frozen=True, slots=True)
class DecisionForm:
    """What the viewer may do here. `ticks` are what an approval must name."""

    options: ViewerOptions
    waivers: Waivers | None
    ticks: list[Tick]
    is_serious: bool
    written: Written | None

    def facts(self, shown: Iterable[ShownFinding], sight: ShownReport | None) -> dict[str, Any]:
        """What the template needs, on a page that shows these findings."""
        carried = self._carried({one.record["fingerprint"] for one in shown}, sight) if sight else []
        return {
            "options": self.options,
            "waivers": self.waivers,
            "ticks": self.ticks,
            "is_serious": self.is_serious,
            "written": self.written,
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
    caller: Caller, request: Request, report: Report | None, reviews: Iterable[Review], written: Written | None = None
) -> DecisionForm:
    """The form for one viewer: Kubernetes is asked by the very checks that a decision goes through."""
    reviews = [review for review in reviews if not review.is_replaced]
    stands = viewer_options.options_of(caller, request, report, reviews)
    ticks = viewer_options.ticks(request, report) if request.state == State.IN_REVIEW else []
    if stands.given and written is None:
        written = _written_by(stands.given, ticks)
    waivers = Waivers(report, reviews, written.waives if written else {}) if report else None
    if waivers:
        waivers.offer(caller, request, stands)
    return DecisionForm(
        stands,
        waivers,
        ticks,
        viewer_options.is_serious(report.worst) if report else False,
        written,
    )
