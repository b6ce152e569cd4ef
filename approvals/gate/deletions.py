"""A deletion that nobody has to review: it takes no data, and the operator allows it (security.md S15)."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.utils import timezone

from approvals.gate.facts import Fact, How, Known, Unreviewed
from approvals.gate.planning import installer_of, running_content
from approvals.gate.wish import learn
from approvals.models import Request
from approvals.policy import OWN_RULES_PREFIX, holdings
from provisioner.cluster.client.api import Cluster as Api
from provisioner.cluster.dependents import dependents
from provisioner.review.base.record import from_record
from provisioner.values import Action, Plan, Severity

WORDS = "it holds no data, and PRATIQUE_UNREVIEWED_DELETIONS lets it go without a review"
MAX_NAMED = 3


def is_free(request: Request, planned: Plan | None = None) -> bool:
    """Whether this deletion takes no data, by what it would take by now (`planned`), else by what its report says.

    No where the operator does not allow it by now, and for every other request.
    """
    if not settings.PRATIQUE["UNREVIEWED_DELETIONS"] or request.purpose != Request.Purpose.DELETE:
        return False
    found = from_record(request.reports.get(round=request.round).body)
    if any(one.severity is Severity.UNKNOWN or one.rule.startswith(OWN_RULES_PREFIX) for one in found.findings):
        return False
    content = running_content(request)
    running = {one.ref.identity: one.body for one in (content.manifests if content else ())}
    return not holdings((planned or found.plan).actions, running)


def takes_data(request: Request, api: Api, planned: Plan) -> bool:
    """Whether what the operator lets go unreviewed holds data since its report: no plan tells values."""
    return is_free(request) and not (is_free(request, planned) and not _goes_along(request, api, planned))


def by_report(request: Request, connect: Callable[[], Api]) -> Fact[Unreviewed]:
    """Whether it may go without a review, also by what else would go that no plan names."""
    if not is_free(request):
        return Known(Unreviewed(False), timezone.now(), How.RECORDS)
    return learn(lambda: _with_what_goes_along(request, connect()))


def by_records(request: Request) -> Fact[Unreviewed]:
    """The same, by the report alone: what else would go was looked at before."""
    return Known(Unreviewed(is_free(request)), timezone.now(), How.RECORDS)


def _with_what_goes_along(request: Request, api: Api) -> Unreviewed:
    planned = from_record(request.reports.get(round=request.round).body).plan
    words = _goes_along(request, api, planned)
    if not words:
        return Unreviewed(True)
    more = f" and {len(words) - MAX_NAMED} more" if words[MAX_NAMED:] else ""
    named = "; ".join(words[:MAX_NAMED])
    return Unreviewed(False, f"it is reviewed, because no plan names what else goes: {named}{more}")


def _goes_along(request: Request, api: Api, planned: Plan) -> list[str]:
    """What else a deletion would take that somebody may have put there, and what nobody could look at, in words."""
    going = [(one.ref, one.uid) for one in planned.actions if one.action is Action.DELETE and one.before is not None]
    return dependents((api, api.acting_as(installer_of(request.spec))), going)
