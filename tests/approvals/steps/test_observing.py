"""The health of a revision as a whole: counted, in words, with a deadline, by the checks that were approved."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from approvals.models import AuditEntry, BundleDeployment, Request, Revision
from approvals.steps.mirroring import conditions
from approvals.steps.mirroring.mirror import look_after
from approvals.steps.running import observe
from approvals.steps.running.observe import missed_deadline, overdue, summary
from provisioner.errors import BadHealthCheck, TryLater
from provisioner.health_checks import deadline_minutes
from provisioner.values import Health, HealthState, ObjectRef
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.quay import BLUE, Quay, healthy_condition

CURRENT, PROGRESS, FAILED = HealthState.CURRENT, HealthState.IN_PROGRESS, HealthState.FAILED
MISSING, UNKNOWN = HealthState.NOT_FOUND, HealthState.UNKNOWN
NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def ref(name: str) -> ObjectRef:
    return ObjectRef("", "v1", "ConfigMap", "harbour", name)


def found(*healths: Health) -> dict[ObjectRef, Health]:
    return {ref(f"c{number}"): health for number, health in enumerate(healths)}


SUMMARIES = {
    "all well": (found(Health(CURRENT), Health(CURRENT)), (), CURRENT, "2 of 2 objects are ready"),
    "the worst first": (
        found(Health(PROGRESS, "slow"), Health(CURRENT), Health(FAILED, "broken"), Health(PROGRESS, "slower")),
        (),
        FAILED,
        (
            "1 of 4 objects are ready (1 failed, 2 in progress)\n"
            "ConfigMap harbour/c2: broken\nConfigMap harbour/c0: slow\nConfigMap harbour/c3: slower"
        ),
    ),
    "only the worst few are named": (
        found(*[Health(MISSING)] * 5),
        (),
        MISSING,
        (
            "0 of 5 objects are ready (5 not found)\nConfigMap harbour/c0: not found\n"
            "ConfigMap harbour/c1: not found\nConfigMap harbour/c2: not found\nand 2 more"
        ),
    ),
    "a check that could not be asked": (
        found(Health(CURRENT)),
        ("the health check of X selects nothing",),
        UNKNOWN,
        "1 of 1 objects are ready\nthe health check of X selects nothing",
    ),
    "what failed is worse than what could not be asked": (
        found(Health(FAILED, "broken")),
        ("nothing",),
        FAILED,
        "0 of 1 objects are ready (1 failed)\nConfigMap harbour/c0: broken\nnothing",
    ),
}


@pytest.mark.parametrize(("healths", "problems", "state", "words"), SUMMARIES.values(), ids=SUMMARIES)
def test_the_whole_is_as_its_worst_object(healths: Any, problems: Any, state: HealthState, words: str) -> None:
    assert summary(healths, problems) == Health(state, words)


@pytest.mark.parametrize(
    ("minutes_ago", "was_healthy", "is_missed"),
    [(9, False, False), (10, False, False), (11, False, True), (11, True, False)],
    ids=["in time", "at the last moment", "too late", "was healthy once"],
)
def test_a_deadline_is_missed_by_what_was_never_healthy(minutes_ago: int, was_healthy: bool, is_missed: bool) -> None:
    applied_at = NOON - timedelta(minutes=minutes_ago)
    healthy_at = applied_at if was_healthy else None
    assert missed_deadline(applied_at=applied_at, healthy_at=healthy_at, now=NOON, minutes=10) is is_missed


@pytest.mark.parametrize(("given", "minutes"), [({}, 30), ({"progressDeadlineMinutes": 1}, 1)], ids=["default", "own"])
def test_a_spec_says_its_deadline(given: dict[str, Any], minutes: int) -> None:
    assert deadline_minutes(given, default=30) == minutes


@pytest.mark.parametrize("given", [0, 1441, -3, True, "10", 1.5, None], ids=repr)
def test_a_deadline_out_of_range_is_refused_in_words(given: Any) -> None:
    with pytest.raises(BadHealthCheck, match="expected a number from 1 to 1440"):
        deadline_minutes({"progressDeadlineMinutes": given}, default=30)


def test_a_spec_whose_checks_cannot_be_read_is_a_problem_of_the_deployment(env: World) -> None:
    wrong = world.spec(healthChecks=[{"apiVersion": "v1", "kind": "Pod"}])
    deployment = world.submit_spec(env.cluster, seen := world.seen("web", wrong), env.rita)
    assert deployment.problem.startswith("spec.healthChecks[0]: asserts nothing")
    right = {**seen, "spec": world.spec(healthChecks=[BLUE]), "metadata": {**seen["metadata"], "generation": 2}}
    assert world.submit_spec(env.cluster, right, env.rita).problem == ""


@pytest.mark.parametrize(("health", "status"), [("", "Unknown"), ("Unknown", "Unknown"), ("Failed", "False")])
def test_promise_4_health_that_nobody_could_tell_is_unknown_to_kubectl(quay: Quay, health: str, status: str) -> None:
    deployment = quay.deployment()
    deployment.health = health
    (one,) = [it for it in conditions.of_deployment(deployment, None, "", "") if it.type == "Healthy"]
    assert one.record()["status"] == status


def test_a_revision_that_is_not_healthy_in_time_is_said_to_have_missed_its_deadline(quay: Quay) -> None:
    deployment = quay.deployment(healthChecks=[BLUE])
    quay.own(deployment, "sail", colour="red")
    health = quay.look(deployment)
    assert health.state is PROGRESS
    assert health.message.splitlines() == [
        "ProgressDeadlineExceeded: revision 1 was not healthy within 10 minutes after it was applied",
        "nothing is restored automatically: spec.onFailure is Stop",
        "0 of 1 objects are ready (1 in progress)",
        f'ConfigMap {quay.namespace}/sail: its data.colour is not "blue"',
    ]
    assert healthy_condition(deployment) == (False, "ProgressDeadlineExceeded")
    revision = deployment.active_revision
    assert revision is not None
    assert overdue(revision).startswith("ProgressDeadlineExceeded: revision 1")
    assert revision.state == "active", "nothing is undone"
    quay.look(deployment)
    assert AuditEntry.objects.filter(verb="revision.overdue").count() == 1


def test_promise_4_what_was_healthy_when_last_seen_is_not_called_so_while_nobody_answers(quay: Quay) -> None:
    deployment = quay.deployment()
    quay.own(deployment, "sail")
    assert quay.look(deployment).state is CURRENT
    document = yaml.safe_load(quay.env.cluster.kubeconfig)
    document["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    quay.env.cluster.kubeconfig = yaml.safe_dump(document)
    quay.env.cluster.save()
    with pytest.raises(TryLater):
        look_after(deployment.pk)
    deployment.refresh_from_db()
    assert (deployment.health, "could not be checked" in deployment.health_message) == (UNKNOWN, True)
    assert healthy_condition(deployment) == (False, "Unknown")


def test_before_its_deadline_nothing_is_said_of_it(quay: Quay) -> None:
    deployment = quay.deployment(minutes_ago=9, healthChecks=[BLUE])
    quay.own(deployment, "sail", colour="red")
    assert quay.look(deployment).message.startswith("0 of 1 objects are ready")
    assert healthy_condition(deployment) == (False, "InProgress")
    assert deployment.active_revision is not None
    assert overdue(deployment.active_revision) == ""


def test_a_revision_that_becomes_healthy_late_has_recovered_for_good(quay: Quay) -> None:
    deployment = quay.deployment(healthChecks=[BLUE])
    quay.own(deployment, "sail", colour="red")
    quay.look(deployment)
    quay.paint("sail", "blue")
    assert quay.look(deployment) == Health(CURRENT, "1 of 1 objects are ready")
    assert healthy_condition(deployment) == (True, "Current")
    quay.paint("sail", "red")
    assert quay.look(deployment).message.startswith("0 of 1 objects are ready")
    assert healthy_condition(deployment) == (False, "InProgress")


def test_checks_count_as_they_were_approved_whatever_the_spec_says_by_now(quay: Quay) -> None:
    deployment = quay.deployment(healthChecks=[BLUE])
    quay.own(deployment, "sail", colour="red")
    deployment.spec = {**deployment.spec, "healthChecks": [], "serviceAccountName": "somebody-else"}
    deployment.save(update_fields=["spec"])
    assert quay.look(deployment).state is PROGRESS


def test_a_check_that_selects_nothing_is_not_healthy(quay: Quay) -> None:
    deployment = quay.deployment(minutes_ago=1, healthChecks=[{**BLUE, "name": "mast"}])
    quay.own(deployment, "sail", colour="blue")
    health = quay.look(deployment)
    assert health.state is UNKNOWN
    assert health.message.endswith("the health check of ConfigMap of v1, mast matches no objects")


def test_what_was_read_of_one_revision_is_not_kept_for_the_next(quay: Quay, monkeypatch: pytest.MonkeyPatch) -> None:
    deployment = quay.deployment()
    quay.own(deployment, "sail")
    was = deployment.active_revision
    assert was is not None
    read = observe.pipeline.observe

    def overtaken(*args: Any, **more: Any) -> Any:
        Revision.objects.filter(pk=was.pk).update(state="replaced")
        request = Request.objects.get()
        request.pk, request.uid, request.number = None, uuid.uuid4(), 2
        request.save(force_insert=True)
        facts = {"content": was.content, "state": "active", "started_at": NOON, "finished_at": NOON}
        newer = Revision.objects.create(deployment=deployment, number=2, request=request, **facts)
        BundleDeployment.objects.filter(pk=deployment.pk).update(active_revision=newer)
        return read(*args, **more)

    monkeypatch.setattr(observe.pipeline, "observe", overtaken)
    observe.observe(deployment)
    deployment.refresh_from_db()
    assert (deployment.health, deployment.active_revision_id != was.pk) == ("", True)
