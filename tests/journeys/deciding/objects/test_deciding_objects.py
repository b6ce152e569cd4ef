"""Objects that say how requests are decided: seen by the watch, shown as they stand, and read again in the cluster."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from approvals.deciding.approval_rules import ApprovalRule
from approvals.deciding.deputies import UNREADABLE_STAYS
from approvals.gate.deciding_objects import live_objects, seen_objects
from approvals.models import DecidingObject
from approvals.steps.mirroring.deciding_status import ShowDecidingObject
from approvals.watch.own_kinds import SeenDecidingObjects
from approvals.working import do
from provisioner.api_groups import OWN_GROUP
from provisioner.values import ObjectRef
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.kubernetes.live import once_answered


def write(site: DeployedSite, spec: dict[str, Any]) -> ObjectRef:
    about = {"name": f"{site.namespace}-rule"}
    obj = {"apiVersion": f"{OWN_GROUP}/v1alpha2", "kind": "ApprovalRule", "metadata": about, "spec": spec}
    site.api.apply(obj, field_manager="somebody")
    return ObjectRef.of(obj)


def needs(count: int, **more: Any) -> dict[str, Any]:
    return {"selector": {"names": ["nobody"]}, "require": [{"name": "a", "count": count}], **more}


def names(found: Any) -> set[str]:
    return {one.name for one in found if one.spec is not None}


def test_a_rule_is_seen_shown_and_forgotten(sandbox_site: DeployedSite) -> None:
    site = sandbox_site
    ref = write(site, needs(2))
    watch = SeenDecidingObjects(cluster=site.cluster, kind="ApprovalRule")
    watch.stop.set()
    once_answered(lambda: watch.look(site.api))
    row = DecidingObject.objects.get(name=ref.name)
    do(ShowDecidingObject(row.pk))
    status = site.api.get(ref)["status"]
    assert status["summary"] == "2 of all who may approve"
    assert [(it["type"], it["status"], it["reason"]) for it in status["conditions"]] == [("Ready", "True", "Read")]
    row.refresh_from_db()
    assert row.show_at is None

    write(site, needs(2, when="size(new_rules"))
    assert [one.earlier[-1].spec for one in live_objects(site.cluster, ApprovalRule, site.api) if one.earlier] == [
        needs(2)
    ]  # before the watch has seen it
    once_answered(lambda: watch.look(site.api))
    do(ShowDecidingObject(row.pk))
    (ready,) = site.api.get(ref)["status"]["conditions"]
    assert (ready["status"], ready["observedGeneration"]) == ("False", 2)
    assert "its condition cannot be evaluated, so the request is selected: spec.when" in ready["message"]

    site.api.delete(ref)
    assert ref.name not in names(live_objects(site.cluster, ApprovalRule, site.api))
    assert ref.name in names(seen_objects(site.cluster, ApprovalRule))
    once_answered(lambda: watch.look(site.api))
    assert ref.name not in names(seen_objects(site.cluster, ApprovalRule))


def test_S52_a_deputy_that_cannot_be_read_says_that_kubernetes_gives_the_right_and_is_deleted(
    sandbox_site: DeployedSite,
) -> None:
    site, until = sandbox_site, "2030-12-24T18:00:00Z"
    spec = {"user": "do\u202era", "deputyFor": "ada", "clusterRole": "pratique-approver", "until": until}
    about = {"name": f"{site.namespace}-dora"}
    ref = ObjectRef(OWN_GROUP, "v1alpha2", "Deputy", "", about["name"])
    site.api.apply(
        {"apiVersion": f"{OWN_GROUP}/v1alpha2", "kind": "Deputy", "metadata": about, "spec": spec},
        field_manager="somebody",
    )
    watch = SeenDecidingObjects(cluster=site.cluster, kind="Deputy")
    watch.stop.set()
    once_answered(lambda: watch.look(site.api))
    row = DecidingObject.objects.get(name=ref.name)
    do(ShowDecidingObject(row.pk))
    (ready,) = site.api.get(ref)["status"]["conditions"]
    assert (ready["status"], ready["reason"]) == ("False", "Unreadable")
    assert "Its binding gives the right in Kubernetes all the same" in ready["message"]
    row.refresh_from_db()
    # From when its status says so, whenever it was written.
    assert row.show_at is not None
    said_at = row.show_at - UNREADABLE_STAYS
    assert timedelta(0) <= said_at - row.changed_at < timedelta(minutes=5)
    DecidingObject.objects.filter(pk=row.pk).update(changed_at=said_at - UNREADABLE_STAYS, show_at=said_at)
    do(ShowDecidingObject(row.pk))
    assert site.api.get(ref) is not None
    earlier = {**ready, "lastTransitionTime": (said_at - UNREADABLE_STAYS).isoformat()}
    DecidingObject.objects.filter(pk=row.pk).update(status={**row.status, "conditions": [earlier]}, show_at=said_at)
    do(ShowDecidingObject(row.pk))
    assert site.api.get(ref) is None
