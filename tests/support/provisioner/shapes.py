"""Schemas and CRDs for these tests, as short as they can be said, and random ones."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

JsonDict = dict[str, Any]
TEXT: JsonDict = {"type": "string"}
WHOLE: JsonDict = {"type": "integer"}


def obj(*needed: str, more: JsonDict | None = None, **fields: JsonDict) -> JsonDict:
    """An object schema with these fields; `more` are further keywords."""
    found: JsonDict = {"type": "object", "properties": fields, **(more or {})}
    return {**found, "required": list(needed)} if needed else found


def listed(items: JsonDict, **more: Any) -> JsonDict:
    return {"type": "array", "items": items, **{name.replace("_", "-"): value for name, value in more.items()}}


def mapped(values: Any, **more: Any) -> JsonDict:
    return {"type": "object", "additionalProperties": values, **more}


def root(spec: JsonDict, **more: JsonDict) -> JsonDict:
    return obj(spec=spec, **more)


def thing(spec: Any) -> JsonDict:
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec}


def version(
    name: str = "v1", schema: JsonDict | None = None, *, served: bool = True, storage: bool = True, **more: Any
) -> JsonDict:
    found: JsonDict = {"name": name, "served": served, "storage": storage, **more}
    return {**found, "schema": {"openAPIV3Schema": schema}} if schema is not None else found


def crd(*versions: JsonDict, spec: JsonDict | None = None, **more: Any) -> JsonDict:
    """The CRD things.example.com; `spec` overrides parts of its spec."""
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    body = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": list(versions)}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {**body, **(spec or {})},
        **more,
    }


def crd_of(spec: JsonDict, **more: Any) -> JsonDict:
    """A CRD with one version whose `spec` has this schema."""
    return crd(version(schema=root(spec), **more))


FIELDS = st.sampled_from("abc")
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 12),
    st.sampled_from([0.5, 2.0, 1e21, "", "a", "abc", "10.0.0.1", "2020-01-02", "é", "a\nb"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(FIELDS, inner, max_size=3)),
    max_leaves=8,
)
TEXTS = st.fixed_dictionaries(
    {"type": st.just("string")},
    optional={
        "minLength": st.integers(0, 2),
        "maxLength": st.integers(0, 4),
        "pattern": st.sampled_from(["a", "^a", "^[a-z]*$", ".*"]),
        "format": st.sampled_from(["ipv4", "date", "email", "nonsense"]),
        "enum": st.lists(st.sampled_from(["", "a", "abc", "10.0.0.1"]), min_size=1, max_size=3, unique=True),
        "nullable": st.booleans(),
        "default": st.sampled_from(["a", "abc"]),
    },
)
NUMBERS = st.fixed_dictionaries(
    {"type": st.sampled_from(["integer", "number"])},
    optional={
        "minimum": st.integers(-2, 4),
        "maximum": st.integers(2, 9),
        "exclusiveMinimum": st.booleans(),
        "exclusiveMaximum": st.booleans(),
        "multipleOf": st.integers(1, 3),
        "format": st.sampled_from(["int32", "int64", "float"]),
        "default": st.integers(2, 4),
    },
)
LEAVES = st.one_of(TEXTS, NUMBERS, st.just({"type": "boolean"}), st.just({"x-kubernetes-int-or-string": True}))


def _nested(inner: st.SearchStrategy[JsonDict]) -> st.SearchStrategy[JsonDict]:
    sizes = {"nullable": st.booleans()}
    lists = st.fixed_dictionaries(
        {"type": st.just("array"), "items": inner},
        optional={
            "minItems": st.integers(0, 2),
            "maxItems": st.integers(0, 3),
            "x-kubernetes-list-type": st.sampled_from(["atomic", "set"]),
            **sizes,
        },
    )
    maps = st.fixed_dictionaries(
        {"type": st.just("object"), "additionalProperties": st.one_of(inner, st.just(True))},
        optional={"maxProperties": st.integers(0, 3), **sizes},
    )
    branch = st.fixed_dictionaries(
        {}, optional={"required": st.lists(FIELDS, max_size=2, unique=True), "maxProperties": st.integers(0, 3)}
    )
    objects = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(FIELDS, inner, max_size=3)},
        optional={
            "required": st.lists(FIELDS, max_size=2, unique=True),
            "x-kubernetes-preserve-unknown-fields": st.just(True),
            "anyOf": st.lists(branch, min_size=1, max_size=2),
            "oneOf": st.lists(branch, min_size=1, max_size=2),
            "allOf": st.lists(branch, min_size=1, max_size=2),
            "not": branch,
            **sizes,
        },
    )
    return st.one_of(lists, maps, objects)


SCHEMAS = st.recursive(LEAVES, _nested, max_leaves=6)
ROOTS = st.builds(root, SCHEMAS)
THINGS = st.builds(thing, VALUES)


def values_of(schema: JsonDict) -> st.SearchStrategy[Any]:
    """Values that have a fair chance to be valid, and some that have none."""
    return st.one_of(_fitting(schema), VALUES)


def _fitting(schema: JsonDict) -> st.SearchStrategy[Any]:
    kind = schema.get("type")
    if schema.get("enum"):
        return st.sampled_from(schema["enum"])
    if kind == "array":
        return st.lists(values_of(schema["items"]), max_size=3)
    if kind == "object":
        known = {name: values_of(it) for name, it in schema.get("properties", {}).items()}
        extra = schema.get("additionalProperties")
        free = st.dictionaries(FIELDS, values_of(extra) if isinstance(extra, dict) else VALUES, max_size=2)
        named = st.fixed_dictionaries({}, optional=known)
        return st.builds(lambda left, right: {**left, **right}, free, named)
    simple: dict[Any, st.SearchStrategy[Any]] = {
        "string": st.sampled_from(["", "a", "abc", "ab", "10.0.0.1", "2020-01-02", "a\nb"]),
        "integer": st.integers(-3, 12),
        "number": st.one_of(st.integers(-3, 12), st.sampled_from([0.5, 2.5])),
        "boolean": st.booleans(),
    }
    return simple.get(kind, SCALARS)


MUTABLE = {"minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "maxProperties"}
SHORTENED = {"enum", "required", "anyOf", "allOf", "oneOf"}
SHAPE = {"type", "items", "properties", "additionalProperties"}


def edited(draw: st.DrawFn, schema: JsonDict) -> JsonDict:
    """The schema with a few edits, so that most of it stays the same."""
    if draw(st.integers(0, 9)) == 0:
        return draw(SCHEMAS)
    found = {name: value for name, value in schema.items() if name in SHAPE or draw(st.integers(0, 4))}
    for name in found.keys() & MUTABLE:
        found[name] = max(0, found[name] + draw(st.integers(-1, 1)))
    for name in found.keys() & SHORTENED:
        found[name] = found[name][: draw(st.integers(1, max(1, len(found[name]))))]
    for name in ("items", "additionalProperties"):
        if isinstance(found.get(name), dict):
            found[name] = edited(draw, found[name])
    if found.get("properties"):
        found["properties"] = {name: edited(draw, it) for name, it in found["properties"].items()}
    if "properties" in found and draw(st.integers(0, 3)) == 0:
        found["properties"] = {**found["properties"], "c": draw(SCHEMAS)}
    return found


RULED = {**TEXT, "x-kubernetes-validations": [{"rule": "self == 'a'", "message": "m"}]}

KEYED = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "maxItems": 5}

SPEC = obj(
    "a",
    a={**RULED, "pattern": "^a", "enum": ["a"], "maxLength": 5},
    l=listed(obj("k", k=TEXT), **KEYED),
    m=mapped({**WHOLE, "minimum": 1, "format": "int32"}),
    o=obj(z=TEXT, more={"oneOf": [{"required": ["z"]}], "not": {"required": ["q"]}, "default": {"z": "1"}}),
)

WHOLE_CRD = crd(
    version("v1beta1", root(obj(a=TEXT)), storage=False), version("v1", root(SPEC)), status={"storedVersions": ["v1"]}
)
