"""Compiled CEL as a tree of values: what an expression is, however it was written."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
CHECKED_EXPRESSION, ANY_VALUE, TYPE_OF_ID, ID = 4, 2, 3, 2
SOURCE, POSITION = 5, 4


class NodeKind(StrEnum):
    CONST = "const"
    IDENT = "ident"
    SELECT = "select"
    CALL = "call"
    LIST = "list"
    STRUCT = "struct"
    FOLD = "fold"


@dataclass(frozen=True, slots=True)
class Node:
    """One expression.

    `name` is the identifier, field or function; of a fold (what `all`, `map`, `filter` become) its accumulator. `parts`
    are the arguments, elements or entries; of a fold: range, start, condition, step, result. `variable` is a fold's.
    `id` finds its type (see types_of); two expressions that differ in it alone are equal.
    """

    kind: NodeKind
    name: str = ""
    value: Any = None
    target: Node | None = None
    parts: tuple[Node, ...] = ()
    variable: str = ""
    is_test: bool = False
    id: int = field(default=0, compare=False)

    def walk(self) -> Iterator[Node]:
        yield self
        if self.target is not None:
            yield from self.target.walk()
        for part in self.parts:
            yield from part.walk()


def read(serialized: bytes) -> Node:
    """The tree of a serialized, checked expression; types and positions are left out."""
    return _expression(_last(_checked(serialized), CHECKED_EXPRESSION, b""))


def types_of(serialized: bytes) -> dict[int, str]:
    """The type of each node by its id, as CEL writes types: "int", "list(string)", "map(string, dyn)", "object M0",
    "optional_type(int)"."""
    entries = (_fields(entry) for entry in _all(_checked(serialized), TYPE_OF_ID))
    return {_last(entry, 1, 0): _type(_last(entry, 2, b"")) for entry in entries}


def positions_of(serialized: bytes) -> dict[int, int]:
    """Where each node stands in the text, in characters, by its id; an operator stands where its sign does."""
    source = _fields(_last(_checked(serialized), SOURCE, b""))
    entries = (_fields(entry) for entry in _all(source, POSITION))
    return {_last(entry, 1, 0): _last(entry, 2, 0) for entry in entries}


def _checked(serialized: bytes) -> list[tuple[int, Any]]:
    return _fields(_last(_fields(serialized), ANY_VALUE, b""))


def _type(data: bytes) -> str:
    for number, value in _fields(data):
        if number in NAMED_TYPES:
            return NAMED_TYPES[number]
        if number in NUMBERED_TYPES:
            return NUMBERED_TYPES[number].get(value, "dyn")
        match number:
            case 6:
                return f"list({_type(_last(_fields(value), 1, b''))})"
            case 7:
                entry = _fields(value)
                return f"map({_type(_last(entry, 1, b''))}, {_type(_last(entry, 2, b''))})"
            case 9:
                return f"object {_decode(value)}"
            case 14:
                entry = _fields(value)
                return f"{_decode(_last(entry, 1, b''))}({', '.join(map(_type, _all(entry, 2)))})"
    return "dyn"


def _expression(data: bytes) -> Node:
    fields = _fields(data)
    for number, value in fields:
        read_kind = READERS.get(number)
        if read_kind is not None:
            return replace(read_kind(value), id=_last(fields, ID, 0))
    return Node(NodeKind.CONST)


def _select(data: bytes) -> Node:
    fields = _fields(data)
    operand, name = _expression(_last(fields, 1, b"")), _decode(_last(fields, 2, b""))
    return Node(NodeKind.SELECT, name, target=operand, is_test=bool(_last(fields, 3, 0)))


def _call(data: bytes) -> Node:
    fields = _fields(data)
    target = _last(fields, 1, None)
    arguments = tuple(_expression(it) for it in _all(fields, 3))
    return Node(
        NodeKind.CALL,
        _decode(_last(fields, 2, b"")),
        target=_expression(target) if target is not None else None,
        parts=arguments,
    )


def _struct(data: bytes) -> Node:
    fields = _fields(data)
    parts: list[Node] = []
    for entry in _all(fields, 2):
        inner = _fields(entry)
        key = _last(inner, 3, None)
        parts.append(_expression(key) if key is not None else Node(NodeKind.CONST, value=_decode(_last(inner, 2, b""))))
        parts.append(_expression(_last(inner, 4, b"")))
    return Node(NodeKind.STRUCT, _decode(_last(fields, 1, b"")), parts=tuple(parts))


def _fold(data: bytes) -> Node:
    fields = _fields(data)
    parts = tuple(_expression(_last(fields, number, b"")) for number in (2, 4, 5, 6, 7))
    variables = [_decode(_last(fields, number, b"")) for number in (1, 8)]
    return Node(NodeKind.FOLD, _decode(_last(fields, 3, b"")), parts=parts, variable=",".join(filter(None, variables)))


def _constant(data: bytes) -> Any:
    for number, value in _fields(data):
        match number:
            case 1:
                return None
            case 2:
                return bool(value)
            case 3:
                return value - 2**64 if value >= 2**63 else value
            case 5:
                return struct.unpack("<d", value)[0]
            case 6:
                return _decode(value)
        return value
    return None


# the numbers of the kinds of type in cel.expr.Type; what is none of these and no list, map or message may be anything
NAMED_TYPES = {2: "null"}
NUMBERED_TYPES = {
    3: {1: "bool", 2: "int", 3: "uint", 4: "double", 5: "string", 6: "bytes"},
    5: {2: "timestamp", 3: "duration"},
}
# the numbers of the kinds of expression in cel.expr.Expr
READERS: dict[int, Callable[[bytes], Node]] = {
    3: lambda value: Node(NodeKind.CONST, value=_constant(value)),
    4: lambda value: Node(NodeKind.IDENT, _decode(_last(_fields(value), 1, b""))),
    5: _select,
    6: _call,
    7: lambda value: Node(NodeKind.LIST, parts=tuple(_expression(it) for it in _all(_fields(value), 1))),
    8: _struct,
    9: _fold,
}


def _fields(data: bytes) -> list[tuple[int, Any]]:
    """The fields of one protobuf message, in order: numbers, or bytes."""
    found: list[tuple[int, Any]] = []
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        number, wire = tag >> 3, tag & 7
        if wire == VARINT:
            value, place = _varint(data, place)
            found.append((number, value))
            continue
        size = {FIXED64: 8, FIXED32: 4}.get(wire)
        if size is None:
            size, place = _varint(data, place)
        found.append((number, data[place : place + size]))
        place += size
    return found


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place


def _last(fields: list[tuple[int, Any]], number: int, absent: Any) -> Any:
    return next((value for known, value in reversed(fields) if known == number), absent)


def _all(fields: list[tuple[int, Any]], number: int) -> list[Any]:
    return [value for known, value in fields if known == number]


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")
