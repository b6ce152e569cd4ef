"""Two schemas compared by what they accept, node by node, each change once and at the place where it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from provisioner.schema.admission.pruning import TYPE_META
from provisioner.schema.admission.validation import validate
from provisioner.schema.diff.node import (
    EMBEDDED,
    FILLED,
    NAME,
    PRESERVE,
    always_there,
    compare_nodes,
    held_to,
    undescribed,
)
from provisioner.schema.diff.rules import DOCS
from provisioner.schema.fields import NO_SCHEMA, Schema, is_same, properties_of, schema_of
from provisioner.schema.inclusion.facets import compare_scalars
from provisioner.schema.nodes import (
    NodePlace,
    additional_of,
    as_object,
    count,
    hoisted,
    may_hold_objects,
    plain_node,
    types,
)
from provisioner.schema.verdicts import (
    BEHAVIOUR,
    DATA_LOST,
    ITEMS,
    VALUES,
    B,
    D,
    Path,
    SchemaChange,
    SchemaVerdict,
    harmless,
    narrowed,
    shown,
    widened,
    widened_for_readers,
)

CHILDREN = frozenset({"properties", "items", "additionalProperties"})
ASIDE = CHILDREN | {"description"}
METADATA: Path = ("metadata",)
STATUS: Path = ("status",)
MANY_SIBLINGS = 5  # from so many on, fields removed from one node are one finding


def compare_schemas(
    old: Schema | None,
    new: Schema | None,
    *,
    preserved: tuple[bool, bool] = (False, False),
    type_meta: Mapping[str, str] | None = None,
) -> list[SchemaChange]:
    """The changes from `old` to `new`, two schemas of one version; None is a version without a schema.

    `preserved` says whether the old and the new CRD keep unknown fields everywhere (preserveUnknownFields). `type_meta`
    holds the apiVersion and the kind that all objects have, where these are known.
    """
    if old is None or new is None:
        if old is None and new is None:
            return []
        if new is None:
            if preserved[1]:
                return [widened("SCH-52", "schema-removed", ())]
            return [SchemaChange("SCH-01", "schema-removed", (), DATA_LOST, is_live=True)]
        return [narrowed("SCH-51", "schema-added", ())]
    old = as_object(old)
    walk = _Walk(preserved, type_meta or {})
    walk.pair(old, new, NodePlace())
    if not walk.changes and is_same(old, new):
        return reordered_defaults(old, new)
    return walk.changes + walk.typed_fields() + walk.documentation()


def _changed(old: Schema, new: Schema) -> set[str]:
    """The keywords of which two nodes do not say the same; what is below them is left aside."""
    found = {name for name, was in old.items() if name not in CHILDREN and not is_same(new.get(name), was)}
    if old.keys() != new.keys():
        found |= {name for name in new if name not in old and name not in CHILDREN and new[name] is not None}
    return found


def _says_the_same(old: Schema, new: Schema) -> bool:
    """Whether two nodes say the same of their own value, in other words perhaps: most of a large CRD does."""
    for name, was in old.items():
        now = new.get(name)
        if now is was or name in ASIDE:
            continue
        if now != was or (type(was) is not str and not is_same(now, was)):
            return False
    return old.keys() == new.keys() or all(name in old or name in ASIDE for name in new)


@dataclass(slots=True)
class _Walk:
    preserved: tuple[bool, bool]
    type_meta: Mapping[str, str] = field(default_factory=dict)
    changes: list[SchemaChange] = field(default_factory=list)
    reworded: list[Path] = field(default_factory=list)
    typed: list[Path] = field(default_factory=list)

    def typed_fields(self) -> list[SchemaChange]:
        """All fields added to a schema that kept unknown fields everywhere, in one finding."""
        if not self.typed:
            return []
        paths = [shown(path) for path in self.typed]
        variant, path = ("field-typed", self.typed[0]) if len(paths) == 1 else ("fields-typed", ())
        return [narrowed("SCH-07", variant, path, count=len(paths), paths=paths)]

    def documentation(self) -> list[SchemaChange]:
        """All changed descriptions, titles and examples in one finding."""
        if not self.reworded:
            return []
        count, first = len(self.reworded), self.reworded[0]
        variant, path = ("description", first) if count == 1 else ("descriptions", ())
        return [harmless("SCH-37", variant, path, count=count)]

    def pair(self, old: Schema, new: Schema, place: NodePlace) -> None:
        """Compare two nodes as they are written; what is the same on both sides is not looked into."""
        if is_same(old, new):
            return
        if "type" in old and place.path != METADATA and _says_the_same(old, new):
            if old.get("description") != new.get("description"):
                self.reworded.append(place.path)
            self._below(old, new, place.path)
        else:
            self._different(old, new, place)

    def _different(self, old: Schema, new: Schema, place: NodePlace) -> None:
        if not is_same(old.get("allOf"), new.get("allOf")):
            old, new = hoisted(old), hoisted(new)
        before, after = plain_node(old), plain_node(new)
        if before.get(EMBEDDED) is True:
            before = as_object(before)
        if (before is old) != (after is new) and types(before) == types(after):
            self.changes.append(harmless("SCH-54", "written-otherwise", place.path))
        changed = _changed(before, after)
        if not changed.isdisjoint(DOCS):
            self.reworded.append(place.path)
        if place.path == METADATA:
            self._metadata(before, after, place.path)
            return
        if not changed <= DOCS or "type" not in before:
            found, are_comparable = compare_nodes(before, after, place, self.preserved)
            self.changes += found
            if not are_comparable:
                return
        self._below(before, after, place.path)

    def _metadata(self, old: Schema, new: Schema, path: Path) -> None:
        """The API server takes restrictions of name and generateName only; a removed one lifts a limit."""
        gone = [name for name in properties_of(old) if name not in properties_of(new)]
        for name in gone:
            self.changes.append(harmless("SCH-04", "removed", (*path, name)))
        rest = {name: it for name, it in properties_of(old).items() if name in properties_of(new)}
        for name, described in properties_of(new).items():
            before, after = schema_of(rest.get(name)) or NO_SCHEMA, schema_of(described) or NO_SCHEMA
            if path == METADATA and name == "name":
                before = held_to(before, after, NAME)
            self._walk_text(before, after, (*path, name))

    def _below(self, old: Schema, new: Schema, path: Path) -> None:
        if "items" in old or "items" in new:
            self._items(old, new, path)
        if "additionalProperties" in old or "additionalProperties" in new:
            self._additional(old, new, path)
        if "properties" in old or "properties" in new:
            before, after = properties_of(old), properties_of(new)
            needed, is_missing = set(new.get("required") or ()), False
            for name, described in before.items():
                now = schema_of(after.get(name))
                if now is None:
                    is_missing = True
                    continue
                is_needed = name in needed and now.get("default") is None
                if name in always_there(old, new, path) and name != "metadata":
                    self._walk_named(schema_of(described) or NO_SCHEMA, now, (*path, name))
                    continue
                self.pair(schema_of(described) or NO_SCHEMA, now, NodePlace((*path, name), is_always_there=is_needed))
            if is_missing or before.keys() != after.keys():
                self._come_and_gone(old, new, path)

    def _items(self, old: Schema, new: Schema, path: Path) -> None:
        before, after, inner = schema_of(old.get("items")), schema_of(new.get("items")), (*path, ITEMS)
        if before is not None and after is not None:
            self.pair(before, after, NodePlace(inner, is_element=True, is_always_there=True))
        elif before is not None:
            is_kept = new.get(PRESERVE) is True or self.preserved[1]
            self.changes.append(undescribed("items", inner, is_kept=is_kept))
        elif after is not None:
            self.changes.append(narrowed("SCH-13", "items", inner))

    def _additional(self, old: Schema, new: Schema, path: Path) -> None:
        before, after, inner = additional_of(old), additional_of(new), (*path, VALUES)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            # Of a map that must keep so many keys, one that is dropped may be one too many.
            may_lose_keys = not new.get("minProperties")
            self.pair(
                before, after, NodePlace(inner, is_element=True, is_always_there=True, is_droppable=may_lose_keys)
            )
        elif before == after:
            return
        elif before is None:
            self._opened(old, new, path)
        elif after is None:
            # A map that is none any more: keys without a field of their own are pruned.
            if before is True and new.get(PRESERVE) is True:
                return  # said of the node: more is kept than before
            if new.get(PRESERVE) is True or self.preserved[1]:
                verdict = SchemaVerdict(stored=D, writers=D)
                self.changes.append(SchemaChange("SCH-02", "map", (*path, VALUES), verdict))
                return
            rule, variant = ("SCH-19", "map-to-fields") if properties_of(new) else ("SCH-01", "map-pruned")
            facts = _below(before) if isinstance(before, Mapping) else {}
            self.changes.append(SchemaChange(rule, variant, (*path, VALUES), DATA_LOST, is_live=True, facts=facts))
        elif isinstance(after, Mapping) or after is False:
            self.changes.append(narrowed("SCH-13", "map", inner))
        elif isinstance(before, Mapping) and may_hold_objects(before):
            self.changes.append(SchemaChange("SCH-01", "map-of-anything", inner, DATA_LOST, is_live=True))
        else:
            self.changes.append(widened_for_readers("SCH-18", "map-of-anything", inner))

    def _opened(self, old: Schema, new: Schema, path: Path) -> None:
        """A map where there were none or only named fields; a schema that kept all keys is said to no longer do so."""
        named, after = properties_of(old), additional_of(new)
        if not named:
            if old.get(PRESERVE) is True and new.get(PRESERVE) is not True:
                return
            takes_anything = not isinstance(after, Mapping) or after.keys() <= DOCS | {PRESERVE, "nullable"}
            keeps = old.get(PRESERVE) is True or (self.preserved[0] and not takes_anything)
            change = narrowed if keeps else widened
            rule = "SCH-07" if keeps else "SCH-52"
            self.changes.append(change(rule, "any-key", (*path, VALUES)))
            return
        walk = _Walk(self.preserved)
        for name, described in named.items():
            if isinstance(after, Mapping) and isinstance(described, Mapping):
                walk.pair(described, after, NodePlace((*path, name)))
        is_harder = any(it.verdict.severity.is_at_least(B) for it in walk.changes)
        verdict = SchemaVerdict(stored=B, writers=B) if is_harder else SchemaVerdict(stored=D, writers=D)
        self.changes.append(SchemaChange("SCH-19", "fields-to-map", path, verdict, is_live=is_harder))

    def _come_and_gone(self, old: Schema, new: Schema, path: Path) -> None:
        before, after, needed = properties_of(old), properties_of(new), set(new.get("required") or ())
        if not path or (old.get(EMBEDDED) is True and new.get(EMBEDDED) is True):
            self._type_meta(before, after, path)
            before, after = (
                {name: it for name, it in side.items() if name not in TYPE_META} for side in (before, after)
            )
        if additional_of(new) is None:
            gone = {name: it for name, it in before.items() if schema_of(after.get(name)) is None}
            self._all_removed(gone, new, path)
        if additional_of(old) is None:
            for name, described in after.items():
                if name not in before:
                    now = schema_of(described) or NO_SCHEMA
                    where = (*path, name)
                    is_needed = name in needed
                    facts = _below(now)
                    if self.preserved[0]:
                        self.typed.append(where)
                    elif old.get(PRESERVE) is True:
                        self.changes.append(narrowed("SCH-07", "field-typed", where, **facts))
                    elif now.get("default") is None:
                        self.changes.append(widened("SCH-05", "added", where, **facts))
                        if now.get("required") and not is_needed:
                            self.changes.append(harmless("SCH-10", "of-users", where))
                    elif not is_needed:
                        facts |= {"new": now["default"]}
                        self.changes.append(SchemaChange("SCH-06", "added", where, BEHAVIOUR, facts=facts))

    def _type_meta(self, before: Mapping[str, Any], after: Mapping[str, Any], path: Path) -> None:
        """What one of two schemas says of apiVersion, kind and metadata: a resource has them all the same."""
        for name in sorted(TYPE_META & (before.keys() ^ after.keys())):
            old, new = (schema_of(side.get(name)) or NO_SCHEMA for side in (before, after))
            inner = (*path, name)
            if name == "metadata":
                self._metadata(old, new, inner)
            else:
                self._type_name(old, new, inner)

    def _walk_named(self, old: Schema, new: Schema, path: Path) -> None:
        """An apiVersion or a kind that both sides describe."""
        if not _changed(old, new).isdisjoint(DOCS) or old.get("description") != new.get("description"):
            self.reworded.append(path)
        self._type_name(old, new, path)

    def _type_name(self, old: Schema, new: Schema, path: Path) -> None:
        """What is said of an apiVersion or a kind. That of the resource itself has one value."""
        value = self.type_meta.get(shown(path))
        if value is None:
            self._walk_text(held_to(old, new, FILLED), new, path)
        elif validate(new, value) and not validate(old, value):
            self._walk_text({"enum": [value], **old}, new, path)

    def _walk_text(self, old: Schema, new: Schema, path: Path) -> None:
        self.changes += compare_scalars({"type": "string", **old}, {"type": "string", **new}, path)

    def _all_removed(self, gone: Mapping[str, Schema], new: Schema, path: Path) -> None:
        if len(gone) >= MANY_SIBLINGS:
            change = self._removed({"properties": gone}, new, path)
            facts = {**change.facts, "fields": sorted(gone)}
            self.changes.append(replace(change, variant="fields-removed", facts=facts))
            return
        for name, was in gone.items():
            self.changes.append(self._removed(schema_of(was) or NO_SCHEMA, new, (*path, name)))

    def _removed(self, was: Schema, parent: Schema, path: Path) -> SchemaChange:
        facts = _below(was)
        if parent.get(PRESERVE) is True or self.preserved[1]:
            verdict = SchemaVerdict(stored=D, writers=D, readers=D)
            return SchemaChange("SCH-02", "field-removed", path, verdict, facts=facts)
        if path[:1] == STATUS:
            verdict = SchemaVerdict(stored=D, readers=D, rollback=D)
            return SchemaChange("SCH-03", "field-removed", path, verdict, facts=facts)
        return SchemaChange("SCH-01", "field-removed", path, DATA_LOST, is_live=True, facts=facts)


def _below(node: Schema) -> dict[str, Any]:
    """How many fields a node holds, where it holds any."""
    below = count(node)
    return {"below": below} if below else {}


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
