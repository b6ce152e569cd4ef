"""spec.onFailure of a revision that is applied and never becomes healthy: what ran before is put back, or stays away."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from approvals import services
from approvals.ledger import claims
from approvals.models import AuditEntry, BundleDeployment, Drift, InventoryItem, Request, Revision
from approvals.steps import restore
from approvals.steps.running.correct import correct
from provisioner.values import Identity, ObjectRef
from tests.support.approvals.world import acting
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite, binding, group
from tests.support.kubernetes.live import until_current
from tests.support.servers.registry import Registry

RESTORE: dict[str, Any] = {"onFailure": "RestorePrevious"}
# Of what comes last, so that it holds no later phase.
SHIPSHAPE = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "fieldValue": {"path": "metadata.labels.shape", "value": "ship"},
}


class Killed(BaseException):
    """What kill -9 does to a worker: nothing after it runs, and nothing is said."""


def version_of(site: DeployedSite, name: str) -> str:
    live = site.live("ConfigMap", name)
    return str(live["data"]["version"])


def heal(site: DeployedSite, name: str) -> None:
    web = site.ref("Deployment", name)
    site.edit(web, lambda live: live["metadata"]["labels"].update(shape="ship"))


def second_runs(
    site: DeployedSite, registry: Registry, name: str, *, also: str = "", **options: Any
) -> tuple[BundleDeployment, Request]:
    """Version 1 is healthy; version 2, with a ServiceAccount `also`, runs and has a check that nothing passes."""
    image = bundles.image(registry, name, {**bundles.app(name, "1")}, "1")
    deployment = site.applied(name, image, **options)
    files = bundles.app(name, "2")
    if also:
        files["manifests/also.yaml"] = bundles.app(also, "1")["manifests/00.yaml"]
    second = bundles.image(registry, name, files, "2")
    site.prepare(name, second, **{"healthChecks": [SHIPSHAPE], "progressDeadlineMinutes": 10, **options})
    request = site.approve(deployment)
    assert (request.state, version_of(site, name)) == ("applied", "2"), request.problem
    until_current(site.api, site.ref("Deployment", name))
    site.look_after(deployment)
    return deployment, request


def let_time_pass(site: DeployedSite, deployment: BundleDeployment) -> Request:
    """Eleven minutes later somebody looks at it again."""
    running = deployment.revisions.filter(state="active")
    running.update(finished_at=timezone.now() - timedelta(minutes=11))
    site.look_after(deployment)
    return site.latest(deployment)


def states(deployment: BundleDeployment) -> list[tuple[int, str]]:
    return list(deployment.revisions.order_by("number").values_list("number", "state"))


@pytest.mark.proof
def test_what_ran_before_is_put_back_once_the_deadline_of_what_runs_is_missed(
    site: DeployedSite, registry: Registry
) -> None:
    deployment, request = second_runs(site, registry, "ebb", also="ebb-more", **RESTORE)
    assert request.state == "applied"
    assert let_time_pass(site, deployment).state == "restoring"
    site.work()
    site.look_after(deployment)
    request.refresh_from_db()
    assert (request.state, version_of(site, "ebb")) == ("failed", "1")
    assert request.problem.startswith("ProgressDeadlineExceeded: revision 2 was not healthy within 10 minutes after")
    assert "has no metadata.labels.shape" in request.problem
    assert request.problem.endswith("revision 1 was restored")
    assert states(deployment) == [(1, "active"), (2, "failed")]
    assert deployment.active_revision == Revision.objects.get(deployment=deployment, number=1)
    assert site.live("ServiceAccount", "ebb-more") is None
    assert not InventoryItem.objects.filter(deployment=deployment, name="ebb-more").exists()
    steps = set(request.outcomes.filter(object__contains="ConfigMap").values_list("step", "state"))
    assert steps == {("apply", "done"), ("restore", "done")}
    verbs = list(
        AuditEntry.objects.filter(request_uid=str(request.uid)).order_by("number").values_list("verb", flat=True)
    )
    assert verbs[-4:] == ["request.restore", "revision.recorded", "revision.restored", "request.fail"]


@pytest.mark.thorough
def test_the_cluster_shows_that_it_was_put_back_and_why(site: DeployedSite, registry: Registry) -> None:
    deployment, _ = second_runs(site, registry, "flow", **RESTORE)
    let_time_pass(site, deployment)

    def shown(kind: str, name: str) -> dict[str, Any]:
        live = site.api.get(ObjectRef("core.rukpak.io", "v1alpha2", kind, "", name))
        assert live is not None
        return {it["type"]: it for it in live["status"]["conditions"]}

    during = shown("BundleDeploymentRequest", "flow-2")["Applied"]
    assert (during["status"], during["reason"]) == ("False", "ProgressDeadlineExceeded")
    site.work()
    site.look_after(deployment)
    after = shown("BundleDeploymentRequest", "flow-2")["Applied"]
    assert (after["status"], after["reason"]) == ("False", "Failed")
    assert (
        "; revision 1 was restored. To request it again, someone who may update it changes it, or runs `"
        in after["message"]
    )
    whole = shown("BundleDeployment", "flow")
    assert (whole["Applied"]["status"], whole["Applied"]["message"]) == ("True", "revision 1")
    assert (whole["UpToDate"]["status"], whole["UpToDate"]["reason"]) == ("False", "ProgressDeadlineExceeded")
    assert whole["UpToDate"]["message"] == f"request flow-2 is failed: {after['message']}"
    assert "revision 2" not in whole["Healthy"]["message"]


def test_nothing_is_put_back_twice_or_asked_for_again_by_itself(site: DeployedSite, registry: Registry) -> None:
    deployment, request = second_runs(site, registry, "once", **RESTORE)
    let_time_pass(site, deployment)
    site.work()
    for _ in range(2):
        let_time_pass(site, deployment)
        site.work()
    assert site.latest(deployment) == request
    assert AuditEntry.objects.filter(verb="revision.restored").count() == 1
    assert states(deployment) == [(1, "active"), (2, "failed")]
    site.ask_again(deployment)
    site.work()
    assert site.approve(deployment).state == "applied", site.latest(deployment).problem
    assert version_of(site, "once") == "2"


@pytest.mark.thorough
def test_what_was_put_back_is_looked_after_again(site: DeployedSite, registry: Registry) -> None:
    deployment, _ = second_runs(site, registry, "keel", **RESTORE)
    let_time_pass(site, deployment)
    site.work()
    live = site.live("ConfigMap", "keel")
    site.api.replace({**live, "data": {"version": "theirs"}})
    InventoryItem.objects.filter(deployment=deployment, kind="ConfigMap").update(look_at=timezone.now())
    correct(deployment.pk)
    drift = Drift.objects.get(item__deployment=deployment)
    assert (drift.revision.number, drift.state, drift.kind) == (1, "corrected", "changed")
    assert version_of(site, "keel") == "1"


def test_by_default_nothing_is_put_back_and_the_words_say_so(site: DeployedSite, registry: Registry) -> None:
    deployment, _ = second_runs(site, registry, "still")
    assert let_time_pass(site, deployment).state == "applied"
    deployment.refresh_from_db()
    assert "nothing is restored automatically: spec.onFailure is Stop" in deployment.health_message
    assert (states(deployment), version_of(site, "still")) == ([(1, "replaced"), (2, "active")], "2")


def test_a_pause_holds_it_back_and_who_is_healthy_by_then_stays(site: DeployedSite, registry: Registry) -> None:
    deployment, _ = second_runs(site, registry, "berth", **RESTORE)
    site.pause(deployment, "wait")
    assert let_time_pass(site, deployment).state == "applied"
    deployment.refresh_from_db()
    assert "revision 1 is not restored: the deployment is paused" in deployment.health_message
    heal(site, "berth")
    site.look_after(deployment)
    site.resume(deployment)
    assert let_time_pass(site, deployment).state == "applied"
    assert states(deployment) == [(1, "replaced"), (2, "active")]


@pytest.mark.thorough
def test_what_becomes_healthy_before_anything_is_put_back_stays(site: DeployedSite, registry: Registry) -> None:
    deployment, request = second_runs(site, registry, "laggard", **RESTORE)
    assert let_time_pass(site, deployment).state == "restoring"
    heal(site, "laggard")
    site.look_after(deployment)
    site.work(request)
    assert (request.state, request.problem) == ("applied", "")
    assert request.settled_at is not None
    assert (states(deployment), version_of(site, "laggard")) == ([(1, "replaced"), (2, "active")], "2")
    assert Revision.objects.get(request=request).message == ""


@pytest.mark.thorough
def test_where_something_else_is_asked_for_already_that_comes_next(site: DeployedSite, registry: Registry) -> None:
    deployment, request = second_runs(site, registry, "turn", **RESTORE)
    site.prepare("turn", bundles.image(registry, "turn", bundles.app("turn", "3"), "3"), **RESTORE)
    let_time_pass(site, deployment)
    request.refresh_from_db()
    deployment.refresh_from_db()
    assert (request.state, version_of(site, "turn")) == ("applied", "2")
    assert "revision 1 is not restored: request 3 is open" in deployment.health_message
    assert site.approve(deployment).state == "applied"


@pytest.mark.thorough
def test_a_new_wish_comes_next_where_nothing_was_put_back_yet(site: DeployedSite, registry: Registry) -> None:
    deployment, request = second_runs(site, registry, "tack", **RESTORE)
    assert let_time_pass(site, deployment).state == "restoring"
    site.prepare("tack", bundles.image(registry, "tack", bundles.app("tack", "3"), "3"), **RESTORE)
    request.refresh_from_db()
    assert (request.state, version_of(site, "tack")) == ("failed", "2")
    assert request.problem.endswith("could not be restored: the spec has changed")
    assert states(deployment) == [(1, "replaced"), (2, "active")]
    assert site.approve(deployment).state == "applied", site.latest(deployment).problem
    assert states(deployment) == [(1, "replaced"), (2, "replaced"), (3, "active")]


def test_what_cannot_be_put_back_leaves_what_runs_as_it_is(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment, request = second_runs(site, registry, "fast", **RESTORE)
    theirs = site.live("ConfigMap", "fast")
    site.api.replace({**theirs, "data": {"version": "theirs"}})
    let_time_pass(site, deployment)
    site.work(request)
    assert request.state == "failed"
    assert "the previous revision could not be restored" in request.problem
    assert (states(deployment), version_of(site, "fast")) == ([(1, "replaced"), (2, "active")], "theirs")
    site.look_after(deployment)
    deployment.refresh_from_db()
    assert "revision 1 was not restored: request 2 says why" in deployment.health_message
    assert site.latest(deployment) == request


def test_S16_a_revoked_revision_is_put_back_only_once_somebody_has_taken_that_back(
    site: DeployedSite, registry: Registry
) -> None:
    deployment, request = second_runs(site, registry, "rot", **RESTORE)
    alice = site.people["alice"]
    site.revoke(deployment, "leaks keys")
    assert let_time_pass(site, deployment).state == "applied"
    deployment.refresh_from_db()
    assert "not restored: revision 1 was revoked by alice: leaks keys" in deployment.health_message
    services.reinstate_revision(by=acting(alice), deployment=deployment, revision=1, reason="other keys", via="browser")
    assert let_time_pass(site, deployment).state == "restoring"
    site.revoke(deployment, "those too")
    site.work(request)
    assert request.state == "failed"
    assert request.problem.endswith("previous revision 1 was revoked by alice: those too")
    assert (states(deployment), version_of(site, "rot")) == ([(1, "replaced"), (2, "active")], "2")


def test_S25_an_account_that_was_made_again_puts_nothing_back(site: DeployedSite, registry: Registry) -> None:
    deployment, request = second_runs(site, registry, "wraith", **RESTORE)
    account = site.ref("ServiceAccount", "installer")
    site.api.delete(account)
    site.api.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "installer", "namespace": site.namespace}},
        field_manager="somebody",
    )
    let_time_pass(site, deployment)
    site.work(request)
    assert request.state == "failed"
    assert "it was recreated" in request.problem
    assert (states(deployment), version_of(site, "wraith")) == ([(1, "replaced"), (2, "active")], "2")


@pytest.mark.parametrize(
    "moment", [*(pytest.param(step, marks=pytest.mark.thorough) for step in ("_begin", "_finish")), "_apply"]
)
def test_a_worker_that_is_killed_on_the_way_back_is_followed_by_one_that_ends_it(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    name = f"kill-{moment.strip('_')}"
    deployment, request = second_runs(site, registry, name, **RESTORE)
    let_time_pass(site, deployment)
    done = getattr(restore, moment)

    def killed(*words: Any) -> Any:
        if moment == "_apply":
            done(*words)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(restore, moment, killed)
        with pytest.raises(Killed):
            site.work()
    assert Request.objects.get(pk=request.pk).state == "restoring"
    Request.objects.filter(pk=request.pk).update(claimed_by="", claimed_until=None)
    site.work(request)
    assert (request.state, version_of(site, name)) == ("failed", "1")
    assert request.problem.endswith("revision 1 was restored")
    assert states(deployment) == [(1, "active"), (2, "failed")]
    assert not Drift.objects.exists()


@pytest.mark.thorough
def test_another_wish_ends_a_restore_that_waits_for_an_approver_who_may_no_longer(
    site: DeployedSite, registry: Registry
) -> None:
    leaver = Identity(f"{site.namespace}-leaver", (f"{site.namespace}-leavers",))
    approver = binding(leaver.username, "pratique-approver", group(*leaver.groups))
    site.api.apply(approver, field_manager="somebody")
    site.until_may(leaver, "approve", "bundledeployments", "core.rukpak.io")
    site.people["alice"].kubernetes_identities.update(username=leaver.username, groups=[*leaver.groups])
    deployment, request = second_runs(site, registry, "leaver", **RESTORE)
    let_time_pass(site, deployment)
    site.api.delete(ObjectRef.of(approver))
    site.until_may(leaver, "approve", "bundledeployments", "core.rukpak.io", is_allowed=False)
    site.work(request)
    assert (request.state, request.problem_code) == ("restoring", "no-longer-approved")
    site.prepare("leaver", bundles.image(registry, "leaver", bundles.app("leaver", "3"), "3"), **RESTORE)
    request.refresh_from_db()
    assert request.state == "failed"
    assert request.problem.endswith("could not be restored: the spec has changed")
    assert (site.latest(deployment).number, site.latest(deployment).state) == (3, "in_review")
    assert version_of(site, "leaver") == "2"


def test_S16_a_revision_revoked_while_it_is_put_back_is_left_at_the_next_phase(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment, request = second_runs(site, registry, "late-word", **RESTORE)
    let_time_pass(site, deployment)
    begun = restore._begin

    def revoke_then(*words: Any) -> bool:
        is_begun = begun(*words)
        site.revoke(deployment, "leaks keys")
        return is_begun

    monkeypatch.setattr(restore, "_begin", revoke_then)
    site.work(request)
    assert request.state == "failed"
    assert request.problem.endswith("previous revision 1 was revoked by alice: leaks keys")
    assert version_of(site, "late-word") == "2"


@pytest.mark.thorough
def test_nothing_is_put_back_while_drift_of_what_runs_is_being_corrected(
    site: DeployedSite, registry: Registry
) -> None:
    deployment, request = second_runs(site, registry, "wake", **RESTORE)
    assert claims.take(BundleDeployment.objects.filter(pk=deployment.pk), "corrector")
    let_time_pass(site, deployment)
    site.work(request)
    assert (request.state, request.problem_code) == ("restoring", "busy")
    assert (states(deployment), version_of(site, "wake")) == ([(1, "replaced"), (2, "active")], "2")
    claims.give_back(BundleDeployment.objects.filter(pk=deployment.pk), "corrector")
    site.work(request)
    assert (request.state, version_of(site, "wake")) == ("failed", "1")
