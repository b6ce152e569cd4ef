"""What is applied, against other workers, other accounts and edited records (security-rules.md S03, S07, S25)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.utils import timezone

from approvals.gate.answers import GateQuestion
from approvals.ledger import claims
from approvals.models import Report, Request, Revision
from approvals.steps import apply as step
from approvals.steps.apply import approved_plan
from provisioner.cluster.plan.planned_actions import plan_digest
from provisioner.errors import DigestMismatch
from provisioner.review.base.record import to_record
from provisioner.values import Action, ObjectRef, Plan, PlannedAction
from provisioner.values import Report as Reported
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.gate_facts import all_well
from tests.support.approvals.rollouts import asked, ordered, set_state

MINE, THEIRS = "worker-1", "worker-2"


@pytest.fixture
def approved(env: World) -> Request:
    """Approved, and claimed by MINE."""
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    request = world.in_review(Request.objects.get())
    Request.objects.update(state="approved")
    assert claims.claim(request.pk, MINE)
    return Request.objects.get()


@pytest.mark.parametrize(
    "meanwhile",
    [
        pytest.param({"claimed_by": THEIRS}, id="another worker"),
        pytest.param({"round": 2}, id="another round"),
        pytest.param({"subject_digest": "sha256:other"}, id="another subject"),
        pytest.param({"state": "stale"}, id="stale"),
        pytest.param({"state": "withdrawn", "settled_at": timezone.now()}, id="withdrawn"),
    ],
)
def test_S25_what_passed_the_gate_starts_only_while_it_is_still_that(approved: Request, meanwhile: Any) -> None:
    Request.objects.update(**meanwhile)
    with pytest.raises(step.LostClaim):
        step._start(approved, MINE, all_well(GateQuestion.APPLY))
    assert not Revision.objects.exists()


def test_S25_what_passed_the_gate_starts(approved: Request) -> None:
    assert step._start(approved, MINE, all_well(GateQuestion.APPLY)).state == "applying"


def test_what_another_member_of_its_set_holds_by_now_does_not_start(env: World, approved: Request) -> None:
    """Whoever failed, and whoever made the order: it came after the facts were read."""
    quay, facts = asked(env.cluster, "quay", env.rita), all_well(GateQuestion.APPLY)
    facts = replace(facts, about=replace(facts.about, name=approved.deployment.name))
    ordered("spring", [{"name": "all"}], (quay, 0), (approved, 0))
    set_state(quay, "failed")
    with pytest.raises(step.LostClaim, match="another member of its set"):
        step._start(approved, MINE, facts)
    set_state(quay, "approved")
    assert step._start(approved, MINE, facts).state == "applying"


def test_S03_a_deletion_written_into_the_record_of_a_reviewed_plan_is_found(approved: Request) -> None:
    config = ObjectRef("", "v1", "ConfigMap", "harbour", "a")
    reviewed = (PlannedAction(config, Action.CREATE, after={"kind": "ConfigMap"}),)
    digest = plan_digest(reviewed)
    Request.objects.update(plan_digest=digest)
    _write(Plan(reviewed, digest))
    approved.refresh_from_db()
    assert approved_plan(approved).actions == reviewed

    foreign = PlannedAction(ObjectRef("", "v1", "Secret", "kube-system", "b"), Action.DELETE, uid="u")
    _write(Plan((*reviewed, foreign), digest))
    with pytest.raises(DigestMismatch):
        approved_plan(approved)


def _write(plan: Plan) -> None:
    for row in Report.objects.all():
        row.body = to_record(Reported((), (), plan))
        row.save()
