"""External checks of a request: when they are asked, and the signed event that asks them (decision 0098)."""

from __future__ import annotations

import logging
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import transaction

from approvals import gate, wake
from approvals.clock import database_now
from approvals.deciding.external_checks import CheckStage, CheckState
from approvals.events.cloud_event import home_url, request_record, write_event
from approvals.events.signed_post import SEND_SECONDS, PostResult, post_event, secrets_in_force
from approvals.gate import GateFacts
from approvals.gate.facts import Known, value_of
from approvals.gate.remedies import CHECK_CODES
from approvals.ledger import claims
from approvals.ledger.deciding import check_runs
from approvals.ledger.moves import locked
from approvals.lifecycle import State
from approvals.models import CheckRun, CheckSecret, Report, Request
from approvals.steps.sources import egress
from approvals.working import Recurring, WorkStep, in_turn
from provisioner.errors import SourceUnavailable, WorkerDied

logger = logging.getLogger(__name__)

# Over all workers.
SENDS_AT_ONCE, OF_ONE_CLUSTER, OF_ONE_CHECK = 4, 3, 2
# People are told of a mandatory check that comes to stand so: nothing happens until one of them runs it again.
TOLD = (CheckState.FAILED, CheckState.SILENT)
TYPES = {
    CheckStage.AFTER_REPORT: "dev.pratique.check.after-report.v1",
    CheckStage.BEFORE_APPLY: "dev.pratique.check.before-apply.v1",
}


def ask_checks(row: Request, facts: GateFacts, stages: Collection[CheckStage]) -> None:
    """Ask the checks of these stages that are due for a locked request, and keep how all of them stand."""
    now, found = database_now(), []
    for selected in value_of(facts.checks) or ():
        if selected.check and selected.check.stage in stages and selected.is_due(now):
            run = check_runs.ask(row, selected.check, uid=selected.uid, name=selected.name)
            found.append(replace(selected, run=check_runs.facts_of(run)).result(now).record)
        else:
            found.append(selected.result(now).record)
    if isinstance(facts.checks, Known) and row.external_checks != found:
        before, holding = (
            {one["name"] for one in records if one["holds"] and one["state"] in TOLD}
            for records in (row.external_checks, found)
        )
        if holding - before:
            wake.notice(row.pk, "check_holds")
        row.external_checks, row.mirrored_at = found, None
        row.save(update_fields=["external_checks", "mirrored_at"])
        wake.deployment(row.deployment_id)


@transaction.atomic(durable=True)
def ask_before_apply(request: Request, facts: GateFacts) -> None:
    """Ask the checks of an approved request: those before the apply once nothing else holds it."""
    if not value_of(facts.checks) and not request.external_checks:
        return
    row = locked(request.pk)
    claims.check_same_holder(row, request)
    if (row.state, row.round) != (State.APPROVED, request.round):
        return
    is_free = all(reason.code in CHECK_CODES for reason in gate.judge(facts, database_now()).reasons)
    ask_checks(row, facts, tuple(CheckStage) if is_free else (CheckStage.AFTER_REPORT,))


class SendCheckRun(Recurring):
    """Send the event of a run; where it is not delivered, it is sent again with the same id."""

    task = "send_check_run"

    def __init__(self, run_id: int):
        super().__init__(self.task, run_id, claims.rows_of_task(self.task, run_id))

    def look(self, worker: str) -> bool:
        """Who holds its connection open keeps few of all threads, and takes nobody else's turn (S40)."""
        with claims.place(self.task, 0, SENDS_AT_ONCE) as is_free:
            if not is_free or self.key not in in_line(database_now()):
                return False
            self._send()
        for pk in in_line(database_now()):
            wake.check_run(pk)
        return False

    def _send(self) -> None:
        runs = CheckRun.objects.select_related("request__deployment__cluster")
        run = runs.filter(pk=self.key).first()
        if run is None or run.send_at is None or run.send_at > database_now():
            return
        request, subject = run.request, (run.request.round, run.request.subject_digest)
        is_asked = request.state in check_runs.ASKED_IN and subject == (run.round, run.subject_digest)
        if not is_asked or (run.attempts and database_now() >= run.due_at):
            check_runs.stop_sending(run)
            return
        check_runs.begin_sending(run)
        result = _post(run)
        if result.code:
            # The whole words name addresses, which not everybody may know who reads the request.
            logger.warning("an event was not delivered", extra={"run": str(run.uid), "error": result.problem})
        check_runs.note_sent(run, result.code)

    def step(self) -> WorkStep:
        return WorkStep("asking an external check")

    def say(self, error: WorkerDied) -> None:
        logger.error("an external check is not asked", extra={"run_id": self.key, "error": str(error)})


def in_line(now: datetime) -> list[int]:
    """The runs whose events are sent next: clusters take turns, and each check has few places.

    What is being sent is one of them until that is written down.
    """
    due = check_runs.runs_to_send(now, of_one_check=OF_ONE_CHECK)
    waiting = {pk: ((cluster, check), position) for position, (pk, cluster, check) in enumerate(due)}
    return in_turn(waiting, (), (OF_ONE_CLUSTER, OF_ONE_CHECK))[:SENDS_AT_ONCE]


def _post(run: CheckRun) -> PostResult:
    """Send it to the address that the run was made for, and to no other."""
    secret = CheckSecret.objects.filter(cluster=run.request.cluster_id, check_uid=run.check_uid).first()
    if secret is None:
        return PostResult(code=SourceUnavailable.code, problem="the secret of the check is gone")
    signed_by = secrets_in_force(secret.secret, secret.earlier, secret.earlier_until)
    rules = egress(timeout_seconds=SEND_SECONDS)
    return post_event(run.url, event_of(run), event_id=str(run.uid), signed_by=signed_by, egress=rules)


def event_of(run: CheckRun) -> dict[str, Any]:
    """A CloudEvent, the same each time; of the request only what every reader of its deployment may know."""
    request, home = run.request, home_url()
    deployment, severity = request.deployment, ""
    with suppress(Report.DoesNotExist):
        severity = request.reports.only("worst").get(round=run.round).worst
    data = {
        "run": str(run.uid),
        "check": {"name": run.check_name, "stage": run.stage, "enforcement": run.enforcement},
        "cluster": deployment.cluster.name,
        "deployment": {"name": deployment.name, "uid": deployment.uid},
        "request": request_record(request, round_number=run.round, severity=severity),
        "change": {"reason": request.change_reason, "ticket": request.change_ticket},
        "subjectDigest": run.subject_digest,
        "answer": {
            "url": f"{home}/api/v1/checks/{run.uid}",
            "token": check_runs.token_of(run),
            "until": run.due_at.isoformat(),
        },
    }
    return write_event(
        event_id=str(run.uid),
        event_type=TYPES[CheckStage(run.stage)],
        subject=f"{deployment.cluster.name}/{deployment.name}",
        at=run.asked_at,
        data=data,
    )
