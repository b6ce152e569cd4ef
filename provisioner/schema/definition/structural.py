"""Whether a schema is one the API server takes: structural, complete, and with keywords it supports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from provisioner.json_values import mapping
from provisioner.regexes import BadRegularExpression, compiled
from provisioner.schema.fields import (
    FieldError,
    Schema,
    branches_of,
    child,
    forbidden,
    index,
    invalid,
    key,
    properties_of,
    required,
    schema_of,
    unsupported,
)

ROOT, ITEM, FIELD = "at the root", "for specified array items", "for specified object fields"
JUNCTORS = ("allOf", "anyOf", "oneOf")
INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
TYPES = ("array", "boolean", "integer", "number", "object", "string")
UNSUPPORTED_KEYWORDS = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
EMBEDDED, PRESERVE = "x-kubernetes-embedded-resource", "x-kubernetes-preserve-unknown-fields"
INT_STRING, LIST_TYPE, LIST_KEYS = "x-kubernetes-int-or-string", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"
MAP_TYPE, RULES = "x-kubernetes-map-type", "x-kubernetes-validations"
NESTED_FORBIDDEN = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    PRESERVE: "must be false to be structural",
    EMBEDDED: "must be false to be structural",
    INT_STRING: "must be false to be structural",
    LIST_KEYS: "must be empty to be structural",
    LIST_TYPE: "must be undefined to be structural",
    MAP_TYPE: "must be undefined to be structural",
    RULES: "must be empty to be structural",
}


def structural_errors(schema: Schema, path: str) -> list[FieldError]:
    """Why `schema` is not structural, sorted by message; empty if it is."""
    found = [*_invariants(schema, ROOT, path), *_completeness(schema, schema, path, path)]
    return sorted(set(found), key=str)


def _invariants(schema: Schema, level: str, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    items = schema_of(schema.get("items"))
    if schema.get("type") == "array" and items is None and not isinstance(schema.get("items"), list):
        found.append(required(child(path, "items"), "must be specified"))
    if items is not None:
        found += _invariants(items, ITEM, child(path, "items"))
    for name, described in properties_of(schema).items():
        if isinstance(described, Mapping):
            found += _invariants(described, FIELD, key(child(path, "properties"), name))
    additional = schema.get("additionalProperties")
    if additional is not None and level == ROOT:
        found.append(forbidden(child(path, "additionalProperties"), "must not be used at the root"))
    if isinstance(additional, Mapping):
        found += _invariants(additional, FIELD, child(path, "additionalProperties"))
    found += _value_validation(schema, path, is_int_or_string=True)
    return found + _type_errors(schema, level, path) + _resource_errors(schema, level, path)


def _type_errors(schema: Schema, level: str, path: str) -> list[FieldError]:
    at, kind = child(path, "type"), schema.get("type") or ""
    found: list[FieldError] = []
    is_untyped = not kind and not schema.get(INT_STRING) and not schema.get(PRESERVE)
    if schema.get(EMBEDDED) and kind != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        found.append(invalid(at, kind, detail) if kind else required(at, detail))
    elif is_untyped:
        found.append(required(at, f"must not be empty {level}"))
    if level == ROOT and kind and kind != "object":
        found.append(invalid(at, kind, "must be object at the root"))
    clashing = [name for name in (PRESERVE, EMBEDDED) if schema.get(INT_STRING) and schema.get(name)]
    detail = "must be false if x-kubernetes-int-or-string is true"
    return found + [invalid(child(path, name), True, detail) for name in clashing]


def _resource_errors(schema: Schema, level: str, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    is_resource = level == ROOT or bool(schema.get(EMBEDDED))
    known, at = properties_of(schema), child(path, "properties")
    for name, wanted in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
        described = schema_of(known.get(name))
        if described is not None and is_resource and described.get("type") != wanted:
            found.append(invalid(child(key(at, name), "type"), described.get("type") or "", f"must be {wanted}"))
    metadata = schema_of(known.get("metadata"))
    rest = {name for name, value in (metadata or {}).items() if value} - {"type", "properties", "default"}
    if level == ROOT and metadata is not None and (rest or properties_of(metadata).keys() - {"name", "generateName"}):
        detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        found.append(forbidden(key(at, "metadata"), detail))
    if schema.get(EMBEDDED):
        if schema.get("additionalProperties") is not None:
            detail = "must not be used if x-kubernetes-embedded-resource is set"
            found.append(forbidden(child(path, "additionalProperties"), detail))
        if not schema.get(PRESERVE) and not known:
            detail = f"must not be empty if {EMBEDDED} is true without {PRESERVE}"
            found.append(required(at, detail))
    return found


def _value_validation(schema: Schema, path: str, *, is_int_or_string: bool = False) -> list[FieldError]:
    """What junctors and patterns may not say. The idiom of int-or-string may name types, at one place."""
    found: list[FieldError] = []
    skips_any_of = is_int_or_string and _is_idiom(schema.get("anyOf"))
    for junctor in ("anyOf", "allOf", "oneOf"):
        for place, branch in enumerate(branches_of(schema, junctor)):
            at = index(child(path, junctor), place)
            skips_first = is_int_or_string and junctor == "allOf" and place == 0 and _is_idiom(branch.get("anyOf"))
            if junctor != "anyOf" or not skips_any_of:
                found += _nested(branch, at, skips_any_of=skips_first)
    negated = schema_of(schema.get("not"))
    if negated is not None:
        found += _nested(negated, child(path, "not"))
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and pattern:
        try:
            compiled(pattern)
        except BadRegularExpression as exc:
            detail = f"must be a valid regular expression, but isn't: {exc}"
            found.append(invalid(child(path, "pattern"), pattern, detail))
    return found


def _is_idiom(branches: Any) -> bool:
    """Whether these are the two types of int-or-string, and nothing else is said."""
    said = []
    for branch in branches if isinstance(branches, list) else ():
        entries = ((name, it) for name, it in mapping(branch).items() if it is not None and it is not False)
        # Of what may be empty, texts, enums and junctors that are say nothing.
        said.append({name: it for name, it in entries if it != "" and (it != [] or name not in ("enum", *JUNCTORS))})
    return said == INT_OR_STRING


def _nested(branch: Schema, path: str, *, skips_any_of: bool = False) -> list[FieldError]:
    """What may not stand inside a junctor: everything that says what fields there are."""
    judged = {name: value for name, value in branch.items() if not (skips_any_of and name == "anyOf")}
    found = _value_validation(judged, path)
    items = schema_of(branch.get("items"))
    if items is not None:
        found += _nested(items, child(path, "items"))
    for name, described in properties_of(branch).items():
        if isinstance(described, Mapping):
            found += _nested(described, key(child(path, "properties"), name))
    for name, detail in NESTED_FORBIDDEN.items():
        value = branch.get(name)
        is_said = isinstance(value, Mapping) if name == "additionalProperties" else value is not None
        if value or (is_said and name in ("additionalProperties", "default")):
            found.append(forbidden(child(path, name), detail))
    if "metadata" in properties_of(branch):
        found.append(forbidden(key(child(path, "properties"), "metadata"), "must not be specified in a nested context"))
    return found


def _completeness(branch: Schema, schema: Schema | None, path: str, at: str) -> list[FieldError]:
    """Fields that only junctors speak of. The API server looks at the junctors of the root alone, and so does this."""
    found: list[FieldError] = []
    negated = schema_of(branch.get("not"))
    nested = [(negated, child(at, "not"))] if negated is not None else []
    for junctor in JUNCTORS:
        nested += [(it, index(child(at, junctor), place)) for place, it in enumerate(branches_of(branch, junctor))]
    for below, place in nested:
        found += _nested_completeness(below, schema, path, place)
    return found


def _nested_completeness(branch: Schema, schema: Schema | None, path: str, at: str) -> list[FieldError]:
    if schema is None:
        return [required(path, f"because it is defined in {at}")]
    found = _completeness(branch, schema, path, at)
    items = schema_of(branch.get("items"))
    if items is not None:
        found += _nested_completeness(items, schema_of(schema.get("items")), child(path, "items"), child(at, "items"))
    for name, described in properties_of(branch).items():
        place, origin = key(child(path, "properties"), name), key(child(at, "properties"), name)
        if isinstance(described, Mapping):
            found += _nested_completeness(described, schema_of(properties_of(schema).get(name)), place, origin)
    return found


@dataclass(frozen=True, slots=True)
class KeywordRules:
    """Which checks apply. On an update those that the old CRD already failed are off."""

    needs_valid_types: bool = True
    needs_atomic_sets: bool = True
    needs_sound_keys: bool = True
    no_defaults_because: str = ""
    is_inside_meta: bool = False


def keyword_errors(schema: Schema, path: str, rules: KeywordRules) -> list[FieldError]:
    """What the API server does not take in a schema, structural or not, at any depth."""
    return _keywords(schema, path, rules, is_root=True)


def _keywords(schema: Schema, path: str, rules: KeywordRules, *, is_root: bool) -> list[FieldError]:
    found = [*_unsupported(schema, path, rules), *_list_and_map_types(schema, path, rules)]
    for below, at, below_rules in _below(schema, path, rules, is_root):
        found += _keywords(below, at, below_rules, is_root=False)
    if rules.needs_sound_keys:
        found += list_key_errors(schema, path)
    return found


def _below(schema: Schema, path: str, rules: KeywordRules, is_root: bool) -> list[tuple[Schema, str, KeywordRules]]:
    found: list[tuple[Any, str, KeywordRules]] = []
    inner = rules
    if rules.is_inside_meta:
        inner = replace(rules, no_defaults_because="inside additionalProperties applying to object metadata")
    found.append((schema.get("additionalProperties"), child(path, "additionalProperties"), inner))
    is_resource = is_root or bool(schema.get(EMBEDDED))
    for name, described in properties_of(schema).items():
        below_rules = rules
        if is_resource and name in ("metadata", "kind", "apiVersion"):
            reason = f"in top-level {name}" if is_root else rules.no_defaults_because
            below_rules = replace(rules, is_inside_meta=True, no_defaults_because=reason)
        found.append((described, key(child(path, "properties"), name), below_rules))
    found.append((schema.get("not"), child(path, "not"), rules))
    for junctor in JUNCTORS:
        found += [(it, index(child(path, junctor), at), rules) for at, it in enumerate(branches_of(schema, junctor))]
    found.append((schema.get("items"), child(path, "items"), rules))
    return [(below, at, below_rules) for below, at, below_rules in found if isinstance(below, Mapping)]


def _unsupported(schema: Schema, path: str, rules: KeywordRules) -> list[FieldError]:
    kind = schema.get("type")
    where = child(path, "type")
    is_known = not kind or kind in TYPES or not rules.needs_valid_types
    found = [] if is_known else [unsupported(where, kind, TYPES)]
    if kind == "null":
        found.append(forbidden(where, "type cannot be set to null, use nullable as an alternative"))
    if schema.get("default") is not None and rules.no_defaults_because:
        found.append(forbidden(child(path, "default"), f"must not be set {rules.no_defaults_because}"))
    found += [forbidden(child(path, it), f"{it} is not supported") for it in UNSUPPORTED_KEYWORDS if schema.get(it)]
    if isinstance(schema.get("items"), list):
        found.append(forbidden(child(path, "items"), "items must be a schema object and not an array"))
    if rules.is_inside_meta and schema.get(EMBEDDED):
        found.append(forbidden(child(path, EMBEDDED), "must not be used inside of resource meta"))
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        found.append(forbidden(child(path, "uniqueItems"), detail))
    additional = schema.get("additionalProperties")
    if properties_of(schema) and additional is not None and additional is not True:
        detail = "additionalProperties and properties are mutual exclusive"
        found.append(forbidden(child(path, "additionalProperties"), detail))
    if schema.get(PRESERVE) is False:
        found.append(invalid(child(path, PRESERVE), False, "must be true or undefined"))
    return found


def _list_and_map_types(schema: Schema, path: str, rules: KeywordRules) -> list[FieldError]:
    found: list[FieldError] = []
    for name, wanted, known in (
        (MAP_TYPE, "object", ("atomic", "granular")),
        (LIST_TYPE, "array", ("atomic", "set", "map")),
    ):
        value, kind = schema.get(name), schema.get("type") or ""
        if value is None:
            continue
        if kind != wanted:
            detail = f"must be {wanted} if {name} is specified"
            found.append(invalid(child(path, "type"), kind, detail) if kind else required(child(path, "type"), detail))
        if value not in known:
            found.append(unsupported(child(path, name), value, known))
    if rules.needs_atomic_sets and schema.get("type") == "array":
        found += set_item_errors(schema, path)
    return found + _list_keys(schema, path)


def set_item_errors(schema: Schema, path: str) -> list[FieldError]:
    """Items of a set must be compared whole."""
    items = schema_of(schema.get("items"))
    if schema.get(LIST_TYPE) != "set" or items is None:
        return []
    detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
    if items.get("type") == "array" and items.get(LIST_TYPE) not in (None, "atomic"):
        return [invalid(child(child(path, "items"), LIST_TYPE), items.get(LIST_TYPE), detail)]
    if items.get("type") == "object" and items.get(MAP_TYPE) != "atomic":
        return [invalid(child(child(path, "items"), MAP_TYPE), items.get(LIST_TYPE), detail)]
    return []


def _list_keys(schema: Schema, path: str) -> list[FieldError]:
    keys, list_type = schema.get(LIST_KEYS) or [], schema.get(LIST_TYPE)
    found: list[FieldError] = []
    if keys and list_type != "map":
        detail, at = f"must be map if {LIST_KEYS} is non-empty", child(path, LIST_TYPE)
        found.append(invalid(at, list_type, detail) if list_type else required(at, detail))
    if list_type != "map":
        return found
    if not keys:
        found.append(required(child(path, LIST_KEYS), "must not be empty if x-kubernetes-list-type is map"))
    items = schema_of(schema.get("items"))
    if items is None:
        found.append(required(child(path, "items"), "must have a schema if x-kubernetes-list-type is map"))
        return found
    if items.get("type") != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        return [*found, invalid(child(child(path, "items"), "type"), items.get("type") or "", detail)]
    return found + _key_names(items, keys, path)


def _key_names(items: Schema, keys: list[str], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    at = child(path, "items")
    for place, name in enumerate(keys):
        described = schema_of(properties_of(items).get(name))
        if described is None:
            found.append(invalid(child(path, LIST_KEYS), keys, "entries must all be names of item properties"))
        elif described.get("type") in ("array", "object"):
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            found.append(invalid(child(key(child(at, "properties"), name), "type"), "object", detail))
        if name in keys[:place]:
            found.append(invalid(child(path, LIST_KEYS), keys, "must not contain duplicate entries"))
    return found


def list_key_errors(schema: Schema, path: str) -> list[FieldError]:
    """Items of sets and maps may not be null, and the keys of a map must always be there."""
    items, list_type = schema_of(schema.get("items")), schema.get(LIST_TYPE)
    if items is None or list_type not in ("set", "map"):
        return []
    found: list[FieldError] = []
    at = child(path, "items")
    if items.get("nullable"):
        found.append(forbidden(child(at, "nullable"), f"cannot be nullable when x-kubernetes-list-type is {list_type}"))
    for name in (schema.get(LIST_KEYS) or []) if list_type == "map" else []:
        described, place = schema_of(properties_of(items).get(name)), key(child(at, "properties"), str(name))
        if described is None:
            continue
        if name not in (items.get("required") or ()) and described.get("default") is None:
            detail = f"this property is in {LIST_KEYS}, so it must have a default or be a required property"
            found.append(required(child(place, "default"), detail))
        if described.get("nullable"):
            detail = f"this property is in {LIST_KEYS}, so it cannot be nullable"
            found.append(forbidden(child(place, "nullable"), detail))
    return found
