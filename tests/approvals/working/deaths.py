"""Workers that die at a request, and what stands where a process of its own would be started."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from approvals.ledger import claims
from approvals.models import BundleDeployment, Request, Revision, TaskClaim
from approvals.working import claim_loop, work
from approvals.working.subprocesses import End

LONG_AGO = timedelta(days=1)
KILLED = End(death="was killed by signal 9 (SIGKILL), as Linux does where memory runs out")


class Alone:
    """Stands where a process would be started: what it came to is the test's to say."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.ends: list[End | Callable[[work.Work, str], End | None]] = []
        self.looked: list[tuple[str, int]] = []
        self.suspects: list[bool] = []
        monkeypatch.setattr(claim_loop, "run_apart", self.run)

    def run(self, one: work.Work, worker: str, step: work.WorkStep, *, is_suspect: bool) -> End | None:
        self.looked.append((one.task, one.key))
        self.suspects.append(is_suspect)
        end = self.ends.pop(0)
        return end if isinstance(end, End) else end(one, worker)


def lapse() -> None:
    for model in (Request, BundleDeployment, TaskClaim):
        model.objects.exclude(claimed_until=None).update(claimed_until=timezone.now() - LONG_AGO)


def deaths(request: Request) -> int:
    return claims.deaths_of(Request.objects.filter(pk=request.pk))


def revision(request: Request, number: int, state: str) -> Revision:
    request.refresh_from_db()
    assert request.content
    return Revision.objects.create(
        deployment=request.deployment,
        number=number,
        request=request,
        content=request.content,
        state=state,
        started_at=timezone.now(),
    )
