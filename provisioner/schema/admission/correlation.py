"""Which old value belongs to which new one: the ground of ratcheting, where unchanged parts may stay invalid."""

from __future__ import annotations

from typing import Any

from provisioner.schema.fields import Schema, child_schema, same_go, schema_of

ABSENT = object()


class Correlation:
    """A new value, the old one it took the place of, and the schema both have. Children are found once."""

    __slots__ = ("_children", "_is_equal", "new", "old", "schema")

    def __init__(self, new: Any, old: Any, schema: Schema):
        self.new = new
        self.old = old
        self.schema = schema
        self._children: dict[str | int, Correlation | None] = {}
        self._is_equal: bool | None = None

    def field(self, name: str) -> Correlation | None:
        """The field `name` with its old value, or None where the old object had none or no schema describes it."""
        if name not in self._children:
            described, found = child_schema(self.schema, name), None
            sides = (self.old, self.new)
            if described is not None and all(isinstance(side, dict) and name in side for side in sides):
                found = Correlation(self.new[name], self.old[name], described)
            self._children[name] = found
        return self._children[name]

    def item(self, position: int) -> Correlation | None:
        """The list item with the old item of the same keys; only lists of type `map` have such a thing."""
        if position not in self._children:
            items, found = schema_of(self.schema.get("items")), None
            if items is not None and isinstance(self.new, list) and position < len(self.new):
                before = correlated_item(self.schema, self.old, self.new[position])
                found = Correlation(self.new[position], before, items) if before is not None else None
            self._children[position] = found
        return self._children[position]

    @property
    def is_unchanged(self) -> bool:
        if self._is_equal is None:
            self._is_equal = self._compare()
        return self._is_equal

    def _compare(self) -> bool:
        if isinstance(self.new, list) and isinstance(self.old, list):
            if len(self.new) != len(self.old):
                return False
            if list_keys(self.schema) is None:
                return same_go(self.new, self.old)
            items = (self.item(position) for position in range(len(self.new)))
            return all(item is not None and item.is_unchanged for item in items)
        if isinstance(self.new, dict) and isinstance(self.old, dict):
            if len(self.new) != len(self.old):
                return False
            children = (self.field(name) for name in self.new)
            return all(child is not None and child.is_unchanged for child in children)
        return same_go(self.new, self.old)


def correlated_item(schema: Schema, old: Any, item: Any) -> Any:
    """The item of the old list with the same map keys as `item`; None where one is absent or no scalar."""
    keys = list_keys(schema)
    if keys is None or not isinstance(old, list) or not isinstance(item, dict):
        return None
    wanted = [item.get(name, ABSENT) for name in keys]
    if not all(isinstance(value, str | int | float) for value in wanted):
        return None
    for known in old:
        if isinstance(known, dict) and all(
            same_go(known.get(name, ABSENT), value) for name, value in zip(keys, wanted, strict=True)
        ):
            return known
    return None


def list_keys(schema: Schema) -> list[str] | None:
    """The keys by which items of a list of type `map` are told apart; None for every other list."""
    keys = schema.get("x-kubernetes-list-map-keys")
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(keys, list) or not keys:
        return None
    return keys
