"""Deployments that were applied before, as an apply leaves them behind."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from django.utils import timezone

from approvals.models import BundleDeployment, KeptValue, Request, Revision
from provisioner.values import MadePlace
from tests.support.approvals import world
from tests.support.approvals.fixtures import World


def revision(deployment: BundleDeployment, number: int, state: str) -> Revision:
    """A revision of the deployment's latest request, as an apply leaves it behind."""
    request = deployment.requests.get(number=number)
    world.in_review(request)
    Request.objects.filter(pk=request.pk).update(state="failed" if state == "failed" else "applied")
    request.refresh_from_db()
    assert request.content is not None
    made = Revision.objects.create(
        deployment=deployment,
        number=number,
        request=request,
        content=request.content,
        state=state,
        started_at=request.created_at,
    )
    if state == "active":
        BundleDeployment.objects.filter(pk=deployment.pk).update(active_revision=made)
    return made


@pytest.fixture
def twice(env: World) -> BundleDeployment:
    """Applied twice, from rita's first and second wish."""
    deployment = world.submit_spec(env.cluster, world.seen("strimzi", world.spec("1")), env.rita)
    revision(deployment, 1, "replaced")
    obj = world.seen("strimzi", world.spec("2"), uid=deployment.uid, generation=2)
    world.submit_spec(env.cluster, obj, env.rita)
    revision(deployment, 2, "active")
    env.kubernetes.objects["strimzi"] = obj
    deployment.refresh_from_db()
    return deployment


def keep_password(deployment: BundleDeployment, value: str) -> None:
    """The chart of the running revision has made up a password, in the key `password` of the Secret `db`."""
    place = MadePlace("Secret", "harbour", "db", "/data/password")
    record = {
        "key": place.key,
        "place": asdict(place),
        "sort": "password",
        "generation": 1,
        "isNew": True,
        "copies": [],
    }
    assert deployment.active_revision is not None
    request = deployment.active_revision.request
    Request.objects.filter(pk=request.pk).update(made_values={"values": [record], "checksums": []})
    KeptValue.objects.create(
        deployment=deployment,
        place=record["place"],
        place_key=place.key,
        sort="password",
        generation=1,
        value=value,
        first_request=request,
        made_at=timezone.now(),
    )


def back(deployment: BundleDeployment, value: str) -> dict[str, Any]:
    annotations = {"core.rukpak.io/rollback-to": value}
    return world.seen("strimzi", world.spec("2"), uid=deployment.uid, generation=2, annotations=annotations)
