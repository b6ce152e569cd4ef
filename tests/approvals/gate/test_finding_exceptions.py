"""Finding exceptions at the gate: guards look past what they accept, and past nothing else."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import pytest
from django.utils import timezone

from approvals import clock
from approvals.gate.deciding_objects import read_exceptions
from approvals.gate.facts import How, Unknown
from approvals.gate.people import Accepted, with_exceptions
from approvals.models import BundleDeployment, DecidingObject, PolicyEvaluation, Request
from approvals.steps.mirroring import mirror
from provisioner.cluster.client.api import ClusterClient as Api
from tests.support.approvals import world
from tests.support.approvals.asked_gate import Live, before_phase
from tests.support.approvals.exceptions import confirm, second_person, write
from tests.support.approvals.fixtures import World
from tests.support.approvals.policies import look, save
from tests.support.approvals.waivers import CALM, approve, finding, report

WITHOUT_IT = '!("RB-01" in rules)'


@pytest.fixture
def request_(env: World) -> Request:
    """Two findings, of which a guard holds the first; rita asked for it."""
    save(env, name="calm", kind="guard", expression=WITHOUT_IT)
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    return report(Request.objects.get(), finding(1), finding(2, rule="POD-23"))


def hold_words(name: str = "calm") -> str:
    found = PolicyEvaluation.objects.get(policy__name=name)
    return found.words if found.result == "holds" else ""


def confirmed(env: World, **changes: Any) -> DecidingObject:
    return confirm(env, write(env, **changes), second_person(env))


def accepted(request: Request) -> dict[str, str]:
    """By name why it accepts nothing, "" where it does."""
    row = Request.objects.select_related("deployment__cluster").get(pk=request.pk)
    return {one.name: one.why_not for one in read_exceptions(row, row.reports.get(), None)}


def test_a_guard_looks_past_what_two_people_accept(env: World, request_: Request) -> None:
    save(env, name="all", kind="guard", mode="dry-run", expression=CALM)
    row = write(env)
    approve(request_, env.ada, waives=[])
    assert look(request_).state == "in_review"
    assert (request_.finding_exceptions, request_.problem_code) == ([], "held-back")
    confirm(env, row, second_person(env))
    assert look(request_).state == "approved"
    assert hold_words("all"), "for the other finding"
    assert request_.finding_exceptions == [
        {
            "name": "web",
            "reason": "replaced in spring",
            "ticket": "SEC-1",
            "until": DecidingObject.objects.get().spec["expires"],
            "by": ["ada", "carla"],
            "fingerprints": ["f1"],
        }
    ]
    assert mirror._reviews_summary(request_) == {"approvals": 1, "waivers": 1}


def test_a_grant_sees_every_finding(env: World, request_: Request) -> None:
    confirmed(env)
    save(env, name="eager", kind="grant", mode="dry-run", expression='waived == 0 && "RB-01" in rules')
    look(request_)
    assert hold_words() == ""
    assert "is false" not in PolicyEvaluation.objects.get(policy__name="eager").words


@pytest.mark.parametrize(
    ("changes", "labels", "expected"),
    [
        ({"selector": {"names": ["strimzi"]}}, {}, {"web": ""}),
        ({"selector": {"names": ["other"]}}, {}, {}),
        ({"fingerprint": "f9"}, {}, {}),
        ({"when": 'name == "strimzi"'}, {}, {"web": ""}),
        ({"when": "is_first && !is_first"}, {}, {}),
        ({"selector": {"matchLabels": {"tier": "dev"}}}, {"tier": "dev"}, {"web": ""}),
        ({"selector": {"matchLabels": {"tier": "dev"}}}, {"tier": "prod"}, {}),
    ],
)
def test_S14_it_selects_by_every_set_of_labels_and_where_its_condition_is_true(
    env: World, request_: Request, changes: dict[str, Any], labels: dict[str, str], expected: dict[str, str]
) -> None:
    Request.objects.update(labels={"tier": "dev"}, earlier_labels=[])
    BundleDeployment.objects.update(labels=labels)
    confirmed(env, **changes)
    assert accepted(request_) == expected


def test_a_condition_that_cannot_be_evaluated_accepts_nothing_and_says_so(env: World, request_: Request) -> None:
    confirmed(env, when='labels["tier"] == "dev"')
    assert "could not be evaluated" in accepted(request_)["web"]
    look(request_)
    assert "finding exception web accepts nothing: " in hold_words()


def test_S48_those_who_asked_for_a_change_accept_nothing_of_it_alone(
    env: World, request_: Request, settings: Any
) -> None:
    env.kubernetes.allow("rita", "approve")
    row = write(env, by=env.rita)
    confirm(env, row, carla := second_person(env))
    assert accepted(request_) == {"web": ""}
    rita, other = request_.requesters[0], {"username": "carla", "uid": "", "user_id": carla.pk}
    Request.objects.update(requesters=[rita, {**rita, **other}])
    assert accepted(request_) == {"web": "everyone who agreed to it requested this change"}
    settings.PRATIQUE = {**settings.PRATIQUE, "SELF_APPROVAL": True}
    assert accepted(request_) == {"web": ""}


def test_S48_one_that_ended_accepts_nothing_from_that_second(
    env: World, request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    until = timezone.now() + timedelta(hours=1)
    confirmed(env, expires=until.isoformat())
    monkeypatch.setattr(clock, "_ahead", until - timezone.now() - timedelta(seconds=5))
    assert accepted(request_) == {"web": ""}
    monkeypatch.setattr(clock, "_ahead", until - timezone.now())
    assert accepted(request_) == {"web": f"it ended at {until:%Y-%m-%d %H:%M} UTC, so it accepts nothing"}
    look(request_)
    assert "finding exception web accepts nothing: it ended at" in hold_words()
    assert request_.finding_exceptions == []


class Serving(Live):
    """A cluster that has these exceptions, and no other object of its kinds."""

    specs: dict[str, dict[str, Any]]

    def resource_of(self, group: str, version: str, kind: str) -> Any:
        return kind if kind == "FindingException" else None

    def snapshot(self, resource: Any) -> Any:
        objects = [{"metadata": {"uid": uid, "name": "web"}, "spec": spec} for uid, spec in self.specs.items()]
        return type("Snapshot", (), {"objects": objects})


def test_S48_an_exception_opens_a_guard_until_it_is_gone_from_the_cluster(env: World, request_: Request) -> None:
    """Before a phase: with what the watch has not seen yet, too."""
    row = confirmed(env)
    approve(request_, env.ada, waives=[])
    live = Serving(Request.objects.select_related("deployment__cluster", "content").get())

    def words() -> str:
        facts = before_phase(live.request, cast("Api", live))
        guards: Any = facts.guards
        return guards.value[0].words if guards.value[0].result == "holds" else ""

    live.specs = {row.uid: row.spec}
    assert words() == ""
    for specs in ({row.uid: {**row.spec, "ticket": "other"}}, {"another": row.spec}, {}):
        live.specs = specs
        assert words() != "", specs


def test_exceptions_that_nobody_could_read_accept_nothing() -> None:
    silent = Unknown("no answer within 10 s", timezone.now(), How.CLUSTER)
    found = with_exceptions(Accepted(frozenset({"f1"}), ("x",)), silent)
    assert found == Accepted(frozenset({"f1"}), ("x", "finding exceptions accept nothing: no answer within 10 s"))
