"""After the key is lost that encrypted what is stored, and clusters are registered anew: what people can do."""

from __future__ import annotations

import os
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals import services, store
from approvals.encryption.keys import key_of
from approvals.models import AuditEntry, BundleDeployment, Cluster, Request
from tests.support.approvals.world import acting
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.servers.registry import Registry


def lose_the_key(site: DeployedSite, settings: Any) -> None:
    """Another key in place of the lost one, and the cluster's kubeconfig given once more."""
    kubeconfig = Cluster.objects.get(pk=site.cluster.pk).kubeconfig
    settings.PRATIQUE = {**settings.PRATIQUE, "ENCRYPTION_KEYS": (key_of(os.urandom(32)),)}
    site.cluster.kubeconfig = kubeconfig
    site.cluster.save(update_fields=["kubeconfig"])


def ask_again(person: User, deployment: BundleDeployment) -> None:
    deployment.refresh_from_db()
    services.ask_again(by=acting(person), deployment=deployment, via="browser")


@pytest.mark.proof
def test_S30_what_was_open_is_read_afresh_from_its_source_when_somebody_asks_again(
    site: DeployedSite, registry: Registry, settings: Any
) -> None:
    name = f"{site.namespace}-open"
    deployment = site.prepare(name, bundles.image(registry, name, bundles.app(name, "1")))
    lose_the_key(site, settings)
    request = site.after_work(deployment)
    assert request.state == "in_review", (request.state, request.problem)
    ask_again(site.people["rita"], deployment)
    site.work(request)
    again = site.latest(deployment)
    assert (request.state, request.problem_code) == ("superseded", "key-missing")
    facts = AuditEntry.objects.get(verb="request.supersede", request_uid=request.uid).facts
    assert facts["code"] == "key-missing"
    assert (again.number, again.state) == (2, "in_review")
    assert store.get(again.content).manifests
    assert not again.reviews.exists(), "what was said of the other is not said of this"
    assert site.approve(deployment).state == "applied", site.latest(deployment).problem


def test_S30_asking_for_what_runs_stores_it_again_so_that_it_can_be_changed(
    site: DeployedSite, registry: Registry, settings: Any
) -> None:
    name = f"{site.namespace}-runs"
    first = bundles.image(registry, name, bundles.app(name, "1"))
    deployment = site.prepare(name, first)
    running = site.approve(deployment)
    assert running.state == "applied", running.problem
    lose_the_key(site, settings)
    second = bundles.image(registry, f"{name}-2", bundles.app(name, "2"))
    site.prepare(name, second)
    assert site.latest(deployment).problem_code == "key-missing", "what runs is compared with, and cannot be read"
    site.prepare(name, first)
    assert site.latest(deployment).state == "in_review", site.latest(deployment).problem
    assert store.get(Request.objects.get(pk=running.pk).content).digest == running.content_id
    site.prepare(name, second)
    assert site.approve(deployment).state == "applied", site.latest(deployment).problem
