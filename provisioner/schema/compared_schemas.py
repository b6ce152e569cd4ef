"""Two schemas compared by what they accept, node by node, each change once and at the place where it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from provisioner.schema.compared_defaults import reordered_defaults
from provisioner.schema.compared_keywords import EMBEDDED, PRESERVE, compare_keywords
from provisioner.schema.compared_lists import compare_topology
from provisioner.schema.compared_rules import DOCS, RULES, compare_junctors, compare_rules, mindful_of_rules
from provisioner.schema.counterexamples import exemplified
from provisioner.schema.deciding import taken_together
from provisioner.schema.facets import compare_scalars
from provisioner.schema.fields import go_json, is_same, same_json
from provisioner.schema.nodes import (
    Place,
    additional_of,
    count,
    hoisted,
    may_hold_objects,
    plain_node,
    type_words,
    types,
    with_integers,
)
from provisioner.schema.pruning import NO_SCHEMA, TYPE_META, Schema, copied, properties_of, schema_of
from provisioner.schema.validating import validate
from provisioner.schema.verdicts import (
    BEHAVIOUR,
    DATA_LOST,
    ITEMS,
    READERS_ONLY,
    VALUES,
    WIDENED,
    B,
    Change,
    D,
    Path,
    Verdict,
    few,
    harmless,
    narrowed,
    shown,
    widened,
)

CHILDREN = frozenset({"properties", "items", "additionalProperties"})
MANY_PATHS, FEW_PATHS = 20, 6
MANY_SIBLINGS = 5  # from so many on, fields removed from one node are one finding


def compare_schemas(
    old: Schema | None, new: Schema | None, *, preserved: tuple[bool, bool] = (False, False)
) -> list[Change]:
    """The changes from `old` to `new`, two schemas of one version; None is a version without a schema.

    `preserved` says whether the old and the new CRD keep unknown fields everywhere (preserveUnknownFields).
    """
    if old is None or new is None:
        return _without_schema(old, new, preserved)
    walk = _Walk(preserved)
    walk.pair(old, new, Place())
    if not walk.changes and is_same(old, new):
        return reordered_defaults(old, new)
    found = walk.changes + walk.typed_fields() + walk.documentation()
    return exemplified(found, old, new, preserved)


def _without_schema(old: Schema | None, new: Schema | None, preserved: tuple[bool, bool]) -> list[Change]:
    if old is None and new is None:
        return []
    if new is None:
        words = "the schema is removed: nothing is validated"
        if preserved[1]:
            return [widened("SCH-52", (), words)]
        return [Change("SCH-01", (), f"{words}, and every field is pruned", DATA_LOST, is_live=True)]
    words = "a schema is added where there was none: values are validated and unknown fields pruned"
    return [narrowed("SCH-51", (), words)]


def _is_reworded(old: Schema, new: Schema) -> bool:
    """Whether two nodes with nothing below them differ in their documentation only: most of a large CRD do."""
    if type(old) is not dict or "type" not in old or not CHILDREN.isdisjoint(old):
        return False
    changed = {name for name, was in old.items() if not is_same(new.get(name), was)}
    if old.keys() != new.keys():
        changed |= {name for name, now in new.items() if name not in old and now is not None}
    return bool(changed) and changed <= DOCS


@dataclass(slots=True)
class _Walk:
    preserved: tuple[bool, bool]
    changes: list[Change] = field(default_factory=list)
    reworded: list[Path] = field(default_factory=list)
    typed: list[Path] = field(default_factory=list)

    def typed_fields(self) -> list[Change]:
        """All fields added to a schema that kept unknown fields everywhere, in one finding."""
        if not self.typed:
            return []
        paths = [shown(path) for path in self.typed]
        holding = "what objects hold under those names already is typed now"
        words = f"{len(paths)} fields added ({few(paths, FEW_PATHS)}); {holding}"
        path: Path = ()
        if len(paths) == 1:
            path = self.typed[0]
            words = f"field {paths[0]} added; what objects hold under that name already is typed now"
        return [narrowed("SCH-07", path, words, count=len(paths), paths=paths[:MANY_PATHS])]

    def documentation(self) -> list[Change]:
        """All changed descriptions, titles and examples in one finding."""
        if not self.reworded:
            return []
        count, first = len(self.reworded), self.reworded[0]
        words = f"descriptions changed at {count} places" if count > 1 else f"description of {shown(first)} changed"
        return [harmless("SCH-37", first if count == 1 else (), words, count=count)]

    def pair(self, old: Schema, new: Schema, place: Place) -> None:
        """Compare two nodes as they are written; what is the same on both sides is not looked into."""
        if not is_same(old, new):
            self._different(old, new, place)

    def _different(self, old: Schema, new: Schema, place: Place) -> None:
        if not is_same(old.get("allOf"), new.get("allOf")):
            old, new = hoisted(old), hoisted(new)
        before, after = plain_node(old), plain_node(new)
        if (before is old) != (after is new) and types(before) == types(after):
            self.changes.append(harmless("SCH-54", place.path, "integer or string, written in the other way"))
        self.compare(before, after, place)

    def compare(self, old: Schema, new: Schema, place: Place) -> None:
        changed = {name for name, was in old.items() if name not in CHILDREN and not is_same(new.get(name), was)}
        if old.keys() != new.keys():
            changed |= {name for name in new if name not in old and name not in CHILDREN and new[name] is not None}
        if not changed.isdisjoint(DOCS):
            self.reworded.append(place.path)
        if place.path == ("metadata",):
            self._metadata(old, new, place)
            return
        if not changed <= DOCS or "type" not in old:
            before, after, known = types(old), types(new), len(self.changes)
            if before != after and not self._types(before, after, old, new, place):
                return
            self._own(old, new, place)
            together = taken_together(self.changes[known:], old, new, keeps_unknown=self.preserved[0])
            self.changes[known:] = mindful_of_rules(together, old)
        self._below(old, new, place)

    def _own(self, old: Schema, new: Schema, place: Place) -> None:
        """What the node says of its own value."""
        self.changes += compare_scalars(old, new, place.path)
        self._values(old, new, place)
        self._extensions(old, new, place)
        self._required(old, new, place)
        self.changes += compare_keywords(old, new, place.path)

    def _metadata(self, old: Schema, new: Schema, place: Place) -> None:
        """The API server takes restrictions of name and generateName only; a removed one lifts a limit."""
        gone = [name for name in properties_of(old) if name not in properties_of(new)]
        for name in gone:
            words = f"restriction of {shown(place.path)}.{name} removed"
            self.changes.append(harmless("SCH-04", (*place.path, name), words))
        rest = {name: it for name, it in properties_of(old).items() if name in properties_of(new)}
        for name, described in properties_of(new).items():
            before, after = schema_of(rest.get(name)) or NO_SCHEMA, schema_of(described) or NO_SCHEMA
            self.changes += compare_scalars(
                {"type": "string", **before}, {"type": "string", **after}, (*place.path, name)
            )

    def _types(self, before: frozenset[str], after: frozenset[str], old: Schema, new: Schema, place: Place) -> bool:
        """Say what the change of type is; False where nothing below can be compared any more."""
        words = f"type {type_words(before)} before, {type_words(after)} now"
        if not after:
            self.changes.append(self._undescribed("SCH-18", new.get(PRESERVE) is True, place.path, words))
            return False
        if before and before <= with_integers(after):
            rule = "SCH-16" if "string" in after and len(after) > 1 else "SCH-14"
            self.changes.append(widened(rule, place.path, words, for_readers=True))
            return True
        rule = "SCH-13"
        if before == {"number"} and after == {"integer"}:
            rule = "SCH-15"
        elif after < before and before:
            rule = "SCH-17"
        self.changes.append(narrowed(rule, place.path, words, old=type_words(before), new=type_words(after)))
        return rule != "SCH-13"

    def _undescribed(self, rule: str, is_kept: bool, path: Path, words: str) -> Change:
        """A value that the new schema does not describe: accepted as it is, but objects in it lose all their fields."""
        if is_kept or self.preserved[1]:
            return widened(rule, path, f"{words}: anything is accepted and kept", for_readers=True)
        return Change(
            "SCH-01", path, f"{words}: anything is accepted, and objects are emptied", DATA_LOST, is_live=True
        )

    def _values(self, old: Schema, new: Schema, place: Place) -> None:
        self.changes += compare_junctors(old, new, place.path, keeps_unknown=self.preserved[0])
        signature_changed = types(old) != types(new)
        if not signature_changed or old.get(RULES) != new.get(RULES):
            self.changes += compare_rules(old, new, place.path, keeps_unknown=self.preserved[0])
        self._nullable(old, new, place)
        self._default(old, new, place)
        if bool(new.get("uniqueItems")) and not old.get("uniqueItems"):
            self.changes.append(Change("SCH-28", place.path, "uniqueItems: the API server refuses it", Verdict(api=B)))
        elif bool(old.get("uniqueItems")) != bool(new.get("uniqueItems")):
            self.changes.append(widened("SCH-28", place.path, "items need not be unique any more"))

    def _nullable(self, old: Schema, new: Schema, place: Place) -> None:
        before, after = bool(old.get("nullable")), bool(new.get("nullable"))
        if before == after:
            return
        if after:
            verdict, facts = Verdict(readers=D, rollback=D), {"variant": "SCH-36a"}
            self.changes.append(Change("SCH-36", place.path, "null is accepted and kept", verdict, facts=facts))
        elif validate({**old, "nullable": True}, None):
            self.changes.append(harmless("SCH-36", place.path, "null was refused anyway"))
        elif place.is_always_there and new.get("default") is None:
            self.changes.append(narrowed("SCH-36", place.path, "null is not accepted any more", counterexample=None))
        else:
            words = "null becomes the default" if new.get("default") is not None else "null is dropped"
            self.changes.append(Change("SCH-36", place.path, words, BEHAVIOUR, is_live=True))

    def _default(self, old: Schema, new: Schema, place: Place) -> None:
        before, after = old.get("default"), new.get("default")
        if same_json(copied(before), copied(after)):
            return
        facts = {"old": before, "new": after}
        if before is None:
            words = f"objects that leave it out read {go_json(after)} from now on"
            self.changes.append(Change("SCH-33", place.path, words, BEHAVIOUR, is_live=True, facts=facts))
        elif after is None:
            verdict = Verdict(stored=B, writers=B, readers=D) if place.is_always_there else BEHAVIOUR
            words = f"objects that leave it out no longer read {go_json(before)}"
            self.changes.append(Change("SCH-35", place.path, words, verdict, is_live=True, facts=facts))
        else:
            words = f"objects that leave it out read {go_json(after)} instead of {go_json(before)}"
            self.changes.append(Change("SCH-34", place.path, words, BEHAVIOUR, is_live=True, facts=facts))

    def _extensions(self, old: Schema, new: Schema, place: Place) -> None:
        keeps = (old.get(PRESERVE) is True or self.preserved[0], new.get(PRESERVE) is True or self.preserved[1])
        if keeps == (True, False) and not self.preserved[0]:
            is_map = additional_of(new) is not None
            words = "must fit the map's values" if is_map else "are pruned"
            words = f"fields that the schema does not name {words} from now on"
            self.changes.append(narrowed("SCH-51", place.path, words))
        elif keeps == (False, True) and not self.preserved[1]:
            words = "fields that the schema does not name are kept"
            self.changes.append(Change("SCH-52", place.path, words, Verdict(readers=D, rollback=D)))
        if bool(old.get(EMBEDDED)) != bool(new.get(EMBEDDED)):
            words = "is a Kubernetes resource with apiVersion, kind and metadata"
            now = "now" if new.get(EMBEDDED) else "no longer"
            self.changes.append(narrowed("SCH-53", place.path, f"{words} {now}"))
        self.changes += compare_topology(old, new, place.path)

    def _below(self, old: Schema, new: Schema, place: Place) -> None:
        if CHILDREN.isdisjoint(old) and CHILDREN.isdisjoint(new):
            return
        items = schema_of(old.get("items")), schema_of(new.get("items"))
        if items[0] is not None and items[1] is not None:
            inner = place.below(ITEMS, is_element=True, is_always_there=True)
            self.pair(items[0], items[1], inner)
        elif items[0] is not None:
            words = "nothing is said of the items any more"
            self.changes.append(self._undescribed("SCH-18", new.get(PRESERVE) is True, (*place.path, ITEMS), words))
        elif items[1] is not None:
            self.changes.append(narrowed("SCH-13", (*place.path, ITEMS), "the items are restricted now"))
        self._additional(old, new, place)
        self._fields(old, new, place)

    def _additional(self, old: Schema, new: Schema, place: Place) -> None:
        before, after = additional_of(old), additional_of(new)
        if before is None and after is None:
            return
        inner = place.below(VALUES, is_element=True, is_always_there=True)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            self.pair(before, after, inner)
        elif before == after:
            return
        elif before is None:
            self._opened(old, new, place)
        elif after is None:
            self._closed(before, new, place)
        elif isinstance(after, Mapping) or after is False:
            self.changes.append(narrowed("SCH-13", inner.path, "the values of the map are restricted now"))
        elif isinstance(before, Mapping) and may_hold_objects(before):
            words = "the values of the map may be anything, and objects among them are emptied"
            self.changes.append(Change("SCH-01", inner.path, words, DATA_LOST, is_live=True))
        else:
            self.changes.append(
                widened("SCH-18", inner.path, "the values of the map may be anything", for_readers=True)
            )

    def _opened(self, old: Schema, new: Schema, place: Place) -> None:
        """A map where there were none or only named fields; a schema that kept all keys is said to no longer do so."""
        named, after = properties_of(old), additional_of(new)
        if not named:
            if old.get(PRESERVE) is True and new.get(PRESERVE) is not True:
                return
            keeps = old.get(PRESERVE) is True or (self.preserved[0] and not _takes_anything(after))
            change = narrowed if keeps else widened
            rule = "SCH-07" if keeps else "SCH-52"
            self.changes.append(change(rule, (*place.path, VALUES), "any key is a field now"))
            return
        walk = _Walk(self.preserved)
        for name, described in named.items():
            if isinstance(after, Mapping) and isinstance(described, Mapping):
                walk.pair(described, after, place.below(name))
        is_harder = any(it.verdict.severity.is_at_least(B) for it in walk.changes)
        words = "named fields became a map"
        verdict = Verdict(stored=B, writers=B) if is_harder else Verdict(stored=D, writers=D)
        self.changes.append(Change("SCH-19", place.path, words, verdict, is_live=is_harder))

    def _closed(self, before: Any, new: Schema, place: Place) -> None:
        """A map that is none any more: keys without a field of their own are pruned."""
        if before is True and new.get(PRESERVE) is True:
            return  # said of the node: more is kept than before
        if new.get(PRESERVE) is True or self.preserved[1]:
            words = "the map's values are no longer described, but kept"
            self.changes.append(Change("SCH-02", (*place.path, VALUES), words, Verdict(stored=D, writers=D)))
            return
        rule = "SCH-19" if properties_of(new) else "SCH-01"
        words = (
            "a map became named fields: other keys are pruned" if rule == "SCH-19" else "the map's values are pruned"
        )
        facts = {"below": count(before)} if isinstance(before, Mapping) else {}
        self.changes.append(Change(rule, (*place.path, VALUES), words, DATA_LOST, is_live=True, facts=facts))

    def _fields(self, old: Schema, new: Schema, place: Place) -> None:
        before, after = properties_of(old), properties_of(new)
        needed = set(new.get("required") or ())
        for name, described in before.items():
            now = schema_of(after.get(name))
            if now is None or is_same(described, now):
                continue
            if _is_reworded(described, now) and (place.path or name != "metadata"):
                self.reworded.append((*place.path, name))
            else:
                inner = place.below(name, is_always_there=name in needed and now.get("default") is None)
                self._different(schema_of(described) or NO_SCHEMA, now, inner)
        if before.keys() != after.keys() or not all(type(it) is dict for it in after.values()):
            self._come_and_gone(old, new, place)

    def _come_and_gone(self, old: Schema, new: Schema, place: Place) -> None:
        before, after, needed = properties_of(old), properties_of(new), set(new.get("required") or ())
        if not place.path or (old.get(EMBEDDED) is True and new.get(EMBEDDED) is True):
            self._type_meta(before, after, place)
            before, after = (
                {name: it for name, it in side.items() if name not in TYPE_META} for side in (before, after)
            )
        if additional_of(new) is None:
            gone = {name: it for name, it in before.items() if schema_of(after.get(name)) is None}
            self._all_removed(gone, new, place)
        if additional_of(old) is None:
            for name, described in after.items():
                if name not in before:
                    self._added(schema_of(described) or NO_SCHEMA, old, name, (place, name in needed))

    def _type_meta(self, before: Mapping[str, Any], after: Mapping[str, Any], place: Place) -> None:
        """What one of two schemas says of apiVersion, kind and metadata: a resource has them all the same."""
        for name in sorted(TYPE_META & (before.keys() ^ after.keys())):
            old, new = (schema_of(side.get(name)) or NO_SCHEMA for side in (before, after))
            inner = place.below(name)
            if name == "metadata":
                self._metadata(old, new, inner)
            else:
                self.changes += compare_scalars({"type": "string", **old}, {"type": "string", **new}, inner.path)

    def _all_removed(self, gone: Mapping[str, Schema], new: Schema, place: Place) -> None:
        if len(gone) >= MANY_SIBLINGS:
            self.changes.append(self._emptied(gone, new, place))
            return
        for name, was in gone.items():
            self.changes.append(self._removed(schema_of(was) or NO_SCHEMA, new, place.below(name)))

    def _emptied(self, before: Mapping[str, Schema], new: Schema, place: Place) -> Change:
        """Many fields of a node removed, as the one change that it is."""
        change = self._removed({"properties": before}, new, place)
        words = f"{len(before)} fields of {shown(place.path)} removed: {few(sorted(before), MANY_PATHS)}"
        return replace(change, message=words, facts={**change.facts, "fields": sorted(before)[:MANY_PATHS]})

    def _removed(self, was: Schema, parent: Schema, place: Place) -> Change:
        below = count(was)
        words = f"field {shown(place.path)} removed" + (f" ({below} below it)" if below else "")
        facts = {"below": below}
        if parent.get(PRESERVE) is True or self.preserved[1]:
            verdict = Verdict(stored=D, writers=D, readers=D)
            return Change("SCH-02", place.path, f"{words}; its values are kept, but not checked", verdict, facts=facts)
        if place.is_in_status:
            return Change("SCH-03", place.path, words, Verdict(stored=D, readers=D, rollback=D), facts=facts)
        return Change("SCH-01", place.path, words, DATA_LOST, is_live=True, facts=facts)

    def _added(self, now: Schema, parent: Schema, name: str, where: tuple[Place, bool]) -> None:
        place, is_needed = where
        inner, below = place.below(name), count(now)
        words = f"field {shown(inner.path)} added" + (f" ({below} below it)" if below else "")
        if self.preserved[0]:
            self.typed.append(inner.path)
        elif parent.get(PRESERVE) is True:
            words = f"{words}; what objects hold under that name already is typed now"
            self.changes.append(narrowed("SCH-07", inner.path, words))
        elif now.get("default") is None:
            self.changes.append(Change("SCH-05", inner.path, words, WIDENED))
            if now.get("required") and not is_needed:
                words = f"what {shown(inner.path)} requires concerns only objects that use it"
                self.changes.append(harmless("SCH-10", inner.path, words))
        elif not is_needed:
            words = f"{words}; all objects read {go_json(now['default'])}"
            self.changes.append(Change("SCH-06", inner.path, words, BEHAVIOUR, facts={"new": now["default"]}))

    def _required(self, old: Schema, new: Schema, place: Place) -> None:
        before, after = set(old.get("required") or ()), set(new.get("required") or ())
        for name in sorted(after - before):
            self.changes.append(_needed(old, new, name, place))
        for name in sorted(before - after):
            words = f"{name} need not be there any more"
            self.changes.append(Change("SCH-12", (*place.path, name), words, replace(READERS_ONLY, rollback=D)))


def _takes_anything(values: object) -> bool:
    """Whether the values of a map may be of any type and hold anything."""
    return not isinstance(values, Mapping) or values.keys() <= DOCS | {PRESERVE, "nullable"}


def _needed(old: Schema, new: Schema, name: str, place: Place) -> Change:
    path = (*place.path, name)
    now = schema_of(properties_of(new).get(name)) or NO_SCHEMA
    if now.get("default") is not None:
        return harmless("SCH-09", path, f"{name} must be there, and its default puts it there")
    rule = "SCH-11" if place.is_element else "SCH-08"
    known = "" if name in properties_of(old) else ", which is a new field"
    return narrowed(rule, path, f"{name} must be there now{known}")
