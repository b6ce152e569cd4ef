"""How what the gate answers is carried out: an end ends, with its words and remedy, and what is waited for waits."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest
from django.utils import timezone

from approvals import audit, gate
from approvals.audit import MACHINE
from approvals.errors import CHANGED
from approvals.gate import Reason, deletions, plan_facts
from approvals.gate.answers import Next
from approvals.gate.facts import Known, Unknown, Unseen
from approvals.gate.live_spec import learn
from approvals.ledger import retries
from approvals.models import AuditEntry, Report, Request, Revision
from approvals.steps import apply as step
from approvals.steps import evaluate, failures, restore
from provisioner.cluster import deletion_losses
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.cluster.client.discovery import ServedResource
from provisioner.cluster.evidence import Query, Sample, Unread
from provisioner.cluster.plan.inputs import Options
from provisioner.errors import (
    BadSource,
    ClusterError,
    DigestMismatch,
    Forbidden,
    InvalidConstraint,
    PratiqueError,
    TryLater,
    UnknownKind,
    Unreachable,
)
from provisioner.review.checks.objects.deletions import MISSED
from provisioner.values import Action, CollisionProtection, ObjectRef, PlannedAction, created_at

ENDS = Reason(Next.END, "digest-mismatch", "it is another account", "Somebody asks anew.")
REF = ObjectRef("", "v1", "ConfigMap", "harbour", "a")


def in_state(state: str) -> Request:
    """As a worker read it."""
    Request.objects.update(state=state)
    return Request.objects.select_related("deployment__cluster", "content", "from_revision").get()


def applying(**spec: Any) -> Request:
    request = in_state("applying")
    Request.objects.update(spec={**request.spec, **spec})
    facts = {"content": request.content, "started_at": timezone.now()}
    deployment = request.deployment
    other = Request.objects.get()
    other.pk, other.uid, other.number, other.state = None, uuid.uuid4(), 99, "applied"
    other.save()
    running = Revision.objects.create(deployment=deployment, number=1, request=other, state="active", **facts)
    deployment.active_revision = running
    deployment.save()
    Revision.objects.create(deployment=deployment, number=2, request=request, state="applying", **facts)
    Request.objects.filter(pk=request.pk).update(from_revision=running)
    return Request.objects.select_related("deployment__cluster", "content", "from_revision").get(pk=request.pk)


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (gate.refusal_of(gate.GateAnswer(gate.GateQuestion.PLAN, (ENDS,))), ENDS.remedy),
        (DigestMismatch("the stored bytes are others"), CHANGED.format(name="strimzi")),
    ],
    ids=["the gate", "what is stored"],
)
def test_what_cannot_come_right_ends_an_approved_request_with_its_remedy(
    request_: Request, error: PratiqueError, remedy: str
) -> None:
    failures.fail_request(in_state("approved"), error)
    found = Request.objects.get()
    assert (found.state, found.problem_code, found.problem) == ("failed", "digest-mismatch", str(error))
    assert (found.remedy, found.look_again_at) == (remedy, None)
    facts = AuditEntry.objects.get(verb="request.give_up").facts
    assert (facts["code"], facts["why"]) == ("digest-mismatch", str(error))


@pytest.mark.parametrize(
    "error", [Forbidden("the service may not read it"), BadSource("the kubeconfig is none"), ClusterError("no")]
)
def test_promise_4_what_a_step_could_not_find_out_ends_no_approved_request(
    request_: Request, error: PratiqueError
) -> None:
    failures.fail_request(in_state("approved"), error)
    found = Request.objects.get()
    assert (found.state, found.problem) == ("approved", str(error))
    assert found.look_again_at is not None


def test_promise_4_in_review_what_a_step_stumbles_over_is_waited_for(request_: Request) -> None:
    failures.fail_request(in_state("in_review"), DigestMismatch("the report cannot be read"))
    assert Request.objects.get().state == "in_review"


def test_an_end_in_review_ends_it_too(request_: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    request = in_state("in_review")
    monkeypatch.setattr(gate, "judge", lambda *_: gate.GateAnswer(gate.GateQuestion.DECIDE, (ENDS,)))
    evaluate.run(request, "worker")
    found = Request.objects.get()
    assert (found.state, found.problem, found.remedy) == ("failed", ENDS.words, ENDS.remedy)
    assert not found.verdicts.exists()


@pytest.mark.parametrize("state", ["applying", "restoring", "failed", "denied", "applied", "superseded"])
def test_what_has_moved_on_meanwhile_does_not_expire(request_: Request, state: str) -> None:
    Request.objects.update(state=state, expires_at=timezone.now() - timedelta(seconds=1))
    failures.expire_request(request_.pk)
    assert Request.objects.get().state == state


@pytest.mark.parametrize("state", ["preparing", "in_review", "approved", "stale"])
def test_what_is_open_and_has_not_begun_expires(request_: Request, state: str) -> None:
    Request.objects.update(state=state, expires_at=timezone.now() - timedelta(seconds=1))
    failures.expire_request(request_.pk)
    assert Request.objects.get().state == "expired"


def test_what_ends_in_the_middle_keeps_its_remedy(request_: Request) -> None:
    request = applying()
    step.give_up(request, gate.refusal_of(gate.GateAnswer(gate.GateQuestion.GO_ON, (ENDS,))))
    found = Request.objects.get(pk=request.pk)
    assert (found.state, found.remedy) == ("failed", ENDS.remedy)
    assert found.problem.startswith(f"{ENDS.words}; applying stopped: nothing was changed, and ")


@pytest.mark.parametrize(("written", "words"), [(1, "1 object changed before that stays"), (2, "2 objects changed")])
def test_what_ends_in_the_middle_says_what_stands(request_: Request, written: int, words: str) -> None:
    request = applying()
    facts = {"action": "update", "at": timezone.now()}
    for position, state in enumerate(["done", "done", "skipped", "failed"][2 - written :]):
        request.outcomes.create(position=position, object=f"ConfigMap a/{position}", state=state, **facts)
    Request.objects.update(phase="2 of 3: deploy")
    step.give_up(request, gate.refusal_of(gate.GateAnswer(gate.GateQuestion.GO_ON, (ENDS,))))
    found = Request.objects.get(pk=request.pk)
    assert f"applying stopped at phase 2 of 3: deploy: {words}" in found.problem
    running = found.deployment.active_revision
    assert ("revision 1 still counts as" if running else "no revision counts as running") in found.problem
    assert found.phase == "2 of 3: deploy", "where it ended stays on record"


def test_what_could_not_be_put_back_keeps_the_remedies_of_both_failures(request_: Request) -> None:
    request = applying(onFailure="RestorePrevious")
    step.give_up(request, gate.refusal_of(gate.GateAnswer(gate.GateQuestion.GO_ON, (ENDS,))))
    request = Request.objects.select_related("deployment__cluster").get(pk=request.pk)
    assert (request.state, request.problem, request.remedy) == ("restoring", ENDS.words, ENDS.remedy), "nothing stays"
    # What is waited for meanwhile has a remedy of its own.
    Request.objects.filter(pk=request.pk).update(remedy="Somebody resumes it.")
    revoked = Reason(Next.END, "precondition-failed", "revision 1 is revoked", "Somebody reinstates it.")
    restore.give_up(request, gate.refusal_of(gate.GateAnswer(gate.GateQuestion.RESTORE, (revoked,))))
    found = Request.objects.get(pk=request.pk)
    assert (found.state, found.problem_code) == ("failed", "digest-mismatch")
    assert found.remedy == f"{ENDS.remedy} {revoked.remedy}"


def test_another_remedy_alone_is_news(request_: Request) -> None:
    now = timezone.now()
    wait = gate.Waiting(Reason(Next.WAIT, "paused", "it is paused", "Rita resumes it."))
    retries.hold(request_, wait, now)
    Request.objects.update(mirrored_at=now)
    request = Request.objects.get()
    retries.hold(request, wait, now)
    assert Request.objects.get().mirrored_at == now
    retries.hold(request, gate.Waiting(Reason(Next.WAIT, "paused", "it is paused", "Carol resumes it.")), now)
    assert Request.objects.get().mirrored_at is None


@pytest.mark.parametrize(
    ("error", "is_final"),
    [
        (InvalidConstraint("it cannot be read"), True),
        (BadSource("collisionProtection is 'None'"), True),
        (DigestMismatch("the running content was changed"), True),
        (Forbidden("the service may not act as the account"), False),
        (UnknownKind("no such kind"), False),
        (Unreachable("no answer"), False),
    ],
)
def test_S25_what_the_cluster_refuses_is_never_final(error: PratiqueError, is_final: bool) -> None:
    def ask() -> None:
        raise error

    for may_be_final in (True, False):
        found = learn(ask, may_be_final=may_be_final)
        assert isinstance(found, Unknown)
        assert found.is_final is (is_final and may_be_final)


class There:
    """A cluster that holds this one object; every kind is served in `version`, or none."""

    def __init__(self, live: dict[str, Any] | None, version: str = "v1", error: PratiqueError | None = None):
        self.live, self.version, self.error = live, version, error

    def resource_of(self, group: str, version: str, kind: str) -> ServedResource | None:
        is_served = bool(self.version) and version in ("", self.version)
        return ServedResource(group, self.version, kind, "configmaps", True) if is_served else None

    def get(self, ref: ObjectRef) -> dict[str, Any] | None:
        if self.error:
            raise self.error
        return self.live


def theirs(uid: str, **meta: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "harbour", "uid": uid, **meta},
    }


HELD = {"labels": {"app.kubernetes.io/managed-by": "Helm"}}


@pytest.mark.parametrize(
    ("there", "protection", "expected"),
    [
        pytest.param(There(None), "Prevent", False, id="it is gone"),
        pytest.param(There(theirs("1")), "Prevent", True, id="it is there"),
        pytest.param(There(theirs("2")), "Prevent", True, id="it was made again"),
        pytest.param(There(theirs("1", **HELD)), "IfNoController", True, id="it is held"),
        pytest.param(There(theirs("2", **HELD)), "IfNoController", True, id="it was made again and is held"),
        pytest.param(There(theirs("1")), "IfNoController", False, id="who held it let it go"),
        pytest.param(There(theirs("ours")), "IfNoController", True, id="another deployment holds it"),
        pytest.param(There(theirs("1"), "v2"), "IfNoController", True, id="its version is not served"),
        pytest.param(There(None, "", UnknownKind("none")), "Prevent", False, id="its kind is gone"),
        pytest.param(There(None, error=Forbidden("no")), "Prevent", True, id="nobody may look"),
    ],
)
def test_S20_what_stands_in_the_way_does_so_whatever_its_uid(there: There, protection: str, expected: bool) -> None:
    met = PlannedAction(REF, Action.ADOPT, "1", problem="it exists", problem_code="already-exists")
    options = Options(CollisionProtection(protection), {"ours": "another"})
    assert plan_facts._is_in_the_way(cast("Api", there), met, options) is expected


CRD = ObjectRef("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", "boats.example.com")
SPACE = ObjectRef("", "v1", "Namespace", "", "harbour")


def at(second: int) -> dict[str, Any]:
    return {"metadata": {"creationTimestamp": f"2026-11-23T09:00:{second:02}Z"}}


def made_of(second: int, owner: str) -> dict[str, Any]:
    """Made by the controller of another object."""
    return {"metadata": {**at(second)["metadata"], "ownerReferences": [{"uid": owner, "controller": True}]}}


def listed(*objects: dict[str, Any]) -> Sample:
    return Sample(objects, len(objects), last=max((created_at(one) for one in objects), default=""))


def unseen_of(
    monkeypatch: pytest.MonkeyPatch,
    ref: ObjectRef,
    shown: dict[str, Any],
    there: Sample,
    *,
    uid: str = "u",
    **about: bool,
) -> tuple[Unseen, list[Query]]:
    asked: list[Query] = []

    def samples(_: Any, queries: list[Query]) -> dict[Query, Sample]:
        asked.extend(queries)
        kept = {one: tuple(obj for obj in there.objects if created_at(obj) > one.after) for one in queries}
        return {one: replace(there, objects=it, late=max(there.late, len(it))) for one, it in kept.items()}

    monkeypatch.setattr(deletion_losses, "read_samples", samples)
    monkeypatch.setattr(deletions, "_readers", lambda *_: (None, There({"metadata": {"uid": uid}})))
    record = {name: getattr(ref, name) for name in ("group", "version", "kind", "namespace", "name")}
    body = {
        "plan": {"actions": [{"ref": record, "action": "delete", "uid": "u", "before": None}]},
        "findings": [{"rule": "CRD-08", "ref": record, "evidence": shown}],
    }
    report = Report(actions={"delete": 1}, body=body)
    return deletions.unseen(cast("Request", None), cast("Api", None), report, **about), asked


@pytest.mark.parametrize(
    ("shown", "there", "words"),
    [
        pytest.param((1, 5), listed(at(5)), "", id="as it was shown"),
        pytest.param((2, 5), listed(at(5)), "", id="one is gone"),
        pytest.param((1, 5), listed(at(5), at(5)), "1 Boat object", id="one more in the same second"),
        pytest.param((1, 5), listed(at(6)), "1 Boat object", id="another one instead"),
        pytest.param((0, None), listed(at(1), at(2)), "2 Boat objects", id="there was none"),
        pytest.param((6000, 5), Sample((), 6000, last="2026"), "", id="more than are kept"),
        pytest.param(
            (6000, 5), Sample((at(6),), 6000, last="2026", late=1), "1 Boat object", id="and another one of those"
        ),
        pytest.param(
            (300, 5),
            Sample((at(6),), 301, last="2026", late=300),
            "300 Boat objects",
            id="more than are kept, others gone",
        ),
        pytest.param((1, 5), listed(at(5), made_of(6, "u")), "", id="made of what is deleted"),
        pytest.param((1, 5), listed(at(5), made_of(6, "other")), "1 Boat object", id="made of something that stays"),
        pytest.param((1, 5), listed(at(6), made_of(6, "u")), "1 Boat object", id="made of that, and one by hand"),
    ],
)
def test_S15_what_was_created_since_it_was_shown_is_told(
    monkeypatch: pytest.MonkeyPatch, shown: tuple[int, int | None], there: Sample, words: str
) -> None:
    count, second = shown
    newest = at(second)["metadata"]["creationTimestamp"] if second is not None else ""
    evidence = {"counts": {"Boat": count}, "newest": {"Boat": newest}}
    found, asked = unseen_of(monkeypatch, CRD, evidence, there)
    assert asked == [Query("example.com", "", "Boat", "", metadata_only=True, is_counted=True, after=newest)]
    assert [one.partition(" created")[0] for one in found.words] == ([words] if words else [])
    assert found.too_many == ()
    assert unseen_of(monkeypatch, CRD, evidence, there, uid="another")[0] == Unseen(), "what was in it went with it"


def test_S15_of_more_than_were_looked_through_each_may_be_new(monkeypatch: pytest.MonkeyPatch) -> None:
    evidence = {"counts": {"Boat": 1}, "newest": {"Boat": None}}
    assert unseen_of(monkeypatch, CRD, evidence, listed(at(9)))[0].words != ()
    assert unseen_of(monkeypatch, CRD, evidence, listed())[0] == Unseen()


def test_S15_a_report_that_does_not_say_which_were_there_is_made_again_and_ends_nothing_midway(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that an earlier version made. That there are more than it says is news all the same."""
    evidence = {"counts": {"Boat": 1}}
    for has_begun in (False, True):
        found, _ = unseen_of(monkeypatch, CRD, evidence, listed(at(9)), has_begun=has_begun)
        assert found.words == ()
        assert "because an earlier version of Pratique made the report" in found.untold[0]
        assert unseen_of(monkeypatch, CRD, evidence, listed(), has_begun=has_begun)[0] == Unseen()
        more, _ = unseen_of(monkeypatch, CRD, evidence, listed(at(8), at(9)), has_begun=has_begun)
        assert "1 Boat object created since" in more.words[0]


def test_S15_what_a_report_could_not_count_and_can_be_by_now_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    evidence = {"counts": {}, "newest": {}, "notCounted": ["Boat"]}
    found, asked = unseen_of(monkeypatch, CRD, evidence, listed(at(1), at(2)))
    assert [one.kind for one in asked] == ["Boat"]
    assert (found.words, len(found.untold)) == ((), 1)
    assert "now there are 2" in found.untold[0]
    assert unseen_of(monkeypatch, CRD, evidence, listed())[0] == Unseen()
    still = Sample(total=None, problem="forbidden", last=None)
    assert unseen_of(monkeypatch, CRD, evidence, still)[0] == Unseen(), "as reviewers were told"


def test_S15_what_is_too_large_to_be_read_is_not_taken_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    huge = Sample(total=None, problem="too large", last=None, why=Unread.TOO_LARGE)
    for evidence in ({"counts": {"Boat": 0}, "newest": {"Boat": ""}}, {"counts": {}, "notCounted": ["Boat"]}):
        found, _ = unseen_of(monkeypatch, CRD, {"newest": {}, **evidence}, huge)
        assert (found.words, len(found.too_many)) == ((), 1)


def test_S15_objects_are_listed_in_the_version_of_the_report_and_a_dead_conversion_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    evidence = {"counts": {"Boat": 1}, "newest": {"Boat": ""}, "listedIn": {"Boat": "v1beta1"}}
    dead = Sample(
        total=None, problem="the conversion webhook of Boat does not work", why=Unread.CONVERSION, server_words="10.1"
    )
    found, asked = unseen_of(monkeypatch, CRD, evidence, dead)
    assert [one.version for one in asked] == ["v1beta1"]
    (words,) = found.unconverted
    assert "the conversion webhook of Boat does not work" in words
    assert "kubectl patch crd boats.example.com" in words
    assert "10.1" not in words
    assert found.said == ((CRD, "10.1"),)


def test_S15_what_tidies_up_ends_nothing_once_it_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    evidence = {"counts": dict.fromkeys(MISSED, 0), "newest": dict.fromkeys(MISSED, "")}
    _, asked = unseen_of(monkeypatch, SPACE, evidence, listed(), has_begun=True)
    assert {one.kind for one in asked} == MISSED.keys() - {"Pod", "Job"}


def test_S15_of_more_than_can_be_looked_through_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    evidence = {"counts": {"Boat": 200_000}, "newest": {"Boat": at(5)["metadata"]["creationTimestamp"]}}
    found, _ = unseen_of(monkeypatch, CRD, evidence, Sample((), 200_000, last=None))
    assert (found.words, len(found.too_many)) == ((), 1)


def test_promise_4_what_cannot_be_counted_by_now_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TryLater, match="could not be read"):
        unseen_of(monkeypatch, CRD, {"counts": {"Boat": 1}}, Sample(total=None, problem="forbidden"))


def test_S15_of_a_namespace_all_that_the_report_counts_is_looked_at_but_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    evidence = {"counts": dict.fromkeys(MISSED, 0), "newest": dict.fromkeys(MISSED, "")}
    found, asked = unseen_of(monkeypatch, SPACE, evidence, listed(at(1)))
    assert {one.kind: one.group for one in asked} == {kind: MISSED[kind] for kind in MISSED if kind != "Pod"}
    assert {one.namespace for one in asked} == {"harbour"}
    assert len(found.words) == len(MISSED) - 1


def test_S15_only_what_was_let_go_stands_on_the_operators_word(
    request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletions, "is_free", lambda _: True)

    def is_enough() -> bool:
        found = deletions.by_records(Request.objects.get())
        assert isinstance(found, Known)
        return found.value.is_enough

    def approved(why: str, subject: str) -> None:
        facts = {"why": why, "subjectDigest": subject}
        audit.record(verb="request.approve", actor=MACHINE, request=request_, facts=facts)

    assert not is_enough()
    approved(deletions.WORDS, "sha256:of an earlier round")
    assert not is_enough()
    approved(deletions.WORDS, request_.subject_digest)
    assert is_enough()
    approved("1 of 1 approvals", request_.subject_digest)
    assert not is_enough()
