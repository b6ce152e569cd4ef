"""Which deletions the operator's word covers, by their report (security-rules.md S15)."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.gate.deletions import is_free
from approvals.models import Request
from provisioner.review.base.record import VERSION
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.waivers import finding, report


@pytest.fixture
def allowed(settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "UNREVIEWED_DELETIONS": True}


def deletion(here: World, *found: dict[str, Any], purpose: str = "delete") -> Request:
    world.wish(here.cluster, world.seen("strimzi", world.spec()), here.rita)
    Request.objects.update(purpose=purpose)
    request = report(Request.objects.get(), *found)
    told = request.reports.get()
    told.body = {**told.body, "version": VERSION}
    told.save()
    return request


def test_S15_a_deletion_of_nothing_is_covered(here: World, allowed: None) -> None:
    assert is_free(deletion(here, finding(1)))


def test_S15_nothing_is_covered_by_default(here: World) -> None:
    assert not is_free(deletion(here))


def test_S15_nothing_but_a_deletion_is_covered(here: World, allowed: None) -> None:
    assert not is_free(deletion(here, purpose="deploy"))


@pytest.mark.parametrize(
    "told", [finding(2, "unknown"), finding(2, rule="OWN-PRATIQUE-1")], ids=["unknown", "about Pratique"]
)
def test_S15_what_only_people_may_judge_is_not_covered(here: World, allowed: None, told: dict[str, Any]) -> None:
    assert not is_free(deletion(here, finding(1), told))
