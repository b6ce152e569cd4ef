"""How lists and maps are merged: what identifies their parts, and who owns them in server-side apply."""

from __future__ import annotations

from provisioner.schema.admission.correlation import list_keys
from provisioner.schema.nodes import is_reference
from provisioner.schema.reading import Schema
from provisioner.schema.verdicts import D, Path, SchemaChange, SchemaVerdict, harmless, narrowed

LIST_TYPE, MAP_TYPE = "x-kubernetes-list-type", "x-kubernetes-map-type"


def compare_topology(old: Schema, new: Schema, path: Path) -> list[SchemaChange]:
    """Changes of list-type, list-map-keys and map-type at one node."""
    return [*_of_list(old, new, path), *_of_map(old, new, path)]


def _of_list(old: Schema, new: Schema, path: Path) -> list[SchemaChange]:
    before, after = old.get(LIST_TYPE) or "atomic", new.get(LIST_TYPE) or "atomic"
    if before == after and sorted(list_keys(old) or ()) == sorted(list_keys(new) or ()):
        is_said = old.get(LIST_TYPE) == new.get(LIST_TYPE)
        return [] if is_said else [harmless("SCH-45", "atomic", path)]
    facts = {"old": before, "new": after}
    if after == "set":
        return [narrowed("SCH-46", "type", path, **facts)]
    if after == "map":
        return [narrowed("SCH-47", "type", path, **facts, keys=list(list_keys(new) or ()))]
    return [SchemaChange("SCH-48", "type", path, SchemaVerdict(writers=D), is_live=True, facts=facts)]


def _of_map(old: Schema, new: Schema, path: Path) -> list[SchemaChange]:
    before, after = old.get(MAP_TYPE) or "granular", new.get(MAP_TYPE) or "granular"
    if before == after:
        return []
    is_of_reference = after == "atomic" and is_reference(old) and is_reference(new)
    rule, facts = "SCH-50" if is_of_reference else "SCH-49", {"old": before, "new": after}
    return [SchemaChange(rule, "type", path, SchemaVerdict(writers=D), is_live=True, facts=facts)]
