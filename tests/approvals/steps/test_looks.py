"""How often a reference that may move is looked at, and that one look is for all who may read it alike."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from approvals.ledger import references
from approvals.models import BundleDeployment, Cluster, FloatingReference
from tests.support.approvals import world
from tests.support.approvals.fixtures import World

REPOSITORY = "https://git.example.com/harbour.git"


def limits(settings: Any, **values: int) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "SOURCE_POLLS_PER_HOST": 10, "SOURCE_POLL_SECONDS": 900, **values}


def follows(
    cluster: Cluster, name: str, *, interval: str = "", secret: str = "", repository: str = REPOSITORY
) -> BundleDeployment:
    """A deployment of a branch; `secret` opens it."""
    auth = {"auth": {"secret": {"name": secret, "namespace": "harbour"}}} if secret else {}
    git = {"repository": repository, "ref": {"branch": "main"}, **auth}
    source = {"kind": "git", "git": git, **({"interval": interval} if interval else {})}
    return world.wish(cluster, world.seen(name, world.spec(sources=[source])))


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        pytest.param(["1s"], 300, id="no shorter than the operator allows"),
        pytest.param([""], 900, id="as the operator has it"),
        pytest.param(["2h", "10m", "Never"], 600, id="the shortest of all"),
        pytest.param(["Never"], 0, id="never"),
    ],
)
def test_a_reference_is_looked_at_as_often_as_somebody_wants_and_may(
    here: World, settings: Any, asked: list[str], seconds: int
) -> None:
    limits(settings, SOURCE_POLL_MIN_SECONDS=300)
    for number, interval in enumerate(asked):
        follows(here.cluster, f"harbour-{number}", interval=interval)
    reference = FloatingReference.objects.get()
    assert references.interval(reference) == seconds
    assert (reference.look_at is not None) is bool(seconds)
    limits(settings, SOURCE_POLL_MIN_SECONDS=300, SOURCE_POLLS_PER_HOST=0)
    assert references.interval(reference) == 0, "the operator has turned looks off"


def test_one_look_is_for_all_deployments_that_name_the_reference(here: World, settings: Any) -> None:
    limits(settings)
    for number in range(3):
        follows(here.cluster, f"harbour-{number}")
    other = Cluster.objects.create(name="test", uid="other", kubeconfig="{}", created_at=timezone.now())
    follows(other, "harbour")
    assert FloatingReference.objects.get().followers.count() == 4
    follows(here.cluster, "quay", repository="https://git.example.com/quay.git")
    assert FloatingReference.objects.count() == 2


def test_a_look_with_a_secret_is_for_those_of_the_same_secret_of_the_same_cluster(here: World, settings: Any) -> None:
    limits(settings)
    other = Cluster.objects.create(name="test", uid="other", kubeconfig="{}", created_at=timezone.now())
    for cluster, name, secret in (
        (here.cluster, "open", ""),
        (here.cluster, "one", "pull"),
        (here.cluster, "two", "pull"),
        (here.cluster, "three", "other"),
        (other, "four", "pull"),
    ):
        follows(cluster, name, secret=secret)
    found = [
        sorted(one.deployment.name for one in row.followers.select_related("deployment"))
        for row in FloatingReference.objects.all()
    ]
    assert sorted(found) == [["four"], ["one", "two"], ["open"], ["three"]]
