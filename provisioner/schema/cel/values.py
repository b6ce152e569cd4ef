"""CEL expressions as texts, and custom resources as CEL sees them: typed by their schema, field names escaped."""

from __future__ import annotations

import base64
import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from provisioner.regexes import compiled
from provisioner.schema.fields import Schema, copied, properties_of, schema_of
from provisioner.schema.formats import DURATION_UNITS, as_stored

KEYWORDS = ("as", "break", "const", "continue", "else", "for", "function", "if", "import", "in", "let", "loop")
RESERVED = frozenset({*KEYWORDS, "true", "false", "null", "package", "namespace", "return", "var", "void", "while"})
PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ESCAPABLE_NAME = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*")
# One that does not end is a literal up to the end: to try again at each of its characters takes quadratic time.
LITERALS = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|\'(?:[^\'\\]|\\.)*(?:\'|\\?\Z)')
AMOUNT = r"([0-9]*\.?[0-9]+)\s*([A-Za-zµ]+)"  # for RE2: Python's takes cubic time for many digits
FIELD_CHAIN = re.compile(r"\b(?:self|oldSelf)((?:\s*\.\s*[A-Za-z_]\w*)+)(\s*\()?")
ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
ROOT_FIELDS: Mapping[str, Schema] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"type": "object", "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}}},
}
STRING_TYPES = {"byte": "bytes", "duration": "duration", "date": "timestamp", "date-time": "timestamp"}
GO_TYPES = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    dict: "map[string]interface {}",
    list: "[]interface {}",
}
EXPECTED: dict[str, tuple[str, tuple[type, ...]]] = {
    "string": ("string", (str,)),
    "boolean": ("bool", (bool,)),
    "integer": ("int", (int,)),
    "number": ("float", (int, float)),
}
SCALAR_TYPES = {"boolean": "bool", "integer": "int", "number": "double"}
MAX_EXPRESSION_CHARS = 50_000
UNIT_SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "w": 604800.0,
}


def escaped(name: str) -> str | None:
    """The name by which a rule refers to a field, or None where CEL has none for it."""
    if name in RESERVED:
        return f"__{name}__"
    if PLAIN_NAME.fullmatch(name) and "__" not in name:
        return name
    if not ESCAPABLE_NAME.fullmatch(name):
        return None
    return re.sub(r"__|[-./]", lambda found: ESCAPES[found[0]], name)


def names_in_rules(name: str) -> tuple[str, ...]:
    """Every name by which a rule may refer to a field: a reserved word stands for itself, too (Kubernetes 1.31)."""
    alias = escaped(name)
    return () if alias is None else (alias, name) if name in RESERVED else (alias,)


def has_cel_type(schema: Schema) -> bool:
    """Whether CEL has a type for values under `schema`. Where it has none, the API server runs no rule, nor below."""
    node: Schema | None = schema
    while node is not None and node.get("x-kubernetes-int-or-string") is not True:
        kind = node.get("type")
        if kind == "array":
            node = schema_of(node.get("items"))
        elif kind == "object" and schema_of(node.get("additionalProperties")) is not None:
            node = schema_of(node.get("additionalProperties"))
        else:
            return isinstance(kind, str) and kind in {"object", "string", *SCALAR_TYPES}
    return node is not None


def type_signature(schema: Schema, *, is_root: bool = False) -> str:
    """The CEL type of a value under `schema`, as text; "dyn" where it may be several.

    Objects with fields are maps to anything: which fields there are is checked apart (see rule_check).
    """
    if schema.get("x-kubernetes-int-or-string") is True:
        return "dyn"
    match schema.get("type"):
        case "array":
            items = schema_of(schema.get("items"))
            return f"list<{_element_signature(items)}>" if items is not None else "dyn"
        case "object":
            additional = schema_of(schema.get("additionalProperties"))
            if additional is not None and not is_root:
                return f"map<string,{_element_signature(additional)}>"
            return "map<string,dyn>"
        case "string":
            return STRING_TYPES.get(str(schema.get("format", "")), "string")
        case str() as name:
            return SCALAR_TYPES.get(name, "dyn")
    return "dyn"


def _element_signature(schema: Schema) -> str:
    return "dyn" if schema.get("nullable") else type_signature(schema)


def to_cel(value: Any, schema: Schema, *, is_root: bool = False, is_field: bool = False) -> Any:
    """`value` as a CEL activation takes it.

    A text that does not fit its format stays a text, so that a rule over it fails and says so. The CEL runtime takes no
    times inside objects: there (`is_field`) they are texts in one form, and typed_moments makes times of them.
    """
    if value is None or schema.get("x-kubernetes-int-or-string") is True:
        return value
    if isinstance(value, dict):
        return _convert_object(value, schema, is_root or schema.get("x-kubernetes-embedded-resource") is True, is_field)
    if isinstance(value, list):
        items = schema_of(schema.get("items"))
        return [to_cel(item, items, is_field=is_field) for item in value] if items is not None else copied(value)
    if isinstance(value, str):
        found = _convert_text(value, str(schema.get("format", "")))
        return _written(found) if is_field else found
    if isinstance(value, bool):
        return value
    return (
        float(value)
        if schema.get("type") == "number"
        else (int(value) if schema.get("type") == "integer" and float(value).is_integer() else value)
    )


def misfit(value: Any, schema: Schema) -> str:
    """Why CEL cannot take `value` for what `schema` says it is, in the API server's words; "" where it can."""
    actual = GO_TYPES.get(type(value), "")
    kind = schema.get("type")
    if schema.get("x-kubernetes-int-or-string") is True:
        fits = type(value) in (str, int)
        return "" if fits else "invalid data, expected XIntOrString value to be either a string or integer"
    if kind == "object" and not isinstance(value, dict):
        return "invalid data, expected a map for the provided schema with type=object"
    if kind == "array" and not isinstance(value, list):
        return "invalid data, expected an array for the provided schema with type=array"
    wanted = EXPECTED.get(str(kind))
    if wanted is None or type(value) in wanted[1]:
        return ""
    return f"invalid data, expected {wanted[0]}, got {actual}"


def _written(value: Any) -> Any:
    """A time as a text that CEL's own conversions read."""
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    return f"{value.total_seconds():f}s" if isinstance(value, datetime.timedelta) else value


def typed_moments(text: str, schema: Schema, *, is_root: bool) -> str:
    """The rule with every field of `self` and `oldSelf` that is a time or duration converted where it is read."""
    if len(text) > MAX_EXPRESSION_CHARS:
        return text  # nobody compiles it
    plain = LITERALS.sub(lambda found: "_" * len(found[0]), text)
    pieces, last = [], 0
    fields = Aliases()
    for chain in FIELD_CHAIN.finditer(plain):
        names = [name.strip() for name in chain[1].split(".")[1:]]
        end = chain.end(1)
        if chain[2]:
            end = plain.rindex(".", chain.start(), end)
            names = names[:-1]
        kind = _kind_at(names, schema, is_root, fields)
        if kind not in ("timestamp", "duration") or plain[: chain.start()].rstrip().endswith("has("):
            continue
        pieces += [text[last : chain.start()], f"{kind}({text[chain.start() : end].rstrip()})"]
        last = end
    return "".join([*pieces, text[last:]])


class Aliases:
    """The fields of schemas by the names that rules have for them, each schema read once: a rule has room for many
    chains of fields, and a schema for many fields.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, bool], dict[str, Any]] = {}

    def of(self, node: Schema, *, is_root: bool) -> dict[str, Any]:
        if (id(node), is_root) not in self._known:
            fields = {**properties_of(node), **(ROOT_FIELDS if is_root else {})}
            self._known[id(node), is_root] = {
                alias: described for name, described in fields.items() for alias in names_in_rules(name)
            }
        return self._known[id(node), is_root]


def _kind_at(names: list[str], schema: Schema, is_root: bool, fields: Aliases) -> str:
    node: Schema | None = schema
    for name in names:
        if node is None:
            return ""
        node = schema_of(fields.of(node, is_root=is_root).get(name)) or schema_of(node.get("additionalProperties"))
        is_root = False
    return type_signature(node) if node is not None and names else ""


def _convert_object(value: dict[str, Any], schema: Schema, is_root: bool, is_field: bool) -> Any:
    additional, known = schema_of(schema.get("additionalProperties")), properties_of(schema)
    if is_root:
        known = {**ROOT_FIELDS, **{name: it for name, it in known.items() if name not in ROOT_FIELDS}}
    elif additional is not None and not known:
        return {name: to_cel(entry, additional, is_field=is_field) for name, entry in value.items()}
    found = {}
    for name, entry in value.items():
        described, aliases = schema_of(known.get(name)), names_in_rules(name)
        if described is not None and entry is None:
            continue  # to a rule a field that is null is not there
        if described is not None and aliases:
            found.update(dict.fromkeys(aliases, to_cel(entry, described, is_field=True)))
        elif described is None and schema.get("x-kubernetes-preserve-unknown-fields") is True:
            found[name] = copied(entry)  # no rule can name it, but it counts when whole objects are compared
    return found


def _convert_text(value: str, format_name: str) -> Any:
    kind = STRING_TYPES.get(format_name)
    try:
        if kind == "bytes":
            return base64.b64decode(value, validate=True)
        if kind == "timestamp":
            moment = datetime.datetime.fromisoformat(value.upper())
            return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
        return datetime.timedelta(seconds=_seconds(value)) if kind == "duration" else value
    except (ValueError, OverflowError):
        return value


def _seconds(text: str) -> float:
    pairs = [(it.group(1), it.group(2)) for it in compiled(AMOUNT).program.finditer(as_stored(text))]
    if not pairs and text.strip("+-") != "0":
        raise ValueError(text)
    total = sum(float(number) * UNIT_SECONDS[_unit(word)] for number, word in pairs)
    return -total if text.startswith("-") else total


def _unit(word: str) -> str:
    lower = word.lower()
    if lower in DURATION_UNITS:
        return lower
    long_words = {"nano": "ns", "micro": "us", "milli": "ms", "sec": "s", "min": "m", "h": "h", "day": "d", "w": "w"}
    for start, unit in long_words.items():
        if lower.startswith(start):
            return unit
    raise ValueError(word)


OLD, OLD_GIVEN = "oldSelf", "oldSelfGiven"
# A text that does not end is one token up to the end: to try again at each of its characters takes quadratic time.
STRINGS = r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|\'(?:[^\'\\]|\\.)*(?:\'|\\?\Z)'
LONG_STRINGS = r'"""(?:[^\\]|\\.)*?(?:"""|\\?\Z)|\'\'\'(?:[^\\]|\\.)*?(?:\'\'\'|\\?\Z)'
TOKENS = re.compile(rf"{LONG_STRINGS}|{STRINGS}|//[^\n]*|[A-Za-z_][A-Za-z0-9_]*|\s+|.", re.DOTALL)
CODE_TAIL = re.compile(r" \[[A-Z_]+\]$")


def names_in(text: str) -> set[str]:
    """The identifiers of an expression, those inside strings and comments left out."""
    return {token for token in TOKENS.findall(text) if token.isidentifier()}


@lru_cache(maxsize=4096)
def uses_old(text: str) -> bool:
    """Whether the expression is a transition rule, one that looks at `oldSelf`."""
    return OLD in text and OLD in names_in(text)


def normalised(text: str) -> str:
    """The expression without what does not change its meaning: spaces and comments outside strings."""
    tokens = [token for token in TOKENS.findall(text) if not token.isspace() and not token.startswith("//")]
    joined: list[str] = []
    for token in tokens:
        is_word = token[0].isalnum() or token[0] == "_"
        follows_word = bool(joined) and (joined[-1][-1].isalnum() or joined[-1][-1] == "_")
        joined += [" ", token] if is_word and follows_word else [token]
    return "".join(joined)


def optional_old(name: str) -> str:
    """The old value as an optional one, where it is held by the variable `name`."""
    return f"({OLD_GIVEN} ? optional.of({name}) : optional.none())"


@lru_cache(maxsize=1024)
def with_optional_old(text: str) -> str:
    return "".join(optional_old(OLD) if token == OLD else token for token in TOKENS.findall(text))


@dataclass(frozen=True, slots=True)
class TypedRule:
    """One rule, and the schema of the value that it is about."""

    text: str
    schema: Schema
    is_root: bool = False
    has_optional_old: bool = False
