"""What would be done now, and what is in the way: dry-runs as the installing account, and its rights.

All that is refused is waited for: nothing is touched before every object can be written, and it goes on by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from approvals.clock import database_now
from approvals.gate import deletions
from approvals.gate.facts import Collisions, Fact, How, Known, PlanFacts, RefusedObject, Unseen
from approvals.gate.live_spec import learn
from approvals.gate.plan_options import owned, plan_options, running_content
from approvals.gate.policies import reviewed_report
from approvals.gate.remedies import RefusalKind
from approvals.models import Report, Request
from provisioner import pipeline
from provisioner.cluster.client.access import refused_writes
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.cluster.plan.adoption import objection_to_adoption
from provisioner.cluster.plan.content_plan import data_lost_since, is_within
from provisioner.cluster.plan.inputs import Options
from provisioner.cluster.plan.prune import in_served_version
from provisioner.errors import AlreadyExists, Forbidden, UnknownKind
from provisioner.rbac import RbacSubject
from provisioner.review.base.record import from_record
from provisioner.review.preflight.findings import as_yaml
from provisioner.review.visibility.fact_views import is_private
from provisioner.values import Content, Plan, PlannedAction

# The finding of a report that lists the rules which the installing account lacks.
LACKING = "PRE-RULES"
# The finding about an object that is someone else's.
FOREIGN = "OWN-02"
# A kind that nothing serves, and a right that the installing account lacks for one object.
MISSING = ("PRE-07", "PRE-01", LACKING)
MAX_LOOKED_AT = 20
MAX_CURED = 3
NOT_ADOPTABLE = "it belongs to someone else and cannot be adopted; the reason is shown only to people who may get it"


@dataclass(frozen=True, slots=True)
class Approved:
    """What was approved: the stored bytes and the plan that was reviewed."""

    content: Content
    plan: Plan


def plan_facts(request: Request, api: Api, approved: Approved, slowly: deletions.Slowly) -> PlanFacts:
    """What is left to do, and what of it would be refused; of a plan that does more than was reviewed no more is asked.

    The installer's rights to what was reviewed are asked beside the dry-runs; where less is left to do, to that.
    """
    installer, reviewed = request.bundle_spec.installer, approved.plan
    with ThreadPoolExecutor(max_workers=1) as beside:
        asking = beside.submit(refused_writes, api, installer, reviewed.actions)
        planned = pipeline.plan_again(
            api,
            approved.content,
            previous=running_content(request),
            inventory=owned(request.deployment),
            as_account=installer,
            options=plan_options(request),
            reviewed=reviewed,
        )
    if lost := data_lost_since(planned.actions, reviewed.actions):
        return PlanFacts(planned.actions, False, False, unseen=Unseen(lost=tuple(lost)))
    if not is_within(planned.actions, reviewed.actions):
        return PlanFacts(planned.actions, False, False)
    if deletions.takes_data(request, api, planned):
        return PlanFacts(planned.actions, True, True)
    report = reviewed_report(request)
    unseen = deletions.look_through(
        request, api, report, slowly, lambda bounded: deletions.unseen(request, bounded, report)
    )
    if unseen:
        return PlanFacts(planned.actions, True, False, unseen=unseen)
    is_less = planned.digest != reviewed.digest
    not_allowed = refused_writes(api, installer, planned.actions) if is_less else asking.result()
    refused = tuple(_describe_refusal(api, action) for action in planned.actions if action.problem)
    # An object that stands as it was reviewed is not tried again, though rights may have been taken away since; and a
    # dry-run does not ask about what only the bundle itself makes possible: the preflight of the report did.
    is_lacking = (
        bool(not_allowed)
        or any(action.problem_code == Forbidden.code for action in planned.actions if action.problem)
        or report.findings.filter(rule=LACKING).exists()
    )
    missing = _describe_missing_rights(request, api, approved.content) if is_lacking else ""
    return PlanFacts(planned.actions, True, False, refused, missing)


def _describe_refusal(api: Api, planned: PlannedAction) -> RefusedObject:
    """What could not be written, and why. Why the API server does not take what would come of someone else's object
    tells how that differs (S09).
    """
    ref, said, lack = planned.ref, planned.server_words, None
    if is_private(planned):
        said = "; ".join(filter(None, [planned.problem, planned.server_words]))
    if planned.problem_code == UnknownKind.code:
        lack = api.served().absence_of(ref.group, ref.version, ref.kind).lack
    return RefusedObject(ref, public_words(planned), said, planned.problem_code == AlreadyExists.code, lack)


def public_words(planned: PlannedAction) -> str:
    """Why an object cannot be written, as everybody may know it; "" where it can."""
    return NOT_ADOPTABLE if planned.problem and is_private(planned) else planned.problem


def collisions_of(request: Request, report: Report, connect: Callable[[], Api]) -> Fact[Collisions]:
    """The objects that stand in the way of the reviewed plan, each looked at anew; of most requests it is one query."""
    if not report.findings.filter(rule=FOREIGN).exists():
        return Known(Collisions(), database_now(), How.RECORDS)

    def read_collisions() -> Collisions:
        installer, options = connect().acting_as(request.bundle_spec.installer), plan_options(request)
        plan = from_record(report.body).plan
        foreign = [action for action in plan.actions if action.problem_code == AlreadyExists.code]
        is_over = any(not _is_in_the_way(installer, action, options) for action in foreign[:MAX_LOOKED_AT])
        return Collisions(tuple(action.problem for action in foreign), is_over)

    return learn(read_collisions)


def came_of(request: Request, report: Report, connect: Callable[[], Api]) -> Fact[tuple[str, ...]]:
    """What the report says is missing and is there by now, in words: kinds, and rights of the installing account.

    Of most requests it is one query. A no of the API server that is none of RBAC can look like a right that is missing,
    so that it is believed MAX_CURED times at most.
    """
    is_lacking = report.findings.filter(rule__in=MISSING).exists()
    if not is_lacking or request.voided_rounds.filter(code=RefusalKind.CAUSE_OVER.value.code).count() >= MAX_CURED:
        return Known((), database_now(), How.RECORDS)
    is_lacking_rights = report.findings.filter(rule=LACKING).exists()
    problems = [action for action in from_record(report.body).plan.actions if action.problem]

    def read_cured() -> tuple[str, ...]:
        api, found = connect(), []
        refs = [action.ref for action in problems if action.problem_code == UnknownKind.code]
        for group, version, kind in sorted({(ref.group, ref.version, ref.kind) for ref in refs}):
            if api.resource_of(group, version, kind) is not None:
                found.append(f"the cluster serves {kind} in {f'{group}/' if group else ''}{version} now")
        # Only where roles were found to lack it: a quota or a policy says no in the same way.
        refused = [action for action in problems if action.problem_code == Forbidden.code] if is_lacking_rights else []
        if refused and not refused_writes(api, request.bundle_spec.installer, refused):
            found.append("the installing ServiceAccount has the rights to write what it could not write before")
        return tuple(found)

    return learn(read_cured)


def _is_in_the_way(api: Api, met: PlannedAction, options: Options) -> bool:
    """Whether an object of that name is someone else's and not to be adopted, be it another one now.

    Also where nobody may look: it was there when the plan was made. Where its kind is served, but not in the version
    of the desired spec, it stands; where the kind is gone, the object went with it.
    """
    try:
        served = in_served_version(api, met.ref)
        live = api.get(served)
    except Forbidden:
        return True
    except UnknownKind:
        return False
    if live is None:
        return False
    if served.version != met.ref.version:
        return True
    return objection_to_adoption(live, options) is not None


def without_lifted(plan: Plan) -> Plan:
    """The reviewed plan, without what stood in its way then: the gate has seen that it no longer does.

    Those objects were never tried, so that each is tried right before it is written.
    """
    actions = tuple(
        replace(action, problem="", problem_code="", server_words="", is_proved=False) if action.problem else action
        for action in plan.actions
    )
    return replace(plan, actions=actions)


def _describe_missing_rights(request: Request, api: Api, content: Content) -> str:
    """What the installing account lacks, in words and as the roles that would give it; "" where nothing."""
    account = RbacSubject("ServiceAccount", request.bundle_spec.service_account, request.bundle_spec.install_namespace)
    found = pipeline.preflight(
        api,
        content,
        account=account,
        previous=running_content(request),
        inventory=owned(request.deployment),
        options=plan_options(request),
    )
    if not found.missing:
        return ""
    rules = "1 rule" if len(found.missing) == 1 else f"{len(found.missing)} rules"
    words = (
        f"{account} lacks {rules} needed to apply this. The request continues automatically when someone "
        "with the permission has applied:"
    )
    return f"{words}\n{as_yaml(found)}"
