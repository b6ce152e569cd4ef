"""A deletion that nobody has to review: it takes no data, and the operator allows it (security.md S15)."""

from __future__ import annotations

from django.conf import settings

from approvals.models import Request
from approvals.policy import OWN_RULES_PREFIX, Ballot, holdings
from approvals.steps.inventory import installer_of
from approvals.steps.prepare import running_content
from provisioner.cluster.api import Cluster as Api
from provisioner.cluster.dependents import dependents
from provisioner.review.record import from_record
from provisioner.values import Action, Plan, Severity

WORDS = "it holds no data, and PRATIQUE_UNREVIEWED_DELETIONS lets it go without a review"
# Enough by itself, as a grant is. A Deny and guards count all the same, and so does that nobody knows who asked (S07).
ENOUGH = Ballot("Approve", is_grant=True, counts=True, may_use_account=False)


def without_review(request: Request, planned: Plan | None = None) -> list[Ballot]:
    """[ENOUGH] for a deletion that takes no data, where the operator allows it by now; else [].

    `planned` is what it would take by now, without it what its report says.
    """
    if not settings.PRATIQUE["UNREVIEWED_DELETIONS"] or request.purpose != Request.Purpose.DELETE:
        return []
    found = from_record(request.reports.get(round=request.round).body)
    if any(one.severity is Severity.UNKNOWN or one.rule.startswith(OWN_RULES_PREFIX) for one in found.findings):
        return []
    content = running_content(request)
    running = {one.ref.identity: one.body for one in (content.manifests if content else ())}
    return [] if holdings((planned or found.plan).actions, running) else [ENOUGH]


def goes_along(request: Request, api: Api, planned: Plan) -> list[str]:
    """What else a deletion would take that somebody may have put there, and what nobody could look at, in words."""
    going = [(one.ref, one.uid) for one in planned.actions if one.action is Action.DELETE and one.before is not None]
    return dependents((api, api.acting_as(installer_of(request.spec))), going)
