"""Deployments that were applied before, as an apply leaves them behind."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.models import BundleDeployment, Request, Revision
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


def back(deployment: BundleDeployment, value: str) -> dict[str, Any]:
    annotations = {"core.rukpak.io/rollback-to": value}
    return world.seen("strimzi", world.spec("2"), uid=deployment.uid, generation=2, annotations=annotations)
