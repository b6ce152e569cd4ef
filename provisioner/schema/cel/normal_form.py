"""One form for what CEL says in several ways, so that a rule that was only rewritten is known as the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from provisioner.schema.cel.ast import Node, NodeKind

AND, OR, NOT, EQUALS, DIFFERS, IN = "_&&_", "_||_", "!_", "_==_", "_!=_", "@in"
LESS, AT_MOST = "_<_", "_<=_"
MIRRORED = {"_>_": LESS, "_>=_": AT_MOST}
OPPOSITE = {AND: OR, OR: AND, EQUALS: DIFFERS, DIFFERS: EQUALS}
FLOATING = frozenset({"_/_", "double"})  # may make a NaN, which is neither below nor above anything
TRUE, FALSE = Node(NodeKind.CONST, value=True), Node(NodeKind.CONST, value=False)
CONDITION, STEP, RESULT = 2, 3, 4  # the parts of a fold that see its variable or its accumulator


MAX_WORK = 50_000  # nodes that are looked at; `in` over lists and negations can double what is below them


class TooLarge(ValueError):
    """The one form of an expression takes more than MAX_WORK."""


def plain_form(node: Node) -> Node:
    """The expression in its one form: negations at the leaves, operands that commute in one order, variables of folds
    numbered. It is true, false or an error exactly where `node` is. Raises TooLarge."""
    has_floats = any(it.name in FLOATING for it in node.walk())
    rewriting = _Rewriting(not has_floats)
    return rewriting.ordered(rewriting.form(_numbered(node, {}, 0)))


def conjuncts(node: Node) -> tuple[Node, ...]:
    """What must be true one by one; nothing for an expression that is always true."""
    if node == TRUE:
        return ()
    return node.parts if node.kind is NodeKind.CALL and node.name == AND else (node,)


def disjuncts(node: Node) -> tuple[Node, ...]:
    """Of what one must be true."""
    return node.parts if node.kind is NodeKind.CALL and node.name == OR else (node,)


def _numbered(node: Node, names: Mapping[str, str], depth: int) -> Node:
    """With the variables of folds called by how deep they stand."""
    if node.kind is NodeKind.IDENT:
        return replace(node, name=names.get(node.name, node.name))
    target = _numbered(node.target, names, depth) if node.target is not None else None
    if node.kind is not NodeKind.FOLD:
        return replace(node, target=target, parts=tuple(_numbered(it, names, depth) for it in node.parts))
    variables = node.variable.split(",")
    known = {name: f"#{depth}.{place}" for place, name in enumerate(variables)}
    inner = {**names, **known, node.name: f"#{depth}"}
    parts = tuple(
        _numbered(part, inner if place in (CONDITION, STEP, RESULT) else names, depth + 1)
        for place, part in enumerate(node.parts)
    )
    return replace(node, name=f"#{depth}", parts=parts, variable=",".join(known.values()))


@dataclass(slots=True)
class _Rewriting:
    """`is_total`: of two numbers one is below the other, or they are equal."""

    is_total: bool
    left: int = MAX_WORK

    def _spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise TooLarge

    def form(self, node: Node) -> Node:
        self._spend()
        if node.kind is not NodeKind.CALL:
            return self._inside(node)
        if node.name == NOT:
            return self._negated(node.parts[0])
        if node.name in MIRRORED:
            node = replace(node, name=MIRRORED[node.name], parts=tuple(reversed(node.parts)))
        if node.name == "size" and node.target is None and len(node.parts) == 1:
            node = replace(node, target=node.parts[0], parts=())
        if node.name == IN and node.parts[1].kind is NodeKind.LIST and node.parts[1].parts:
            wanted, listed = node.parts[0], node.parts[1].parts
            equal = tuple(Node(NodeKind.CALL, EQUALS, parts=(wanted, it)) for it in listed)
            node = Node(NodeKind.CALL, OR, parts=equal) if len(equal) > 1 else equal[0]
        return self._inside(node)

    def _inside(self, node: Node) -> Node:
        target = self.form(node.target) if node.target is not None else None
        return replace(node, target=target, parts=tuple(map(self.form, node.parts)))

    def _negated(self, node: Node) -> Node:
        self._spend()
        if node in (TRUE, FALSE):
            return FALSE if node == TRUE else TRUE
        if node.kind is not NodeKind.CALL:
            return Node(NodeKind.CALL, NOT, parts=(self._inside(node),))
        if node.name == NOT:
            return self.form(node.parts[0])
        formed = self.form(node)
        if formed.name in (AND, OR):
            return replace(formed, name=OPPOSITE[formed.name], parts=tuple(map(self._negated, formed.parts)))
        if formed.name in OPPOSITE:
            return replace(formed, name=OPPOSITE[formed.name])
        if formed.name in (LESS, AT_MOST) and self.is_total:
            return replace(formed, name=AT_MOST if formed.name == LESS else LESS, parts=tuple(reversed(formed.parts)))
        return Node(NodeKind.CALL, NOT, parts=(formed,))

    def ordered(self, node: Node) -> Node:
        """With the operands of what commutes in one order, each once, and no constants that decide nothing."""
        self._spend()
        parts = tuple(map(self.ordered, node.parts))
        target = self.ordered(node.target) if node.target is not None else None
        if node.kind is NodeKind.CALL and node.name in (AND, OR):
            return joined(node.name, parts)
        if node.kind is NodeKind.CALL and node.name in (EQUALS, DIFFERS):
            parts = tuple(sorted(parts, key=repr))
        return replace(node, target=target, parts=parts)


def joined(name: str, parts: tuple[Node, ...]) -> Node:
    """Operands of AND or OR as one, in one order, each once, without constants that decide nothing."""
    neutral = TRUE if name == AND else FALSE
    flat = {it for part in parts for it in (part.parts if _is(part, name) else (part,)) if it != neutral}
    if len(flat) > 1:
        return Node(NodeKind.CALL, name, parts=tuple(sorted(flat, key=repr)))
    return flat.pop() if flat else neutral


def _is(node: Node, name: str) -> bool:
    return node.kind is NodeKind.CALL and node.name == name
