"""What goes with a CRD is looked through before each phase, and not again and again while a phase waits."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import cast

import pytest
from django.utils import timezone

from approvals.errors import LostClaim
from approvals.gate import reader, reviewed_report
from approvals.gate.facts import Fact, How, Known, Unseen
from approvals.ledger import claims
from approvals.models import Report, Request
from approvals.steps import apply
from provisioner.cluster.client.api import ClusterClient as Api
from tests.support.approvals import world
from tests.support.approvals.asked_gate import Live
from tests.support.approvals.fixtures import World
from tests.support.approvals.waivers import approve

WORKER = "at-work"


@pytest.fixture
def again(env: World) -> apply._Again:
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    approve(world.in_review(Request.objects.get()), env.ada)
    request = Request.objects.select_related("deployment__cluster").get()
    assert claims.claim(request.pk, WORKER)
    return apply._Again(request, cast("Api", Live(request)), WORKER, reviewed_report(request))


def test_a_wait_lists_nothing_again_while_what_was_seen_is_fresh(
    again: apply._Again, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[datetime] = []

    def unseen(request: Request, api: Api, report: Report, *_: object) -> Fact[Unseen]:
        looked.append(timezone.now())
        return Known(Unseen(), timezone.now(), How.CLUSTER)

    monkeypatch.setattr(reader, "unseen", unseen)
    again.before_phase()
    for _ in range(5):
        again.while_waiting()
    assert len(looked) == 1
    again._unseen = Known(Unseen(), timezone.now() - apply.LOOKED_THROUGH - timedelta(seconds=1), How.CLUSTER)
    again.while_waiting()
    again.while_waiting()
    again.before_phase()
    assert len(looked) == 3, "once because it was long ago, and before each phase"


def test_whoever_lost_the_claim_does_not_go_on(again: apply._Again) -> None:
    again.before_phase()
    Request.objects.update(claimed_by="another")
    for ask in (again.before_phase, again.while_waiting):
        with pytest.raises(LostClaim):
            ask()
