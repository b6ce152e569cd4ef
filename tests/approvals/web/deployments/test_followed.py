"""How a deployment's page shows what is checked for changes: how often, since when it cannot be, and what follows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.models import BundleDeployment
from approvals.selectors import followed_sources
from approvals.steps.mirroring import conditions
from tests.support.approvals import world
from tests.support.approvals.fixtures import World

HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("reference", "row", "words", "reason"),
    [
        ({}, {}, "every 10m, not checked yet", "NotChecked"),
        ({"looked_at": HOUR}, {}, "every 10m, last", "Checked"),
        (
            {"looked_at": HOUR, "problem_since": 3 * HOUR, "problem": "<b> is away", "problem_code": "unreachable"},
            {},
            "Cannot be checked; this failed first",
            "Unreachable",
        ),
        (
            {"looked_at": HOUR},
            {"problem_since": HOUR, "problem": "the cluster does not allow rita to get Secret x/pull"},
            "the cluster does not allow rita to get Secret x/pull",
            "Forbidden",
        ),
        ({"looked_at": HOUR}, {"moved_at": HOUR}, "A new request is created when the open request is settled", "Moved"),
        (
            {"looked_at": HOUR},
            {"moved_at": HOUR, "rests_until": -HOUR / 2},
            "created 4 requests within an hour, which is the limit",
            "ChangesTooOften",
        ),
        ({"looked_at": HOUR}, {"interval_seconds": 0}, "not checked: the interval is Never", ""),
    ],
    ids=["not yet", "well", "down", "not for them", "moved", "flaps", "never"],
)
def test_page_and_condition_say_how_a_source_stands(
    here: World,
    browse: Callable[[User], Client],
    reference: dict[str, Any],
    row: dict[str, Any],
    words: str,
    reason: str,
) -> None:
    deployment = world.wish(here.cluster, world.seen("strimzi", world.spec()), by=here.rita)
    world.following(deployment, reference, row)
    text = " ".join(browse(here.ada).get("/deployments/prod/strimzi").content.decode().split())
    assert words in text
    assert "<b> is away" not in text
    shown = conditions.of_sources(followed_sources.followed(deployment=BundleDeployment.objects.get(pk=deployment.pk)))
    assert [one.reason for one in shown] == ([reason] if reason else [])


def test_a_paused_deployment_says_that_nothing_is_checked(here: World, browse: Callable[[User], Client]) -> None:
    deployment = world.wish(here.cluster, world.seen("strimzi", world.spec()), by=here.rita)
    world.following(deployment, {"looked_at": HOUR}, {})
    BundleDeployment.objects.filter(pk=deployment.pk).update(is_paused=True, paused_generation=1)
    text = browse(here.ada).get("/deployments/prod/strimzi").content.decode()
    assert "not checked while paused" in text
