"""The world of one test."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache

from approvals import access
from approvals.models import Cluster, Request
from tests.support.approvals import world


@dataclass
class World:
    cluster: Cluster
    kubernetes: world.FakeKubernetes
    ada: User
    bert: User
    rita: User


@pytest.fixture
def env(db: None) -> Iterator[World]:
    """A cluster on which ada may approve everything, bert nothing, and rita asks for changes."""
    cache.clear()
    where = world.cluster()
    fake = world.FakeKubernetes()
    fake.allow("ada", "approve")
    fake.allow("ada", "get")
    fake.allow("rita", "impersonate")
    people = {
        name: world.user(name, where, group)
        for name, group in {"ada": "platform", "bert": "developers", "rita": "requesters"}.items()
    }
    with access.using(fake):
        yield World(where, fake, **people)


@pytest.fixture
def request_(env: World) -> Request:
    """A harmless request in review, asked for by rita."""
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    return world.in_review(Request.objects.get())
