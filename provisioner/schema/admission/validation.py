"""Whether a custom resource fits its schema, node by node, with the errors that the API server would give.

The order of the checks and the counting of successes follow the server: where no branch of an `anyOf` or `oneOf` fits,
the errors of the branch with most successes are shown.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from provisioner.json_values import maps
from provisioner.regexes import BadRegularExpression
from provisioner.schema.admission.correlation import Correlation, list_keys
from provisioner.schema.fields import (
    FieldError,
    Schema,
    child,
    duplicate,
    go_json,
    go_number,
    go_quoted,
    index,
    invalid,
    key,
    properties_of,
    required,
    same_json,
    schema_of,
    too_long,
    too_many,
    unsupported,
    wrong_type,
)
from provisioner.schema.formats import CHECKS, fits, honoured, matches, normalised

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
BOUND_WORDS = {"multipleOf": "MultipleOf", "minimum": "Minimum boundary", "maximum": "Maximum boundary"}
LARGEST_WHOLE = 2**53 - 1
RELATIVE_HAIR = 1e-9


def json_type(value: Any) -> str:
    """The JSON type as the API server names it; integers beyond 64 bits are numbers there."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer" if INT64_MIN <= value <= INT64_MAX else "number"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def go_format(value: Any) -> str:
    """The format that the server reads off a value's own type, for messages."""
    return {"integer": "int64", "number": "float64"}.get(json_type(value), "")


def is_whole(value: float) -> bool:
    """Whether a floating number counts as an integer: a hair above one does, anything beyond 2^53 does not."""
    number = float(value)
    if not abs(number) <= LARGEST_WHOLE:  # NaN neither, as of 0 by the least factor there is
        return False
    above = number - math.floor(number)
    return above == 0 or (number > 1 and above / (number + math.floor(number)) < RELATIVE_HAIR)


def equals_enum(value: Any, entry: Any) -> bool:
    """Go converts the value to the entry's type first, so 1.5 equals an integer 1; null equals nothing."""
    if value is None or entry is None:
        return False
    if isinstance(value, bool) or isinstance(entry, bool):
        return value is entry
    if isinstance(value, int | float) and isinstance(entry, int | float):
        return int(value) == entry if json_type(entry) == "integer" else float(value) == entry
    return same_json(value, entry)


def string_errors(schema: Schema, value: str, path: str) -> list[FieldError]:
    """The first failing one of maxLength, minLength and pattern; lengths are counted in characters."""
    at, length = path.removeprefix("."), len(value)
    most, least, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    if most is not None and length > most:
        return [too_long(at, most)]
    if least is not None and length < least:
        return [invalid(at, value, f"{path} in body should be at least {least} chars long")]
    if not pattern:
        return []
    try:
        if matches(pattern, value):
            return []
    except BadRegularExpression as exc:
        pattern = f"{pattern}, but pattern is invalid: {exc}"
    return [invalid(at, value, f"{path} in body should match '{pattern}'")]


def is_string_format(format_name: str) -> bool:
    return normalised(format_name) in CHECKS


def format_errors(format_name: str, value: str, path: str) -> list[FieldError]:
    if not is_string_format(format_name) or fits(format_name, value):
        return []
    detail = f"{path} in body must be of type {format_name}: {go_quoted(value)}"
    return [wrong_type(path.removeprefix("."), value, detail)]


def number_errors(schema: Schema, types: tuple[str, ...], value: float, path: str) -> list[FieldError]:
    """Range of type and format, multipleOf, minimum and maximum, in the server's order."""
    kind = types[0] if len(types) == 1 and types[0] in ("integer", "number") else ""
    format_name = str(schema.get("format") or "")
    known = {"integer": ("int32", "int64"), "number": ("float", "double")}.get(kind, ())
    form = (kind, format_name if format_name in known else "")
    if json_type(value) == "number":
        value = float(value)
    found = _out_of_range(value, form, "Checked", path)
    for name, words in BOUND_WORDS.items():
        bound = schema.get(name)
        if bound is None:
            continue
        misfits = _out_of_range(bound, form, words, path)
        number = float(value) if misfits else value
        found += misfits
        if name == "multipleOf":
            found += _multiple_of(number, bound, path)
            continue
        limit = int(bound) if isinstance(number, int) else bound
        is_exclusive = schema.get(f"exclusive{name.capitalize()}") is True
        is_within = number > limit if name == "minimum" else number < limit
        if not is_within and (number != limit or is_exclusive):
            order = "greater than" if name == "minimum" else "less than"
            order = order if is_exclusive else f"{order} or equal to"
            detail = f"{path} in body should be {order} {go_number(limit)}"
            found.append(invalid(path.removeprefix("."), number, detail))
    return found


def _out_of_range(value: float, form: tuple[str, str], what: str, path: str) -> list[FieldError]:
    kind, format_name = form
    if kind == "integer":
        low, high = (INT32_MIN, INT32_MAX) if format_name == "int32" else (INT64_MIN, INT64_MAX)
        if float(value).is_integer() and low <= int(value) <= high:
            return []
    elif format_name != "float" or _fits_float32(value):
        return []
    shown = f"with format {format_name}" if format_name else "(default format)"
    return [invalid("", "", f"{what} value must be of type {kind} {shown} in {path}")]


def _fits_float32(value: float) -> bool:
    try:
        struct.pack("f", value)
    except OverflowError:
        return False
    return True


def _multiple_of(value: float, factor: float, path: str) -> list[FieldError]:
    at = path.removeprefix(".")
    if isinstance(value, int):
        factor = int(factor)
    if factor <= 0:
        detail = f"factor MultipleOf declared for {path} must be positive: {go_number(factor)}"
        return [invalid(at, factor, detail)]
    if isinstance(value, int):
        is_multiple = value % int(factor) == 0
    else:
        is_multiple = is_whole(1 / factor * value if factor < 1 else value / factor)
    return [] if is_multiple else [invalid(at, value, f"{path} in body should be a multiple of {go_number(factor)}")]


@dataclass(slots=True)
class ValidationOutcome:
    """The errors found at a node and below it, and how many checks succeeded."""

    known: dict[FieldError, None] = field(default_factory=dict)  # a list takes too long to search for a wide object
    successes: int = 0

    @property
    def errors(self) -> list[FieldError]:
        """Each once, in the order in which they were found."""
        return list(self.known)

    def add(self, *errors: FieldError) -> None:
        for error in errors:
            self.known.setdefault(error)

    def merge(self, other: ValidationOutcome) -> None:
        self.known |= other.known
        self.successes += other.successes

    @property
    def is_valid(self) -> bool:
        return not self.known


def validate(schema: Schema, obj: Any, old: Correlation | None = None) -> list[FieldError]:
    """The errors of `obj`; with `old` only those that remain after ratcheting."""
    return _ratcheted(schema, obj, "", old).errors


def _ratcheted(schema: Schema, value: Any, path: str, old: Correlation | None) -> ValidationOutcome:
    found = _checked(schema, value, path, old)
    return ValidationOutcome() if found.known and old is not None and old.is_unchanged else found


def _checked(schema: Schema, value: Any, path: str, old: Correlation | None) -> ValidationOutcome:
    found = ValidationOutcome()
    types = types_of(schema)
    format_name = honoured(types[0] if len(types) == 1 else "", str(schema.get("format") or ""))
    if types or format_name:
        _check_type(found, value, path, (types, format_name, bool(schema.get("nullable"))))
    if value is None:
        _check_enum(found, schema, value, path)
        return found
    if types or format_name:
        found.successes += 1
    # Inside junctors nothing is ratcheted: their branches are judged as if the object were new.
    if any_of := maps(schema.get("anyOf")):
        _check_any_of(found, (_checked(branch, value, path, None) for branch in any_of), path)
    if one_of := maps(schema.get("oneOf")):
        _check_one_of(found, [_checked(branch, value, path, None) for branch in one_of], path)
    if all_of := maps(schema.get("allOf")):
        outcomes = [_checked(branch, value, path, None) for branch in all_of]
        for outcome in outcomes:
            found.merge(outcome)
        fitting = sum(outcome.is_valid for outcome in outcomes)
        if fitting != len(outcomes):
            tail = "" if fitting else ". None validated"
            found.add(invalid("", "", f"{go_quoted(path)} must validate all the schemas (allOf){tail}"))
    forbidden = schema_of(schema.get("not"))
    if forbidden is not None and _checked(forbidden, value, path, None).is_valid:
        found.add(invalid("", "", f"{go_quoted(path)} must not validate the schema (not)"))
    found.successes += 1
    _check_kind(found, schema, value, path, old)
    _check_enum(found, schema, value, path)
    found.successes += 3
    return found


def _check_kind(found: ValidationOutcome, schema: Schema, value: Any, path: str, old: Correlation | None) -> None:
    if isinstance(value, str):
        found.add(*string_errors(schema, value, path))
        types = types_of(schema)
        format_name = honoured(types[0] if len(types) == 1 else "", str(schema.get("format") or ""))
        found.add(*format_errors(format_name, value, path))
        found.successes += 2 if is_string_format(format_name) else 1
    elif isinstance(value, dict):
        at, count = path.removeprefix("."), len(value)
        least, most = schema.get("minProperties"), schema.get("maxProperties")
        if least is not None and count < least:
            found.add(invalid(at, count, f"{path} in body should have at least {least} properties"))
        if most is not None and count > most:
            found.add(too_many(at, count, most))
        known = properties_of(schema)
        _check_additional(found, schema, value, path, old)
        for name in known:
            if name in value:
                described = schema_of(known[name]) or {}
                found.merge(_field(described, value[name], f"{path}.{name}" if path else name, (path, name, old)))
        for name in schema.get("required") or ():
            if name not in value:
                found.add(required(f"{path}.{name}".removeprefix(".")))
        found.successes += 1
    elif isinstance(value, list):
        _check_list(found, schema, value, path, old)
        found.successes += 2
    elif not isinstance(value, bool):
        found.add(*number_errors(schema, types_of(schema), value, path))
        found.successes += 2


def types_of(schema: Schema) -> tuple[str, ...]:
    if schema.get("x-kubernetes-int-or-string") is True:
        return ("integer", "string")
    name = schema.get("type")
    return (name,) if isinstance(name, str) and name else ()


def _check_type(found: ValidationOutcome, value: Any, path: str, wanted: tuple[tuple[str, ...], str, bool]) -> None:
    types, format_name, is_nullable = wanted
    actual = json_type(value)
    is_numeric = "number" in types or "integer" in types
    if actual == "null":
        does_fit = not types or "null" in types or is_nullable
    elif format_name and not is_numeric and isinstance(value, str | list):
        does_fit = True  # a string format replaces the check of the type, and lists pass as well
    elif actual == "number" and actual not in types:
        does_fit = "integer" in types and is_whole(value)
    else:
        does_fit = actual in types or (actual == "integer" and "number" in types)
    if does_fit:
        found.successes += 1
        return
    expected = ",".join(types)
    if format_name and actual not in ("string", "array", "null"):
        expected, actual = format_name, go_format(value)
    detail = f"{path} in body must be of type {expected}: {go_quoted(actual)}"
    found.add(wrong_type(path.removeprefix("."), actual, detail))


def _check_enum(found: ValidationOutcome, schema: Schema, value: Any, path: str) -> None:
    allowed = schema.get("enum")
    if not isinstance(allowed, list) or not allowed:
        return
    if not any(equals_enum(value, entry) for entry in allowed):
        found.add(unsupported(path.removeprefix("."), value, allowed))


def _check_list(found: ValidationOutcome, schema: Schema, value: list[Any], path: str, old: Correlation | None) -> None:
    items = schema_of(schema.get("items"))
    if items is not None:
        for position, item in enumerate(value):
            before = old.item(position) if old is not None else None
            found.merge(_ratcheted(items, item, f"{path}[{position}]", before))
    at, count = path.removeprefix("."), len(value)
    least, most = schema.get("minItems"), schema.get("maxItems")
    if least is not None and count < least:
        found.add(invalid(at, count, f"{path} in body should have at least {least} items"))
    if most is not None and count > most:
        found.add(too_many(at, count, most))
    if schema.get("uniqueItems") and any(same_json(*pair) for pair in combinations(value, 2)):
        found.add(invalid(at, "", f"{path} in body shouldn't contain duplicates"))


def _check_additional(
    found: ValidationOutcome, schema: Schema, value: dict[str, Any], path: str, old: Correlation | None
) -> None:
    additional = schema.get("additionalProperties")
    if additional is None or additional is True:
        return
    known = properties_of(schema)
    for name in sorted(value.keys() - known.keys()):
        if additional is False:
            detail = f"{path}.{name} in body is a forbidden property"
            found.add(invalid(path.removeprefix("."), name, detail))
        elif isinstance(additional, Mapping):
            found.merge(_field(additional, value[name], f"{path}.{name}", (path, name, old)))


def _field(schema: Schema, value: Any, path: str, where: tuple[str, str, Correlation | None]) -> ValidationOutcome:
    parent, name, old = where
    is_type_meta = parent == "" and name in ("apiVersion", "kind")
    before = old.field(name) if old is not None and not is_type_meta else None
    return _ratcheted(schema, value, path, before)


def _check_any_of(found: ValidationOutcome, outcomes: Iterable[ValidationOutcome], path: str) -> None:
    failed = []
    for outcome in outcomes:  # the first that fits ends the search: the others are not judged
        if outcome.is_valid:
            found.merge(outcome)
            return
        failed.append(outcome)
    found.add(invalid("", "", f"{go_quoted(path)} must validate at least one schema (anyOf)"))
    found.merge(_nearest(failed))


def _check_one_of(found: ValidationOutcome, outcomes: list[ValidationOutcome], path: str) -> None:
    fitting = [outcome for outcome in outcomes if outcome.is_valid]
    if len(fitting) == 1:
        found.merge(fitting[0])
        return
    count = f"Found {len(fitting)} valid alternatives" if fitting else "Found none valid"
    found.add(invalid("", "", f"{go_quoted(path)} must validate one and only one schema (oneOf). {count}"))
    if not fitting:
        found.merge(_nearest(outcomes))


def _nearest(outcomes: list[ValidationOutcome]) -> ValidationOutcome:
    """The first of those with most successes."""
    return max(outcomes, key=lambda outcome: outcome.successes)


def list_errors(schema: Schema | None, value: Any, path: str = "") -> list[FieldError]:
    """Repeated items or keys in every list of `value` whose schema says x-kubernetes-list-type `set` or `map`."""
    found: list[FieldError] = []
    if schema is None:
        return found
    if isinstance(value, dict):
        additional, known = schema_of(schema.get("additionalProperties")), properties_of(schema)
        for name, entry in value.items():
            if additional is not None:
                found += list_errors(additional, entry, key(path, name))
            if name in known:
                found += list_errors(schema_of(known[name]), entry, child(path, name))
    elif isinstance(value, list):
        list_type, items = schema.get("x-kubernetes-list-type"), schema_of(schema.get("items"))
        if list_type == "set":
            found += [duplicate(index(path, place), value[place]) for place in _repeated(value)]
        elif list_type == "map":
            found += _map_errors(schema, value, path)
        for place, item in enumerate(value):
            found += list_errors(items, item, index(path, place))
    return found


def _map_errors(schema: Schema, value: list[Any], path: str) -> list[FieldError]:
    for place, item in enumerate(value):
        if item is not None and not isinstance(item, dict):
            return [invalid(index(path, place), item, "must be an object for an array of list-type map")]
    keys = list_keys(schema) or []
    found = [{name: item[name] for name in keys if name in item} if item else {} for item in value]
    return [duplicate(index(path, place), found[place]) for place in _repeated(found)]


def _repeated(values: list[Any]) -> list[int]:
    """Where each repeated value occurs for the second time; of scalars, 1 and 1.0 are two."""
    times: dict[Any, int] = {}
    places = []
    for place, value in enumerate(values):
        text = (type(value), value) if isinstance(value, int | float) else go_json(value)
        times[text] = times.get(text, 0) + 1
        if times[text] == 2:
            places.append(place)
    return places
