"""What the API server refuses in the literals of a CEL rule that compiles: a pattern, a time, a list of mixed types.

cel-go's validators of the syntax tree, as Kubernetes switches them on (k8s.io/apiserver/pkg/cel/environment), and what
its optimizer refuses when it prepares a program. Where a type cannot be known here, nothing is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal

from provisioner.regexes import BadRegularExpression, compiled
from provisioner.schema.cel.ast import Node, NodeKind, read, types_of

PATTERN_FUNCTIONS = frozenset({"matches", "find", "findAll"})
# Go's time.ParseDuration and the layout time.RFC3339.
AMOUNT = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)", re.ASCII)
DURATION = re.compile(rf"[-+]?(0|({AMOUNT.pattern})+)", re.ASCII)
TIMESTAMP = re.compile(
    r"(\d{4}-\d\d-\d\d)T([01]\d|2[0-3]):[0-5]\d:[0-5]\d([.,]\d+)?(Z|[-+]([01]\d|2[0-3]):[0-5]\d)", re.ASCII
)
UNIT_NANOSECONDS = {"ns": 1, "us": 10**3, "\u00b5s": 10**3, "\u03bcs": 10**3, "ms": 10**6, "s": 10**9}
UNIT_NANOSECONDS |= {"m": 60 * 10**9, "h": 3600 * 10**9}
FORMAT = "format"
CLAUSE = re.compile(r"%(?:%|(?:\.\d+)?(.?))", re.DOTALL)
VERBS = "sdfebxXo"


def literal_problem(serialized: bytes) -> str:
    """The first complaint about a serialized, checked rule, in the server's words without the place; "" if none."""
    tree, types = read(serialized), types_of(serialized)
    return next((said for node in tree.walk() for said in _said(node, types)), "") or next(_mixed(tree, types), "")


def _said(node: Node, types: Mapping[int, str]) -> Iterator[str]:
    if node.kind is not NodeKind.CALL:
        return
    texts = [_text(part) for part in node.parts]
    if node.name in PATTERN_FUNCTIONS and texts:
        yield from _pattern(texts[0 if node.target is not None else -1])
    elif node.name in TIMES and len(texts) == 1 and texts[0] is not None:
        if not TIMES[node.name](texts[0]):
            yield f"invalid {node.name} argument"
    elif node.name == FORMAT and node.target is not None and len(node.parts) == 1:
        form, given = _text(node.target), node.parts[0]
        if form is not None and given.kind is NodeKind.LIST:
            yield from _format(form, [types.get(part.id, "dyn") for part in given.parts])


def _text(node: Node) -> str | None:
    return node.value if node.kind is NodeKind.CONST and isinstance(node.value, str) else None


def _pattern(text: str | None) -> Iterator[str]:
    if text is None:
        return
    try:
        compiled(text)
    except BadRegularExpression as exc:
        yield f"invalid matches argument: {exc}"


def _is_duration(text: str) -> bool:
    if DURATION.fullmatch(text) is None:
        return False
    return sum(Decimal(number) * UNIT_NANOSECONDS[unit] for number, unit in AMOUNT.findall(text)) < 2**63


def _is_timestamp(text: str) -> bool:
    found = TIMESTAMP.fullmatch(text)
    try:
        return found is not None and date.fromisoformat(found[1]) is not None
    except ValueError:  # no such day
        return False


TIMES = {"duration": _is_duration, "timestamp": _is_timestamp}


def _format(form: str, given: Sequence[str]) -> Iterator[str]:
    verbs = [found[1] for found in CLAUSE.finditer(form) if found[0] != "%%"]
    for place, verb in enumerate(verbs):
        if verb not in VERBS or not verb:
            yield f'could not parse formatting clause: unrecognized formatting clause "{verb}"'
        elif place >= len(given):
            yield f"index {place} out of range"
    if len(given) > len(verbs):
        yield f"too many arguments supplied to string.format (expected {len(verbs)}, got {len(given)})"


def _mixed(node: Node, types: Mapping[int, str]) -> Iterator[str]:
    """Elements of a list, keys or values of a map literal that are of several types; format takes such a list."""
    if node.kind is NodeKind.CALL and node.name == FORMAT:
        return
    if node.kind is NodeKind.LIST:
        yield from _unlike(node.parts, types)
    elif node.kind is NodeKind.STRUCT and not node.name:
        yield from _unlike(node.parts[::2], types)
        yield from _unlike(node.parts[1::2], types)
    for part in (*((node.target,) if node.target is not None else ()), *node.parts):
        yield from _mixed(part, types)


def _unlike(parts: Sequence[Node], types: Mapping[int, str]) -> Iterator[str]:
    known = [types.get(part.id, "dyn") for part in parts]
    if any("dyn" in one for one in known):
        return
    for one in known[1:]:
        if one != known[0]:
            yield f"expected type '{known[0]}' but found '{one}'"
