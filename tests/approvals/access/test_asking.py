"""How often clusters are asked about people for pages, and how long a page waits for one that does not answer."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.core.cache import cache

from approvals import access
from approvals.access import questions
from approvals.models import BundleDeployment, Cluster, KubernetesIdentity
from provisioner.errors import Unreachable
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, text_of
from tests.support.patience import scaled

CLUSTERS = 4


def also_on(env: World, *names: str) -> list[Cluster]:
    """Further clusters on which ada is ada."""
    made = [world.cluster(name) for name in names]
    for one in made:
        KubernetesIdentity.objects.create(
            user=env.ada, cluster=one, username="ada", groups_seen_at=world.yesterday(), authenticator="mapped"
        )
    return made


@pytest.mark.parametrize("path", ["/?tab=open", "/audit", "/deployments"])
def test_a_page_asks_all_clusters_at_once(
    env: World, browse: Browse, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each answer waits until all clusters were asked: one after another, none would ever answer."""
    also_on(env, *(f"c{number}" for number in range(1, CLUSTERS)))
    together = threading.Barrier(CLUSTERS, timeout=scaled(20))
    told = env.kubernetes.ask

    def ask(cluster: Cluster, identity: Any, request: Any) -> Any:
        if request.verb in ("get", "approve"):
            together.wait()
        return told(cluster, identity, request)

    monkeypatch.setattr(env.kubernetes, "ask", ask)
    answer = browse(env.ada).get(path)
    assert answer.status_code == 200
    assert "could not be asked" not in text_of(answer)


class Silent(world.FakeKubernetes):
    """As a cluster behind a firewall that drops what comes: it counts who tried."""

    tries = 0

    def ask(self, cluster: Cluster, identity: Any, request: Any) -> Any:
        if cluster.name != "moon":
            return super().ask(cluster, identity, request)
        self.tries += 1
        raise Unreachable(f"whether {identity.username} may {request}: moon did not answer")


@pytest.fixture
def moon(env: World, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(questions, "SLOW_SECONDS", 0.0)
    also_on(env, "moon")
    silent = Silent(allowed=env.kubernetes.allowed)
    with access.using(silent):
        yield silent


def test_a_cluster_that_does_not_answer_keeps_one_page_waiting_and_not_those_after_it(
    env: World, browse: Browse, moon: Silent
) -> None:
    pages = [text_of(browse(env.ada).get(path)) for path in ("/", "/audit", "/deployments", "/home")]
    assert moon.tries == 1
    assert all("moon" in page for page in pages), "each says what is missing"


def test_what_one_reader_asked_is_not_told_to_the_next(env: World, moon: Silent) -> None:
    caller, cluster = world.acting(env.ada), Cluster.objects.get(name="moon")
    assert "whether ada may" in access.may_read(caller, cluster).words
    later = access.may_read(caller, cluster)
    assert (later.allowed, later.could_ask) == (False, False)
    assert later.words.endswith("cluster moon did not answer a moment ago")


def test_a_decision_asks_a_cluster_that_was_silent_a_moment_ago(env: World, moon: Silent) -> None:
    caller, cluster = world.acting(env.ada), Cluster.objects.get(name="moon")
    for fresh in (False, True, True):
        assert not access.may(caller, cluster, "approve", fresh=fresh).allowed
    assert moon.tries == 3


def test_a_cluster_that_refuses_at_once_is_asked_again(
    env: World, moon: Silent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "SLOW_SECONDS", 3600.0)
    caller, cluster = world.acting(env.ada), Cluster.objects.get(name="moon")
    for _ in range(3):
        access.may_read(caller, cluster)
    assert moon.tries == 3


def test_the_answers_for_many_readers_of_long_lists_are_kept(env: World) -> None:
    identity = access.identity_of(world.acting(env.ada), env.cluster)
    assert identity
    asked = [access.approval_of(_named(env, f"d{number}")) for number in range(2_000)]
    for _ in range(2):
        access.ask_each(identity, env.cluster, asked)
    assert len(env.kubernetes.asked) == len(asked)
    cache.clear()


def _named(env: World, name: str) -> Any:
    return BundleDeployment(cluster=env.cluster, name=name)
