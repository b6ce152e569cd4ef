"""How a schema is read, and how the API server refuses a field: a path and a sentence with values as Go prints them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any

import orjson

from provisioner.sentences import unescaped

NO_PATH = "<nil>"
LARGEST_PLAIN_EXPONENT = 6
SMALLEST_PLAIN_EXPONENT = -4
DEEPEST = 150
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
CONTAINERS = (dict, list)
AS_JSON: dict[str, Any] = {"option": orjson.OPT_SORT_KEYS}
ESCAPES = tuple((letter, f"\\u{ord(letter):04x}") for letter in "<>&\u2028\u2029")
SMALLEST_PLAIN, LARGEST_PLAIN = 1e-6, 1e21
_ENCODED = json.JSONEncoder(ensure_ascii=False, default=str).encode


class ErrorKind(StrEnum):
    """The API server's kinds of field errors, as its messages name them."""

    REQUIRED = "Required value"
    INVALID = "Invalid value"
    UNSUPPORTED = "Unsupported value"
    FORBIDDEN = "Forbidden"
    DUPLICATE = "Duplicate value"
    TOO_LONG = "Too long"
    TOO_MANY = "Too many"


@dataclass(frozen=True, slots=True)
class FieldError:
    """One refusal. `path` is dotted, `<nil>` where the API server names none; `message` is what follows it.

    `stops_rules` is True for those errors after which the API server evaluates no CEL rules. `is_unknown` is True where
    nobody could find out whether it is one.
    """

    path: str
    message: str
    stops_rules: bool = field(default=False, compare=False)
    is_unknown: bool = False

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class _Omitted:
    """Marks a value that a message leaves out, as the API server does for objects and lists."""


OMITTED = _Omitted()


def required(path: str, detail: str = "") -> FieldError:
    return FieldError(path or NO_PATH, _body(ErrorKind.REQUIRED, OMITTED, detail), stops_rules=True)


def invalid(path: str, value: object, detail: str) -> FieldError:
    return FieldError(path or NO_PATH, _body(ErrorKind.INVALID, value, detail))


def wrong_type(path: str, value: object, detail: str) -> FieldError:
    return FieldError(path or NO_PATH, _body(ErrorKind.INVALID, value, detail), stops_rules=True)


def unsupported(path: str, value: object, known: Iterable[object]) -> FieldError:
    listed = ", ".join(go_quoted(it if isinstance(it, str) else go_json(it)) for it in known)
    detail = f"supported values: {listed}" if listed else ""
    return FieldError(path or NO_PATH, _body(ErrorKind.UNSUPPORTED, value, detail), stops_rules=True)


def forbidden(path: str, detail: str) -> FieldError:
    return FieldError(path or NO_PATH, _body(ErrorKind.FORBIDDEN, OMITTED, detail))


def duplicate(path: str, value: object) -> FieldError:
    return FieldError(path or NO_PATH, _body(ErrorKind.DUPLICATE, value, ""))


def too_long(path: str, limit: int) -> FieldError:
    detail = f"may not be more than {limit} {'byte' if limit == 1 else 'bytes'}"
    return FieldError(path or NO_PATH, _body(ErrorKind.TOO_LONG, OMITTED, detail), stops_rules=True)


def too_many(path: str, count: int, limit: int) -> FieldError:
    detail = f"must have at most {limit} {'item' if limit == 1 else 'items'}"
    return FieldError(path or NO_PATH, _body(ErrorKind.TOO_MANY, count, detail), stops_rules=True)


def child(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def key(path: str, name: str) -> str:
    """The path of a map's entry."""
    return f"{path}[{name}]"


def index(path: str, position: int) -> str:
    return f"{path}[{position}]"


def go_value(value: object) -> str:
    """A value as an error message prints it: strings quoted, numbers plain, everything else as JSON."""
    if isinstance(value, str):
        return go_quoted(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return go_json(value)
    return go_number(value)


def go_number(value: float) -> str:
    """A number as Go's `%v` prints it: the fewest digits, floating ones with an exponent from 1e+06 on."""
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        return {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, "NaN")
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    sign, digits, power = Decimal(repr(value)).normalize().as_tuple()
    exponent = len(digits) + int(power) - 1
    text = "".join(map(str, digits))
    if SMALLEST_PLAIN_EXPONENT <= exponent < LARGEST_PLAIN_EXPONENT:
        return format(Decimal(repr(value)).normalize(), "f")
    tail = f".{text[1:]}" if text[1:] else ""
    return f"{'-' if sign else ''}{text[0]}{tail}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def go_quoted(text: str) -> str:
    """A string as Go's `%q` prints it."""
    escaped = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    escaped |= {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\v": "\\v"}
    return '"' + "".join(escaped.get(char) or (char if char.isprintable() else _escaped(char)) for char in text) + '"'


class Record(dict[str, Any]):
    """A value that is a struct to the API server: its fields are printed in their own order."""


def go_json(value: object) -> str:
    """JSON as Go's encoder writes it: keys sorted, no spaces, `<`, `>` and `&` escaped."""
    if isinstance(value, str):
        return _escaped_json(value)
    if isinstance(value, Mapping):
        names = list(value) if isinstance(value, Record) else sorted(value)
        return "{" + ",".join(f"{go_json(str(name))}:{go_json(value[name])}" for name in names) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(go_json, value)) + "]"
    if isinstance(value, float) and math.isfinite(value):
        # Go's JSON has exponents for what is very small or large, and writes them without leading zeros.
        if value == 0 or SMALLEST_PLAIN <= abs(value) < LARGEST_PLAIN:
            return format(Decimal(repr(value)), "f").removesuffix(".0")
        mantissa, _, power = repr(value).partition("e")
        sign = "-" if power.startswith("-") else "+"
        return f"{mantissa.removesuffix('.0')}e{sign}{power.lstrip('+-').lstrip('0')}"
    return _escaped_json(value)


def shown_json(value: object) -> str:
    """JSON for people: the same without the escapes of `<`, `>` and `&`, which Go has for browsers."""
    return unescaped(go_json(value))


def _escaped_json(value: object) -> str:
    text = _ENCODED(value)
    for letter, escaped in ESCAPES:
        text = text.replace(letter, escaped)
    return text


def is_too_deep(value: object, deepest: int = DEEPEST) -> bool:
    """Whether JSON is nested deeper than anything here follows: no resource or schema that people write is."""
    level: list[Any] = [value] if isinstance(value, CONTAINERS) else []
    for _ in range(deepest):
        if not level:
            return False
        inside = (entry.values() if isinstance(entry, dict) else entry for entry in level)
        level = [below for several in inside for below in several if isinstance(below, CONTAINERS)]
    return True


def same_json(left: Any, right: Any) -> bool:
    """Deep equality of JSON values as the API server holds them, which Python's `==` is not: True is no 1.

    Whole numbers past 64 bits are floating ones to it, and any mapping or sequence here stands for an object or list.
    """
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if left is None or isinstance(left, str):
        return bool(left == right)
    if isinstance(left, int | float):
        return isinstance(right, int | float) and (left == right or as_held(left) == as_held(right))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same_json(value, right[name]) for name, value in left.items())
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same_json, left, right))
    return bool(left == right)


def as_held(number: float) -> float:
    """A number as the API server holds it: whole ones past 64 bits are floating, larger ones it never reads."""
    if not isinstance(number, int) or INT64_MIN <= number <= INT64_MAX:
        return number
    try:
        return float(number)
    except OverflowError:
        return number


def is_same(left: Any, right: Any) -> bool:
    """`same_json`, at the speed of `==` where most of two large values differs or is one and the same.

    Numbers past 64 bits are taken as they are written, and a tuple for no list.
    """
    if left is right:
        return True
    if left != right:
        return False
    if not isinstance(left, (*CONTAINERS, bool)) and not isinstance(right, bool):
        return True
    try:
        return orjson.dumps(left, **AS_JSON) == orjson.dumps(right, **AS_JSON) or same_json(left, right)
    except TypeError:  # numbers past 64 bits, mappings that are no dicts
        return same_json(left, right)


def same_go(left: Any, right: Any) -> bool:
    """Deep equality as Go has it, where numbers written without and with a point are of two types: 1 is no 1.0."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_go(value, right[name]) for name, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_go, left, right))
    return type(left) is type(right) and bool(left == right)


def _body(kind: ErrorKind, value: object, detail: str) -> str:
    text = kind.value if value is OMITTED else f"{kind.value}: {go_value(value)}"
    return f"{text}: {detail}" if detail else text


def _escaped(char: str) -> str:
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


Schema = Mapping[str, Any]
NO_SCHEMA: Schema = {}


def copied(value: Any) -> Any:
    """A deep copy of a JSON value: mappings become dicts, sequences lists, integers past 64 bits floating numbers."""
    if isinstance(value, Mapping):
        return {name: copied(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [copied(entry) for entry in value]
    return as_held(value) if type(value) is int else value


def properties_of(schema: Schema) -> Mapping[str, Schema]:
    return schema_of(schema.get("properties")) or {}


def schema_of(value: object) -> Schema | None:
    """A subschema, or None where there is none or where it is a boolean."""
    if type(value) is dict:  # the fast way to say so, and the next one to say no
        return value
    return value if value is not None and isinstance(value, Mapping) else None


def branches_of(schema: Schema, junctor: str) -> list[Schema]:
    """What stands in allOf, anyOf or oneOf; null is a branch that says nothing."""
    return [schema_of(branch) or NO_SCHEMA for branch in schema.get(junctor) or ()]


def has_additional(schema: Schema) -> bool:
    """Whether `additionalProperties` speaks of unlisted fields at all; even `false` keeps them from being pruned."""
    return schema.get("additionalProperties") is not None


def child_schema(schema: Schema | None, name: str) -> Schema | None:
    """The schema that applies to the field `name`, None where its value is not described."""
    if schema is None:
        return None
    found = properties_of(schema).get(name)
    return schema_of(found) if found is not None else schema_of(schema.get("additionalProperties"))
