"""Deciding on a change set: groups of members that are alike, and one decision that is a review of each.

Who decides on a group sees the report of one member and not those of the others. So only members are alike of which
this reader may know all that is compared; nobody learns from a group how a hidden object differs (S09, S27).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import F

from approvals import access
from approvals.access import Caller
from approvals.access.sight import (
    exists,
    hidden_action,
    is_in_the_way,
    is_of_stored_secret,
    is_private,
    is_secret,
    new_objects,
    withheld,
)
from approvals.errors import InvalidInput, NotFound, Refused, UnlikeMember
from approvals.lifecycle import State
from approvals.models import Cluster, Finding, Report, Request
from approvals.policy import OWN_RULES_PREFIX
from approvals.selectors.pages import is_quiet
from approvals.selectors.sets import SetMember, members_of
from approvals.selectors.since_review import Differences, differences
from approvals.services.reviews import review
from provisioner.values import Action, ObjectRef, Severity

# So many members are decided at once, as of the inbox; the page offers the others after that.
MAX_AT_ONCE = 50
MAX_QUESTIONS = 500
# Of so many groups the reports are opened; of each so many findings are shown.
MAX_GROUPS = 10
MAX_FINDINGS = 200
OF_SECRET = "about a Secret: open the request to see what you may see of it"  # noqa: S105 - words, and no secret
HIDDEN = "parts of it are hidden from you, so nobody can tell you whether it is like the others"
UNKNOWN = "its report was made before Pratique compared the members of sets: ask for a new report to compare it"
Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SetGroup:
    """Members that are alike, by cluster and name."""

    members: tuple[SetMember, ...]

    @property
    def undecided(self) -> list[SetMember]:
        """Those on which this reader has not decided yet."""
        return [member for member in self.members if not member.has_decided]

    @property
    def shown(self) -> SetMember:
        """The member whose report stands for all: any of them says the same."""
        return next(iter(self.undecided), self.members[0])


@dataclass(frozen=True, slots=True)
class AloneMember:
    """A member in review that is compared with no other, and why."""

    member: SetMember
    why: str


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """A set as one reader may see it. The first group is the reference; `settled` is what is not in review."""

    name: str
    groups: tuple[SetGroup, ...]
    alone: tuple[AloneMember, ...]
    settled: tuple[SetMember, ...]

    @property
    def in_review(self) -> list[SetMember]:
        grouped = [member for group in self.groups for member in group.members]
        return [*grouped, *(one.member for one in self.alone)]

    @property
    def member_count(self) -> int:
        return len(self.in_review) + len(self.settled)


@dataclass(frozen=True, slots=True)
class FindingLine:
    """Findings that say the same."""

    severity: str
    rule: str
    message: str
    count: int


@dataclass(frozen=True, slots=True)
class GroupReport:
    """What the members of a group have in common: every finding that is new and not safe, and how many others.

    `differences` are to the reference, None of the reference itself. `why_not` says why an approval needs each
    request's own page.
    """

    group: SetGroup
    body: Record
    worst: str
    findings: tuple[FindingLine, ...]
    quiet_count: int
    actions: tuple[tuple[str, int], ...]
    differences: Differences | None
    why_not: str


@dataclass(frozen=True, slots=True)
class MemberResult:
    """`refusal` is "" and `code` too where the review was recorded."""

    request: Request
    cluster: str
    refusal: str = ""
    code: str = ""

    @property
    def is_recorded(self) -> bool:
        return not self.refusal


def read_set(*, by: Caller, clusters: Collection[Cluster], name: str) -> ChangeSet:
    """Raises NotFound where nothing on these clusters belongs to a set of this name."""
    members = members_of(name, clusters=clusters, user=by.user)
    if not members:
        raise NotFound(f"there is no set {name[:63]} on the clusters that you can read")
    waiting = [member for member in members if member.request.state == State.IN_REVIEW]
    seen = _whole_for(by, waiting)
    groups, alone = defaultdict[str, list[SetMember]](list), list[AloneMember]()
    for member in waiting:
        if member.request.pk in seen and member.digest:
            groups[member.digest].append(member)
        else:
            alone.append(AloneMember(member, HIDDEN if member.digest else UNKNOWN))
    # The largest is the reference, of equal ones the oldest: nobody who adds a member says which.
    ordered = sorted(groups.values(), key=lambda one: (-len(one), min(each.request.pk for each in one)))
    settled = tuple(member for member in members if member.request.state != State.IN_REVIEW)
    return ChangeSet(name, tuple(SetGroup(tuple(one)) for one in ordered), tuple(alone), settled)


def _whole_for(by: Caller, members: Sequence[SetMember]) -> set[int]:
    """The keys of those requests of which this reader may get every object that is compared.

    Kubernetes is asked about kinds, then about namespaces, MAX_QUESTIONS at most: what is left counts as hidden.
    """
    needed = {(member.cluster, ObjectRef(*need, "")) for member in members for need in member.needs}
    wide = {(cluster, _kind_of(ref)) for cluster, ref in needed}
    order = sorted(wide, key=str)[:MAX_QUESTIONS]
    answered = access.may_see_each(by, order)
    left = [one for one in needed if one[1].namespace and (one[0], _kind_of(one[1])) not in answered]
    answered |= access.may_see_each(by, sorted(left, key=str)[: MAX_QUESTIONS - len(order)])
    return {
        member.request.pk
        for member in members
        if all(
            {(member.cluster, ref), (member.cluster, _kind_of(ref))} & answered
            for ref in (ObjectRef(*need, "") for need in member.needs)
        )
    }


def _kind_of(ref: ObjectRef) -> ObjectRef:
    return ObjectRef(ref.group, ref.version, ref.kind, "", "")


def read_groups(found: ChangeSet) -> list[GroupReport]:
    """The reports of the first MAX_GROUPS groups: of each that of one member is read."""
    reports: list[GroupReport] = []
    for group in found.groups[:MAX_GROUPS]:
        reference = reports[0].body if reports else None
        if report := _read_group(group, group.shown.request, reference):  # else it moved on meanwhile
            reports.append(report)
    return reports


def read_group(found: ChangeSet, shown: UUID) -> GroupReport | None:
    """The group that this request belongs to, by the report of this request; None where it is in no group."""
    for group in found.groups:
        if request := next((one.request for one in group.members if one.request.uid == shown), None):
            return _read_group(group, request)
    return None


def _read_group(group: SetGroup, shown: Request, reference: Record | None = None) -> GroupReport | None:
    report = Report.objects.filter(request=shown, round=shown.round).first()
    if report is None:
        return None
    body: Record = report.body
    sight = _CommonSight(body)
    loud = [sight.finding(finding) for finding in body["findings"] if not is_quiet(finding)]
    lines = Counter((each["severity"], each["rule"], each["message"]) for each in loud)
    actions = Counter(str(sight.action(action)["action"]) for action in body["plan"]["actions"])
    return GroupReport(
        group=group,
        body=body,
        worst=report.worst,
        findings=tuple(FindingLine(*said, count) for said, count in lines.items()),
        quiet_count=len(body["findings"]) - len(loud),
        actions=tuple(sorted((name, count) for name, count in actions.items() if name != Action.NONE)),
        differences=differences(reference, body, _CommonSight) if reference else None,
        why_not=_why_not_together(body, len(lines)),
    )


def _why_not_together(body: Record, lines: int) -> str:
    """Why members like this one are approved on their own pages only; "" where one approval may cover all of them."""
    actions = body["plan"]["actions"]
    if any(finding["rule"].startswith(OWN_RULES_PREFIX) for finding in body["findings"]):
        return "it affects Pratique itself"
    if any(map(is_in_the_way, actions)):
        return "objects of someone else are in its way"
    if any(map(is_private, actions)):
        return "it adopts objects of someone else"
    limit = Severity(settings.PRATIQUE["UNSEEN_SEVERITY"])
    new = new_objects(body)
    if any(
        finding["isNew"] and is_of_stored_secret(finding, new) and Severity(finding["severity"]).rank < limit.rank
        for finding in body["findings"]
    ):
        return f"a finding about a Secret is worse than {limit}, and this page does not show it"
    if lines > MAX_FINDINGS:
        return f"it has more than {MAX_FINDINGS} findings, which this page does not show"
    return ""


class _CommonSight:
    """What members that are alike have in common for a reader who may get their objects: nothing of Secrets that
    clusters hold (S38), and no metadata or status, which each cluster writes."""

    def __init__(self, body: Record) -> None:
        self._new = new_objects(body)

    def why_hidden(self, finding: Record) -> str:
        return OF_SECRET if is_of_stored_secret(finding, self._new) else ""

    def action(self, planned: Record) -> Record:
        if is_secret(planned["ref"]) or is_private(planned):
            return hidden_action(planned) if exists(planned) else {**planned, "after": None}
        after = planned["after"] or {}
        return {**planned, "after": {name: after[name] for name in after if name not in ("metadata", "status")}}

    def finding(self, finding: Record) -> Record:
        words = self.why_hidden(finding)
        return {**withheld(finding, words), "rule": "", "message": words} if words else finding


def review_set(
    *,
    by: Caller,
    clusters: Collection[Cluster],
    name: str,
    decision: str,
    shown: UUID,
    members: Mapping[UUID, str],
    reason: str,
    channel: str,
    acknowledges: Sequence[str] = (),
) -> list[MemberResult]:
    """Record one review for each of `members`, bound to the subject digest that is given with it; each member is asked
    about separately, and what is refused is refused for that member alone.

    An approval covers members that are alike, to this reader, with the one whose report was `shown`, which has to be
    among them and unchanged. A denial needs a reason. Raises UnlikeMember, InvalidInput and NotFound.
    """
    if decision not in ("Approve", "Deny"):
        raise InvalidInput("the decision must be Approve or Deny", field="decision")
    if decision == "Deny" and not reason.strip():
        raise InvalidInput("give a reason for the denials, so that the requesters know what to change", field="reason")
    if not members or len(members) > MAX_AT_ONCE:
        raise InvalidInput(f"{len(members)} members are named; name 1 to {MAX_AT_ONCE}", field="members")
    if shown not in members:
        raise InvalidInput("the member whose report was shown is not among the members", field="shown")
    found = read_set(by=by, clusters=clusters, name=name)
    known = {member.request.uid: member for member in (*found.in_review, *found.settled)}
    refusals = _unlike(found, shown, members) if decision == "Approve" else {}
    results = []
    for uid, digest in members.items():
        member = known.get(uid)
        if member is None:
            continue  # of a request that this reader may not read nothing is told (S02)
        request, cluster = member.request, member.cluster.name
        if uid in refusals:
            results.append(MemberResult(request, cluster, refusals[uid], UnlikeMember.code))
            continue
        try:
            review(
                by=by,
                request_id=request.pk,
                decision=decision,
                subject_digest=digest,
                reason=reason,
                channel=channel,
                acknowledges=acknowledges,
            )
        except Refused as refusal:
            results.append(MemberResult(request, cluster, str(refusal), refusal.code))
        else:
            results.append(MemberResult(request, cluster))
    return results


def _unlike(found: ChangeSet, shown: UUID, members: Mapping[UUID, str]) -> dict[UUID, str]:
    """Why an approval that goes by the report of `shown` does not cover some of the members, by uid."""
    report = read_group(found, shown)
    if report is None:
        raise UnlikeMember("the request whose report was shown is not in a group of the set: open the set again")
    alike = {member.request.uid: member.request for member in report.group.members}
    if alike[shown].subject_digest != members[shown]:
        raise UnlikeMember("the request whose report was shown has changed: open the set again")
    if report.why_not:
        raise UnlikeMember(f"approve each request on its own page: {report.why_not}")
    # Findings about Secrets are not compared: which rules they meet is looked up of each member (S22).
    own = Finding.objects.filter(
        report__request__in=[alike[uid].pk for uid in members if uid in alike],
        report__round=F("report__request__round"),
        rule__startswith=OWN_RULES_PREFIX,
    )
    touching = set(own.values_list("report__request__uid", flat=True))
    why = {uid: "it is not like the request whose report was shown" for uid in members if uid not in alike}
    return why | dict.fromkeys(touching, "review it on its own page: it affects Pratique itself")
