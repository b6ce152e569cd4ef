"""The whole way of a bundle: report, refusal, constraints, approval, apply, warnings, revision, health, next request."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import DataError

from approvals import services
from approvals.audit import verify_chain
from approvals.encryption.envelope import decrypt, encrypt
from approvals.errors import NotAllowed
from approvals.models import AuditEntry, Finding, InventoryItem, Outcome, Request, Review, Revision
from approvals.steps import prepare
from approvals.store import place_of
from provisioner.values import ObjectRef
from tests.support.approvals.world import acting
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.journeys.moments import in_the_first_write
from tests.support.kubernetes.live import until_current
from tests.support.servers.registry import Registry


@pytest.mark.proof
def test_a_bundle_goes_from_wish_to_healthy_revision(real_site: DeployedSite, registry: Registry) -> None:
    deployment = real_site.prepare("lamp", bundles.image(registry, "lamp", bundles.app("lamp", "1")))
    request = real_site.latest(deployment)
    assert request.state == "in_review", request.problem
    assert request.pins[0]["digest"].startswith("sha256:")
    assert real_site.live("Deployment", "lamp") is None

    with pytest.raises(NotAllowed):
        real_site.agree(deployment, "carol")
    assert real_site.approve(deployment).state == "applied", request.problem

    live = real_site.get("deployment", "lamp", "-n", real_site.namespace)
    assert any(entry["operation"] == "Apply" for entry in live["metadata"]["managedFields"])
    until_current(real_site.api, real_site.ref("Deployment", "lamp"))
    deployment = real_site.look_after(deployment)
    assert (deployment.health, deployment.active_revision.number) == ("Current", 1)
    assert InventoryItem.objects.filter(deployment=deployment).exclude(uid="").count() == 3
    assert verify_chain().is_whole


def test_a_report_names_images_from_a_place_that_the_operator_does_not_list(
    real_site: DeployedSite, registry: Registry, settings: Any
) -> None:
    rounds = {}
    for name, places in (("listed", ["registry.example.com/listed"]), ("unlisted", ["registry.example.com/other"])):
        settings.PRATIQUE = {**settings.PRATIQUE, "ALLOWED_IMAGES": places}
        deployment = real_site.prepare(name, bundles.image(registry, name, bundles.app(name, "1")))
        rounds[name] = set(
            Finding.objects.filter(report__request__deployment=deployment).values_list("rule", flat=True)
        )
    assert "IMG-07" not in rounds["listed"]
    assert "IMG-07" in rounds["unlisted"]


def test_a_report_that_no_database_keeps_ends_the_request_in_words_that_quote_nothing(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        # So PostgreSQL says it of a NUL; SQLite takes it.
        raise DataError('unsupported Unicode escape sequence CONTEXT: JSON data, line 1: {"password": "hunter2')

    monkeypatch.setattr(prepare, "_save_report", refuse)
    deployment = site.prepare("nul", bundles.image(registry, "nul", bundles.app("nul", "1")))
    request = site.latest(deployment)
    assert (request.state, request.problem_code) == ("failed", "invalid-manifest")
    assert request.problem.startswith("the report cannot be stored")
    assert "hunter2" not in request.problem


@pytest.mark.proof
def test_kubectl_shows_the_deployment_and_its_request_with_conditions(
    real_site: DeployedSite, registry: Registry
) -> None:
    deployment = real_site.prepare("mirror", bundles.image(registry, "mirror", bundles.app("mirror", "1")))
    real_site.approve(deployment)
    real_site.look_after(deployment)
    shown = real_site.ctl("get", "bd,bdr")
    assert "bundledeployment.core.rukpak.io/mirror" in shown
    assert "bundledeploymentrequest.core.rukpak.io/mirror-1" in shown
    real_site.ctl("wait", "--for=condition=Approved", "bdr/mirror-1", "--timeout=60s")
    real_site.ctl("wait", "--for=condition=Applied", "bd/mirror", "--timeout=60s")
    assert "core.rukpak.io/pratique" in real_site.get("bd", "mirror")["metadata"]["finalizers"]


@pytest.mark.proof
def test_a_second_pivot_supersedes_the_open_request_and_prunes_as_planned(
    real_site: DeployedSite, registry: Registry
) -> None:
    files = bundles.app("prune", "1")
    deployment = real_site.prepare("prune", bundles.image(registry, "prune", files, "1"))
    real_site.approve(deployment)
    real_site.prepare("prune", bundles.image(registry, "prune", bundles.app("prune", "2", replicas=2), "2"))
    without_config = {path: data for path, data in files.items() if path != "manifests/01.yaml"}
    real_site.prepare("prune", bundles.image(registry, "prune", without_config, "3"))
    states = list(Request.objects.filter(deployment=deployment).order_by("number").values_list("state", flat=True))
    assert states == ["applied", "superseded", "in_review"]
    real_site.approve(deployment)
    assert real_site.live("ConfigMap", "prune") is None
    revisions = Revision.objects.filter(deployment=deployment).order_by("number").values_list("state", flat=True)
    assert list(revisions) == ["replaced", "active"]


@pytest.mark.proof
@pytest.mark.parametrize(
    ("by", "code"), [("the folder", "undecipherable"), ("the folder and the key", "digest-mismatch")]
)
def test_promise_1_bytes_that_changed_in_the_store_are_not_applied(
    real_site: DeployedSite, registry: Registry, settings: object, by: str, code: str
) -> None:
    name = f"tamper-{code}"
    deployment = real_site.prepare(name, bundles.image(registry, name, bundles.app("tamper", "1")))
    request = real_site.latest(deployment)
    root = settings.STORAGES["content"]["OPTIONS"]["location"]  # type: ignore[attr-defined]  # pytest-django's fixture
    path = next(root.glob(f"sha256/*/{request.content_id.removeprefix('sha256:')}"))
    plain = decrypt(path.read_bytes(), place=place_of(request.content_id)).replace(b"tamper@sha256", b"mallory@sha256")
    path.write_bytes(encrypt(plain, place=place_of(request.content_id)) if by != "the folder" else plain)
    real_site.approve(deployment)
    request.refresh_from_db()
    assert (request.state, request.problem_code) == ("failed", code)
    assert "ask-again" in request.remedy
    assert real_site.live("Deployment", "tamper") is None


@pytest.mark.proof
def test_promise_5_a_cluster_that_moved_after_approval_makes_a_new_round(
    real_site: DeployedSite, registry: Registry
) -> None:
    deployment = real_site.prepare("moved", bundles.image(registry, "moved", bundles.app("moved", "1")))
    request = real_site.latest(deployment)
    foreign = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "moved", "namespace": real_site.namespace},
        "data": {"whose": "somebody else's"},
    }
    real_site.api.create(foreign)
    real_site.approve(deployment)
    request.refresh_from_db()
    assert (request.state, request.round) == ("in_review", 2)
    assert Review.objects.filter(request=request, round=2).count() == 0
    live = real_site.live("ConfigMap", "moved")
    assert live["data"] == foreign["data"]


@pytest.mark.proof
def test_S15_deletion_waits_for_its_own_approval_and_removes_in_order(
    real_site: DeployedSite, registry: Registry
) -> None:
    deployment = real_site.prepare("leaving", bundles.image(registry, "leaving", bundles.app("leaving", "1")))
    real_site.approve(deployment)
    real_site.look_after(deployment)
    real_site.delete(deployment)
    request = real_site.after_work(deployment)
    assert (request.purpose, request.state) == ("delete", "in_review")
    assert real_site.get("bd", "leaving")["metadata"]["deletionTimestamp"]
    assert real_site.live("Deployment", "leaving") is not None
    assert real_site.approve(deployment).state == "applied", real_site.latest(deployment).problem
    assert real_site.live("Deployment", "leaving") is None
    deployment = real_site.look_after(deployment)
    assert deployment.gone_at is not None
    assert real_site.api.get(ObjectRef("core.rukpak.io", "v1alpha2", "BundleDeployment", "", "leaving")) is None


def test_S15_what_is_orphaned_runs_on_and_another_deployment_takes_it_over(
    real_site: DeployedSite, registry: Registry
) -> None:
    source = bundles.image(registry, "orphaning", bundles.app("orphaning", "1"))
    deployment = real_site.prepare("orphaning", source)
    real_site.approve(deployment)
    runs = real_site.get("deployment", "-n", real_site.namespace, "-l", "core.rukpak.io/owner-name=orphaning")["items"][
        0
    ]
    real_site.look_after(deployment)
    real_site.delete(deployment, policy="Orphan")
    request = real_site.after_work(deployment)
    assert (request.purpose, request.state, services.to_acknowledge(request)) == ("delete", "in_review", [])
    count = deployment.inventory.count()
    words = f"No object changes. {count} objects stay in the cluster and Pratique no longer manages them."
    assert words in request.reports.get().body["headline"]
    assert real_site.approve(deployment).state == "applied", real_site.latest(deployment).problem
    assert real_site.look_after(deployment).gone_at is not None
    real_site.applied("adopting", source, collisionProtection="IfNoController")
    taken = real_site.get("deployment", "-n", real_site.namespace, "-l", "core.rukpak.io/owner-name=adopting")["items"][
        0
    ]
    assert [one["metadata"]["uid"] for one in (taken, runs)] == [runs["metadata"]["uid"]] * 2
    assert taken["spec"] == runs["spec"]


def test_paused_waits_and_goes_on_when_resumed(real_site: DeployedSite, registry: Registry) -> None:
    deployment = real_site.prepare("pause", bundles.image(registry, "pause", bundles.app("pause", "1")))
    real_site.pause(deployment, "frozen")
    request = real_site.approve(deployment)
    assert (request.state, request.problem_code) == ("approved", "paused")
    assert request.problem == "pause is paused by rita: frozen; it is applied once it is resumed"
    real_site.look_after(deployment)
    paused = next(it for it in real_site.get("bd", "pause")["status"]["conditions"] if it["type"] == "Paused")
    assert (paused["status"], paused["message"][:16]) == ("True", "by rita: frozen;")
    real_site.resume(deployment)
    real_site.work(request)
    assert request.state == "applied", request.problem


@pytest.mark.proof
def test_promise_3_a_right_that_was_taken_away_stops_the_apply(real_site: DeployedSite, registry: Registry) -> None:
    deployment = real_site.prepare("revoked", bundles.image(registry, "revoked", bundles.app("revoked", "1")))
    pause = {"by": acting(real_site.people["rita"]), "deployment": deployment, "reason": "", "via": "browser"}
    services.pause_deployment(**pause, is_paused=True)
    assert real_site.approve(deployment).state == "approved"
    real_site.people["alice"].kubernetes_identities.update(username="mallory", groups=[])
    services.pause_deployment(**pause, is_paused=False)
    request = real_site.after_work(deployment)
    assert (request.state, request.problem_code) == ("approved", "no-longer-approved")
    assert "some approvals no longer count" in request.problem
    assert real_site.live("Deployment", "revoked") is None


def test_promise_3_a_right_that_was_taken_away_before_the_verdict_stops_that(
    real_site: DeployedSite, registry: Registry
) -> None:
    deployment = real_site.prepare("unheard", bundles.image(registry, "unheard", bundles.app("unheard", "1")))
    request = real_site.agree(deployment)
    real_site.people["alice"].kubernetes_identities.update(username="mallory", groups=[])
    real_site.work(request)
    assert (request.state, request.problem_code) == ("in_review", "approval-lost")
    assert not request.verdicts.exists()
    assert real_site.live("Deployment", "unheard") is None


def test_S07_an_account_that_does_not_exist_is_waited_for_and_not_made(
    real_site: DeployedSite, registry: Registry
) -> None:
    source = bundles.image(registry, "ghost", bundles.app("ghost", "1"))
    deployment = real_site.prepare("ghost", source, serviceAccountName="ghost")
    request = real_site.latest(deployment)
    assert (request.state, request.problem_code) == ("preparing", "missing-account")
    assert "ServiceAccount" in request.problem
    assert real_site.live("ServiceAccount", "ghost") is None


def test_a_mirror_that_does_not_fit_is_made_anew_and_goes_with_its_deployment(
    real_site: DeployedSite, registry: Registry
) -> None:
    deployment = real_site.prepare("mirrored", bundles.image(registry, "mirrored", bundles.app("mirrored", "1")))
    real_site.look_after(deployment)
    mirror = real_site.get("bdr", "mirrored-1")
    assert [owner["uid"] for owner in mirror["metadata"]["ownerReferences"]] == [deployment.uid]
    request = real_site.latest(deployment)
    somebody = {**request.requesters[0], "username": "carol"}
    Request.objects.filter(pk=request.pk).update(requesters=[*request.requesters, somebody], mirrored_at=None)
    real_site.look_after(deployment)
    assert real_site.get("bdr", "mirrored-1")["spec"]["requester"]["username"] == "carol"


def test_the_history_says_who_did_what(real_site: DeployedSite, registry: Registry) -> None:
    deployment = real_site.prepare("story", bundles.image(registry, "story", bundles.app("story", "1")))
    real_site.approve(deployment)
    told = AuditEntry.objects.filter(deployment="story").order_by("number").values_list("verb", "actor")
    assert list(told) == [
        ("deployment.seen", "rita"),
        ("request.made", "rita"),
        ("request.prepared", "pratique"),
        ("request.needs-approval", "pratique"),
        ("review.given", "alice"),
        ("request.approve", "pratique"),
        ("request.start", "pratique"),
        ("request.finish", "pratique"),
        ("revision.recorded", "pratique"),
    ]


@pytest.mark.proof
def test_S25_a_pause_in_the_middle_stops_before_the_next_phase(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{site.namespace}-midway"
    deployment = site.prepare(name, bundles.image(registry, name, bundles.app(name, "1")))
    in_the_first_write(monkeypatch, lambda: site.pause(deployment, "stop"))
    request = site.approve(deployment)
    assert (request.state, request.problem_code) == ("applying", "paused")
    assert site.live("ConfigMap", name) is None
    site.resume(deployment)
    site.work(request)
    assert request.state == "applied", request.problem


def test_S07_an_account_that_was_made_again_is_not_applied_as(real_site: DeployedSite, registry: Registry) -> None:
    deployment = real_site.prepare("swapped", bundles.image(registry, "swapped", bundles.app("swapped", "1")))
    make_account_again(real_site)
    request = real_site.approve(deployment)
    assert (request.state, request.round) == ("in_review", 2), request.problem
    assert request.voided_rounds.get().code == "account-changed"
    assert real_site.live("Deployment", "swapped") is None


def test_S07_an_account_that_is_made_again_in_the_middle_stops_before_the_next_phase(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{site.namespace}-swap"
    deployment = site.prepare(name, bundles.image(registry, name, bundles.app(name, "1")))
    in_the_first_write(monkeypatch, lambda: make_account_again(site))
    request = site.approve(deployment)
    assert (request.state, request.problem_code) == ("failed", "digest-mismatch")
    assert site.live("ConfigMap", name) is None


def make_account_again(site: DeployedSite) -> None:
    site.api.delete(site.ref("ServiceAccount", "installer"))
    account = {"name": "installer", "namespace": site.namespace}
    site.api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})


def test_an_approved_request_waits_for_another_deployment_and_goes_on_by_itself(
    real_site: DeployedSite, registry: Registry
) -> None:
    constraints = {
        "kubernetesVersionRange": ">=1.30.0",
        "requiredAPIs": [{"group": "apps", "version": "v1", "kind": "Deployment"}],
        "requiredBundleDeployments": [{"name": "ground"}],
    }
    upper = bundles.image(registry, "upper", bundles.app("upper", "1"))
    deployment = real_site.prepare("upper", upper, constraints=constraints)
    assert real_site.latest(deployment).problem_code == "unmet-constraints"
    request = real_site.approve(deployment)
    assert (request.state, request.problem_code) == ("approved", "unmet-constraints")
    assert request.problem.endswith("BundleDeployment ground has no running revision")
    assert real_site.live("ConfigMap", "upper") is None

    ground = real_site.prepare("ground", bundles.image(registry, "ground", bundles.app("ground", "1")))
    real_site.approve(ground)
    request.refresh_from_db()
    assert request.problem.endswith("BundleDeployment ground is not healthy")
    until_current(real_site.api, real_site.ref("Deployment", "ground"))
    assert real_site.look_after(ground).health == "Current"
    real_site.work(request)
    assert (request.state, request.problem) == ("applied", "")


def test_constraints_that_cannot_be_read_fail_the_request_with_the_reason(
    real_site: DeployedSite, registry: Registry
) -> None:
    source = bundles.image(registry, "unread", bundles.app("unread", "1"))
    deployment = real_site.prepare("unread", source, constraints={"kubernetesVersionRange": "^1.30"})
    request = real_site.latest(deployment)
    assert (request.state, request.problem_code) == ("failed", "invalid-range")


SAID = "Lamps go away"


def lamp(site: DeployedSite) -> dict[str, bytes]:
    """A custom resource of a version that its own definition calls deprecated."""
    group = f"{site.namespace}.example.com"
    definition = bundles.definition(group, "Lamp", scope="Cluster")
    definition["spec"]["versions"][0] |= {"deprecated": True, "deprecationWarning": SAID}
    lamp = {"apiVersion": f"{group}/v1", "kind": "Lamp", "metadata": {"name": "lamp"}}
    return bundles.manifests(definition, lamp)


def test_a_warning_is_in_the_report_of_every_later_request_and_on_its_page(
    site: DeployedSite, registry: Registry
) -> None:
    name = f"{site.namespace}-lamps"
    said = []
    for version in "123":
        files = bundles.app(name, version) | lamp(site)
        deployment = site.prepare(name, bundles.image(registry, name, files, version))
        request = site.latest(deployment)
        findings = request.reports.get(round=request.round).body["findings"]
        found = [one for one in findings if one["rule"] == "OBJ-05" and one["ref"]["kind"] == "Lamp"]
        said.append([(one["isNew"], one["serverWords"]) for one in found])
        assert not any(SAID in one["message"] for one in findings)
        assert site.approve(deployment).state == "applied", site.latest(deployment).problem
        outcome = Outcome.objects.get(request=request, object__startswith="Lamp")
        assert outcome.warnings == [SAID], version
    assert said == [[], [(False, SAID)], [(False, SAID)]]
