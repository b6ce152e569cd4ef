"""At which lines of an object its findings stand. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from provisioner.review.base.difference import DiffLine, Path
from provisioner.review.output.lines import located
from provisioner.values import JsonObject

# A finding that holds at more places of an object stands at the first ones.
MAX_PLACES = 20
Record = Mapping[str, Any]


class LinePlaces:
    """The lines of one object by their fields."""

    def __init__(self, before: JsonObject | None, after: JsonObject | None, lines: Sequence[DiffLine]) -> None:
        self._before, self._after = before, after
        self._new = _first_lines(lines, "+ ")
        # Only what is gone has the path of the state before.
        self._old = _first_lines(lines, "-")

    def lines_of(self, finding: Record, name: str) -> list[int]:
        """Where a finding stands: for each of its fields the line in the state after, else in the one before.

        `name` is what a finding calls the object when it lists the places where it holds.
        """
        found = [self._line(tuple(path), version) for path, version in _fields(finding, name)[:MAX_PLACES]]
        return sorted({at for at in found if at is not None})

    def _line(self, path: Path, version: str) -> int | None:
        old, new = located(self._before, path, version), located(self._after, path, version)
        if not old and not new:
            return None
        return self._new.get(new) if len(new) >= len(old) else self._old.get(old)


def _fields(finding: Record, name: str) -> list[tuple[Iterable[str | int], str]]:
    evidence = finding["evidence"]
    listed = evidence.get("all_places")
    if listed:
        return [(one["path"], str(one["version"])) for one in listed if one["object"] == name and one["path"]]
    version = evidence.get("version")
    return [(finding["path"], version if isinstance(version, str) else "")] if finding["path"] else []


def _first_lines(lines: Sequence[DiffLine], kinds: str) -> dict[Path, int]:
    """The first line of each field: an item of a list begins at the line of its first field."""
    found: dict[Path, int] = {}
    for at, line in enumerate(lines):
        if line.kind not in kinds:
            continue
        path = line.path
        while path and path not in found:
            found[path] = at
            path = path[:-1]
    return found
