"""The rules of a schema held against the types of the fields that they read, as the API server compiles them.

The program that is evaluated takes objects for maps (see values). Here each object is a message with its fields, so
that a rule over a field that has another type, or is gone, is found wherever the rule reads it: in lists, in maps, in
the variables of macros. What cannot be said in messages (lists of lists, maps of maps) may hold anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import descriptor_pb2, duration_pb2, struct_pb2, timestamp_pb2

from provisioner.expressions import ExpressionAnswer, ExpressionOutcome, Language, Library
from provisioner.expressions.evaluator import ask
from provisioner.schema.cel.values import (
    CODE_TAIL,
    OLD,
    OLD_GIVEN,
    ROOT_FIELDS,
    TOKENS,
    TypedRule,
    has_cel_type,
    names_in,
    names_in_rules,
    optional_old,
    type_signature,
)
from provisioner.schema.fields import Schema, properties_of, schema_of

PACKAGE = "schema"
SECONDS = 10.0  # for all rules of one schema
OWN_TYPE = re.compile(rf"{PACKAGE}\.M\d+")
NO_SUCH_FIELD = re.compile(r"(undefined field '[^']*') not found in struct '[^']*'")
PROBLEM = re.compile(r"ERROR: <input>:\d+:\d+: (.*)")
ANYTHING, ANY_LIST, ANY_MAP = "google.protobuf.Value", "google.protobuf.ListValue", "google.protobuf.Struct"
WELL_KNOWN = {"timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration"}
SCALARS = {
    "bool": "TYPE_BOOL",
    "int": "TYPE_INT64",
    "double": "TYPE_DOUBLE",
    "string": "TYPE_STRING",
    "bytes": "TYPE_BYTES",
}


@dataclass(frozen=True, slots=True)
class _Type:
    """`name` of a message, or the `scalar` of a field descriptor; for CEL in `cel`, as a Language writes types."""

    cel: str
    name: str = ""
    scalar: str = ""


def compile_typed(rules: Sequence[TypedRule]) -> list[tuple[str, bytes]]:
    """Of each rule why it does not compile against the types of its schema, in the compiler's words, or "" and what it
    was compiled to: nothing where a limit of ours ended the compiler.

    All are compiled in one environment: making one takes longer than compiling a hundred rules.
    """
    if not rules:
        return []
    made = _Messages()
    variables = {OLD_GIVEN: "bool"}
    for place, rule in enumerate(rules):
        own = made.type_of(rule.schema, names_in(rule.text), is_root=rule.is_root)
        variables |= {f"{name}{place}": own.cel for name in ("self", OLD)}
    language = Language.of(variables, Library.RULE_TYPES, made.descriptors)
    texts = [_numbered(rule, place) for place, rule in enumerate(rules)]
    answers = ask(language, texts, seconds=SECONDS, wants_program=True)
    return [(_problem(found), found.program) for found in answers]


def _problem(found: ExpressionAnswer) -> str:
    match found.outcome:
        case ExpressionOutcome.COMPILED:
            return "" if found.type in {"bool", "dyn"} else "must evaluate to a bool"
        case ExpressionOutcome.ENDED:
            return ""
    # The first complaint that the API server shares, without the names that were made up here.
    complaints = PROBLEM.findall(found.words)
    if not complaints:
        return ""
    return "ERROR: " + NO_SUCH_FIELD.sub(r"\1", OWN_TYPE.sub("object", CODE_TAIL.sub("", complaints[0])))


def _numbered(rule: TypedRule, place: int) -> str:
    """The rule over its own variables; a field that is called self, after `.` or `.?`, stays."""
    pieces: list[str] = []
    before = ""
    for token in TOKENS.findall(rule.text):
        is_variable = token in {"self", OLD} and not before.endswith((".", ".?"))
        name = f"{token}{place}" if is_variable else token
        pieces.append(optional_old(name) if is_variable and token == OLD and rule.has_optional_old else name)
        before = before if token.isspace() else (before + token)[-2:]
    return "".join(pieces)


@dataclass(slots=True)
class _Draft:
    """The fields of a message that is being written: the name, the type, and whether it is repeated or a map."""

    name: str
    fields: list[tuple[str, _Type, str]] = field(default_factory=list)


class _Messages:
    """The message types of some schemas, each place a type of its own: the API server compares no two of them."""

    def __init__(self) -> None:
        self._drafts: list[_Draft] = []

    def type_of(self, schema: Schema, names: Iterable[str], *, is_root: bool = False) -> _Type:
        """The type of a variable. Of its fields only those are described that `names` holds."""
        return self._type(schema, frozenset(names), is_root=is_root)

    def _type(self, schema: Schema, names: frozenset[str], *, is_root: bool = False) -> _Type:
        kind = schema.get("type")
        if schema.get("x-kubernetes-int-or-string") is True:
            return _anything()
        if kind == "array":
            items = self._element(schema_of(schema.get("items")), names)
            return _Type(f"list<{items.cel}>", ANY_LIST)
        if kind == "object":
            return self._object_type(schema, names, is_root=is_root)
        signature = type_signature(schema)
        if signature not in WELL_KNOWN and signature not in SCALARS:
            return _anything()
        return _Type(signature, WELL_KNOWN.get(signature, ""), SCALARS.get(signature, ""))

    def _object_type(self, schema: Schema, names: frozenset[str], *, is_root: bool) -> _Type:
        additional = schema_of(schema.get("additionalProperties"))
        if additional is not None and not is_root:
            return _Type(f"map<string,{self._element(additional, names).cel}>", ANY_MAP)
        is_resource = is_root or schema.get("x-kubernetes-embedded-resource") is True
        known: Mapping[str, Any] = {**properties_of(schema), **(ROOT_FIELDS if is_resource else {})}
        draft = _Draft(f"M{len(self._drafts)}")
        self._drafts.append(draft)
        for name, described in known.items():
            below = schema_of(described)
            if below is not None and has_cel_type(below):
                draft.fields += [
                    (alias, *self._field(below, names)) for alias in names_in_rules(name) if alias in names
                ]
        return _Type(f"{PACKAGE}.{draft.name}", f"{PACKAGE}.{draft.name}")

    def _field(self, schema: Schema, names: frozenset[str]) -> tuple[_Type, str]:
        """The type of a field, and whether it is `repeated`, a `map` or neither: these hold no lists and maps."""
        items, additional = schema_of(schema.get("items")), schema_of(schema.get("additionalProperties"))
        if schema.get("type") == "array" and items is not None and not _is_nested(items):
            return self._element(items, names), "repeated"
        if schema.get("type") == "object" and additional is not None and not _is_nested(additional):
            return self._element(additional, names), "map"
        return self._type(schema, names), ""

    def _element(self, schema: Schema | None, names: frozenset[str]) -> _Type:
        return _anything() if schema is None else self._type(schema, names)

    @property
    def descriptors(self) -> bytes:
        """The serialized descriptors of all that was asked for."""
        written = descriptor_pb2.FileDescriptorProto(name="schema.proto", package=PACKAGE, syntax="proto2")
        written.dependency.extend(module.DESCRIPTOR.name for module in (duration_pb2, struct_pb2, timestamp_pb2))
        for draft in self._drafts:
            _write_message(written.message_type.add(name=draft.name), draft)
        return bytes(written.SerializeToString())


def _write_message(message: Any, draft: _Draft) -> None:
    taken = {name for name, _, _ in draft.fields}
    for number, (name, kind, form) in enumerate(draft.fields, 1):
        entry = message.field.add(name=name, number=number, json_name=f"f{number}")
        entry.label = entry.LABEL_REPEATED if form == "repeated" else entry.LABEL_OPTIONAL
        if form != "map":
            _set(entry, kind)
        elif _entry_name(name) in taken:
            _set(entry, _Type("", ANY_MAP))
        else:
            taken.add(_entry_name(name))
            entry.label = entry.LABEL_REPEATED
            nested = message.nested_type.add(name=_entry_name(name))
            nested.options.map_entry = True
            key, value = (nested.field.add(name=name, number=number) for number, name in ((1, "key"), (2, "value")))
            key.label = value.label = key.LABEL_OPTIONAL
            key.type = key.TYPE_STRING
            _set(value, kind)
            _set(entry, _Type("", f"{PACKAGE}.{draft.name}.{_entry_name(name)}"))


def _entry_name(name: str) -> str:
    """The one name that protobuf allows for the entries of a map field."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_")) + "Entry"


def _set(entry: Any, kind: _Type) -> None:
    if kind.scalar:
        entry.type = getattr(entry, kind.scalar)
    else:
        entry.type, entry.type_name = entry.TYPE_MESSAGE, f".{kind.name}"


def _anything() -> _Type:
    return _Type("dyn", ANYTHING)


def _is_nested(schema: Schema) -> bool:
    """Whether a value is a list or a map itself, which no repeated field and no map of messages holds."""
    return schema.get("type") == "array" or schema_of(schema.get("additionalProperties")) is not None
