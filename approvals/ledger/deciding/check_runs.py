"""What external checks are asked about a request, and what they answer.

A run is about one subject: it counts for the round and the subject digest that it was made for, and for nothing that
comes later. All of it is written under the lock of the request, but what became of sending the event.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F, Window
from django.db.models.functions import RowNumber
from django.utils.crypto import constant_time_compare, salted_hmac

from approvals import audit, wake
from approvals.audit import MACHINE, Actor
from approvals.clock import database_now
from approvals.deciding.external_checks import CheckOutcome, CheckRunFacts, ExternalCheck, SelectedCheck
from approvals.errors import CheckClosed, DigestMoved
from approvals.ledger import retries
from approvals.lifecycle import State
from approvals.models import CheckRun, CheckSecret, Request, TaskClaim

# While a request is in these, its checks are asked and may answer.
ASKED_IN = (State.IN_REVIEW, State.APPROVED)
# The longest wait between two attempts to deliver an event.
LONGEST_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class CheckAnswer:
    """What a check says about a subject."""

    outcome: CheckOutcome
    subject_digest: str
    message: str = ""
    link: str = ""


def newest_runs(request: Request) -> dict[str, CheckRun]:
    """The runs that count for the present subject, by the uid of the check."""
    runs = CheckRun.objects.filter(request=request, round=request.round, subject_digest=request.subject_digest)
    return {run.check_uid: run for run in runs.order_by("number")}


def facts_of(run: CheckRun) -> CheckRunFacts:
    return CheckRunFacts(
        run.url,
        run.asked_at,
        run.due_at,
        run.delivered_at is not None,
        run.problem,
        run.outcome,
        run.message,
        run.link,
        run.answered_at,
        is_sent=bool(run.attempts or run.outcome),
    )


def known_secrets(cluster_id: int) -> set[str]:
    """The uids of the checks of a cluster that have a secret."""
    return {*CheckSecret.objects.filter(cluster=cluster_id).values_list("check_uid", flat=True)}


def ask(row: Request, check: ExternalCheck, *, uid: str, name: str, actor: Actor = MACHINE) -> CheckRun:
    """Have a check asked about the present subject of a locked request; what it was asked before counts no longer."""
    now = database_now()
    earlier = CheckRun.objects.filter(request=row, round=row.round, check_uid=uid).order_by("-number").first()
    run = CheckRun.objects.create(
        request=row,
        round=row.round,
        subject_digest=row.subject_digest,
        check_uid=uid,
        check_name=name,
        stage=check.stage,
        enforcement=check.enforcement,
        url=check.url,
        number=earlier.number + 1 if earlier else 1,
        asked_by="" if actor is MACHINE else actor.name,
        asked_at=now,
        due_at=now + timedelta(seconds=check.timeout_seconds),
        send_at=now,
    )
    facts = {"check": name, "run": str(run.uid), "round": row.round, "subjectDigest": row.subject_digest}
    audit.record(verb="external-check.asked", actor=actor, request=row, facts=facts)
    wake.check_run(run.pk)
    return run


def take_answer(row: Request, run: CheckRun, answer: CheckAnswer) -> None:
    """Keep the answer of a run of a locked request, and have the request looked at.

    The same once more changes nothing. Raises DigestMoved for another subject, and CheckClosed where no answer counts
    any more, or a graver one was given: `passed` never undoes `failed`.
    """
    now = database_now()
    if answer.subject_digest != run.subject_digest:
        raise DigestMoved(f"this run is about subject digest {run.subject_digest}")
    if now >= run.due_at:
        raise CheckClosed(f"the time for an answer was over at {run.due_at:%Y-%m-%d %H:%M:%S} UTC")
    subject = (row.round, row.subject_digest)
    if row.state not in ASKED_IN or subject != (run.round, run.subject_digest):
        raise CheckClosed("the request has gone on: it is no longer decided on, or another subject is")
    if newest_runs(row)[run.check_uid].pk != run.pk:
        raise CheckClosed("the check was asked again: answer the newer event")
    if answer.outcome == run.outcome:
        return
    if not answer.outcome.may_follow(run.outcome):
        raise CheckClosed(f"the run has answered {run.outcome} already, which {answer.outcome} does not change")
    run.outcome, run.message, run.link, run.answered_at = answer.outcome, answer.message, answer.link, now
    run.send_at = None
    run.save(update_fields=["outcome", "message", "link", "answered_at", "send_at"])
    row.look_again_at = None
    row.save(update_fields=["look_again_at"])
    facts = {"check": run.check_name, "run": str(run.uid), "outcome": run.outcome, "round": run.round}
    audit.record(
        verb="external-check.answered",
        actor=Actor(f"external check {run.check_name}", "check"),
        request=row,
        facts={**facts, "subjectDigest": run.subject_digest, "message": run.message, "link": run.link},
    )
    wake.request(row.pk)


def are_as_read(row: Request, checks: Iterable[SelectedCheck]) -> bool:
    """Whether no check of a locked request has answered anything else, or was asked again, since it was read."""
    read = {one.uid: one.run.outcome for one in checks if one.run}
    known = newest_runs(row) if read else {}
    return all(uid in known and known[uid].outcome == outcome for uid, outcome in read.items())


def token_of(run: CheckRun) -> str:
    """What answers to a run come with. It is made of the run and its subject, so that it is kept nowhere, and each
    time that the event is sent it is the same."""
    parts = f"{run.uid} {run.subject_digest}"
    return f"prc_{salted_hmac('pratique: token of an external check', parts, algorithm='sha256').hexdigest()}"


def is_token_of(run: CheckRun, token: str) -> bool:
    return constant_time_compare(token, token_of(run))


def runs_to_send(now: datetime, *, of_one_check: int) -> list[tuple[int, str, str]]:
    """The runs that are due, of each check those that are longest overdue: each with its cluster and check."""
    resting = TaskClaim.objects.filter(task="send_check_run", rests_until__gte=now).values("key")
    due = CheckRun.objects.filter(send_at__lte=now).exclude(pk__in=resting)
    of_check = Window(RowNumber(), partition_by=[F("request__cluster"), F("check_uid")], order_by=["send_at", "pk"])
    first = due.annotate(position=of_check).filter(position__lte=of_one_check).order_by("send_at", "pk")
    rows = first.values_list("pk", "request__cluster", "check_uid")
    return [(pk, str(cluster), f"{cluster} {check}") for pk, cluster, check in rows]


def begin_sending(run: CheckRun) -> None:
    """Count an attempt. The time to answer begins with the first one: before that the event waited in line."""
    if not run.attempts:
        run.due_at += database_now() - run.asked_at
    run.attempts += 1
    CheckRun.objects.filter(pk=run.pk).update(attempts=run.attempts, due_at=run.due_at)


def note_sent(run: CheckRun, problem: str) -> None:
    """The event was delivered, or was not because of `problem`: then it is sent again, more and more rarely.

    What else is due to the same address waits as long: one attempt tells for all of them that nobody is there.
    """
    # Another run may have moved its time while it was sent; one of which another attempt began is that one's.
    now, rows = database_now(), CheckRun.objects.filter(pk=run.pk, attempts=run.attempts, send_at__isnull=False)
    if not problem:
        rows.update(delivered_at=now, send_at=None, problem="")
        return
    wait = retries.seconds(run.attempts, longest=LONGEST_SECONDS, share=random.random())  # noqa: S311 - spreads load, keeps no secret
    again_at = now + timedelta(seconds=wait)
    rows.update(problem=problem, send_at=again_at if again_at < run.due_at else None)
    same = CheckRun.objects.filter(request__cluster=run.request.cluster_id, check_uid=run.check_uid, url=run.url)
    same.filter(send_at__lt=again_at).update(send_at=again_at)


def stop_sending(run: CheckRun) -> None:
    CheckRun.objects.filter(pk=run.pk).update(send_at=None)
