"""What was left out because its API was absent is created when it appears, exactly as approved, or asked for (S17)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from approvals import gate, tasks
from approvals.audit import verify_chain
from approvals.ledger import drifts, optionals
from approvals.models import (
    BundleDeployment,
    InventoryItem,
    KubernetesIdentity,
    OptionalObject,
    Outcome,
    Request,
    Verdict,
)
from approvals.steps.running import optional as step
from approvals.steps.running.correct import Correct, correct
from approvals.watch import expected_changes as watch
from approvals.web.requests.overview import blockers
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite, look_alone
from tests.support.journeys.left_out import LeftOut
from tests.support.servers.registry import Registry


@pytest.mark.proof
@pytest.mark.parametrize("is_annotated", [True, False], ids=["by annotation", "by spec.optionalKinds"])
def test_S17_what_was_left_out_is_created_as_approved_when_its_api_appears(
    site: DeployedSite, registry: Registry, is_annotated: bool
) -> None:
    kinds = [{"group": f"{site.namespace}.example.com", "kind": "Widget"}]
    it = LeftOut(site, registry, is_annotated=is_annotated, **({} if is_annotated else {"optionalKinds": kinds}))
    said = [one.message for one in it.report.findings.filter(object__contains="Widget")]
    assert any(f"will be created once API {it.group}/v1 Widget appears" in one for one in said), said
    it.notice()
    assert it.row.state == "waiting"
    it.serve()
    it.notice()
    live = it.live()
    assert live, it.row.problem
    assert live["spec"] == {"size": 1}
    assert [one["manager"] for one in live["metadata"]["managedFields"]] == ["pratique"]
    assert InventoryItem.objects.get(deployment=it.deployment, kind="Widget").uid == live["metadata"]["uid"]
    assert (it.row.state, it.row.problem) == ("created", "")
    outcomes = Outcome.objects.filter(request=it.request, object__contains="Widget").order_by("position")
    assert list(outcomes.values_list("step", "action", "state")) == [
        ("apply", "skip", "unchanged"),
        ("optional", "create", "done"),
    ]
    assert it.audited() == ["optional.created"]
    assert site.latest(it.deployment).pk == it.request.pk, "no new review of the same bytes"
    assert verify_chain().is_whole


def test_of_a_version_that_kubernetes_removed_nobody_is_told_to_install_it(
    site: DeployedSite, registry: Registry
) -> None:
    name = f"{site.namespace}-old"
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}
    meta = {"name": name, "namespace": site.namespace}
    budget = {"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": spec}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": "b"}}
    source = bundles.image(registry, name, bundles.manifests(budget, config))
    deployment = site.prepare(name, source)
    report = site.latest(deployment).reports.get()
    (blocker,) = blockers(report.body)
    assert blocker.words == (
        "the cluster serves no PodDisruptionBudget in policy/v1beta1, which Kubernetes no longer serves as of 1.25; it "
        "serves this kind in policy/v1"
    )
    assert "ask the author of the bundle to publish one" in blocker.remedy
    request = site.approve(deployment)
    assert (request.state, request.problem_code) == ("approved", "removed-api")
    assert "which Kubernetes no longer serves as of 1.25; it serves this kind in policy/v1" in request.problem
    assert request.remedy.startswith("Nobody can install it again.")
    assert "spec.optionalKinds" in request.remedy
    assert "continues automatically" not in request.remedy
    deployment = site.applied(name, source, optionalKinds=[{"group": "policy", "kind": "PodDisruptionBudget"}])


def test_S17_an_object_of_that_name_is_not_touched_and_people_are_asked(site: DeployedSite, registry: Registry) -> None:
    it = LeftOut(site, registry)
    it.serve()
    meta = {"name": it.name, "namespace": site.namespace}
    site.api.create({"apiVersion": f"{it.group}/v1", "kind": "Widget", "metadata": meta, "spec": {"size": 9}})
    it.notice()
    asked = site.latest(it.deployment)
    assert it.live()["spec"] == {"size": 9}
    assert (it.row.state, it.audited()) == ("asked", ["optional.asked"])
    assert "already" in it.row.problem
    assert f"request {asked.number} includes it" in it.row.problem
    assert (asked.number, asked.state, asked.requesters) == (2, "preparing", it.request.requesters)
    it.notice()
    assert site.latest(it.deployment).number == 2, "asked once"


def test_creating_what_was_left_out_forgets_no_other_object_that_is_still_to_be_put_back(
    site: DeployedSite, registry: Registry
) -> None:
    it = LeftOut(site, registry)
    config = site.ref("ConfigMap", it.name)
    site.api.delete(config)
    # So a correction leaves it that was refused, as by a quota, or whose worker was killed before its write.
    InventoryItem.objects.filter(deployment=it.deployment, kind="ConfigMap").update(uid="", nonce="pending")
    it.serve()
    it.notice()
    assert it.row.state == "created"
    assert InventoryItem.objects.filter(deployment=it.deployment, kind="ConfigMap").exists()
    drifts.mark(InventoryItem.objects.filter(kind="ConfigMap").values_list("pk", flat=True), timezone.now())
    correct(it.deployment.pk)
    assert site.api.get(config) is not None


def test_S17_what_its_schema_adds_was_reviewed_by_nobody(site: DeployedSite, registry: Registry) -> None:
    it = LeftOut(site, registry)
    it.serve(colour={"type": "string", "default": "red"})
    it.notice()
    assert it.live() is None
    assert it.row.state == "asked"
    assert "spec.colour" in it.row.problem
    site.work()
    assert site.approve(it.deployment).state == "applied"
    assert it.live()["spec"] == {"size": 1, "colour": "red"}
    assert not optionals.waiting(site.cluster).exists()


def test_S17_after_the_life_of_the_approval_people_are_asked(site: DeployedSite, registry: Registry) -> None:
    it = LeftOut(site, registry)
    Request.objects.filter(pk=it.request.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    it.serve()
    it.notice()
    assert it.live() is None
    assert "the approval expired at" in it.row.problem
    assert site.latest(it.deployment).number == 2


def paused(it: LeftOut) -> Callable[[], object]:
    def pause(is_paused: bool) -> None:
        it.deployment.refresh_from_db()
        it.site.pause(it.deployment, is_paused=is_paused)

    pause(True)
    return lambda: pause(False)


def without_its_reviewer(it: LeftOut) -> Callable[[], object]:
    alice = KubernetesIdentity.objects.filter(username="alice")
    groups = alice.get().groups
    alice.update(groups=["nobody"])
    return lambda: alice.update(groups=groups)


@pytest.mark.parametrize(
    ("hinder", "words"), [(paused, "is paused"), (without_its_reviewer, "some approvals no longer count")]
)
def test_S25_what_stands_in_the_way_of_an_apply_does_here_and_it_goes_on_by_itself(
    site: DeployedSite, registry: Registry, hinder: Callable[[LeftOut], Callable[[], object]], words: str
) -> None:
    it = LeftOut(site, registry)
    lift = hinder(it)
    it.serve()
    it.notice()
    assert it.live() is None
    assert words in it.row.problem
    lift()
    due_again(it)
    correct(it.deployment.pk)
    assert it.row.state == "created"


def due_again(it: LeftOut) -> None:
    assert it.row.look_at is not None
    assert it.row.look_at > timezone.now(), "not in a loop"
    OptionalObject.objects.update(look_at=timezone.now())


def test_S25_a_changed_wish_is_decided_first(site: DeployedSite, registry: Registry) -> None:
    it = LeftOut(site, registry)
    site.submit_spec(it.name, bundles.image(registry, it.name, it.files | {"manifests/60.yaml": b"{}"}, "2"))
    it.serve()
    it.notice()
    assert it.live() is None
    assert "its request must be settled first" in it.row.problem


def test_promise_2_without_its_verdict_nothing_is_created(site: DeployedSite, registry: Registry) -> None:
    it = LeftOut(site, registry)
    Request.objects.filter(pk=it.request.pk).update(plan_digest="sha256:another")
    assert Verdict.objects.filter(request=it.request).exists()
    it.serve()
    it.notice()
    assert it.live() is None
    assert "no approval exists" in it.row.problem


class Killed(BaseException):
    """kill -9: nothing after this moment happens, not even a handler."""


def test_a_worker_killed_between_the_write_and_its_record_is_carried_on(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = LeftOut(site, registry)
    it.serve()
    confirm = step.DatabaseInventory.confirm_many

    def dies(*_: object) -> None:
        raise Killed

    monkeypatch.setattr(step.DatabaseInventory, "confirm_many", dies)
    with pytest.raises(Killed):
        it.notice()
    uid = it.live()["metadata"]["uid"]
    monkeypatch.setattr(step.DatabaseInventory, "confirm_many", confirm)
    BundleDeployment.objects.update(claimed_by="the dead one", claimed_until=timezone.now() - timedelta(seconds=1))
    look_alone(Correct(it.deployment.pk))
    assert (it.row.state, it.live()["metadata"]["uid"]) == ("created", uid)
    assert InventoryItem.objects.get(deployment=it.deployment, kind="Widget").uid == uid
    assert it.audited() == ["optional.created"]


def test_a_lost_message_is_swept(site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    it = LeftOut(site, registry)
    it.serve()
    watch.Appearances(site.cluster).look(0.0)
    woken: list[int] = []
    monkeypatch.setattr(tasks.wake, "drift", woken.append)
    tasks.sweep()
    assert woken == [it.deployment.pk]


def test_nothing_is_asked_of_a_cluster_where_nothing_waits(site: DeployedSite, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("nothing waits")

    monkeypatch.setattr(watch, "connect", never)
    watch.Appearances(site.cluster).look(0.0)


def test_S17_what_an_edited_grant_approved_is_asked_for_when_its_api_appears(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = LeftOut(site, registry)
    it.serve()
    words = "the approval of policy:1 does not count: the policy was changed since"
    changed = gate.Reason(gate.Next.REPORT_AGAIN, "policy-changed", words, "It is reviewed again.")

    def refuse(*_: object) -> None:
        raise gate.Stale(changed)

    monkeypatch.setattr(gate, "require", refuse)
    it.notice()
    monkeypatch.undo()
    assert it.live() is None
    assert it.row.state == "asked"
    assert words in it.row.problem
    again = site.after_work(it.deployment)
    assert (again.number, again.state) == (2, "in_review")
    assert site.approve(it.deployment).state == "applied"
    assert it.live()
