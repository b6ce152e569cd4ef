"""JSON patches (RFC 6902). What an object becomes is bounded by the meter: a `copy` may double it each time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from provisioner.errors import BadConfig
from provisioner.render.canonical import canonical
from provisioner.render.limits import YamlMeter
from provisioner.render.objects import count_values
from provisioner.values import JsonObject

MAX_OPERATIONS = 1_000
SECRET_PARTS = ("data", "stringData")
_FIELDS = {
    "add": {"value"}, "replace": {"value"}, "test": {"value"}, "remove": set(), "move": {"from"}, "copy": {"from"},
}  # fmt: skip


def apply_operations(
    body: JsonObject, operations: Sequence[Mapping[str, Any]], where: str, meter: YamlMeter
) -> JsonObject:
    """A copy of `body` after these operations.

    What tells objects apart by kind stays, and values of a Secret stay in its data, and are compared with nothing: the
    report shows neither. Raises BadConfig and BundleTooLarge.
    """
    if len(operations) > MAX_OPERATIONS:
        raise BadConfig(f"config.{where}: has {len(operations)} operations; the most are {MAX_OPERATIONS}")
    patched: JsonObject = canonical(body)
    is_secret = (body.get("apiVersion"), body.get("kind")) == ("v1", "Secret")
    for place, operation in enumerate(operations):
        _Operation(operation, f"config.{where}: operation {place}", meter).apply(patched, is_secret=is_secret)
    return patched


class _Operation:
    def __init__(self, written: Mapping[str, Any], where: str, meter: YamlMeter):
        self.name, path = str(written.get("op")), written.get("path")
        self.where, self.written, self.meter = where, written, meter
        if self.name not in _FIELDS:
            raise BadConfig(f"{where}: op must be {', '.join(_FIELDS)}")
        if missing := sorted(({"path"} | _FIELDS[self.name]) - set(written)):
            raise BadConfig(f"{where}: {self.name} needs {missing[0]}")
        self.path, self.source = self._pointer(path), self._pointer(written["from"]) if "from" in written else ()

    def apply(self, body: JsonObject, *, is_secret: bool) -> None:
        if self.path[0] in ("apiVersion", "kind"):
            raise self._refuse(self.path, "a patch does not change apiVersion or kind")
        if is_secret and (self.name == "test" or self.source) and self._leads_out_of_secret():
            raise self._refuse(self.path, "what a Secret holds is not compared, and not moved or copied elsewhere")
        match self.name:
            case "test":
                if canonical(self._get(body, self.path)) != canonical(self.written["value"]):
                    raise self._refuse(self.path, "holds another value than the test expects")
            case "remove":
                self._remove(body, self.path)
            case "replace" if isinstance(self._get(body, self.path[:-1]), list):
                self._remove(body, self.path)
                self._add(body, self.written["value"])
            # In a mapping kustomize also replaces what is not there.
            case "add" | "replace":
                self._add(body, self.written["value"])
            case "copy":
                self._add(body, self._get(body, self.source))
            case _:
                if self.path[: len(self.source)] == self.source and self.path != self.source:
                    raise self._refuse(self.path, "a value cannot be moved into itself")
                moved = self._get(body, self.source)
                self._remove(body, self.source)
                self._add(body, moved)

    def _leads_out_of_secret(self) -> bool:
        if not self.source:
            return self.path[0] in SECRET_PARTS
        return self.source[0] in SECRET_PARTS and self.path[0] not in SECRET_PARTS

    def _pointer(self, path: object) -> tuple[str, ...]:
        if not isinstance(path, str) or not path.startswith("/"):
            raise BadConfig(f"{self.where}: expected a path such as /spec/replicas")
        return tuple(step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:])

    def _get(self, body: Any, path: tuple[str, ...]) -> Any:
        value = body
        for step in path:
            if isinstance(value, list):
                value = value[self._index(value, step, path, most=len(value) - 1)]
            elif isinstance(value, Mapping) and step in value:
                value = value[step]
            else:
                raise self._refuse(path, "is not there")
        return value

    def _remove(self, body: JsonObject, path: tuple[str, ...]) -> None:
        holder = self._get(body, path[:-1])
        self._get(body, path)
        del holder[int(path[-1]) if isinstance(holder, list) else path[-1]]

    def _add(self, body: JsonObject, value: Any) -> None:
        holder, step = self._get(body, self.path[:-1]), self.path[-1]
        self.meter.add(self.where, *count_values(value))
        if isinstance(holder, list):
            at = len(holder) if step == "-" else self._index(holder, step, self.path, most=len(holder))
            holder.insert(at, canonical(value))
        elif isinstance(holder, dict):
            holder[step] = canonical(value)
        else:
            raise self._refuse(self.path, "lies in a single value")

    def _index(self, listed: list[Any], step: str, path: tuple[str, ...], *, most: int) -> int:
        # Longer numbers are none of a list, and slow to read.
        if not (step.isascii() and step.isdigit() and len(step) < 9 and (step == "0" or step[0] != "0")):
            raise self._refuse(path, "expected the number of an item")
        if int(step) > most:
            raise self._refuse(path, f"the list has {len(listed)} items")
        return int(step)

    def _refuse(self, path: tuple[str, ...], words: str) -> BadConfig:
        return BadConfig(
            f"{self.where} ({self.name}): {words}", server_words="".join(f"/{step}" for step in path)[:200]
        )
