"""The end of a round without an outcome: what its reviews were about is no more, so that they no longer count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from django.utils import timezone

from approvals import wake
from approvals.audit import MACHINE
from approvals.ledger.moves import move
from approvals.lifecycle import Event
from approvals.models import Request, VoidedRound
from provisioner.values import PlanDifference

# Objects that the record names; how many more there are is said beside them.
MAX_OBJECTS = 50
# The code of a round that ended because the deployment has other labels.
LABELS_CHANGED = "labels-changed"


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
    VoidedRound.objects.create(
        request=row,
        round=row.round,
        was_approved=row.verdicts.filter(round=row.round, verdict="Approved").exists(),
        code=code,
        words=words,
        objects_differing=[asdict(one) for one in objects[:MAX_OBJECTS]],
        more_objects=len(objects[MAX_OBJECTS:]),
        at=timezone.now(),
    )
    if row.reviews.counted().filter(round=row.round, decision="Approve").exists():
        wake.notice(row.pk, "voided")
    kept = {**facts, **({"objects": [one.object for one in objects[:MAX_OBJECTS]]} if objects else {})}
    return move(row, Event.FIND_STALE, actor=MACHINE, facts=kept, problem_code=code, problem=words, **changes)


def made_by_itself(request: Request) -> int:
    """How many rounds of this request ended without anybody's asking for another report.

    Labels count as well: a controller may write them as fast as any object.
    """
    return 0 if request.round == 1 else request.voided_rounds.count()
