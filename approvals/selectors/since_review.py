"""What differs since somebody reviewed: between the round or request that they decided on, and the present one.

What the viewer may not get is left out whole: neither that it differs nor how (security-rules.md S09).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from django.contrib.auth.models import User

from approvals.lifecycle import OPEN, State
from approvals.models import REQUEST_CHANGES, Report, Request, Review
from provisioner.values import Severity

Record = Mapping[str, Any]
# So many are named; of the others how many there are.
SHOWN = 10
# So few differences need no fold.
FEW = 5


class BodySight(Protocol):
    """What one viewer may see of one report, as access.sight.ReportSight says."""

    def why_hidden(self, finding: Record, /) -> str: ...

    def action(self, planned: Record, /) -> Record: ...


@dataclass(frozen=True, slots=True)
class FindingChange:
    """`change` is new, worse or gone; `was` the severity before, "" where there was none."""

    change: str
    severity: str
    rule: str
    message: str
    fingerprint: str
    was: str = ""

    @property
    def is_loud(self) -> bool:
        """What came is told if it is notable, what went if it was dangerous."""
        least = Severity.DANGEROUS if self.change == "gone" else Severity.NOTABLE
        return Severity(self.severity).is_at_least(least)


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """`was` and `now` are actions of the plans, "" where it was in none; `position` is that in the present plan.

    The same action in both: the object's content differs.
    """

    object: str
    was: str
    now: str
    position: int | None


@dataclass(frozen=True, slots=True)
class Differences:
    """What differs between two reports, what is loud first, as one viewer may know it; `more_…` are not named."""

    findings: tuple[FindingChange, ...] = ()
    objects: tuple[ObjectChange, ...] = ()
    more_findings: int = 0
    more_objects: int = 0

    @property
    def is_empty(self) -> bool:
        return not self.findings and not self.objects

    @property
    def is_short(self) -> bool:
        return self.quiet_count + self.object_count <= FEW

    @property
    def loud(self) -> list[FindingChange]:
        return [finding for finding in self.findings if finding.is_loud]

    @property
    def quiet(self) -> list[FindingChange]:
        return [finding for finding in self.findings if not finding.is_loud]

    @property
    def quiet_count(self) -> int:
        return len(self.quiet) + self.more_findings

    @property
    def object_count(self) -> int:
        return len(self.objects) + self.more_objects


@dataclass(frozen=True, slots=True)
class SinceReview:
    """The viewer's last review that is of another round or request than the present one, and what differs since.

    `why` says why it is of another one. `is_blocking`: it requests changes, and holds this round back.
    """

    decision: str
    reason: str
    given_at: datetime
    request: Request
    round: int
    why: str
    is_blocking: bool
    differences: Differences


def since_your_review(*, request: Request, user: User, sight_of: Callable[[Record], BodySight]) -> SinceReview | None:
    """None where they have not reviewed before, have decided on the present round, or nothing is open."""
    if request.state not in OPEN:
        return None
    own = Review.objects.counted().filter(user=user).select_related("request")
    last = own.filter(request=request).order_by("-round", "-pk").first() or _of_earlier(request, own)
    if last is None or (last.request_id == request.pk and last.round == request.round and request.state != State.STALE):
        return None
    before = Report.objects.filter(request=last.request_id, round=last.round).first()
    now = Report.objects.filter(request=request, round=request.round).first()
    is_new_round = last.request_id != request.pk or last.round != request.round
    told = differences(before.body, now.body, sight_of) if before and now and is_new_round else Differences()
    standing = Review.objects.judged(request).filter(pk=last.pk, decision=REQUEST_CHANGES, dismissals=None)
    return SinceReview(
        decision=last.decision,
        reason=last.reason,
        given_at=last.given_at,
        request=last.request,
        round=last.round,
        why=_why(request, last),
        is_blocking=standing.exists(),
        differences=told,
    )


def differences(before: Record, now: Record, sight_of: Callable[[Record], BodySight]) -> Differences:
    """Between the bodies of two reports."""
    old, new = sight_of(before), sight_of(now)
    findings = sorted(_findings(_seen(before, old), _seen(now, new)), key=lambda one: not one.is_loud)
    objects = _objects(_actions(before, old), _actions(now, new))
    return Differences(tuple(findings[:SHOWN]), tuple(objects[:SHOWN]), len(findings[SHOWN:]), len(objects[SHOWN:]))


def _of_earlier(request: Request, own: Any) -> Review | None:
    """Their last review of the request that this one replaced, or of those that were replaced before; of none that was
    applied, for that is what runs."""
    earlier = own.filter(request__deployment=request.deployment_id, request__number__lt=request.number)
    last: Review | None = earlier.order_by("-request__number", "-round", "-pk").first()
    if last is None:
        return None
    between = Request.objects.filter(
        deployment=request.deployment_id,
        number__gte=last.request.number,
        number__lt=request.number,
        state=State.APPLIED,
    )
    return None if between.exists() else last


def _why(request: Request, last: Review) -> str:
    if last.request_id != request.pk:
        return f"it was about request {last.request.number}, and this one has other content, options or authors"
    ended = request.voided_rounds.filter(round__gte=last.round).order_by("round").first()
    return ended.words if ended else "the request was reported again"


def _seen(body: Record, sight: BodySight) -> list[Record]:
    return [finding for finding in body["findings"] if not sight.why_hidden(finding)]


def _findings(before: Sequence[Record], now: Sequence[Record]) -> list[FindingChange]:
    """By fingerprint; one that says more of the same place than before is worse, not new."""
    old, new = ({finding["fingerprint"]: finding for finding in each} for each in (before, now))
    places = {_finding_key(finding): finding for finding in before}
    found = []
    for name, finding in new.items():
        was = old.get(name) or places.get(_finding_key(finding))
        if was is None:
            found.append(_change("new", finding))
        elif Severity(finding["severity"]).rank < Severity(was["severity"]).rank:
            found.append(_change("worse", finding, was["severity"]))
    still = {_finding_key(finding) for finding in now}
    found += [
        _change("gone", finding)
        for name, finding in old.items()
        if name not in new and _finding_key(finding) not in still
    ]
    order = {"worse": 0, "new": 1, "gone": 2}
    return sorted(found, key=lambda one: (order[one.change], Severity(one.severity).rank, one.message))


def _change(change: str, one: Record, was: str = "") -> FindingChange:
    return FindingChange(change, one["severity"], one["rule"], one["message"], one["fingerprint"], was)


def _finding_key(finding: Record) -> tuple[object, ...]:
    return (finding["rule"], _ref_key(finding["ref"] or {}), tuple(finding["path"]))


def _actions(body: Record, sight: BodySight) -> dict[tuple[str, ...], tuple[int, Record]]:
    """What the viewer may know of the plan, by object."""
    return {
        _ref_key(action["ref"]): (position, sight.action(action))
        for position, action in enumerate(body["plan"]["actions"])
    }


def _objects(
    before: Mapping[tuple[str, ...], tuple[int, Record]], now: Mapping[tuple[str, ...], tuple[int, Record]]
) -> list[ObjectChange]:
    found = []
    for key in sorted(before.keys() | now.keys()):
        (_, old), (position, new) = before.get(key, (0, {})), now.get(key, (None, {}))
        if old.get("hidden") or new.get("hidden"):
            continue  # also where it could be seen in the other plan, because the cluster did not hold it yet
        said = (str(old.get("action", "")), str(new.get("action", "")))
        if said[0] != said[1] or old.get("after") != new.get("after"):
            found.append(ObjectChange(_object_name(key), *said, position))
    return [change for change in found if {change.was, change.now} - {"", "none"}]


def _ref_key(ref: Record) -> tuple[str, ...]:
    return tuple(str(ref.get(part) or "") for part in ("group", "kind", "namespace", "name"))


def _object_name(key: tuple[str, ...]) -> str:
    group, kind, namespace, name = key
    return f"{f'{kind}.{group}' if group else kind} {f'{namespace}/{name}' if namespace else name}"
