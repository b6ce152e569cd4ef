"""Rows of OLM v1's sets of boxcutter revisions that are about records, by the names of their tests."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from approvals import store
from approvals.gate.plan_options import plan_options
from approvals.models import BundleDeployment, Request, Revision
from approvals.steps.records.inventory import owner_of
from approvals.steps.running.observe import is_due
from provisioner import render
from provisioner.cluster.annotations import RevisionOwner
from provisioner.errors import BadSource, DigestMismatch, InvalidManifest
from provisioner.render import content_digest
from provisioner.render.limits import YamlLimits
from provisioner.render.objects import Found, admit
from provisioner.values import CollisionProtection, Content, HealthState, Manifest
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.quay import BLUE, Quay, healthy_condition
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.stores import use_folder

OVERDUE = (False, "ProgressDeadlineExceeded")
PREVENT, IF_NO_CONTROLLER = CollisionProtection.PREVENT, CollisionProtection.IF_NO_CONTROLLER
METADATA = {"name": "settings", "namespace": "harbour"}
SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": METADATA}


@pytest.fixture
def quay(env: World, sandbox: Endpoint) -> Quay:
    return Quay(env, sandbox)


def waiting(quay: Quay, minutes_ago: int) -> BundleDeployment:
    """A revision that has 10 minutes, and is healthy once its sail is blue."""
    deployment = quay.deployment(minutes_ago=minutes_ago, healthChecks=[BLUE])
    quay.own(deployment, "sail", colour="red")
    quay.look(deployment)
    return deployment


def exceeded(quay: Quay) -> None:
    assert healthy_condition(waiting(quay, minutes_ago=11)) == OVERDUE


def requeue(quay: Quay) -> None:
    """Before the deadline it is looked at again and again, also where a watch would tell of every change."""
    deployment = waiting(quay, minutes_ago=9)
    assert healthy_condition(deployment) == (False, "InProgress")
    now = timezone.now()
    deployment.cluster.watched_until = now + timedelta(hours=1)
    assert is_due(deployment, now)


def recovers(quay: Quay) -> None:
    deployment = waiting(quay, minutes_ago=11)
    quay.paint("sail", "blue")
    assert quay.look(deployment).state is HealthState.CURRENT
    assert healthy_condition(deployment) == (True, "Current")


def no_re_check(quay: Quay) -> None:
    """What was healthy once has met its deadline, whatever becomes of it later."""
    deployment = waiting(quay, minutes_ago=9)
    quay.paint("sail", "blue")
    quay.look(deployment)
    revision = deployment.active_revision
    assert revision is not None
    revision.finished_at = timezone.now() - timedelta(hours=1)
    revision.save(update_fields=["finished_at"])
    quay.paint("sail", "red")
    assert quay.look(deployment).state is HealthState.IN_PROGRESS
    assert healthy_condition(deployment) == (False, "InProgress")


DEADLINES: dict[str, Callable[[Quay], None]] = {
    "exceeded": exceeded,
    "requeue": requeue,
    "recovers": recovers,
    "no re-check": no_re_check,
}


@pytest.mark.parametrize("row", DEADLINES.values(), ids=DEADLINES)
def test_progress_deadline(quay: Quay, row: Callable[[Quay], None]) -> None:
    row(quay)


def test_progressed_who_puts_an_older_revision_back_knows_of_the_newer(quay: Quay) -> None:
    """So that it is not taken for one that comes too late (provisioner.cluster.annotations.RevisionOwner)."""
    first = quay.deployment().active_revision
    assert first is not None
    assert owner_of(first) == RevisionOwner("web", 1, newest=1)
    later = Request.objects.get()
    later.pk, later.number, later.uid, later.state = None, 2, uuid.uuid4(), "failed"
    later.save(force_insert=True)
    Revision.objects.create(
        deployment=first.deployment,
        number=2,
        request=later,
        content=first.content,
        state="failed",
        started_at=timezone.now(),
        finished_at=timezone.now(),
    )
    assert owner_of(first) == RevisionOwner("web", 1, newest=2)


@dataclass
class Asked:
    """What a spec and an object say about objects that exist already, and what holds; None where it is refused."""

    expected: CollisionProtection | None
    spec: dict[str, Any] = field(default_factory=dict)
    annotation: str = ""


# boxcutter takes object, phase and spec, in that order, and knows None. Here only the spec says it, because reviewers
# are shown one rule for the whole; content that says it of itself is refused.
PROTECTIONS = {
    "nothing says it": Asked(PREVENT),
    "the spec, Prevent": Asked(PREVENT, {"collisionProtection": "Prevent"}),
    "the spec, IfNoController": Asked(IF_NO_CONTROLLER, {"collisionProtection": "IfNoController"}),
    "the spec, None": Asked(None, {"collisionProtection": "None"}),
    "a phase": Asked(PREVENT, {"phases": [{"name": "deploy", "collisionProtection": "IfNoController"}]}),
    "an object over the spec": Asked(None, {"collisionProtection": "Prevent"}, "IfNoController"),
    "an object over nothing": Asked(None, {}, "IfNoController"),
}


@pytest.mark.parametrize("row", PROTECTIONS.values(), ids=PROTECTIONS)
def test_effective_collision_protection(env: World, row: Asked) -> None:
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec(**row.spec)), env.rita)
    request = Request.objects.get()
    notes = {"core.rukpak.io/collision-protection": row.annotation} if row.annotation else {}
    body = {**SETTINGS, "metadata": {**METADATA, "annotations": notes}}
    if row.expected is None:
        with pytest.raises((BadSource, InvalidManifest), match="collision-?[pP]rotection"):
            effective(request, body)
    else:
        assert effective(request, body) is row.expected


def effective(request: Request, body: dict[str, Any]) -> CollisionProtection:
    """What holds for an object of the request's bundle, once rendering has let it in."""
    found = [Found(body, "settings.yaml", 1)]
    admit(found, install_namespace="harbour", is_namespaced=lambda _: True, limits=YamlLimits())
    return plan_options(request).collision_protection


@pytest.mark.parametrize("change", [b"", b"harbour\n", b"SETTINGS"], ids=["lost", "more", "other"])
def test_verify_referenced_secrets_immutable(db: None, tmp_path: Path, settings: Any, change: bytes) -> None:
    """boxcutter keeps content in Secrets that must not change; here it is kept by digest, and hashed when it is read."""
    use_folder(settings, tmp_path)
    manifests = (Manifest(SETTINGS),)
    digest = content_digest(manifests, install_namespace="harbour", service_account="installer")
    row = store.put(Content(manifests, "harbour", "installer", (), digest), format_name="plain")
    assert store.get(row).manifests == manifests
    (path,) = tmp_path.glob("sha256/*/*")
    found = path.read_bytes()
    changes = {b"": b"", b"SETTINGS": render.serialise(manifests).replace(b"settings", b"SETTINGS")}
    path.write_bytes(changes.get(change, found + change))
    with pytest.raises((DigestMismatch, InvalidManifest)):
        store.get(row)
    assert b"settings" not in found
