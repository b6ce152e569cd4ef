"""Defaults that mean the same and are written in another order, which some tools mind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from provisioner.schema.reading import Schema, properties_of
from provisioner.schema.verdicts import ITEMS, VALUES, Path, SchemaChange, harmless


def reordered_defaults(old: Schema, new: Schema) -> list[SchemaChange]:
    """Of two schemas that are equal: the defaults whose fields are written in another order, which some tools mind."""
    if json.dumps(old, default=dict) == json.dumps(new, default=dict):
        return []
    found: list[SchemaChange] = []
    waiting: list[tuple[Any, Any, Path]] = [(old, new, ())]
    while waiting:
        before, after, path = waiting.pop()
        if not isinstance(before, Mapping) or not isinstance(after, Mapping):
            continue
        if json.dumps(before.get("default")) != json.dumps(after.get("default")):
            found.append(harmless("SCH-34", "reordered", path))
        waiting.append((before.get("items"), after.get("items"), (*path, ITEMS)))
        waiting.append((before.get("additionalProperties"), after.get("additionalProperties"), (*path, VALUES)))
        known = properties_of(after)
        waiting += [(it, known.get(name), (*path, name)) for name, it in properties_of(before).items()]
    return found
