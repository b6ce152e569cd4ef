"""An open RequestChanges holds a request back however two transactions meet: real connections to PostgreSQL."""

from __future__ import annotations

import pytest

from tests.support.approvals.databases import MEETING, SETTING, manage

pytestmark = pytest.mark.thorough

# Two people who may decide and a policy that grants, on a Kubernetes that says yes to them.
PEOPLE = """
from types import SimpleNamespace
from approvals import access, gate, services
from approvals.errors import Refused
from approvals.gate import reader
from approvals.ledger import moves
from approvals.lifecycle import State
from approvals.models import Dismissal, Policy, Review, Verdict
from approvals.services import reviews
from approvals.steps import evaluate
from tests.support.approvals import policies, scene, world
from approvals.project.celery import app
# Nobody listens: what is sent after a commit would wait for a queue.
app.conf.broker_url = "memory://"
settings.PRATIQUE["LOCAL_ACCOUNTS"] = True
fake = world.FakeKubernetes()
where = world.cluster()
people = {name: world.user(name, where, "platform") for name in ("ada", "carol", "rita")}
for name in ("ada", "carol"):
    for verb in ("approve", "override", "get"):
        fake.allow(name, verb)
fake.allow("rita", "impersonate")
def say(request, name, decision):
    services.review(
        by=world.acting(people[name]), request_id=request.pk, decision=decision, reason="pin it", channel="browser",
        subject_digest=request.subject_digest,
    )
def dismiss(request, review):
    services.dismiss(
        by=world.acting(people["carol"]), request_id=request.pk, review_id=review.pk, reason="agreed", channel="browser"
    )
def open_changes(request):
    judged = Review.objects.judged(request).filter(decision="RequestChanges", dismissals=None)
    return judged.count()
def look(request):
    evaluate.run(Request.objects.get(pk=request.pk), "w")
def paused_before(module, name, pause, act):
    with before(module, name, pause):
        act()
def outcome(request):
    request.refresh_from_db()
    return f"{request.state}, {open_changes(request)} open"
asked = world.in_review(scene.asked(where, "raced", people["rita"]))
asked.claimed_by = "w"
asked.save(update_fields=["claimed_by"])
"""
MEET = """
with access.using(fake):
{body}
    print(outcome(asked))
"""
# What meets, and how it must end. Each first transaction stops where it holds the lock, or has read what it judges.
RACES = {
    "a verdict that was read before changes were requested": (
        """
    say(asked, "carol", "Approve")
    read = Request.objects.get(pk=asked.pk)
    facts = reader.deciding(read)
    answer = gate.judge(facts, facts.read_at)
    assert answer.may
    def settle():
        evaluate._settle(read, facts, answer)
    print(meet(lambda pause: paused_before(reviews.wake, "request", pause, lambda: say(asked, "ada", "RequestChanges")), settle))
""",
        ["done, done", "in_review, 1 open"],
    ),
    "a verdict that is being given": (
        """
    say(asked, "carol", "Approve")
    def settle(pause):
        paused_before(evaluate.wake, "notice", pause, lambda: look(asked))
    def request_changes():
        try:
            say(asked, "ada", "RequestChanges")
        except Refused as refusal:
            print(refusal.code)
    print(meet(settle, request_changes))
""",
        ["not-open", "done, done", "approved, 0 open"],
    ),
    "a policy that was read before changes were requested": (
        """
    world_of = SimpleNamespace(cluster=where, kubernetes=fake, ada=people["ada"], rita=people["rita"])
    grant = policies.save(world_of, kind="grant", expression="true")
    policies.allow(world_of, grant)
    read = Request.objects.get(pk=asked.pk)
    facts = reader.deciding(read)
    answer = gate.judge(facts, facts.read_at)
    def settle():
        evaluate._settle(read, facts, answer)
    print(meet(lambda pause: paused_before(reviews.wake, "request", pause, lambda: say(asked, "ada", "RequestChanges")), settle))
    look(asked)
    print(Review.objects.filter(policy=grant).count())
""",
        ["done, done", "0", "in_review, 1 open"],
    ),
    "a dismissal of what its author says anew": (
        """
    say(asked, "ada", "RequestChanges")
    first = Review.objects.get()
    def dismissing():
        try:
            dismiss(asked, first)
        except Refused as refusal:
            print(refusal.code)
    def again(pause):
        original = services.review
        paused_before(reviews.wake, "request", pause, lambda: services.review(
            by=world.acting(people["ada"]), request_id=asked.pk, decision="RequestChanges", reason="and sign it",
            channel="browser", subject_digest=asked.subject_digest,
        ))
    print(meet(again, dismissing))
    say(asked, "carol", "Approve")
    look(asked)
    print(Dismissal.objects.count())
""",
        ["already-reviewed", "done, done", "0", "in_review, 1 open"],
    ),
    "new changes while the old ones are dismissed": (
        """
    say(asked, "carol", "Approve")
    say(asked, "ada", "RequestChanges")
    first = Review.objects.get(decision="RequestChanges")
    def anew():
        services.review(
            by=world.acting(people["ada"]), request_id=asked.pk, decision="RequestChanges", reason="and sign it",
            channel="browser", subject_digest=asked.subject_digest,
        )
    print(meet(lambda pause: paused_before(reviews.wake, "request", pause, lambda: dismiss(asked, first)), anew))
    look(asked)
""",
        ["done, done", "in_review, 1 open"],
    ),
}


@pytest.mark.parametrize("migrated_database_url", ["postgres"], indirect=True)
@pytest.mark.parametrize("race", RACES)
def test_nothing_is_approved_past_changes_that_are_requested(migrated_database_url: str, race: str) -> None:
    body, ends = RACES[race]
    program = SETTING + MEETING + PEOPLE + MEET.replace("{body}", body)
    assert manage(migrated_database_url, "shell", "-v", "0", "-c", program).splitlines() == ends
