"""Whether a CRD has the form of one: JSON of the types that the API server reads. What has not, it refuses unread."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from provisioner.errors import InvalidManifest
from provisioner.schema.fields import DEEPEST, INT64_MAX, FieldError, Schema, child, index, invalid, is_too_deep, key
from provisioner.values import JsonObject, object_in

FLAT = 20  # how deep the parts of a CRD are that are not schemas
Errors = Iterator[FieldError]
Form = Callable[[Any, str], Errors]


def form_errors(crd: JsonObject) -> list[FieldError]:
    """Where a CRD, nested no deeper than anything here follows, holds a value of another type than there may be."""
    return list(_CRD(crd, ""))


def readable(schema: Schema, name: str = "the schema") -> Schema:
    """`schema` if it has the form of one. Raises InvalidManifest, which calls it `name`, if it has not."""
    if type(schema) is dict and _is_plain_schema(schema, 0):
        return schema
    object_in(schema, name)
    if is_too_deep(schema):
        raise InvalidManifest(f"{name}: nested deeper than {DEEPEST} levels")
    error = next(_schema(schema, ""), None)
    if error is not None:
        raise InvalidManifest(f"{name}: {error}")
    return schema


def is_crd(crd: JsonObject) -> bool:
    """Whether a CRD is nested no deeper than anything here follows and has no `form_errors`."""
    return is_plain(crd) or not (is_too_deep(crd) or form_errors(crd))


def is_plain(crd: JsonObject) -> bool:
    """A quick yes for a CRD that is nested no deeper than anything here follows and has no `form_errors`.

    A no says nothing: it takes the slow look to know.
    """
    spec = crd.get("spec")
    if not isinstance(spec, dict) or "validation" in spec:
        return False
    versions = spec.get("versions")
    if not isinstance(versions, list) or not all(isinstance(it, dict) for it in versions):
        return False
    holders = [version["schema"] for version in versions if version.get("schema") is not None]
    if not all(isinstance(it, dict) and it.keys() == {"openAPIV3Schema"} for it in holders):
        return False
    rest = {**crd, "spec": {**spec, "versions": [{**it, "schema": None} for it in versions]}}
    schemas = [holder["openAPIV3Schema"] for holder in holders]
    return _is_flat(_CRD, rest) and all(type(schema) is dict and _is_plain_schema(schema, FLAT) for schema in schemas)


def _is_plain_schema(schema: dict[str, Any], depth: int) -> bool:
    """`depth`: how deep the schema stands; a level of schemas is counted as two of JSON."""
    level, kind_of = [schema], _SIMPLE.get
    while level:
        if depth > DEEPEST - FLAT or {*map(type, level)} != {dict}:
            return False
        below: list[Any] = []
        for node in level:
            for name, entry in node.items():
                if type(entry) is not kind_of(name):
                    inside = _schemas_inside(name, entry)
                    if inside is None:
                        return False
                    below += inside
        level, depth = below, depth + 2
    return True


def _schemas_inside(name: str, entry: Any) -> Iterable[Any] | None:
    """The schemas that a keyword holds if it is as plain as most are; None if it takes a slow look."""
    if type(entry) is dict and name == "properties":
        return entry.values()
    if type(entry) is dict and name in _BELOW:
        return (entry,)
    if type(entry) is list and name in _OF_TEXTS and {*map(type, entry)} == {str}:
        return ()
    if type(entry) is int and name in _OF_NUMBERS and -INT64_MAX <= entry <= INT64_MAX:
        return ()
    return () if _is_flat(_KEYWORDS.get(name, _anything), entry) else None


def _is_flat(form: Form, value: Any) -> bool:
    return not is_too_deep(value, FLAT) and not any(form(value, ""))


def _one(words: str, wanted: type) -> Form:
    """A value of this type; null is as good as nothing everywhere."""

    def check(value: Any, path: str) -> Errors:
        if value is not None and not isinstance(value, wanted):
            yield invalid(path, value, f"must be {words}")

    return check


def _check_text(value: Any, path: str) -> Errors:
    """An entry of a list of texts, where null means nothing."""
    if not isinstance(value, str):
        yield invalid(path, value, "must be a string")


def _is_number(value: Any, most: float = sys.float_info.max) -> bool:
    """A number that the API server reads; compared, for whoever converts 1e400 or NaN crashes."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -most <= value <= most


def _number(value: Any, path: str) -> Errors:
    if value is not None and not _is_number(value):
        yield invalid(path, value, "must be a number")


def _whole(value: Any, path: str) -> Errors:
    if value is not None and not (_is_number(value, INT64_MAX) and value == int(value)):
        yield invalid(path, value, "must be an integer")


def _json(value: Any, path: str) -> Errors:
    """Any value, in which each number is one."""
    if isinstance(value, Mapping):
        yield from _map_of(_json)(value, path)
    elif isinstance(value, list | tuple):
        yield from _list_of(_json)(value, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number(value, path)


def _list_of(form: Form) -> Form:
    def check(value: Any, path: str) -> Errors:
        if isinstance(value, list | tuple):
            for place, entry in enumerate(value):
                yield from form(entry, index(path, place))
        elif value is not None:
            yield invalid(path, value, "must be a list")

    return check


def _map_of(form: Form) -> Form:
    def check(value: Any, path: str) -> Errors:
        if isinstance(value, Mapping):
            for name, entry in value.items():
                yield from form(entry, key(path, str(name)))
        elif value is not None:
            yield invalid(path, value, "must be an object")

    return check


def _object_form(**forms: Form) -> Form:
    """An object in which these fields have these forms."""

    def check(value: Any, path: str) -> Errors:
        if isinstance(value, Mapping):
            for name, form in forms.items():
                if value.get(name) is not None:
                    yield from form(value[name], child(path, name))
        elif value is not None:
            yield invalid(path, value, "must be an object")

    return check


def _anything(_: Any, __: str) -> Errors:
    yield from ()


def _schema(value: Any, path: str) -> Errors:
    if isinstance(value, Mapping):
        for name in value:
            form = _KEYWORDS.get(name)
            if form is not None and value[name] is not None:
                yield from form(value[name], child(path, name))
    elif value is not None:
        yield invalid(path, value, "must be an object")


def _schema_or_flag(value: Any, path: str) -> Errors:
    if not isinstance(value, bool):
        yield from _schema(value, path)


def _schema_or_list(value: Any, path: str) -> Errors:
    yield from (_list_of(_schema) if isinstance(value, list) else _schema)(value, path)


_TEXT, _FLAG = _one("a string", str), _one("true or false", bool)
_TEXTS, _OBJECT = _list_of(_check_text), _map_of(_anything)
_RULE = _object_form(
    rule=_TEXT, message=_TEXT, messageExpression=_TEXT, reason=_TEXT, fieldPath=_TEXT, optionalOldSelf=_FLAG
)
_KEYWORDS: dict[str, Form] = {
    **dict.fromkeys(("description", "type", "format", "title", "pattern", "id", "$schema", "$ref"), _TEXT),
    **dict.fromkeys(("x-kubernetes-list-type", "x-kubernetes-map-type"), _TEXT),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum", "uniqueItems", "nullable"), _FLAG),
    **dict.fromkeys((f"x-kubernetes-{name}" for name in ("embedded-resource", "int-or-string")), _FLAG),
    "x-kubernetes-preserve-unknown-fields": _FLAG,
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), _number),
    **dict.fromkeys((f"{side}{what}" for side in ("max", "min") for what in ("Length", "Items", "Properties")), _whole),
    **dict.fromkeys(("required", "x-kubernetes-list-map-keys"), _TEXTS),
    "enum": _list_of(_json),
    **dict.fromkeys(("default", "example"), _json),
    **dict.fromkeys(("allOf", "anyOf", "oneOf"), _list_of(_schema)),
    "not": _schema,
    "items": _schema_or_list,
    **dict.fromkeys(("additionalProperties", "additionalItems"), _schema_or_flag),
    **dict.fromkeys(("properties", "patternProperties", "definitions"), _map_of(_schema)),
    "x-kubernetes-validations": _list_of(_RULE),
}
# What the most frequent keywords hold, and those with texts or one schema below.
_SIMPLE = {name: {_TEXT: str, _FLAG: bool}.get(form) for name, form in _KEYWORDS.items()}
_OF_NUMBERS = frozenset(name for name, form in _KEYWORDS.items() if form in (_number, _whole))
_OF_TEXTS = frozenset(("enum", "required", "x-kubernetes-list-map-keys"))
_BELOW = frozenset(name for name, form in _KEYWORDS.items() if form in (_schema, _schema_or_list, _schema_or_flag))
_NAMES = _object_form(plural=_TEXT, singular=_TEXT, kind=_TEXT, listKind=_TEXT, shortNames=_TEXTS, categories=_TEXTS)
_WITH_SCHEMA = _object_form(openAPIV3Schema=_schema)
_SUBRESOURCES = _object_form(status=_OBJECT, scale=_map_of(_TEXT))
_CLIENT = _object_form(
    url=_TEXT, caBundle=_TEXT, service=_object_form(namespace=_TEXT, name=_TEXT, path=_TEXT, port=_whole)
)
_WEBHOOK = _object_form(clientConfig=_CLIENT, conversionReviewVersions=_TEXTS)
_VERSION = _object_form(
    name=_TEXT,
    served=_FLAG,
    storage=_FLAG,
    deprecated=_FLAG,
    deprecationWarning=_TEXT,
    schema=_WITH_SCHEMA,
    subresources=_SUBRESOURCES,
    selectableFields=_list_of(_object_form(jsonPath=_TEXT)),
    additionalPrinterColumns=_list_of(_OBJECT),
)
_METADATA = _object_form(
    name=_TEXT, namespace=_TEXT, labels=_map_of(_TEXT), annotations=_map_of(_TEXT), managedFields=_list_of(_OBJECT)
)
_SPEC = _object_form(
    group=_TEXT,
    scope=_TEXT,
    version=_TEXT,
    names=_NAMES,
    versions=_list_of(_VERSION),
    validation=_WITH_SCHEMA,
    subresources=_SUBRESOURCES,
    preserveUnknownFields=_FLAG,
    conversion=_object_form(
        strategy=_TEXT, webhook=_WEBHOOK, webhookClientConfig=_CLIENT, conversionReviewVersions=_TEXTS
    ),
)
_STATUS = _object_form(storedVersions=_TEXTS, conditions=_list_of(_OBJECT), acceptedNames=_NAMES)
_CRD = _object_form(apiVersion=_TEXT, kind=_TEXT, metadata=_METADATA, spec=_SPEC, status=_STATUS)
