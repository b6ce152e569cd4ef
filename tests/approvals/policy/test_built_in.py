"""The guards that come with the product: what each holds, what lets it go, and who switches one off."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from approvals import services
from approvals.errors import NotAllowed, NotFound
from approvals.gate.policies import facts_of
from approvals.models import AuditEntry, KubernetesIdentity, Policy, PolicyEvaluation, Report, Request
from approvals.policy import POLICY
from approvals.policy.built_in import BUILT_IN, BuiltInGuard
from provisioner.expressions.evaluator import ask
from tests.support.approvals import scene, world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, text_of
from tests.support.approvals.policies import look
from tests.support.approvals.world import acting

# By guard: a report that it holds.
HELD = {
    "hold-breaking-crds": "crd-version-dropped",
    "hold-data-loss": "data-is-deleted",
    "hold-secrets-and-escalation": "account-reads-every-secret",
    "hold-unknown": "claim-grows",
}


@pytest.fixture
def switched_on(settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "BUILT_IN_GUARDS": list(HELD)}


def reported(env: World, case: str) -> Report:
    request = scene.reported(scene.asked(env.cluster, "boat", env.rita), {"unjudged": 0, **scene.report_of(case)})
    return Report.objects.get(request=request)


def lets_go(guard: BuiltInGuard, facts: Any) -> bool:
    (found,) = ask(POLICY, [guard.document.expression], facts)
    assert found.is_bool, found.words
    return found.is_true


@pytest.mark.parametrize("guard", BUILT_IN, ids=lambda guard: guard.name)
def test_it_holds_what_its_words_say_until_people_let_it_go(env: World, guard: BuiltInGuard) -> None:
    """A guard that nothing lets go would be a wall."""
    report = reported(env, HELD[guard.name])
    known = facts_of(report.request, report)
    assert not lets_go(guard, known)
    every = {finding.fingerprint for finding in report.findings.all()}
    if guard.name == "hold-unknown":
        assert not lets_go(guard, {**known, "approvals": 1})
        assert lets_go(guard, {**known, "approvals": 2})
    else:
        assert lets_go(guard, facts_of(report.request, report, every))


@pytest.mark.parametrize("guard", BUILT_IN, ids=lambda guard: guard.name)
def test_it_lets_harmless_changes_go(env: World, guard: BuiltInGuard) -> None:
    report = reported(env, "image-known-before")
    assert lets_go(guard, facts_of(report.request, report))


@pytest.mark.usefixtures("switched_on")
def test_what_is_unknown_takes_two_people_from_the_start(env: World, request_: Request, settings: Any) -> None:
    Report.objects.update(severities={"unknown": 1}, worst="unknown")
    report = request_.reports.get()
    report.findings.create(
        position=0, rule="PRE-04", section="preflight", severity="unknown", message="m", fingerprint="f"
    )
    env.kubernetes.allow("bert", "approve")
    world.review(request_, acting(env.ada))
    assert look(request_).problem == "held back by hold-unknown"
    held = PolicyEvaluation.objects.get(policy__name="hold-unknown")
    assert held.words.startswith("the effect of a finding is unknown, so two people must approve")
    robot = "system:serviceaccount:ci:robot"
    settings.PRATIQUE = {**settings.PRATIQUE, "MACHINE_REVIEWERS": [robot]}
    carla = world.user("carla", env.cluster)
    proved = KubernetesIdentity.Authenticator.TOKEN_REVIEW
    carla.kubernetes_identities.update(username=robot, authenticator=proved)
    env.kubernetes.allow(robot, "approve")
    world.review(request_, acting(carla))
    assert look(request_).problem == "held back by hold-unknown", "a machine is no second person"
    world.review(request_, acting(env.bert))
    assert look(request_).state == "approved"


@pytest.mark.usefixtures("switched_on")
def test_S05_whoever_asked_for_a_change_switches_off_nothing_that_holds_it(env: World, request_: Request) -> None:
    env.kubernetes.allow("rita", "approve")
    env.kubernetes.allow("bert", "approve")
    Report.objects.update(severities={"unknown": 1}, worst="unknown")
    request_.reports.get().findings.create(
        position=0, rule="PRE-04", section="preflight", severity="unknown", message="m", fingerprint="f"
    )
    look(request_)
    about: dict[str, Any] = {"cluster": env.cluster, "name": "hold-unknown", "via": "browser"}
    services.switch_guard(by=acting(env.rita), is_active=False, **about)
    Policy.objects.update(changed_at=request_.created_at - timedelta(hours=1))  # and asked for the change after that
    world.review(request_, acting(env.ada))
    assert look(request_).problem == "held back by hold-unknown"
    held = PolicyEvaluation.objects.get(policy__name="hold-unknown", policy_version=2)
    assert "rita requested this change and switched the guard off" in held.words
    services.switch_guard(by=acting(env.bert), is_active=True, **about)
    services.switch_guard(by=acting(env.bert), is_active=False, **about)
    assert look(request_).state == "approved"


@pytest.mark.usefixtures("switched_on")
def test_whoever_may_approve_everything_switches_one_off_and_that_is_kept(
    env: World, request_: Request, browse: Browse
) -> None:
    look(request_)
    place = "/policies/built-in/prod/hold-unknown/change"
    assert "hold-unknown" in text_of(browse(env.ada).get("/policies"))
    with pytest.raises(NotAllowed):
        services.switch_guard(
            by=acting(env.bert), cluster=env.cluster, name="hold-unknown", is_active=False, via="browser"
        )
    with pytest.raises(NotFound):
        services.switch_guard(by=acting(env.ada), cluster=env.cluster, name="routine", is_active=False, via="browser")
    assert browse(env.ada).post(place, {"is_active": "false"}).status_code == 302
    assert AuditEntry.objects.get(verb="policy.switched").facts["is_active"] is False
    look(request_)
    row = Policy.objects.get(name="hold-unknown")
    assert (row.is_active, row.version, row.editor) == (False, 2, env.ada)
    assert not PolicyEvaluation.objects.filter(policy=row, policy_version=2).exists()
    assert browse(env.ada).post(place, {"is_active": "true"}).status_code == 302
    look(request_)
    assert PolicyEvaluation.objects.get(policy=row, policy_version=3).result == "passes"
