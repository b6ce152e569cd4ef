"""What two nodes of two schemas say of their own value, compared; what is below them is not looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from provisioner.schema.admission.correlation import list_keys
from provisioner.schema.admission.pruning import TYPE_META
from provisioner.schema.admission.validation import validate
from provisioner.schema.diff.rules import DOCS, RULES, compare_junctors, compare_rules, mindful_of_rules
from provisioner.schema.fields import NO_SCHEMA, Schema, is_same, properties_of, same_json, schema_of
from provisioner.schema.inclusion.facets import SCALAR_KEYWORDS, compare_scalars
from provisioner.schema.inclusion.presence import taken_together
from provisioner.schema.nodes import NodePlace, additional_of, is_reference, type_words, types, with_integers
from provisioner.schema.verdicts import (
    BEHAVIOUR,
    DATA_LOST,
    READERS_ONLY,
    B,
    D,
    Path,
    SchemaChange,
    SchemaVerdict,
    harmless,
    narrowed,
    undecided,
    widened,
    widened_for_readers,
)

LIST_TYPE, MAP_TYPE = "x-kubernetes-list-type", "x-kubernetes-map-type"
PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
SIZES = frozenset({"minItems", "maxItems", "minProperties", "maxProperties"})
STRUCTURE = frozenset({"properties", "additionalProperties", "items", "required", "default", "nullable", "uniqueItems"})
JUNCTORS = frozenset({"allOf", "anyOf", "oneOf", "not"})
EXTENSIONS = frozenset({PRESERVE, EMBEDDED, LIST_TYPE, MAP_TYPE, "x-kubernetes-list-map-keys", RULES})
COMPARED = SCALAR_KEYWORDS | SIZES | STRUCTURE | JUNCTORS | EXTENSIONS | DOCS
NOT_STRUCTURAL = frozenset({"$ref", "additionalItems", "definitions", "dependencies", "patternProperties"})
KNOWN = COMPARED | NOT_STRUCTURAL
# What the API server guarantees of every object, whatever a schema says: asking for that too breaks none. A resource
# has apiVersion, kind and metadata, and its name is a DNS subdomain. One inside a resource (embedded) has an apiVersion
# and a kind, neither empty.
NAME: Schema = {
    "minLength": 1,
    "maxLength": 253,
    "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
}
FILLED: Schema = {"minLength": 1}
OF_EMBEDDED = frozenset({"apiVersion", "kind"})
DESCRIBED: Mapping[str, Schema] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"type": "object"},
}


def compare_nodes(
    old: Schema, new: Schema, place: NodePlace, preserved: tuple[bool, bool]
) -> tuple[list[SchemaChange], bool]:
    """The changes, and whether what is below can still be compared. `preserved` is as in `compare_schemas`."""
    names = always_there(old, new, place.path)
    old, new = with_guaranteed(old, names), with_guaranteed(new, names)
    before, after = types(old), types(new)
    found = [] if before == after else [_retyped(before, after, new, place, preserved)]
    if found and (not after or found[0].rule == "SCH-13"):
        return found, False
    found += compare_scalars(old, new, place.path)
    found += _compare_values(old, new, place, keeps_unknown=preserved[0])
    found += _extensions(old, new, place, preserved)
    found += _required(old, new, place)
    found += compare_keywords(old, new, place.path)
    return mindful_of_rules(taken_together(found, old, new, keeps_unknown=preserved[0]), old), True


def undescribed(what: str, path: Path, *, is_kept: bool, **facts: Any) -> SchemaChange:
    """A value that the new schema does not describe: accepted as it is, but objects in it lose all their fields.

    `what` is `items` for those of a list, else `type`.
    """
    if is_kept:
        return widened_for_readers("SCH-18", f"{what}-undescribed", path, **facts)
    return SchemaChange("SCH-01", f"{what}-undescribed", path, DATA_LOST, is_live=True, facts=facts)


def always_there(old: Schema, new: Schema, path: Path) -> frozenset[str]:
    """The fields of a node that every object has, by what both schemas say of it."""
    if not path:
        return TYPE_META
    return OF_EMBEDDED if old.get(EMBEDDED) is True and new.get(EMBEDDED) is True else frozenset()


def with_guaranteed(schema: Schema, names: frozenset[str]) -> Schema:
    """The node, asking for what is there anyway."""
    if not names:
        return schema
    described = {name: it for name, it in DESCRIBED.items() if name in names}
    needed = sorted({*(schema.get("required") or ()), *names})
    return {**schema, "required": needed, "properties": {**described, **properties_of(schema)}}


def held_to(old: Schema, new: Schema, known: Schema) -> Schema:
    """`old` with what is `known` of every value, where only the new schema says something of that."""
    return {**old, **{key: it for key, it in known.items() if new.get(key) is not None and not old.get(key)}}


def _retyped(
    before: frozenset[str], after: frozenset[str], new: Schema, place: NodePlace, preserved: tuple[bool, bool]
) -> SchemaChange:
    facts: dict[str, Any] = {"old": type_words(before), "new": type_words(after)}
    if not after:
        return undescribed("type", place.path, is_kept=new.get(PRESERVE) is True or preserved[1], **facts)
    if before and before <= with_integers(after):
        rule = "SCH-16" if "string" in after and len(after) > 1 else "SCH-14"
        return widened_for_readers(rule, "type", place.path, **facts)
    rule = "SCH-13"
    if before == {"number"} and after == {"integer"}:
        rule = "SCH-15"
    elif after < before and before:
        rule = "SCH-17"
    if before:
        return narrowed(rule, "type", place.path, **facts)
    # What an object has to have stands here, where nothing below it is compared.
    needed = sorted(set(new.get("required") or ())) if after == {"object"} else []
    facts |= {"types": sorted(after)} | ({"required": needed} if needed else {})
    return narrowed(rule, "typed", place.path, **facts)


def _compare_values(old: Schema, new: Schema, place: NodePlace, *, keeps_unknown: bool) -> Iterator[SchemaChange]:
    yield from compare_junctors(old, new, place.path, keeps_unknown=keeps_unknown)
    if types(old) == types(new) or old.get(RULES) != new.get(RULES):
        yield from compare_rules(old, new, place.path, keeps_unknown=keeps_unknown)
    yield from _nullable(old, new, place)
    yield from _default(old, new, place)
    if bool(new.get("uniqueItems")) and not old.get("uniqueItems"):
        yield SchemaChange("SCH-28", "unique", place.path, SchemaVerdict(api=B))
    elif bool(old.get("uniqueItems")) != bool(new.get("uniqueItems")):
        yield widened("SCH-28", "not-unique", place.path)


def _nullable(old: Schema, new: Schema, place: NodePlace) -> Iterator[SchemaChange]:
    before, after = bool(old.get("nullable")), bool(new.get("nullable"))
    if before == after:
        return
    if after:
        verdict, facts = SchemaVerdict(readers=D, rollback=D), {"variant": "SCH-36a"}
        yield SchemaChange("SCH-36", "kept", place.path, verdict, facts=facts)
    elif validate({**old, "nullable": True}, None):
        yield harmless("SCH-36", "refused-before", place.path)
    elif place.is_always_there and not place.is_droppable and new.get("default") is None:
        yield narrowed("SCH-36", "refused", place.path, counterexample=None)
    else:
        dropped = "dropped-with-key" if place.is_droppable else "dropped"
        variant = dropped if new.get("default") is None else "becomes-default"
        yield SchemaChange("SCH-36", variant, place.path, BEHAVIOUR, is_live=True)


def _default(old: Schema, new: Schema, place: NodePlace) -> Iterator[SchemaChange]:
    before, after = old.get("default"), new.get("default")
    if same_json(before, after):
        return
    facts = {"old": before, "new": after}
    if before is None:
        yield SchemaChange("SCH-33", "added", place.path, BEHAVIOUR, is_live=True, facts=facts)
    elif after is None:
        verdict = SchemaVerdict(stored=B, writers=B, readers=D) if place.is_always_there else BEHAVIOUR
        yield SchemaChange("SCH-35", "removed", place.path, verdict, is_live=True, facts=facts)
    else:
        yield SchemaChange("SCH-34", "changed", place.path, BEHAVIOUR, is_live=True, facts=facts)


def _extensions(old: Schema, new: Schema, place: NodePlace, preserved: tuple[bool, bool]) -> Iterator[SchemaChange]:
    keeps = (old.get(PRESERVE) is True or preserved[0], new.get(PRESERVE) is True or preserved[1])
    if keeps == (True, False) and not preserved[0]:
        yield narrowed("SCH-51", "pruned" if additional_of(new) is None else "of-map", place.path)
    elif keeps == (False, True) and not preserved[1]:
        yield SchemaChange("SCH-52", "kept", place.path, SchemaVerdict(readers=D, rollback=D))
    if bool(old.get(EMBEDDED)) != bool(new.get(EMBEDDED)):
        yield narrowed("SCH-53", "embedded" if new.get(EMBEDDED) else "not-embedded", place.path)
    yield from _compare_list_types(old, new, place.path)
    facts = {"old": old.get(MAP_TYPE) or "granular", "new": new.get(MAP_TYPE) or "granular"}
    if facts["old"] != facts["new"]:
        is_of_reference = facts["new"] == "atomic" and is_reference(old) and is_reference(new)
        rule, verdict = "SCH-50" if is_of_reference else "SCH-49", SchemaVerdict(writers=D)
        yield SchemaChange(rule, "type", place.path, verdict, is_live=True, facts=facts)


def _compare_list_types(old: Schema, new: Schema, path: Path) -> list[SchemaChange]:
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


def _required(old: Schema, new: Schema, place: NodePlace) -> Iterator[SchemaChange]:
    before, after = set(old.get("required") or ()), set(new.get("required") or ())
    for name in sorted(after - before):
        path = (*place.path, name)
        if (schema_of(properties_of(new).get(name)) or NO_SCHEMA).get("default") is not None:
            yield harmless("SCH-09", "by-default", path, name=name)
            continue
        variant = "required" if name in properties_of(old) else "required-and-new"
        yield narrowed("SCH-11" if place.is_element else "SCH-08", variant, path, name=name)
    for name in sorted(before - after):
        verdict = replace(READERS_ONLY, rollback=D)
        yield SchemaChange("SCH-12", "optional", (*place.path, name), verdict, facts={"name": name})


def compare_keywords(old: Schema, new: Schema, path: Path) -> Iterator[SchemaChange]:
    """A change for each keyword of one node that differs and that is compared nowhere else."""
    for name in sorted(old.keys() | new.keys()):
        if name in COMPARED or is_same(old.get(name), new.get(name)):
            continue
        if is_dropped(name):
            yield harmless("SCH-60", "no-keyword", path, keyword=name)
        else:
            yield undecided("SCH-60", "keyword", path, keyword=name)


def is_dropped(keyword: str) -> bool:
    """Whether no API server knows `keyword`: created or applied, strictly or not, 1.36 stores a schema without it.

    What is named x-kubernetes- a newer server may know; the keywords that are not structural an older one used.
    """
    return keyword not in KNOWN and not keyword.startswith("x-kubernetes-")
