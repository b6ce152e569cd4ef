"""Objects that were left out are created once their API is served: within what was approved, else people are asked.

What was approved is in the plan: this object, these bytes, created once it appears (security-rules S17). The claim
on the deployment, which keeps drift correction and an apply away, is the caller's.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings

from approvals import gate, instruments, store
from approvals.access.port import connect
from approvals.clock import database_now
from approvals.errors import LostClaim
from approvals.gate import reader
from approvals.gate.plan_facts import public_words
from approvals.gate.plan_options import plan_options
from approvals.ledger import claims, optionals
from approvals.models import OptionalObject, Outcome, Revision
from approvals.steps.apply import approved_plan
from approvals.steps.records.inventory import DatabaseInventory, owner_of
from approvals.steps.records.notes import Notes
from provisioner import pipeline
from provisioner.cluster.apply.run import recover
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.cluster.inventory import uids
from provisioner.cluster.plan.content_plan import objection
from provisioner.cluster.plan.planned_actions import plan_digest
from provisioner.errors import Forbidden, PratiqueError
from provisioner.values import Action, Content, ObjectIdentity, ObjectRef, OutcomeState, Plan, PlannedAction

logger = logging.getLogger(__name__)

# What stands in the way passes by itself or by people: tried again after this long.
AGAIN_SECONDS = 30

Rows = Mapping[ObjectIdentity, OptionalObject]


@dataclass(frozen=True, slots=True)
class RevisionToComplete:
    """A running revision whose left-out objects may have come due, and how to reach its cluster."""

    revision: Revision
    service: Api
    worker: str

    @property
    def installer(self) -> Api:
        account = self.revision.request.bundle_spec.installer
        return self.service.acting_as(account).guarded(claims.sure_sending(self.worker))

    def inventory(self, only: Collection[ObjectIdentity]) -> DatabaseInventory:
        deployment = self.revision.request.deployment
        check_held = partial(claims.check_held_deployment, deployment.pk, self.worker)
        return DatabaseInventory(deployment, self.revision, check_held, only)


def take(deployment_id: int, worker: str) -> None:
    """Create what is due of a deployment, or ask for it; what cannot be now waits, with words."""
    due = optionals.due(database_now()).filter(revision__deployment_id=deployment_id)
    rows = list(due.select_related("revision__content", "revision__request__deployment__cluster"))
    if not rows:
        return
    revision = rows[0].revision
    try:
        service = connect(revision.request.deployment.cluster)
        _create(
            RevisionToComplete(revision, service, worker), {ObjectRef.from_parts(row).identity: row for row in rows}
        )
    except LostClaim:
        logger.warning("another worker has taken over", extra={"deployment_id": deployment_id})
        instruments.lost_claims.labels("deployment").inc()
    except gate.Stale as exc:
        optionals.ask(rows, revision.request, f"its API is served now, but {exc}")
    except PratiqueError as exc:
        optionals.wait(rows, str(exc), _again())


def _create(case: RevisionToComplete, due: Rows) -> None:
    """Create what is due and approved, and may be written now; people are asked for the rest, or it waits."""
    _require_creation(case)
    request = case.revision.request
    rows = {
        identity: row for identity, row in due.items() if case.service.resource_of(row.group, row.version, row.kind)
    }
    optionals.wait([row for identity, row in due.items() if identity not in rows], "", None)
    if rows and request.expires_at <= database_now():
        ended = f"{request.expires_at:%Y-%m-%d %H:%M} UTC"
        optionals.ask(rows.values(), request, f"its API is served now, but the approval expired at {ended}")
        return
    # The approved plan says which objects are created once they appear; the rows themselves prove nothing.
    skipped = {planned.ref.identity for planned in approved_plan(request).actions if planned.action is Action.SKIP}
    content = pipeline.part_of(store.get(case.revision.content), skipped & rows.keys())
    ready = _find_ready(case, rows, content) if content.manifests else {}
    if ready:
        _create_missing(
            case, rows, pipeline.part_of(content, ready), Plan(tuple(ready.values()), plan_digest(ready.values()))
        )


def _require_creation(case: RevisionToComplete) -> None:
    """Everything that S25 names, reviewers and guards included: this is a first write."""
    if not claims.renew_deployment(case.revision.deployment_id, case.worker):
        raise LostClaim
    claims.check_nobody_is_held_up(case.revision.deployment_id)
    gate.require(case.revision.request, reader.creating(case.revision, case.service))


def _find_ready(case: RevisionToComplete, rows: Rows, content: Content) -> dict[ObjectIdentity, PlannedAction]:
    """What may be written, by dry-runs as the installer; the rest waits, or people are asked for it."""
    request = case.revision.request
    manifests = {manifest.ref.identity: manifest for manifest in content.manifests}
    mine = uids(recover(case.installer, case.inventory(manifests.keys())).values())
    plan = pipeline.plan_again(
        case.service,
        content,
        previous=None,
        inventory=mine,
        as_account=request.bundle_spec.installer,
        options=plan_options(request),
    )
    ready = {}
    for planned in plan.actions:
        identity = planned.ref.identity
        words = public_words(planned) or objection(manifests[identity], planned)
        if planned.uid and planned.uid == mine.get(identity):
            # An earlier try has created it and was stopped before it was recorded.
            ready[identity] = PlannedAction(planned.ref, Action.CREATE, is_proved=False)
        elif planned.action is Action.SKIP:
            optionals.wait([rows[identity]], "", None)
        elif planned.problem_code == Forbidden.code:
            optionals.wait([rows[identity]], words, _again())
        elif words:
            optionals.ask([rows[identity]], request, words)
        else:
            ready[identity] = planned
    return ready


def _create_missing(case: RevisionToComplete, rows: Rows, content: Content, plan: Plan) -> None:
    request = case.revision.request
    hold = partial(claims.renew_deployment, case.revision.deployment_id, case.worker)
    notes = Notes(request, hold, Outcome.Step.OPTIONAL)
    outcomes = pipeline.deploy(
        case.installer,
        content,
        plan,
        inventory=case.inventory({manifest.ref.identity for manifest in content.manifests}),
        deadline_seconds=settings.PRATIQUE["APPLY_MINUTES"] * 60.0,
        before_phase=lambda _: _require_creation(case),
        while_waiting=partial(notes.pulse, partial(_require_creation, case)),
        owner=owner_of(case.revision),
    )
    for outcome in outcomes:
        notes.take(outcome)
        notes.write()
        row = rows[outcome.ref.identity]
        if outcome.state in (OutcomeState.FAILED, OutcomeState.SKIPPED):
            optionals.wait([row], outcome.message, _again())
        else:
            optionals.note_created(row, request, outcome)


def _again() -> datetime:
    return database_now() + timedelta(seconds=AGAIN_SECONDS)
