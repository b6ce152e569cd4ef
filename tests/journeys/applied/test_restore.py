"""spec.onFailure: what a failed apply leaves, and what is put back by itself, on either API server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
import yaml
from django.utils import timezone

from approvals.models import AuditEntry, BundleDeployment, InventoryItem, Policy, Request, Revision
from approvals.steps import restore
from provisioner.cluster.plan.planned_actions import plan_digest
from provisioner.errors import PreconditionFailed
from provisioner.values import Action, ObjectRef, Plan, PlannedAction
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.journeys.moments import after_the_first
from tests.support.journeys.running import RESTORE
from tests.support.servers.registry import Registry


def version_of(site: DeployedSite, name: str) -> str:
    live = site.live("ConfigMap", name)
    return str(live["data"]["version"])


def create_deployment(site: DeployedSite, name: str) -> None:
    """Somebody else's, of this name."""
    labels = {"app": name}
    pod = {"containers": [{"name": "main", "image": "registry.example.com/x"}]}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    meta = {"name": name, "namespace": site.namespace}
    site.api.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec})


def second_fails(
    site: DeployedSite,
    registry: Registry,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    happens: Callable[[], object] | None = None,
    more: Mapping[str, bytes] | None = None,
    **options: Any,
) -> tuple[BundleDeployment, Request]:
    """Version 1 runs; version 2 writes its ConfigMap and `more`, and meets somebody else's Deployment on its way."""
    deployment = site.prepare(name, bundles.image(registry, name, bundles.app(name, "1"), "1"), **options)
    site.approve(deployment)
    late = {f"more-{path}".replace("/", "-"): data for path, data in bundles.app(f"{name}-more", "1").items()}
    files = bundles.app(name, "2") | {f"manifests/{path}": data for path, data in late.items() if "02" in path}
    files |= more or {}
    site.prepare(name, bundles.image(registry, name, files, "2"), **options)

    def meet() -> None:
        create_deployment(site, f"{name}-more")
        if happens:
            happens()

    with monkeypatch.context() as patch:
        after_the_first(patch, meet)
        site.approve(deployment)
    deployment.refresh_from_db()
    return deployment, site.latest(deployment)


def test_stop_leaves_what_was_written_and_says_so(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment, request = second_fails(site, registry, monkeypatch, "stop")
    assert (request.state, request.problem_code) == ("failed", "apply-failed")
    assert "stop-more" in request.problem
    assert version_of(site, "stop") == "2"
    assert deployment.active_revision is not None
    assert deployment.active_revision.number == 1


@pytest.mark.proof
def test_what_ran_before_is_put_back_as_a_step_of_its_own(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment, request = second_fails(site, registry, monkeypatch, "back", **RESTORE)
    assert request.state == "failed"
    assert request.problem.endswith("revision 1 was restored")
    assert "back-more" in request.problem
    assert version_of(site, "back") == "1"
    assert list(deployment.revisions.order_by("number").values_list("state", flat=True)) == ["active", "failed"]
    steps = set(request.outcomes.filter(object__contains="ConfigMap").values_list("step", "state"))
    assert steps == {("apply", "done"), ("restore", "done")}
    verbs = list(
        AuditEntry.objects.filter(request_uid=str(request.uid)).order_by("number").values_list("verb", flat=True)
    )
    assert verbs[-4:] == ["request.restore", "revision.recorded", "revision.restored", "request.fail"]
    foreign = site.live("Deployment", "back-more")
    assert foreign is not None
    assert not InventoryItem.objects.filter(deployment=deployment, name="back-more").exclude(uid="").exists()


def test_no_change_window_holds_what_is_put_back_and_one_may_hold_a_rollback_that_is_asked_for(
    sandbox_site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = sandbox_site
    about, every = {"name": f"{site.namespace}-freeze"}, ["Apply", "DriftCorrection", "Restore"]
    spec = {"type": "Deny", "appliesTo": every, "selector": {"names": ["frozen"]}}
    freeze = {"apiVersion": "core.rukpak.io/v1alpha2", "kind": "ChangeWindow", "metadata": about, "spec": spec}

    def begin() -> None:
        site.api.apply(freeze, field_manager="somebody")

    deployment, request = second_fails(site, registry, monkeypatch, "frozen", begin, **RESTORE)
    assert request.problem.endswith("revision 1 was restored")
    assert version_of(site, "frozen") == "1"
    site.roll_back(deployment)
    site.work()
    held = site.approve(deployment)
    assert (held.purpose, held.state, held.problem_code) == ("rollback", "approved", "outside-window")
    site.api.delete(ObjectRef.of(freeze))
    site.work(held)
    assert held.state == "applied"


@pytest.mark.thorough
def test_a_pause_holds_back_what_is_put_back_too(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:

    def pause() -> None:
        made = BundleDeployment.objects.get(name="hold")
        site.pause(made, "wait")

    checked = restore._require_restore
    asked: list[int] = []

    def pause_at_first(*words: Any) -> None:
        asked.append(1)
        if len(asked) == 1:
            pause()
        checked(*words)

    monkeypatch.setattr(restore, "_require_restore", pause_at_first)
    deployment, request = second_fails(site, registry, monkeypatch, "hold", **RESTORE)
    assert (request.state, request.problem_code) == ("restoring", "paused")
    assert version_of(site, "hold") == "2"
    site.resume(deployment)
    site.work(request)
    assert (request.state, request.problem_code) == ("failed", "apply-failed")
    assert "hold-more" in request.problem
    assert version_of(site, "hold") == "1"


def test_S25_a_guard_holds_back_what_is_put_back_until_it_lets_go(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, now = site.people["alice"], timezone.now()
    freeze = Policy(name="freeze", kind="guard", mode="enforce", expression="false", message="frozen until Monday")
    freeze.author, freeze.editor, freeze.created_at, freeze.changed_at = alice, alice, now, now
    checked = restore._require_restore

    def freeze_at_first(*words: Any) -> None:
        if freeze.pk is None:
            freeze.save()
        checked(*words)

    monkeypatch.setattr(restore, "_require_restore", freeze_at_first)
    _, request = second_fails(site, registry, monkeypatch, "frosted", **RESTORE)
    assert (request.state, request.problem_code) == ("restoring", "guard-holds")
    assert "guard freeze: frozen until Monday" in request.problem
    assert version_of(site, "frosted") == "2"
    Policy.objects.update(is_active=False)
    site.work(request)
    assert request.problem.endswith("revision 1 was restored")
    assert version_of(site, "frosted") == "1"


@pytest.mark.thorough
def test_what_takes_a_review_is_not_put_back_without_one(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:

    def fight() -> None:
        ref = site.ref("ConfigMap", "fight")
        site.edit(ref, lambda live: live["data"].update(version="theirs"))

    _, request = second_fails(site, registry, monkeypatch, "fight", fight, **RESTORE)
    assert request.state == "failed"
    assert "could not be restored" in request.problem
    assert version_of(site, "fight") == "theirs"


@pytest.mark.thorough
def test_a_new_wish_waits_until_what_ran_before_is_back_and_follows_then(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = restore._require_restore
    asked: list[int] = []
    third = bundles.image(registry, "next", bundles.app("next", "3"), "3")

    def wish_at_first(*words: Any) -> None:
        asked.append(1)
        if len(asked) == 1:
            site.submit_spec("next", third, **RESTORE)
        checked(*words)

    monkeypatch.setattr(restore, "_require_restore", wish_at_first)
    deployment, _ = second_fails(site, registry, monkeypatch, "next", **RESTORE)
    states = list(Request.objects.filter(deployment=deployment).order_by("number").values_list("state", flat=True))
    assert states == ["applied", "failed", "in_review"]
    assert version_of(site, "next") == "1"


def test_S16_what_the_failed_revision_adopted_is_not_deleted_to_put_something_back(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    precious = {"name": "precious", "namespace": site.namespace}
    site.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": precious, "data": {"years": "of-work"}})
    found = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "precious"}, "data": {"version": "2"}}
    more = {"manifests/98.yaml": yaml.safe_dump(found).encode()}
    deployment, request = second_fails(
        site, registry, monkeypatch, "heir", more=more, collisionProtection="IfNoController", **RESTORE
    )
    assert "revision 1 was restored" in request.problem
    assert version_of(site, "heir") == "1"
    live = site.live("ConfigMap", "precious")
    assert live["data"]["years"] == "of-work"
    # It stays ours, so that the next request says what becomes of it.
    assert InventoryItem.objects.get(deployment=deployment, name="precious").uid == live["metadata"]["uid"]


def test_S16_what_holds_data_or_other_objects_is_never_deleted_to_put_something_back() -> None:
    def leaving(group: str, kind: str) -> PlannedAction:
        return PlannedAction(ObjectRef(group, "v1", kind, "", "a"), Action.DELETE, uid=kind)

    kept = [
        leaving("", "Namespace"),
        leaving("", "PersistentVolumeClaim"),
        leaving("", "PersistentVolume"),
        leaving("apiextensions.k8s.io", "CustomResourceDefinition"),
        replace(leaving("", "Secret"), action=Action.ORPHAN),
    ]
    config = leaving("", "ConfigMap")
    update = PlannedAction(ObjectRef("", "v1", "Namespace", "", "b"), Action.UPDATE, uid="u")
    actions = (*kept, config, update)
    left = restore.without_what_is_kept(Plan(actions, plan_digest(actions)), frozenset())
    assert left == Plan((config, update), plan_digest((config, update)))


@pytest.mark.parametrize(
    ("before", "is_kept"),
    [
        pytest.param({"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}}, True, id="takes its claims"),
        pytest.param({"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain"}}, False, id="leaves them"),
        pytest.param(None, True, id="not looked at"),
    ],
)
def test_S16_a_stateful_set_that_takes_its_claims_along_is_never_deleted_either(
    before: dict[str, Any] | None, is_kept: bool
) -> None:
    live = {"spec": before} if before else None
    going = PlannedAction(ObjectRef("apps", "v1", "StatefulSet", "a", "b"), Action.DELETE, uid="u", before=live)
    left = restore.without_what_is_kept(Plan((going,), plan_digest((going,))), frozenset())
    assert left.actions == (() if is_kept else (going,))


def test_S16_nothing_is_scaled_down_to_put_something_back_where_claims_would_go() -> None:
    def of(replicas: int, when: str) -> dict[str, Any]:
        policy = {"persistentVolumeClaimRetentionPolicy": {"whenScaled": when}}
        return {"spec": {"replicas": replicas, "volumeClaimTemplates": [{}], **policy}}

    def scaled(before: int, after: int, when: str) -> PlannedAction:
        ref = ObjectRef("apps", "v1", "StatefulSet", "a", "b")
        return PlannedAction(ref, Action.UPDATE, uid="u", before=of(before, when), after=of(after, when))

    with pytest.raises(PreconditionFailed, match=r"pods 1 to 2 would be deleted.* request a rollback instead"):
        restore.check_may_be_done(scaled(3, 1, "Delete"))
    for harmless in (scaled(3, 1, "Retain"), scaled(1, 3, "Delete")):
        restore.check_may_be_done(harmless)


@pytest.mark.thorough
def test_S16_a_revoked_revision_is_not_put_back_and_the_words_say_who_revoked_it(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:

    def revoke() -> None:
        made = BundleDeployment.objects.get(name="leak")
        site.revoke(made, "leaks keys")

    deployment, request = second_fails(site, registry, monkeypatch, "leak", revoke, **RESTORE)
    assert request.state == "failed"
    assert request.problem.endswith("previous revision 1 was revoked by alice: leaks keys")
    assert version_of(site, "leak") == "2"
    assert list(deployment.revisions.order_by("number").values_list("state", flat=True)) == ["active", "failed"]


def test_a_first_revision_that_fails_has_nothing_to_put_back(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = site.prepare(
        "firstling", bundles.image(registry, "firstling", bundles.app("firstling", "1")), **RESTORE
    )
    after_the_first(monkeypatch, lambda: create_deployment(site, "firstling"))
    request = site.approve(deployment)
    assert (request.state, Revision.objects.get(request=request).state) == ("failed", "failed")
