"""Deciding: who may, on what, once."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, IntegrityError, transaction

from approvals import services
from approvals.errors import (
    AlreadyReviewed,
    CouldNotAsk,
    DigestMoved,
    InvalidInput,
    NotAllowed,
    NotOpen,
    ProofTooOld,
    SelfApproval,
    Unacknowledged,
)
from approvals.gate import Waiting
from approvals.models import AuditEntry, KubernetesIdentity, Request, Review
from approvals.selectors import inbox
from approvals.services.reviews import MAX_REVIEWS
from approvals.steps import evaluate
from tests.support.approvals import world
from tests.support.approvals.asked_gate import ask_again
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import acting

DELETION = {
    "action": "delete",
    "ref": {"group": "", "version": "v1", "kind": "Secret", "namespace": "harbour", "name": "old"},
}


def approve(request: Request, by: User, **changes: object) -> Review:
    wish = {
        "by": acting(by),
        "request_id": request.pk,
        "decision": "Approve",
        "subject_digest": request.subject_digest,
        "reason": "read it",
        "channel": "browser",
        **changes,
    }
    return services.review(**wish)  # type: ignore[arg-type]  # the table of changes is not typed


def test_an_allowed_person_approves(env: World, request_: Request) -> None:
    given = approve(request_, env.ada)
    assert (given.username, given.decision, given.subject_digest) == ("ada", "Approve", request_.subject_digest)
    assert given.access_reason == "by rule"


def test_what_is_kept_beside_a_review_is_there_with_it_or_neither_is(env: World, request_: Request) -> None:
    def fail(_: Review) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        approve(request_, env.ada, keep=fail)
    assert not Review.objects.exists()
    kept: list[Review] = []
    given = approve(request_, env.ada, keep=kept.append)
    assert approve(request_, env.ada, keep=kept.append) == given
    assert kept == [given, given]


def test_promise_3_nobody_approves_whom_kubernetes_does_not_let(env: World, request_: Request) -> None:
    with pytest.raises(NotAllowed) as refused:
        approve(request_, env.bert)
    assert "approve" in str(refused.value.facts["rule"])
    assert not Review.objects.exists()


def test_promise_4_a_cluster_that_does_not_answer_means_no(env: World, request_: Request) -> None:
    env.kubernetes.is_down = True
    with pytest.raises(CouldNotAsk):
        approve(request_, env.ada)
    assert not Review.objects.exists()


def test_the_right_is_asked_for_this_very_deployment(env: World, request_: Request) -> None:
    approve(request_, env.ada)
    questions = [asked for who, asked in env.kubernetes.asked if who == "ada" and asked.verb == "approve"]
    assert {(it.group, it.resource, it.name) for it in questions} == {
        ("core.rukpak.io", "bundledeployments", "strimzi")
    }


def test_S05_nobody_approves_their_own_request(env: World, request_: Request) -> None:
    env.kubernetes.allow("rita", "approve")
    with pytest.raises(SelfApproval):
        approve(request_, env.rita)
    assert approve(request_, env.rita, decision="Deny").decision == "Deny"


def test_S03_a_stale_tab_is_refused_and_told_what_is_current(env: World, request_: Request) -> None:
    with pytest.raises(DigestMoved) as refused:
        approve(request_, env.ada, subject_digest="sha256:old")
    assert refused.value.facts == {"seen": "sha256:old", "current": request_.subject_digest}


def test_S03_deletions_have_to_be_named(env: World, request_: Request) -> None:
    report = request_.reports.get()
    report.body["plan"]["actions"] = [DELETION]
    report.save(update_fields=["body"])
    with pytest.raises(Unacknowledged) as refused:
        approve(request_, env.ada)
    assert refused.value.facts["missing"] == ["delete Secret harbour/old"]
    assert approve(request_, env.ada, acknowledges=["delete Secret harbour/old"]).acknowledges


def test_the_last_review_counts_and_the_earlier_one_stays(env: World, request_: Request) -> None:
    first = approve(request_, env.ada)
    second = approve(request_, env.ada, decision="Deny", reason="read it again", channel="rest")
    assert second.replaces == first
    assert list(request_.reviews.counted()) == [second]
    assert list(request_.reviews.all()) == [first, second]
    said = AuditEntry.objects.filter(verb="review.given").order_by("number")
    assert [(one.facts["decision"], one.facts.get("replaces")) for one in said] == [
        ("Approve", None),
        ("Deny", "Approve"),
    ]
    evaluate.run(Request.objects.get(), "w")
    assert Request.objects.get().state == "denied"


def test_who_denied_may_approve_until_the_verdict(env: World, request_: Request) -> None:
    approve(request_, env.ada, decision="Deny")
    approve(request_, env.ada)
    evaluate.run(Request.objects.get(), "w")
    assert Request.objects.get().state == "approved"


def test_the_same_review_once_more_is_one(env: World, request_: Request) -> None:
    assert approve(request_, env.ada) == approve(request_, env.ada)
    assert AuditEntry.objects.filter(verb="review.given").count() == 1


def test_S12_however_often_somebody_approves_it_is_one_vote(env: World, request_: Request, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "APPROVALS_NEEDED": 2}
    for reason in ("a", "b", "c"):
        approve(request_, env.ada, reason=reason)
    evaluate.run(Request.objects.get(), "w")
    assert Request.objects.get().state == "in_review"
    assert inbox.with_summary(Request.objects.all()).get().approvals == 1


def test_a_reviewer_does_not_fill_the_record(env: World, request_: Request) -> None:
    for number in range(MAX_REVIEWS):
        approve(request_, env.ada, reason=f"{number}")
    with pytest.raises(AlreadyReviewed, match=f"decided {MAX_REVIEWS} times.*Your last decision counts"):
        approve(request_, env.ada)
    assert request_.reviews.count() == MAX_REVIEWS
    approve(request_, env.ada, decision="Deny")
    with pytest.raises(AlreadyReviewed, match=f"decided {MAX_REVIEWS} times"):
        approve(request_, env.ada, decision="Deny", reason="once more")


def test_S12_the_database_keeps_one_chain_of_reviews_of_each_reviewer(env: World, request_: Request) -> None:
    first = approve(request_, env.ada)
    second = approve(request_, env.ada, reason="again")
    for replaces in (None, first):
        second.pk, second.replaces = None, replaces
        with pytest.raises(IntegrityError), transaction.atomic():
            second.save(force_insert=True)


@pytest.mark.parametrize("state", ["preparing", "denied", "applied", "superseded"])
def test_only_a_request_in_review_takes_decisions(env: World, request_: Request, state: str) -> None:
    Request.objects.filter(pk=request_.pk).update(state=state)
    with pytest.raises(NotOpen):
        approve(request_, env.ada)


@pytest.mark.parametrize(
    ("username", "groups"),
    [("system:serviceaccount:ci:bot", []), ("system:node:n1", []), ("root", ["system:masters"])],
    ids=["service account", "node", "master"],
)
def test_S12_machines_do_not_vote(env: World, request_: Request, username: str, groups: list[str]) -> None:
    KubernetesIdentity.objects.filter(user=env.ada).update(
        username=username, groups=groups, authenticator=KubernetesIdentity.Authenticator.TOKEN_REVIEW
    )
    env.kubernetes.allow(username, "approve")
    with pytest.raises(NotAllowed, match="cannot review"):
        approve(request_, env.ada)


def test_S01_a_mapped_system_name_is_nobody(env: World, request_: Request) -> None:
    KubernetesIdentity.objects.filter(user=env.ada).update(groups=["system:masters"])
    with pytest.raises(NotAllowed, match="no Kubernetes identity"):
        approve(request_, env.ada)


def test_S01_an_identity_counts_on_its_own_cluster_only(env: World) -> None:
    other = world.cluster("other")
    world.submit_spec(other, world.seen("strimzi", world.spec()))
    request = world.in_review(Request.objects.get(deployment__cluster=other))
    with pytest.raises(NotAllowed, match="no Kubernetes identity"):
        approve(request, env.ada)


def test_S25_groups_that_are_too_old_do_not_decide(env: World, request_: Request) -> None:
    proved = KubernetesIdentity.Authenticator.TOKEN_REVIEW
    KubernetesIdentity.objects.filter(user=env.ada).update(authenticator=proved, groups_seen_at=world.yesterday())
    with pytest.raises(ProofTooOld, match="sign in again"):
        approve(request_, env.ada)


def test_a_reason_is_bounded(env: World, request_: Request) -> None:
    with pytest.raises(InvalidInput):
        approve(request_, env.ada, reason="x" * 4001)


def test_S21_the_database_refuses_to_change_or_remove_a_review(env: World, request_: Request) -> None:
    approve(request_, env.ada)
    for change in (lambda: Review.objects.update(decision="Deny"), lambda: Review.objects.all().delete()):
        with pytest.raises(DatabaseError), transaction.atomic():
            change()


def test_a_requester_may_withdraw_and_others_may_not(env: World, request_: Request) -> None:
    with pytest.raises(NotAllowed):
        services.withdraw(by=acting(env.ada), request_id=request_.pk, reason="", via="browser")
    assert (
        services.withdraw(by=acting(env.rita), request_id=request_.pk, reason="wrong", via="browser").state
        == "withdrawn"
    )


def test_S25_a_reviewer_who_stops_being_one_while_another_is_asked_about_counts_no_more(
    env: World, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "APPROVALS_NEEDED": 2}
    carl = world.user("carl", env.cluster, "platform")
    env.kubernetes.allow("carl", "approve")
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    request = world.in_review(Request.objects.get())
    for person in (env.ada, carl):
        approve(request, person)
    request = Request.objects.select_related("deployment__cluster").get(pk=request.pk)
    ask_again(request)
    ask = env.kubernetes.ask

    def meanwhile(cluster: Any, identity: Any, question: Any) -> Any:
        other = {"ada": "carl", "carl": "ada"}[identity.username]
        KubernetesIdentity.objects.filter(username=other).delete()
        return ask(cluster, identity, question)

    monkeypatch.setattr(env.kubernetes, "ask", meanwhile)
    with pytest.raises(Waiting, match="1 of 2 approvals"):
        ask_again(request)
