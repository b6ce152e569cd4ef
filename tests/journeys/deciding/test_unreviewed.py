"""Deletions that nobody has to review, where the operator allows it (security-rules.md S15), on either API server."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from approvals import services
from approvals.gate import GateFacts
from approvals.gate.deletions import WORDS
from approvals.models import AuditEntry, BundleDeployment, InventoryItem, Request, Review, Verdict
from approvals.steps import apply
from provisioner.values import ObjectRef
from tests.support.approvals.world import acting
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.servers.registry import Registry


class Leaving:
    """A deployment of a Deployment, its account and a ConfigMap, which runs and may be deleted."""

    def __init__(self, site: DeployedSite, registry: Registry, settings: Any):
        self.site, self.registry, self.settings = site, registry, settings
        self.name = f"{site.namespace}-leaving"

    def runs(self, *more: dict[str, Any], is_allowed: bool = True) -> None:
        self.allow(is_allowed)
        files = bundles.app(self.name, "1") | {
            f"manifests/9{n}.yaml": yaml.safe_dump(it).encode() for n, it in enumerate(more)
        }
        self.deployment: BundleDeployment = self.site.submit_spec(
            self.name, bundles.image(self.registry, self.name, files)
        )
        self.site.work()
        assert self.site.approve(self.deployment).state == "applied", self.site.latest(self.deployment).problem
        self.site.look_after(self.deployment)

    def allow(self, is_allowed: bool) -> None:
        self.settings.PRATIQUE = {**self.settings.PRATIQUE, "UNREVIEWED_DELETIONS": is_allowed}

    def delete(self, **options: Any) -> Request:
        rita = self.site.people["rita"]
        services.delete_deployment(by=acting(rita), deployment=self.deployment, via="browser", **options)
        return self.work()

    def pause(self, is_paused: bool) -> None:
        self.site.pause(self.deployment, is_paused=is_paused)

    def work(self) -> Request:
        self.site.work()
        return self.site.latest(self.deployment)

    def is_there(self) -> bool:
        return self.site.live("Deployment", self.name) is not None

    def ref(self, kind: str, name: str) -> ObjectRef:
        return ObjectRef("", "v1", kind, self.site.namespace, name)

    def waits_for_review(self, request: Request) -> bool:
        return (request.purpose, request.state, self.is_there()) == ("delete", "in_review", True)


@pytest.fixture
def leaving(site: DeployedSite, registry: Registry, settings: Any) -> Leaving:
    return Leaving(site, registry, settings)


def test_S15_what_holds_no_data_goes_without_a_review_and_is_recorded_all_the_same(leaving: Leaving) -> None:
    leaving.runs()
    request = leaving.delete()
    assert (request.purpose, request.state) == ("delete", "applied"), request.problem
    assert not leaving.is_there()
    assert InventoryItem.objects.filter(deployment=leaving.deployment).count() == 0
    assert leaving.site.look_after(leaving.deployment).gone_at is not None
    assert request.reports.get().actions["delete"] == 3
    assert not Review.objects.filter(request=request).exists()
    assert Verdict.objects.get(request=request).subject_digest == request.subject_digest
    facts = AuditEntry.objects.get(verb="request.approve", request_uid=request.uid).facts
    assert facts["why"] == WORDS


def test_S15_without_the_operators_word_every_deletion_is_reviewed(leaving: Leaving) -> None:
    leaving.runs(is_allowed=False)
    assert leaving.waits_for_review(leaving.delete())


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("Secret", marks=pytest.mark.thorough),
        pytest.param("PersistentVolumeClaim", marks=pytest.mark.proof),
    ],
)
def test_S15_what_holds_data_is_reviewed(leaving: Leaving, kind: str) -> None:
    claim = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    body = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "hold"}, **(claim if "Claim" in kind else {})}
    leaving.runs(body)
    assert leaving.waits_for_review(leaving.delete())
    assert leaving.site.approve(leaving.deployment).state == "applied"


def test_S15_what_somebody_keeps_in_a_config_map_of_ours_is_data(leaving: Leaving) -> None:
    leaving.runs()
    live = leaving.site.api.get(leaving.ref("ConfigMap", leaving.name))
    assert live is not None
    leaving.site.api.replace({**live, "data": {**live["data"], "state": "kept"}}, field_manager="somebody")
    assert leaving.waits_for_review(leaving.delete())


def hang(leaving: Leaving, kind: str, **rest: Any) -> dict[str, Any]:
    """Something that is in no inventory, and that the garbage collector takes with our Deployment."""
    owner = leaving.site.live("Deployment", leaving.name)
    named = {key: owner[key] for key in ("apiVersion", "kind")} | {
        "name": leaving.name,
        "uid": owner["metadata"]["uid"],
    }
    meta = {"name": "hung", "namespace": leaving.site.namespace, "ownerReferences": [named]}
    return leaving.site.api.create({"apiVersion": "v1", "kind": kind, "metadata": meta, **rest})


@pytest.mark.parametrize(
    "kind",
    ["Secret", *(pytest.param(kind, marks=pytest.mark.thorough) for kind in ("PersistentVolumeClaim", "ConfigMap"))],
)
def test_S15_what_somebody_hung_to_an_object_of_ours_goes_along_and_is_reviewed(leaving: Leaving, kind: str) -> None:
    leaving.runs()
    claim = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    hang(leaving, kind, **(claim if "Claim" in kind else {}))
    request = leaving.delete()
    assert leaving.waits_for_review(request)
    assert f"{kind} {leaving.site.namespace}/hung goes along with Deployment.apps" in request.problem
    assert leaving.site.approve(leaving.deployment).state == "applied"


@pytest.mark.thorough
def test_S15_what_is_hung_to_it_while_it_waits_is_seen_at_the_gate(leaving: Leaving) -> None:
    leaving.runs()
    leaving.pause(True)
    assert leaving.delete().state == "approved"
    hang(leaving, "Secret")
    leaving.pause(False)
    request = leaving.work()
    assert request.round == 2
    assert leaving.waits_for_review(request)


@pytest.mark.thorough
def test_S15_somebodys_token_of_an_account_of_ours_goes_along_and_is_reviewed(leaving: Leaving) -> None:
    leaving.runs()
    name = {"kubernetes.io/service-account.name": leaving.name}
    meta = {"name": "token", "namespace": leaving.site.namespace, "annotations": name}
    token = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token", "metadata": meta}
    leaving.site.api.create(token)
    assert leaving.waits_for_review(leaving.delete())


@pytest.mark.thorough
def test_S15_what_stays_as_an_orphan_is_reviewed(leaving: Leaving) -> None:
    leaving.runs()
    assert leaving.waits_for_review(leaving.delete(policy="Orphan"))


def test_S15_a_guard_holds_it_back(leaving: Leaving) -> None:
    leaving.runs()
    services.save_policy(
        by=acting(leaving.site.people["alice"]),
        name="frozen",
        kind="guard",
        mode="enforce",
        cluster=leaving.site.cluster,
        names=[leaving.name],
        labels={},
        expression="false",
        message="",
        is_active=True,
        via="browser",
    )
    assert leaving.waits_for_review(leaving.delete())


def test_S15_where_nobody_knows_who_asked_it_is_reviewed(leaving: Leaving) -> None:
    leaving.runs()
    leaving.site.delete(leaving.deployment)
    Request.objects.filter(purpose="delete").update(is_requester_known=False, requesters=[])
    request = leaving.work()
    assert leaving.waits_for_review(request)
    assert "the requester is unknown" in request.problem


def test_S15_while_it_is_paused_nothing_goes(leaving: Leaving) -> None:
    leaving.runs()
    leaving.pause(True)
    request = leaving.delete()
    assert (request.state, request.problem_code, leaving.is_there()) == ("approved", "paused", True)
    assert "is paused" in request.problem
    leaving.pause(False)
    assert leaving.work().state == "applied"
    assert not leaving.is_there()


def test_S15_what_came_into_the_inventory_meanwhile_is_looked_at_too(leaving: Leaving) -> None:
    leaving.runs()
    leaving.pause(True)
    assert leaving.delete().state == "approved"
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "late", "namespace": leaving.site.namespace}}
    made = leaving.site.api.create(secret)
    place = {"version": "v1", "kind": "Secret", "namespace": leaving.site.namespace, "name": "late"}
    InventoryItem.objects.create(deployment=leaving.deployment, nonce="n", uid=made["metadata"]["uid"], **place)
    leaving.pause(False)
    request = leaving.work()
    assert request.round == 2
    assert leaving.waits_for_review(request)


@pytest.mark.thorough
def test_S15_what_came_into_a_config_map_meanwhile_is_looked_at_too(leaving: Leaving) -> None:
    leaving.runs()
    leaving.pause(True)
    assert leaving.delete().state == "approved"
    config = leaving.ref("ConfigMap", leaving.name)
    live = leaving.site.api.get(config)
    assert live is not None
    leaving.site.api.replace({**live, "data": {**live["data"], "state": "kept"}}, field_manager="somebody")
    leaving.pause(False)
    request = leaving.work()
    assert request.round == 2
    assert leaving.waits_for_review(request)
    assert leaving.site.api.get(config) is not None
    assert leaving.site.approve(leaving.deployment).state == "applied"


def test_S15_what_people_approved_goes_whatever_came_into_it_meanwhile(leaving: Leaving) -> None:
    leaving.runs(is_allowed=False)
    assert leaving.waits_for_review(leaving.delete())
    leaving.site.agree(leaving.deployment)
    leaving.allow(True)
    live = leaving.site.api.get(leaving.ref("ConfigMap", leaving.name))
    assert live is not None
    leaving.site.api.replace({**live, "data": {**live["data"], "state": "kept"}}, field_manager="somebody")
    request = leaving.work()
    assert (request.state, request.round) == ("applied", 1), request.problem


@pytest.mark.thorough
def test_S15_the_operator_takes_it_back_for_what_has_not_begun(leaving: Leaving) -> None:
    leaving.runs()
    leaving.pause(True)
    assert leaving.delete().state == "approved"
    leaving.allow(False)
    leaving.pause(False)
    request = leaving.work()
    assert request.round == 2
    assert leaving.waits_for_review(request)
    assert leaving.site.approve(leaving.deployment).state == "applied"


def test_S15_S25_what_people_had_to_approve_stands_on_their_word_alone(
    leaving: Leaving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its plan holds no data, so that the operator's word would be enough for that; not for what else goes."""
    leaving.runs()
    hang(leaving, "Secret")
    assert leaving.waits_for_review(leaving.delete())
    asked, alice = apply.reader.going_on, leaving.site.people["alice"]

    def lose_the_approver(*words: Any) -> GateFacts:
        alice.kubernetes_identities.update(username="mallory", groups=[])
        return asked(*words)

    monkeypatch.setattr(apply.reader, "going_on", lose_the_approver)
    request = leaving.site.approve(leaving.deployment)
    assert (request.state, request.problem_code) == ("applying", "no-longer-approved"), request.problem
    assert leaving.is_there()
