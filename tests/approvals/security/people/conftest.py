"""Fixtures of the tests in this folder."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from tests.approvals.security.people.proofs import CARLA
from tests.support.approvals import world
from tests.support.approvals.fixtures import World


@pytest.fixture
def carla(env: World) -> User:
    """Somebody of prod who signs in with a token, and may do everything."""
    env.kubernetes.tokens["carla"] = CARLA
    for verb in ("get", "approve", "create", "update", "delete"):
        env.kubernetes.allow("carla", verb)
    return world.by_token("prod", "carla").user
