"""Capability by reach: a table for each account whose rights change, out of a report's findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

WHOLE_CLUSTER = "whole cluster"
CAPABILITIES = ("Everything", "Read", "Write", "Delete", "Special")
# More accounts than this are told by their findings alone.
MAX_GRIDS = 20
MEANINGS = {
    "Everything": "every verb, including future ones",
    "Read": "get, list, watch",
    "Write": "create, update, patch",
    "Delete": "delete, deletecollection",
    "Special": "special verbs, such as bind, escalate or impersonate",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """How many rights come and go for one capability at one place."""

    gained: int
    lost: int

    @property
    def sign(self) -> str:
        if self.gained and self.lost:
            return "±"
        return "+" if self.gained else "–" if self.lost else ""

    @property
    def words(self) -> str:
        """For everybody: the sign is only a shape."""
        parts = [f"gains {self.gained}"] if self.gained else []
        parts += [f"loses {self.lost}"] if self.lost else []
        return ", ".join(parts) or "no change"


@dataclass(frozen=True, slots=True)
class GridRow:
    capability: str
    meaning: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """One account: `places` are the columns, the whole cluster first."""

    account: str
    places: tuple[str, ...]
    rows: tuple[GridRow, ...]


def grids(findings: Iterable[Mapping[str, Any]]) -> list[Grid]:
    """A grid per account, in the order of `findings`, whose evidence the viewer has to be allowed to see."""
    made: dict[str, Grid] = {}
    for finding in findings:
        evidence = finding["evidence"]
        subject, table = evidence.get("subject"), evidence.get("table")
        if subject and isinstance(table, Mapping) and table and subject not in made and len(made) < MAX_GRIDS:
            made[subject] = _grid(str(subject), table)
    return list(made.values())


def _grid(subject: str, table: Mapping[str, Mapping[str, Mapping[str, int]]]) -> Grid:
    places = sorted({place for row in table.values() for place in row}, key=lambda it: (it != WHOLE_CLUSTER, it))
    rows = [
        GridRow(name, MEANINGS[name], tuple(_cell(table[name].get(place, {})) for place in places))
        for name in CAPABILITIES
        if name in table
    ]
    return Grid(subject, tuple(places), tuple(rows))


def _cell(counts: Mapping[str, int]) -> Cell:
    return Cell(counts.get("added", 0), counts.get("removed", 0))
