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
        return [] if is_said else [harmless("SCH-45", path, "the list is atomic, as it was without saying so")]
    words = f"list of type {before} before, {after} now"
    if after == "set":
        return [narrowed("SCH-46", path, f"{words}: no item may occur twice")]
    if after == "map":
        keys = ", ".join(list_keys(new) or ())
        return [narrowed("SCH-47", path, f"{words}, with keys {keys}: none may occur twice")]
    words = f"{words}: server-side appliers overwrite each other's items"
    return [SchemaChange("SCH-48", path, words, SchemaVerdict(writers=D), is_live=True)]


def _of_map(old: Schema, new: Schema, path: Path) -> list[SchemaChange]:
    before, after = old.get(MAP_TYPE) or "granular", new.get(MAP_TYPE) or "granular"
    if before == after:
        return []
    words = f"map of type {before} before, {after} now: who owns its fields changes"
    if after == "atomic" and is_reference(old) and is_reference(new):
        words = f"{words}; a reference is usually written as a whole, by one"
        return [SchemaChange("SCH-50", path, words, SchemaVerdict(writers=D), is_live=True)]
    return [SchemaChange("SCH-49", path, words, SchemaVerdict(writers=D), is_live=True)]
