"""What is read at the moment of asking: kept for a few seconds, so that scrapes cost alike however many ask."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

from prometheus_client.core import GaugeMetricFamily, Metric

logger = logging.getLogger(__name__)
KEPT_SECONDS = 5.0


class SourceAway(Exception):
    """The source did not answer, or not in time."""


class Source(Protocol):
    def read(self) -> list[Metric]:
        """All that the source says now; raises SourceAway."""
        ...


@dataclass(eq=False)
class Kept:
    """A source as Prometheus' client collects it: one reader at a time, at most one reading in KEPT_SECONDS."""

    name: str
    source: Source
    _lock: Lock = field(default_factory=Lock)
    _read_at: float = -KEPT_SECONDS
    _found: list[Metric] = field(default_factory=list)
    _is_up: bool = False

    def describe(self) -> list[Metric]:
        """Nothing: registering must not read."""
        return []

    def collect(self) -> Iterator[Metric]:
        with self._lock:
            if time.monotonic() - self._read_at >= KEPT_SECONDS:
                self._read()
            found, is_up = self._found, self._is_up
        up = GaugeMetricFamily(
            f"pratique_{self.name}_up", f"Whether the {self.name.replace('_', ' ')} answered the last scrape."
        )
        up.add_metric([], float(is_up))
        yield up
        yield from found

    def forget(self) -> None:
        """Have the next scrape read anew."""
        with self._lock:
            self._read_at = -KEPT_SECONDS

    def _read(self) -> None:
        try:
            self._found, self._is_up = self.source.read(), True
        except SourceAway as exc:
            self._found, self._is_up = [], False
            logger.warning("a source of metrics is away", extra={"source": self.name, "error": str(exc)})
        self._read_at = time.monotonic()
