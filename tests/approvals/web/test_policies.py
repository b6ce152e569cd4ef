"""What the list of policies offers, and to whom."""

from __future__ import annotations

import pytest
from django.core.cache import cache

from tests.support.approvals import scene
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, text_of

NEW = 'href="/policies/new"'


@pytest.mark.parametrize("may", ["", "strimzi", "*"])
def test_a_new_policy_is_offered_to_whom_could_save_one(here: World, browse: Browse, may: str) -> None:
    scene.asked(here.cluster, "strimzi", here.rita)
    here.kubernetes.allow("bert", "get")
    if may:
        here.kubernetes.allow("bert", "approve", may)
    cache.clear()
    response = browse(here.bert).get("/policies")
    assert response.content.decode().count(NEW) == (2 if may else 0)
    assert ("Whoever may approve deployments may create one" in text_of(response)) is (not may)
