"""The optional objects that a deployment's page shows: what waits for its API, and what became of it."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.ledger import optionals
from approvals.models import OptionalObject
from provisioner.values import ObjectRef
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, opened

PAGE = "/deployments/prod/lighthouse"


@pytest.mark.parametrize(
    ("state", "problem", "shown"),
    [
        pytest.param("waiting", "", "waiting for its API", id="waiting"),
        pytest.param("waiting", "harbour is paused", "harbour is paused", id="waiting for more"),
        pytest.param("asked", "Lamp pier exists already; request 2 asks for it", "request 2 asks", id="asked"),
        pytest.param("created", "", "was created", id="created"),
        pytest.param("asked", "<script>alert(1)</script>", "&lt;script&gt;", id="S24 others' words are text"),
    ],
)
def test_the_page_lists_what_was_left_out(
    here: World, afternoon: dict[str, Any], browse: Browse, state: str, problem: str, shown: str
) -> None:
    revision = afternoon["deployment"].active_revision
    optionals.keep(revision, [ObjectRef("harbour.example.com", "v1", "Lamp", "quay", "pier")])
    OptionalObject.objects.update(state=state, problem=problem)
    found = opened(browse(here.ada), PAGE)
    assert "harbour.example.com/v1" in found
    assert shown in found
    assert "<script>alert" not in found


def test_without_any_the_page_says_nothing_of_it(here: World, afternoon: dict[str, Any], browse: Browse) -> None:
    assert 'id="left-out"' not in opened(browse(here.ada), PAGE)
