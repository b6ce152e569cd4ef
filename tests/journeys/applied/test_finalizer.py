"""What holds a BundleDeployment is taken off whoever owns it, and it is gone when the API server says so (S42)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from approvals.ledger import pivots
from approvals.models import AuditEntry, BundleDeployment
from approvals.steps.mirroring import mirror
from approvals.steps.mirroring.mirror import release
from approvals.watch import loop
from provisioner.api_groups import FINALIZER
from provisioner.errors import PreconditionFailed
from provisioner.values import ObjectRef
from tests.support.journeys.contents import bundles
from tests.support.journeys.station import Station
from tests.support.kubernetes.live import once_answered
from tests.support.servers.registry import Registry

OTHERS = "example.com/hold"
NOWHERE = {"kind": "http", "http": {"url": "http://127.0.0.1:1/1.tar.gz"}}


def ref_of(deployment: BundleDeployment) -> ObjectRef:
    return ObjectRef("core.rukpak.io", "v1alpha2", "BundleDeployment", "", deployment.name)


def finalizers(station: Station, deployment: BundleDeployment) -> list[str] | None:
    """None where it is gone."""
    live = station.api.get(ref_of(deployment))
    return None if live is None else list(live["metadata"].get("finalizers") or [])


def write(station: Station, deployment: BundleDeployment, wanted: list[str], how: str) -> None:
    live: Any = station.api.get(ref_of(deployment))
    if how == "replace":
        station.api.replace(
            {**live, "metadata": {**live["metadata"], "finalizers": wanted}}, field_manager="kubectl-replace"
        )
    else:
        about = {key: live[key] for key in ("apiVersion", "kind")}
        part = {**about, "metadata": {"name": deployment.name, "finalizers": wanted}}
        station.api.merge(part, field_manager="kubectl-patch")


def own_by_apply(station: Station, deployment: BundleDeployment) -> None:
    """An exported manifest, with --server-side --force-conflicts."""
    live: Any = station.api.get(ref_of(deployment))
    kept = {key: live["metadata"][key] for key in ("name", "finalizers")}
    exported = {key: live[key] for key in ("apiVersion", "kind", "spec")}
    station.api.apply({**exported, "metadata": kept}, field_manager="kubectl", force=True)


def own_by(how: str) -> Callable[[Station, BundleDeployment], None]:
    """As where a write left it out, and the policy pratique-finalizer put it back."""

    def own(station: Station, deployment: BundleDeployment) -> None:
        write(station, deployment, [], how)
        write(station, deployment, [FINALIZER], how)

    return own


OWNERS = {
    "ours": lambda station, deployment: None,
    "replace": own_by("replace"),
    "merge patch": own_by("merge patch"),
    "force-conflicts": own_by_apply,
}


def held(station: Station, name: str) -> BundleDeployment:
    deployment = station.look_after(station.wish(f"{station.namespace}-{name}", NOWHERE))
    assert finalizers(station, deployment) == [FINALIZER]
    return deployment


def delete(station: Station, deployment: BundleDeployment) -> None:
    station.delete(deployment)


@pytest.mark.parametrize("owner", OWNERS)
def test_S42_whoever_owns_the_finalizer_what_may_go_goes(station: Station, owner: str) -> None:
    deployment = held(station, owner.replace(" ", "-"))
    OWNERS[owner](station, deployment)
    delete(station, deployment)
    assert station.look_after(deployment).gone_at is not None
    assert finalizers(station, deployment) is None


@pytest.mark.proof
def test_S42_an_approved_deletion_lets_go_what_somebody_else_owns(station: Station, registry: Registry) -> None:
    name = f"{station.namespace}-orphan"
    image = bundles.image(registry, name, bundles.app(name, "1"))
    deployment = station.look_after(station.applied(name, image, deletionPolicy="Orphan"))
    own_by_apply(station, deployment)
    delete(station, deployment)
    station.work()
    assert station.look_after(deployment).gone_at is None, "nobody has approved it"
    assert station.approve(deployment).state == "applied", station.latest(deployment).problem
    assert station.look_after(deployment).gone_at is not None
    assert finalizers(station, deployment) is None
    assert station.live("ConfigMap", name) is not None


def test_S42_what_another_finalizer_holds_is_not_gone_and_says_so(station: Station) -> None:
    deployment = held(station, "other")
    write(station, deployment, [OTHERS, FINALIZER, "example.com/more"], "merge patch")
    delete(station, deployment)
    deployment = station.look_after(deployment)
    assert finalizers(station, deployment) == [OTHERS, "example.com/more"], "exactly ours is taken off"
    assert deployment.gone_at is None
    assert f"finalizers {OTHERS}, example.com/more" in station.condition(deployment, "Ready")["message"]
    write(station, deployment, [], "merge patch")
    assert station.look_after(deployment).gone_at is not None


def test_S42_what_is_being_deleted_before_it_was_looked_after_takes_no_finalizer(station: Station) -> None:
    deployment = station.wish(f"{station.namespace}-early", NOWHERE)
    write(station, deployment, [OTHERS], "merge patch")
    station.api.delete(ref_of(deployment))
    station.look_after(deployment)
    assert finalizers(station, deployment) == [OTHERS]
    assert station.latest(deployment).mirrored_at, "what is shown does not wait for it"
    write(station, deployment, [], "merge patch")
    BundleDeployment.objects.update(looked_after_at=None)
    station.look_after(deployment)
    deployment.refresh_from_db()
    assert deployment.gone_at


def test_S42_a_write_in_between_takes_nothing_else_off(station: Station) -> None:
    deployment = held(station, "between")
    stale: Any = station.api.get(ref_of(deployment))
    write(station, deployment, [OTHERS, FINALIZER], "replace")
    delete(station, deployment)
    left = release(station.api, deployment, stale)
    assert left is not None
    assert left["metadata"]["finalizers"] == [OTHERS]
    write(station, deployment, [], "merge patch")


def test_S42_what_is_called_gone_and_is_there_is_healed_when_it_is_seen(station: Station) -> None:
    """As an earlier version left it: Terminating for ever, by a finalizer that somebody else owned."""
    deployment = held(station, "stuck")
    own_by_apply(station, deployment)
    delete(station, deployment)
    pivots.forget(cluster=station.cluster, uid=deployment.uid)
    assert finalizers(station, station.look_after(deployment)) == [FINALIZER], "a row that is gone is not looked after"
    resource: Any = station.api.resource_of("core.rukpak.io", "v1alpha2", "BundleDeployment")
    once_answered(lambda: loop.take_list(station.cluster, station.api, resource))
    deployment.refresh_from_db()
    assert deployment.gone_at is None
    assert AuditEntry.objects.filter(deployment=deployment, verb="deployment.back").count() == 1
    assert station.look_after(deployment).gone_at is not None
    assert finalizers(station, deployment) is None


def test_S42_a_conflict_while_the_status_is_written_makes_nothing_gone(
    sandbox_station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where others have a part of it, the status is replaced, and somebody may write just then."""
    deployment = held(sandbox_station, "conflict")
    stale: Any = sandbox_station.api.get(ref_of(deployment))
    write(sandbox_station, deployment, [OTHERS, FINALIZER], "replace")
    BundleDeployment.objects.filter(pk=deployment.pk).update(problem="what has to be shown")
    monkeypatch.setattr(mirror, "apply_status", lambda *_: sandbox_station.api.replace(stale, field_manager="any"))
    with pytest.raises(PreconditionFailed):
        sandbox_station.look_after(deployment)
    deployment.refresh_from_db()
    assert deployment.gone_at is None


def test_S42_what_is_made_while_the_watch_lists_is_not_gone(sandbox_station: Station) -> None:
    resource: Any = sandbox_station.api.resource_of("core.rukpak.io", "v1alpha2", "BundleDeployment")
    listed = sandbox_station.api.snapshot(resource)
    deployment = sandbox_station.wish(f"{sandbox_station.namespace}-new", NOWHERE)

    class Slow:
        """An API server whose list was under way when somebody made one more."""

        def snapshot(self, _resource: Any) -> Any:
            BundleDeployment.objects.filter(pk=deployment.pk).update(seen_at=timezone.now())
            return listed

    api: Any = Slow()
    loop.take_list(sandbox_station.cluster, api, resource)
    deployment.refresh_from_db()
    assert deployment.gone_at is None
