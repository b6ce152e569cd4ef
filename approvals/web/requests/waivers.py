"""Accepting findings on the request page: what the viewer may accept, and what reviewers accepted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import QueryDict

from approvals.access import Caller
from approvals.errors import Refused
from approvals.models import Report, Request, Review
from approvals.services.waivers import Waiver, check_right, why_not
from approvals.web.requests.shown import ShownFinding
from approvals.web.requests.viewer_options import ViewerOptions

# The field in which a finding is accepted is named after it; left empty, it is not. One for a group names each.
FIELD = "waive:"
AND = ","
MAY = (
    "You may accept a finding, so that guards ignore it: open the finding and write a reason. It counts with your"
    " approval of this request."
)


@dataclass(frozen=True, slots=True)
class AcceptedFinding:
    """A reviewer's waiver of one finding; `what` names the finding for the history of reviews."""

    by: str
    at: datetime
    reason: str
    what: str = ""


@dataclass(frozen=True, slots=True)
class ShownWaiver:
    """`field` is the input's name, "" where the finding is not offered; then `words` may say why."""

    accepted: list[AcceptedFinding]
    field: str
    words: str
    typed: str


@dataclass(frozen=True, slots=True)
class GroupWaiver:
    """One field that accepts `count` findings, each of them by its fingerprint."""

    field: str
    count: int
    typed: str


class Waivers:
    """The waivers of one page. `words` say whether the viewer `may` accept findings; `rule` would allow it."""

    def __init__(self, report: Report, reviews: Iterable[Review], typed: Mapping[str, str]) -> None:
        self.words = self.rule = ""
        self._typed = typed
        self._records = {one["fingerprint"]: one for one in report.body["findings"]}
        self._round = report.round
        self._reviews = [review for review in reviews if review.waives and review.round == report.round]
        self.may = False

    def offer(self, caller: Caller, request: Request, options: ViewerOptions) -> None:
        """Let the viewer accept findings that can be, if Kubernetes lets them; else say why not."""
        if not (options.may_approve and options.identity and self._records and self._round == request.round):
            return
        try:
            check_right(caller, options.identity, request)
        except Refused as refusal:
            self.words, self.rule = f"You cannot accept findings: {refusal}", str(refusal.facts.get("rule", ""))
            return
        self.words, self.may = MAY, True

    def of(self, finding: ShownFinding) -> ShownWaiver:
        fingerprint = finding.record["fingerprint"]
        accepted = [
            AcceptedFinding(review.username, review.given_at, one["reason"])
            for review in self._reviews
            for one in review.waives
            if one["fingerprint"] == fingerprint
        ]
        words = _why_not_offered(finding) if self.may else ""
        field = FIELD + fingerprint if self.may and not words else ""
        return ShownWaiver(accepted, field, words, self._typed.get(fingerprint, ""))

    def of_group(self, findings: Iterable[ShownFinding]) -> GroupWaiver:
        """One field for those of the findings that can be accepted; what was typed for all of them stands in it."""
        names = [one.field.removeprefix(FIELD) for one in map(self.of, findings) if one.field]
        typed = {self._typed.get(name, "") for name in names}
        return GroupWaiver(FIELD + AND.join(names), len(names), typed.pop() if len(typed) == 1 else "")

    def given_in(self, review: Review) -> list[AcceptedFinding]:
        """What a review accepts, for the history; of another round's report only the fingerprints are at hand."""
        known = self._records if review.round == self._round else {}
        return [
            AcceptedFinding(review.username, review.given_at, one["reason"], _name(known.get(one["fingerprint"]), one))
            for one in review.waives
        ]

    def written_at(self, *, beside: Collection[str]) -> list[Mapping[str, Any]]:
        """The findings at which something was written, but for these."""
        return [self._records[one] for one in self._typed if one in self._records and one not in beside]


def _why_not_offered(finding: ShownFinding) -> str:
    return why_not(finding.record) if finding.record["rule"] else "you may not see it"


def typed_in(form: QueryDict) -> list[Waiver]:
    """The findings for whose acceptance a reason was written; what was written at one counts before its group's."""
    fields = ((name, str(value).replace("\r\n", "\n").strip()) for name, value in form.items())
    written = [(name.removeprefix(FIELD), reason) for name, reason in fields if name.startswith(FIELD) and reason]
    of_groups = {one: reason for name, reason in written if AND in name for one in name.split(AND)}
    alone = {name: reason for name, reason in written if AND not in name}
    return [Waiver(name, reason) for name, reason in {**of_groups, **alone}.items()]


def _name(record: Mapping[str, Any] | None, waiver: Mapping[str, str]) -> str:
    """The rule of the finding, but not of one about a Secret: that alone would tell of its values (S09)."""
    if record is None or ((ref := record["ref"]) and (ref["group"], ref["kind"]) == ("", "Secret")):
        return waiver["fingerprint"][:12]
    return str(record["rule"])
