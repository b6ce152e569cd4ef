"""Every metric that we expose, as the code has it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from prometheus_client.core import Metric

from approvals import instruments
from approvals.metrics.exposition import SOURCES

EVERY, SERVICE = "each process", "web, beat"


@dataclass(frozen=True, slots=True)
class Known:
    """`samples` are the names that queries use; `labels` are sorted."""

    name: str
    kind: str
    labels: tuple[str, ...]
    meaning: str
    told_by: str

    @property
    def samples(self) -> set[str]:
        parts = {"histogram": ("_bucket", "_sum", "_count")}.get(self.kind, ("",))
        return {self.name + part for part in parts}

    @property
    def row(self) -> str:
        labels = ", ".join(f"`{one}`" for one in self.labels)
        return f"| `{self.name}` | {self.kind} | {labels} | {self.meaning} | {self.told_by} |"


def known() -> list[Known]:
    """By name. Reads the sources, so it needs a database; a queue that is away tells of nothing but that."""
    return sorted([*_counted(), *_read()], key=lambda one: one.name)


def _counted() -> Iterator[Known]:
    for collector in set(instruments.registry._names_to_collectors.values()):
        for family in collector.collect():
            if family.name.startswith("pratique_"):
                labels = tuple(getattr(collector, "_labelnames", ()))
                yield _of(family, labels, EVERY)


def _read() -> Iterator[Known]:
    for source in SOURCES:
        source.forget()
        for family in source.collect():
            yield _of(family, tuple(getattr(family, "_labelnames", ())), SERVICE)


def _of(family: Metric, labels: tuple[str, ...], told_by: str) -> Known:
    name = f"{family.name}_total" if family.type == "counter" else family.name
    return Known(name, family.type, tuple(sorted(labels)), family.documentation, told_by)
