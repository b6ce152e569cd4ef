"""How an apply ends that does not come to its end: nothing hangs, what was done is known, the next request follows."""

from __future__ import annotations

import pytest
from django.utils import timezone

from approvals.models import Policy, Request, Revision
from provisioner.values import AccessRequest, Identity, ObjectRef
from tests.support.journeys.contents import bundles
from tests.support.journeys.moments import after_the_first, in_the_first_write
from tests.support.journeys.station import Station
from tests.support.kubernetes.live import until_current, until_may
from tests.support.servers.registry import Registry


@pytest.mark.proof
def test_a_wish_that_is_changed_in_the_middle_ends_the_apply_and_is_asked_for_next(
    station: Station, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{station.namespace}-wish"
    deployment = station.prepare(name, bundles.image(registry, name, bundles.app(name, "1"), "1"))
    first = station.latest(deployment)
    other = bundles.image(registry, name, bundles.app(name, "2"), "2")
    in_the_first_write(monkeypatch, lambda: station.wish(name, other))
    station.approve(deployment)
    first.refresh_from_db()
    assert (first.state, first.problem_code) == ("failed", "no-longer-wished")
    of_next_phase = station.ref("ConfigMap", name)
    assert station.api.get(of_next_phase) is None
    revision = Revision.objects.get(request=first)
    assert (revision.state, revision.finished_at is not None) == ("failed", True)
    assert "a new request will follow" in revision.message
    latest = station.latest(deployment)
    assert (latest.number, latest.state) == (2, "in_review")
    assert station.approve(deployment).state == "applied", station.latest(deployment).problem
    assert station.api.get(of_next_phase) is not None
    until_current(station.api, station.ref("Deployment", name))


def test_a_deletion_in_the_middle_ends_the_apply_and_removes_what_there_is(
    real_station: Station, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = real_station.prepare("left", bundles.image(registry, "left", bundles.app("left", "1")))
    real_station.look_after(deployment)  # sets the finalizer once something is ours, and the status
    after_the_first(
        monkeypatch,
        lambda: (
            real_station.look_after(deployment),
            real_station.delete(deployment),
        ),
    )
    real_station.approve(deployment)
    states = list(Request.objects.filter(deployment=deployment).order_by("number").values_list("purpose", "state"))
    assert states == [("deploy", "failed"), ("delete", "in_review")]
    assert real_station.approve(deployment).state == "applied", real_station.latest(deployment).problem
    assert real_station.live("ConfigMap", "left") is None
    assert real_station.look_after(deployment).gone_at is not None


def test_what_was_never_ours_does_not_hold_a_deployment_that_leaves(
    station: Station, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The intent to write it was recorded before the write was refused; no later plan knows the object."""
    deployment = station.prepare("crowded", bundles.image(registry, "crowded", bundles.app("crowded", "1")))
    station.look_after(deployment)
    somebodys = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "crowded", "namespace": station.namespace},
        "spec": {
            "selector": {"matchLabels": {"app": "x"}},
            "template": {
                "metadata": {"labels": {"app": "x"}},
                "spec": {"containers": [{"name": "x", "image": "registry.example.com/x"}]},
            },
        },
    }
    after_the_first(monkeypatch, lambda: station.api.create(somebodys))
    station.approve(deployment)
    assert station.latest(deployment).problem_code == "apply-failed"
    station.delete(deployment)
    station.work()
    assert station.approve(deployment).state == "applied", station.latest(deployment).problem
    assert station.look_after(deployment).gone_at is not None
    assert station.live("Deployment", "crowded") is not None
    assert station.live("ConfigMap", "crowded") is None


def test_S25_a_guard_that_comes_in_the_middle_holds_the_next_phase_until_it_lets_go(
    station: Station, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{station.namespace}-frozen"
    deployment = station.prepare(name, bundles.image(registry, name, bundles.app(name, "1")))
    alice, now = station.people["alice"], timezone.now()
    freeze = Policy(name="freeze", kind="guard", mode="enforce", expression="false", message="frozen until Monday")
    freeze.author, freeze.editor, freeze.created_at, freeze.changed_at = alice, alice, now, now
    in_the_first_write(monkeypatch, freeze.save)
    held = station.approve(deployment)
    assert (held.state, held.problem_code) == ("applying", "guard-holds")
    assert "guard freeze: frozen until Monday" in held.problem
    of_next_phase = station.ref("ConfigMap", name)
    assert station.api.get(of_next_phase) is None
    Policy.objects.update(is_active=False)
    station.work(held)
    assert held.state == "applied"
    assert station.api.get(of_next_phase) is not None


def test_S25_a_changed_wish_ends_an_apply_also_where_a_guard_holds_it(
    station: Station, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{station.namespace}-turned"
    deployment = station.prepare(name, bundles.image(registry, name, bundles.app(name, "1"), "1"))
    alice, now = station.people["alice"], timezone.now()
    freeze = Policy(name="freeze", kind="guard", mode="enforce", expression="false", message="frozen until Monday")
    freeze.author, freeze.editor, freeze.created_at, freeze.changed_at = alice, alice, now, now
    other = bundles.image(registry, name, bundles.app(name, "2"), "2")
    in_the_first_write(monkeypatch, lambda: (freeze.save(), station.wish(name, other)))
    station.approve(deployment)
    first = deployment.requests.get(number=1)
    assert (first.state, first.problem_code) == ("failed", "no-longer-wished")
    assert station.live("ConfigMap", name) is None


def test_S25_an_approver_who_loses_the_right_during_a_write_stops_the_next_phase(
    station: Station, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{station.namespace}-right"
    deployment = station.prepare(name, bundles.image(registry, name, bundles.app(name, "1")))
    station.let_approve("carol", name)
    question = AccessRequest("approve", "core.rukpak.io", "bundledeployments", name=name)

    def take_the_right_away() -> None:
        station.api.delete(ObjectRef("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "", f"approve-{name}"))
        until_may(station.api, Identity("carol"), question, is_allowed=False)

    in_the_first_write(monkeypatch, take_the_right_away)
    held = station.approve(deployment, by="carol")
    assert (held.state, held.problem_code) == ("applying", "no-longer-approved")
    assert "carol" in held.problem
    of_next_phase = station.ref("ConfigMap", name)
    assert station.api.get(of_next_phase) is None
    station.let_approve("carol", name)
    station.work(held)
    assert held.state == "applied", held.problem
    assert station.api.get(of_next_phase) is not None
