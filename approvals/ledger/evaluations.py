"""What policies said of a round, kept for people."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from approvals.clock import database_now
from approvals.models import PolicyEvaluation, Request


@transaction.atomic(durable=True)
def keep(request: Request, *, policy_id: int, version: int, result: str, words: str) -> None:
    """Policies are asked at every look; what one says as before is as it was written down, and since when."""
    key: dict[str, Any] = {
        "request": request,
        "round": request.round,
        "policy_id": policy_id,
        "policy_version": version,
    }
    known = PolicyEvaluation.objects.filter(**key).values_list("result", "words").first()
    if known != (result, words):
        said: dict[str, Any] = {"result": result, "words": words, "at": database_now()}
        PolicyEvaluation.objects.update_or_create(**key, defaults=said)
