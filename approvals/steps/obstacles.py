"""What keeps an approved plan from being applied: rights that are missing, and what the API server refuses.

All of it is waited for: nothing is touched before every object can be written, and it goes on by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from approvals.errors import Awaiting, Awaits
from approvals.models import BundleDeployment, Finding, Request
from approvals.selectors import lists
from approvals.steps.constraints import CODE, unmet_words
from approvals.steps.inventory import owned
from approvals.steps.prepare import running_content
from provisioner import pipeline
from provisioner.cluster.api import Cluster as Api
from provisioner.errors import Forbidden, TryLater
from provisioner.rbac import Subject
from provisioner.review.preflight_text import as_yaml
from provisioner.values import AccessRequest, Content, ObjectRef, Plan

# The finding of a report that lists the rules which the installing account lacks.
LACKING = "PRE-RULES"
SHOWN = 10


class Waiting(TryLater):
    """Approved, but something has to be so before it may be applied; the words say what.

    `said` is what the API server said of which object.
    """

    code = "waiting"

    def __init__(self, message: str = "", *, said: Iterable[tuple[ObjectRef, str]] = ()) -> None:
        super().__init__(message)
        self.said = tuple(said)


class Paused(Waiting):
    """Nothing is written while it is paused."""

    def __init__(self, deployment: BundleDeployment, then: str) -> None:
        by_whom = lists.pause_words(deployment=deployment)
        super().__init__(f"{deployment.name} is paused{f' {by_whom}' if by_whom else ''}; {then} once it is resumed")


class UnmetConstraints(Waiting):
    """The cluster is not as spec.constraints wants it."""

    code = CODE


class MissingRights(Waiting, Awaiting):
    """The installing account lacks rights; the words hold the roles that would give them, ready to be applied."""

    code = "missing-rights"
    awaits = Awaits.RIGHTS


def check_doable(
    request: Request, api: Api, content: Content, planned: Plan, not_allowed: Sequence[AccessRequest]
) -> None:
    """Raise Waiting while anything of `planned`, the plan as it is now, would be refused.

    `not_allowed` is what of it the installer may not do: nothing is tried again that stands as it was reviewed, and
    rights may have been taken away since.
    """
    refused = [one for one in planned.actions if one.problem]
    is_lacking = any(one.problem_code == Forbidden.code for one in refused)
    # A dry-run does not ask about what only the bundle itself makes possible; the preflight of the report did.
    found = Finding.objects.filter(report__request=request, report__round=request.round)
    is_lacking = is_lacking or found.filter(rule=LACKING).exists()
    if is_lacking or not_allowed:
        _check_rights(request, api, content)
    if refused:
        words = "; ".join(f"{one.ref}: {one.problem}" for one in refused[:SHOWN])
        said = [(one.ref, one.server_words) for one in refused[:SHOWN] if one.server_words]
        raise Waiting(f"{len(refused)} of {len(planned.actions)} objects would be refused: {words}", said=said)


def check_constraints(request: Request, api: Api) -> None:
    """Raise UnmetConstraints while the cluster is not what the request's spec asks for."""
    words = unmet_words(request, api)
    if words:
        raise UnmetConstraints(words)


def without_lifted(plan: Plan) -> Plan:
    """The reviewed plan, without what stood in its way then: the gate has seen that it no longer does.

    Those objects were never tried, so that each is tried right before it is written.
    """
    actions = tuple(
        replace(one, problem="", problem_code="", server_words="", is_proved=False) if one.problem else one
        for one in plan.actions
    )
    return replace(plan, actions=actions)


def _check_rights(request: Request, api: Api, content: Content) -> None:
    account = Subject("ServiceAccount", request.spec["serviceAccountName"], request.spec["installNamespace"])
    found = pipeline.preflight(
        api,
        content,
        account=account,
        previous=running_content(request),
        inventory=owned(request.deployment),
    )
    if found.missing:
        rules = "1 rule" if len(found.missing) == 1 else f"{len(found.missing)} rules"
        raise MissingRights(
            f"{account} lacks {rules} to apply this. It goes on by itself once somebody who may has applied:\n"
            + as_yaml(found)
        )
