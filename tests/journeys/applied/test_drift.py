"""What others do to a running revision is told and, where that is wished, undone with exactly the approved bytes."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, NoReturn

import pytest
import yaml
from django.utils import timezone

from approvals import tasks
from approvals.audit import verify_chain
from approvals.encryption.envelope import decrypt, encrypt
from approvals.ledger import claims, drifts
from approvals.models import BundleDeployment, Drift, InventoryItem, Request
from approvals.steps.records.notes import Notes
from approvals.steps.running import correct as step
from approvals.steps.running.correct import Correct, correct
from approvals.store import place_of
from provisioner.cluster import drift
from provisioner.errors import PreconditionFailed
from provisioner.values import JsonObject, ObjectRef
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite, look_alone
from tests.support.journeys.moments import after_the_first
from tests.support.journeys.running import EDITOR, Running
from tests.support.servers.registry import Registry


@pytest.mark.proof
def test_an_edit_is_undone_with_the_approved_value_as_the_installer(site: DeployedSite, registry: Registry) -> None:
    """And what was deleted comes back; nothing is told where nothing happened."""
    it = Running(site, registry)
    assert (Drift.objects.count(), it.audited(), it.deployment.drift_problem) == (0, [], "")
    items = InventoryItem.objects.filter(deployment=it.deployment)
    assert all(item.fingerprint and item.look_at is None for item in items)
    it.edit(lambda live: live["data"].update(version="mallory"))
    it.look()
    assert it.live()["data"] == {"version": "1"}
    row = it.drift()
    assert (row.state, row.kind, row.strikes, row.problem) == ("corrected", "changed", 1, "")
    assert [(one["path"], one["manager"], one["found"]) for one in row.fields] == [("data.version", EDITOR, "mallory")]
    corrected = ["drift.found", "drift.corrected"]
    assert it.audited() == corrected
    assert verify_chain().is_whole

    account = it.ref("ServiceAccount")
    uid = it.live("ServiceAccount")["metadata"]["uid"]
    site.api.delete(account)
    it.look()
    again = it.live("ServiceAccount")["metadata"]["uid"]
    assert again != uid
    assert items.get(kind="ServiceAccount").uid == again, "its new uid is ours"
    it.look()
    assert (it.drift("ServiceAccount").state, it.audited()) == ("corrected", corrected * 2)


def test_report_tells_who_changed_what_and_writes_nothing(site: DeployedSite, registry: Registry) -> None:
    it = Running(site, registry, drift="Report")
    it.edit(lambda live: live["data"].update(version="2"))
    it.look()
    it.look()
    assert it.live()["data"] == {"version": "2"}
    assert (it.drift().state, it.audited()) == ("open", ["drift.found"])
    it.edit(lambda live: live["data"].update(version="1"))
    it.look()
    assert it.drift().state == "over"
    assert it.audited() == ["drift.found", "drift.over"]


def test_what_others_add_is_told_and_stays_and_an_edit_beside_it_is_undone(
    site: DeployedSite, registry: Registry
) -> None:
    it = Running(site, registry)
    it.edit(lambda live: live["metadata"].update(labels={"owner": "blue"}))

    def change(live: Any) -> None:
        live["spec"]["template"]["spec"]["containers"][0]["image"] = "example.com/evil:9"
        live["spec"]["template"]["spec"]["initContainers"] = [{"name": "miner", "image": "example.com/miner:1"}]

    it.edit(change, "Deployment")
    it.look()
    assert it.live()["metadata"]["labels"] == {"owner": "blue"}
    assert (it.drift().state, it.drift().kind) == ("open", "added")
    assert "evil" not in json.dumps(it.live("Deployment")["spec"])
    row = it.drift("Deployment")
    assert (row.state, row.kind) == ("open", "added")
    assert "initContainers" in row.fields[0]["path"]


def test_S20_an_object_made_again_by_somebody_else_is_told_and_never_touched(
    site: DeployedSite, registry: Registry
) -> None:
    it = Running(site, registry)
    site.api.delete(it.ref())
    meta = {"name": it.name, "namespace": site.namespace}
    site.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"mine": "yes"}})
    version = it.live()["metadata"]["resourceVersion"]
    it.look()
    assert (it.drift().state, it.drift().kind) == ("open", "remade")
    assert it.live()["metadata"]["resourceVersion"] == version


def test_S25_while_it_is_paused_drift_is_told_and_nothing_written_until_somebody_resumes(
    site: DeployedSite, registry: Registry
) -> None:
    it = Running(site, registry)
    site.pause(it.deployment, "a look at it")
    it.edit(lambda live: live["data"].update(version="2"))
    it.look()
    assert it.live()["data"] == {"version": "2"}
    assert "paused" in it.drift().problem
    site.resume(it.deployment)
    it.look()
    assert (it.live()["data"], it.drift().state) == ({"version": "1"}, "corrected")


def test_S25_while_another_wish_waits_for_review_the_running_revision_is_put_back(
    site: DeployedSite, registry: Registry
) -> None:
    it = Running(site, registry)
    site.prepare(it.name, bundles.image(registry, it.name, bundles.app(it.name, "2"), "2"))
    second = Request.objects.filter(deployment=it.deployment, number=2, state="in_review")
    it.edit(lambda live: live["data"].update(version="mallory"))
    assert second.update(state="applying")
    it.look()
    assert (it.live()["data"], Drift.objects.count()) == ({"version": "mallory"}, 0), "nothing is compared meanwhile"
    Request.objects.filter(deployment=it.deployment, number=2).update(state="in_review")
    it.look()
    assert (it.live()["data"], it.drift().state) == ({"version": "1"}, "corrected")
    assert site.approve(it.deployment).state == "applied"
    it.look()
    assert it.live()["data"] == {"version": "2"}


@pytest.mark.parametrize(
    ("approved", "wished", "words"),
    [
        pytest.param(
            "Correct",
            "Report",
            "now says that drift is only reported",
            id="the wish is stricter",
            marks=pytest.mark.thorough,
        ),
        pytest.param("Report", "Correct", "", id="what was approved is stricter"),
    ],
)
def test_S25_of_the_approved_and_the_wished_drift_setting_the_stricter_counts(
    site: DeployedSite, registry: Registry, approved: str, wished: str, words: str
) -> None:
    it = Running(site, registry, drift=approved)
    source = it.deployment.spec["sources"][0]
    site.submit_spec(it.name, source, drift=wished)
    it.edit(lambda live: live["data"].update(version="3"))
    it.look()
    assert it.live()["data"] == {"version": "3"}
    assert it.drift().state == "open"
    assert words in it.drift().problem
    site.submit_spec(it.name, source, drift=approved)
    it.look()
    assert it.live()["data"] == {"version": "1" if approved == "Correct" else "3"}


def test_S25_a_deletion_that_waits_for_its_verdict_ends_the_correcting(site: DeployedSite, registry: Registry) -> None:
    it = Running(site, registry)
    site.look_after(it.deployment)
    site.api.delete(ObjectRef("core.rukpak.io", "v1alpha2", "BundleDeployment", "", it.name))
    it.edit(lambda live: live["data"].update(version="3"))
    it.look()
    assert it.live()["data"] == {"version": "3"}
    assert "is being deleted" in it.drift().problem


@pytest.mark.thorough
def test_after_going_back_the_old_content_is_what_is_put_back(site: DeployedSite, registry: Registry) -> None:
    it = Running(site, registry)
    site.prepare(it.name, bundles.image(registry, it.name, bundles.app(it.name, "2"), "2"))
    site.approve(it.deployment)
    site.roll_back(it.deployment)
    site.work()
    assert site.approve(it.deployment).state == "applied"
    it.look()
    assert it.live()["data"] == {"version": "1"}
    it.edit(lambda live: live["data"].update(version="2"))
    it.look()
    assert (it.live()["data"], it.drift().state) == ({"version": "1"}, "corrected")


def test_S07_an_installer_that_was_made_again_writes_nothing(site: DeployedSite, registry: Registry) -> None:
    it = Running(site, registry)
    account = site.ref("ServiceAccount", "installer")
    site.api.delete(account)
    site.api.create(
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": account.name, "namespace": account.namespace},
        }
    )
    it.edit(lambda live: live["data"].update(version="2"))
    it.look()
    assert it.live()["data"] == {"version": "2"}
    assert "it was recreated" in it.drift().problem


def test_promise_2_without_its_verdict_nothing_is_written(site: DeployedSite, registry: Registry) -> None:
    it = Running(site, registry)
    Request.objects.filter(deployment=it.deployment).update(plan_digest="sha256:another")
    it.edit(lambda live: live["data"].update(version="2"))
    it.look()
    assert it.live()["data"] == {"version": "2"}
    assert "no approval exists" in it.drift().problem


@pytest.mark.parametrize(
    ("by", "words"),
    [
        pytest.param("the folder", "is not encrypted", marks=pytest.mark.thorough),
        ("the folder and the key", "was changed in the content store"),
    ],
)
def test_promise_1_bytes_that_changed_in_the_store_are_never_put_back(
    site: DeployedSite, registry: Registry, settings: Any, by: str, words: str
) -> None:
    it = Running(site, registry)
    root = settings.STORAGES["content"]["OPTIONS"]["location"]
    for path in root.glob("sha256/*/*"):
        place = place_of(f"sha256:{path.name}")
        plain = decrypt(path.read_bytes(), place=place).replace(b'"version":"1"', b'"version":"mallory"')
        path.write_bytes(encrypt(plain, place=place) if by != "the folder" else plain)
    it.edit(lambda live: live["data"].update(version="2"))
    it.look()
    assert it.live()["data"] == {"version": "2"}
    assert words in it.deployment.drift_problem


def second_fails(it: Running, registry: Registry, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
    """Revision 2 writes another ConfigMap, leaves the Deployment as it is, and then meets an object of others."""
    files = bundles.app(it.name, "1")
    files["manifests/01.yaml"] = bundles.app(it.name, "2")["manifests/01.yaml"]
    more = {**yaml.safe_load(files["manifests/02.yaml"]), "metadata": {"name": f"{it.name}-met"}}
    met = {**more, "metadata": {**more["metadata"], "namespace": it.site.namespace}}
    files["manifests/09.yaml"] = yaml.safe_dump(more).encode()
    it.site.prepare(it.name, bundles.image(registry, it.name, files, "2"), **options)
    with monkeypatch.context() as patch:
        after_the_first(patch, lambda: it.site.api.create(met))
        assert it.site.approve(it.deployment).state == "failed"


@pytest.mark.thorough
def test_after_a_failed_revision_what_it_never_touched_is_still_put_back(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = Running(site, registry)
    second_fails(it, registry, monkeypatch)
    it.edit(lambda live: live["spec"]["template"]["spec"]["containers"][0].update(image="evil:9"), "Deployment")
    it.edit(lambda live: live["data"].update(version="mallory"))
    it.look()
    assert "evil" not in json.dumps(it.live("Deployment")["spec"])
    assert it.drift("Deployment").state == "corrected"
    assert it.live()["data"] == {"version": "mallory"}, "what the failed one wrote is nobody's to judge"
    assert not Drift.objects.filter(item__deployment=it.deployment, item__kind="ConfigMap").exists()
    assert f"revision 2 failed after it started to change or delete ConfigMap {it.site.namespace}/{it.name}" in (
        it.deployment.drift_problem
    )


@pytest.mark.thorough
def test_after_the_running_revision_was_put_back_all_of_it_is_compared_again(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = Running(site, registry)
    second_fails(it, registry, monkeypatch, onFailure="RestorePrevious")
    assert it.live()["data"] == {"version": "1"}
    it.edit(lambda live: live["data"].update(version="mallory"))
    it.look()
    assert it.live()["data"] == {"version": "1"}
    assert it.deployment.drift_problem == ""


@pytest.mark.thorough
def test_what_a_failed_revision_was_to_delete_does_not_come_back(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker may have died between the deletion and its record: then only the plan knows."""
    it = Running(site, registry)
    files = bundles.app(it.name, "1")
    del files["manifests/01.yaml"]
    it.site.prepare(it.name, bundles.image(registry, it.name, files, "2"))
    monkeypatch.setattr(Notes, "keep", _dies_of)
    assert it.site.approve(it.deployment).state == "failed"
    site.api.delete(it.ref())
    it.look()
    assert it.live() is None
    assert "started to change or delete ConfigMap" in it.deployment.drift_problem


def _dies_of(*_: object) -> NoReturn:
    raise PreconditionFailed("the worker was stopped", status=409)


@pytest.mark.thorough
def test_correcting_gives_way_to_an_approved_request_of_the_deployment(
    sandbox_site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = Running(sandbox_site, registry)
    # Neither stands in the way of the second version.
    it.edit(lambda live: live["data"].update(version="2"))
    sandbox_site.api.delete(it.ref("ServiceAccount"))
    sandbox_site.prepare(it.name, bundles.image(registry, it.name, bundles.app(it.name, "2"), "2"))
    put_back, written, woken = step.put_back, [], []

    def approve_meanwhile(*given: Any, **more: Any) -> Any:
        if not written:
            request = sandbox_site.agree(it.deployment)
            tasks.advance_request(request.pk)
            assert sandbox_site.latest(it.deployment).problem_code == "busy"
            monkeypatch.setattr(step.wake, "request", woken.append)
        written.append(given)
        return put_back(*given, **more)

    monkeypatch.setattr(step, "put_back", approve_meanwhile)
    it.look()
    assert len(written) == 1, "the rest comes after the request"
    assert woken == [sandbox_site.latest(it.deployment).pk]
    monkeypatch.undo()
    sandbox_site.work()
    assert sandbox_site.latest(it.deployment).state != "approved", "it goes on"


def test_who_fights_is_named_and_answered_more_and_more_rarely(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause = timedelta(minutes=10)
    monkeypatch.setattr(drift, "FIRST_PAUSE", pause)
    it = Running(site, registry)
    for number in range(6):
        it.edit(lambda live, number=number: live["data"].update(version=f"mine {number}"), manager="other-tool")  # type: ignore[misc]  # a default binds the number
        it.look()
    row = it.drift()
    assert (row.state, row.is_fight, row.rival, row.strikes) == ("open", True, "other-tool", 3)
    assert it.live()["data"]["version"].startswith("mine")
    assert (it.audited().count("drift.corrected"), it.audited().count("drift.fight")) == (3, 1)
    due_at = InventoryItem.objects.get(pk=row.item_id).look_at
    assert due_at is not None
    assert timedelta(0) < due_at - timezone.now() <= pause
    Drift.objects.filter(pk=row.pk).update(corrected_at=timezone.now() - pause - timedelta(seconds=1))
    InventoryItem.objects.filter(pk=row.item_id).update(look_at=timezone.now())
    correct(it.deployment.pk)
    assert it.live()["data"] == {"version": "1"}
    assert it.drift().strikes == 4


def test_a_lost_message_is_swept_and_doubled_ones_and_two_workers_correct_once(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = Running(site, registry)
    it.edit(lambda live: live["data"].update(version="2"))
    drifts.mark([InventoryItem.objects.get(deployment=it.deployment, kind="ConfigMap").pk], timezone.now())
    woken: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr(tasks.wake, "drift", woken.append)
        tasks.sweep()
    assert woken == [it.deployment.pk]
    assert claims.take(BundleDeployment.objects.filter(pk=it.deployment.pk), "another worker")
    it.look()
    assert it.live()["data"] == {"version": "2"}
    assert claims.give_back(BundleDeployment.objects.filter(pk=it.deployment.pk), "another worker"), (
        "it was woken meanwhile"
    )
    for _ in range(3):
        tasks.correct_deployment(it.deployment.pk)
    assert it.audited() == ["drift.found", "drift.corrected"]


class Killed(BaseException):
    """kill -9: nothing after this moment happens, not even a handler."""


@pytest.mark.parametrize(
    ("what", "moment"),
    [
        ("edited", "before the write"),
        ("deleted", "after the write"),
        pytest.param("edited", "after the write", marks=pytest.mark.thorough),
        pytest.param("deleted", "before the write", marks=pytest.mark.thorough),
    ],
)
def test_a_worker_killed_between_compare_and_record_neither_loses_nor_doubles(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch, moment: str, what: str
) -> None:
    it = Running(site, registry)
    real = step.put_back

    def dies(*args: Any, **options: Any) -> Any:
        if moment == "after the write":
            real(*args, **options)
        raise Killed

    if what == "edited":
        it.edit(lambda live: live["data"].update(version="2"))
    else:
        site.api.delete(it.ref())
    monkeypatch.setattr(step, "put_back", dies)
    with pytest.raises(Killed):
        it.look()
    BundleDeployment.objects.update(claimed_by="the dead one", claimed_until=timezone.now() - timedelta(seconds=1))
    monkeypatch.setattr(step, "put_back", real)
    assert it.deployment.pk in drifts.due(timezone.now()).values_list("deployment_id", flat=True)
    look_alone(Correct(it.deployment.pk))
    live = it.live()
    assert live["data"] == {"version": "1"}
    assert InventoryItem.objects.get(deployment=it.deployment, kind="ConfigMap").uid == live["metadata"]["uid"]
    assert not InventoryItem.objects.filter(deployment=it.deployment, uid="").exists()
    assert it.drift().state in ("corrected", "over")
    assert it.audited().count("drift.found") == 1


def test_kubectl_and_an_autoscaler_on_a_real_cluster(real_site: DeployedSite, registry: Registry) -> None:
    it = Running(real_site, registry)
    place = ("-n", real_site.namespace)
    real_site.ctl("set", "image", f"deployment/{it.name}", f"{it.name}=example.com/evil:9", *place)
    real_site.ctl("scale", f"deployment/{it.name}", "--replicas=3", *place)
    real_site.ctl("delete", "configmap", it.name, *place)
    it.look()
    spec: JsonObject = it.live("Deployment")["spec"]
    assert (spec["replicas"], "evil" in json.dumps(spec)) == (1, False)
    assert it.live()["data"] == {"version": "1"}
    assert {one["manager"] for one in it.drift("Deployment").fields} >= {"kubectl-set"}

    real_site.ctl("autoscale", f"deployment/{it.name}", "--min=2", "--max=9", *place)
    real_site.ctl("scale", f"deployment/{it.name}", "--replicas=4", *place)
    real_site.ctl("set", "image", f"deployment/{it.name}", f"{it.name}=example.com/evil:9", *place)
    it.look()
    spec = it.live("Deployment")["spec"]
    assert (spec["replicas"], "evil" in json.dumps(spec)) == (4, False), "the autoscaler's number stays"
