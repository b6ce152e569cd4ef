"""How an apply ends that does not come to its end: nothing hangs, what was done is known, the next request follows."""

from __future__ import annotations

import pytest
from django.utils import timezone

from approvals.models import Policy, Request, Revision
from provisioner.values import AccessRequest, Identity, ObjectRef
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.journeys.moments import after_the_first, in_the_first_write
from tests.support.kubernetes.live import until_current, until_may
from tests.support.servers.registry import Registry


@pytest.mark.proof
def test_a_wish_that_is_changed_in_the_middle_ends_the_apply_and_is_asked_for_next(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{site.namespace}-wish"
    deployment = site.prepare(name, bundles.image(registry, name, bundles.app(name, "1"), "1"))
    first = site.latest(deployment)
    other = bundles.image(registry, name, bundles.app(name, "2"), "2")
    in_the_first_write(monkeypatch, lambda: site.submit_spec(name, other))
    site.approve(deployment)
    first.refresh_from_db()
    assert (first.state, first.problem_code) == ("failed", "no-longer-wished")
    of_next_phase = site.ref("ConfigMap", name)
    assert site.api.get(of_next_phase) is None
    revision = Revision.objects.get(request=first)
    assert (revision.state, revision.finished_at is not None) == ("failed", True)
    assert "a new request will follow" in revision.message
    latest = site.latest(deployment)
    assert (latest.number, latest.state) == (2, "in_review")
    assert site.approve(deployment).state == "applied", site.latest(deployment).problem
    assert site.api.get(of_next_phase) is not None
    until_current(site.api, site.ref("Deployment", name))


def test_a_deletion_in_the_middle_ends_the_apply_and_removes_what_there_is(
    real_site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = real_site.prepare("left", bundles.image(registry, "left", bundles.app("left", "1")))
    real_site.look_after(deployment)  # sets the finalizer once something is ours, and the status
    after_the_first(monkeypatch, lambda: (real_site.look_after(deployment), real_site.delete(deployment)))
    real_site.approve(deployment)
    states = list(Request.objects.filter(deployment=deployment).order_by("number").values_list("purpose", "state"))
    assert states == [("deploy", "failed"), ("delete", "in_review")]
    assert real_site.approve(deployment).state == "applied", real_site.latest(deployment).problem
    assert real_site.live("ConfigMap", "left") is None
    assert real_site.look_after(deployment).gone_at is not None


def test_what_was_never_ours_does_not_hold_a_deployment_that_leaves(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The intent to write it was recorded before the write was refused; no later plan knows the object."""
    deployment = site.prepare("crowded", bundles.image(registry, "crowded", bundles.app("crowded", "1")))
    site.look_after(deployment)
    somebodys = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "crowded", "namespace": site.namespace},
        "spec": {
            "selector": {"matchLabels": {"app": "x"}},
            "template": {
                "metadata": {"labels": {"app": "x"}},
                "spec": {"containers": [{"name": "x", "image": "registry.example.com/x"}]},
            },
        },
    }
    after_the_first(monkeypatch, lambda: site.api.create(somebodys))
    site.approve(deployment)
    assert site.latest(deployment).problem_code == "apply-failed"
    site.delete(deployment)
    site.work()
    assert site.approve(deployment).state == "applied", site.latest(deployment).problem
    assert site.look_after(deployment).gone_at is not None
    assert site.live("Deployment", "crowded") is not None
    assert site.live("ConfigMap", "crowded") is None


def test_S25_a_guard_that_comes_in_the_middle_holds_the_next_phase_until_it_lets_go(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{site.namespace}-frozen"
    deployment = site.prepare(name, bundles.image(registry, name, bundles.app(name, "1")))
    alice, now = site.people["alice"], timezone.now()
    freeze = Policy(name="freeze", kind="guard", mode="enforce", expression="false", message="frozen until Monday")
    freeze.author, freeze.editor, freeze.created_at, freeze.changed_at = alice, alice, now, now
    in_the_first_write(monkeypatch, freeze.save)
    held = site.approve(deployment)
    assert (held.state, held.problem_code) == ("applying", "guard-holds")
    assert "guard freeze: frozen until Monday" in held.problem
    of_next_phase = site.ref("ConfigMap", name)
    assert site.api.get(of_next_phase) is None
    Policy.objects.update(is_active=False)
    site.work(held)
    assert held.state == "applied"
    assert site.api.get(of_next_phase) is not None


def test_S25_a_changed_wish_ends_an_apply_also_where_a_guard_holds_it(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{site.namespace}-turned"
    deployment = site.prepare(name, bundles.image(registry, name, bundles.app(name, "1"), "1"))
    alice, now = site.people["alice"], timezone.now()
    freeze = Policy(name="freeze", kind="guard", mode="enforce", expression="false", message="frozen until Monday")
    freeze.author, freeze.editor, freeze.created_at, freeze.changed_at = alice, alice, now, now
    other = bundles.image(registry, name, bundles.app(name, "2"), "2")
    in_the_first_write(monkeypatch, lambda: (freeze.save(), site.submit_spec(name, other)))
    site.approve(deployment)
    first = deployment.requests.get(number=1)
    assert (first.state, first.problem_code) == ("failed", "no-longer-wished")
    assert site.live("ConfigMap", name) is None


def test_S25_an_approver_who_loses_the_right_during_a_write_stops_the_next_phase(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{site.namespace}-right"
    deployment = site.prepare(name, bundles.image(registry, name, bundles.app(name, "1")))
    site.let_approve("carol", name)
    question = AccessRequest("approve", "core.rukpak.io", "bundledeployments", name=name)

    def take_the_right_away() -> None:
        site.api.delete(ObjectRef("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "", f"approve-{name}"))
        until_may(site.api, Identity("carol"), question, is_allowed=False)

    in_the_first_write(monkeypatch, take_the_right_away)
    held = site.approve(deployment, by="carol")
    assert (held.state, held.problem_code) == ("applying", "no-longer-approved")
    assert "carol" in held.problem
    of_next_phase = site.ref("ConfigMap", name)
    assert site.api.get(of_next_phase) is None
    site.let_approve("carol", name)
    site.work(held)
    assert held.state == "applied", held.problem
    assert site.api.get(of_next_phase) is not None
