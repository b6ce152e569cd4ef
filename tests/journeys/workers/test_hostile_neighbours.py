"""Strangers' specs and contents that would exhaust a worker, and an innocent request that comes through beside them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.journeys.machine import Machine
from tests.support.journeys.neighbours import Neighbourhood, neighbourhood
from tests.support.kubernetes.endpoint import Endpoint

PATIENCE_SECONDS = 240
# Of a limit of 2 GiB, which is what deploy/kubernetes ships.
MOST_MIB = 600
# A constraint over a limit can never be met: its request fails and says which limit.
OVER_A_LIMIT = {
    "doubling": "could not be evaluated: it needs more memory than 256 MiB",
    "forever": "could not be evaluated: it loops more often than the iteration budget of CEL allows",
}


@pytest.fixture(params=[pytest.param("own_controlplane", marks=pytest.mark.controlplane), "own_sandbox"])
def here(request: pytest.FixtureRequest, machine: Machine) -> Iterator[Neighbourhood]:
    found = request.getfixturevalue(request.param)
    endpoint = found if isinstance(found, Endpoint) else found.endpoint
    with neighbourhood(machine, endpoint, "pills") as made:
        yield made


@pytest.mark.thorough
def test_S26_hostile_specs_end_in_words_and_an_innocent_request_comes_through(here: Neighbourhood) -> None:
    here.seconds_until_ready("pills-first")
    worker = here.worker
    hostile = here.wish_hostile()
    here.seconds_until_ready("pills-innocent")
    rows = here.until(hostile, ["failed", "in_review"], PATIENCE_SECONDS)
    for name in hostile:
        state, code, problem = rows[name]
        assert (state == "in_review") or (code and problem), (name, rows[name])
    assert worker.poll() is None, "the worker lives"
    assert here.worker_mib() < MOST_MIB
    assert here.machine.rows("SELECT count(*) FROM approvals_request WHERE worker_deaths > 0") == [(0,)]
    for name, words in OVER_A_LIMIT.items():
        state, code, problem = rows[f"pills-{name}"]
        assert (state, code) == ("failed", "constraint-over-limit")
        assert words in problem
