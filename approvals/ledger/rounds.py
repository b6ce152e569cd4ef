"""The end of a round without an outcome: what its reviews were about is no more, so that they no longer count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from django.db import transaction

from approvals import wake
from approvals.audit import MACHINE
from approvals.clock import database_now
from approvals.ledger import holds, made_values
from approvals.ledger.moves import locked, move
from approvals.lifecycle import SUPERSEDABLE, Event, State, may
from approvals.models import BundleDeployment, PolicyEvaluation, Request, VoidedRound
from provisioner.values import PlanDifference

# Objects that the record names; how many more there are is said beside them.
MAX_OBJECTS = 50
# The code of a round that ended because the deployment has other labels.
LABELS_CHANGED = "labels-changed"
# Of one that ended because somebody asked for a new report.
ASKED_AGAIN = "asked-again"
# The columns of what a policy said.
_POLICY, _SAID = ("policy", "policy_version"), ("result", "words")


def void(
    row: Request,
    *,
    code: str,
    words: str,
    facts: Mapping[str, Any],
    objects: Sequence[PlanDifference] = (),
    **changes: Any,
) -> Request:
    """Have a locked request reported again, and keep why its present round counts no longer.

    `words` and `code` say why; `objects` are those that differ.
    """
    words = made_values.without_values(row.deployment_id, words)
    VoidedRound.objects.create(
        request=row,
        round=row.round,
        was_approved=row.verdicts.filter(round=row.round, verdict="Approved").exists(),
        code=code,
        words=words,
        objects_differing=[asdict(difference) for difference in objects[:MAX_OBJECTS]],
        more_objects=len(objects[MAX_OBJECTS:]),
        apply_at=row.apply_at,
        at=database_now(),
    )
    if row.reviews.counted().filter(round=row.round, decision="Approve").exists():
        wake.notice(row.pk, "voided")
    kept = {**facts, **({"objects": [difference.object for difference in objects[:MAX_OBJECTS]]} if objects else {})}
    # What its rules, exceptions and checks said was about the round that ends.
    standings: dict[str, Any] = {"approval_rules": [], "finding_exceptions": [], "external_checks": []}
    changes |= {**holds.end_hold(row, database_now()), **standings}
    return move(row, Event.FIND_STALE, actor=MACHINE, facts=kept, problem_code=code, problem=words, **changes)


def made_by_itself(request: Request) -> int:
    """How many rounds of this request ended without anybody's asking for another report.

    Labels count as well: a controller may write them as fast as any object.
    """
    return 0 if request.round == 1 else request.voided_rounds.exclude(code=ASKED_AGAIN).count()


def report_anew(deployment: BundleDeployment, by: str) -> bool:
    """Have the open request reported again because somebody, `by` if known, asked for that; False where none is open.

    What is being prepared is looked at at once. A round that somebody has denied is not taken back.
    """
    request = deployment.requests.filter(state__in=SUPERSEDABLE).first()
    if request is None:
        return False
    row = locked(request.pk)
    if not may(State(row.state), Event.FIND_STALE):
        row.look_again_at = None
        row.save(update_fields=["look_again_at"])
        wake.request(row.pk)
    elif not is_denied(row):
        words = f"{by or 'somebody'} asked for a new report: a new review is needed"
        void(row, code=ASKED_AGAIN, words=words, facts={"why": words}, look_again_at=None)
    return True


def is_denied(row: Request) -> bool:
    """Whether somebody has denied this very round: nothing takes that back before it is counted."""
    given = row.reviews.counted().filter(round=row.round, subject_digest=row.subject_digest, decision="Deny")
    return given.exists()


@transaction.atomic(durable=True)
def keep(request: Request, said: Mapping[tuple[int, int], tuple[str, str]]) -> None:
    """Keep the result and the words of each policy, by its key and version. Policies are asked at every look; what one
    says as before is as it was written down, and since when."""
    kept = PolicyEvaluation.objects.filter(request=request, round=request.round)
    known = {(key, version): told for key, version, *told in kept.values_list(*_POLICY, *_SAID)}
    now = database_now()
    news = [
        PolicyEvaluation(
            request=request,
            round=request.round,
            policy_id=key,
            policy_version=version,
            result=result,
            words=words,
            at=now,
        )
        for (key, version), (result, words) in said.items()
        if known.get((key, version)) != [result, words]
    ]
    PolicyEvaluation.objects.bulk_create(
        news, update_conflicts=True, unique_fields=("request", "round", *_POLICY), update_fields=(*_SAID, "at")
    )
