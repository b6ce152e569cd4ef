"""How the reader learns: all at once, cheaply before a phase, and never by guessing."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, cast

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from approvals import gate
from approvals.gate import deletions
from approvals.gate.answers import Next
from approvals.gate.facts import Fact, How, Known, Unknown, Unseen
from approvals.gate.plan_facts import Approved
from approvals.gate.remedies import unanswered
from approvals.models import Request, Revision, TaskClaim
from approvals.steps.failures import LONGEST_APPROVED_SECONDS, postpone_request
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import Forbidden, OutOfTime, Unreachable
from provisioner.values import Content, ObjectRef, Plan
from tests.support.approvals import world
from tests.support.approvals.asked_gate import Live, before_phase
from tests.support.approvals.fixtures import World
from tests.support.approvals.waivers import approve
from tests.support.patience import scaled


@pytest.fixture
def request_(env: World) -> Request:
    """In review, approved by ada."""
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    approve(world.in_review(Request.objects.get()), env.ada)
    return Request.objects.select_related("deployment__cluster", "content").get()


def read(request: Request, live: Live) -> gate.GateFacts:
    return before_phase(request, cast("Api", live))


class Counted(Live):
    def __init__(self, request: Request):
        super().__init__(request)
        self.read: list[str] = []

    def get(self, ref: ObjectRef) -> dict[str, Any]:
        self.read.append(ref.kind)
        return super().get(ref)


def test_before_a_phase_it_asks_no_more_than_it_must(
    env: World, request_: Request, django_assert_max_num_queries: Any
) -> None:
    live, report = Counted(request_), gate.reviewed_report(request_)
    env.kubernetes.asked.clear()
    # Of ChangeWindows and ApprovalPolicies, whose kinds are not served, it is asked whether there were any until now.
    with django_assert_max_num_queries(8):
        unseen = gate.reader.unseen(request_, cast("Api", live), report)
        facts = gate.reader.going_on(request_, cast("Api", live), report, unseen)
    assert sorted(live.read) == ["BundleDeployment", "ServiceAccount"]
    assert [(who, question.verb) for who, question in env.kubernetes.asked] == [("ada", "approve")]
    assert gate.judge(facts, timezone.now()).may


def test_to_decide_our_rows_of_all_kinds_are_read_by_one_query(request_: Request) -> None:
    with CaptureQueriesContext(connection) as asked:
        gate.reader.deciding(request_)
    assert sum('FROM "approvals_decidingobject"' in query["sql"] for query in asked) == 1


def test_S13_the_versions_of_policies_are_read_before_what_they_say(request_: Request) -> None:
    """Else what an earlier spec approves would count as said by a later one."""
    with CaptureQueriesContext(connection) as asked:
        gate.reader.deciding(request_)
    tables = [re.findall(r'FROM "approvals_(policy|decidingobject)"', query["sql"]) for query in asked]
    assert [table for found in tables for table in found][:2] == ["policy", "decidingobject"]


def test_every_fact_says_when_and_how_it_was_learned(request_: Request) -> None:
    began = timezone.now()
    facts = read(request_, Live(request_))
    for name, fact in facts.needed():
        assert isinstance(fact, Known), name
        assert began <= fact.at <= timezone.now(), name
    learned = {name: fact.how for name, fact in facts.needed()}
    assert (learned["desired_spec"], learned["account"], learned["guards"]) == (How.CLUSTER, How.CLUSTER, How.RECORDS)


@pytest.mark.parametrize("error", [Unreachable("no answer within 10 s"), Forbidden("the service may not get it")])
@pytest.mark.parametrize("kind", ["BundleDeployment", "ServiceAccount"])
def test_S25_what_cannot_be_read_before_a_phase_is_waited_for_and_ends_nothing(
    request_: Request, kind: str, error: Exception
) -> None:
    class Silent(Live):
        def get(self, ref: ObjectRef) -> dict[str, Any]:
            if ref.kind == kind:
                raise error
            return super().get(ref)

    facts = read(request_, Silent(request_))
    assert isinstance(facts.desired_spec if kind == "BundleDeployment" else facts.account, Unknown)
    answer = gate.judge(facts, timezone.now())
    assert (answer.next, answer.reason.words) == (Next.WAIT, str(error))
    with pytest.raises(gate.Waiting):
        gate.require(request_, facts)


class Changing(Live):
    """A cluster in which somebody pauses the deployment, and makes its account anew, at a moment of the reading."""

    has_changed = False

    def __init__(self, request: Request):
        super().__init__(request)
        request.service_account_uid = "approved"

    def get(self, ref: ObjectRef) -> dict[str, Any]:
        found = super().get(ref)
        if not self.has_changed:
            return found
        if ref.kind == "ServiceAccount":
            return {"metadata": {"uid": "made anew"}}
        return {**found, "spec": {**found["spec"], "paused": True}}

    def until(self, moment: float) -> Changing:
        return self


def deleting_a_crd(request: Request) -> None:
    ref = {"group": "apiextensions.k8s.io", "version": "v1", "kind": "CustomResourceDefinition"}
    one = {"ref": {**ref, "namespace": "", "name": "boats.example.com"}, "action": "delete", "uid": "u"}
    row = request.reports.get()
    row.actions, row.body = {"delete": 1}, {**row.body, "plan": {**row.body["plan"], "actions": [one]}}
    row.save(update_fields=["actions", "body"])


@pytest.mark.parametrize("moment", ["while objects are looked through", "while reviewers are asked about"])
def test_S25_the_last_seconds_count_also_while_other_things_are_asked(
    env: World, request_: Request, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    live = Changing(request_)

    def change(*_: object, **__: object) -> Unseen:
        live.has_changed = True
        return Unseen()

    def ask(*question: Any) -> Any:
        live.has_changed = True
        return asking(*question)

    deleting_a_crd(request_)
    asking = env.kubernetes.ask
    if moment == "while objects are looked through":
        monkeypatch.setattr(deletions, "unseen", change)
    else:
        monkeypatch.setattr(deletions, "unseen", lambda *_, **__: Unseen())
        monkeypatch.setattr(env.kubernetes, "ask", ask)
    answer = gate.judge(read(request_, live), timezone.now())
    assert {one.code for one in answer.reasons} == {"paused", "digest-mismatch"}


def test_S25_the_last_seconds_count_before_something_is_put_back(
    env: World, request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    live, asking = Changing(request_), env.kubernetes.ask
    revision = Revision.objects.create(
        deployment=request_.deployment,
        number=1,
        request=request_,
        content=request_.content,
        state="active",
        started_at=timezone.now(),
    )

    def ask(*question: Any) -> Any:
        live.has_changed = True
        return asking(*question)

    monkeypatch.setattr(env.kubernetes, "ask", ask)
    back = gate.Back(revision, gate.reviewed_report(request_))
    answer = gate.judge(gate.reader.restoring(request_, cast("Api", live), back), timezone.now())
    assert {one.code for one in answer.reasons} == {"paused", "digest-mismatch"}


class Slow:
    """What `slowly` is told."""

    def __init__(self) -> None:
        self.entered = 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        self.entered += 1
        yield


def test_what_takes_long_is_bounded_as_a_whole_and_holds_up_nobody(
    request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each list is bounded by itself; of many kinds that was minutes, and a worker's slot with them."""
    asked: list[tuple[float, float]] = []

    class Bounded(Live):
        def until(self, moment: float) -> Bounded:
            asked.append((moment - deletions.LOOK_SECONDS, time.monotonic()))
            return self

    def unseen(*_: object, **__: object) -> Unseen:
        raise OutOfTime("not asked")

    monkeypatch.setattr(deletions, "unseen", unseen)
    api, slowly, report = cast("Api", Bounded(request_)), Slow(), gate.reviewed_report(request_)
    monkeypatch.setattr(deletions, "unseen", lambda *_, **__: Unseen())
    gate.reader.unseen(request_, api, report, slowly)
    assert (slowly.entered, asked) == (0, []), "nothing is deleted: nothing takes long"
    deleting_a_crd(request_)
    monkeypatch.setattr(deletions, "unseen", unseen)
    began = time.monotonic()
    found = gate.reader.unseen(request_, api, gate.reviewed_report(request_), slowly)
    assert isinstance(found, Known)
    assert found.value.too_many
    assert slowly.entered == 1
    ((counted_from, asked_at),) = asked
    assert began <= counted_from <= asked_at
    assert not TaskClaim.objects.exclude(claimed_by="").exists(), "its place is given back"


def test_only_so_many_requests_of_a_cluster_are_looked_through_at_once(
    request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleting_a_crd(request_)
    found: list[Fact[Unseen]] = []

    def unseen(*_: object, **__: object) -> Unseen:
        if len(found) < deletions.LOOKS_AT_ONCE + 3:
            found.append(look())
        return Unseen()

    def look() -> Fact[Unseen]:
        return gate.reader.unseen(request_, cast("Api", Changing(request_)), gate.reviewed_report(request_))

    monkeypatch.setattr(deletions, "unseen", unseen)
    assert isinstance(look(), Known)
    (refused,) = (one for one in found if isinstance(one, Unknown))
    assert (refused.code, len(found)) == ("too-many-looks", deletions.LOOKS_AT_ONCE)
    assert isinstance(look(), Known), "places are given back"
    why = unanswered(refused, gate.reader.deciding(request_).about)
    assert why.next == gate.Next.WAIT
    assert "2 other requests of this cluster delete a CRD or a namespace" in why.words
    assert "No action needed" in why.remedy, "no operator has to look why the cluster does not answer"
    Request.objects.update(state="applying", attempts=20)
    postpone_request(Request.objects.get(), gate.Waiting(why))
    wait = Request.objects.get().look_again_at
    assert wait
    assert wait - timezone.now() <= timedelta(seconds=LONGEST_APPROVED_SECONDS), "others are done within a minute"


def test_the_cluster_is_asked_while_the_stored_bytes_are_read(request_: Request) -> None:
    """Each waits for the other: one after the other they would never end."""
    meeting = threading.Barrier(4, timeout=scaled(60))

    class Slow(Live):
        def uid(self) -> str:
            meeting.wait()
            return super().uid()

        def get(self, ref: ObjectRef) -> dict[str, Any]:
            meeting.wait()
            return super().get(ref)

    def load() -> Approved:
        meeting.wait()
        return Approved(Content((), "harbour", "installer", (), "sha256:c"), Plan((), "sha256:p"))

    facts, _ = gate.reader.approved(request_, cast("Api", Slow(request_)), (), load)
    assert all(isinstance(one, Known) for one in (facts.cluster_uid, facts.desired_spec, facts.account))
