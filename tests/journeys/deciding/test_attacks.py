"""Attacks by people who may write a BundleDeployment, or objects of the cluster, but may not approve anything."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from django.core.files.base import ContentFile
from django.core.files.storage import storages

from approvals import kubectl_reviews, services, store
from approvals.encryption.envelope import decrypt, encrypt
from approvals.ledger import pivots
from approvals.models import BundleDeployment, Policy, Request, Revision
from approvals.watch import expected_changes as watch
from provisioner.errors import Forbidden
from provisioner.values import ObjectRef
from tests.support.approvals.world import acting
from tests.support.folders import ROOT
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.journeys.left_out import LeftOut
from tests.support.journeys.moments import after_the_first
from tests.support.journeys.running import RESTORE
from tests.support.kubernetes.live import once_answered, until_served, wait_until
from tests.support.servers.registry import Registry

ATTACKER = "kubectl-mallory"
REVIEW = "BundleDeploymentReview"
OURS = ("core.rukpak.io", "v1alpha2")


def deployment_ref(name: str) -> ObjectRef:
    return ObjectRef(*OURS, "BundleDeployment", "", name)


def mirror_ref(name: str) -> ObjectRef:
    return ObjectRef(*OURS, "BundleDeploymentRequest", "", name)


def seen(site: DeployedSite, name: str) -> None:
    """What the watch does when somebody has written the BundleDeployment with kubectl."""
    pivots.see(cluster=site.cluster, obj=site.api.get(deployment_ref(name)), writer=None)


def label(site: DeployedSite, name: str, labels: dict[str, str]) -> None:
    site.edit(deployment_ref(name), lambda live: live["metadata"].update(labels=labels), manager=ATTACKER)
    seen(site, name)


def policy(site: DeployedSite, kind: str, expression: str, **selects: Any) -> Policy:
    chosen = {"names": [], "labels": {}, **selects}
    return services.save_policy(
        by=acting(site.people["alice"]),
        name=f"{kind}-{site.namespace}",
        kind=kind,
        mode="enforce",
        cluster=site.cluster,
        expression=expression,
        message="frozen",
        is_active=True,
        via="browser",
        **chosen,
    )


def running(site: DeployedSite, registry: Registry, name: str, **options: Any) -> BundleDeployment:
    deployment = site.applied(name, bundles.image(registry, name, bundles.app(name, "1"), "1"), **options)
    deployment.refresh_from_db()
    return deployment


def next_version(site: DeployedSite, registry: Registry, name: str, **options: Any) -> None:
    site.prepare(name, bundles.image(registry, name, bundles.app(name, "2"), "2"), **options)


@pytest.fixture
def name(site: DeployedSite) -> str:
    return f"{site.namespace}-attack"


def test_S14_a_label_taken_off_after_the_approval_does_not_shake_off_the_guard(
    site: DeployedSite, registry: Registry, name: str
) -> None:
    policy(site, "guard", "false", names=[name], labels={"tier": "prod"})
    deployment = site.submit_spec(name, bundles.image(registry, name, bundles.app(name, "1")))
    label(site, name, {"tier": "prod"})
    site.work()
    assert site.approve(deployment).state == "in_review"
    label(site, name, {})
    site.work()
    request = site.approve(deployment)
    assert request.state == "in_review", "approved twice, without and with the label: the guard holds all the same"
    assert site.live("ConfigMap", name) is None


@pytest.mark.proof
def test_S14_a_label_borrowed_from_another_team_gets_no_grant(
    site: DeployedSite, registry: Registry, name: str
) -> None:
    policy(site, "grant", "true", names=[name], labels={"team": "trusted"})
    deployment = site.prepare(name, bundles.image(registry, name, bundles.app(name, "1")))
    for labels in ({"team": "trusted"}, {}, {"team": "trusted"}):
        label(site, name, labels)
        site.work()
    request = site.latest(deployment)
    assert request.state == "in_review"
    assert not request.reviews.filter(channel="policy").exists()


def test_S16_who_may_write_the_wish_cannot_have_an_old_version_put_back(
    site: DeployedSite, registry: Registry, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The approved spec says Stop; somebody writes RestorePrevious while it is applied and makes the apply fail."""
    deployment = running(site, registry, name)
    next_version(site, registry, name)

    def meddle() -> None:
        site.edit(deployment_ref(name), lambda live: live["spec"].update(RESTORE), manager=ATTACKER)

    with monkeypatch.context() as patch:
        after_the_first(patch, meddle)
        site.approve(deployment)
    request = deployment.requests.get(number=2)
    assert (request.state, request.problem_code) == ("failed", "no-longer-wished")
    assert not request.outcomes.filter(step="restore").exists()
    seen(site, name)
    asked = site.after_work(deployment)
    assert (asked.number, asked.state, asked.spec["onFailure"]) == (3, "in_review", "RestorePrevious")
    assert ["Group", "system:masters"] in asked.possible_authors, "S43: whoever RBAC lets write it may have written it"


@pytest.mark.parametrize(
    ("by", "words"),
    [
        pytest.param("the folder", "cannot be decrypted: it was changed", marks=pytest.mark.thorough),
        ("the folder and the key", "was changed in the content store"),
    ],
)
def test_S16_content_that_was_changed_in_the_store_is_not_put_back(
    site: DeployedSite, registry: Registry, name: str, monkeypatch: pytest.MonkeyPatch, by: str, words: str
) -> None:
    deployment = running(site, registry, name, **RESTORE)
    next_version(site, registry, name, **RESTORE)
    before = Revision.objects.get(request__deployment=deployment, number=1).content.digest

    def meddle() -> None:
        storage, path, place = storages["content"], store.path_of(before), store.place_of(before)
        with storage.open(path, "rb") as file:
            stored = file.read()
        plain = decrypt(stored, place=place)
        changed = plain.replace(b'"version":"1"', b'"version":"mallory"')
        assert changed != plain
        storage.delete(path)
        meddled = stored[:-20] + bytes(20) if by == "the folder" else encrypt(changed, place=place)
        storage.save(path, ContentFile(meddled))
        app = site.ref("Deployment", name)
        site.api.delete(app)

    with monkeypatch.context() as patch:
        after_the_first(patch, meddle)
        site.approve(deployment)
    request = deployment.requests.get(number=2)
    assert request.state == "failed"
    assert "could not be restored" in request.problem
    assert words in request.problem
    assert not request.outcomes.filter(step="restore", state="done").exists()


def test_S17_an_api_that_appears_with_another_scope_gets_nothing(site: DeployedSite, registry: Registry) -> None:
    """The approved object lies in a namespace; whoever writes the CRD makes its kind one of the whole cluster."""
    it = LeftOut(site, registry)
    apply = site.api.apply

    def cluster_wide(definition: Any, **named: Any) -> Any:
        definition["spec"]["scope"] = "Cluster"
        return apply(definition, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site.api, "apply", cluster_wide)
        it.serve()
    it.notice()
    assert site.api.get(ObjectRef(it.group, "v1", "Widget", "", it.name)) is None
    assert it.row.state in ("waiting", "asked")
    assert it.row.problem
    assert not it.request.outcomes.filter(step="optional", state="done").exists()


def test_S17_a_spec_that_names_its_own_objects_optional_later_gets_nothing_more(
    site: DeployedSite, registry: Registry
) -> None:
    """`optionalKinds` written after the approval is another wish: what was left out waits for its request."""
    it = LeftOut(site, registry)
    kinds = {"optionalKinds": [{"group": it.group, "kind": "Widget"}, {"group": "", "kind": "Secret"}]}
    site.edit(deployment_ref(it.name), lambda live: live["spec"].update(kinds), manager=ATTACKER)
    it.serve()
    watch.Appearances(site.cluster).look(0.0)
    it.notice()
    assert it.live() is None
    assert it.row.state == "waiting"


@pytest.mark.proof
def test_S23_a_mirror_that_says_approved_approves_nothing(site: DeployedSite, registry: Registry, name: str) -> None:
    deployment = site.prepare(name, bundles.image(registry, name, bundles.app(name, "1")))
    site.look_after(deployment)
    request = site.latest(deployment)
    ref = mirror_ref(f"{name}-{request.number}")
    mirror: Any = site.api.get(ref)
    forged = {"type": "Approved", "status": "True", "reason": "Approved", "message": "all approved"}
    forged["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    conditions = [one for one in mirror["status"]["conditions"] if one["type"] != "Approved"]
    status = {**mirror["status"], "conditions": [*conditions, forged], "reviewsSummary": {"approvals": 9}}
    site.api.apply(
        {"apiVersion": "/".join(OURS), "kind": ref.kind, "metadata": {"name": ref.name}, "status": status},
        field_manager=ATTACKER,
        force=True,
        subresource="status",
    )
    site.work()
    site.look_after(deployment)
    site.work(request)
    assert request.state == "in_review"
    assert site.live("ConfigMap", name) is None
    Request.objects.filter(pk=request.pk).update(mirrored_at=None)
    site.look_after(deployment)
    shown: Any = site.api.get(ref)
    assert "Approved" not in [one["type"] for one in shown["status"]["conditions"]]
    assert shown["status"]["reviewsSummary"] == {"approvals": 0, "waivers": 0}


def test_S23_a_request_written_with_kubectl_is_no_request(site: DeployedSite, registry: Registry, name: str) -> None:
    deployment = site.prepare(name, bundles.image(registry, name, bundles.app(name, "1")))
    site.look_after(deployment)
    mirror: Any = site.api.get(mirror_ref(f"{name}-1"))
    meta = {"name": f"{name}-99", "labels": mirror["metadata"].get("labels") or {}}
    site.api.create(
        {"apiVersion": mirror["apiVersion"], "kind": mirror["kind"], "metadata": meta, "spec": mirror["spec"]}
    )
    site.look_after(deployment)
    site.work()
    assert deployment.requests.count() == 1
    assert site.latest(deployment).state == "in_review"


@pytest.mark.proof
def test_S06_a_review_object_in_somebody_elses_name_is_no_review(
    site: DeployedSite, registry: Registry, name: str
) -> None:
    """Without the shipped policies anybody who creates reviews may write any name: nothing of it counts."""
    for policy in yaml.safe_load_all((ROOT / "deploy/admission/reviews.yaml").read_text()):
        site.api.delete(ObjectRef.of(policy))
    until_served(site.api, *OURS, REVIEW)
    deployment = site.prepare(name, bundles.image(registry, name, bundles.app(name, "1")))
    request = site.latest(deployment)
    said = {
        "requestRef": {"name": f"{name}-{request.number}"},
        "bundleDeploymentName": name,
        "decision": "Approve",
        "subjectDigest": request.subject_digest,
        "round": 1,
        "reviewer": {"username": "alice", "uid": "uid-alice", "groups": ["platform"]},
    }
    review = {"apiVersion": "/".join(OURS), "kind": REVIEW, "metadata": {"name": name}, "spec": said}
    # What the API server refuses no longer takes a moment until it does not.
    wait_until(lambda: _is_created(site, review))
    live: Any = site.api.get(ObjectRef(*OURS, REVIEW, "", name))
    kubectl_reviews.note_seen(site.cluster, live["metadata"])
    once_answered(lambda: kubectl_reviews.count(site.cluster.pk))
    site.look_after(deployment)
    site.work(request)
    assert (request.state, request.reviews.count()) == ("in_review", 0)
    live = site.api.get(ObjectRef(*OURS, REVIEW, "", name))
    (condition,) = live["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "Unproved")


def _is_created(site: DeployedSite, obj: dict[str, Any]) -> bool:
    try:
        site.api.create(obj)
    except Forbidden:
        return False
    return True


def test_S23_a_forged_status_of_the_deployment_does_not_stop_ours(
    site: DeployedSite, registry: Registry, name: str
) -> None:
    deployment = site.prepare(name, bundles.image(registry, name, bundles.app(name, "1")))
    site.look_after(deployment)
    forged = {"activeRevision": 7, "contentDigest": "sha256:" + "0" * 64, "activeRequest": "mine"}
    site.api.apply(
        {"apiVersion": "/".join(OURS), "kind": "BundleDeployment", "metadata": {"name": name}, "status": forged},
        field_manager=ATTACKER,
        force=True,
        subresource="status",
    )
    site.look_after(deployment)
    status: Any = site.api.get(deployment_ref(name))
    assert (status["status"]["activeRevision"], status["status"]["activeRequest"]) == (0, f"{name}-1")


def test_a_status_that_nobody_meddled_with_is_applied_and_never_replaced(
    site: DeployedSite, registry: Registry, name: str
) -> None:
    deployment = running(site, registry, name)
    for _ in range(2):
        site.look_after(deployment)
    for ref in (deployment_ref(name), mirror_ref(f"{name}-1")):
        live: Any = site.api.get(ref)
        written = {(one["manager"], one["operation"]) for one in live["metadata"]["managedFields"]}
        assert ("pratique-mirror", "Update") not in written
        assert ("pratique-mirror", "Apply") in written
