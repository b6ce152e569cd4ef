"""The API server's checks of strings and numbers, with its words and its oddities."""

from __future__ import annotations

import math
import struct
from typing import Any

from provisioner.regexes import BadRegularExpression
from provisioner.schema.fields import FieldError, go_number, go_quoted, invalid, same_json, too_long, wrong_type
from provisioner.schema.formats import CHECKS, fits, matches, normalised
from provisioner.schema.subschemas import Schema

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
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
    for name, check in (("multipleOf", _multiple_of), ("minimum", _minimum), ("maximum", _maximum)):
        bound = schema.get(name)
        if bound is not None:
            is_exclusive = schema.get(f"exclusive{name.capitalize()}") is True
            misfits = _out_of_range(bound, form, BOUND_WORDS[name], path)
            found += misfits + check(float(value) if misfits else value, bound, is_exclusive, path)
    return found


BOUND_WORDS = {"multipleOf": "MultipleOf", "minimum": "Minimum boundary", "maximum": "Maximum boundary"}


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


def _multiple_of(value: float, factor: float, _: bool, path: str) -> list[FieldError]:
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


def _minimum(value: float, bound: float, is_exclusive: bool, path: str) -> list[FieldError]:
    limit = int(bound) if isinstance(value, int) else bound
    if value > limit or (value == limit and not is_exclusive):
        return []
    words = "greater than" if is_exclusive else "greater than or equal to"
    return [invalid(path.removeprefix("."), value, f"{path} in body should be {words} {go_number(limit)}")]


def _maximum(value: float, bound: float, is_exclusive: bool, path: str) -> list[FieldError]:
    limit = int(bound) if isinstance(value, int) else bound
    if value < limit or (value == limit and not is_exclusive):
        return []
    words = "less than" if is_exclusive else "less than or equal to"
    return [invalid(path.removeprefix("."), value, f"{path} in body should be {words} {go_number(limit)}")]
