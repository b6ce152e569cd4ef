"""What is counted, for how long, in Redis or in one process."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from pytest_django import Settings

from approvals.errors import TooManyAttempts
from approvals.rate_limits import counters
from approvals.rate_limits.counters import Limit, take

FEW = Limit("few", 3, 60)


@pytest.fixture(params=["redis", "memory"])
def store(request: pytest.FixtureRequest, settings: Settings) -> Iterator[None]:
    if request.param == "redis":
        settings.PRATIQUE = {**settings.PRATIQUE, "REDIS_URL": request.getfixturevalue("redis")}
    yield
    counters.forget(FEW, "a")


@pytest.mark.usefixtures("store")
def test_a_limit_counts_and_says_when_it_ends() -> None:
    for _ in range(3):
        take(FEW, "a")
    with pytest.raises(TooManyAttempts, match="try again in 60 s") as refused:
        take(FEW, "a")
    assert refused.value.facts["retryAfter"] in (59, 60)
    take(FEW, "b")
    counters.forget(FEW, "a")
    take(FEW, "a")


@pytest.mark.usefixtures("store")
def test_S29_many_at_once_do_not_slip_through() -> None:
    def attempt(_: int) -> bool:
        try:
            take(FEW, "a")
        except TooManyAttempts:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(attempt, range(64))) == 3


def test_S29_processes_count_together_in_redis(redis: str, settings: Settings) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "REDIS_URL": redis}
    take(FEW, "shared")
    assert counters.Shared(redis, counters.Memory()).add(counters._counter_name(FEW, ("shared",)), 1, 60).total == 2


def test_what_one_process_keeps_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "MAX_KEPT", 100)
    memory = counters.Memory()
    for number in range(1000):
        memory.add(str(number), 1, 60)
    assert len(memory._kept) <= 100
