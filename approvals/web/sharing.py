"""One file of HTML of a report, to print or to send on, with nothing in it that its reader may not see (S09)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.contrib.auth.models import User

from approvals.access.sight import EXISTS, Sight, reference
from approvals.models import Cluster, Report, Request
from provisioner.review.as_html import as_html
from provisioner.review.difference import mask_secret
from provisioner.review.record import from_record
from provisioner.values import Finding, ObjectRef, PlannedAction

# Kubernetes is asked at most this often for one file.
MAX_ASKED = 300
_SECRET = ("", "Secret")


def shared_html(user: User, request: Request, report: Report) -> str:
    """The report as one page that needs nothing else, as far as this user may see it.

    A hidden object keeps its name. Of a finding about it the evidence is left out, and of one about a hidden Secret
    the words as well, which would tell how the stored value differs. Raises BadRecord for a report of another version.
    """
    whole = from_record(report.body)
    hidden = _hidden(user, request.deployment.cluster, report.body)
    identities = {ref.identity for ref in hidden}
    findings = tuple(
        _without_values(one) if one.ref and one.ref.identity in identities else one for one in whole.findings
    )
    actions = tuple(_masked(one) for one in whole.plan.actions)
    shown = replace(whole, findings=findings, plan=replace(whole.plan, actions=actions))
    deployment = request.deployment
    title = f"{deployment.name} request {request.number} on {deployment.cluster.name}, round {report.round}"
    return as_html(shown, title=title, hidden=hidden, notes=_accepted(request, report))


def _accepted(request: Request, report: Report) -> dict[str, list[str]]:
    """Who accepted which finding of this report, when and why."""
    told: dict[str, list[str]] = {}
    for review in request.reviews.filter(round=report.round).exclude(waives=[]):
        for one in review.waives:
            words = f"Accepted by {review.username} on {review.given_at:%Y-%m-%d %H:%M} UTC: {one['reason']}"
            told.setdefault(one["fingerprint"], []).append(words)
    return told


def _hidden(user: User, cluster: Cluster, body: Mapping[str, Any]) -> frozenset[ObjectRef]:
    """Live objects of the plan that this user may not get."""
    sight = Sight(user, cluster, limit=MAX_ASKED)
    live = (reference(one["ref"]) for one in body["plan"]["actions"] if one["before"] is not None)
    return frozenset(ref for ref in live if not sight.may_see(ref))


def _without_values(finding: Finding) -> Finding:
    """The `hidden` evidence says why nothing else is there."""
    unseen = replace(finding, evidence={"hidden": EXISTS})
    is_secret = finding.ref is not None and (finding.ref.group, finding.ref.kind) == _SECRET
    return replace(unseen, rule="", message=EXISTS, path=()) if is_secret else unseen


def _masked(planned: PlannedAction) -> PlannedAction:
    """Secrets are masked once more, whatever the writer of the report did."""
    before, after = (mask_secret(dict(one)) if one else one for one in (planned.before, planned.after))
    return replace(planned, before=before, after=after)
