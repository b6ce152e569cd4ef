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


@pytest.mark.parametrize(
    ("is_allowed", "purpose", "told", "expected"),
    [
        pytest.param(True, "delete", [finding(1)], True, id="a deletion of nothing is covered"),
        pytest.param(False, "delete", [], False, id="nothing is covered by default"),
        pytest.param(True, "deploy", [], False, id="nothing but a deletion is covered"),
        pytest.param(True, "delete", [finding(1), finding(2, "unknown")], False, id="people judge what is unknown"),
        pytest.param(
            True, "delete", [finding(1), finding(2, rule="OWN-PRATIQUE-1")], False, id="people judge Pratique itself"
        ),
    ],
)
def test_S15_the_operators_word_covers_a_deletion_of_what_holds_no_data(
    env: World, settings: Any, is_allowed: bool, purpose: str, told: list[dict[str, Any]], expected: bool
) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "UNREVIEWED_DELETIONS": is_allowed}
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    Request.objects.update(purpose=purpose)
    request = report(Request.objects.get(), *told)
    row = request.reports.get()
    row.body = {**row.body, "version": VERSION}
    row.save()
    assert is_free(request) is expected
