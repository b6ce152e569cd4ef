"""The worst-case cost of a CEL rule, estimated from the bounds in its schema as the API server estimates it.

The server refuses a CRD whose rules may cost too much on the largest object that fits into a request. The estimate here
follows the same model (sizes by schema path, cost by function); it is the upper figure only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple

from provisioner.schema.cel.ast import Node, NodeKind, read, types_of
from provisioner.schema.cel.values import OLD, OLD_GIVEN, ROOT_FIELDS, names_in_rules
from provisioner.schema.fields import Schema, properties_of, schema_of

MAX_REQUEST_BYTES = 3 * 1024 * 1024
MAX_EACH, MAX_TOTAL = 10_000_000, 100_000_000
UNKNOWN = 2**64 - 1
PER_CHARACTER, PER_PATTERN_CHARACTER = 0.1, 0.25
LIST_COST, MAP_COST, STRUCT_COST = 10, 30, 40
LARGE_FACTOR, SMALL_FACTOR = 100.0, 1.5
TEXT_SIZES = {"duration": 32, "date": 12, "date-time": 32}
TEXT_LEAST = {"duration": 3, "date": 12, "date-time": 21}
SCALARS = {"boolean": 4, "number": 1, "integer": 1}
PARSERS = frozenset({"url", "ip", "cidr", "quantity", "isIP", "isCIDR", "isQuantity", "isSemver", "semver"})
# What a call compares: two addresses of at most 16 bytes; of networks also what is masked.
CONTAINS = {"containsIP": 4, "containsCIDR": 7}
LIST_METHODS = frozenset({"isSorted", "sum", "min", "max", "indexOf", "lastIndexOf"})
TEXTS = frozenset({"string", "bytes", ""})
# The functions whose results are types of their own to the server; the compiler here takes them for texts.
OPAQUE, MAKE_OPAQUE = "opaque", frozenset({"ip", "cidr", "masked", "quantity", "add", "sub", "semver"})
FIXED_TYPES = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})
OPTIONAL = re.compile(r"optional_type\((.*)\)")
ITEMS, KEYS, VALUES, INDICES = "@items", "@keys", "@values", "@indices"
Path = tuple[str, ...]


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
    """The most that one run of a rule may cost on a value within `bound`: of a rule compiled with the types of its
    schema (see type_check)."""
    return _Coster(bound or Bound("dyn", UNKNOWN), types_of(serialized)).cost(read(serialized))


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
        described = schema_of(schema.get("items"))
        items = bound_of(described) if described is not None else None
        if items is None:
            return None
        most = (MAX_REQUEST_BYTES - 2) // (items.least_bytes + 1)
        return Bound("list", _limit(schema, "maxItems", most), 2, items)
    if kind == "object":
        additional = schema_of(schema.get("additionalProperties"))
        if additional is None:
            return _object_bound(schema, is_root)
        items = bound_of(additional)
        if items is None:
            return None
        most = (MAX_REQUEST_BYTES - 2) // (items.least_bytes + 6)
        return Bound("map", _limit(schema, "maxProperties", most), 2, items)
    if kind == "string":
        return Bound("string", _text_size(schema), TEXT_LEAST.get(str(schema.get("format", "")), 2))
    return Bound("scalar", 0, SCALARS[kind]) if kind in SCALARS else None


def _object_bound(schema: Schema, is_root: bool) -> Bound:
    known = dict(properties_of(schema))
    if is_root or schema.get("x-kubernetes-embedded-resource") is True:
        known |= ROOT_FIELDS
    fields: dict[str, Bound] = {}
    least = 2
    for name, described in known.items():
        bound = bound_of(described) if isinstance(described, Mapping) else None
        if bound is None:
            continue
        fields.update(dict.fromkeys(names_in_rules(name), bound))
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


class Size(NamedTuple):
    """How many characters, items or entries a value may have; without more knowledge any number."""

    least: int = 0
    most: int = UNKNOWN

    def plus(self, other: Size) -> Size:
        return Size(min(self.least + other.least, UNKNOWN), min(self.most + other.most, UNKNOWN))

    def times(self, other: Size) -> Size:
        return Size(min(self.least * other.least, UNKNOWN), min(self.most * other.most, UNKNOWN))

    def or_as(self, other: Size) -> Size:
        return Size(min(self.least, other.least), max(self.most, other.most))

    def cost(self, factor: float = PER_CHARACTER) -> int:
        return min(math.ceil(self.most * factor), UNKNOWN)


ONE = Size(1, 1)


@dataclass(frozen=True, slots=True)
class _Variable:
    """A variable of a macro: where its value stands below `self` (nowhere: ()), its size, and that of its items."""

    path: Path = ()
    size: Size | None = None
    items: Size | None = None


@dataclass(slots=True)
class _Coster:
    """Walks one rule. What is found out is kept by the id of a node: `sizes`, the sizes of its `items`, its `paths`."""

    root: Bound
    types: Mapping[int, str]
    variables: dict[str, _Variable] = field(default_factory=dict)
    sizes: dict[int, Size] = field(default_factory=dict)
    items: dict[int, Size] = field(default_factory=dict)
    paths: dict[int, Path] = field(default_factory=dict)

    def cost(self, node: Node) -> int:
        total = 0
        match node.kind:
            # oldSelf as `cel.optional_old` writes it
            case NodeKind.CALL if node.name == "_?_:_" and node.parts[0].name == OLD_GIVEN:
                self.paths[id(node)], total = (OLD,), 1
            case NodeKind.CALL:
                total = self._call(node)
            case NodeKind.IDENT:
                known = self.variables.get(node.name)
                self.paths[id(node)], total = known.path if known is not None else (node.name,), 1
            case NodeKind.SELECT if node.target is not None:
                total = self.cost(node.target)
                if not node.is_test:  # has() is free in Kubernetes
                    self.paths[id(node)] = (*self.path(node.target), node.name)
                    total += self.kind(node.target) in ("map", "object")
            case NodeKind.LIST:
                total = self._literal(node, node.parts) + LIST_COST
            case NodeKind.STRUCT:
                total = self._literal(node, node.parts[1::2]) + (STRUCT_COST if node.name else MAP_COST)
            case NodeKind.FOLD:
                total = self._fold(node)
        return min(total, UNKNOWN)

    def path(self, node: Node) -> Path:
        return self.paths.get(id(node), ())

    def size(self, node: Node) -> Size:
        return self.known_size(node) or Size()

    def known_size(self, node: Node) -> Size | None:
        if (kept := self.sizes.get(id(node))) is not None:
            return kept
        match node.kind:
            case NodeKind.CONST:
                length = len(node.value) if isinstance(node.value, str | bytes) else 1
                return Size(length, length)
            case NodeKind.LIST:
                return Size(len(node.parts), len(node.parts))
            case NodeKind.STRUCT if not node.name:
                return Size(len(node.parts) // 2, len(node.parts) // 2)
        if (bound := self.bound(self.path(node))) is not None:
            return self.sizes.setdefault(id(node), Size(0, bound.size))
        if OPTIONAL.sub(r"\1", self.types.get(node.id, "")) in FIXED_TYPES:
            return ONE
        known = self.variables.get(node.name) if node.kind is NodeKind.IDENT else None
        return known.size if known is not None else None

    def items_of(self, node: Node) -> Size | None:
        if id(node) not in self.items and node.kind is NodeKind.IDENT and node.name in self.variables:
            return self.variables[node.name].items
        return self.items.get(id(node))

    def bound(self, path: Path) -> Bound | None:
        """What the schema says of the value at `path`. The server takes a path of one part for the value itself,
        whatever that part is."""
        found: Bound | None = self.root if path else None
        for name in path[1:]:
            if found is None:
                return None
            if name == KEYS:
                found = Bound("string", 0) if found.kind == "map" else None
            else:
                found = found.items if name in (ITEMS, VALUES) else found.fields.get(name)
        return found

    def kind(self, node: Node) -> str:
        """The type as one word such as "map" or "string"; "" where it may be several.

        What a schema says is surer than a compiled type, which cannot tell of lists of lists.
        """
        if node.kind is NodeKind.CALL and node.name in MAKE_OPAQUE:
            return OPAQUE
        written = self.types.get(node.id, "")
        if OPTIONAL.match(written):  # to the server the fields of an optional value are free
            return "optional"
        bound = self.bound(self.path(node)) if len(self.path(node)) > 1 else None
        if bound is not None and bound.kind in ("list", "map", "object"):
            return bound.kind
        return written.replace("dyn", "").partition("(")[0].partition(" ")[0]

    def _literal(self, node: Node, values: Sequence[Node]) -> int:
        total = sum(map(self.cost, node.parts))
        sizes = [self.size(value) for value in values]
        self.items[id(node)] = reduce(Size.or_as, sizes) if sizes else Size(0, 0)
        return total

    def _fold(self, node: Node) -> int:
        over, start, condition, step, result = node.parts
        total = self.cost(over) + self.cost(start)
        outer = self.variables
        made = _Variable(self.path(start), self.known_size(start), self.items_of(start))
        self.variables = {**outer, node.name: made}
        if over.kind is NodeKind.LIST and not over.parts and condition.value is False:  # cel.bind
            total += self.cost(result)
            self._keep(node, self.known_size(result), self.items_of(result))
            self.variables = outer
            return total
        names, is_list = node.variable.split(","), self.kind(over) == "list"
        parts = [INDICES, ITEMS] if is_list else [KEYS, VALUES]
        if len(names) == 1:
            parts = [ITEMS if is_list else KEYS]
        self.variables |= {name: _Variable((*self.path(over), part)) for name, part in zip(names, parts, strict=True)}
        each = self.cost(condition) + self.cost(step)
        self.variables = {**outer, node.name: made}
        total += self.cost(result)
        self.variables = outer
        count = self.size(over)
        is_made = start.kind in (NodeKind.LIST, NodeKind.STRUCT)
        if is_made or start.kind is NodeKind.CONST:
            self._keep(node, count if is_made else self.known_size(start), self.items_of(step) if is_made else None)
        return total + count.most * each

    def _keep(self, node: Node, size: Size | None, items: Size | None = None) -> None:
        if size is not None:
            self.sizes[id(node)] = size
        if items is not None:
            self.items[id(node)] = items

    def _call(self, node: Node) -> int:
        costs = [self.cost(part) for part in node.parts]
        target = self.cost(node.target) if node.target is not None else 0
        if node.name == "_?_:_":
            _, left, right = node.parts
            self._keep(node, self.size(left).or_as(self.size(right)), self._both_items(left, right))
            return costs[0] + max(costs[1:])
        own, result = self._own_cost(node)
        self._keep(node, result if result is not None else self.known_size(node))
        return sum(costs) + target + own

    def _both_items(self, left: Node, right: Node) -> Size | None:
        sizes = self.items_of(left), self.items_of(right)
        return sizes[0].or_as(sizes[1]) if sizes[0] is not None and sizes[1] is not None else None

    def _own_cost(self, node: Node) -> tuple[int, Size | None]:
        """What a call costs beyond its arguments, and the size of its result where the function itself tells it."""
        sizes, kinds = [self.size(part) for part in node.parts], {self.kind(part) for part in node.parts}
        if node.target is None:
            is_operator = not node.name[0].isalpha()
            return (self._operator_cost if is_operator else self._function_cost)(node, sizes, kinds)
        if self.kind(node.target) == "list" or node.name in LIST_METHODS:
            size = self.size(node.target)
            if self.kind(node.target) != "list":  # also a text has an index of what is in it
                return size.cost(), None
            if node.name == "join":
                total = size.times(self._item_size(node.target))
                if sizes:
                    total = total.plus(sizes[0].times(Size(max(size.least - 1, 0), max(size.most - 1, 0))))
                return total.cost(), total
            bound = self.bound((*self.path(node.target), ITEMS)) if len(self.path(node.target)) > 1 else None
            is_known = bound is not None and bound.kind == "string"
            each = 1 + (
                self._item_size(node.target).cost()
                if (is_known or self.types.get(node.target.id) in ("list(string)", "list(bytes)"))
                else 0
            )
            return (size.most * each if node.name in LIST_METHODS else 1), None
        return _text_method_cost(node, self.size(node.target), sizes, is_text=kinds <= TEXTS)

    def _operator_cost(self, node: Node, sizes: list[Size], kinds: set[str]) -> tuple[int, Size | None]:
        cost, result = 1, None
        match node.name:
            case "_&&_" | "_||_":
                cost = 0
            case "_==_" | "_!=_" if OPAQUE not in kinds:
                cost = Size(0, min(size.most for size in sizes)).cost()
            case "_<_" | "_<=_" | "_>_" | "_>=_" if kinds <= TEXTS:
                cost = Size(0, min(size.most for size in sizes)).cost()
            case "_+_" if kinds <= TEXTS or kinds <= {"list", ""}:
                result = sizes[0].plus(sizes[1])
                self._keep(node, result, self._both_items(*node.parts))
                cost = result.cost() if kinds <= TEXTS else 1
            case "_[_]":
                part = ITEMS if self.kind(node.parts[0]) == "list" else VALUES
                self.paths[id(node)] = (*self.path(node.parts[0]), part)
                result = self.items_of(node.parts[0])
            case "@in" if self.kind(node.parts[1]) != "map":
                cost = sizes[1].most
        return cost, result

    def _function_cost(self, node: Node, sizes: list[Size], kinds: set[str]) -> tuple[int, Size | None]:
        cost, result = 1, None
        match node.name:
            case "dyn":
                result = self.known_size(node.parts[0])
                self._keep(node, result, self.items_of(node.parts[0]))
            case name if name in PARSERS:
                cost, result = sizes[0].cost(), sizes[0] if name == "url" else None
            case "ip.isCanonical":
                cost = sizes[0].cost(2 * PER_CHARACTER)
            case "bytes" if kinds <= TEXTS:
                cost, result = sizes[0].cost(), sizes[0].times(Size(1, 4))
            case "string" if kinds <= {"bytes", ""}:
                cost, result = max(sizes[0].cost(), 1), Size(sizes[0].least // 4, sizes[0].most)
        return cost, result

    def _item_size(self, node: Node) -> Size:
        """By the schema alone; of the items of any other list the server knows no size."""
        bound = self.bound((*self.path(node), ITEMS)) if self.path(node) else None
        return Size(0, bound.size) if bound is not None else Size()


def _text_method_cost(node: Node, size: Size, sizes: list[Size], *, is_text: bool) -> tuple[int, Size | None]:
    """The same of a method of a text of `size`, or of what is made of one. `is_text` says what its arguments are."""
    cost, result = 1, None
    match node.name:
        case "lowerAscii" | "upperAscii" | "substring" | "trim":
            cost, result = size.cost(), size
        case "replace" if len(sizes) > 1:
            cost, result = size.cost(2 * PER_CHARACTER), _replaced(size, sizes[0], sizes[1])
        case "split":
            limit = node.parts[1].value if len(sizes) > 1 else None
            cost, result = size.cost(2 * PER_CHARACTER), Size(0, limit if isinstance(limit, int) else size.most)
        case "find" | "findAll" | "matches":
            cost = size.plus(ONE).cost() * sizes[0].cost(PER_PATTERN_CHARACTER)
            result = Size(0, size.most) if node.name != "matches" else None
        case "contains":
            cost = size.cost() * sizes[0].cost()
        case "startsWith" | "endsWith":
            cost = sizes[0].cost()
        case "format":
            cost = size.cost()
        case "containsIP" | "containsCIDR":
            cost = CONTAINS[node.name] + (sizes[0].cost() if is_text else 0)
    return cost, result


def _replaced(size: Size, old: Size, new: Size) -> Size:
    """How long a text of `size` may become where each `old` in it is replaced by `new`."""
    if old.least == 0:
        most = (size.most + 1) * new.most + size.most
    elif new.most <= old.least:
        most = size.most
    else:
        most = math.ceil(size.most / old.least) * new.most
    if old.most == 0:
        least = (size.least + 1) * new.least + size.least
    elif old.most <= new.least:
        least = size.least
    else:
        least = math.ceil(size.least / old.most) * new.least
    return Size(min(least, UNKNOWN), min(most, UNKNOWN))
