"""What two nodes of two schemas say of their own value, compared; what is below them is not looked at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from provisioner.schema.admission.validation import validate
from provisioner.schema.diff.guaranteed import always_there, with_guaranteed
from provisioner.schema.diff.keywords import EMBEDDED, PRESERVE, compare_keywords
from provisioner.schema.diff.lists import compare_topology
from provisioner.schema.diff.rules import RULES, compare_junctors, compare_rules, mindful_of_rules
from provisioner.schema.fields import same_json, shown_json
from provisioner.schema.inclusion.facets import compare_scalars
from provisioner.schema.inclusion.scalars import taken_together
from provisioner.schema.nodes import NodePlace, additional_of, type_words, types, with_integers
from provisioner.schema.reading import NO_SCHEMA, Schema, properties_of, schema_of
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
    type_phrase,
    widened,
)


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
    found += _values(old, new, place, keeps_unknown=preserved[0])
    found += _extensions(old, new, place, preserved)
    found += _required(old, new, place)
    found += compare_keywords(old, new, place.path)
    return mindful_of_rules(taken_together(found, old, new, keeps_unknown=preserved[0]), old), True


def undescribed(path: Path, words: str, *, is_kept: bool) -> SchemaChange:
    """A value that the new schema does not describe: accepted as it is, but objects in it lose all their fields."""
    if is_kept:
        return widened("SCH-18", path, f"{words}: anything is accepted and kept", for_readers=True)
    return SchemaChange(
        "SCH-01", path, f"{words}: anything is accepted, and objects are emptied", DATA_LOST, is_live=True
    )


def _retyped(
    before: frozenset[str], after: frozenset[str], new: Schema, place: NodePlace, preserved: tuple[bool, bool]
) -> SchemaChange:
    words = f"type {type_words(before)} before, {type_words(after)} now"
    if after and not before:
        words = f"must be {type_phrase(after)}{_with_needed(after, new)} now, where anything was accepted"
    if not after:
        return undescribed(place.path, words, is_kept=new.get(PRESERVE) is True or preserved[1])
    if before and before <= with_integers(after):
        rule = "SCH-16" if "string" in after and len(after) > 1 else "SCH-14"
        return widened(rule, place.path, words, for_readers=True)
    rule = "SCH-13"
    if before == {"number"} and after == {"integer"}:
        rule = "SCH-15"
    elif after < before and before:
        rule = "SCH-17"
    facts = {"old": type_words(before), "new": type_words(after)}
    needed = _needed_of(after, new)
    return narrowed(rule, place.path, words, **facts, **({"required": needed} if needed and not before else {}))


def _needed_of(after: frozenset[str], new: Schema) -> list[str]:
    """What an object has to have, where nothing below it is compared."""
    return sorted(set(new.get("required") or ())) if after == {"object"} else []


def _with_needed(after: frozenset[str], new: Schema) -> str:
    needed = _needed_of(after, new)
    return f" with {', '.join(f'`{name}`' for name in needed)}" if needed else ""


def _values(old: Schema, new: Schema, place: NodePlace, *, keeps_unknown: bool) -> Iterator[SchemaChange]:
    yield from compare_junctors(old, new, place.path, keeps_unknown=keeps_unknown)
    signature_changed = types(old) != types(new)
    if not signature_changed or old.get(RULES) != new.get(RULES):
        yield from compare_rules(old, new, place.path, keeps_unknown=keeps_unknown)
    yield from _nullable(old, new, place)
    yield from _default(old, new, place)
    if bool(new.get("uniqueItems")) and not old.get("uniqueItems"):
        yield SchemaChange("SCH-28", place.path, "uniqueItems: the API server refuses it", SchemaVerdict(api=B))
    elif bool(old.get("uniqueItems")) != bool(new.get("uniqueItems")):
        yield widened("SCH-28", place.path, "items need not be unique any more")


def _nullable(old: Schema, new: Schema, place: NodePlace) -> Iterator[SchemaChange]:
    before, after = bool(old.get("nullable")), bool(new.get("nullable"))
    if before == after:
        return
    if after:
        verdict, facts = SchemaVerdict(readers=D, rollback=D), {"variant": "SCH-36a"}
        yield SchemaChange("SCH-36", place.path, "null is accepted and kept", verdict, facts=facts)
    elif validate({**old, "nullable": True}, None):
        yield harmless("SCH-36", place.path, "null was refused anyway")
    elif place.is_always_there and not place.is_droppable and new.get("default") is None:
        yield narrowed("SCH-36", place.path, "null is refused from now on", counterexample=None)
    else:
        words = "null becomes the default" if new.get("default") is not None else "null is dropped without a word"
        if place.is_droppable and new.get("default") is None:
            words = f"{words}, and the key with it"
        yield SchemaChange("SCH-36", place.path, words, BEHAVIOUR, is_live=True)


def _default(old: Schema, new: Schema, place: NodePlace) -> Iterator[SchemaChange]:
    before, after = old.get("default"), new.get("default")
    if same_json(before, after):
        return
    facts = {"old": before, "new": after}
    if before is None:
        words = f"objects that leave it out read {shown_json(after)} from now on"
        yield SchemaChange("SCH-33", place.path, words, BEHAVIOUR, is_live=True, facts=facts)
    elif after is None:
        verdict = SchemaVerdict(stored=B, writers=B, readers=D) if place.is_always_there else BEHAVIOUR
        words = f"objects that leave it out no longer read {shown_json(before)}"
        yield SchemaChange("SCH-35", place.path, words, verdict, is_live=True, facts=facts)
    else:
        words = f"objects that leave it out read {shown_json(after)} instead of {shown_json(before)}"
        yield SchemaChange("SCH-34", place.path, words, BEHAVIOUR, is_live=True, facts=facts)


def _extensions(old: Schema, new: Schema, place: NodePlace, preserved: tuple[bool, bool]) -> Iterator[SchemaChange]:
    keeps = (old.get(PRESERVE) is True or preserved[0], new.get(PRESERVE) is True or preserved[1])
    if keeps == (True, False) and not preserved[0]:
        is_map = additional_of(new) is not None
        words = "must fit the map's values" if is_map else "are pruned"
        words = f"fields that the schema does not name {words} from now on"
        yield narrowed("SCH-51", place.path, words)
    elif keeps == (False, True) and not preserved[1]:
        words = "fields that the schema does not name are kept"
        yield SchemaChange("SCH-52", place.path, words, SchemaVerdict(readers=D, rollback=D))
    if bool(old.get(EMBEDDED)) != bool(new.get(EMBEDDED)):
        words = "is a Kubernetes resource with apiVersion, kind and metadata"
        now = "now" if new.get(EMBEDDED) else "no longer"
        yield narrowed("SCH-53", place.path, f"{words} {now}")
    yield from compare_topology(old, new, place.path)


def _required(old: Schema, new: Schema, place: NodePlace) -> Iterator[SchemaChange]:
    before, after = set(old.get("required") or ()), set(new.get("required") or ())
    for name in sorted(after - before):
        yield _needed(old, new, name, place)
    for name in sorted(before - after):
        words = f"{name} need not be there any more"
        yield SchemaChange("SCH-12", (*place.path, name), words, replace(READERS_ONLY, rollback=D))


def _needed(old: Schema, new: Schema, name: str, place: NodePlace) -> SchemaChange:
    path = (*place.path, name)
    now = schema_of(properties_of(new).get(name)) or NO_SCHEMA
    if now.get("default") is not None:
        return harmless("SCH-09", path, f"{name} must be there, and its default puts it there")
    rule = "SCH-11" if place.is_element else "SCH-08"
    known = "" if name in properties_of(old) else ", which is a new field"
    return narrowed(rule, path, f"{name} must be there now{known}")
