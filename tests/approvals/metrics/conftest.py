"""The world of the core's tests, and scrapes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from approvals.metrics import exposition
from approvals.metrics.exposition import SOURCES

TOKEN = "t0ken-of-the-metrics-0123456789abcdef"
Labels = frozenset[tuple[str, str]]
Scrape = Callable[[], dict[tuple[str, Labels], float]]


@pytest.fixture
def scrape() -> Scrape:
    """All samples of a scrape that reads anew, by name and labels."""

    def read() -> dict[tuple[str, Labels], float]:
        for source in SOURCES:
            source.forget()
        return samples_of(exposition()[0])

    return read


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    for source in SOURCES:
        source.forget()
    yield
    for source in SOURCES:
        source.forget()


@pytest.fixture
def token(settings: Any) -> str:
    settings.PRATIQUE = {**settings.PRATIQUE, "METRICS_TOKEN": TOKEN}
    return TOKEN


def samples_of(body: bytes) -> dict[tuple[str, Labels], float]:
    families = text_string_to_metric_families(body.decode())
    return {(one.name, frozenset(one.labels.items())): one.value for family in families for one in family.samples}


def key(name: str, **labels: str) -> tuple[str, Labels]:
    return name, frozenset(labels.items())
