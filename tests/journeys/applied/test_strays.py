"""A write that arrives after its object was dropped: what it creates is found and taken away, and nothing else is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from approvals import services, tasks, wake
from approvals.ledger import strays
from approvals.models import AuditEntry, BundleDeployment, InventoryItem, Request, Stray
from approvals.steps.records.inventory import DatabaseInventory, owner_of
from approvals.steps.running.correct import correct
from provisioner.cluster.annotations import Tracking
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import Unreachable
from provisioner.pipeline import FIELD_MANAGER
from provisioner.values import ObjectRef
from tests.support.approvals.world import acting
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.kubernetes.live import until_served
from tests.support.servers.registry import Registry

NONCE = "0123456789abcdef0123456789abcdef"


class Late:
    """A deployment that runs, whose next revision's write of one more object was begun and not heard of."""

    def __init__(self, site: DeployedSite, registry: Registry, of: ObjectRef | str = "ConfigMap"):
        self.site = site
        self.name = f"{site.namespace}-late"
        source = bundles.image(registry, self.name, bundles.app(self.name, "1"))
        wished = site.applied(self.name, source)
        site.look_after(wished)
        self.deployment = BundleDeployment.objects.get(pk=wished.pk)
        self.ref = of if isinstance(of, ObjectRef) else ObjectRef("", "v1", of, site.namespace, f"{self.name}-x")
        self.inventory().intend(self.ref, NONCE)

    def inventory(self) -> DatabaseInventory:
        return DatabaseInventory(self.deployment, self.deployment.active_revision, lambda: None)

    def pause(self, *, is_paused: bool) -> None:
        rita = acting(self.site.people["rita"])
        about = {"by": rita, "deployment": self.deployment, "reason": "wait", "via": "browser"}
        services.pause_deployment(**about, is_paused=is_paused)

    def drop(self) -> None:
        """What a successor does whose plan knows nothing of it: it reads what is pending, and finds it in vain."""
        successor = self.inventory()
        assert successor.items()[self.ref.identity].nonce == NONCE
        successor.forget(self.ref, "")

    def arrive(self, manager: str = FIELD_MANAGER, nonce: str = NONCE, **fields: Any) -> None:
        assert self.deployment.active_revision
        tracking = Tracking.of(nonce, owner_of(self.deployment.active_revision))
        meta = tracking.put_on({"name": self.ref.name, "namespace": self.ref.namespace})
        body = {
            "apiVersion": self.ref.api_version,
            "kind": self.ref.kind,
            "metadata": meta,
            **(fields or {"data": {"a": "1"}}),
        }
        self.site.api.acting_as(self.site.installer).apply(body, field_manager=manager)

    def look(self) -> None:
        Stray.objects.update(look_at=timezone.now())
        correct(self.deployment.pk)

    @property
    def is_there(self) -> bool:
        live = self.site.api.get(self.ref)
        return live is not None and not live["metadata"].get("deletionTimestamp")

    def audited(self) -> list[str]:
        rows = AuditEntry.objects.filter(deployment_uid=self.deployment.uid, verb__startswith="stray.")
        return list(rows.order_by("number").values_list("verb", flat=True))


@pytest.mark.proof
def test_S20_what_arrives_after_it_was_dropped_is_taken_away(site: DeployedSite, registry: Registry) -> None:
    late = Late(site, registry)
    late.drop()
    late.look()
    assert late.audited() == [], "so far there is nothing"
    late.arrive()
    late.look()
    assert not late.is_there
    assert late.audited() == ["stray.removed"]
    late.arrive()
    late.look()
    assert not late.is_there, "and once more where it is sent twice"


def test_S20_what_the_inventory_knows_is_no_stray(site: DeployedSite, registry: Registry) -> None:
    late = Late(site, registry)
    assert late.inventory().items()
    late.arrive()
    late.look()
    assert late.is_there
    assert late.audited() == []


@pytest.mark.parametrize(
    "arrival",
    [{"nonce": "f" * 32}, {"manager": "kubectl"}],
    ids=["another nonce", "another manager, who copied the nonce"],
)
def test_S20_what_somebody_else_made_under_that_name_stays(
    site: DeployedSite, registry: Registry, arrival: dict[str, str]
) -> None:
    late = Late(site, registry)
    late.drop()
    late.arrive(**arrival)
    late.look()
    assert late.is_there
    assert late.audited() == []


def test_S20_a_stray_that_may_hold_data_is_shown_to_reviewers_by_the_next_plan(
    site: DeployedSite, registry: Registry
) -> None:
    late = Late(site, registry, "PersistentVolumeClaim")
    late.drop()
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    late.arrive(spec=spec)
    late.look()
    assert late.is_there
    assert late.audited() == ["stray.kept"]
    late.look()
    source = bundles.image(registry, late.name, bundles.app(late.name, "2"), "2")
    site.prepare(late.name, source)
    body = site.latest(late.deployment).reports.get().body
    actions = {one["ref"]["name"]: one["action"] for one in body["plan"]["actions"] if one["ref"] == vars_of(late.ref)}
    assert actions == {late.ref.name: "delete"}


def test_S20_a_custom_resource_that_arrives_late_is_shown_to_reviewers_too(
    site: DeployedSite, registry: Registry
) -> None:
    """Its controller may have made things for it by now, which go with it."""
    group = f"{site.namespace}.example.com"
    site.api.apply(bundles.definition(group, "Boat"), field_manager="others")
    until_served(site.api, group, "v1", "Boat")
    late = Late(site, registry, ObjectRef(group, "v1", "Boat", site.namespace, "late"))
    late.drop()
    late.arrive(spec={"keel": "long"})
    late.look()
    assert late.is_there
    assert late.audited() == ["stray.kept"]
    assert InventoryItem.objects.get(deployment=late.deployment, kind="Boat").uid


def test_S20_what_nobody_could_look_for_is_looked_for_again_however_old_it_is(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = Late(site, registry)
    late.drop()
    late.arrive()
    Stray.objects.update(begun_at=timezone.now() - 2 * strays.LOOKED_FOR)
    reading = Api.get

    def silent(api: Api, ref: ObjectRef, **options: Any) -> Any:
        if ref == late.ref:
            raise Unreachable("the API server did not answer")
        return reading(api, ref, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Api, "get", silent)
        late.look()
    assert late.is_there
    row = Stray.objects.get()
    assert timedelta(minutes=14) < row.look_at - timezone.now() <= strays.LONGEST
    late.look()
    assert not late.is_there
    assert not Stray.objects.exists()


def test_S20_while_it_is_paused_for_days_what_may_be_on_its_way_is_not_forgotten(
    site: DeployedSite, registry: Registry
) -> None:
    late = Late(site, registry)
    late.drop()
    late.arrive()
    late.pause(is_paused=True)
    Stray.objects.update(begun_at=timezone.now() - 2 * strays.LOOKED_FOR)
    late.look()
    assert late.is_there
    assert Stray.objects.get().look_at > timezone.now()
    late.pause(is_paused=False)
    late.look()
    assert not late.is_there


def vars_of(ref: ObjectRef) -> dict[str, str]:
    return {name: getattr(ref, name) for name in ("group", "version", "kind", "namespace", "name")}


def test_S20_nothing_is_taken_away_while_it_is_paused_or_being_applied(site: DeployedSite, registry: Registry) -> None:
    late = Late(site, registry)
    late.drop()
    late.arrive()
    late.pause(is_paused=True)
    late.look()
    assert late.is_there
    late.pause(is_paused=False)
    Request.objects.update(state="applying")
    late.look()
    assert late.is_there
    Request.objects.update(state="applied")
    late.look()
    assert not late.is_there


def test_S20_what_arrives_after_its_deployment_was_deleted_is_taken_away_too(
    site: DeployedSite, registry: Registry
) -> None:
    late = Late(site, registry)
    assert late.inventory().items()
    late.arrive()
    site.delete(late.deployment)
    site.work()
    late.inventory().confirm(late.ref, NONCE, "")
    late.inventory().forget(late.ref, "")
    assert site.approve(late.deployment).state == "applied"
    site.look_after(late.deployment)
    late.look()
    assert not late.is_there
    assert late.audited() == ["stray.removed"]


def test_S20_after_a_day_nothing_is_looked_for_any_more(site: DeployedSite, registry: Registry) -> None:
    late = Late(site, registry)
    late.drop()
    late.look()
    row = Stray.objects.get()
    assert timedelta() < row.look_at - timezone.now() <= strays.FIRST
    Stray.objects.update(begun_at=timezone.now() - timedelta(hours=3))
    late.look()
    assert timedelta(minutes=14) < Stray.objects.get().look_at - timezone.now() <= strays.LONGEST
    Stray.objects.update(begun_at=timezone.now() - timedelta(days=2))
    late.look()
    assert not Stray.objects.exists()


def test_S20_the_sweep_wakes_who_looks_for_strays(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = Late(site, registry)
    late.drop()
    InventoryItem.objects.update(look_at=None)
    woken: list[int] = []
    monkeypatch.setattr(wake, "drift", woken.append)
    monkeypatch.setattr(wake, "request", lambda _: None)
    monkeypatch.setattr(wake, "deployment", lambda _: None)
    tasks.sweep()
    assert woken == []
    Stray.objects.update(look_at=timezone.now())
    tasks.sweep()
    assert woken == [late.deployment.pk]
