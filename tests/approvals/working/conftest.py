"""Fixtures of the tests in this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from approvals.ledger.process_claims import HELD
from approvals.models import Request
from tests.approvals.working.deaths import Alone
from tests.support.approvals import world
from tests.support.approvals.fixtures import World


@pytest.fixture
def request_(env: World) -> Request:
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    return Request.objects.get()


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    HELD.is_stopping = False
    HELD.let_go(lambda _: None)


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Alone:
    return Alone(monkeypatch)
