"""How dear a CEL rule may become, estimated from the bounds in its schema as the API server estimates it.

The server refuses a CRD whose rules may cost too much on the largest object that fits into a request. The estimate here
follows the same model (sizes by schema path, cost by function); it is the upper figure only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from provisioner.schema.cel.ast import Node, NodeKind, read
from provisioner.schema.cel.text import OLD, OLD_GIVEN
from provisioner.schema.cel.values import ROOT_FIELDS, escaped
from provisioner.schema.reading import Schema, properties_of, schema_of

MAX_REQUEST_BYTES = 3 * 1024 * 1024
MAX_EACH, MAX_TOTAL = 10_000_000, 100_000_000
UNKNOWN = 2**64 - 1
PER_CHARACTER, PER_PATTERN_CHARACTER = 0.1, 0.25
LIST_COST, MAP_COST, STRUCT_COST = 10, 30, 40
LARGE_FACTOR, SMALL_FACTOR = 100.0, 1.5
TEXT_SIZES = {"duration": 32, "date": 12, "date-time": 32}
TEXT_LEAST = {"duration": 3, "date": 12, "date-time": 21}
SCALARS = {"boolean": 4, "number": 1, "integer": 1}
COMPARISONS = frozenset({"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"})
SUMS, SAME_SIZE = frozenset({"_&&_", "_||_"}), frozenset({"lowerAscii", "upperAscii", "substring", "trim", "charAt"})
WHOLE_LIST = frozenset({"isSorted", "sum", "min", "max", "indexOf", "lastIndexOf"})
PARSERS = frozenset({"url", "ip", "cidr", "quantity", "isIP", "isCIDR", "isQuantity", "isSemver", "semver"})
UNSIZED = frozenset({"type", "orValue", "value", "or", "optional.none"})
RETURNS_TEXT = SAME_SIZE | frozenset({"replace", "join", "split", "find", "findAll", "format", "string", "bytes"})


@dataclass(frozen=True, slots=True)
class Bound:
    """How large a value under a schema may be: characters, items or entries, and the least bytes one of them takes."""

    kind: str
    size: int
    least_bytes: int = 0
    items: Bound | None = None
    fields: Mapping[str, Bound] = field(default_factory=dict)

    @staticmethod
    def most_in_a_request(schema: Schema) -> int:
        known = bound_of(schema)
        return MAX_REQUEST_BYTES // ((known.least_bytes if known is not None else 0) + 1)


def estimate(serialized: bytes, bound: Bound | None) -> int:
    """The most that one run of a compiled rule may cost on a value within `bound`."""
    own = bound or Bound("dyn", UNKNOWN)
    return min(_Coster({"self": own, "oldSelf": own}).cost(read(serialized)), UNKNOWN)


def misused_objects(serialized: bytes, bound: Bound | None) -> list[str]:
    """What a compiled rule does to objects with named fields that only maps can do, in the API server's words.

    To its compiler an object is a type of its own; ours takes it for a map.
    """
    own = bound or Bound("dyn", UNKNOWN)
    walk = _Coster({"self": own, "oldSelf": own})
    walk.cost(read(serialized))
    return list(dict.fromkeys(walk.problems))


def budget_problem(name: str, cost: int, limit: int = MAX_EACH) -> str:
    """What the API server says of a cost over its limit; "" within it."""
    if cost <= limit:
        return ""
    factor = cost / limit
    shown = (
        "more than 100x" if factor > LARGE_FACTOR else f"{factor:.6f}x" if factor < SMALL_FACTOR else f"{factor:.1f}x"
    )
    advice = (
        "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings"
    )
    return f"{name} exceeds budget by factor of {shown} ({advice} are declared)"


def bound_of(schema: Schema, *, is_root: bool = False) -> Bound | None:
    """The bound of a schema, None where CEL knows no type for it."""
    if schema.get("x-kubernetes-int-or-string") is True:
        return Bound("dyn", _text_size(schema), 1)
    kind = schema.get("type")
    if kind == "array":
        return _list_bound(schema)
    if kind == "object":
        additional = schema_of(schema.get("additionalProperties"))
        return _object_bound(schema, is_root) if additional is None else _map_bound(schema, additional)
    if kind == "string":
        return Bound("string", _text_size(schema), TEXT_LEAST.get(str(schema.get("format", "")), 2))
    return Bound("scalar", 1, SCALARS[kind]) if kind in SCALARS else None


def _list_bound(schema: Schema) -> Bound | None:
    described = schema_of(schema.get("items"))
    items = bound_of(described) if described is not None else None
    if items is None:
        return None
    most = (MAX_REQUEST_BYTES - 2) // (items.least_bytes + 1)
    return Bound("list", _limit(schema, "maxItems", most), 2, items)


def _map_bound(schema: Schema, additional: Schema) -> Bound | None:
    items = bound_of(additional)
    if items is None:
        return None
    most = (MAX_REQUEST_BYTES - 2) // (items.least_bytes + 6)
    return Bound("map", _limit(schema, "maxProperties", most), 2, items)


def _object_bound(schema: Schema, is_root: bool) -> Bound:
    known = dict(properties_of(schema))
    if is_root or schema.get("x-kubernetes-embedded-resource") is True:
        known |= ROOT_FIELDS
    fields: dict[str, Bound] = {}
    least = 2
    for name, described in known.items():
        bound, alias = bound_of(described) if isinstance(described, Mapping) else None, escaped(name)
        if bound is None:
            continue
        if alias is not None:
            fields[alias] = bound
        if name in (schema.get("required") or ()) and described.get("default") is None:
            least += len(name) + bound.least_bytes + 4
    return Bound("object", 0, least, fields=fields)  # the server charges nothing for comparing objects


def _text_size(schema: Schema) -> int:
    limit = schema.get("maxLength")
    if isinstance(limit, int):
        return max(limit, 0) * (1 if schema.get("format") == "byte" else 4)
    texts = [len(entry.encode()) for entry in schema.get("enum") or () if isinstance(entry, str)]
    if texts and not schema.get("x-kubernetes-int-or-string"):
        return max(texts)
    return TEXT_SIZES.get(str(schema.get("format", "")), MAX_REQUEST_BYTES - 2)


def _limit(schema: Schema, keyword: str, otherwise: int) -> int:
    limit = schema.get(keyword)
    return max(limit, 0) if isinstance(limit, int) else otherwise


@dataclass(slots=True)
class _Coster:
    """Walks one rule. `known` are the bounds of the variables in scope; None marks one of unknown size.

    `problems` are the uses of objects that the API server's compiler refuses.
    """

    known: dict[str, Bound | None]
    found: dict[int, Bound | None] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def cost(self, node: Node) -> int:
        match node.kind:
            case NodeKind.CALL if _is_old(node):
                return 1
            case NodeKind.CONST:
                return 0
            case NodeKind.IDENT:
                return 1
            case NodeKind.SELECT:
                return self.cost(node.target) + 1 if node.target is not None else 1
            case NodeKind.LIST:
                return LIST_COST + sum(map(self.cost, node.parts))
            case NodeKind.STRUCT:
                return (STRUCT_COST if node.name else MAP_COST) + sum(map(self.cost, node.parts))
            case NodeKind.FOLD:
                return self._fold(node)
        return self._call(node)

    def bound(self, node: Node) -> Bound | None:
        """What is known of the size of the value of `node`; each node is looked at once."""
        if id(node) not in self.found:
            self.found[id(node)] = self._find_bound(node)
        return self.found[id(node)]

    def _find_bound(self, node: Node) -> Bound | None:
        match node.kind:
            case NodeKind.CONST:
                is_text = isinstance(node.value, str | bytes)
                return Bound("string", len(node.value)) if is_text else Bound("scalar", 1)
            case NodeKind.IDENT:  # the server takes what has no path, as names of types, for the value itself
                return self.known.get(node.name, self.known["self"])
            case NodeKind.SELECT:
                return self._selected(node)
            case NodeKind.LIST:
                return Bound("list", len(node.parts), items=self._widest(list(node.parts)))
            case NodeKind.STRUCT:
                return Bound("map", len(node.parts) // 2, items=self._widest(list(node.parts[1::2])))
            case NodeKind.FOLD:
                return self._folded(node)
        if _is_old(node):
            return self.known.get(OLD)
        return Bound("string", self._size(node.parts[0])) if self._is_written(node) else self._result(node)

    def _selected(self, node: Node) -> Bound | None:
        if node.is_test:
            return Bound("scalar", 1)
        parent = self.bound(node.target) if node.target is not None else None
        if parent is None:
            return None
        if parent.kind == "map":  # of an entry that is named the server knows no size
            return parent.items if parent.items is not None and parent.items.kind == "scalar" else None
        return parent.fields.get(node.name)

    def _size(self, node: Node) -> int:
        found = self.bound(node)
        return found.size if found is not None else UNKNOWN

    def _widest(self, nodes: list[Node]) -> Bound | None:
        found = [self.bound(node) for node in nodes]
        known = [bound for bound in found if bound is not None]
        return max(known, key=lambda bound: bound.size) if known and len(known) == len(found) else None

    def _fold(self, node: Node) -> int:
        over, start, condition, step, result = node.parts
        if self._is_object(over):
            self.problems.append("expression of type 'object' cannot be range of a comprehension")
        if over.kind is NodeKind.LIST and not over.parts and condition.value is False:
            return self.cost(over) + self.cost(start) + self._within({node.name: self.bound(start)}, result)
        scope = {node.name: self.bound(start), **self._variables(node)}
        each = self._within(scope, condition) + self._within(scope, step)
        total = self.cost(over) + self.cost(start) + self._within({node.name: self.bound(start)}, result)
        return total + min(self._size(over), UNKNOWN) * each

    def _variables(self, node: Node) -> dict[str, Bound | None]:
        over = self.bound(node.parts[0])
        if node.parts[0].kind is NodeKind.LIST:
            over = Bound("list", len(node.parts[0].parts), items=self.known["self"])
        names = node.variable.split(",")
        items = over.items if over is not None else None
        keys = Bound("string", 0) if over is not None and over.kind == "map" else None  # nor for the length of keys
        if len(names) == 1:
            return {names[0]: keys or items}
        return {names[0]: keys or Bound("scalar", 1), names[1]: items}

    def _within(self, scope: Mapping[str, Bound | None], node: Node) -> int:
        return _Coster({**self.known, **scope}, problems=self.problems).cost(node)

    def _folded(self, node: Node) -> Bound | None:
        start = node.parts[1]
        if start.kind in (NodeKind.LIST, NodeKind.STRUCT):
            return Bound("list" if start.kind is NodeKind.LIST else "map", self._size(node.parts[0]))
        return Bound("scalar", 1) if start.kind is NodeKind.CONST else None

    def _call(self, node: Node) -> int:
        arguments = sum(map(self.cost, node.parts))
        own = self.cost(node.target) if node.target is not None else 0
        if node.name == "_?_:_":
            condition, *branches = (self.cost(part) for part in node.parts)
            return condition + max(branches, default=0)
        return arguments + own + self._own_cost(node)

    def _own_cost(self, node: Node) -> int:
        """What a call costs beyond its arguments."""
        operand = {"size": node.target or next(iter(node.parts), None), "@in": node.parts[-1] if node.parts else None}
        asked = operand.get(node.name, node.parts[0] if node.name == "_[_]" else None)
        if asked is not None and self._is_object(asked):
            self.problems.append(f"found no matching overload for '{node.name}' applied to 'object'")
        sizes = [self._size(part) for part in node.parts]
        target = self._size(node.target) if node.target is not None else 0
        if node.name in SUMS:
            return 0
        if node.name in COMPARISONS:
            return _scaled(min(sizes), PER_CHARACTER)
        if node.name in SAME_SIZE or (node.name in WHOLE_LIST and self._is_text(node.target)):
            return _scaled(target, PER_CHARACTER)
        if node.name in PARSERS or self._is_written(node):
            return _scaled(sizes[0] if sizes else 1, PER_CHARACTER)
        return self._text_cost(node, target, sizes)

    def _text_cost(self, node: Node, target: int, sizes: list[int]) -> int:
        match node.name:
            case "_+_" if any(self._is_text(part) for part in node.parts):
                return _scaled(sum(sizes), PER_CHARACTER)
            case "@in" if self._kind(node.parts[1]) != "map":
                return sizes[1]
            case "startsWith" | "endsWith":
                return _scaled(sizes[0], PER_CHARACTER)
            case "contains":
                return _scaled(target, PER_CHARACTER) * _scaled(sizes[0], PER_CHARACTER)
            case "matches" | "find" | "findAll":
                text, pattern = (target, sizes[0]) if node.target is not None else (sizes[0], sizes[1])
                return _scaled(text + 1, PER_CHARACTER) * _scaled(pattern, PER_PATTERN_CHARACTER)
            case "replace" | "split":
                return _scaled(target, 2 * PER_CHARACTER)
            case "isSorted" | "sum" | "min" | "max":
                return target * self._item_cost(node.target)
        return 1

    def _item_cost(self, node: Node | None) -> int:
        found = self.bound(node) if node is not None else None
        items = found.items if found is not None else None
        return 1 + (_scaled(items.size, PER_CHARACTER) if items is not None and items.kind == "string" else 0)

    def _result(self, node: Node) -> Bound | None:
        match node.name:
            case "_?_:_":
                return self._widest(list(node.parts[1:]))
            case "_+_":
                widest = self._widest(list(node.parts))
                total = sum(self._size(part) for part in node.parts)
                return (
                    Bound(widest.kind, total if widest.kind != "scalar" else 1, items=widest.items) if widest else None
                )
            case "_[_]" | "_[?_]":
                parent = self.bound(node.parts[0])
                return parent.items if parent is not None else None
            case "dyn" | "optional.of" | "_?._" | "url":
                return self.bound(node.parts[0])
        if node.name in SAME_SIZE | {"find"} and node.target is not None:
            return Bound("string", self._size(node.target))
        if node.name in ("split", "findAll") and node.target is not None:
            return Bound("list", self._size(node.target), items=Bound("string", self._size(node.target)))
        return None if node.name in RETURNS_TEXT | UNSIZED else Bound("scalar", 1)

    def _kind(self, node: Node) -> str:
        found = self.bound(node)
        return found.kind if found is not None else ""

    def _is_written(self, node: Node) -> bool:
        """Whether something that may be bytes is made a text, which the server takes for work on all of it."""
        return node.name == "string" and len(node.parts) == 1 and self._kind(node.parts[0]) == "dyn"

    def _is_object(self, node: Node) -> bool:
        return node.name != "dyn" and self._kind(node) == "object"

    def _is_text(self, node: Node | None) -> bool:
        return node is not None and self._kind(node) == "string"


def _is_old(node: Node) -> bool:
    """Whether this is oldSelf as `cel.optional_old` writes it."""
    return node.name == "_?_:_" and node.parts[0].name == OLD_GIVEN


def _scaled(size: int, factor: float) -> int:
    return min(math.ceil(size * factor), UNKNOWN)
