"""One file of HTML of a report, to print or to send on, with nothing in it that its reader may not see (S09)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from approvals.access import Caller
from approvals.access.sight import Record, ReportSight, Sight, exists, hidden_action, reference, withheld
from approvals.clock import database_now
from approvals.models import Cluster, Report, Request
from approvals.selectors.acceptances import acceptances_of
from approvals.web.requests.sources import shown_sources
from provisioner.review.base.difference import mask_secret
from provisioner.review.base.record import from_record
from provisioner.review.output.headline import without_withholding
from provisioner.review.output.html import as_html
from provisioner.values import GroupKind, ObjectRef, PlannedAction
from provisioner.values import Report as ReportValue

# Kubernetes is asked at most this often for one file.
MAX_ASKED = 300


def shared_html(caller: Caller, request: Request, report: Report) -> str:
    """The report as one page that needs nothing else, as far as this caller may see it.

    A hidden object keeps its name. Of a finding about it the evidence is left out, and of one about a hidden Secret
    the words as well, which would tell how the stored value differs. Raises BadRecord for a report of another version.
    """
    shown, hidden = visible_report(caller, request.deployment.cluster, report)
    deployment = request.deployment
    sources = [source.words for source in shown_sources(request)]
    title = f"{deployment.name} request {request.number} on {deployment.cluster.name}, round {report.round}"
    reviews = request.reviews.select_related("replaced_by").exclude(waives=[])
    accepted = acceptances_of(request, report.round, reviews, database_now())
    told = {fingerprint: [one.words for one in given] for fingerprint, given in accepted.items()}
    return as_html(shown, title=title, hidden=hidden, notes=told, sources=sources)


def visible_report(
    caller: Caller, cluster: Cluster, report: Report, *, kinds: Collection[GroupKind] = ()
) -> tuple[ReportValue, frozenset[ObjectRef]]:
    """The report as far as this caller may see it, and the objects that are hidden from them.

    Each finding has its own words where the caller may see all that it is made of. Only objects of these `kinds` are
    asked about where any is named: nothing of others may then be shown.
    """
    body: Mapping[str, Any] = report.body
    sight = ReportSight(Sight(caller, cluster, limit=MAX_ASKED), body)

    def is_asked(ref: Record | None) -> bool:
        return not kinds or (ref is not None and reference(ref).group_kind in kinds)

    def is_asked_about(finding: Record) -> bool:
        if finding["ref"]:
            return is_asked(finding["ref"])
        sources = finding.get("sources", ())
        return not kinds or (bool(sources) and all(map(is_asked, sources)))

    actions = body["plan"]["actions"]
    hidden = frozenset(
        reference(action["ref"])
        for action in actions
        if is_asked(action["ref"]) and exists(action) and not sight.may_see(action["ref"])
    )
    seen = {
        **body,
        "findings": [_finding(sight, found, is_asked_about(found)) for found in body["findings"]],
        "private": [] if kinds else sight.private(body),
        "plan": {**body["plan"], "actions": [_action(sight, action, is_asked(action["ref"])) for action in actions]},
    }
    whole = from_record(seen)
    planned = tuple(_masked(action) for action in whole.plan.actions)
    findings = tuple(map(without_withholding, whole.findings))
    return replace(whole, plan=replace(whole.plan, actions=planned), findings=findings), hidden


def _finding(sight: ReportSight, finding: Record, is_asked: bool) -> Record:
    """Where nobody asked about its object, only what is said of no live one."""
    if is_asked:
        return sight.finding(finding)
    is_telling = sight.is_live(finding) or finding["serverWords"] or finding.get("sources")
    return withheld(finding) if is_telling else finding


def _action(sight: ReportSight, planned: Record, is_asked: bool) -> Record:
    if is_asked:
        shown = sight.action(planned)
    else:
        shown = hidden_action(planned) if exists(planned) else sight.new_object(planned)
        shown = {**shown, "serverWords": "", "warnings": []}
    # Of a hidden object this page says only that it exists, so that what is planned need not be hidden from it.
    return {**shown, "action": planned["action"]}


def _masked(planned: PlannedAction) -> PlannedAction:
    """Secrets are masked once more, whatever the writer of the report did."""
    before, after = (mask_secret(dict(body)) if body else body for body in (planned.before, planned.after))
    return replace(planned, before=before, after=after)
