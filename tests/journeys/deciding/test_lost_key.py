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
from tests.support.journeys.station import Station
from tests.support.servers.registry import Registry


def lose_the_key(station: Station, settings: Any) -> None:
    """Another key in place of the lost one, and the cluster's kubeconfig given once more."""
    kubeconfig = Cluster.objects.get(pk=station.cluster.pk).kubeconfig
    settings.PRATIQUE = {**settings.PRATIQUE, "ENCRYPTION_KEYS": (key_of(os.urandom(32)),)}
    station.cluster.kubeconfig = kubeconfig
    station.cluster.save(update_fields=["kubeconfig"])


def ask_again(person: User, deployment: BundleDeployment) -> None:
    deployment.refresh_from_db()
    services.ask_again(by=acting(person), deployment=deployment, via="browser")


@pytest.mark.proof
def test_S30_what_was_open_is_read_afresh_from_its_source_when_somebody_asks_again(
    station: Station, registry: Registry, settings: Any
) -> None:
    name = f"{station.namespace}-open"
    deployment = station.prepare(name, bundles.image(registry, name, bundles.app(name, "1")))
    lose_the_key(station, settings)
    request = station.after_work(deployment)
    assert request.state == "in_review", (request.state, request.problem)
    ask_again(station.people["rita"], deployment)
    station.work(request)
    again = station.latest(deployment)
    assert (request.state, request.problem_code) == ("superseded", "key-missing")
    facts = AuditEntry.objects.get(verb="request.supersede", request_uid=request.uid).facts
    assert facts["code"] == "key-missing"
    assert (again.number, again.state) == (2, "in_review")
    assert store.get(again.content).manifests
    assert not again.reviews.exists(), "what was said of the other is not said of this"
    assert station.approve(deployment).state == "applied", station.latest(deployment).problem


def test_S30_asking_for_what_runs_stores_it_again_so_that_it_can_be_changed(
    station: Station, registry: Registry, settings: Any
) -> None:
    name = f"{station.namespace}-runs"
    first = bundles.image(registry, name, bundles.app(name, "1"))
    deployment = station.prepare(name, first)
    running = station.approve(deployment)
    assert running.state == "applied", running.problem
    lose_the_key(station, settings)
    second = bundles.image(registry, f"{name}-2", bundles.app(name, "2"))
    station.prepare(name, second)
    assert station.latest(deployment).problem_code == "key-missing", "what runs is compared with, and cannot be read"
    station.prepare(name, first)
    assert station.latest(deployment).state == "in_review", station.latest(deployment).problem
    assert store.get(Request.objects.get(pk=running.pk).content).digest == running.content_id
    station.prepare(name, second)
    assert station.approve(deployment).state == "applied", station.latest(deployment).problem
