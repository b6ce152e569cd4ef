"""What policies said of a round, kept for people."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from approvals.models import PolicyEvaluation, Request


@transaction.atomic(durable=True)
def keep(request: Request, *, policy_id: int, version: int, result: str, words: str) -> None:
    PolicyEvaluation.objects.update_or_create(
        request=request,
        round=request.round,
        policy_id=policy_id,
        policy_version=version,
        defaults={"result": result, "words": words, "at": timezone.now()},
    )
