"""How the reader learns: all at once, cheaply before a phase, and never by guessing."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest
from django.utils import timezone

from approvals import gate
from approvals.gate.answers import Next
from approvals.gate.facts import How, Known, Unknown
from approvals.gate.planned import Approved
from approvals.models import Request
from provisioner.cluster.client.api import Cluster as Api
from provisioner.errors import Forbidden, Unreachable
from provisioner.values import Content, ObjectRef, Plan
from tests.support.approvals import world
from tests.support.approvals.asked_gate import Live
from tests.support.approvals.fixtures import World
from tests.support.approvals.waivers import approve


@pytest.fixture
def request_(here: World) -> Request:
    """In review, approved by ada."""
    world.wish(here.cluster, world.seen("strimzi", world.spec()), here.rita)
    approve(world.in_review(Request.objects.get()), here.ada)
    return Request.objects.select_related("deployment__cluster", "content").get()


def read(request: Request, live: Live) -> gate.GateFacts:
    return gate.reader.going_on(request, cast("Api", live), gate.reviewed_report(request))


class Counted(Live):
    def __init__(self, request: Request):
        super().__init__(request)
        self.read: list[str] = []

    def get(self, ref: ObjectRef) -> dict[str, Any]:
        self.read.append(ref.kind)
        return super().get(ref)


def test_before_a_phase_it_asks_no_more_than_it_must(
    here: World, request_: Request, django_assert_max_num_queries: Any
) -> None:
    live, report = Counted(request_), gate.reviewed_report(request_)
    here.kubernetes.asked.clear()
    with django_assert_max_num_queries(4):
        facts = gate.reader.going_on(request_, cast("Api", live), report)
    assert sorted(live.read) == ["BundleDeployment", "ServiceAccount"]
    assert [(who, question.verb) for who, question in here.kubernetes.asked] == [("ada", "approve")]
    assert gate.judge(facts, timezone.now()).may


def test_every_fact_says_when_and_how_it_was_learned(request_: Request) -> None:
    began = timezone.now()
    facts = read(request_, Live(request_))
    for name, fact in facts.needed():
        assert isinstance(fact, Known), name
        assert began <= fact.at <= timezone.now(), name
    learned = {name: fact.how for name, fact in facts.needed()}
    assert (learned["wish"], learned["account"], learned["guards"]) == (How.CLUSTER, How.CLUSTER, How.RECORDS)


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
    assert isinstance(facts.wish if kind == "BundleDeployment" else facts.account, Unknown)
    answer = gate.judge(facts, timezone.now())
    assert (answer.next, answer.reason.words) == (Next.WAIT, str(error))
    with pytest.raises(gate.Waiting):
        gate.require(request_, facts)


def test_the_cluster_is_asked_while_the_stored_bytes_are_read(request_: Request) -> None:
    """Each waits for the other: one after the other they would never end."""
    meeting = threading.Barrier(4, timeout=10)

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
    assert all(isinstance(one, Known) for one in (facts.cluster_uid, facts.wish, facts.account))
