"""The parts of an expression that are joined by `&&` and `||`, found by CEL's own syntax tree. PURE.

Where an operator stands is the parser's word. The parentheses around it are all that is looked for in the text, and
each part counts only if it compiles to the very tree that stands there: what cannot be split so stays whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from provisioner.expressions import ExpressionAnswer, ExpressionOutcome
from provisioner.schema.cel.ast import Node, NodeKind, positions_of, read

MAX_TERMS = 40
JOINED, NEGATED, INDEX = {"_&&_": "and", "_||_": "or"}, "!_", "_[_]"
# A text of CEL, raw or not, or a comment; parentheses in there open nothing.
_OPAQUE = re.compile(
    r"//[^\n]*"
    r"|'{3}[\s\S]*?'{3}|\"{3}[\s\S]*?\"{3}"
    r"|[rR]'[^'\n]*'|[rR]\"[^\"\n]*\""
    r"|'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\""
)


@dataclass(frozen=True, slots=True)
class Term:
    """A part of an expression that is true or false by itself. `reads` are the facts that it asks about, sorted.

    `before` and `after` say how it is joined to the others, in words: `or not (`, and what it closes.
    """

    text: str
    tree: Node
    reads: tuple[str, ...] = ()
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class ExpressionTerms:
    """The terms of an expression: itself, where it has one part only or cannot be split."""

    whole: Term
    parts: tuple[Term, ...]

    @property
    def texts(self) -> list[str]:
        """The whole expression, then each part."""
        return [self.whole.text, *(part.text for part in self.parts)]


def split_terms(text: str, program: bytes) -> ExpressionTerms:
    """The terms of an expression that compiled to `program`, to be checked by `keep_checked`."""
    tree, positions = read(program), positions_of(program)
    whole = Term(text, tree, facts_read(tree))
    found = list(_terms(tree, text, positions))
    if not 1 < len(found) <= MAX_TERMS:
        return ExpressionTerms(whole, (whole,))
    return ExpressionTerms(whole, tuple(found))


def keep_checked(terms: ExpressionTerms, compiled: Sequence[ExpressionAnswer]) -> ExpressionTerms:
    """The same where every part compiles to the tree that stands there, else only the whole."""
    is_same = all(
        found.outcome is ExpressionOutcome.COMPILED and read(found.program) == term.tree
        for term, found in zip(terms.parts, compiled, strict=True)
    )
    return terms if is_same else ExpressionTerms(terms.whole, (terms.whole,))


def is_only_indexed(tree: Node, name: str) -> bool:
    """Whether an expression asks of a map nothing but the values of keys that it names: not which there are."""
    nodes = list(tree.walk())
    uses = sum(node.kind is NodeKind.IDENT and node.name == name for node in nodes)
    return uses == sum(_is_index_of(node, name) for node in nodes)


def _is_index_of(node: Node, name: str) -> bool:
    if node.kind is NodeKind.SELECT:
        return not node.is_test and node.target == Node(NodeKind.IDENT, name)
    is_call = node.kind is NodeKind.CALL and node.name == INDEX
    return is_call and node.parts[0] == Node(NodeKind.IDENT, name) and node.parts[1].kind is NodeKind.CONST


def facts_read(tree: Node) -> tuple[str, ...]:
    """The variables of an expression that are not its own."""
    return tuple(sorted(set(_free_names(tree, frozenset()))))


def _free_names(node: Node, own: frozenset[str]) -> Iterator[str]:
    if node.kind is NodeKind.IDENT and node.name not in own:
        yield node.name
    if node.kind is NodeKind.FOLD:
        source, start, *inside = node.parts
        named = own | {node.name, *node.variable.split(",")}
        for part in (source, start):
            yield from _free_names(part, own)
        for part in inside:
            yield from _free_names(part, named)
        return
    for part in (*([node.target] if node.target else ()), *node.parts):
        yield from _free_names(part, own)


def _terms(
    node: Node,
    text: str,
    positions: Mapping[int, int],
    start: int = 0,
    *,
    before: str = "",
    after: str = "",
    inside: str = "",
) -> Iterator[Term]:
    """Each part. `text` is what of the expression belongs to `node`, from `start` on; it stands `inside` this operator,
    and `before` and `after` are words for what joins it to others."""
    at = positions.get(node.id, -1) - start
    if node.kind is not NodeKind.CALL or not 0 <= at < len(text):
        yield Term(text.strip(), node, facts_read(node), before, after)
    elif node.name == NEGATED and _is_joined(node.parts[0]):
        (part,) = node.parts
        rest = text[at + 1 : _close_right(text, _count_open(text[:at]))]
        words = {"before": f"{before}not (", "after": f"){after}", "inside": part.name}
        yield from _terms(part, rest, positions, start + at + 1, **words)
    elif _is_joined(node):
        opened = _count_open(text[:at])
        left, right = node.parts
        first = _open_left(text, opened)
        if inside not in ("", node.name):
            before, after = f"{before}(", f"){after}"
        yield from _terms(left, text[first:at], positions, start + first, before=before, inside=node.name)
        rest = text[at + 2 : _close_right(text, opened)]
        words = {"before": f"{JOINED[node.name]} ", "after": after, "inside": node.name}
        yield from _terms(right, rest, positions, start + at + 2, **words)
    else:
        yield Term(text.strip(), node, facts_read(node), before, after)


def _is_joined(node: Node) -> bool:
    return node.kind is NodeKind.CALL and node.name in JOINED


def _count_open(text: str) -> int:
    """How many parentheses that are opened in a text are not closed in it."""
    bare = _OPAQUE.sub("", text)
    return bare.count("(") - bare.count(")")


def _open_left(text: str, count: int) -> int:
    """The place behind the first `count` parentheses."""
    place = 0
    for _ in range(count):
        place = text.find("(", place) + 1
    return place


def _close_right(text: str, count: int) -> int:
    """The place before the last `count` parentheses."""
    place = len(text)
    for _ in range(count):
        place = text.rfind(")", 0, place)
    return place
