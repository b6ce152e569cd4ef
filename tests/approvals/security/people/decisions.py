"""An approval, and a look at what policies say."""

from __future__ import annotations

from typing import Any

from approvals import services
from approvals.models import Request, Review
from approvals.steps import evaluate
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import acting


def approve(env: World, request: Request, **changes: Any) -> Review:
    wish = {
        "by": acting(env.ada),
        "request_id": request.pk,
        "decision": "Approve",
        "subject_digest": request.subject_digest,
        "reason": "",
        "channel": "browser",
        **changes,
    }
    return services.review(**wish)


def look(request: Request) -> str:
    evaluate.run(Request.objects.select_related("deployment__cluster").get(pk=request.pk), "test")
    request.refresh_from_db()
    return request.state
