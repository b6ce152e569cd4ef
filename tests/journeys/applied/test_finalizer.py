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
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.kubernetes.live import once_answered
from tests.support.servers.registry import Registry

OTHERS = "example.com/hold"
NOWHERE = {"kind": "http", "http": {"url": "http://127.0.0.1:1/1.tar.gz"}}


def ref_of(deployment: BundleDeployment) -> ObjectRef:
    return ObjectRef("core.rukpak.io", "v1alpha2", "BundleDeployment", "", deployment.name)


def finalizers(site: DeployedSite, deployment: BundleDeployment) -> list[str] | None:
    """None where it is gone."""
    live = site.api.get(ref_of(deployment))
    return None if live is None else list(live["metadata"].get("finalizers") or [])


def write(site: DeployedSite, deployment: BundleDeployment, wanted: list[str], how: str) -> None:
    live: Any = site.api.get(ref_of(deployment))
    if how == "replace":
        site.api.replace(
            {**live, "metadata": {**live["metadata"], "finalizers": wanted}}, field_manager="kubectl-replace"
        )
    else:
        about = {key: live[key] for key in ("apiVersion", "kind")}
        part = {**about, "metadata": {"name": deployment.name, "finalizers": wanted}}
        site.api.merge(part, field_manager="kubectl-patch")


def own_by_apply(site: DeployedSite, deployment: BundleDeployment) -> None:
    """An exported manifest, with --server-side --force-conflicts."""
    live: Any = site.api.get(ref_of(deployment))
    kept = {key: live["metadata"][key] for key in ("name", "finalizers")}
    exported = {key: live[key] for key in ("apiVersion", "kind", "spec")}
    site.api.apply({**exported, "metadata": kept}, field_manager="kubectl", force=True)


def own_by(how: str) -> Callable[[DeployedSite, BundleDeployment], None]:
    """As where a write left it out, and the policy pratique-finalizer put it back."""

    def own(site: DeployedSite, deployment: BundleDeployment) -> None:
        write(site, deployment, [], how)
        write(site, deployment, [FINALIZER], how)

    return own


OWNERS = {
    "ours": lambda site, deployment: None,
    "replace": own_by("replace"),
    "merge patch": own_by("merge patch"),
    "force-conflicts": own_by_apply,
}


def held(site: DeployedSite, name: str) -> BundleDeployment:
    deployment = site.look_after(site.submit_spec(f"{site.namespace}-{name}", NOWHERE))
    assert finalizers(site, deployment) == [FINALIZER]
    return deployment


def delete(site: DeployedSite, deployment: BundleDeployment) -> None:
    site.delete(deployment)


@pytest.mark.parametrize("owner", OWNERS)
def test_S42_whoever_owns_the_finalizer_what_may_go_goes(site: DeployedSite, owner: str) -> None:
    deployment = held(site, owner.replace(" ", "-"))
    OWNERS[owner](site, deployment)
    delete(site, deployment)
    assert site.look_after(deployment).gone_at is not None
    assert finalizers(site, deployment) is None


@pytest.mark.proof
def test_S42_an_approved_deletion_lets_go_what_somebody_else_owns(site: DeployedSite, registry: Registry) -> None:
    name = f"{site.namespace}-orphan"
    image = bundles.image(registry, name, bundles.app(name, "1"))
    deployment = site.look_after(site.applied(name, image, deletionPolicy="Orphan"))
    own_by_apply(site, deployment)
    delete(site, deployment)
    site.work()
    assert site.look_after(deployment).gone_at is None, "nobody has approved it"
    assert site.approve(deployment).state == "applied", site.latest(deployment).problem
    assert site.look_after(deployment).gone_at is not None
    assert finalizers(site, deployment) is None
    assert site.live("ConfigMap", name) is not None


def test_S42_what_another_finalizer_holds_is_not_gone_and_says_so(site: DeployedSite) -> None:
    deployment = held(site, "other")
    write(site, deployment, [OTHERS, FINALIZER, "example.com/more"], "merge patch")
    delete(site, deployment)
    deployment = site.look_after(deployment)
    assert finalizers(site, deployment) == [OTHERS, "example.com/more"], "exactly ours is taken off"
    assert deployment.gone_at is None
    assert f"finalizers {OTHERS}, example.com/more" in site.condition(deployment, "Ready")["message"]
    write(site, deployment, [], "merge patch")
    assert site.look_after(deployment).gone_at is not None


def test_S42_what_is_being_deleted_before_it_was_looked_after_takes_no_finalizer(site: DeployedSite) -> None:
    deployment = site.submit_spec(f"{site.namespace}-early", NOWHERE)
    write(site, deployment, [OTHERS], "merge patch")
    site.api.delete(ref_of(deployment))
    site.look_after(deployment)
    assert finalizers(site, deployment) == [OTHERS]
    assert site.latest(deployment).mirrored_at, "what is shown does not wait for it"
    write(site, deployment, [], "merge patch")
    BundleDeployment.objects.update(looked_after_at=None)
    site.look_after(deployment)
    deployment.refresh_from_db()
    assert deployment.gone_at


def test_S42_a_write_in_between_takes_nothing_else_off(site: DeployedSite) -> None:
    deployment = held(site, "between")
    stale: Any = site.api.get(ref_of(deployment))
    write(site, deployment, [OTHERS, FINALIZER], "replace")
    delete(site, deployment)
    left = release(site.api, deployment, stale)
    assert left is not None
    assert left["metadata"]["finalizers"] == [OTHERS]
    write(site, deployment, [], "merge patch")


def test_S42_what_is_called_gone_and_is_there_is_healed_when_it_is_seen(site: DeployedSite) -> None:
    """As an earlier version left it: Terminating for ever, by a finalizer that somebody else owned."""
    deployment = held(site, "stuck")
    own_by_apply(site, deployment)
    delete(site, deployment)
    pivots.forget(cluster=site.cluster, uid=deployment.uid)
    assert finalizers(site, site.look_after(deployment)) == [FINALIZER], "a row that is gone is not looked after"
    resource: Any = site.api.resource_of("core.rukpak.io", "v1alpha2", "BundleDeployment")
    once_answered(lambda: loop.take_list(site.cluster, site.api, resource))
    deployment.refresh_from_db()
    assert deployment.gone_at is None
    assert AuditEntry.objects.filter(deployment=deployment, verb="deployment.back").count() == 1
    assert site.look_after(deployment).gone_at is not None
    assert finalizers(site, deployment) is None


def test_S42_a_conflict_while_the_status_is_written_makes_nothing_gone(
    sandbox_site: DeployedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where others have a part of it, the status is replaced, and somebody may write just then."""
    deployment = held(sandbox_site, "conflict")
    stale: Any = sandbox_site.api.get(ref_of(deployment))
    write(sandbox_site, deployment, [OTHERS, FINALIZER], "replace")
    BundleDeployment.objects.filter(pk=deployment.pk).update(problem="what has to be shown")
    monkeypatch.setattr(mirror, "apply_status", lambda *_: sandbox_site.api.replace(stale, field_manager="any"))
    with pytest.raises(PreconditionFailed):
        sandbox_site.look_after(deployment)
    deployment.refresh_from_db()
    assert deployment.gone_at is None


def test_S42_what_is_made_while_the_watch_lists_is_not_gone(sandbox_site: DeployedSite) -> None:
    resource: Any = sandbox_site.api.resource_of("core.rukpak.io", "v1alpha2", "BundleDeployment")
    listed = sandbox_site.api.snapshot(resource)
    deployment = sandbox_site.submit_spec(f"{sandbox_site.namespace}-new", NOWHERE)

    class Slow:
        """An API server whose list was under way when somebody made one more."""

        def snapshot(self, _resource: Any) -> Any:
            BundleDeployment.objects.filter(pk=deployment.pk).update(seen_at=timezone.now())
            return listed

    api: Any = Slow()
    loop.take_list(sandbox_site.cluster, api, resource)
    deployment.refresh_from_db()
    assert deployment.gone_at is None
